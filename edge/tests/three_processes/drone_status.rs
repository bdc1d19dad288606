//! Tests of `edge status`: a drone's connection, its standing, why, and what to do next; and of what both
//! ends say about an address that is another's.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};
use serde_json::Value;

use crate::swarm::{Swarm, place_of, socket_of};

fn report(bench: &TestDeployment, name: &str) -> String {
    bench.ok("edge", &["status", "-d", &format!("{name}-data")])
}

/// Waits until the drone has this standing.
fn becomes(bench: &TestDeployment, name: &str, standing: &str) -> Value {
    eventually(&format!("{name} is {standing}"), || {
        bench.edge_status(name).filter(|status| status["standing"] == standing)
    })
}

#[test]
fn connection_is_told_with_the_leaders_name_and_without_one_why_there_is_none() {
    let swarm = Swarm::new();
    let at = place_of(&swarm.leader_at);
    let told = report(&swarm.bench, "edge-1");
    assert!(told.contains("standing     member, in sync\n"), "{told}");
    assert!(told.contains(&format!("connection   leader-1 at {at}, since 2")), "{told}");
    assert!(told.contains("epoch        1-1."), "{told}");
    let status = swarm.bench.edge_status("edge-1").expect("status");
    assert_eq!(status["connection"]["leaders"][0]["leads_as"], "leader-1", "{status}");
    assert_eq!((&status["standing"], &status["reason"]), (&"member".into(), &Value::Null), "{status}");
    swarm.leader.kill();
    let status = eventually("the connection is refused", || {
        let status = swarm.bench.edge_status("edge-1")?;
        (status["connection"]["unreached"][0]["reason"] == "connection refused").then_some(status)
    });
    assert_eq!(status["connection"]["unreached"][0]["address"], *at, "{status}");
    assert!(status["connection"]["none_since"].is_string(), "{status}");
    let told = report(&swarm.bench, "edge-1");
    assert!(told.contains("connection   none, since 2"), "{told}");
    assert!(told.contains(&format!("{at}: connection refused, trying again")), "{told}");
}

#[test]
fn revoked_drone_learns_it_from_the_signed_list_says_so_and_asks_no_more() {
    let mut swarm = Swarm::new();
    swarm.bench.ok("kgc", &["drone", "revoke", "edge-1"]);
    let status = becomes(&swarm.bench, "edge-1", "revoked");
    assert_eq!(status["reason"], "the KGC's revocation list names it", "{status}");
    let next = status["next"].as_str().expect("advice");
    assert!(status["since"].is_string() && next.contains("fresh token"), "{status}");
    let told = report(&swarm.bench, "edge-1");
    assert!(told.contains("standing     revoked: the KGC's revocation list names it, since 2"), "{told}");
    swarm.bench.refused(
        "edge",
        &["send", "-d", "edge-1-data", "hello?"],
        3,
        &["not sent: this drone is not a member (revoked", "edge status"],
    );
    // It knows by itself after a restart, and asks nobody.
    swarm.edges[0].kill();
    swarm.leader.kill();
    swarm.edges[0] = swarm.bench.edge("edge-1", &swarm.kgc_at, &swarm.leader_at);
    let status = becomes(&swarm.bench, "edge-1", "revoked");
    assert_eq!(status["reason"], "the KGC's revocation list names it", "{status}");
    swarm.leader = swarm.bench.leader(&swarm.kgc_at, socket_of(&swarm.leader_at), None, &[]);
    let connected = eventually("it is connected", || {
        let status = swarm.bench.edge_status("edge-1")?;
        (status["connection"]["leaders"][0]["leads_as"] == Value::Null
            && status["connection"]["none_since"] == Value::Null)
            .then_some(status)
    });
    assert_eq!(connected["standing"], "revoked", "{connected}");
}

#[test]
fn evicted_drone_says_since_when_and_comes_back_under_its_name_with_a_new_key() {
    let swarm = Swarm::new();
    swarm.bench.ok("leader", &["evict", "edge-2"]);
    let status = becomes(&swarm.bench, "edge-2", "evicted");
    assert!(status["since"].is_string() && status["next"].is_string(), "{status}");
    assert_eq!(swarm.edges[1].terminate().code(), Some(0));
    swarm.bench.ok("kgc", &["drone", "revoke", "edge-2"]);
    let token = swarm.bench.token("edge-2", &["--group", "alpha"]);
    let run = [
        "run",
        "--json",
        "-d",
        "edge-2-again-data",
        "--kgc",
        &swarm.kgc_at,
        "--leader",
        &swarm.leader_at,
        "--deployment",
        "kgc-data/deployment.toml",
        "--token",
        &token,
    ];
    let _again = swarm.bench.start("edge", &run);
    becomes(&swarm.bench, "edge-2-again", "member");
}

#[test]
fn address_that_is_a_kgcs_or_anothers_is_told_at_both_ends() {
    let swarm = Swarm::new();
    // The KGC's address in place of a leader's.
    let lost = swarm.bench.token("lost", &["--group", "alpha"]);
    let run = |data: &'static str, kgc: &str, leader: &str, token: &str| {
        let places = ["run", "-d", data, "--kgc", kgc, "--leader", leader];
        let rest = ["--deployment", "kgc-data/deployment.toml", "--token", token];
        swarm.bench.start("edge", &[&places[..], &rest].concat())
    };
    let edge = run("lost-data", &swarm.kgc_at, &swarm.kgc_at, &lost);
    edge.logged("no connection to the leader at 127.0.0.1:");
    edge.logged("a KGC answers there, not a leader");
    swarm.kgc.logged("an edge that looks for a leader dials a KGC: check its --leader");
    eventually("it says why, and what to do next", || {
        let status = swarm.bench.edge_status("lost")?;
        let why = status["connection"]["unreached"][0]["reason"] == "a KGC answers there, not a leader";
        (why && status["next"].as_str()?.contains("--leader")).then_some(())
    });
    // A leader's address in place of a KGC's.
    let astray = swarm.bench.token("astray", &["--group", "alpha"]);
    let enrol = ["enrol", "-d", "astray-data", "--kgc", &swarm.leader_at];
    let rest = ["--deployment", "kgc-data/deployment.toml", "--token", &astray];
    let parts = ["no connection to the KGC at 127.0.0.1:", "a leader answers there, not a KGC"];
    swarm.bench.gives_up(&[&enrol[..], &rest].concat(), &parts);
    swarm.leader.logged("an edge that looks for a KGC dials a leader: check its --kgc");
    // A leader of another deployment.
    let other = Foreign::new();
    let edge = run(
        "stray-data",
        &swarm.kgc_at,
        &other.leader_at,
        &swarm.bench.token("stray", &["--group", "alpha"]),
    );
    edge.logged("a leader of another deployment answers there");
    other.leader.logged("an edge of another deployment dials this one");
}

/// Another deployment with a leader.
struct Foreign {
    _bench: TestDeployment,
    _kgc: Process,
    leader: Process,
    leader_at: String,
}

impl Foreign {
    fn new() -> Self {
        let bench = TestDeployment::new();
        let token = bench.token("leader-9", &["--leads", "alpha"]);
        let kgc = bench.kgc(ANY);
        let leader = bench.leader(&kgc.address(), ANY, Some(&token), &[]);
        let leader_at = leader.address();
        Self { _bench: bench, _kgc: kgc, leader, leader_at }
    }
}

#[test]
fn leader_counts_no_connection_of_an_evicted_drone_when_it_sends() {
    let swarm = Swarm::new();
    let connected = |members: u64| {
        eventually("the leader knows who is connected", || {
            swarm.bench.leader_status().filter(|status| status["connected"] == members)
        })
    };
    swarm.bench.ok("leader", &["evict", "edge-2"]);
    connected(1);
    becomes(&swarm.bench, "edge-2", "evicted");
    let sent: Value =
        serde_json::from_str(&swarm.bench.ok("leader", &["send", "--json", "ONE-IS-LEFT"])).expect("json");
    assert_eq!((&sent["outcome"], &sent["connections"]), (&"sent".into(), &1.into()), "{sent}");
    swarm.edges[0].line("ONE-IS-LEFT");
    swarm.bench.ok("leader", &["evict", "edge-1"]);
    connected(0);
    let status = swarm.bench.edge_status("edge-1").expect("status");
    assert_eq!(status["connection"]["none_since"], Value::Null, "its connection is still there: {status}");
    swarm.bench.refused("leader", &["send", "NOBODY-READS"], 3, &["not sent: no member is connected"]);
    let said = std::fs::read_to_string(&swarm.edges[0].out).expect("read");
    assert!(!said.contains("NOBODY-READS"));
}

#[test]
fn request_to_the_service_of_another_role_is_told_whose_directory_it_is() {
    let swarm = Swarm::new();
    // Some of it the other role could do as well: it must not be done in its name.
    let told = ["an edge runs with this data directory, and not a leader", "check --data-dir"];
    for asked in
        [&["rekey"][..], &["status"], &["evict", "edge-2"], &["send", "NOT-AN-EDGE'S"], &["abe", "list"]]
    {
        swarm.bench.refused("leader", &[asked, &["-d", "edge-1-data"]].concat(), 3, &told);
    }
    let told = ["a leader runs with this data directory, and not an edge"];
    for asked in [&["status"][..], &["send", "NOT-A-LEADER'S"], &["abe", "list"]] {
        swarm.bench.refused("edge", &[asked, &["-d", "leader-data"]].concat(), 3, &told);
    }
    let told = ["a kgc runs with this data directory"];
    swarm.bench.refused("leader", &["status", "-d", "kgc-data"], 3, &told);
    for (program, directory, told) in [
        (
            "leader",
            "edge-1-data",
            "an edge answers on edge-1-data/health.sock, and not a leader: check --data-dir",
        ),
        (
            "edge",
            "leader-data",
            "a leader answers on leader-data/health.sock, and not an edge: check --data-dir",
        ),
        ("kgc", "edge-1-data", "an edge answers on edge-1-data/health.sock, and not a kgc: check --data-dir"),
    ] {
        swarm.bench.refused(program, &["health", "-d", directory], 4, &[told]);
    }
    swarm.bench.ok("leader", &["send", "--json", "BY-THE-LEADER"]);
    swarm.edges[0].line("BY-THE-LEADER");
    let said = std::fs::read_to_string(&swarm.edges[0].out).expect("read");
    assert!(!said.contains("NOT-A"), "{said}");
}

#[test]
fn watch_whose_lines_cannot_be_printed_says_so() {
    let swarm = Swarm::new();
    for (program, directory) in [("leader", "leader-data"), ("edge", "edge-1-data")] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("open");
        let mut command = swarm.bench.command(program, &["status", "--watch", "--json", "-d", directory]);
        let output = command.stdout(full).output().expect("run");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("{program}: cannot print the result: No space left")), "{told}");
    }
}

#[test]
fn leader_without_members_refuses_to_send_and_with_some_says_to_how_many() {
    let swarm = Swarm::new();
    let sent: Value =
        serde_json::from_str(&swarm.bench.ok("leader", &["send", "--json", "COUNTED-1"])).expect("json");
    assert_eq!((&sent["outcome"], &sent["connections"]), (&"sent".into(), &2.into()), "{sent}");
    assert_eq!(swarm.bench.ok("leader", &["send", "COUNTED-2"]).trim(), "sent to 2 connections");
    swarm.edges.iter().for_each(Process::kill);
    eventually("nobody is connected", || {
        swarm.bench.leader_status().filter(|status| status["connected"] == 0)
    });
    swarm.bench.refused("leader", &["send", "NOBODY"], 3, &["not sent: no member is connected"]);
}
