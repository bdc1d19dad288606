//! Two processes of one identity, each with a data directory of its own: a volume was cloned. Locks cannot
//! see it.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually, text};

use crate::failover::{EDGES, LeaderPair, free_port};
use crate::monitoring::{MONITORED, becomes_ready, becomes_unready, counted, endpoint, health};

/// Log line of a leader or KGC that detects two processes.
const TWO_COPIES: &str = "two processes run with one identity";

/// The files of a data directory, while its process runs; none of them is ever half written.
pub(crate) fn copy(bench: &TestDeployment, from: &str, to: &str) {
    fs::create_dir(bench.path(to)).expect("mkdir");
    for entry in fs::read_dir(bench.path(from)).expect("read") {
        let entry = entry.expect("entry");
        if entry.file_type().expect("type").is_file() {
            fs::copy(entry.path(), bench.path(to).join(entry.file_name())).expect("copy");
        }
    }
}

/// Waits until one of the two is not ready and says that it may not be the only one.
fn one_of_them_says_so(bench: &TestDeployment, pair: [&Process; 2], part: &str) {
    eventually(&format!("a leader that says `{part}`"), || {
        let said = |process: &&Process| {
            let (code, said) = health(bench, "leader", &endpoint(process));
            code == 1 && said.contains(part)
        };
        pair.iter().any(said).then_some(())
    });
}

#[test]
fn kgc_does_not_start_while_another_answers_with_its_key() {
    let bench = TestDeployment::new();
    let at = format!("/ip4/127.0.0.1/tcp/{}", free_port());
    let init =
        ["init", "-d", "first", "--deployment", "alps", "--operator", "operator.pub", "--address", &at];
    bench.ok("kgc", &init);
    copy(&bench, "first", "second");
    let first = bench.start("kgc", &["serve", "-d", "first", "--listen", &at]);
    first.address();
    let second = ["serve", "-d", "second", "--listen", ANY];
    bench.finds_its_double("kgc", &second, &["copy of this data directory", &at]);
    first.kill();
    bench.start("kgc", &second).address();
}

#[test]
fn leader_says_when_another_leads_with_a_copy_of_its_state() {
    let pair = LeaderPair::start();
    let bench = &pair.bench;
    pair.follow(0, &EDGES);

    copy(bench, "leader-0-data", "leader-0-copy");
    let serve = ["serve", "-d", "leader-0-copy", "--kgc", &pair.kgc_at, "--listen", ANY, "--silence", "6s"];
    let leader = bench.start("leader", &[&serve[..], &["--peer", &pair.sockets[1]], &MONITORED].concat());
    let why = "another process leads with a copy of its state";
    one_of_them_says_so(bench, [&pair.leaders[0], &leader], why);
    for leader in [&pair.leaders[0], &leader] {
        becomes_unready(bench, "leader", leader, &["both asked", "the KGC"]);
    }
    pair.running[0]
        .logged(&format!("{TWO_COPIES}, and both ask: end the copy, and delete its volume drone=leader-0"));
    leader.kill();
    eventually("the group goes on without the copy", || {
        let held: Vec<_> = EDGES.iter().filter_map(|edge| bench.edge_status(edge)).collect();
        let same =
            held.iter().all(|edge| edge["synced"] == true && edge["epoch_digest"] == held[0]["epoch_digest"]);
        (held.len() == EDGES.len() && same).then_some(())
    });
}

/// A KGC, a leader that is monitored, and what starts an edge of it with the state in this directory.
struct Group {
    bench: TestDeployment,
    _kgc: Process,
    kgc_at: String,
    leader: Process,
}

impl Group {
    fn start() -> Self {
        let bench = TestDeployment::new();
        let token = bench.token("leader-1", &["--leads", "alpha"]);
        bench.token("edge-1", &["--group", "alpha"]);
        let kgc = bench.kgc(ANY);
        let kgc_at = kgc.address();
        let serve = ["serve", "--kgc", &kgc_at, "--listen", ANY, "--token", &token];
        let deployment = ["--deployment", "kgc-data/deployment.toml"];
        let leader = bench.start("leader", &[&serve[..], &deployment, &MONITORED].concat());
        leader.address();
        Self { bench, _kgc: kgc, kgc_at, leader }
    }

    fn edge(&self, data: &str) -> Process {
        let places = ["run", "--json", "-d", data, "--kgc", &self.kgc_at, "--leader", &self.leader.address()];
        let rest = ["--deployment", "kgc-data/deployment.toml", "--token", "edge-1.token"];
        self.bench.start("edge", &[&places[..], &rest, &MONITORED].concat())
    }

    /// Waits until the leader counts so many of whom two run.
    fn duplicates(&self, number: f64) {
        counted(&self.leader, "quiver_net_duplicated_peers", |value| value == number);
    }
}

#[test]
fn edges_with_copies_of_one_state_both_say_so_until_one_ends() {
    let group = Group::start();
    let bench = &group.bench;
    let edge = group.edge("first");
    becomes_ready(bench, "edge", &edge);
    edge.kill();
    copy(bench, "first", "second");

    let (first, second) = (group.edge("first"), group.edge("second"));
    let why = "another process runs with a copy of this one's identity: both asked the leader";
    for edge in [&first, &second] {
        becomes_unready(bench, "edge", edge, &[why]);
        counted(edge, "quiver_net_duplicate_identity_reports", |value| value == 1.0);
    }
    group.leader.logged(TWO_COPIES);
    group.leader.logged("drone=edge-1");
    group.duplicates(1.0);
    becomes_ready(bench, "leader", &group.leader);

    second.kill();
    becomes_ready(bench, "edge", &first);
    group.duplicates(0.0);
    counted(&first, "quiver_net_duplicate_identity_reports", |value| value == 0.0);
}

#[test]
fn edge_that_is_killed_and_started_again_has_no_duplicate() {
    let group = Group::start();
    let mut edge = group.edge("first");
    becomes_ready(&group.bench, "edge", &edge);
    for _ in 0..2 {
        edge.kill();
        edge = group.edge("first");
        becomes_ready(&group.bench, "edge", &edge);
        // It has asked twice.
        sleep(Duration::from_secs(7));
        becomes_ready(&group.bench, "edge", &edge);
        group.duplicates(0.0);
    }
    let said = [&edge, &group.leader].map(|process| text(&process.err));
    assert!(said.iter().all(|log| !log.contains(TWO_COPIES) && !log.contains("another process runs")));
}
