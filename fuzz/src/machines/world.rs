//! The honest run: a star of machines on a virtual clock, recorded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_ainq::{Revoked, Role, StrategyKind};
use quiver_enrolment::{Kgc, KgcCommand};
use quiver_envelope::EnvelopeCommand;
use quiver_group::{EdgeCommand, LeaderCommand};
use quiver_machine::{Destination, Either, Now, Peer, Route, Via};

use super::S;
use super::deputy::Deputy;
use super::roles::{EdgeNode, FuzzMachine, LeaderNode};
use super::trace::{Harness, Sent, Step, Trace};
use crate::envelopes;
use crate::scene::{START, Staged, name};

/// Number of edges. The last joins late.
pub(crate) const EDGES: usize = 5;

/// The name of an edge.
pub(crate) fn edge_name(edge: usize) -> String {
    format!("edge-{edge}")
}

/// Everything that the honest run left behind.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) kgc: Trace<Kgc<S>>,
    pub(crate) leader: Trace<LeaderNode>,
    pub(crate) deputy: Trace<Deputy>,
    pub(crate) edges: Vec<Trace<EdgeNode>>,
    pub(crate) messages: Vec<Vec<u8>>,
    digests: BTreeSet<[u8; 32]>,
}

/// Re-key strategies of the honest runs.
pub(crate) const STRATEGIES: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];

/// The honest run under a strategy, made once.
pub(crate) fn recording(strategy: StrategyKind) -> &'static Recording {
    static RECORDINGS: [OnceLock<Recording>; 2] = [const { OnceLock::new() }; 2];
    RECORDINGS[usize::from(strategy == StrategyKind::Tree)].get_or_init(|| {
        let mut world = World::new(strategy);
        world.perform();
        world.finish()
    })
}

/// Whether an honest leader made the epoch with this D.
pub(crate) fn is_honest(digest: &[u8; 32]) -> bool {
    STRATEGIES.iter().any(|strategy| recording(*strategy).digests.contains(digest))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Kgc,
    Leader,
    Deputy,
    Edge(usize),
}

/// A harness whose inputs are recorded.
struct Recorder<M: FuzzMachine> {
    harness: Harness<M>,
    trace: Trace<M>,
}

impl<M: FuzzMachine> Recorder<M> {
    fn new(seed: u64, strategy: StrategyKind) -> Self {
        let mut harness = Harness::new(seed, strategy);
        harness.checker.trusting = true;
        Self {
            harness,
            trace: Trace { seed, strategy, steps: Vec::new(), marks: vec![0], records: Vec::new() },
        }
    }

    fn take(&mut self, now: Now, step: Step<M::Command>) -> Vec<Sent> {
        let sent = self.harness.take(now, &step);
        self.trace.steps.push((now, step));
        sent
    }

    fn mark(&mut self) {
        self.trace.marks.push(self.trace.steps.len());
    }

    fn finish(mut self) -> Trace<M> {
        self.trace.records = self.harness.disk;
        self.trace
    }
}

struct World {
    strategy: StrategyKind,
    clock: Duration,
    kgc: Recorder<Kgc<S>>,
    leader: Recorder<LeaderNode>,
    deputy: Recorder<Deputy>,
    edges: Vec<Recorder<EdgeNode>>,
    /// The handle of the second node at the first.
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    queue: VecDeque<(Node, Node, Via, Vec<u8>)>,
    messages: Vec<Vec<u8>>,
    digests: BTreeSet<[u8; 32]>,
}

impl World {
    fn new(strategy: StrategyKind) -> Self {
        Self {
            strategy,
            clock: Duration::from_secs(100),
            kgc: Recorder::new(1, strategy),
            leader: Recorder::new(2, strategy),
            deputy: Recorder::new(99, strategy),
            edges: Vec::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            queue: VecDeque::new(),
            messages: Vec::new(),
            digests: BTreeSet::new(),
        }
    }

    /// The states that matter are marked: enrolled, serving or member, and after churn. Fresh is the first
    /// mark.
    fn perform(&mut self) {
        self.connect(Node::Leader, Node::Kgc, Route::Kgc);
        self.connect(Node::Deputy, Node::Kgc, Route::Kgc);
        for edge in 0..EDGES - 1 {
            self.enlist(edge);
        }
        self.run(Duration::from_secs(2));
        self.mark();
        self.connect(Node::Deputy, Node::Leader, Route::Leader);
        for edge in 0..EDGES - 1 {
            self.connect(Node::Edge(edge), Node::Leader, Route::Leader);
        }
        self.run(Duration::from_secs(3));
        self.mark();
        self.churn();
        self.run(Duration::from_secs(30));
        self.mark();
        assert!(self.edges[0].harness.machine.status().synced, "the honest run went wrong");
        assert!(self.edges[EDGES - 1].harness.machine.status().synced, "the late edge did not join");
        assert_eq!(self.leader.harness.machine.status().members, EDGES - 2, "one was evicted, one left");
        assert_eq!(self.deputy.harness.machine.0.status().members, EDGES - 2, "the deputy is behind");
        let envelopes = self.messages.iter().filter(|bytes| bytes.windows(4).any(|part| part == b"QvE\x01"));
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
        self.disconnect(Node::Edge(0));
        self.command_leader(LeaderCommand::Rekey);
        self.run(Duration::from_secs(1));
        self.connect(Node::Edge(0), Node::Leader, Route::Leader);
        self.connect(Node::Edge(0), Node::Kgc, Route::Kgc);
        self.run(Duration::from_secs(5));
        self.command_leader(LeaderCommand::Evict(name(&edge_name(2))));
        let serial = S::scene().token(&edge_name(2), Role::Edge).token.statement.id;
        let revoke = KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]);
        let sent = self.kgc.take(self.now(), Step::Command(revoke));
        self.send(Node::Kgc, sent);
        self.run(Duration::from_secs(1));
        self.enlist(EDGES - 1);
        self.connect(Node::Edge(EDGES - 1), Node::Leader, Route::Leader);
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

    fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: START + self.clock.as_secs() }
    }

    fn mark(&mut self) {
        self.kgc.mark();
        self.leader.mark();
        self.deputy.mark();
        self.edges.iter_mut().for_each(Recorder::mark);
    }

    fn enlist(&mut self, edge: usize) {
        self.edges.push(Recorder::new(3 + edge as u64, self.strategy));
        self.edges[edge].harness.machine = super::roles::edge(edge);
        self.connect(Node::Edge(edge), Node::Kgc, Route::Kgc);
    }

    fn command_edge(&mut self, edge: usize, command: EdgeCommand) {
        self.command_edge_node(edge, Either::Left(command));
    }

    fn command_edge_node(&mut self, edge: usize, command: Either<EdgeCommand, EnvelopeCommand>) {
        let now = self.now();
        let sent = self.edges[edge].take(now, Step::Command(command));
        self.send(Node::Edge(edge), sent);
    }

    fn command_leader(&mut self, command: LeaderCommand) {
        self.command_leader_node(Either::Left(command));
    }

    fn command_leader_node(&mut self, command: Either<LeaderCommand, EnvelopeCommand>) {
        let sent = self.leader.take(self.now(), Step::Command(command));
        self.send(Node::Leader, sent);
    }

    fn feed(&mut self, node: Node, step: Step<Infallible>) {
        let now = self.now();
        let sent = match node {
            Node::Kgc => self.kgc.take(now, retype(step)),
            Node::Leader => self.leader.take(now, retype(step)),
            Node::Deputy => self.deputy.take(now, retype(step)),
            Node::Edge(edge) => self.edges[edge].take(now, retype(step)),
        };
        self.send(node, sent);
        self.digests.extend(self.leader.harness.machine.status().digest);
    }

    fn connect(&mut self, dialler: Node, listener: Node, route: Route) {
        for (at, of, route) in [(listener, dialler, Route::Inbound), (dialler, listener, route)] {
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Step::Connected(peer, route));
        }
    }

    fn disconnect(&mut self, node: Node) {
        let gone: Vec<_> =
            self.handles.keys().copied().filter(|(at, of)| *at == node || *of == node).collect();
        for (at, of) in gone {
            if let Some(peer) = self.handles.remove(&(at, of)) {
                self.feed(at, Step::Disconnected(peer));
            }
        }
    }

    fn send(&mut self, from: Node, sent: Vec<Sent>) {
        for (to, bytes) in sent {
            self.messages.push(bytes.clone());
            let way = if to == Destination::Group { Via::Group } else { Via::Peer };
            let targets: Vec<Node> = match to {
                Destination::Peer(peer) => {
                    let known = self.handles.iter().find(|((at, _), handle)| *at == from && **handle == peer);
                    known.map(|((_, of), _)| *of).into_iter().collect()
                }
                Destination::Group => {
                    let edges = (0..self.edges.len()).map(Node::Edge);
                    let members = edges.filter(|edge| self.handles.contains_key(&(*edge, Node::Leader)));
                    members.chain([Node::Leader, Node::Deputy]).filter(|to| *to != from).collect()
                }
            };
            self.queue.extend(targets.into_iter().map(|to| (from, to, way, bytes.clone())));
        }
    }

    fn deliver(&mut self, from: Node, to: Node, way: Via, bytes: Vec<u8>) {
        // Gossip comes from the peer that relayed it: the leader is the hub of the star.
        let via = if self.handles.contains_key(&(to, from)) { from } else { Node::Leader };
        if let Some(peer) = self.handles.get(&(to, via)).copied() {
            self.feed(to, Step::Received(peer, way, bytes));
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        loop {
            if let Some((from, to, way, bytes)) = self.queue.pop_front() {
                self.deliver(from, to, way, bytes);
                continue;
            }
            let edges =
                self.edges.iter().enumerate().map(|(at, edge)| (Node::Edge(at), edge.harness.deadline));
            let leaders =
                [(Node::Leader, self.leader.harness.deadline), (Node::Deputy, self.deputy.harness.deadline)];
            let others = [(Node::Kgc, self.kgc.harness.deadline)].into_iter().chain(leaders);
            let next = edges.chain(others).filter_map(|(node, deadline)| Some((deadline?, node))).min();
            match next {
                Some((deadline, node)) if deadline <= end => {
                    self.clock = self.clock.max(deadline);
                    self.feed(node, Step::Timeout);
                }
                _ => break,
            }
        }
        self.clock = end;
    }

    fn finish(mut self) -> Recording {
        for edge in &self.edges {
            self.digests.extend(&edge.harness.checker.activated);
        }
        self.messages.sort();
        self.messages.dedup();
        Recording {
            kgc: self.kgc.finish(),
            leader: self.leader.finish(),
            deputy: self.deputy.finish(),
            edges: self.edges.into_iter().map(Recorder::finish).collect(),
            messages: self.messages,
            digests: self.digests,
        }
    }
}

fn retype<C>(step: Step<Infallible>) -> Step<C> {
    match step {
        Step::Timeout => Step::Timeout,
        Step::Connected(peer, route) => Step::Connected(peer, route),
        Step::Disconnected(peer) => Step::Disconnected(peer),
        Step::Received(from, via, bytes) => Step::Received(from, via, bytes),
        Step::Command(never) => match never {},
    }
}
