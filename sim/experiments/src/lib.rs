//! Experiments that reproduce published figures and compare, and the reports they make.
//!
//! An experiment measures and fills a [`Report`](report::Report): prose, tables with the published value beside ours, plots.
//! One report becomes a table on the terminal, CSV and SVG files, JSON, and one HTML page that needs nothing else.
//!
//! | module | what it has |
//! |---|---|
//! | [`report`] | the model of a report and all its forms |
//! | [`measure`] | medians of repeated measurements |
//! | [`machine`] | what the figures were measured on |
//! | [`unit`] | numbers for people |

mod error;
pub mod machine;
pub mod measure;
pub mod report;
pub mod unit;

pub use error::{ExperimentError, Result};
