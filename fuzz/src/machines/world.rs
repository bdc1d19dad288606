//! The honest run: a star of machines on the testbed, recorded.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_ainq::{Revoked, Role, StrategyKind};
use quiver_enrolment::{Kgc, KgcCommand};
use quiver_group::{EdgeCommand, LeaderCommand};
use quiver_machine::{Either, MAX_MESSAGE_LEN, Machine, Route};
use quiver_testbed::Net;

use super::S;
use super::deputy::Deputy;
use super::roles::{FuzzEdge, FuzzLeader, FuzzMachine, edge};
use super::trace::{Recorder, Trace};
use crate::attributes::envelopes;
use crate::scene::{Staged, name};

/// Number of edges. The last joins late.
pub(crate) const EDGES: usize = 5;

/// The name of an edge.
pub(crate) fn edge_name(edge: usize) -> String {
    format!("edge-{edge}")
}

/// Records and messages that the honest run left behind.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) kgc: Trace<Kgc<S>>,
    pub(crate) leader: Trace<FuzzLeader>,
    pub(crate) deputy: Trace<Deputy>,
    pub(crate) edges: Vec<Trace<FuzzEdge>>,
    pub(crate) messages: Vec<Vec<u8>>,
    digests: BTreeSet<[u8; 32]>,
}

/// Re-key strategies of the honest runs.
pub(crate) const STRATEGIES: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];

/// The honest run under a strategy, made once.
pub(crate) fn recording(strategy: StrategyKind) -> &'static Recording {
    static RECORDINGS: [OnceLock<Recording>; 2] = [const { OnceLock::new() }; 2];
    RECORDINGS[usize::from(strategy == StrategyKind::Tree)].get_or_init(|| {
        let mut world = FuzzWorld::new(strategy);
        world.perform();
        world.finish()
    })
}

/// Returns true if an honest leader made the epoch with this D.
pub(crate) fn is_honest(digest: &[u8; 32]) -> bool {
    STRATEGIES.iter().any(|strategy| recording(*strategy).digests.contains(digest))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FuzzNode {
    Kgc,
    Leader,
    Deputy,
    Edge(usize),
}

struct FuzzWorld {
    strategy: StrategyKind,
    net: Net<FuzzNode>,
    edges: usize,
    digests: BTreeSet<[u8; 32]>,
}

impl FuzzWorld {
    fn new(strategy: StrategyKind) -> Self {
        let mut world = Self { strategy, net: Net::new(0), edges: 0, digests: BTreeSet::new() };
        world.net.skip(Duration::from_secs(100));
        world.start(FuzzNode::Kgc, Kgc::restart(&[], strategy).expect("a fresh KGC"), 1);
        world.start(FuzzNode::Leader, FuzzLeader::restart(&[], strategy).expect("a fresh leader"), 2);
        world.start(FuzzNode::Deputy, Deputy::restart(&[], strategy).expect("a fresh leader"), 99);
        world
    }

    fn start<M: FuzzMachine>(&mut self, node: FuzzNode, machine: M, seed: u64) {
        self.net.subscribe(node);
        self.net.start(node, Recorder::new(machine, seed, self.strategy));
    }

    fn machine<M: FuzzMachine>(&self, node: FuzzNode) -> &M {
        &self.net.machine::<Recorder<M>>(node).machine
    }

    /// The states that matter are marked: enrolled, serving or member, and after churn. Fresh is the first
    /// mark.
    fn perform(&mut self) {
        self.net.connect(FuzzNode::Leader, FuzzNode::Kgc, Route::Kgc);
        self.net.connect(FuzzNode::Deputy, FuzzNode::Kgc, Route::Kgc);
        for edge in 0..EDGES - 1 {
            self.enlist(edge);
        }
        self.run(Duration::from_secs(2));
        self.mark();
        self.net.connect(FuzzNode::Deputy, FuzzNode::Leader, Route::Leader);
        for edge in 0..EDGES - 1 {
            self.net.connect(FuzzNode::Edge(edge), FuzzNode::Leader, Route::Leader);
        }
        self.run(Duration::from_secs(3));
        self.mark();
        self.churn();
        self.run(Duration::from_secs(30));
        self.mark();
        assert!(self.machine::<FuzzEdge>(FuzzNode::Edge(0)).status().synced, "the honest run went wrong");
        assert!(
            self.machine::<FuzzEdge>(FuzzNode::Edge(EDGES - 1)).status().synced,
            "the late edge did not join"
        );
        assert_eq!(
            self.machine::<FuzzLeader>(FuzzNode::Leader).status().members,
            EDGES - 2,
            "one was evicted, one left"
        );
        assert_eq!(
            self.machine::<Deputy>(FuzzNode::Deputy).0.status().members,
            EDGES - 2,
            "the deputy is behind"
        );
        let messages = self.messages();
        let envelopes = messages.iter().filter(|bytes| bytes.windows(4).any(|part| part == b"QvE\x01"));
        assert!(envelopes.count() >= 3, "no envelopes to change");
    }

    fn churn(&mut self) {
        let channel = name("test");
        let send = |signed| EdgeCommand::Send { channel: name("test"), data: b"hello".to_vec(), signed };
        self.command_edge(0, send(false));
        self.command_edge(1, send(true));
        self.command_leader(LeaderCommand::Send { channel, data: b"orders".to_vec() });
        self.seal();
        self.command_leader(LeaderCommand::Rekey);
        self.run(Duration::from_secs(1));
        // Away while the key changes, and back: it has to catch up.
        self.net.disconnect_all(FuzzNode::Edge(0));
        self.command_leader(LeaderCommand::Rekey);
        self.run(Duration::from_secs(1));
        self.net.connect(FuzzNode::Edge(0), FuzzNode::Leader, Route::Leader);
        self.net.connect(FuzzNode::Edge(0), FuzzNode::Kgc, Route::Kgc);
        self.run(Duration::from_secs(5));
        self.command_leader(LeaderCommand::Evict(name(&edge_name(2))));
        let serial = S::scene().token(&edge_name(2), Role::Edge).token.statement.id;
        let revoke = KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]);
        self.net.command::<Recorder<Kgc<S>>>(FuzzNode::Kgc, revoke);
        self.run(Duration::from_secs(1));
        self.enlist(EDGES - 1);
        self.net.connect(FuzzNode::Edge(EDGES - 1), FuzzNode::Leader, Route::Leader);
        self.command_edge(1, EdgeCommand::Leave);
        self.run(Duration::from_secs(5));
    }

    /// Orders for the first edge; the second has nothing to do with them.
    fn seal(&mut self) {
        self.command_edge_node(0, Either::Right(envelopes::keys()));
        self.command_leader_node(Either::Right(envelopes::keys()));
        for order in envelopes::ORDERS {
            self.command_leader_node(Either::Right(envelopes::order(order)));
        }
        self.command_edge_node(0, Either::Right(envelopes::order(envelopes::ORDERS[0])));
    }

    fn mark(&mut self) {
        self.mark_one::<Kgc<S>>(FuzzNode::Kgc);
        self.mark_one::<FuzzLeader>(FuzzNode::Leader);
        self.mark_one::<Deputy>(FuzzNode::Deputy);
        (0..self.edges).for_each(|edge| self.mark_one::<FuzzEdge>(FuzzNode::Edge(edge)));
    }

    fn mark_one<M: FuzzMachine>(&mut self, node: FuzzNode) {
        let trace = &mut self.net.node_mut::<Recorder<M>>(node).machine_mut().expect("it runs").trace;
        trace.marks.push(trace.steps.len());
    }

    fn enlist(&mut self, number: usize) {
        self.edges += 1;
        self.start(FuzzNode::Edge(number), edge(number), 3 + number as u64);
        self.net.connect(FuzzNode::Edge(number), FuzzNode::Kgc, Route::Kgc);
    }

    fn command_edge(&mut self, edge: usize, command: EdgeCommand) {
        self.command_edge_node(edge, Either::Left(command));
    }

    fn command_edge_node(&mut self, edge: usize, command: <FuzzEdge as Machine>::Command) {
        self.net.command::<Recorder<FuzzEdge>>(FuzzNode::Edge(edge), command);
    }

    fn command_leader(&mut self, command: LeaderCommand) {
        self.command_leader_node(Either::Left(command));
    }

    fn command_leader_node(&mut self, command: <FuzzLeader as Machine>::Command) {
        self.net.command::<Recorder<FuzzLeader>>(FuzzNode::Leader, command);
    }

    fn run(&mut self, time: Duration) {
        let end = self.net.time() + time;
        loop {
            self.digests.extend(self.machine::<FuzzLeader>(FuzzNode::Leader).status().digest);
            if !self.net.step(end) {
                break;
            }
        }
    }

    /// Every message, once.
    fn messages(&self) -> BTreeSet<Vec<u8>> {
        self.net.recorded.iter().map(|packet| packet.bytes.clone()).collect()
    }

    fn trace<M: FuzzMachine>(&mut self, node: FuzzNode) -> Trace<M> {
        let node = self.net.node_mut::<Recorder<M>>(node);
        let records = node.records().to_vec();
        let recorder = *node.take_machine().expect("it runs");
        self.digests.extend(recorder.checker.activated);
        Trace { records, ..recorder.trace }
    }

    fn finish(mut self) -> Recording {
        let messages: Vec<_> = self.messages().into_iter().collect();
        let longest = messages.iter().map(Vec::len).max();
        assert!(longest.is_some_and(|len| len <= MAX_MESSAGE_LEN), "a message of {longest:?} bytes");
        Recording {
            kgc: self.trace(FuzzNode::Kgc),
            leader: self.trace(FuzzNode::Leader),
            deputy: self.trace(FuzzNode::Deputy),
            edges: (0..self.edges).map(|edge| self.trace(FuzzNode::Edge(edge))).collect(),
            messages,
            digests: self.digests,
        }
    }
}
