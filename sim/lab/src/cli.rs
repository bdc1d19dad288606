//! The command line of `lab`. Each command has a file of its own.

mod compare;
mod reproduce;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Parser, Subcommand};
use quiver_report::{Making, OutputArgs, Report, complain, parse};

use self::compare::CompareArgs;
use self::reproduce::ReproduceArgs;
use crate::board::command::{BenchArgs, bench};
use crate::heap::Heap;
use crate::{LabError, Result};

const EXAMPLES: &str = "\
Examples:
  lab reproduce ainq                   the published evaluation of AinQ beside ours
  lab reproduce all --quick            every evaluation, at small sizes
  lab compare                          the same membership events through MLS
  lab bench aes-cbc 1000 4             the boards' bench shell, natively

Exit codes:
  0  everything was measured
  1  both sides did not hold the same keys, or the results could not be written
  2  wrong usage, such as a folder for results that cannot be written";

#[derive(Debug, Parser)]
#[command(
    name = "lab",
    version,
    about = "Reproduces published evaluations and compares Quiver with other systems",
    after_help = EXAMPLES
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure published evaluations again: tables, plots, one HTML page
    Reproduce(ReproduceArgs),
    /// Play the same membership events through MLS and through Quiver: CPU time and bytes beside each other
    #[command(long_about = compare::ABOUT)]
    Compare(CompareArgs),
    /// Run the boards' bench shell natively: `lab bench aes-cbc 1000 4`; `lab bench help` prints the usage
    Bench(BenchArgs),
}

impl Command {
    fn execute(&self, heap: &dyn Heap) -> Result<()> {
        match self {
            Self::Reproduce(args) => reproduce::reproduce(args, heap),
            Self::Compare(args) => compare::compare(args),
            Self::Bench(args) => bench(args),
        }
    }
}

/// Executes the command line: returns 0 for success, 1 for an error, 2 for wrong usage. `heap` is the
/// process's allocator.
pub fn main(heap: &dyn Heap) -> ExitCode {
    match parse::<Cli>().command.execute(heap) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(if matches!(error, LabError::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// Reports that were written, each as soon as it was finished: Ctrl-C loses none of them.
struct Presentation<'a> {
    output: &'a OutputArgs,
    texts: Vec<String>,
    /// Folder of a report that is not finished yet.
    unfinished: Option<PathBuf>,
    written: quiver_report::Result<()>,
}

impl<'a> Presentation<'a> {
    const fn new(output: &'a OutputArgs) -> Self {
        Self { output, texts: Vec::new(), unfinished: None, written: Ok(()) }
    }

    /// Writes what of a report is finished, if reports are written; the whole takes its place.
    fn keep(&mut self, report: &Report) {
        let slug = format!("{}-unfinished", report.slug);
        let lead =
            "UNFINISHED: written while the command ran, or left by one that was interrupted.".to_owned();
        let lead = std::iter::once(lead).chain(report.lead.iter().cloned()).collect();
        self.unfinished = self.put(&Report { slug, lead, passed: None, ..report.clone() });
    }

    /// Writes a report, if reports are written.
    fn write(&mut self, report: &Report) {
        let folder = self.put(report);
        let read = folder.map(|folder| format!("\nRead {}", folder.join("report.html").display()));
        self.texts.push(report.terminal() + &read.unwrap_or_default());
    }

    /// Writes into the folder of the unfinished report, or into a new one.
    fn put(&mut self, report: &Report) -> Option<PathBuf> {
        let results = self.output.folder()?;
        let written = match self.unfinished.take() {
            Some(folder) => report.write_over(results, &folder),
            None => report.write_under(results),
        };
        written.map_err(|error| self.written = Err(error)).ok()
    }

    /// Prints all that were written, or all reports as JSON: several are one array. Reports that cannot be
    /// written are printed all the same.
    fn print(self, reports: &[Report]) -> Result<()> {
        let json = || match reports {
            [report] => report.json(),
            reports => format!("[\n{}\n]", reports.iter().map(Report::json).collect::<Vec<_>>().join(",\n")),
        };
        let printed = self.output.print(json, || self.texts.join("\n"));
        self.written?;
        Ok(printed?)
    }
}

/// Origin of a report: now, by this version, with this command of the lab.
#[expect(clippy::disallowed_methods, reason = "a report says when it was made")]
fn making(command: &str) -> Making {
    let command = format!("cargo lab {command}");
    Making { date: SystemTime::now(), version: env!("CARGO_PKG_VERSION").into(), command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_help_of_each_command_is_one_screen() {
        for (command, help) in
            quiver_report::short_helps(&quiver_report::complete(<Cli as clap::CommandFactory>::command()))
        {
            assert!(help.lines().count() <= quiver_report::SCREEN, "{command}: {help}");
        }
    }

    #[test]
    fn command_line_definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
