//! Real processes whose wall clock is an hour off: each says so, and a deputy leaves its leader alone.
//!
//! The clock is that of `libfaketime`, which stands between a process and what the system tells it. Without
//! the library nothing is tested, which is a failure in CI.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment};

use crate::failover::{EDGES, LeaderPair, free_port};
use crate::monitoring::{MONITORED, becomes_ready, becomes_unready};

/// Paths of Debian's package `libfaketime`.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];
const SAYS: &str = "this machine's clock says";

/// The library, or none after saying so.
#[expect(clippy::print_stderr, reason = "whoever reads that a test passed learns that it did nothing")]
fn library() -> Option<&'static str> {
    let found = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "there is no libfaketime (on Debian: apt-get install libfaketime)"
        );
        eprintln!("skipped: there is no libfaketime (on Debian: apt-get install libfaketime)");
    }
    found
}

/// The process's clock is off by so much; how long things take is as ever.
fn off(mut command: Command, library: &str, by: &str) -> Command {
    command.env("LD_PRELOAD", library).env("FAKETIME", by).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command
}

/// A KGC at a fixed address with health.
fn kgc(bench: &TestDeployment, at: &str) -> Command {
    bench.command("kgc", &[&["serve", "--listen", at][..], &MONITORED].concat())
}

fn leader(bench: &TestDeployment, at: &str, token: &str) -> Command {
    let serve =
        ["serve", "--kgc", at, "--listen", ANY, "--deployment", "kgc-data/deployment.toml", "--token", token];
    bench.command("leader", &[&serve[..], &MONITORED].concat())
}

fn edge(bench: &TestDeployment, name: &str, group: &str, (kgc, leader): (&str, &Process)) -> Command {
    let (data, token) = (format!("{name}-data"), bench.token(name, &["--group", group]));
    let places = ["run", "--json", "-d", &data, "--kgc", kgc, "--leader", &leader.address()];
    let rest = ["--deployment", "kgc-data/deployment.toml", "--token", &token];
    bench.command("edge", &[&places[..], &rest, &MONITORED].concat())
}

#[test]
fn single_kgc_whose_clock_is_off_is_told_by_its_drones_and_says_so() {
    let Some(library) = library() else { return };
    let bench = TestDeployment::new();
    let at = format!("/ip4/127.0.0.1/tcp/{}", free_port());
    let mut right = bench.begin("kgc", kgc(&bench, &at));
    becomes_ready(&bench, "kgc", &right);
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    let leader = bench.begin("leader", leader(&bench, &at, &token));
    let edges =
        ["edge-1", "edge-2"].map(|name| bench.begin("edge", edge(&bench, name, "alpha", (&at, &leader))));
    bench.served(2, (0, 0));
    for by in ["+1h", "-1h"] {
        right.kill();
        let wrong = bench.begin("kgc", off(kgc(&bench, &at), library, by));
        becomes_unready(&bench, "kgc", &wrong, &["1 of 1 clocks heard of say", SAYS, "set the clocks right"]);
        // Most of those that the leader hears have its time.
        becomes_ready(&bench, "leader", &leader);
        wrong.kill();
        right = bench.begin("kgc", kgc(&bench, &at));
        becomes_ready(&bench, "kgc", &right);
    }
    edges.iter().for_each(|edge| becomes_ready(&bench, "edge", edge));
}

#[test]
fn leader_alone_and_edge_whose_clock_is_off_say_so() {
    let Some(library) = library() else { return };
    let bench = TestDeployment::new();
    let at = format!("/ip4/127.0.0.1/tcp/{}", free_port());
    let kgc = bench.begin("kgc", kgc(&bench, &at));
    becomes_ready(&bench, "kgc", &kgc);
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    for by in ["+1h", "-1h"] {
        let wrong = bench.begin("leader", off(leader(&bench, &at, &token), library, by));
        becomes_unready(&bench, "leader", &wrong, &["1 of 1 clocks heard of say", SAYS]);
    }
    // Another group, whose leader's clock is right.
    let token = bench.token("leader-2", &["--leads", "beta"]);
    let places = [
        "serve",
        "-d",
        "beta-data",
        "--kgc",
        &at,
        "--listen",
        ANY,
        "--deployment",
        "kgc-data/deployment.toml",
    ];
    let right = bench.start("leader", &[&places[..], &["--token", &token], &MONITORED].concat());
    becomes_ready(&bench, "leader", &right);
    for (name, by) in [("edge-1", "+1h"), ("edge-2", "-1h")] {
        let command = edge(&bench, name, "beta", (&at, &right));
        let wrong = bench.begin("edge", off(command, library, by));
        becomes_unready(&bench, "edge", &wrong, &[SAYS, "set the clocks right"]);
        // Both ends say by how much.
        let way = if by == "+1h" { "ahead of" } else { "behind" };
        let at_the_edge = wrong.logged(&format!("{way} that of the leader at 127.0.0.1:"));
        let at_the_leader = right.logged(&format!("the clock of {name} at 127.0.0.1:"));
        assert!(at_the_leader.contains(&format!("{way} this one: set the clocks right")), "{at_the_leader}");
        // Seconds are cut off on either side, and an answer takes its time on a busy machine.
        for line in [at_the_edge, at_the_leader] {
            assert!(line.contains(" is 1 h ") || line.contains(" is 59 min "), "{line}");
        }
        let told = bench.ok("edge", &["status", "-d", &format!("{name}-data")]);
        assert!(told.contains("clock        1 of 1 clocks heard of say"), "{told}");
    }
}

#[test]
fn deputy_whose_clock_is_ahead_leaves_a_healthy_leader_alone_and_says_why() {
    let Some(library) = library() else { return };
    let mut pair = LeaderPair::start();
    let term = pair.follow(0, &EDGES);
    pair.leaders[1].kill();
    let command = off(pair.leader_command(1), library, "+1h");
    pair.leaders[1] = pair.bench.begin("leader", command);
    becomes_unready(&pair.bench, "leader", &pair.leaders[1], &[SAYS, "set the clocks right"]);
    // The silence of a pair, 6 s, and as long again for its turn and for what it takes.
    std::thread::sleep(Duration::from_secs(12));
    let status = pair.status(1).expect("it runs");
    assert_eq!(status["stance"], "standing by", "{status}");
    assert_eq!(pair.follow(0, &EDGES), term, "nobody else opened a term");
}
