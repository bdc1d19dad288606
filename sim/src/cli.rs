//! The command line of `sim`. Each command has a file of its own.

mod check;
mod flood;
mod run;
mod scale;
mod scenario;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quiver_report::{OutputArgs, complain, open, parse};

use self::check::CheckArgs;
use self::flood::FloodArgs;
use self::run::RunArgs;
use self::scale::ScaleArgs;
use self::scenario::ScenarioArgs;
use crate::report::{PAGE, RunOutcome};
use crate::{Result, SimError, interrupt};

const EXAMPLES: &str = "\
Examples:
  sim                                  1,000 drones over the memory transport
  sim -n 2000 --transport tcp          2,000 drones over TCP on loopback
  sim run -n 100000 --world virtual    very many drones in virtual time
  sim scale -n 100,300,1000            how the costs of re-keys grow: table, CSV, SVG, report
  sim check --seeds 1000               random faults, every invariant after every step
  sim scenario flapping_drone          a world with faults, its airtime and energy
  sim run -n 10000 --messages 2        a large swarm, few messages
  sim run -n 100 --expiry 20s          let the key really expire
  sim run -n 500 --json > run.json     for scripts
  sim run -n 2000 --world virtual --radio 802.15.4     one slow channel for all: airtime, frames, energy
  sim run -n 20 --world virtual --radio lora-sf7 --depot wifi   enrol and join at a depot, re-key over LoRa
  sim run --kgcs 5 --threshold 3 --orders     any three of five KGCs issue keys, and release an order's
  mpirun -n 5 sim run -n 5000 --transport tcp   four ranks host the drones, the first has leader and checks (--features mpi)
  mpirun -n 4 sim run --world virtual -n 100000   one world on four ranks, one digest (--features mpi; docs/simulator.md)
  sim flood                            strangers flood a leader of 1,000 drones: how long its re-keys take
  sim scenario --from-tlog f.tlog      a flight's vehicles, traffic and places; `sim scenario --help` has all formats
  cargo lab compare --radio 802.15.4   other group-keying schemes over the same radio (docs/contenders.md)
  RUST_LOG=quiver_net=debug sim -n 3   with logs, on standard error

Exit codes:
  0  every invariant held at every drone
  1  an invariant failed (the drones are listed), or the run could not be carried out
  2  wrong usage
  130, 143  interrupted (Ctrl-C, SIGTERM); what was finished is reported";

#[derive(Debug, Parser)]
#[command(
    name = "sim",
    version,
    about = "Simulates thousands of Quiver drones with the real protocol code",
    long_about = "Simulates thousands of Quiver drones with the real protocol code.\n\nWithout a command it does what `sim run` does.",
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Enrol, form a group, re-key, leave, join, send messages, restart the leader. Checks every key at every
    /// drone
    #[command(after_help = EXAMPLES)]
    Run(RunArgs),
    /// Commands of the lab
    #[command(hide = true, aliases = ["compare", "bench"])]
    Reproduce {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run random faults in the virtual world. Checks all invariants after every step, and shrinks failing seeds
    Check(CheckArgs),
    /// Run a scenario in the virtual world: faults, radio, energy; check all invariants
    Scenario(ScenarioArgs),
    /// Measure re-keys of groups of several sizes, and fit their growth
    Scale(ScaleArgs),
    /// Flood a leader over loopback. Measures its members' re-keys without a flood and under each
    Flood(FloodArgs),
}

impl Cli {
    /// Command, which is `run` if none is given.
    fn command(self) -> Command {
        self.command.unwrap_or(Command::Run(self.run))
    }
}

impl Command {
    fn execute(&self) -> Result<RunOutcome> {
        match self {
            Self::Run(args) => run::run(args),
            Self::Reproduce { .. } => Err(SimError::Usage(
                "reproduce, compare and bench are commands of the lab: `cargo lab reproduce ainq`, `cargo lab --help`".into(),
            )),
            Self::Check(args) => check::check(args),
            Self::Scenario(args) => scenario::scenario(args),
            Self::Scale(args) => scale::scale(args),
            Self::Flood(args) => flood::flood(args),
        }
    }
}

/// Executes the command line.
pub fn main() -> ExitCode {
    exit_code(parse::<Cli>().command().execute())
}

/// Refuses a folder to which results cannot be written, before time goes into a run.
fn check_results(output: &OutputArgs) -> Result<()> {
    output.check_folder().map_err(SimError::Usage)
}

/// Prints results as JSON or as text that names the page in the folder, and opens the page if `open_page`. If the
/// folder could not be written, that comes last: the results are not lost.
fn show(
    output: &OutputArgs,
    folder: Result<Option<PathBuf>>,
    open_page: bool,
    json: impl FnOnce() -> String,
    text: impl FnOnce() -> String,
) -> Result<()> {
    let page = folder.as_ref().ok().cloned().flatten().map(|folder| folder.join(PAGE));
    let named = page.as_ref().map_or_else(String::new, |page| format!("\nReport: {}", page.display()));
    let printed = output.print(json, || text() + &named);
    folder?;
    printed?;
    page.filter(|_| open_page).map_or(Ok(()), |page| Ok(open(&page)?))
}

/// Refuses a file that cannot be written, before time goes into a run.
fn probe(flag: &str, file: &Path) -> Result<()> {
    let new = !file.exists();
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(file).map(drop);
    let probed = opened.and_then(|()| if new { fs::remove_file(file) } else { Ok(()) });
    probed.map_err(|error| SimError::Usage(format!("{flag}: cannot write {}: {error}", file.display())))
}

/// 0 if everything held, 1 if something did not or could not be carried out, 2 for wrong usage, 128 and the signal's number
/// for an interrupted run.
fn exit_code(result: Result<RunOutcome>) -> ExitCode {
    match result {
        Ok(RunOutcome::Passed) => ExitCode::SUCCESS,
        Ok(RunOutcome::Failed) => ExitCode::from(1),
        Ok(RunOutcome::Interrupted) => ExitCode::from(interrupt::exit_code()),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(match error {
                SimError::Usage(_) => 2,
                SimError::Interrupted => interrupt::exit_code(),
                _ => 1,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of `run`, however it was asked for.
    pub(super) fn parse_run(words: &[&str]) -> RunArgs {
        match Cli::try_parse_from(std::iter::once(&"sim").chain(words)).unwrap().command() {
            Command::Run(args) => args,
            other => panic!("{words:?} is {other:?}"),
        }
    }

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
