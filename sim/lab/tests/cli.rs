//! The program `lab` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

fn lab(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab")).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Message for a refused command line.
fn refusal(words: &[&str]) -> String {
    let output = lab(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn reproduce_prints_tables_and_writes_a_page_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let output = lab(&["reproduce", "ainq", "--quick", "--results", results.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let tables = text(&output.stdout);
    for word in ["GenSecretValue", "GenGroupKey", "Re-Key on expiry", "published", "flat / tree", "rustc"] {
        assert!(tables.contains(word), "{word}: {tables}");
    }
    assert_eq!(text(&output.stderr), "");
    // Beside `latest`, which leads to it.
    let report = std::fs::read_link(results.join("latest")).unwrap();
    let report = results.join(report);
    assert!(tables.contains(report.join("report.html").to_str().unwrap()));
    assert!(read(&report.join("report.html")).contains("cargo lab reproduce ainq --quick"));
    assert!(read(&report.join("edge.csv")).contains("0.014"));
}

#[test]
fn reproduce_explains_itself_and_needs_to_know_what() {
    let help = text(&lab(&["reproduce", "ainq", "--help"]).stdout);
    assert!(help.contains("--full") && help.contains("report.html") && help.contains("Exit codes"), "{help}");
    assert!(refusal(&["reproduce"]).contains("ainq"));
    assert!(refusal(&["reproduce"]).contains("abe"));
    assert!(refusal(&["reproduce", "everything"]).contains("everything"));
    assert!(refusal(&["reproduce", "ainq", "--quick", "--full"]).contains("--full"));
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for words in [&["--help"][..], &["--version"], &["compare", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_lab")).args(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
        assert!(text(&output.stderr).contains("cannot print the result: No space left"), "{output:?}");
    }
}

#[test]
fn reproduce_says_before_it_measures_that_it_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    // At full size it would take minutes.
    let output = lab(&["reproduce", "ainq", "--full", "--results", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.starts_with("error: --results: cannot write") && said.contains("--no-results"), "{said}");
}

#[test]
fn bench_runs_a_line_of_the_boards_shell_or_says_what_there_is() {
    let output = lab(&["bench", "aes-cbc", "1", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("native"), "{output:?}");
    assert!(refusal(&["bench", "fly"]).contains("aes-cbc"));
}

#[test]
fn schemes_compete_over_a_radio_in_less_than_two_minutes_of_processor_time() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let words = ["compare", "--radio", "802.15.4", "--loss", "2%", "--quick", "--results"];
    // Each scheme may take five seconds for each of two sizes; what takes longer is cut and said.
    let limits = ["--budget", "5s"];
    let output = lab(&[&words[..], &[results.to_str().unwrap()], &limits].concat());
    assert!(output.status.success(), "{output:?}");
    let tables = text(&output.stdout);
    for word in ["Quiver, flat", "AinQ as published", "LKH", "Group OSCORE", "MLS", "until all have the key"]
    {
        assert!(tables.contains(word), "{word}: {tables}");
    }
    let report = results.join(std::fs::read_link(results.join("latest")).unwrap());
    let page = read(&report.join("report.html"));
    assert!(page.contains("cargo lab compare --radio 802.15.4 --loss 0.02 --quick"));
    // Seven schemes, 20 and 50 drones, unless a slow machine cut one.
    assert!(read(&report.join("radio-form.csv")).lines().count() > 7);
    assert!(read(&report.join("radio-findings.csv")).contains("AinQ as published,yes,yes,yes,yes,no"));
    assert!(report.join("radio-bytes.svg").exists());
}

#[test]
fn interrupted_comparison_leaves_what_was_finished() {
    for (words, slug, table) in [
        (&["--drones", "8,131072"][..], "compare-unfinished", "compare-form.csv"),
        (
            &["--radio", "tcp", "--loss", "0", "--drones", "8,2000"],
            "compare-radio-unfinished",
            "radio-form.csv",
        ),
    ] {
        let results = tempfile::tempdir().unwrap();
        let mut running = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args([&["compare", "--quiet", "--results", results.path().to_str().unwrap()], words].concat())
            .spawn()
            .unwrap();
        let latest = results.path().join("latest/report.json");
        while !latest.exists() {
            assert_eq!(running.try_wait().unwrap(), None, "it is at the larger group");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // Not by an interrupt, which programs ignore that a script has started in the background. Both end it alike.
        let ended = Command::new("kill").arg(running.id().to_string()).status().unwrap();
        assert!(ended.success());
        assert!(!running.wait().unwrap().success());
        let folder = results.path().join("latest").canonicalize().unwrap();
        assert!(folder.to_str().unwrap().ends_with(slug), "{folder:?}");
        assert!(read(&folder.join("report.html")).contains("UNFINISHED"));
        let figures = read(&folder.join(table));
        assert!(
            figures.lines().skip(1).any(|line| line.contains(",8,") || line.starts_with("8,")),
            "{figures}"
        );
    }
}

#[test]
fn loss_without_a_radio_and_radios_that_are_none_are_refused() {
    assert!(refusal(&["compare", "--loss", "2%"]).contains("--radio"));
    assert!(refusal(&["compare", "--radio", "smoke"]).contains("or tcp"));
    assert!(refusal(&["compare", "--radio", "wifi", "--loss", "95%"]).contains("90 %"));
}
