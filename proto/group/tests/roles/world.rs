//! A star on the testbed: a KGC, a leader, and edges that dial both. Links are instant and sound unless a
//! test says otherwise.

use std::cell::RefCell;
use std::time::Duration;

use quiver_ainq::{
    Deployment, Epoch, IssuedToken, MasterSecret, Name, OperatorSecretKey, Revoked, Ristretto255, Role,
    StrategyKind,
};
use quiver_crypto::Secret;
use quiver_enrolment::kgc::RestoreError;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord};
use quiver_group::leader::LeaderTiming;
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig, LeaderEvent,
};
use quiver_machine::{Machine, Now, Offence, Route, Snapshot};
use quiver_message::{Message, RevocationList};
use quiver_testbed::{HeaderReader, Net, PATIENCE, TestNode, deref_to_net, matching, token_grant};
pub(crate) use quiver_testbed::{copy_token as copy, name};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::beside::{EdgeMachine, LeaderMachine, node, own, whole};

pub(crate) type S = Ristretto255;
pub(crate) type Tamper = quiver_testbed::Tamper<Node>;
pub(crate) type Packet = quiver_testbed::Packet<Node>;

pub(crate) const GROUP: &str = "alpha";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader,
    Edge(usize),
}

/// All machines, and what they are set up with.
pub(crate) struct World {
    net: Net<Node>,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    pub(crate) master: Vec<u8>,
    pub(crate) leader_token: IssuedToken<S>,
    pub(crate) leader_timing: LeaderTiming,
    pub(crate) strategy: StrategyKind,
    pub(crate) shared_medium: bool,
    /// One for each edge.
    pub(crate) tokens: Vec<IssuedToken<S>>,
    /// Headers of so many of the recorded messages.
    headers: RefCell<(usize, HeaderReader<S>)>,
}

deref_to_net!(World, Node);

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("test").unwrap(), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let role = Role::Leader { group: name(GROUP), ordinal: 0 };
        let leader_token = operator.issue(&deployment, token_grant("leader", role, GROUP), &mut rng).unwrap();
        let mut world = Self {
            net: Net::new(seed),
            rng,
            deployment,
            operator,
            master: master.encode().to_vec(),
            leader_token,
            strategy: crate::STRATEGY,
            shared_medium: crate::SHARED_MEDIUM,
            leader_timing: LeaderTiming { validity: Duration::from_secs(10_000), ..LeaderTiming::default() },
            tokens: Vec::new(),
            headers: RefCell::default(),
        };
        world.skip(Duration::from_secs(100));
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
        world.run_for(Duration::from_millis(100));
        world
    }

    /// A KGC with this world's keys and these records.
    pub(crate) fn restored_kgc(&mut self, records: Vec<KgcRecord>) -> Result<Kgc<S>, RestoreError> {
        let config = KgcConfig::single(
            self.deployment.clone(),
            MasterSecret::decode(&self.master).unwrap(),
            vec![self.operator.public()],
            Secret::random(&mut self.rng),
        );
        Kgc::new(config, records)
    }

    pub(crate) fn start_kgc(&mut self) {
        let records = if self.has(Node::Kgc) { self.kgc_records().to_vec() } else { Vec::new() };
        let kgc = self.restored_kgc(records).unwrap();
        self.start(Node::Kgc, kgc);
        if self.alive(Node::Leader) {
            self.connect(Node::Leader, Node::Kgc, Route::Kgc);
        }
        for edge in 0..self.tokens.len() {
            self.connect(Node::Edge(edge), Node::Kgc, Route::Kgc);
        }
    }

    pub(crate) fn leader_config(&self) -> LeaderConfig<S> {
        LeaderConfig {
            max_members: 2000,
            strategy: self.strategy,
            shared_medium: self.shared_medium,
            timing: self.leader_timing,
            ..LeaderConfig::new(self.deployment.clone(), name(GROUP), Some(copy(&self.leader_token)))
        }
    }

    pub(crate) fn start_leader(&mut self) {
        self.start_leader_alone();
        self.dial_leader();
    }

    pub(crate) fn restart_leader(&mut self) {
        self.stop(Node::Leader);
        self.start_leader();
    }

    /// Lets every edge dial the leader.
    pub(crate) fn dial_leader(&mut self) {
        for edge in 0..self.tokens.len() {
            self.connect(Node::Edge(edge), Node::Leader, Route::Leader);
        }
    }

    /// Starts the leader without any edge noticing.
    pub(crate) fn start_leader_alone(&mut self) {
        let records = if self.has(Node::Leader) { self.leader_records().to_vec() } else { Vec::new() };
        let records = records.iter().filter_map(own).cloned();
        let leader = Leader::new(self.leader_config(), records).unwrap();
        self.subscribe(Node::Leader);
        self.start::<LeaderMachine>(Node::Leader, node(leader));
        self.connect(Node::Leader, Node::Kgc, Route::Kgc);
    }

    pub(crate) fn token(&mut self, name: &str) -> IssuedToken<S> {
        let grant = token_grant(name, Role::Edge, GROUP);
        self.operator.issue(&self.deployment, grant, &mut self.rng).unwrap()
    }

    pub(crate) fn add_edge(&mut self, name: &str) -> usize {
        let token = self.token(name);
        self.add_edge_with(token)
    }

    pub(crate) fn add_edge_with(&mut self, token: IssuedToken<S>) -> usize {
        let edge = self.tokens.len();
        self.tokens.push(token);
        self.start_edge(edge);
        edge
    }

    pub(crate) fn edge_config(&self, edge: usize) -> EdgeConfig<S> {
        EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), Some(copy(&self.tokens[edge])))
    }

    pub(crate) fn start_edge(&mut self, edge: usize) {
        let id = Node::Edge(edge);
        let state = if self.has(id) { self.state(edge) } else { None };
        let machine = Edge::new(self.edge_config(edge), state.as_ref()).unwrap();
        self.subscribe(id);
        self.start::<EdgeMachine>(id, node(machine));
        self.connect(id, Node::Kgc, Route::Kgc);
        self.connect(id, Node::Leader, Route::Leader);
    }

    pub(crate) fn restart_edge(&mut self, edge: usize) {
        self.stop(Node::Edge(edge));
        self.start_edge(edge);
    }

    pub(crate) fn run_until(&mut self, what: &str, reached: impl FnMut(&Self) -> bool) {
        self.run_until_in(PATIENCE, what, reached);
    }

    pub(crate) fn run_until_in(
        &mut self,
        patience: Duration,
        what: &str,
        reached: impl FnMut(&Self) -> bool,
    ) {
        quiver_testbed::run_until(self, patience, what, reached);
    }

    pub(crate) fn command_edge(&mut self, edge: usize, command: EdgeCommand) {
        self.command::<EdgeMachine>(Node::Edge(edge), whole(command));
    }

    pub(crate) fn command_leader(&mut self, command: LeaderCommand) {
        self.command::<LeaderMachine>(Node::Leader, whole(command));
    }

    pub(crate) fn command_kgc(&mut self, command: KgcCommand) {
        self.command::<Kgc<S>>(Node::Kgc, command);
    }

    /// Readings of the leader's clocks.
    pub(crate) fn now(&self) -> Now {
        self.clock_of(Node::Leader)
    }

    pub(crate) fn kgc(&self) -> &Kgc<S> {
        self.machine(Node::Kgc)
    }

    pub(crate) fn kgc_records(&self) -> &[KgcRecord] {
        self.node::<Kgc<S>>(Node::Kgc).records()
    }

    pub(crate) fn set_kgc_records(&mut self, records: Vec<KgcRecord>) {
        *self.node_mut::<Kgc<S>>(Node::Kgc).records_mut() = records;
    }

    pub(crate) fn kgc_events(&self) -> &[KgcEvent] {
        &self.node::<Kgc<S>>(Node::Kgc).events
    }

    pub(crate) fn leader(&self) -> &Leader<S> {
        self.machine::<LeaderMachine>(Node::Leader)
    }

    pub(crate) fn leader_records(&self) -> &[<LeaderMachine as Machine>::Record] {
        self.node::<LeaderMachine>(Node::Leader).records()
    }

    pub(crate) fn set_leader_records(&mut self, records: Vec<<LeaderMachine as Machine>::Record>) {
        *self.node_mut::<LeaderMachine>(Node::Leader).records_mut() = records;
    }

    pub(crate) fn leader_events(&self) -> &[<LeaderMachine as Machine>::Event] {
        &self.node::<LeaderMachine>(Node::Leader).events
    }

    pub(crate) fn edge(&self, edge: usize) -> &Edge<S> {
        self.machine::<EdgeMachine>(Node::Edge(edge))
    }

    pub(crate) fn edge_node(&mut self, edge: usize) -> &mut TestNode<EdgeMachine> {
        self.node_mut(Node::Edge(edge))
    }

    pub(crate) fn edge_nodes(&self) -> impl Iterator<Item = &TestNode<EdgeMachine>> {
        (0..self.tokens.len()).map(|edge| self.node::<EdgeMachine>(Node::Edge(edge)))
    }

    pub(crate) fn edge_events(&self, edge: usize) -> &[<EdgeMachine as Machine>::Event] {
        &self.node::<EdgeMachine>(Node::Edge(edge)).events
    }

    /// The newest durable state of an edge.
    pub(crate) fn state(&self, edge: usize) -> Option<Snapshot> {
        self.node::<EdgeMachine>(Node::Edge(edge)).records().last().and_then(own).cloned()
    }

    pub(crate) fn set_state(&mut self, edge: usize, state: Option<Snapshot>) {
        *self.edge_node(edge).records_mut() = state.into_iter().map(whole).collect();
    }

    pub(crate) fn synced(&self, edge: usize) -> bool {
        let machine = self.node::<EdgeMachine>(Node::Edge(edge)).machine();
        machine.is_some_and(|machine| machine.status().synced)
    }

    /// The key that an edge would use now.
    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let machine = self.node::<EdgeMachine>(Node::Edge(edge)).machine()?;
        Some(machine.export(&name("test"))?.expose().to_vec())
    }

    pub(crate) fn leader_key(&self) -> Vec<u8> {
        self.leader().export(&name("test")).unwrap().expose().to_vec()
    }

    pub(crate) fn leader_epoch(&self) -> Epoch {
        self.leader().status().epoch.unwrap()
    }

    /// Returns true if all these edges hold the leader's key.
    pub(crate) fn agree(&self, edges: impl IntoIterator<Item = usize>) -> bool {
        edges.into_iter().all(|edge| self.key(edge) == Some(self.leader_key()))
    }

    pub(crate) fn blamed_by_leader(&self) -> Vec<&Offence> {
        self.leader_events()
            .iter()
            .filter_map(own)
            .filter_map(matching!(LeaderEvent::Blamed { offence, .. } => offence))
            .collect()
    }

    pub(crate) fn blamed_by_edge(&self, edge: usize) -> Vec<&Offence> {
        self.edge_events(edge)
            .iter()
            .filter_map(own)
            .filter_map(matching!(EdgeEvent::Blamed { offence, .. } => offence))
            .collect()
    }

    /// The newest packet of this kind.
    pub(crate) fn newest(&self, wanted: impl Fn(&Packet) -> bool) -> Packet {
        self.recorded.iter().rev().find(|packet| wanted(packet)).unwrap().clone()
    }

    /// Revokes the leader, and gives the message with the list that says so.
    pub(crate) fn revoke_leader(&mut self) -> Vec<u8> {
        let serial = self.leader_token.token.statement.id;
        self.command_kgc(KgcCommand::RevokeDrones(vec![Revoked::unknown(serial)]));
        let list = self
            .kgc_records()
            .iter()
            .rev()
            .find_map(matching!(KgcRecord::RevocationList { list, .. } => list.clone()))
            .unwrap();
        Message::<S>::RevocationList(RevocationList { list }).encode(&self.deployment)
    }
}

/// Decodes a message. A short header is completed by those that were recorded.
pub(crate) fn decode(world: &World, packet: &Packet) -> Message<S> {
    let message = Message::<S>::decode(&world.deployment, &packet.bytes).unwrap();
    if !matches!(message, Message::ShortRekey(_)) {
        return message;
    }
    let (read, headers) = &mut *world.headers.borrow_mut();
    for recorded in world.recorded.get(*read..).unwrap_or_default() {
        headers.note(&world.deployment, &recorded.bytes);
    }
    *read = world.recorded.len();
    headers.read(&world.deployment, message)
}
