//! A star of machines with a virtual clock: every message is delivered in order unless a test says otherwise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, Suite, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_role::edge::EdgeTiming;
use quiver_role::leader::LeaderTiming;
use quiver_role::{
    Destination, Edge, EdgeCommand, EdgeConfig, EdgeEvent, Input, Kgc, KgcCommand, KgcConfig, KgcEvent,
    KgcRecord, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord, Machine, Now, Output, Peer,
    Route, Snapshot,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

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
    master: Vec<u8>,
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
            leader_timing: LeaderTiming { validity: Duration::from_secs(10_000), ..LeaderTiming::default() },
            edges: Vec::new(),
            queue: VecDeque::new(),
            handles: BTreeMap::new(),
            next_peer: 1,
            cut: BTreeSet::new(),
            tamper: None,
            doom: None,
            blocked: Vec::new(),
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

    pub(crate) fn start_kgc(&mut self) {
        let config = KgcConfig {
            deployment: self.deployment.clone(),
            master: MasterSecret::decode(&self.master).unwrap(),
            id: 1,
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.rng),
            revocation_validity: 86_400,
        };
        self.kgc = Some(Kgc::new(config, self.kgc_records.clone()));
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
            kgcs: vec![1],
            allow: BTreeSet::new(),
            max_members: 1000,
            timing: self.leader_timing,
        }
    }

    pub(crate) fn start_leader(&mut self) {
        self.start_leader_alone();
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
            self.feed(
                at,
                |()| Input::Disconnected { peer },
                |()| Input::Disconnected { peer },
                |()| Input::Disconnected { peer },
            );
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
            kgcs: vec![1],
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
            self.feed(
                at,
                |_| Input::Connected { peer, route },
                |_| Input::Connected { peer, route },
                |_| Input::Connected { peer, route },
            );
        }
    }

    pub(crate) fn command(&mut self, edge: usize, command: EdgeCommand) {
        self.feed(
            Node::Edge(edge),
            |_| unreachable!(),
            |_| unreachable!(),
            move |()| Input::Command(command.clone()),
        );
    }

    pub(crate) fn lead(&mut self, command: LeaderCommand) {
        self.feed(
            Node::Leader,
            |_| unreachable!(),
            move |()| Input::Command(command.clone()),
            |_| unreachable!(),
        );
    }

    pub(crate) fn rule(&mut self, command: KgcCommand) {
        self.feed(
            Node::Kgc,
            move |()| Input::Command(command.clone()),
            |_| unreachable!(),
            |_| unreachable!(),
        );
    }

    /// Gives bytes to a machine as if `from` had sent them.
    pub(crate) fn inject(&mut self, from: Node, to: Node, bytes: &[u8]) {
        self.queue.push_back(Flight { from, to, bytes: bytes.to_vec() });
    }

    fn feed<'a>(
        &mut self,
        node: Node,
        kgc: impl Fn(()) -> Input<'a, KgcCommand>,
        leader: impl Fn(()) -> Input<'a, LeaderCommand>,
        edge: impl Fn(()) -> Input<'a, EdgeCommand>,
    ) {
        let now = self.now();
        match node {
            Node::Kgc => {
                if let Some(machine) = &mut self.kgc {
                    machine.handle_input(now, kgc(()), &mut self.rng);
                }
            }
            Node::Leader => {
                if let Some(machine) = &mut self.leader {
                    machine.handle_input(now, leader(()), &mut self.rng);
                }
            }
            Node::Edge(index) => {
                if let Some(machine) = &mut self.edges[index].machine {
                    machine.handle_input(now, edge(()), &mut self.rng);
                }
            }
        }
        self.settle(node);
    }

    /// Drains a machine's outputs as a driver would.
    fn settle(&mut self, node: Node) {
        let mut drained = Drained { budget: usize::MAX, flights: Vec::new(), blocked: Vec::new() };
        if let Some((doomed, budget)) = self.doom.filter(|(doomed, _)| *doomed == node) {
            drained.budget = budget;
            self.doom = Some((doomed, 0));
        }
        match node {
            Node::Kgc => {
                let Some(machine) = &mut self.kgc else { return };
                self.kgc_deadline = drained.drain(machine, &mut self.kgc_records, &mut self.kgc_events);
            }
            Node::Leader => {
                let Some(machine) = &mut self.leader else { return };
                self.leader_deadline =
                    drained.drain(machine, &mut self.leader_records, &mut self.leader_events);
            }
            Node::Edge(index) => {
                let edge = &mut self.edges[index];
                let Some(machine) = &mut edge.machine else { return };
                let mut states = Vec::new();
                edge.deadline = drained.drain(machine, &mut states, &mut edge.events);
                edge.state = states.pop().or(edge.state.take());
            }
        }
        let Drained { budget, flights, blocked } = drained;
        let dies = self.doom.is_some_and(|(doomed, _)| doomed == node) && budget == 0;
        if let Some((doomed, left)) = &mut self.doom
            && *doomed == node
        {
            *left = budget;
        }
        for peer in blocked {
            if let Some(other) = self.node(node, peer) {
                self.blocked.push((node, other));
            }
        }
        for (to, bytes) in flights {
            for to in self.targets(node, to) {
                let flight = Flight { from: node, to, bytes: bytes.clone() };
                self.recorded.push(flight.clone());
                let delivered = match &mut self.tamper {
                    Some(tamper) => tamper(flight),
                    None => vec![flight],
                };
                self.queue.extend(delivered);
            }
        }
        if dies {
            self.doom = None;
            let sent = std::mem::take(&mut self.queue);
            self.crash(node);
            // What it had sent before it died is on its way.
            self.queue = sent;
        }
    }

    fn node(&self, at: Node, peer: Peer) -> Option<Node> {
        self.handles.iter().find(|((a, _), handle)| *a == at && **handle == peer).map(|((_, of), _)| *of)
    }

    fn targets(&self, from: Node, to: Destination) -> Vec<Node> {
        match to {
            Destination::Peer(peer) => self.node(from, peer).into_iter().collect(),
            Destination::Group => {
                let edges = (0..self.edges.len()).map(Node::Edge);
                let members = edges.chain([Node::Leader]).filter(|node| *node != from && self.alive(*node));
                members
                    .filter(|node| self.handles.contains_key(&(*node, Node::Leader)) || *node == Node::Leader)
                    .collect()
            }
        }
    }

    /// Delivers one message or advances the clock to the next deadline, not beyond `end`. Returns false at the end.
    fn step(&mut self, end: Duration) -> bool {
        if let Some(flight) = self.queue.pop_front() {
            let Flight { from, to, bytes } = flight;
            if self.cut.contains(&from) || self.cut.contains(&to) {
                return true;
            }
            // Gossip comes from whoever passed it on: the leader is the hub of the star.
            let via = if self.handles.contains_key(&(to, from)) { from } else { Node::Leader };
            let Some(peer) = self.handles.get(&(to, via)).copied() else {
                return true;
            };
            let input = |()| Input::Received { from: peer, bytes: &bytes };
            self.feed(
                to,
                |()| Input::Received { from: peer, bytes: &bytes },
                |()| Input::Received { from: peer, bytes: &bytes },
                input,
            );
            return true;
        }
        let edges = self.edges.iter().enumerate().map(|(index, edge)| (Node::Edge(index), edge.deadline));
        let others = [(Node::Kgc, self.kgc_deadline), (Node::Leader, self.leader_deadline)];
        let next = edges.chain(others).filter(|(node, _)| self.alive(*node));
        let next = next.filter_map(|(node, deadline)| Some((deadline?, node))).min();
        match next {
            Some((deadline, node)) if deadline <= end => {
                self.clock = self.clock.max(deadline);
                self.feed(node, |()| Input::Timeout, |()| Input::Timeout, |()| Input::Timeout);
                true
            }
            _ => {
                self.clock = end;
                false
            }
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 1_000_000, "the machines never come to rest");
        }
    }

    pub(crate) fn run_until(&mut self, what: &str, mut reached: impl FnMut(&Self) -> bool) {
        let end = self.clock + Duration::from_secs(300);
        while !reached(self) {
            assert!(
                self.step(end),
                "not reached in 300 s: {what}; leader {:?}",
                self.leader_events.iter().rev().take(5).collect::<Vec<_>>()
            );
        }
    }

    pub(crate) fn synced(&self, edge: usize) -> bool {
        self.edges[edge].machine.as_ref().is_some_and(|machine| machine.status().synced)
    }

    /// The key that an edge would use now.
    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let key = self.edges[edge].machine.as_ref()?.export(&Name::new("test").unwrap())?;
        Some(key.expose().to_vec())
    }

    pub(crate) fn leader_key(&self) -> Vec<u8> {
        self.leader.as_ref().unwrap().export(&Name::new("test").unwrap()).unwrap().expose().to_vec()
    }

    pub(crate) fn leader_epoch(&self) -> quiver_ainq::Epoch {
        self.leader.as_ref().unwrap().status().epoch.unwrap()
    }

    /// Whether all these edges hold the leader's key.
    pub(crate) fn agree(&self, edges: impl IntoIterator<Item = usize>) -> bool {
        edges.into_iter().all(|edge| self.key(edge) == Some(self.leader_key()))
    }

    pub(crate) fn blamed_by_leader(&self) -> Vec<&quiver_role::Offence> {
        let blamed = self.leader_events.iter().filter_map(|event| match event {
            LeaderEvent::Blamed { offence, .. } => Some(offence),
            _ => None,
        });
        blamed.collect()
    }

    pub(crate) fn blamed_by_edge(&self, edge: usize) -> Vec<&quiver_role::Offence> {
        let blamed = self.edges[edge].events.iter().filter_map(|event| match event {
            EdgeEvent::Blamed { offence, .. } => Some(offence),
            _ => None,
        });
        blamed.collect()
    }
}

/// Tokens are not cloned in earnest: a drone has one.
pub(crate) fn copy(token: &IssuedToken<S>) -> IssuedToken<S> {
    IssuedToken::decode(&token.encode()).unwrap()
}

/// What came out of a machine before its budget of outputs was used up.
struct Drained {
    budget: usize,
    flights: Vec<(Destination, Vec<u8>)>,
    blocked: Vec<Peer>,
}

impl Drained {
    fn drain<M: Machine>(
        &mut self,
        machine: &mut M,
        records: &mut Vec<M::Record>,
        events: &mut Vec<M::Event>,
    ) -> Option<Duration> {
        loop {
            let output = machine.poll_output();
            if let Output::Timeout(deadline) = output {
                return deadline;
            }
            if self.budget == 0 {
                return None;
            }
            self.budget -= 1;
            match output {
                Output::Persist(record) => records.push(record),
                Output::Transmit { to, payload } => self.flights.push((to, payload)),
                Output::Event(event) => events.push(event),
                Output::Block(peer) => self.blocked.push(peer),
                Output::Timeout(_) => unreachable!(),
            }
        }
    }
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
