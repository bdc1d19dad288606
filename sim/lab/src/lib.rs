//! Experiments that reproduce published figures and compare, and the reports they make.
//!
//! An experiment measures and fills a [`Report`](report::Report): prose, tables with the published value beside ours, plots.
//! One report becomes a table on the terminal, CSV and SVG files, JSON, and one HTML page that needs nothing else.
//!
//! | module | what it has |
//! |---|---|
//! | [`abe`] | the evaluation of attribute-based encryption on a laptop and a microcontroller, and FABEO22 |
//! | [`abke`] | the evaluation of attribute-based key exchange, step by step; how it grows; garbling by itself |
//! | [`ainq`] | the evaluation of *Arrows in a Quiver*, and how both strategies grow |
//! | [`board`] | the bench shell on boards, native and emulated, beside published figures of two |
//! | [`ibe`] | the benchmarks of threshold identity-based encryption in files, with VSS and KZG |
//! | [`compare`] | the same membership events through MLS and through Quiver |
//! | [`report`] | the model of a report and all its forms |
//! | [`heap`] | the most memory that an operation holds |
//! | [`measure`] | medians of repeated measurements |
//! | [`observer`] | who watches |
//! | [`machine`] | what the figures were measured on |
//! | [`mod@unit`] | numbers for people |

pub mod abe;
pub mod abke;
pub mod ainq;
pub mod board;
pub mod compare;
mod error;
pub mod heap;
pub mod ibe;
pub mod machine;
pub mod measure;
pub mod observer;
mod reference;
pub mod report;
pub mod unit;

pub use error::{ExperimentError, Result};
