//! The virtual world as a user meets it: `sim check` and `sim run --world virtual`.

use std::process::{Command, Output};

use serde_json::Value;

fn sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(words).env_remove("RUST_LOG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn drones_without_a_name_show_that_they_satisfy_a_policy_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy");
    std::fs::write(&file, "# half of them\nx >= 0\n").unwrap();
    let run = |file: &std::path::Path| {
        let file = file.to_str().unwrap();
        sim(&["run", "--world", "virtual", "--toy", "-n", "8", "--json", "--no-results", "--admission", file])
    };
    let output = run(&file);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["operations"].as_array().unwrap();
    for beginning in ["form group (", "come again (", "next period ("] {
        let row = |row: &&Value| row["operation"].as_str().unwrap().starts_with(beginning);
        assert!(rows.iter().any(|it| row(&it)), "{beginning}: {report}");
    }

    for (policy, why) in [("x < 1 and z > 2", "battery: u7"), ("", "--admission"), ("x < x", "--admission")] {
        std::fs::write(&file, policy).unwrap();
        let output = run(&file);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(why), "{output:?}");
    }
    let output = run(&folder.path().join("nowhere"));
    assert!(text(&output.stderr).contains("nowhere"), "{output:?}");
}

#[test]
fn check_lives_through_seeds_of_both_strategies() {
    let output = sim(&["check", "--seeds", "6", "-n", "5"]);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    for strategy in ["flat: 6 seeds", "tree: 6 seeds"] {
        let line = printed.lines().find(|line| line.starts_with(strategy));
        assert!(line.is_some_and(|line| line.contains(" passed: ")), "{printed}");
    }
    for strategy in ["flat", "tree"] {
        assert!(printed.contains(&format!("{strategy}: planted flaw found by seed ")), "{printed}");
    }
}

#[test]
fn check_lives_through_one_seed_again() {
    let output = sim(&["check", "--seed", "7", "-n", "5", "--strategy", "tree", "--quiet"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn check_refuses_what_it_cannot_do() {
    for (words, why) in [
        (&["check", "-n", "0"][..], "'--drones <N>': 0 is not in 1..=1000"),
        (&["check", "--seeds", "0"], "'--seeds <COUNT>': 0 is not in 1..="),
        (&["check", "--leaders", "0"], "'--leaders <COUNT>': 0 is not in 1..="),
        (&["check", "--seed", "1", "--seeds", "2"], "cannot be used with"),
    ] {
        let output = sim(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(text(&output.stderr).contains(why), "{words:?}: {output:?}");
    }
}

#[test]
fn virtual_run_gives_rows_and_one_seed_gives_the_same_ones() {
    let words = [
        "run",
        "--world",
        "virtual",
        "-n",
        "60",
        "--toy",
        "--strategy",
        "tree",
        "--radio",
        "802.15.4",
        "--json",
        "--no-results",
    ];
    let rows = || {
        let output = sim(&words);
        assert!(output.status.success(), "{output:?}");
        let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        for row in summary["operations"].as_array_mut().unwrap() {
            // Fields that depend on the machine.
            row["cpu_s"] = Value::Null;
            row["leader_cpu_s"] = Value::Null;
        }
        assert_eq!(summary["violations"], Value::Array(Vec::new()));
        summary["operations"].clone()
    };
    let once = rows();
    let operations: Vec<&str> =
        once.as_array().unwrap().iter().map(|row| row["operation"].as_str().unwrap()).collect();
    assert_eq!(operations.len(), 8, "{operations:?}");
    assert!(once[1]["airtime_s"].as_f64().unwrap() > 0.0, "{once}");
    assert_eq!(once, rows());
}

#[test]
fn virtual_run_refuses_more_drones_than_a_group_has_places() {
    let output = sim(&["run", "--world", "virtual", "-n", "2000000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("1048576"), "{output:?}");
}

#[test]
fn virtual_run_refuses_more_messages_than_it_can_deliver() {
    for messages in ["4294967295", "300000"] {
        let output = sim(&["run", "--world", "virtual", "-n", "5000", "--toy", "--messages", messages]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(&format!("--messages {messages}: ")), "{output:?}");
    }
}

#[test]
fn virtual_run_flies_no_vehicles() {
    let output = sim(&["run", "--world", "virtual", "--mavlink"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--mavlink is for --world live"), "{output:?}");
}

#[test]
fn virtual_run_says_why_a_radio_cannot_carry_it_and_runs_from_a_depot() {
    let words = ["run", "--world", "virtual", "-n", "5", "--toy", "--radio", "lora-sf7", "--no-results"];
    let refused = sim(&words);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("--depot wifi"), "{refused:?}");
    let output = sim(&[&words[..], &["--depot", "wifi"]].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("then all changed to lora-sf7"), "{output:?}");
}

#[test]
fn both_worlds_write_the_same_files_with_the_same_keys() {
    let keys = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let summary = |world: &str| -> Value {
        let results = tempfile::tempdir().unwrap();
        let folder = results.path().to_str().unwrap();
        let output = sim(&["-n", "20", "--world", world, "--messages", "4", "--results", folder]);
        assert!(output.status.success(), "{output:?}");
        assert!(
            text(&output.stdout).contains("\nAll ") && text(&output.stdout).contains(" checks passed in ")
        );
        let run = results.path().join("latest");
        let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
        let mut files: Vec<String> = std::fs::read_dir(&run)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort_unstable();
        let expected = ["latencies.csv", "memory.csv", "operations.csv", "report.html", "summary.json"];
        assert_eq!(files, expected, "{world}");
        assert!(read("operations.csv").starts_with("phase,operation,"));
        assert_eq!(read("latencies.csv").matches("\nleave (1),").count(), 19, "{world}");
        serde_json::from_str(&read("summary.json")).unwrap()
    };
    let (live, virtual_) = (summary("live"), summary("virtual"));
    assert_eq!(keys(&live), keys(&virtual_));
    assert_eq!(keys(&live["plan"]), keys(&virtual_["plan"]));
    let operations = |summary: &Value| summary["operations"].as_array().unwrap().clone();
    for operation in operations(&live).iter().chain(&operations(&virtual_)) {
        assert_eq!(keys(operation), keys(&operations(&live)[0]));
    }
    let rows = |summary: &Value| -> Vec<(Value, Value)> {
        let rows = operations(summary).into_iter().map(|it| (it["operation"].clone(), it["drones"].clone()));
        // In the virtual world there are no connections, and no outsider enrols.
        rows.filter(|(name, _)| name != "connect" && name != "enrol").collect()
    };
    assert_eq!(rows(&live), rows(&virtual_));
    assert_eq!(rows(&live).len(), 7, "{:?}", rows(&live));
}
