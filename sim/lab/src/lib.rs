//! Reproduces published evaluations and compares Quiver with other systems: the library behind `cargo lab`.
//!
//! An experiment measures and fills a [`Report`](quiver_report::Report): prose, tables with the published
//! value beside ours, plots. One report becomes a table on the terminal, CSV and SVG files, JSON, and one
//! HTML page that needs nothing else.
//!
//! | module | what it has |
//! |---|---|
//! | [`abe`] | the evaluation of attribute-based encryption on a laptop and a microcontroller, and FABEO22 |
//! | [`abke`] | the evaluation of attribute-based key exchange, step by step; how it grows; garbling by itself |
//! | [`ainq`] | the evaluation of *Arrows in a Quiver*, and how both strategies grow |
//! | [`board`] | the bench shell on boards, native and emulated, beside published figures of two |
//! | [`ibe`] | the benchmarks of threshold identity-based encryption in files, with VSS and KZG |
//! | [`compare`] | the same membership events through MLS and through Quiver |
//! | [`heap`] | the most memory that an operation holds |
//! | [`measure`] | medians of repeated measurements |

pub mod abe;
pub mod abke;
pub mod ainq;
mod blank_report;
pub mod board;
mod cli;
pub mod compare;
mod error;
pub mod heap;
pub mod ibe;
pub mod measure;
mod reference;

pub use cli::main;
pub use error::{LabError, Result};
