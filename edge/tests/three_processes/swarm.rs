//! A whole swarm: KGC, leader and two edges, each a process.

use quiver_service_testing::deployment::ANY;
use quiver_service_testing::{Process, TestDeployment};

/// A group of two edges, everything running.
pub(crate) struct Swarm {
    pub(crate) bench: TestDeployment,
    pub(crate) kgc: Process,
    pub(crate) leader: Process,
    pub(crate) edges: [Process; 2],
    pub(crate) kgc_at: String,
    pub(crate) leader_at: String,
}

impl Swarm {
    pub(crate) fn new() -> Self {
        Self::start(TestDeployment::new(), ANY)
    }

    pub(crate) fn start(bench: TestDeployment, listen: &str) -> Self {
        let token = bench.token("leader-1", &["--leads", "alpha"]);
        bench.token("edge-1", &["--group", "alpha"]);
        bench.token("edge-2", &["--group", "alpha"]);
        let kgc = bench.kgc(listen);
        let kgc_at = kgc.address();
        let leader = bench.leader(&kgc_at, listen, Some(&token), &[]);
        let leader_at = leader.address();
        let edges = ["edge-1", "edge-2"].map(|name| bench.edge(name, &kgc_at, &leader_at));
        let swarm = Self { bench, kgc, leader, edges, kgc_at, leader_at };
        swarm.in_sync((0, 0));
        swarm
    }

    /// Waits until both edges hold the key of an epoch after this one; returns that epoch.
    pub(crate) fn in_sync(&self, after: (u64, u64)) -> (u64, u64) {
        let epoch = self.bench.served(2, after);
        for name in ["edge-1", "edge-2"] {
            self.bench.synced(name, epoch);
        }
        epoch
    }

    /// Edge 1 speaks, edge 2 hears.
    pub(crate) fn message_arrives(&self, words: &str) {
        self.bench.ok("edge", &["send", "-d", "edge-1-data", words]);
        let line = self.edges[1].line(words);
        let message: serde_json::Value = serde_json::from_str(&line).expect("json");
        assert_eq!((&message["from"], &message["signed"]), (&"edge-1".into(), &true.into()), "{line}");
        assert_eq!((&message["text"], &message["group"]), (&words.into(), &"alpha".into()), "{line}");
    }
}

/// The address as services write it for people.
pub(crate) fn place_of(address: &str) -> String {
    let port = address.split('/').nth(4).expect("a port");
    format!("127.0.0.1:{port}")
}

/// The address without the peer's name: to listen there again.
pub(crate) fn socket_of(address: &str) -> &str {
    address.split("/p2p/").next().expect("address")
}
