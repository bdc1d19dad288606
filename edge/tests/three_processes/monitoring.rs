//! Metrics and health of real processes: ready or why not, from the first enrolment to a lost leader.

use std::io::{Read, Write};
use std::net::TcpStream;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually, text};

use crate::swarm::place_of;

pub(crate) const MONITORED: [&str; 2] = ["--metrics", "127.0.0.1:0"];

/// Address at which the process serves its health, the newest if there were several.
pub(crate) fn endpoint(process: &Process) -> String {
    eventually("an endpoint", || {
        let log = text(&process.err);
        let line = log.lines().rfind(|line| line.contains("serving metrics and health"))?;
        Some(line.split("address=").nth(1)?.trim().to_owned())
    })
}

/// Output of `health`, and its exit code.
pub(crate) fn health(bench: &TestDeployment, name: &str, at: &str) -> (i32, String) {
    let output = bench.run(name, &["health", "--metrics", at]);
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code().expect("code"), String::from_utf8_lossy(&said).lines().last().unwrap_or("").into())
}

pub(crate) fn becomes_ready(bench: &TestDeployment, name: &str, process: &Process) {
    eventually(&format!("{name} ready"), || {
        (health(bench, name, &endpoint(process)) == (0, "ready".into())).then_some(())
    });
}

/// Waits until it is not ready, with all of this in the reasons.
pub(crate) fn becomes_unready(bench: &TestDeployment, name: &str, process: &Process, parts: &[&str]) {
    eventually(&format!("{name} not ready: {parts:?}"), || {
        let (code, said) = health(bench, name, &endpoint(process));
        (code == 1 && parts.iter().all(|part| said.contains(part))).then_some(())
    });
}

/// A metric's value.
fn metric(process: &Process, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(endpoint(process)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.parse().ok()
}

/// Waits until a metric has a value such as this.
pub(crate) fn counted(process: &Process, name: &str, wanted: impl Fn(f64) -> bool) {
    eventually(&format!("{name} as wanted; {:?} at first", metric(process, name)), || {
        metric(process, name).filter(|value| wanted(*value))
    });
}

fn counted_at_least(process: &Process, name: &str, least: f64) {
    counted(process, name, |value| value >= least);
}

#[test]
fn every_service_says_whether_it_is_ready_and_what_it_counted() {
    let bench = TestDeployment::new();
    let token = bench.token("leader-1", &["--leads", "alpha"]);
    bench.token("edge-1", &["--group", "alpha"]);
    // Nobody listens on port 1: the edge's only KGC is at a wrong address.
    let nowhere = "/ip4/127.0.0.1/tcp/1";
    let run = ["run", "-d", "edge-1-data", "--leader", "/ip4/127.0.0.1/tcp/1"];
    let given = ["--deployment", "kgc-data/deployment.toml", "--token", "edge-1.token", "--kgc"];
    let lost = bench.start("edge", &[&run[..], &given, &[nowhere], &MONITORED].concat());
    becomes_unready(&bench, "edge", &lost, &["enrolling", "no connection to the KGC at 127.0.0.1:1"]);
    drop(lost);

    let kgc = bench.start("kgc", &[&["serve", "--listen", ANY][..], &MONITORED].concat());
    becomes_ready(&bench, "kgc", &kgc);
    let at = kgc.address();
    let serve = ["serve", "--kgc", &at, "--listen", ANY, "--token", &token];
    let deployment = ["--deployment", "kgc-data/deployment.toml"];
    let leader = bench.start("leader", &[&serve[..], &deployment, &MONITORED].concat());
    becomes_ready(&bench, "leader", &leader);
    let leader_at = leader.address();
    let run = ["run", "-d", "edge-1-data", "--leader", &leader_at];
    let edge = bench.start("edge", &[&run[..], &given, &[&at], &MONITORED].concat());
    becomes_ready(&bench, "edge", &edge);

    counted_at_least(&kgc, "quiver_kgc_keys_issued_total", 2.0);
    bench.ok("leader", &["rekey"]);
    counted_at_least(&leader, "quiver_leader_members", 1.0);
    counted_at_least(&leader, "quiver_leader_epoch_delivery_seconds_count", 1.0);
    counted_at_least(&leader, "quiver_net_sent_bytes_total", 100.0);
    counted_at_least(&edge, "quiver_edge_synced", 1.0);
    counted_at_least(&edge, "quiver_edge_keys_activated_total", 2.0);

    counted(&edge, "quiver_edge_queued_messages", |waiting| waiting == 0.0);
    leader.kill();
    becomes_unready(&bench, "edge", &edge, &["no leader of the group is connected", &place_of(&leader_at)]);
    assert!(bench.ok("edge", &["send", "-d", "edge-1-data", "later"]).starts_with("queued"));
    counted(&edge, "quiver_edge_queued_messages", |waiting| waiting == 1.0);
    counted(&edge, "quiver_edge_queued_messages_dropped_total", |dropped| dropped == 0.0);
    bench.refused(
        "leader",
        &["health", "--metrics", "127.0.0.1:1"],
        4,
        &["no leader answers on 127.0.0.1:1"],
    );
    bench.refused("kgc", &["health", "-d", "nowhere"], 4, &["no kgc is running"]);
    let at = endpoint(&kgc);
    let second = ["serve", "--listen", ANY, "-d", "kgc-data", "--metrics", &at];
    bench.refused("kgc", &second, 5, &["in use by another process"]);
}
