//! Setup of containers: without a person to answer, and with every step possibly done twice.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use super::Bench;

#[test]
fn directory_is_filled_with_tokens_and_nobody_gets_a_second() {
    let bench = Bench::initialised();
    let issue = ["token", "issue", "--operator", "operator.key", "--record", "never", "--out", "tokens"];
    let leaders = ["--name", "leader", "--leads", "alpha", "--count", "2"];
    let said = bench.ok(&[&issue[..], &leaders].concat());
    assert_eq!(said.lines().count(), 2, "{said}");
    assert_eq!(bench.mode("tokens"), 0o700);
    let edges = ["--name", "edge", "--group", "alpha", "--count", "3"];
    bench.ok(&[&issue[..], &edges].concat());
    // One is taken, and one is spent.
    fs::rename(bench.path("tokens/edge-1.token"), bench.path("tokens/edge-1.token.0123")).expect("rename");
    fs::remove_file(bench.path("tokens/edge-3.token")).expect("remove");
    let said = bench.ok(&[&issue[..], &edges].concat());
    assert!(said.contains("edge-3.token") && said.lines().count() == 1, "{said}");
    bench.refused(
        &["token", "issue", "--operator", "operator.key", "--name", "e", "--count", "2"],
        2,
        "--out",
    );
}

#[test]
fn operators_key_pair_is_kept_and_its_public_half_published() {
    let bench = Bench::new();
    let key = fs::read(bench.path("operator.key")).expect("read");
    bench.ok(&["operator", "new", "--keep", "--publish", "published.pub"]);
    assert_eq!(fs::read(bench.path("operator.key")).expect("read"), key);
    let public = fs::read(bench.path("operator.pub")).expect("read");
    assert_eq!(fs::read(bench.path("published.pub")).expect("read"), public);
}

#[test]
fn deployment_file_is_printed() {
    let bench = Bench::initialised();
    let kept = fs::read_to_string(bench.path("kgc-data/deployment.toml")).expect("read");
    assert_eq!(bench.ok(&["deployment"]).trim(), kept.trim());
}

fn found<'a>(id: &'a str, data: &'a str, wait: &'a str) -> Vec<&'a str> {
    let quorum =
        ["quorum", "found", "--dir", "shared", "--deployment", "alps", "--members", "2", "--threshold", "2"];
    let kgc = ["--address", "/ip4/127.0.0.1/tcp/7000", "--id", id, "-d", data, "--wait", wait];
    [&quorum[..], &kgc].concat()
}

/// A quorum's directory, with the operator's public key in it.
fn shared(bench: &Bench) -> PathBuf {
    let shared = bench.path("shared");
    fs::create_dir(&shared).expect("mkdir");
    fs::copy(bench.path("operator.pub"), shared.join("operator.pub")).expect("copy");
    shared
}

#[test]
fn kgcs_find_one_another_through_a_directory_and_pin_the_same_quorum() {
    let bench = Bench::new();
    shared(&bench);
    let first = bench.command(&found("1", "one", "60s")).stdout(Stdio::piped()).spawn().expect("spawn");
    let second = bench.ok(&found("2", "two", "60s"));
    let output = first.wait_with_output().expect("wait");
    assert!(output.status.success());
    let first = String::from_utf8(output.stdout).expect("utf-8");
    let fingerprint = |said: &str| {
        said.lines().find_map(|line| line.strip_prefix("quorum fingerprint ").map(String::from)).expect("one")
    };
    assert_eq!(fingerprint(&first), fingerprint(&second));
    assert_eq!(bench.ok(&found("1", "one", "0s")), "", "it is done already");
}

#[test]
fn kgc_that_waits_in_vain_or_is_there_twice_says_so() {
    let bench = Bench::new();
    let shared = shared(&bench);
    bench.refused(&found("1", "one", "0s"), 8, "shared/kgc-2.toml");
    bench.refused(&found("1", "another", "0s"), 2, "two have the same --id");
    fs::copy(shared.join("kgc-1.toml"), shared.join("kgc-2.toml")).expect("copy");
    bench.refused(&found("1", "one", "0s"), 2, "it is the part of KGC 1");
}
