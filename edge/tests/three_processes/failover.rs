//! Two leaders of one group, each a process: the one that leads is killed, the other takes over, the first
//! comes back.

use std::net::TcpListener;
use std::process::Command;

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment, eventually};
use serde_json::Value;

use crate::monitoring::MONITORED;

/// A group of three edges with two leaders, everything running.
pub(crate) struct LeaderPair {
    pub(crate) bench: TestDeployment,
    pub(crate) kgc_at: String,
    /// Addresses at which the leaders listen, chosen beforehand: each has to know the other's.
    pub(crate) sockets: [String; 2],
    pub(crate) leaders: Vec<Process>,
    /// The KGC and the edges.
    pub(crate) running: Vec<Process>,
    /// More flags of each leader.
    flags: [Vec<String>; 2],
}

impl LeaderPair {
    pub(crate) fn start() -> Self {
        Self::start_with([vec![], vec![]])
    }

    /// The same, with more flags for each leader.
    pub(crate) fn start_with(flags: [Vec<String>; 2]) -> Self {
        let bench = TestDeployment::new();
        bench.token("leader-0", &["--leads", "alpha", "--ordinal", "0"]);
        bench.token("leader-1", &["--leads", "alpha", "--ordinal", "1"]);
        let kgc = bench.kgc(ANY);
        let kgc_at = kgc.address();
        let sockets = [free_port(), free_port()].map(|port| format!("/ip4/127.0.0.1/tcp/{port}"));
        let mut pair = Self { bench, kgc_at, sockets, leaders: Vec::new(), running: vec![kgc], flags };
        let first = pair.leader(0);
        pair.leaders.push(first);
        // The first to start leads; on a busy machine that could be either.
        pair.stands(0, "leading");
        let second = pair.leader(1);
        pair.leaders.push(second);
        let at = [pair.leaders[0].address(), pair.leaders[1].address()];
        for edge in EDGES {
            let token = pair.bench.token(edge, &["--group", "alpha"]);
            let data = format!("{edge}-data");
            let places = ["run", "--json", "-d", &data, "--kgc", &pair.kgc_at, "--leader", &at[0]];
            let rest = ["--leader", &at[1], "--deployment", "kgc-data/deployment.toml", "--token", &token];
            let process = pair.bench.start("edge", &[&places[..], &rest].concat());
            pair.running.push(process);
        }
        pair
    }

    fn leader(&self, leader: usize) -> Process {
        self.bench.begin("leader", self.leader_command(leader))
    }

    /// Command that starts this leader.
    pub(crate) fn leader_command(&self, leader: usize) -> Command {
        let (data, token) = (format!("leader-{leader}-data"), format!("leader-{leader}.token"));
        let (own, other) = (&self.sockets[leader], &self.sockets[1 - leader]);
        let places = ["serve", "-d", &data, "--kgc", &self.kgc_at, "--listen", own, "--peer", other];
        // A busy machine may stop a process for seconds: a deputy that took over then would keep the group.
        let rest = ["--silence", "6s", "--deployment", "kgc-data/deployment.toml", "--token", &token];
        let flags: Vec<_> = self.flags[leader].iter().map(String::as_str).collect();
        self.bench.command("leader", &[&places[..], &rest, &MONITORED, &flags].concat())
    }

    pub(crate) fn status(&self, leader: usize) -> Option<Value> {
        let data = format!("leader-{leader}-data");
        let output = self.bench.run("leader", &["status", "--json", "-d", &data]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("json"))
    }

    /// Waits until a leader does this.
    fn stands(&self, leader: usize, stance: &str) -> Value {
        eventually(&format!("leader {leader} is {stance}"), || {
            self.status(leader).filter(|status| status["stance"] == stance)
        })
    }

    /// Waits until a leader hears of this one that it is there: on a busy machine it may ask anew now and
    /// then.
    pub(crate) fn stands_by(&self, leader: usize, other: &str) -> Value {
        eventually(&format!("leader {leader} stands by for {other}"), || {
            self.status(leader).filter(|status| status["stands_by_for"] == other)
        })
    }

    /// Waits until these edges hold the key of this leader's epoch; gives its term.
    pub(crate) fn follow(&self, leader: usize, edges: &[&str]) -> u64 {
        eventually(&format!("{edges:?} follow leader {leader}"), || {
            let led = self.status(leader)?;
            let other = self.status(1 - leader).filter(|other| other["stance"] == "leading");
            assert!(
                led["stance"] != "standing by" || other.is_none(),
                "leader {leader} was silent for long enough that the other took over"
            );
            let held = edges.iter().all(|edge| {
                let status = self.bench.edge_status(edge);
                status
                    .is_some_and(|edge| edge["synced"] == true && edge["epoch_digest"] == led["epoch_digest"])
            });
            led["term"].as_u64().filter(|_| held && led["acknowledged"] == edges.len())
        })
    }
}

pub(crate) const EDGES: [&str; 3] = ["edge-1", "edge-2", "edge-3"];

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

#[test]
fn a_deputy_takes_over_from_a_killed_leader_which_stands_by_when_it_returns() {
    let mut pair = LeaderPair::start();
    let first = pair.follow(0, &EDGES);
    pair.bench.ok("leader", &["evict", "-d", "leader-0-data", "edge-3"]);
    pair.leaders[0].logged("evictions replicated");
    pair.stands_by(1, "leader-0");
    let keys_issued = pair.bench.ok("kgc", &["drone", "list", "--json"]);

    pair.leaders[0].kill();
    let second = pair.follow(1, &EDGES[..2]);
    assert!(second > first, "{second} after {first}");
    assert_eq!(pair.stands(1, "leading")["members"], 2, "the evicted drone stayed out");
    assert!(pair.bench.edge_status("edge-3").is_none_or(|status| status["synced"] == false));

    pair.leaders[0] = pair.leader(0);
    let status = pair.stands_by(0, "leader-1");
    assert_eq!((&status["stance"], &status["members"]), (&"standing by".into(), &2.into()));
    assert_eq!(pair.follow(1, &EDGES[..2]), second, "nobody opened another term");
    pair.bench.ok("edge", &["send", "-d", "edge-1-data", "hello under the deputy"]);
    pair.running[2].line("hello under the deputy");
    assert_eq!(pair.bench.ok("kgc", &["drone", "list", "--json"]), keys_issued, "nobody enrolled anew");
}
