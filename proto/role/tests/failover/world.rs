//! A mesh of machines with a virtual clock: every edge dials every leader, leaders dial one another, and walls cut pairs.

mod looking;
mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Identity, IssuedToken, MasterSecret, Name, OperatorSecretKey,
    Ristretto255, Role, SecretValue, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_message::Message;
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{
    Edge, EdgeConfig, EdgeEvent, Kgc, KgcConfig, KgcEvent, KgcRecord, Kgcs, Leader, LeaderConfig,
    LeaderEvent, LeaderRecord, Now, Peer, Route, Snapshot, Via,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use self::running::Stimulus;

pub(crate) type S = Ristretto255;

/// 2027-01-01, in seconds since 1970.
pub(crate) const EPOCH_START: u64 = 1_798_761_600;
pub(crate) const GROUP: &str = "alpha";
/// How long a leader may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader(usize),
    Edge(usize),
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) via: Via,
    pub(crate) bytes: Vec<u8>,
}

/// A machine and what a driver would keep for it.
pub(crate) struct LeaderNode {
    pub(crate) machine: Option<Leader<S>>,
    pub(crate) token: IssuedToken<S>,
    pub(crate) records: Vec<LeaderRecord>,
    pub(crate) events: Vec<LeaderEvent>,
    deadline: Option<Duration>,
}

/// A machine and what a driver would keep for it.
pub(crate) struct EdgeNode {
    pub(crate) machine: Option<Edge<S>>,
    pub(crate) token: IssuedToken<S>,
    pub(crate) state: Option<Snapshot>,
    pub(crate) events: Vec<EdgeEvent>,
    deadline: Option<Duration>,
}

/// Called for every message; gives what is delivered in its place.
pub(crate) type Tamper = Box<dyn FnMut(Flight) -> Vec<Flight>>;

/// All machines, the messages between them, and the clock.
pub(crate) struct World {
    pub(crate) clock: Duration,
    pub(crate) latency: Duration,
    silence: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    master: Vec<u8>,
    pub(crate) kgc: Option<Kgc<S>>,
    pub(crate) kgc_records: Vec<KgcRecord>,
    pub(crate) kgc_events: Vec<KgcEvent>,
    kgc_deadline: Option<Duration>,
    pub(crate) leaders: Vec<LeaderNode>,
    pub(crate) edges: Vec<EdgeNode>,
    /// By time of arrival.
    queue: BTreeMap<(Duration, u64), Flight>,
    sent: u64,
    /// Who sees whom under which handle.
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    /// Pairs that hear nothing of each other, in either direction.
    pub(crate) walls: BTreeSet<(Node, Node)>,
    pub(crate) tamper: Option<Tamper>,
    /// This node dies after so many more outputs: what it had yet to persist or send is lost.
    pub(crate) doom: Option<(Node, usize)>,
    /// How many seconds these nodes' wall clocks are ahead.
    pub(crate) ahead: BTreeMap<Node, u64>,
    /// Everything that was ever transmitted, for tests with an adversary that listens.
    pub(crate) recorded: Vec<Flight>,
    pub(crate) records_all: bool,
}

impl World {
    /// A KGC and this many leaders with the ordinals 0, 1, …
    pub(crate) fn new(seed: u64, leaders: usize) -> Self {
        Self::with_silence(seed, leaders, SILENCE)
    }

    /// The same with leaders that may be silent for so long.
    pub(crate) fn with_silence(seed: u64, leaders: usize, silence: Duration) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let mut world = Self {
            clock: Duration::from_secs(100),
            latency: Duration::from_millis(5),
            silence,
            rng,
            deployment,
            operator,
            master: master.encode().to_vec(),
            kgc: None,
            kgc_records: Vec::new(),
            kgc_events: Vec::new(),
            kgc_deadline: None,
            leaders: Vec::new(),
            edges: Vec::new(),
            queue: BTreeMap::new(),
            sent: 0,
            handles: BTreeMap::new(),
            next_peer: 1,
            walls: BTreeSet::new(),
            tamper: None,
            doom: None,
            ahead: BTreeMap::new(),
            recorded: Vec::new(),
            records_all: true,
        };
        world.start_kgc();
        for ordinal in 0..leaders {
            let token = world.leader_token(&format!("leader-{ordinal}"), ordinal as u16);
            world.add_leader(token);
        }
        world
    }

    pub(crate) fn add_leader(&mut self, token: IssuedToken<S>) -> usize {
        let leader = self.leaders.len();
        let (records, events) = (Vec::new(), Vec::new());
        self.leaders.push(LeaderNode { machine: None, token, records, events, deadline: None });
        self.start(Node::Leader(leader));
        leader
    }

    /// A world whose leader 0 leads, whose other leaders hold its group, and whose `n` edges are members.
    pub(crate) fn grouped(seed: u64, leaders: usize, n: usize) -> Self {
        let mut world = Self::new(seed, leaders);
        world.run_until("leader 0 leads", |world| world.leading() == [0]);
        for index in 0..n {
            world.add_edge(&format!("edge-{index}"));
        }
        world.run_until("all edges joined", |world| (0..n).all(|edge| world.synced(edge)));
        world.run_until("the deputies are up to date", |world| {
            let epoch = world.epoch(0);
            (1..leaders).all(|deputy| world.held(deputy) == epoch)
        });
        // By now the members have shown themselves to the deputies, too.
        world.run(Duration::from_secs(3));
        world
    }

    pub(crate) fn now_at(&self, node: Node) -> Now {
        let ahead = self.ahead.get(&node).copied().unwrap_or_default();
        Now { monotonic: self.clock, unix: EPOCH_START + self.clock.as_secs() + ahead }
    }

    fn start_kgc(&mut self) {
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: MasterSecret::decode(&self.master).unwrap().into(),
            id: 1,
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 1_000_000,
        };
        self.kgc = Some(Kgc::new(config, self.kgc_records.clone()).unwrap());
        self.settle(Node::Kgc);
    }

    pub(crate) fn leader_config(&self, leader: usize) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.deployment.clone(),
            group: name(GROUP),
            token: Some(copy(&self.leaders[leader].token)),
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 2000,
            strategy: crate::STRATEGY,
            timing: LeaderTiming {
                validity: Duration::from_secs(10_000),
                silence: Some(self.silence),
                ..LeaderTiming::default()
            },
        }
    }

    /// Starts a machine from what it persisted and connects it.
    pub(crate) fn start(&mut self, node: Node) {
        match node {
            Node::Kgc => self.start_kgc(),
            Node::Leader(leader) => {
                let machine = Leader::new(self.leader_config(leader), self.leaders[leader].records.clone());
                self.leaders[leader].machine = Some(machine.unwrap());
            }
            Node::Edge(edge) => {
                let machine = Edge::new(self.edge_config(edge), self.edges[edge].state.as_ref());
                self.edges[edge].machine = Some(machine.unwrap());
            }
        }
        self.settle(node);
        self.wire(node);
    }

    /// Dials whom this node would dial, and lets those dial it who would.
    pub(crate) fn wire(&mut self, node: Node) {
        for other in self.nodes() {
            for (dialler, listener) in [(node, other), (other, node)] {
                match (dialler, listener) {
                    (Node::Leader(_) | Node::Edge(_), Node::Kgc) => {
                        self.connect(dialler, listener, Route::Kgc);
                    }
                    (Node::Leader(a), Node::Leader(b)) if a != b => {
                        self.connect(dialler, listener, Route::Leader);
                    }
                    (Node::Edge(_), Node::Leader(_)) => self.connect(dialler, listener, Route::Leader),
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let leaders = (0..self.leaders.len()).map(Node::Leader);
        let edges = (0..self.edges.len()).map(Node::Edge);
        [Node::Kgc].into_iter().chain(leaders).chain(edges).collect()
    }

    pub(crate) fn crash(&mut self, node: Node) {
        match node {
            Node::Kgc => self.kgc = None,
            Node::Leader(leader) => self.leaders[leader].machine = None,
            Node::Edge(edge) => self.edges[edge].machine = None,
        }
        let gone: Vec<_> = self.handles.keys().copied().filter(|(a, b)| *a == node || *b == node).collect();
        for (at, of) in gone {
            if let Some(peer) = self.handles.remove(&(at, of)) {
                self.feed(at, Stimulus::Disconnected(peer));
            }
        }
        self.queue.retain(|_, flight| flight.to != node);
    }

    pub(crate) fn add_edge(&mut self, text: &str) -> usize {
        let token = self.token(text, Role::Edge);
        self.add_edge_with(token)
    }

    /// Another machine that enrols with the token of this edge, at a KGC that has forgotten it: a second key for one drone,
    /// as every drone of a quorum can make itself.
    pub(crate) fn add_edge_under_another_key(&mut self, edge: usize) -> usize {
        let serial = self.edges[edge].token.token.statement.id;
        self.kgc_records
            .retain(|record| !matches!(record, KgcRecord::Issued { token_id, .. } if *token_id == serial));
        self.crash(Node::Kgc);
        self.start(Node::Kgc);
        let token = copy(&self.edges[edge].token);
        self.add_edge_with(token)
    }

    fn add_edge_with(&mut self, token: IssuedToken<S>) -> usize {
        let edge = self.edges.len();
        self.edges.push(EdgeNode { machine: None, token, state: None, events: Vec::new(), deadline: None });
        self.start(Node::Edge(edge));
        edge
    }

    /// Starts another machine from a copy of what this edge persisted, beside it.
    pub(crate) fn copy_edge(&mut self, edge: usize) -> usize {
        let (token, state) = (copy(&self.edges[edge].token), self.edges[edge].state.clone());
        let twin = self.edges.len();
        self.edges.push(EdgeNode { machine: None, token, state, events: Vec::new(), deadline: None });
        self.start(Node::Edge(twin));
        twin
    }

    pub(crate) fn edge_config(&self, edge: usize) -> EdgeConfig<S> {
        EdgeConfig {
            deployment: self.deployment.clone(),
            group: Some(name(GROUP)),
            token: Some(copy(&self.edges[edge].token)),
            kgcs: Kgcs::single(),
            timing: EdgeTiming::default(),
        }
    }

    pub(crate) fn leader_token(&mut self, text: &str, ordinal: u16) -> IssuedToken<S> {
        self.token(text, Role::Leader { group: name(GROUP), ordinal })
    }

    /// A token to lead another group.
    pub(crate) fn leader_token_of(&mut self, text: &str, group: &str, ordinal: u16) -> IssuedToken<S> {
        self.token(text, Role::Leader { group: name(group), ordinal })
    }

    fn token(&mut self, text: &str, role: Role) -> IssuedToken<S> {
        let grant = TokenGrant {
            name: name(text),
            role,
            groups: vec![name(GROUP)],
            not_after: EPOCH_START + 10_000_000,
            expiry: EPOCH_START + 1_000_000,
        };
        self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap()
    }

    /// The key of a leader, as somebody would have it who stole its disk.
    pub(crate) fn stolen_key(&mut self, leader: usize) -> DroneKeypair<S> {
        let machine = self.leaders[leader].machine.as_ref().unwrap();
        let bytes = machine.checkpoint().into_iter().flat_map(|record| record.as_bytes().to_vec());
        let bytes: Vec<u8> = bytes.collect();
        let public = self.leader_public(leader);
        let encoded = public.encode();
        let at = bytes.windows(encoded.len()).position(|window| window == encoded).unwrap() + encoded.len();
        // The secret follows the public key, with its length before it.
        let len = usize::from(bytes[at]);
        DroneKeypair::restore(&self.deployment, public, &bytes[at + 1..at + 1 + len]).unwrap()
    }

    /// A keypair that the KGC issued, for an adversary's own machine.
    pub(crate) fn issued(&mut self, text: &str, role: Role) -> DroneKeypair<S> {
        let master = MasterSecret::<S>::decode(&self.master).unwrap();
        let (name, groups, not_after) = (name(text), vec![name(GROUP)], EPOCH_START + 10_000_000);
        let identity = Identity { serial: [9; 16], name, role, groups, not_after };
        let secret = SecretValue::generate(&mut self.rng);
        let partial = master.issue_partial_key(&self.deployment, &identity, &secret.public(), &mut self.rng);
        partial.verify(&self.deployment, &identity, &secret).unwrap()
    }

    /// Another key of a drone, as every drone of a quorum can make itself any of several.
    pub(crate) fn another_key(&mut self, identity: &Identity) -> DroneKeypair<S> {
        let master = MasterSecret::<S>::decode(&self.master).unwrap();
        let secret = SecretValue::generate(&mut self.rng);
        let partial = master.issue_partial_key(&self.deployment, identity, &secret.public(), &mut self.rng);
        partial.verify(&self.deployment, identity, &secret).unwrap()
    }

    /// The public key of a leader, as it tells everybody.
    pub(crate) fn leader_public(&self, leader: usize) -> DronePublicKey<S> {
        let told = self.recorded.iter().rev().filter(|flight| flight.from == Node::Leader(leader));
        let public = told.filter_map(|flight| match decode(self, flight) {
            Message::JoinChallenge(challenge) => Some(challenge.leader),
            Message::JoinHello(hello) => DronePublicKey::decode(&hello.drone).ok(),
            _ => None,
        });
        public.take(1).next().unwrap()
    }

    pub(crate) fn alive(&self, node: Node) -> bool {
        match node {
            Node::Kgc => self.kgc.is_some(),
            Node::Leader(leader) => self.leaders[leader].machine.is_some(),
            Node::Edge(edge) => self.edges[edge].machine.is_some(),
        }
    }

    pub(crate) fn connect(&mut self, dialler: Node, listener: Node, route: Route) {
        if !self.alive(dialler) || !self.alive(listener) || self.handles.contains_key(&(dialler, listener)) {
            return;
        }
        for (at, of, route) in [(listener, dialler, Route::Inbound), (dialler, listener, route)] {
            // Feeding the first may have been the end of it.
            if !self.alive(dialler) || !self.alive(listener) {
                return;
            }
            // Leaders dial each other: each has one handle, and the route is the dialler's own.
            let route =
                if matches!((at, of), (Node::Leader(_), Node::Leader(_))) { Route::Leader } else { route };
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Stimulus::Connected(peer, route));
        }
    }

    /// Puts a wall between every node of the one side and every node of the other.
    pub(crate) fn part(&mut self, one: &[Node], other: &[Node]) {
        for a in one {
            for b in other {
                self.walls.extend([(*a, *b), (*b, *a)]);
            }
        }
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// What a message says.
pub(crate) fn decode(world: &World, flight: &Flight) -> Message<S> {
    Message::<S>::decode(&world.deployment, &flight.bytes).unwrap()
}

/// Tokens are not cloned in earnest: a drone has one.
pub(crate) fn copy(token: &IssuedToken<S>) -> IssuedToken<S> {
    IssuedToken::decode(&token.encode()).unwrap()
}
