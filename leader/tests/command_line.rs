//! The `leader` program where no group is needed to see what it does.

use std::process::{Command, Output};

use tempfile::TempDir;

fn run(directory: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leader"));
    command.args(args).current_dir(directory.path());
    command.env_clear().env("QUIVER_PASSPHRASE", "correct horse").output().expect("run")
}

fn refused(args: &[&str], code: i32, part: &str) {
    let directory = tempfile::tempdir().expect("tempdir");
    let output = run(&directory, args);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {complaint}");
    assert!(complaint.contains(part), "{args:?}: `{part}` is not in: {complaint}");
    assert!(!directory.path().join("leader-data").exists(), "nothing was created");
}

#[test]
fn subcommands_say_that_no_leader_is_running() {
    for args in [&["status"][..], &["rekey"], &["evict", "edge-1"], &["send", "hello"]] {
        refused(args, 4, "leader serve");
    }
}

#[test]
fn first_start_needs_a_deployment() {
    refused(&["serve"], 2, "--deployment");
}

#[test]
fn senseless_settings_are_refused() {
    refused(&["serve", "--validity", "1s"], 2, "validity");
    refused(&["serve", "--validity", "soon"], 2, "--validity");
    refused(&["serve", "--max-members", "0"], 2, "'--max-members <N>': 0 is not in 1..=1048576");
    refused(&["serve", "--strategy", "forest"], 2, "--strategy");
    refused(&["evict", "edge 1"], 2, "[NAME]");
    for line in ["ttyACM0", "tcp:localhost", "tcp:localhost:0", "/dev/"] {
        refused(&["serve", "--serial", line], 2, "tcp:HOST:PORT");
        refused(&["serve", "--serial", line], 2, &format!("`serial`: {line}"));
    }
    refused(&["serve", "--serial", "/dev/ttyACM0", "--serial", "/dev/ttyACM0"], 2, "given twice");
    refused(&["serve", "--serial", "/dev/ttyACM0", "--baud", "9"], 2, "--baud");
}

#[test]
fn short_help_is_a_screen_that_teaches() {
    let directory = tempfile::tempdir().expect("tempdir");
    for (words, part) in [(&["-h"][..], "leader evict edge-7"), (&["serve", "-h"], "--validity")] {
        let help = String::from_utf8(run(&directory, words).stdout).expect("utf-8");
        assert!(help.lines().count() <= 40 && help.contains(part), "{help}");
        assert!(help.contains("see more with '--help'"), "{help}");
    }
}

#[test]
fn help_teaches() {
    let directory = tempfile::tempdir().expect("tempdir");
    let help = String::from_utf8(run(&directory, &["--help"]).stdout).expect("utf-8");
    for part in ["leader serve --deployment", "Exit codes:", "QUIVER_LEADER_DATA_DIR"] {
        assert!(help.contains(part), "{part}");
    }
}
