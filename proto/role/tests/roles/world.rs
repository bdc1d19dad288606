//! A star of machines with a virtual clock: every message is delivered in order unless a test says otherwise.

mod looking;
mod running;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, StrategyKind, Suite,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_message::Message;
use quiver_role::edge::EdgeTiming;
use quiver_role::kgc::RestoreError;
use quiver_role::leader::LeaderTiming;
use quiver_role::{
    Edge, EdgeConfig, EdgeEvent, Kgc, KgcConfig, KgcEvent, KgcRecord, Kgcs, Leader, LeaderConfig,
    LeaderEvent, LeaderRecord, Misdeed, Now, Peer, Route, Snapshot, Via,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use self::running::Stimulus;

pub(crate) type S = Ristretto255;

/// 2027-01-01, in seconds since 1970.
pub(crate) const EPOCH_START: u64 = 1_798_761_600;
pub(crate) const GROUP: &str = "alpha";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader,
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

/// An edge and what a driver would keep for it.
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
    /// Added to the wall clock.
    pub(crate) skew: i64,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    pub(crate) master: Vec<u8>,
    pub(crate) kgc: Option<Kgc<S>>,
    pub(crate) kgc_records: Vec<KgcRecord>,
    pub(crate) kgc_events: Vec<KgcEvent>,
    kgc_deadline: Option<Duration>,
    pub(crate) leader: Option<Leader<S>>,
    pub(crate) leader_token: IssuedToken<S>,
    pub(crate) leader_records: Vec<LeaderRecord>,
    pub(crate) leader_events: Vec<LeaderEvent>,
    leader_deadline: Option<Duration>,
    pub(crate) leader_timing: LeaderTiming,
    pub(crate) strategy: StrategyKind,
    pub(crate) edges: Vec<EdgeNode>,
    queue: VecDeque<Flight>,
    /// Who sees whom under which handle.
    handles: BTreeMap<(Node, Node), Peer>,
    next_peer: u64,
    pub(crate) cut: BTreeSet<Node>,
    pub(crate) tamper: Option<Tamper>,
    /// This node dies after so many more outputs: what it had yet to persist or send is lost.
    pub(crate) doom: Option<(Node, usize)>,
    pub(crate) blocked: Vec<(Node, Node)>,
    /// Who was to be cut off for a while, by whom and for what. It is not, so that the test goes on.
    pub(crate) penalized: Vec<(Node, Node, Misdeed)>,
    /// Everything that was ever transmitted, for tests with an adversary that listens.
    pub(crate) recorded: Vec<Flight>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let role = Role::Leader { group: Name::new(GROUP).unwrap(), ordinal: 0 };
        let leader_token = token(&operator, &deployment, "leader", role, &mut rng);
        let mut world = Self {
            clock: Duration::from_secs(100),
            skew: 0,
            rng,
            deployment,
            operator,
            master: master.encode().to_vec(),
            kgc: None,
            kgc_records: Vec::new(),
            kgc_events: Vec::new(),
            kgc_deadline: None,
            leader: None,
            leader_token,
            leader_records: Vec::new(),
            leader_events: Vec::new(),
            leader_deadline: None,
            strategy: crate::STRATEGY,
            leader_timing: LeaderTiming { validity: Duration::from_secs(10_000), ..LeaderTiming::default() },
            edges: Vec::new(),
            queue: VecDeque::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            cut: BTreeSet::new(),
            tamper: None,
            doom: None,
            blocked: Vec::new(),
            penalized: Vec::new(),
            recorded: Vec::new(),
        };
        world.start_kgc();
        world.start_leader();
        world
    }

    /// A world whose leader serves and whose `n` edges are members in one epoch.
    pub(crate) fn grouped(seed: u64, n: usize) -> Self {
        let mut world = Self::new(seed);
        for index in 0..n {
            world.add_edge(&format!("edge-{index}"));
        }
        world.run_until("all edges joined", |world| (0..n).all(|edge| world.synced(edge)));
        world.run(Duration::from_millis(100));
        world
    }

    pub(crate) fn now(&self) -> Now {
        let unix = (EPOCH_START + self.clock.as_secs()).checked_add_signed(self.skew).unwrap();
        Now { monotonic: self.clock, unix }
    }

    /// A KGC with this world's keys and these records.
    pub(crate) fn restart_kgc_with(&mut self, records: Vec<KgcRecord>) -> Result<Kgc<S>, RestoreError> {
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: MasterSecret::decode(&self.master).unwrap().into(),
            id: 1,
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 86_400,
        };
        Kgc::new(config, records)
    }

    pub(crate) fn start_kgc(&mut self) {
        self.kgc = Some(self.restart_kgc_with(self.kgc_records.clone()).unwrap());
        self.settle(Node::Kgc);
        if self.leader.is_some() {
            self.connect(Node::Leader, Node::Kgc, Route::Kgc);
        }
        for edge in 0..self.edges.len() {
            self.connect(Node::Edge(edge), Node::Kgc, Route::Kgc);
        }
    }

    pub(crate) fn leader_config(&self) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.deployment.clone(),
            group: Name::new(GROUP).unwrap(),
            token: Some(copy(&self.leader_token)),
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 2000,
            strategy: self.strategy,
            timing: self.leader_timing,
        }
    }

    pub(crate) fn start_leader(&mut self) {
        self.start_leader_alone();
        self.dial_leader();
    }

    /// Lets every edge dial the leader.
    pub(crate) fn dial_leader(&mut self) {
        for edge in 0..self.edges.len() {
            self.connect(Node::Edge(edge), Node::Leader, Route::Leader);
        }
    }

    /// Starts the leader without any edge noticing.
    pub(crate) fn start_leader_alone(&mut self) {
        self.leader = Some(Leader::new(self.leader_config(), self.leader_records.clone()).unwrap());
        self.settle(Node::Leader);
        self.connect(Node::Leader, Node::Kgc, Route::Kgc);
    }

    pub(crate) fn crash(&mut self, node: Node) {
        match node {
            Node::Kgc => self.kgc = None,
            Node::Leader => self.leader = None,
            Node::Edge(edge) => self.edges[edge].machine = None,
        }
        self.disconnect(node);
    }

    /// Cuts all connections of a node.
    pub(crate) fn disconnect(&mut self, node: Node) {
        let gone: Vec<_> = self.handles.keys().copied().filter(|(a, b)| *a == node || *b == node).collect();
        for (at, of) in gone {
            let peer = self.handles.remove(&(at, of)).unwrap();
            self.feed(at, Stimulus::Disconnected(peer));
        }
        self.queue.retain(|flight| flight.from != node && flight.to != node);
    }

    pub(crate) fn token(&mut self, name: &str) -> IssuedToken<S> {
        token(&self.operator, &self.deployment, name, Role::Edge, &mut self.rng)
    }

    pub(crate) fn add_edge(&mut self, name: &str) -> usize {
        let token = self.token(name);
        self.add_edge_with(token)
    }

    pub(crate) fn add_edge_with(&mut self, token: IssuedToken<S>) -> usize {
        let edge = self.edges.len();
        self.edges.push(EdgeNode { machine: None, token, state: None, events: Vec::new(), deadline: None });
        self.start_edge(edge);
        edge
    }

    pub(crate) fn edge_config(&self, edge: usize) -> EdgeConfig<S> {
        EdgeConfig {
            deployment: self.deployment.clone(),
            group: Some(Name::new(GROUP).unwrap()),
            token: Some(copy(&self.edges[edge].token)),
            kgcs: Kgcs::single(),
            timing: EdgeTiming::default(),
        }
    }

    pub(crate) fn start_edge(&mut self, edge: usize) {
        let machine = Edge::new(self.edge_config(edge), self.edges[edge].state.as_ref()).unwrap();
        self.edges[edge].machine = Some(machine);
        self.settle(Node::Edge(edge));
        self.connect(Node::Edge(edge), Node::Kgc, Route::Kgc);
        self.connect(Node::Edge(edge), Node::Leader, Route::Leader);
    }

    fn alive(&self, node: Node) -> bool {
        match node {
            Node::Kgc => self.kgc.is_some(),
            Node::Leader => self.leader.is_some(),
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
            let peer = Peer(self.next_peer);
            self.next_peer += 1;
            self.handles.insert((at, of), peer);
            self.feed(at, Stimulus::Connected(peer, route));
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

fn token<T: Suite>(
    operator: &OperatorSecretKey<T>,
    deployment: &Deployment<T>,
    name: &str,
    role: Role,
    rng: &mut ChaCha20Rng,
) -> IssuedToken<T> {
    let grant = TokenGrant {
        name: Name::new(name).unwrap(),
        role,
        groups: vec![Name::new(GROUP).unwrap()],
        not_after: EPOCH_START + 10_000_000,
        expiry: EPOCH_START + 1_000_000,
    };
    operator.issue(deployment, grant, rng).unwrap()
}
