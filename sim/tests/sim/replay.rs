//! Replays as a user makes them: `sim scenario NAME --replay FILE` and `sim run --world virtual --replay`. What
//! the pages show is tested in a browser, by `pages.py`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SCENARIO: &[&str] = &["scenario", "mass_leave", "--suite", "toy", "--no-results", "--replay"];
const RUN: &[&str] = &["run", "--world", "virtual", "--toy", "-n", "6", "--messages", "1"];

fn sim(words: &[&[&str]]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(words.concat()).env_remove("RUST_LOG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Message for a refused command line: nothing was run.
fn refusal(words: &[&[&str]]) -> String {
    let output = sim(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    text(&output.stderr)
}

/// The trace of a page.
fn trace(page: &Path) -> Value {
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(r#"<script id="trace" type="application/json">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn one_seed_gives_one_page_and_another_another() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str, seed: &str| {
        let file = folder.path().join(name);
        let output = sim(&[SCENARIO, &[file.to_str().unwrap(), "--seed", seed]]);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).ends_with(&format!("\nReplay: {}\n", file.display())), "{output:?}");
        fs::read_to_string(file).unwrap()
    };
    let once = page("once.html", "3");
    assert!(once == page("again.html", "3"), "the pages of one seed differ");
    assert!(once != page("other.html", "4"), "the pages of two seeds are the same");
}

#[test]
fn replay_of_a_run_lies_beside_its_report_unless_it_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (results, file) = (folder.path().join("results"), folder.path().join("mine.html"));
    let output = sim(&[RUN, &["--results", results.to_str().unwrap(), "--replay"]]);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    let said = |what| printed.lines().find_map(|line| line.strip_prefix(what)).map(Path::new);
    let (replay, report) = (said("Replay: ").unwrap(), said("Report: ").unwrap());
    assert_eq!(replay, report.with_file_name("replay.html"));
    let trace = trace(replay);
    assert_eq!((&trace["edges"], &trace["failures"]), (&Value::from(7), &Value::Array(vec![])));
    let events = trace["events"].as_array().unwrap();
    let phases: Vec<&Value> =
        events.iter().filter(|it| it["kind"] == "phase").map(|it| &it["text"]).collect();
    assert_eq!(phases.len(), 7, "{phases:?}");

    let output = sim(&[RUN, &["--no-results", "--replay", file.to_str().unwrap()]]);
    assert!(output.status.success(), "{output:?}");
    assert!(file.is_file() && text(&output.stdout).contains(file.to_str().unwrap()), "{output:?}");
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no/such/folder.html");
    for file in [nowhere.to_str().unwrap(), folder.path().to_str().unwrap()] {
        for words in [&[SCENARIO, &[file]][..], &[RUN, &["--replay", file]]] {
            let refused = refusal(words);
            assert!(refused.contains("--replay: cannot write") && refused.contains(file), "{refused}");
        }
    }
}

#[test]
fn what_cannot_be_played_is_refused_with_a_way_on() {
    assert!(refusal(&[&["run", "-n", "3", "--replay"]]).contains("--world virtual"));
    assert!(refusal(&[RUN, &["--no-results", "--replay"]]).contains("FILE"));
    let many = &["run", "--world", "virtual", "--toy", "-n", "20000", "--replay"];
    assert!(refusal(&[many]).contains("at most 10000"));
    for words in [&["--all"][..], &["--list"], &["mass_leave", "--print"]] {
        assert!(refusal(&[&["scenario", "--replay", "x.html"], words]).contains("--replay"), "{words:?}");
    }
}

#[test]
fn a_file_that_was_there_stays_as_it_was_when_the_run_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "mine").unwrap();
    let path = file.path().to_str().unwrap();
    refusal(&[&["scenario", "no_such_scenario", "--replay", path]]);
    refusal(&[RUN, &["--radio", "smoke", "--replay", path]]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_run_that_fails_is_recorded_until_then_and_its_page_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, page) = (folder.path().join("short.toml"), folder.path().join("page.html"));
    let toml = "title = \"Short\"\nabout = \"\"\nduration = \"20s\"\nsettle = \"5s\"\n[fleet]\nmembers = 3\n[expect]\nmembers = 4\n";
    fs::write(&scenario, toml).unwrap();
    let words = ["scenario", scenario.to_str().unwrap(), "--suite", "toy", "--no-results", "--replay"];
    let output = sim(&[&words, &[page.to_str().unwrap()]]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let trace = trace(&page);
    let failure = trace["failures"][0].as_str().unwrap();
    assert!(text(&output.stderr).contains(failure), "{output:?}");
    let last = trace["events"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["kind"], &last["at"], &last["text"]),
        (&"violation".into(), &trace["end"], &failure.into())
    );
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("FAILED") && html.contains(failure));
}

#[test]
fn open_starts_the_browser_with_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let (browser, opened) = (folder.path().join("xdg-open"), folder.path().join("opened"));
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display())).unwrap();
    fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let page = folder.path().join("page.html");
    let output = Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(SCENARIO)
        .args([page.to_str().unwrap(), "--open"])
        .env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // The browser is a process of its own.
    let said = (0..2_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::read_to_string(&opened).ok().filter(|page| page.ends_with('\n'))
    });
    assert_eq!(said.unwrap().trim(), page.to_str().unwrap());
}
