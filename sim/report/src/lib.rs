//! Reports of the simulator and the lab: progress bars, tables, CSV, SVG plots, JSON and HTML pages.
//!
//! | item | what it has |
//! |---|---|
//! | [`Report`] | measurements of one program run, and all forms that are made of them |
//! | [`Replay`] | a page that plays a trace |
//! | [`Table`], [`Plot`] | figures in rows, figures in drawings |
//! | [`Unit`] | numbers for people |
//! | [`Machine`] | the computer on which figures were measured |
//! | [`Progress`], [`Observer`] | how far something is, on standard error |
//! | [`OutputArgs`] | the command-line settings that say where results go |

mod csv;
mod error;
mod files;
mod index;
mod machine;
mod output;
mod page;
mod plot;
mod progress;
mod replay;
mod report;
mod svg;
mod table;
mod terminal;
mod unit;

pub use quiver_arguments::{SCREEN, complete, parse, quoted, short_helps};

pub use self::csv::{csv, csv_of_records};
pub use self::error::{ReportError, Result};
pub use self::files::{RunName, make_room, rename_run, replace, write, write_run};
pub use self::machine::Machine;
pub use self::output::{OutputArgs, complain, length_of_time, open, print};
pub use self::plot::{Axis, Ink, LegendItem, Panel, Plot, Scale, Series};
pub use self::progress::{Bars, Observer, Progress, ProgressStep, ProgressWait};
pub use self::replay::Replay;
pub use self::report::{Experiment, Highlight, Making, Publication, Report};
pub use self::table::{Bar, CellValue, Column, Table};
pub use self::terminal::grid;
pub use self::unit::{Unit, counted};

#[cfg(test)]
#[path = "../commit.rs"]
mod commit;
#[cfg(test)]
mod tests;
