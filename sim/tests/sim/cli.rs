//! The binary as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(words).env_remove("RUST_LOG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Message for a refused command line.
fn refusal(words: &[&str]) -> String {
    let output = sim(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn no_drones_is_a_clear_error() {
    assert!(refusal(&["-n", "0"]).contains("give at least -n 1"));
    assert!(refusal(&["run", "--drones", "0"]).contains("give at least -n 1"));
}

#[test]
fn negative_value_is_named_with_its_option() {
    for (words, named) in [
        (&["-n", "-5"][..], "invalid value '-5' for '--drones <N>': -5 is not in"),
        (&["run", "-n", "-5"], "invalid value '-5' for '--drones <N>'"),
        (&["scale", "-n", "-5"], "'-5'"),
        (&["--leave-percent", "-5"], "-5 % of the drones cannot leave"),
        (&["--expiry", "-5m"], "invalid value '-5m' for '--expiry <DURATION>': it is negative"),
        (&["--timeout", "10"], "it has no unit; write 10s or 10m"),
        (&["check", "--seeds", "-1"], "invalid value '-1' for '--seeds <COUNT>'"),
    ] {
        let said = refusal(words);
        assert!(said.contains(named) && !said.contains("unexpected argument"), "{words:?}: {said}");
    }
}

#[test]
fn too_many_drones_is_a_clear_error() {
    assert!(refusal(&["-n", "1000000"]).contains("at most 100000"));
    assert!(refusal(&["-n", "30000", "--transport", "tcp"]).contains("--transport memory"));
}

#[test]
fn nonsense_is_a_usage_error() {
    for words in [
        &["-n", "many"][..],
        &["--transport", "smoke"],
        &["--suite", "rot13"],
        &["--world", "virtual", "-n", "0"],
        &["--strategy", "forest"],
        &["--strict-paper"],
        &["fly"],
        &["-n", "3", "run"],
        &["scale", "-n", "0,x"],
        &["scale", "-n", "10,100001"],
        &["scale", "--strategy", "flat,forest"],
        &["scale", "-n", "10,20,10"],
        &["scale", "--repetitions", "0"],
        &["scale", "--radio", "ble"],
        &["scale", "--world", "virtual", "--transport", "memory"],
        &["scale", "--world", "virtual", "--relays", "2"],
        &["run", "--world", "virtual", "--transport", "tcp"],
        &["run", "--deputies", "1", "--restart-leader"],
        &["check", "--seeds", "4000000000000000000"],
        &["check", "--seeds", "2", "--first", "18446744073709551614"],
        &["scenario", "--list", "--seed", "7"],
        &["scenario", "mass_join", "--print", "--json"],
        &["run", "--open", "--no-results"],
    ] {
        assert!(refusal(words).contains("error"), "{words:?}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    for words in [&["--help"][..], &["run", "--help"]] {
        let help = text(&sim(words).stdout);
        assert!(help.contains("sim -n 2000 --transport tcp") && help.contains("Exit codes"), "{help}");
    }
    for command in ["run", "scale", "flood"] {
        let help = text(&sim(&[command, "--help"]).stdout);
        assert!(help.contains("Seed for all random choices"), "{help}");
    }
}

#[test]
fn short_help_is_a_screen_that_teaches_and_leads_to_the_whole() {
    let short = text(&sim(&["-h"]).stdout);
    assert!(short.lines().count() <= 40, "{short}");
    for part in ["sim scenario flapping_drone", "--drones", "see more with '--help'", "check "] {
        assert!(short.contains(part), "{part}: {short}");
    }
    let whole = text(&sim(&["--help"]).stdout);
    for part in ["--share-verifications", "Exit codes", "sim scenario flapping_drone"] {
        assert!(whole.contains(part), "{part}: {whole}");
    }
}

#[test]
fn too_few_file_descriptors_is_a_clear_error_up_front() {
    let script =
        format!("ulimit -n 256 && exec {} -n 9000 --transport tcp --no-results", env!("CARGO_BIN_EXE_sim"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = text(&output.stderr);
    assert!(complaint.contains("256") && complaint.contains("ulimit -n"), "{complaint}");
}

#[test]
fn run_prints_a_table_and_writes_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let output = sim(&["-n", "5", "--messages", "2", "--results", results.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    for word in ["form group", "│ re-key ", "join", "restart leader", "checks passed", "peak memory"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    // Not a terminal: no bars, and no logs unless asked for.
    assert_eq!(text(&output.stderr), "");
    let run = results.join("latest").canonicalize().unwrap();
    assert!(table.contains(run.file_name().unwrap().to_str().unwrap()), "{table}");
    let operations = read(&run.join("operations.csv"));
    assert!(operations.lines().count() >= 9, "{operations}");
    assert!(read(&run.join("latencies.csv")).contains("form group,drone-00004,"));
    let summary: Value = serde_json::from_str(&read(&run.join("summary.json"))).unwrap();
    assert_eq!(summary["passed"], true);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn report_of_a_run_is_one_page_that_fetches_nothing() {
    let results = tempfile::tempdir().unwrap();
    let output = sim(&["-n", "5", "--messages", "2", "--results", results.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    let path = table.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
    let page = read(Path::new(path));
    for shown in ["Time line", "Latencies", "Costs", "Memory", "form group", "sim -n 5 --messages 2"] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("<script") && !page.contains("src="));
    assert!(read(&Path::new(path).with_file_name("memory.csv")).lines().count() > 2);
}

#[test]
fn open_starts_the_browser_with_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let (browser, opened) = (folder.path().join("xdg-open"), folder.path().join("opened"));
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display())).unwrap();
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["-n", "2", "--messages", "0", "--no-restart-leader", "--open", "--results"])
        .arg(folder.path().join("results"))
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // The browser is a process of its own.
    let page = (0..2_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::read_to_string(&opened).ok().filter(|page| page.ends_with('\n'))
    });
    assert!(read(Path::new(page.unwrap().trim())).contains("Time line"));
}

#[test]
fn scale_fits_the_growth_of_groups_of_several_sizes() {
    let results = tempfile::tempdir().unwrap();
    let output = sim(&["scale", "-n", "3,6,12", "--results", results.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("Growth: a·nᵇ") && table.contains("exponent"), "{table}");
    let path = table.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
    let figures = read(&Path::new(path).with_file_name("figures.csv"));
    assert_eq!(figures.lines().count(), 1 + 6, "{figures}");
    for file in ["fits.csv", "rekey-cpu-seconds.svg", "report.json", "report.html"] {
        assert!(!read(&Path::new(path).with_file_name(file)).is_empty(), "{file}");
    }
}

#[test]
fn scale_repeats_runs_of_the_virtual_world_over_a_radio_and_shows_their_spread() {
    let results = tempfile::tempdir().unwrap();
    let folder = results.path().to_str().unwrap();
    let words =
        "scale -n 10,20,40 --world virtual --toy --radio 802.15.4 --strategy tree --repetitions 3 --results";
    let output = sim(&words.split(' ').chain([folder]).collect::<Vec<_>>());
    assert!(output.status.success(), "{output:?}");
    let latest = |name: &str| read(&results.path().join("latest").join(name));
    let sizes = latest("sizes.csv");
    let row = sizes.lines().find(|line| line.starts_with("re-key: bytes on air,tree,802.15.4,40,3,"));
    assert!(row.is_some(), "{sizes}");
    assert_eq!(latest("figures.csv").lines().count(), 1 + 9);
    for file in ["times.csv", "fits.csv", "rekey-air-bytes.svg", "rekey-airtime-seconds.svg"] {
        assert!(!latest(file).is_empty(), "{file}");
    }
    let report: Value = serde_json::from_str(&latest("report.json")).unwrap();
    let commit = report["machine"]["commit"].as_str().unwrap();
    assert!(commit == "unknown" || commit.len() >= 40, "{commit}");
    assert!(latest("report.html").contains(commit));
}

/// Runs `sim` with the words, interrupts it when it says `sign` on standard error, and gives what came of it.
fn interrupted(words: &[&str], sign: &str) -> Output {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut running = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(words)
        .env_remove("RUST_LOG")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(running.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(sign) {
        assert!(log.read_line(&mut said).unwrap() > 0, "it never said {sign}: {said}");
    }
    let interrupt = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let rest = std::thread::spawn(move || {
        let mut rest = Vec::new();
        log.read_to_end(&mut rest).map(|_| rest)
    });
    let mut output = running.wait_with_output().unwrap();
    output.stderr = rest.join().unwrap().unwrap();
    output
}

#[test]
fn interrupted_flood_prints_the_lines_that_were_finished() {
    // Long enough that it is not over before it is interrupted.
    let words = "flood -n 6 --only gossip --attackers 1 --rekeys 2 --pause 4s";
    let output = interrupted(&words.split(' ').collect::<Vec<_>>(), "by name: quiet: measured");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("by name: quiet") && table.contains("INTERRUPTED"), "{table}");
    assert!(!table.contains("strangers publish"), "{table}");
}

#[test]
fn an_interrupted_measurement_keeps_the_runs_that_were_finished() {
    let results = tempfile::tempdir().unwrap();
    let folder = results.path().to_str().unwrap();
    let words = "scale -n 5,100000 --strategy flat --world virtual --toy --results";
    let words: Vec<&str> = words.split(' ').chain([folder]).collect();
    let output = interrupted(&words, "5 drones, flat over virtual time, seed 1: passed");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let table = text(&output.stdout);
    assert!(
        table.contains("INTERRUPTED after 1 of 2 runs, which passed")
            && table.contains("-scale-interrupted/")
    );
    assert_eq!(read(&results.path().join("latest/figures.csv")).lines().count(), 1 + 1);
    assert!(text(&output.stderr).contains("interrupted: what is finished will be reported"), "{output:?}");
}

#[test]
fn an_interrupted_run_keeps_the_operations_that_were_finished() {
    let results = tempfile::tempdir().unwrap();
    let folder = results.path().to_str().unwrap();
    // It waits for the key to expire, and says so after a while.
    let words = ["run", "-n", "3", "--expiry", "100s", "--results", folder];
    let output = interrupted(&words, "key expires: 0 of 1");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("INTERRUPTED after 3 operations") && table.contains("form group"), "{table}");
    assert!(!table.contains("re-key on expiry"), "{table}");
    let summary: Value = serde_json::from_str(&read(&results.path().join("latest/summary.json"))).unwrap();
    assert_eq!((&summary["passed"], &summary["interrupted"]), (&Value::Null, &Value::Bool(true)));
    let latest = results.path().join("latest").canonicalize().unwrap();
    assert!(latest.to_str().unwrap().ends_with("-run-live-3-interrupted"), "{latest:?}");
}

/// Waits until a process handles SIGINT: before, a signal ends it at once.
fn wait_until_it_listens(running: &mut std::process::Child) {
    let status = format!("/proc/{}/status", running.id());
    let listens = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(caught, 16).unwrap() & 0b10 != 0
    };
    while !listens() {
        assert_eq!(running.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_scenario_reports_what_came_of_it_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("month.toml");
    let month = "title = \"A month\"\nabout = \"\"\nduration = \"30days\"\n[fleet]\nmembers = 50\n[expect]\nmembers = 7\n";
    std::fs::write(&file, month).unwrap();
    let mut running = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["scenario", "--suite", "toy", "--results"])
        .args([folder.path().join("results"), file])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_listens(&mut running);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("INTERRUPTED") && table.contains("expectations not looked at"), "{table}");
    let latest = folder.path().join("results/latest").canonicalize().unwrap();
    assert!(latest.to_str().unwrap().ends_with("-scenario-month-interrupted"), "{latest:?}");
    let summary: Value = serde_json::from_str(&read(&latest.join("summary.json"))).unwrap();
    assert_eq!((&summary["passed"], &summary["interrupted"]), (&Value::Null, &Value::Bool(true)));
    assert!(read(&latest.join("report.html")).contains("INTERRUPTED"));
}

#[test]
fn an_interrupted_check_says_how_many_seeds_it_left_out() {
    let mut running = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["check", "--seeds", "100000000", "-n", "4", "--strategy", "flat"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_listens(&mut running);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.is_empty() || said.starts_with("flat: ") && said.contains(", INTERRUPTED with "), "{said}");
}

#[test]
fn figures_of_a_scenario_in_the_manual_are_those_that_the_program_prints() {
    let manual = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/simulator.md"));
    let sample = manual.split("```text\nMAVLink frames").nth(1).unwrap().split("```").next().unwrap();
    let sample = format!("MAVLink frames{sample}");
    let output = sim(&["scenario", "mavlink", "--no-results"]);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    assert_eq!(sample.lines().count(), 6, "{sample}");
    let figures = ["MAVLink frames  ", "bytes  ", "copies  ", "without telemetry ", "hostile  ", "air  "];
    let begins = |(line, figure): (&str, &str)| assert!(line.starts_with(figure), "{line}");
    sample.lines().zip(figures).for_each(begins);
    assert!(printed.contains(&sample), "the manual has\n{sample}and the program prints\n{printed}");
}

#[test]
fn results_that_cannot_be_written_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for words in [
        &["run", "-n", "5000"][..],
        &["run", "-n", "50000", "--world", "virtual"],
        &["scale"],
        &["scenario", "mass_join"],
        &["scenario", "--all"],
    ] {
        let refused = refusal(&[words, &["--results", file.to_str().unwrap()]].concat());
        assert!(refused.contains(file.to_str().unwrap()) && refused.contains("--no-results"), "{refused}");
        assert!(refused.contains("a file of this name is there, and no folder"), "{refused}");
    }
}

#[test]
fn reports_name_their_command_as_a_shell_takes_it_whatever_the_folder_is_called() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = tempfile::tempdir().unwrap();
    for (name, typed) in [(&b"my $runs"[..], "--results 'my $runs'"), (b"\xff", r"--results $'\377'")] {
        let name = std::ffi::OsStr::from_bytes(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
        command.args(["run", "--world", "virtual", "--toy", "-n", "3", "--results"]).arg(name);
        let output = command.current_dir(&folder).env_remove("RUST_LOG").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let summary: Value =
            serde_json::from_str(&read(&folder.path().join(name).join("latest/summary.json"))).unwrap();
        let told = summary["command"].as_str().unwrap();
        assert_eq!(told, format!("sim run --world virtual --toy -n 3 {typed}"));
    }
}

#[test]
fn numbers_that_are_none_are_refused_in_plain_words() {
    for words in
        [&["-n", "1e3"][..], &["check", "--seeds", "many"], &["scenario", "mass_join", "--seed", "x"]]
    {
        assert!(refusal(words).contains("this is not a whole number"), "{words:?}");
    }
    assert!(refusal(&["-n", "2", "--seed", "-1"]).contains("the number is negative"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("few.toml");
    for (members, told) in [("-3", "integer `-3`"), ("1e9", "floating point `1000000000.0`")] {
        let toml = format!("title = \"\"\nabout = \"\"\nduration = \"20s\"\n[fleet]\nmembers = {members}\n");
        std::fs::write(&file, toml).unwrap();
        let told = format!("{told}, expected a whole number that is not negative");
        assert!(refusal(&["scenario", file.to_str().unwrap()]).contains(&told), "{told}");
    }
}

#[test]
fn figures_are_printed_although_the_disk_is_full_and_nothing_half_written_stays() {
    for words in ["-n 3 --messages 0", "run --world virtual --toy -n 9", "scenario mass_join --suite toy"] {
        let results = tempfile::tempdir().unwrap();
        // No file may become longer than a block.
        let script = format!(
            "trap '' XFSZ; ulimit -f 1; exec {} {words} --results {}",
            env!("CARGO_BIN_EXE_sim"),
            results.path().display()
        );
        let output = Command::new("sh").args(["-c", &script]).env_remove("RUST_LOG").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        let (table, complaint) = (text(&output.stdout), text(&output.stderr));
        assert!(table.contains("checks passed") && !table.contains("Report: "), "{words}: {table}");
        assert!(complaint.starts_with("error: cannot write ") && complaint.contains("File too large"));
        assert_eq!(std::fs::read_dir(&results).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn results_that_cannot_be_printed_are_an_error_and_a_reader_that_went_away_is_none() {
    let sim = |words: &str, output: std::process::Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
        command.args(words.split(' ')).env_remove("RUST_LOG").stdout(output);
        command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
    };
    for words in [
        "-n 2 --messages 0 --no-results --json",
        "run --world virtual --toy -n 9 --no-results",
        "scale -n 5 --strategy flat --world virtual --toy --no-results",
        "scenario mass_join --suite toy --no-results",
        "scenario mass_join --suite toy --no-results --csv",
        "scenario --list",
        "scenario mass_join --print",
        "check --seeds 1 -n 4 --strategy flat",
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let failed = sim(words, full.into());
        assert_eq!(failed.status.code(), Some(1), "{words}: {failed:?}");
        let complaint = text(&failed.stderr);
        assert!(complaint.contains("error: cannot print the results: No space left"), "{words}: {complaint}");
    }
    for words in ["--help", "-h", "--version", "run --help", "help scale"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let failed = sim(words, full.into());
        assert_eq!(failed.status.code(), Some(1), "{words}: {failed:?}");
        assert!(
            text(&failed.stderr).contains("cannot print the result: No space left"),
            "{words}: {failed:?}"
        );
    }
    for words in ["scenario --list", "--help", "--version"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(sim(words, writer.into()).status.code(), Some(0), "{words}");
    }
}

#[test]
fn folders_say_what_ran_and_how_it_ended_and_a_page_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let (results, failing) = (folder.path().join("results"), folder.path().join("too_few.toml"));
    let toml = "title = \"Too few\"\nabout = \"\"\nduration = \"20s\"\nsettle = \"5s\"\n[fleet]\nmembers = 3\n[expect]\nmembers = 4\n";
    std::fs::write(&failing, toml).unwrap();
    let run = |words: &[&str], code| {
        let output = sim(&[words, &["--quiet", "--results", results.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let latest = results.join("latest").canonicalize().unwrap();
        (latest.file_name().unwrap().to_str().unwrap().to_owned(), read(&results.join("latest/summary.json")))
    };
    let runs = [
        (run(&["-n", "2", "--messages", "0", "--no-restart-leader"], 0), "run-live-2-passed"),
        (
            run(&["--world", "virtual", "--toy", "-n", "4", "--messages", "0", "--replay"], 0),
            "run-virtual-4-passed",
        ),
        (run(&["scenario", failing.to_str().unwrap(), "--suite", "toy"], 1), "scenario-too_few-FAILED"),
    ];
    let index = read(&results.join("index.html"));
    for ((name, summary), ending) in &runs {
        assert!(name.ends_with(ending), "{name}");
        let summary: Value = serde_json::from_str(summary).unwrap();
        let (command, title) = (summary["command"].as_str().unwrap(), summary["title"].as_str().unwrap());
        assert!(command.starts_with("sim ") && command.contains("--quiet"), "{command}");
        for shown in [name, command, title] {
            assert!(index.contains(shown), "{shown}: {index}");
        }
    }
    assert!(index.contains(&format!("{}/replay.html", runs[1].0.0)), "{index}");
    assert_eq!((index.matches("<td>passed</td>").count(), index.matches("<td>FAILED</td>").count()), (2, 1));
}

#[test]
fn sample_in_the_readme_has_the_rows_and_columns_that_a_run_prints() {
    let readme = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md"));
    let sample = readme.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let output = sim(&["-n", "20", "--messages", "0", "--no-results"]);
    let printed = text(&output.stdout);
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('│').split('┆').map(|cell| cell.trim().to_owned()).collect()
    };
    let without_digits =
        |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().replace("  ", " ");
    for line in sample.lines().filter(|line| line.starts_with('│') && !line.contains('…')) {
        let name = without_digits(&cells(line)[0]);
        let same = printed.lines().find(|line| without_digits(&cells(line)[0]) == name);
        let same = cells(same.unwrap_or_else(|| panic!("{name}: {printed}")));
        assert_eq!(same.len(), cells(line).len(), "{name}");
        if name == "operation" {
            assert_eq!(same, cells(line));
        }
    }
    for beginning in ["1000 drones over memory", "All ", "Report: results/"] {
        assert!(sample.lines().any(|line| line.starts_with(beginning)), "{beginning}");
    }
    let first = sample.lines().next().unwrap().replace("1000", "20");
    assert_eq!(printed.lines().next(), Some(first.as_str()));
}

#[test]
fn citation_names_this_version() {
    let citation = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../CITATION.cff"));
    let version = citation.lines().find_map(|line| line.strip_prefix("version: "));
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn commands_of_the_lab_say_where_they_are() {
    for words in [&["reproduce", "ainq"][..], &["compare", "--drones", "50"], &["bench"]] {
        assert!(refusal(words).contains("cargo lab"), "{words:?}");
    }
}

#[test]
fn json_goes_to_standard_output_alone() {
    let output = sim(&["run", "-n", "3", "--messages", "0", "--json", "--no-results", "--seed", "9"]);
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["plan"]["drones"], 3);
    assert_eq!(summary["plan"]["seed"], 9);
    assert_eq!(summary["violations"], Value::Array(vec![]));
    assert!(summary["operations"].as_array().unwrap().len() >= 6);
}

#[test]
fn quiet_run_prints_nothing() {
    let output = sim(&["-n", "2", "--messages", "0", "--quiet", "--no-results", "--no-restart-leader"]);
    assert!(output.status.success());
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn logs_go_to_standard_error_if_asked_for() {
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["-n", "2", "--messages", "0", "--json", "--no-results"])
        .env("RUST_LOG", "quiver_net=debug")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("quiver_net"));
    serde_json::from_slice::<Value>(&output.stdout).unwrap();
}

#[test]
fn run_that_fails_an_invariant_exits_with_one() {
    let output = sim(&["-n", "20", "--timeout", "1ms", "--no-results", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).starts_with("error: "), "{output:?}");
}
