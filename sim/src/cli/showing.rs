//! Reports of experiments on the command line: bars while they are made, and where they go.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use quiver_lab::observer::Observer;
use quiver_lab::report::{Making, Report, make_room};

use super::print;
use crate::Result;
use crate::progress::{Progress, Step};

/// How a report is shown and kept.
#[derive(Clone, Debug, Args)]
pub(super) struct ShowArgs {
    /// Folder in which every report gets a folder of its own
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Write no files
    #[arg(long)]
    no_results: bool,
    /// Print the report as JSON in place of the tables
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

impl ShowArgs {
    /// Bars, unless they would disturb. If the report could not be written in the end, it says so now.
    pub(super) fn begin(&self) -> Result<Bars> {
        if !self.no_results {
            make_room(&self.results)?;
        }
        Ok(Bars { progress: Progress::new(!self.quiet && !self.json), step: None })
    }

    /// Writes and prints the report.
    pub(super) fn present(&self, report: &Report) -> Result<()> {
        let folder = if self.no_results { None } else { Some(report.write_under(&self.results)?) };
        if self.json {
            print(&report.json());
        } else if !self.quiet {
            print(&report.terminal());
            if let Some(folder) = folder {
                print(&format!("Read {}", folder.join("report.html").display()));
            }
        }
        Ok(())
    }

    /// Writes and prints all reports: as JSON, several of them are one array.
    pub(super) fn present_all(&self, reports: &[Report]) -> Result<()> {
        if !self.json || reports.len() == 1 {
            return reports.iter().try_for_each(|report| self.present(report));
        }
        if !self.no_results {
            for report in reports {
                report.write_under(&self.results)?;
            }
        }
        let all: Vec<String> = reports.iter().map(Report::json).collect();
        print(&format!("[\n{}\n]", all.join(",\n")));
        Ok(())
    }
}

/// What a report says about its making: now, by this version, with this command.
#[expect(clippy::disallowed_methods, reason = "a report says when it was made")]
pub(super) fn making(command: String) -> Making {
    Making { date: SystemTime::now(), version: env!("CARGO_PKG_VERSION").into(), command }
}

/// A bar for each task.
pub(super) struct Bars {
    progress: Progress,
    step: Option<(Step, usize)>,
}

impl Observer for Bars {
    fn begin(&mut self, task: &str, steps: usize) {
        self.step = Some((self.progress.step(task.to_string(), steps), 0));
    }

    fn advance(&mut self, steps: usize) {
        if let Some((step, done)) = &mut self.step {
            *done += steps;
            step.done(*done);
        }
    }
}
