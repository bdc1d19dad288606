//! `sim scenario`: plays scenarios from TOML files in the virtual world.

use std::path::{Path, PathBuf};

use clap::Args;
use cpu_time::ProcessTime;
use quiver_report::{OutputArgs, complain, open, print};
use quiver_world::WorldSuite;
use quiver_world::scenario::{Reading, SHIPPED, Scenario, shipped};

use crate::measure::{self, available_memory};
use crate::report::Outcome;
use crate::scenario::ScenarioReport;
use crate::{Result, SimError, replay};

use super::{check_results, probe};

pub(super) const EXAMPLES: &str = "\
Examples:
  sim scenario --list                               the scenarios that come with Quiver
  sim scenario flapping_drone                       one of them
  sim scenario flapping_drone --print > mine.toml   its text, to change and play
  sim scenario mine.toml --seed 7                   a file of your own, with another seed
  sim scenario --all --suite toy                    all of them, over a group that hides nothing and is fast
  sim scenario leader_lost_for_good --replay page.html --open     see it: a page that plays the run
  sim scenario mass_leave --json                    figures for scripts on standard output

Exit codes:
  0  every invariant held and every expectation was met
  1  one did not, or the results could not be written
  2  no such scenario, or its file is refused (with file, line and key)";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScenarioArgs {
    /// A scenario's file, or the name of a shipped one
    #[arg(value_name = "FILE", required_unless_present_any = ["list", "all"])]
    file: Option<PathBuf>,
    /// List the scenarios that come with Quiver
    #[arg(long, conflicts_with_all = ["file", "all", "seed", "suite", "share_verifications", "csv", "json", "quiet"])]
    list: bool,
    /// Play all that come with Quiver
    #[arg(long, conflicts_with = "file")]
    all: bool,
    /// Print the scenario's text in place of playing it
    #[arg(
        long,
        requires = "file",
        conflicts_with_all = ["seed", "suite", "share_verifications", "csv", "json", "quiet"]
    )]
    print: bool,
    /// Seed for all random choices, in place of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// Group the cryptography computes in: ristretto255, or toy, which hides nothing and is many times faster
    #[arg(long, default_value_t)]
    suite: WorldSuite,
    /// Compute what many drones check alike (a header's signature) once per distinct input
    #[arg(long)]
    share_verifications: bool,
    /// Print one line per re-key as CSV in place of the table
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the run as one page that plays it: drones, keys, messages, epochs and faults over time
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "all", "print"])]
    replay: Option<PathBuf>,
    /// Open the replay in a browser when the run is over
    #[arg(long, requires = "replay")]
    open: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Lists, prints or plays scenarios.
pub(super) fn scenario(args: &ScenarioArgs) -> Result<Outcome> {
    if args.list {
        print(&list()?);
        return Ok(Outcome::Passed);
    }
    if !args.print {
        check_results(&args.output)?;
    }
    let Some(file) = &args.file else {
        return SHIPPED.iter().try_fold(Outcome::Passed, |outcome, (name, text)| {
            let run = play(args, name, text)?;
            Ok(if run == Outcome::Failed { run } else { outcome })
        });
    };
    let (name, text) = find(file)?;
    if args.print {
        print(text.trim_end());
        return Ok(Outcome::Passed);
    }
    play(args, &name, &text)
}

/// Name and title of every shipped scenario.
fn list() -> Result<String> {
    let width = SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, text): &(&str, &str)| Ok(format!("{name:width$}  {}", read(name, text, None)?.title));
    Ok(SHIPPED.iter().map(line).collect::<Result<Vec<_>>>()?.join("\n"))
}

/// Name and text of a scenario: of a file, or of the shipped one of this name.
fn find(file: &Path) -> Result<(String, String)> {
    let name = file.display().to_string();
    if let Some(text) = shipped(&name).filter(|_| !file.exists()) {
        return Ok((name, text.to_owned()));
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(SimError::Usage(format!(
            "cannot read {name}: {error}; `sim scenario --list` names the scenarios that come with Quiver"
        ))),
    }
}

fn read(name: &str, text: &str, seed: Option<u64>) -> Result<Scenario> {
    let reading = Reading { memory: available_memory(), seed };
    Scenario::parse(name, text, reading).map_err(|error| SimError::Usage(error.to_string()))
}

fn play(args: &ScenarioArgs, name: &str, text: &str) -> Result<Outcome> {
    let mut scenario = read(name, text, args.seed)?;
    scenario.setup.share_verifications = args.share_verifications;
    if let Some(file) = &args.replay {
        replay::check(scenario.edges())?;
        probe(file)?;
    }
    let (started, cpu) = (measure::wall_clock(), ProcessTime::try_now().ok());
    let run = match args.replay {
        None => scenario.run(args.suite).map(|run| (run, None)),
        Some(_) => scenario.record(args.suite).map(|(run, trace)| (run, Some(trace))),
    };
    let (run, trace) = run.map_err(|error| SimError::Usage(format!("{name}: {error}")))?;
    let cpu = cpu.and_then(|cpu| cpu.try_elapsed().ok()).unwrap_or_default();
    let suite = args.suite.name();
    let sharing = if args.share_verifications { " --share-verifications" } else { "" };
    let again = format!("sim scenario {name} --seed {} --suite {suite}{sharing}", scenario.setup.seed);
    let command = measure::command_line();
    let report = ScenarioReport { scenario, run, suite, started, cpu, command, again };
    let written = match args.replay.as_deref().zip(trace) {
        None => Ok(()),
        Some((file, trace)) => {
            let (title, about) = (&report.scenario.title, &report.scenario.about);
            replay::write(file, title, about, &report.again, &trace)
        }
    };
    let presented = present(args, &report, written.is_ok());
    if report.outcome() == Outcome::Failed {
        complain(&report.failures());
    }
    written.and(presented)?;
    if let Some(file) = args.replay.as_ref().filter(|_| args.open) {
        open(file)?;
    }
    Ok(report.outcome())
}

/// Writes and prints the report. What cannot be written costs no figure: it is printed all the same.
fn present(args: &ScenarioArgs, report: &ScenarioReport, replayed: bool) -> Result<()> {
    let folder = args.output.folder().map(|results| report.write_under(results)).transpose();
    if args.csv {
        print(report.rekeys_csv().trim_end());
        return folder.map(drop);
    }
    let replay = args.replay.as_ref().filter(|_| replayed);
    let replay = replay.map(|file| format!("\nReplay: {}", file.display()));
    let written = folder.as_ref().ok().and_then(Option::as_ref);
    let written = written.map(|folder| format!("\nWritten to {}", folder.display()));
    let written = written.unwrap_or_default() + &replay.unwrap_or_default();
    args.output.print(|| report.json(), || report.table() + &written);
    folder.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_is_listed_with_its_title() {
        let list = list().unwrap();
        assert_eq!(list.lines().count(), SHIPPED.len());
        assert!(list.contains("flapping_drone") && list.contains("A flapping drone"), "{list}");
    }

    #[test]
    fn missing_files_are_refused_with_a_way_on() {
        let refusal = find(Path::new("no_such_scenario")).unwrap_err();
        assert!(matches!(refusal, SimError::Usage(_)));
        assert!(refusal.to_string().contains("--list"), "{refusal}");
    }

    #[test]
    fn faulty_files_are_refused_with_file_line_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(
            &file,
            "title = \"x\"\nabout = \"\"\nduration = \"1m\"\n[fleet]\nmembers = 3\nwings = 2\n",
        )
        .unwrap();
        let (name, text) = find(&file).unwrap();
        let refusal = read(&name, &text, None).unwrap_err().to_string();
        assert!(refusal.contains("mine.toml:6:1: fleet.wings: unknown field"), "{refusal}");
    }

    #[test]
    fn fleets_too_large_for_this_machine_are_refused() {
        let members =
            "title = \"x\"\nabout = \"\"\nduration = \"1m\"\n[fleet]\nmembers = 1048576\nleaders = 16\n";
        match available_memory() {
            Some(memory) if memory < 1_048_576 * (22 << 10) => {
                let refusal = read("big.toml", members, None).unwrap_err().to_string();
                assert!(refusal.starts_with("big.toml:5:11: fleet.members: "), "{refusal}");
            }
            _ => assert_eq!(read("big.toml", members, None).unwrap().setup.members, 1_048_576),
        }
    }
}
