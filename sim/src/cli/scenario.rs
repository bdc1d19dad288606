//! `sim scenario`: plays scenarios from TOML files in the virtual world.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use cpu_time::ProcessTime;
use quiver_report::{OutputArgs, complain, open, print, quoted};
use quiver_world::WorldSuite;
use quiver_world::formats::movements::{MovementFormat, Movements};
use quiver_world::formats::tlog::{self, Flight};
use quiver_world::scenario::{Exports, ReadOptions, Recording, SHIPPED, Scenario, shipped};

use crate::measure::{self, available_memory};
use crate::report::RunOutcome;
use crate::scenario::ScenarioReport;
use crate::{Result, SimError, interrupt, ranks, replay};

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
  sim scenario --from-tlog flight.tlog              the vehicles of a telemetry log: their traffic and their places
  sim scenario mine.toml --places moves.ns_movements --range 300     drones fly as ns-2 or BonnMotion says
  sim scenario mavlink --pcapng run.pcapng --tlogs logs              for Wireshark; a telemetry log of each vehicle

Exit codes:
  0  every invariant held and every expectation was met
  1  one did not, or the results could not be written
  2  no such scenario, or its file is refused (with file, line and key)
  130, 143  interrupted (Ctrl-C, SIGTERM); what came of it until then is reported";

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScenarioArgs {
    /// A scenario's file, or the name of a shipped one
    #[arg(value_name = "FILE", required_unless_present_any = ["list", "all", "from_tlog"])]
    file: Option<PathBuf>,
    /// Make a scenario of a telemetry log: its vehicles, their traffic, their places
    #[arg(long, value_name = "FLIGHT.tlog", conflicts_with_all = ["file", "list", "all", "places"])]
    from_tlog: Option<PathBuf>,
    /// Fly the drones along the movements of an ns-2 or BonnMotion file: node 0 is edge-0
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "all", "print"])]
    places: Option<PathBuf>,
    /// Metres from the middle of all places within which drones are heard
    #[arg(
        long,
        value_name = "METRES",
        default_value_t = 1000.0,
        hide_short_help = true,
        requires = "places"
    )]
    range: f64,
    /// Write where the drones were: BonnMotion for .movements and .bm, else ns-2
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "all", "print"], hide_short_help = true)]
    write_places: Option<PathBuf>,
    /// Write all messages as a capture for Wireshark: IEEE 802.15.4 frames, an interface for each station
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "all", "print"], hide_short_help = true)]
    pcapng: Option<PathBuf>,
    /// Write a telemetry log of each vehicle of a scenario with [mavlink] into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["list", "all", "print"], hide_short_help = true)]
    tlogs: Option<PathBuf>,
    /// List the scenarios that come with Quiver
    #[arg(long, conflicts_with_all = ["file", "all", "seed", "suite", "share_verifications", "csv", "json", "quiet"])]
    list: bool,
    /// Play all that come with Quiver
    #[arg(long, conflicts_with = "file")]
    all: bool,
    /// Print the scenario's text in place of playing it
    #[arg(
        long,
        conflicts_with_all = ["list", "all", "seed", "suite", "share_verifications", "csv", "json", "quiet"]
    )]
    print: bool,
    /// Seed for all random choices, in place of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// Group the cryptography computes in: ristretto255, or toy, which hides nothing and is many times faster
    #[arg(long, default_value_t)]
    suite: WorldSuite,
    /// Compute what many drones check alike (a header's signature) once per distinct input
    #[arg(long, hide_short_help = true)]
    share_verifications: bool,
    /// Print one line per re-key as CSV in place of the table
    #[arg(long, conflicts_with = "json", hide_short_help = true)]
    csv: bool,
    /// Write the run as one page that plays it: drones, keys, messages, epochs and faults over time
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "all", "print"])]
    replay: Option<PathBuf>,
    /// Open the replay in a browser when the run is over
    #[arg(long, requires = "replay", hide_short_help = true)]
    open: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The most bytes of a scenario's file.
const MAX_SCENARIO: usize = 1 << 20;

/// Lists, prints or plays scenarios.
pub(super) fn scenario(args: &ScenarioArgs) -> Result<RunOutcome> {
    ranks::together(|| list_or_play(args))
}

fn list_or_play(args: &ScenarioArgs) -> Result<RunOutcome> {
    if (args.list || args.print) && !ranks::is_first() {
        return Ok(RunOutcome::Passed);
    }
    let args = &ScenarioArgs { output: ranks::output(&args.output), ..args.clone() };
    if args.list {
        print(&list()?)?;
        return Ok(RunOutcome::Passed);
    }
    if !args.print {
        check_results(&args.output)?;
    }
    if let Some(log) = &args.from_tlog {
        let Flight { scenario, movements } = read_flight(log)?;
        if args.print {
            print(scenario.trim_end())?;
            return Ok(RunOutcome::Passed);
        }
        interrupt::listen()?;
        return play(args, &log.display().to_string(), &scenario, movements.as_ref());
    }
    let Some(file) = &args.file else {
        return play_all(args);
    };
    let (name, text) = find(file)?;
    if args.print {
        print(text.trim_end())?;
        return Ok(RunOutcome::Passed);
    }
    let movements = args.places.as_deref().map(read_movements).transpose()?;
    // Not before all files are read: one may be a pipe to which nobody writes.
    interrupt::listen()?;
    play(args, &name, &text, movements.as_ref())
}

/// Plays all scenarios that come with Quiver, until the user interrupts.
fn play_all(args: &ScenarioArgs) -> Result<RunOutcome> {
    interrupt::listen()?;
    let mut outcome = RunOutcome::Passed;
    for (name, text) in SHIPPED {
        let run = play(args, name, text, None)?;
        if outcome == RunOutcome::Passed || run == RunOutcome::Failed {
            outcome = run;
        }
        if ranks::is_interrupted() {
            break;
        }
    }
    Ok(outcome)
}

/// Bytes of a file that is given on the command line; larger ones than `most` are refused before they are read.
fn read_file(file: &Path, most: usize) -> Result<Vec<u8>> {
    let refused = |error: String| SimError::Usage(format!("cannot read {}: {error}", file.display()));
    let length = std::fs::metadata(file).map_err(|error| refused(error.to_string()))?.len();
    if length > most as u64 {
        return Err(refused(format!("{length} bytes; at most {most} are read")));
    }
    // A device or a pipe tells no length, and need not end.
    let opened = std::fs::File::open(file).map_err(|error| refused(error.to_string()))?;
    let mut bytes = Vec::new();
    opened.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    if bytes.len() > most {
        return Err(refused(format!("at most {most} bytes are read")));
    }
    Ok(bytes)
}

fn read_flight(file: &Path) -> Result<Flight> {
    let bytes = read_file(file, tlog::MAX_FILE)?;
    tlog::flight(&file.display().to_string(), &bytes).map_err(|error| SimError::Usage(error.to_string()))
}

fn read_movements(file: &Path) -> Result<Movements> {
    let bytes = read_file(file, quiver_world::formats::movements::MAX_FILE)?;
    Movements::read(&file.display().to_string(), &bytes).map_err(|error| {
        // The error repeats words of the file, which may be a key or a passphrase that was given by mistake.
        let whole = if is_private(file) {
            format!(
                "{}: these are no movements; why is not told, because the file is for its owner alone and may be a secret \
                 (chmod 644 it to be told, if it is none)",
                file.display()
            )
        } else {
            error.to_string()
        };
        SimError::Usage(whole)
    })
}

/// Returns true if nobody but its owner can read the file.
#[cfg(unix)]
fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(file).is_ok_and(|data| data.mode() & 0o077 == 0)
}

/// Returns false: files have no mode here.
#[cfg(not(unix))]
const fn is_private(_: &Path) -> bool {
    false
}

/// Refuses files of a run that cannot be written, or that the scenario has nothing for, before time goes into it.
fn check_exports(args: &ScenarioArgs, scenario: &Scenario) -> Result<()> {
    if args.write_places.is_some() && scenario.places.is_none() {
        let what =
            "--write-places: the scenario has no places; [mobility], --places and --from-tlog give some";
        return Err(SimError::Usage(what.into()));
    }
    if args.tlogs.is_some() && scenario.setup.mavlink.is_none() {
        return Err(SimError::Usage("--tlogs: the scenario has no table [mavlink]".into()));
    }
    if let Some(folder) = &args.tlogs {
        std::fs::create_dir_all(folder)
            .map_err(|error| SimError::Usage(format!("cannot make {}: {error}", folder.display())))?;
    }
    let files = [("--write-places", &args.write_places), ("--pcapng", &args.pcapng)];
    files
        .into_iter()
        .filter_map(|(flag, file)| Some((flag, file.as_ref()?)))
        .try_for_each(|(flag, file)| probe(flag, file))
}

/// Writes the files of a run in formats of other programs.
fn write_exports(args: &ScenarioArgs, scenario: &Scenario, exports: &Exports) -> Result<()> {
    let write = |path: &Path, bytes: &[u8]| -> Result<()> {
        std::fs::write(path, bytes)
            .map_err(|source| quiver_report::ReportError::File { path: path.to_path_buf(), source }.into())
    };
    if let (Some(file), Some(capture)) = (&args.pcapng, &exports.capture) {
        write(file, capture)?;
    }
    if let Some(folder) = &args.tlogs {
        for (vehicle, log) in &exports.logs {
            write(&folder.join(format!("{vehicle}.tlog")), log)?;
        }
    }
    if let (Some(file), Some(places)) = (&args.write_places, &scenario.places)
        && let Some(movements) = Movements::of_places(places)
    {
        let format = MovementFormat::of_name(&file.display().to_string());
        write(file, movements.write(format).as_bytes())?;
    }
    exports.left_out.iter().for_each(|left_out| complain(left_out));
    Ok(())
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
    let bytes = read_file(file, MAX_SCENARIO).map_err(|error| {
        SimError::Usage(format!("{error}; `sim scenario --list` names the scenarios that come with Quiver"))
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        SimError::Usage(format!("{name}: byte {offset}: is no text"))
    })?;
    Ok((name, text))
}

fn read(name: &str, text: &str, seed: Option<u64>) -> Result<Scenario> {
    let reading = ReadOptions { memory: available_memory(), seed };
    Scenario::parse(name, text, reading).map_err(|error| SimError::Usage(error.to_string()))
}

fn play(args: &ScenarioArgs, name: &str, text: &str, movements: Option<&Movements>) -> Result<RunOutcome> {
    let mut scenario = read(name, text, args.seed)?;
    if let Some(movements) = movements {
        let flown = scenario.fly(movements, args.range);
        flown.map_err(|error| SimError::Usage(format!("{name}: {error}")))?;
    }
    check_exports(args, &scenario)?;
    scenario.setup.share_verifications = args.share_verifications;
    scenario.setup.ranks = ranks::current().cloned();
    if ranks::count() > 1 && (args.replay.is_some() || args.pcapng.is_some() || args.tlogs.is_some()) {
        let what = "--replay, --pcapng and --tlogs are for a scenario in one process";
        return Err(SimError::Usage(what.into()));
    }
    if let Some(file) = &args.replay {
        replay::check(scenario.edges())?;
        probe("--replay", file)?;
    }
    let (started, cpu) = (measure::wall_clock(), ProcessTime::try_now().ok());
    let recording = Recording {
        trace: args.replay.is_some(),
        capture: args.pcapng.is_some(),
        telemetry: args.tlogs.is_some(),
    };
    let played = scenario.play_until(args.suite, recording, interrupt::is_requested);
    let (run, trace, exports) = played.map_err(|error| match SimError::from(error) {
        SimError::Usage(text) => SimError::Usage(format!("{name}: {text}")),
        lost => lost,
    })?;
    let cpu = cpu.and_then(|cpu| cpu.try_elapsed().ok()).unwrap_or_default();
    let suite = args.suite.name();
    let sharing = if args.share_verifications { " --share-verifications" } else { "" };
    let flown = args.places.as_ref().map(|file| format!(" --places {} --range {}", quoted(file), args.range));
    let file = quoted(name);
    let source = if args.from_tlog.is_some() { format!("--from-tlog {file}") } else { file };
    let again = format!(
        "sim scenario {source}{} --seed {} --suite {suite}{sharing}",
        flown.unwrap_or_default(),
        scenario.setup.seed
    );
    let costs = ranks::costs();
    if !ranks::is_first() {
        scenario.setup.ranks = None;
        let report = ScenarioReport { scenario, run, suite, started, cpu, command: String::new(), again };
        return Ok(report.outcome());
    }
    let exported = write_exports(args, &scenario, &exports);
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
    if report.outcome() == RunOutcome::Failed {
        complain(&report.failures());
    }
    if !args.output.json && !args.csv && !args.output.quiet {
        costs.iter().try_for_each(|cost| print(cost))?;
    }
    written.and(presented).and(exported)?;
    if let Some(file) = args.replay.as_ref().filter(|_| args.open) {
        open(file)?;
    }
    Ok(report.outcome())
}

/// Writes and prints the report. A report that cannot be written costs no figure: it is printed all the same.
fn present(args: &ScenarioArgs, report: &ScenarioReport, replayed: bool) -> Result<()> {
    let folder = args.output.folder().map(|results| report.write_under(results)).transpose();
    if args.csv {
        let printed = print(report.rekeys_csv().trim_end());
        return folder.and(Ok(printed?));
    }
    let replay = args.replay.as_ref().filter(|_| replayed);
    let replay = replay.map(|file| format!("\nReplay: {}", file.display()));
    let written = folder.as_ref().ok().and_then(Option::as_ref);
    let written = written.map(|folder| format!("\nWritten to {}", folder.display()));
    let written = written.unwrap_or_default() + &replay.unwrap_or_default();
    let printed = args.output.print(|| report.json(), || report.table() + &written);
    folder.and(Ok(printed?))
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

    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        args: ScenarioArgs,
    }

    fn parse(words: &[&str]) -> std::result::Result<ScenarioArgs, clap::Error> {
        use clap::Parser as _;
        Only::try_parse_from([&["scenario", "--suite", "toy", "--quiet"][..], words].concat())
            .map(|only| only.args)
    }

    #[test]
    fn flights_come_in_and_go_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut log = Vec::new();
        for second in 0..20_u64 {
            for system in [1, 2] {
                let mut frame = vec![0xFE, 28, 0, system, 1, 33];
                let mut payload = [0; 28];
                payload[4..8].copy_from_slice(&471_000_000_i32.to_le_bytes());
                let east = 85_000_000 + i32::try_from(second).unwrap() * 1000;
                payload[8..12].copy_from_slice(&east.to_le_bytes());
                frame.extend(payload);
                frame.extend([0, 0]);
                tlog::append(&mut log, 1_700_000_000_000_000 + second * 1_000_000, &frame);
            }
        }
        std::fs::write(path("in.tlog"), &log).unwrap();
        let (log, places, capture, logs) =
            (path("in.tlog"), path("out.bm"), path("run.pcapng"), path("logs"));
        let results = path("results");
        let words = [
            "--from-tlog",
            &log,
            "--write-places",
            &places,
            "--pcapng",
            &capture,
            "--tlogs",
            &logs,
            "--results",
            &results,
        ];
        assert_eq!(scenario(&parse(&words).unwrap()).unwrap(), RunOutcome::Passed);
        let movements = read_movements(Path::new(&places)).unwrap();
        assert_eq!(movements.paths().len(), 2);
        assert!(std::fs::read(&capture).unwrap().starts_with(&0x0A0D_0D0A_u32.to_le_bytes()));
        for vehicle in ["edge-0", "edge-1"] {
            let log = std::fs::read(folder.path().join(format!("logs/{vehicle}.tlog"))).unwrap();
            assert!(!tlog::read(vehicle, &log).unwrap().is_empty());
        }
        // And what came out of one run goes into another.
        let words = ["flapping_drone", "--places", &places, "--range", "5000", "--results", &results];
        assert_eq!(scenario(&parse(&words).unwrap()).unwrap(), RunOutcome::Passed);
    }

    #[test]
    fn exports_without_a_source_and_wrong_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("wrong.tlog").display().to_string();
        std::fs::write(&wrong, [0; 20]).unwrap();
        // Files with a hole: their length alone is large.
        let huge = |name: &str, length: usize| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(length as u64).unwrap();
            path.display().to_string()
        };
        let log = huge("huge.tlog", tlog::MAX_FILE + 1);
        let moves = huge("huge.movements", quiver_world::formats::movements::MAX_FILE + 1);
        let scenario_file = huge("huge.toml", MAX_SCENARIO + 1);
        let no_text = folder.path().join("no_text.toml").display().to_string();
        std::fs::write(&no_text, b"title = \"\xFF").unwrap();
        for (words, expected) in [
            (vec!["--from-tlog", &log], "huge.tlog: 1073741825 bytes; at most 1073741824 are read"),
            (
                vec!["flapping_drone", "--places", &moves],
                "huge.movements: 268435457 bytes; at most 268435456",
            ),
            (
                vec![&scenario_file],
                "huge.toml: 1048577 bytes; at most 1048576 are read; `sim scenario --list`",
            ),
            (vec![&no_text], "no_text.toml: byte 9: is no text"),
            #[cfg(unix)]
            (vec!["/dev/zero"], "cannot read /dev/zero: at most 1048576 bytes are read"),
            (vec!["flapping_drone", "--write-places", "x"], "no places"),
            (vec!["flapping_drone", "--tlogs", "x"], "no table [mavlink]"),
            (vec!["flapping_drone", "--places", "no-such-file"], "cannot read no-such-file"),
            (vec!["flapping_drone", "--places", &wrong], "is no number"),
            (vec!["--from-tlog", &wrong], "byte 8: no MAVLink frame"),
        ] {
            let results = folder.path().join("results").display().to_string();
            let words = [&words[..], &["--results", &results]].concat();
            let refusal = scenario(&parse(&words).unwrap()).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{words:?}: {refusal}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let secret = folder.path().join("passphrase").display().to_string();
            std::fs::write(&secret, "c0ffee").unwrap();
            std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
            let words = parse(&["flapping_drone", "--places", &secret]).unwrap();
            let refusal = scenario(&words).unwrap_err().to_string();
            assert!(refusal.contains("these are no movements") && !refusal.contains("c0ffee"), "{refusal}");
        }
        assert!(parse(&["--print"]).is_err());
        assert!(parse(&["flapping_drone", "--from-tlog", "x"]).is_err());
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
