//! Arguments that nobody can mean: values given twice, numbers out of their range, directories and files of others. And two
//! secrets where each file has one of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::Bench;

#[test]
fn values_given_twice_are_refused_in_whatever_form() {
    let bench = Bench::new();
    fs::copy(bench.path("operator.pub"), bench.path("copy.pub")).expect("copy");
    let init = ["init", "--deployment", "alps", "--operator", "operator.pub"];
    let key = ["quorum", "key", "--id", "1", "--address", "127.0.0.1:7000"];
    let same = "/ip4/127.0.0.1/tcp/7000 is the same as 127.0.0.1:7000";
    let addresses = ["--address", "127.0.0.1:7000", "--address"];
    let (first, second) = (&addresses[..], &["/ip4/127.0.0.1/tcp/7000"][..]);
    for (words, part) in [
        (
            [&init[..], &["--operator", "operator.pub"]].concat(),
            "operator.pub is given twice for '--operator",
        ),
        ([&init[..], &["--operator", "copy.pub"]].concat(), "copy.pub has the same key as operator.pub"),
        ([&init[..], first, &["127.0.0.1:7000"]].concat(), "127.0.0.1:7000 is given twice for '--address"),
        ([&init[..], first, second].concat(), same),
        ([&key[..], &["--address", "127.0.0.1:7000"]].concat(), "127.0.0.1:7000 is given twice"),
        ([&key[..], &["--address"], second].concat(), same),
    ] {
        bench.refused(&words, 2, part);
    }
    assert!(!bench.path("kgc-data/master.state").exists(), "nothing was made");
    bench.ok(&init);
    let issue = ["token", "issue", "--operator", "operator.key", "--name", "edge-1"];
    for (words, part) in [
        (
            [&issue[..], &["--group", "alpha", "--group", "alpha"]].concat(),
            "alpha is given twice for '--group",
        ),
        (["ibe", "policy", "allow", "mission", "--group", "a", "--group", "a"].into(), "a is given twice"),
        (
            ["serve", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"].into(),
            "127.0.0.1:0 is given twice",
        ),
        (
            ["serve", "--listen", "127.0.0.1:0", "--listen", "/ip4/127.0.0.1/tcp/0"].into(),
            "/ip4/127.0.0.1/tcp/0 is the same as 127.0.0.1:0",
        ),
    ] {
        bench.refused(&words, 2, part);
    }
    let mut listed = bench.command(&["serve"]);
    let output = listed.env("QUIVER_KGC_LISTEN", "127.0.0.1:0, 127.0.0.1:0").output().expect("run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("variable QUIVER_KGC_LISTEN: 127.0.0.1:0 stands there twice"), "{told}");
    // Others, together, are taken.
    bench.ok(&[&issue[..], &["--group", "alpha", "--group", "beta"]].concat());
}

#[test]
fn numbers_out_of_their_range_are_refused_with_the_range() {
    let bench = Bench::new();
    let issue = ["token", "issue", "--operator", "operator.key", "--name", "edge-1"];
    let key = ["quorum", "key", "--address", "127.0.0.1:7000"];
    let found = ["quorum", "found", "--dir", "x", "--id", "1", "--address", "a:1", "--deployment", "alps"];
    for (command, flag, range) in [
        (&issue[..], "--count", "1..=10000"),
        (&issue, "--ordinal", "0..=65535"),
        (&key, "--id", "1..=64"),
        (&found, "--members", "2..=64"),
        (&found, "--threshold", "2..=64"),
        (&["quorum", "approve"], "--repair", "1..=64"),
    ] {
        for value in ["-1", "1000000000", "1e9", "99999999999999999999", "", "x"] {
            let given = format!("{flag}={value}");
            bench.refused(&[command, &[&given]].concat(), 2, range);
        }
    }
    let mut read = bench.command(&["audit"]);
    let output = read.env("QUIVER_KGC_RELEASE_BURST", "0").output().expect("run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("RELEASE_BURST: found unsigned int `0`, expected a whole number from 1 to"),
        "{told}"
    );
}

#[test]
fn operators_key_and_state_may_have_secrets_of_their_own() {
    let bench = Bench::initialised();
    let write = |name: &str, text: &str| {
        fs::write(bench.path(name), text).expect("write");
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(0o600)).expect("chmod");
    };
    write("phrase", "an operator's passphrase\n");
    write("other", "another passphrase\n");
    let by = |words: &[&str]| {
        let mut command = bench.command(&[]);
        command = std::process::Command::new(command.get_program());
        let output = command.args(words).current_dir(bench.path("")).env_clear().output().expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = by(&["operator", "new", "--out", "second", "--passphrase-file", "phrase"]);
    assert_eq!(code, Some(0), "{told}");
    let issue = ["token", "issue", "--operator", "second.key", "--name", "edge-1", "--group", "alpha"];
    let with = |rest: &[&str]| by(&[&issue[..], rest].concat());
    for (rest, parts) in [
        // Each error says what to do next, and that works.
        (
            &["--passphrase-file", "phrase"][..],
            &["master.state is protected by a key", "--operator-passphrase-file"][..],
        ),
        (
            &["--key-file", "state.key"],
            &["second.key is protected by a passphrase", "use --operator-passphrase-file"],
        ),
        (
            &["--key-file", "state.key", "--operator-passphrase-file", "other"],
            &["wrong passphrase or key for second.key"],
        ),
        (
            &["--key-file", "state.key", "--operator-key-file", "state.key"],
            &["use --operator-passphrase-file"],
        ),
        (&["--passphrase-file", "other", "--operator-passphrase-file", "phrase"], &["use --key-file"]),
    ] {
        let (code, told) = with(rest);
        assert_eq!(code, Some(6), "{rest:?}: {told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{rest:?}: {told}");
    }
    assert!(!bench.path("edge-1.token").exists());
    let (code, told) = with(&["--key-file", "state.key", "--operator-passphrase-file", "phrase"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(bench.ok(&["token", "list"]).contains("edge-1"), "it is recorded");
}

#[test]
fn drones_directory_gets_no_secrets_of_a_kgc() {
    let bench = Bench::new();
    let directory = bench.path("edge-1-data");
    fs::create_dir(&directory).expect("create");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("chmod");
    fs::write(directory.join("drone.state"), "a drone's").expect("write");
    fs::write(directory.join("deployment.toml"), "a drone's").expect("write");
    let told = "edge-1-data is the data directory of a drone (drone.state): give a KGC's by --data-dir";
    for words in [
        &["init", "--deployment", "alps", "--operator", "operator.pub"][..],
        &["quorum", "key", "--id", "1", "--address", "127.0.0.1:7000"],
        &["serve"],
    ] {
        bench.refused(&[words, &["-d", "edge-1-data"]].concat(), 2, told);
    }
    assert_eq!(fs::read_dir(&directory).expect("read").count(), 2, "nothing was added");
}

#[test]
fn operators_files_get_names_that_are_seen() {
    let bench = Bench::new();
    fs::create_dir(bench.path("keys")).expect("create");
    bench.refused(
        &["operator", "new", "--out", "keys/"],
        2,
        "`keys/` names no file: give a prefix of two file names, such as keys/operator",
    );
    assert_eq!(fs::read_dir(bench.path("keys")).expect("read").count(), 0);
    bench.ok(&["operator", "new", "--out", "keys/operator"]);
}
