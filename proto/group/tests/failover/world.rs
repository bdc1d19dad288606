//! A mesh on the testbed: a KGC, leaders that dial one another, and edges that dial every leader. Messages
//! take a while.

use std::cell::RefCell;
use std::time::Duration;

use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, Epoch, Identity, IssuedToken, MasterSecret, OperatorSecretKey,
    Ristretto255, Role,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord};
use quiver_group::leader::{LeaderStatus, LeaderTiming, Stance};
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord,
};
use quiver_machine::{Offence, Route, Snapshot};
use quiver_message::Message;
pub(crate) use quiver_testbed::{EPOCH_START, copy_token as copy, name};
use quiver_testbed::{
    HeaderReader, LinkFaults, Net, NodeSet, PATIENCE, Partition, TestNode, deref_to_net, issue_keypair,
    matching, token_grant,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type S = Ristretto255;
pub(crate) type Packet = quiver_testbed::Packet<Node>;

pub(crate) const GROUP: &str = "alpha";
/// Maximum silence of a leader.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader(usize),
    Edge(usize),
}

/// All machines, and what they are set up with.
pub(crate) struct World {
    net: Net<Node>,
    silence: Duration,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    pub(crate) operator: OperatorSecretKey<S>,
    master: Vec<u8>,
    /// One for each leader.
    pub(crate) leader_tokens: Vec<IssuedToken<S>>,
    /// One for each edge.
    pub(crate) tokens: Vec<IssuedToken<S>>,
    /// Headers of so many of the recorded messages.
    headers: RefCell<(usize, HeaderReader<S>)>,
}

deref_to_net!(World, Node);

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
        let master = master.encode().to_vec();
        let (net, leader_tokens, tokens) = (Net::new(seed), Vec::new(), Vec::new());
        let headers = RefCell::default();
        let mut world =
            Self { net, silence, rng, deployment, operator, master, leader_tokens, tokens, headers };
        world.skip(Duration::from_secs(100));
        world.set_latency(Duration::from_millis(5));
        world.start(Node::Kgc);
        for ordinal in 0..leaders {
            let token = world.leader_token(&format!("leader-{ordinal}"), ordinal as u16);
            world.add_leader(token);
        }
        world
    }

    pub(crate) fn add_leader(&mut self, token: IssuedToken<S>) -> usize {
        let leader = self.leader_tokens.len();
        self.leader_tokens.push(token);
        self.net.add::<Leader<S>>(Node::Leader(leader), Vec::new());
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
        world.run_for(Duration::from_secs(3));
        world
    }

    /// Sets the latency of every message.
    pub(crate) fn set_latency(&mut self, delay: Duration) {
        self.network.set_faults(LinkFaults { delay, ..LinkFaults::INSTANT });
    }

    pub(crate) fn latency(&self) -> Duration {
        self.network.faults().delay
    }

    fn kgc_config(&mut self) -> KgcConfig<S> {
        KgcConfig {
            revocation_validity: 1_000_000,
            ..KgcConfig::single(
                self.deployment.clone(),
                MasterSecret::decode(&self.master).unwrap(),
                vec![self.operator.public()],
                Secret::random(&mut self.rng),
            )
        }
    }

    pub(crate) fn leader_config(&self, leader: usize) -> LeaderConfig<S> {
        LeaderConfig {
            max_members: 2000,
            strategy: crate::STRATEGY,
            shared_medium: crate::SHARED_MEDIUM,
            timing: LeaderTiming {
                validity: Duration::from_secs(10_000),
                silence: Some(self.silence),
                ..LeaderTiming::default()
            },
            ..LeaderConfig::new(self.deployment.clone(), name(GROUP), Some(copy(&self.leader_tokens[leader])))
        }
    }

    pub(crate) fn edge_config(&self, edge: usize) -> EdgeConfig<S> {
        EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), Some(copy(&self.tokens[edge])))
    }

    /// Starts a machine from what it persisted and connects it.
    pub(crate) fn start(&mut self, node: Node) {
        match node {
            Node::Kgc => {
                let records = if self.has(node) { self.kgc_records().to_vec() } else { Vec::new() };
                let machine = Kgc::new(self.kgc_config(), records).unwrap();
                self.net.start(node, machine);
            }
            Node::Leader(leader) => {
                let records = self.leader_records(leader).to_vec();
                let machine = Leader::new(self.leader_config(leader), records).unwrap();
                self.start_leader_with(leader, machine);
            }
            Node::Edge(edge) => {
                let machine = Edge::new(self.edge_config(edge), self.state(edge).as_ref()).unwrap();
                self.subscribe(node);
                self.net.start(node, machine);
            }
        }
        self.connect_all(node);
    }

    pub(crate) fn restart(&mut self, node: Node) {
        self.stop(node);
        self.start(node);
    }

    /// Starts this machine and connects it to nobody.
    pub(crate) fn start_leader_with(&mut self, leader: usize, machine: Leader<S>) {
        self.subscribe(Node::Leader(leader));
        self.net.start(Node::Leader(leader), machine);
    }

    /// Dials whom this node would dial, and lets those dial it who would.
    pub(crate) fn connect_all(&mut self, node: Node) {
        for other in self.ids() {
            for (dialler, listener) in [(node, other), (other, node)] {
                match (dialler, listener) {
                    (Node::Leader(_) | Node::Edge(_), Node::Kgc) => {
                        self.connect(dialler, listener, Route::Kgc);
                    }
                    // Leaders dial each other: each has one handle, and the route is the dialler's own.
                    (Node::Leader(a), Node::Leader(b)) if a != b => {
                        self.link(dialler, listener, (Route::Leader, Route::Leader));
                    }
                    (Node::Edge(_), Node::Leader(_)) => self.connect(dialler, listener, Route::Leader),
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn add_edge(&mut self, text: &str) -> usize {
        let token = self.token(text, Role::Edge);
        self.add_edge_with(token, None)
    }

    /// Another machine that enrols with the token of this edge, at a KGC that has forgotten it: a second key
    /// for one drone, as every drone of a quorum can make itself.
    pub(crate) fn add_edge_under_another_key(&mut self, edge: usize) -> usize {
        let serial = self.tokens[edge].token.statement.id;
        let records = self.node_mut::<Kgc<S>>(Node::Kgc).records_mut();
        records.retain(|record| !matches!(record, KgcRecord::Issued { token_id, .. } if *token_id == serial));
        self.restart(Node::Kgc);
        let token = copy(&self.tokens[edge]);
        self.add_edge_with(token, None)
    }

    fn add_edge_with(&mut self, token: IssuedToken<S>, state: Option<Snapshot>) -> usize {
        let edge = self.tokens.len();
        self.tokens.push(token);
        self.net.add::<Edge<S>>(Node::Edge(edge), state.into_iter().collect());
        self.start(Node::Edge(edge));
        edge
    }

    /// Starts another machine from a copy of what this edge persisted, beside it.
    pub(crate) fn copy_edge(&mut self, edge: usize) -> usize {
        let (token, state) = (copy(&self.tokens[edge]), self.state(edge));
        self.add_edge_with(token, state)
    }

    pub(crate) fn leader_token(&mut self, text: &str, ordinal: u16) -> IssuedToken<S> {
        self.token(text, Role::Leader { group: name(GROUP), ordinal })
    }

    /// A token to lead another group.
    pub(crate) fn leader_token_of(&mut self, text: &str, group: &str, ordinal: u16) -> IssuedToken<S> {
        self.token(text, Role::Leader { group: name(group), ordinal })
    }

    fn token(&mut self, text: &str, role: Role) -> IssuedToken<S> {
        self.operator.issue(&self.deployment, token_grant(text, role, GROUP), &mut self.rng).unwrap()
    }

    /// The key of a leader, as somebody would have it who stole its disk.
    pub(crate) fn stolen_key(&mut self, leader: usize) -> DroneKeypair<S> {
        let bytes =
            self.leader(leader).checkpoint().into_iter().flat_map(|record| record.as_bytes().to_vec());
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
        issue_keypair(&master, &self.deployment, &identity, &mut self.rng)
    }

    /// Another key of a drone, as every drone of a quorum can make itself any of several.
    pub(crate) fn another_key(&mut self, identity: &Identity) -> DroneKeypair<S> {
        let master = MasterSecret::<S>::decode(&self.master).unwrap();
        issue_keypair(&master, &self.deployment, identity, &mut self.rng)
    }

    /// The public key of a leader, as it tells everybody.
    pub(crate) fn leader_public(&self, leader: usize) -> DronePublicKey<S> {
        let told = self.recorded.iter().rev().filter(|packet| packet.from == Node::Leader(leader));
        let public = told.filter_map(|packet| match decode(self, packet) {
            Message::JoinChallenge(challenge) => Some(challenge.leader),
            Message::JoinHello(hello) => DronePublicKey::decode(&hello.drone).ok(),
            _ => None,
        });
        public.take(1).next().unwrap()
    }

    /// Puts a wall between every node of the one side and every node of the other.
    pub(crate) fn part(&mut self, one: &[Node], other: &[Node]) {
        let side = |nodes: &[Node]| NodeSet::only(nodes.iter().copied());
        self.network.part(Partition::both_ways(side(one), side(other)));
    }

    /// Sets a node's wall clock so many seconds ahead.
    pub(crate) fn set_ahead(&mut self, node: Node, seconds: u64) {
        *self.faults(node).skew = seconds.cast_signed();
    }

    pub(crate) fn run_until(&mut self, what: &str, reached: impl FnMut(&Self) -> bool) {
        quiver_testbed::run_until(self, PATIENCE, what, reached);
    }

    pub(crate) fn command_edge(&mut self, edge: usize, command: EdgeCommand) {
        self.command::<Edge<S>>(Node::Edge(edge), command);
    }

    pub(crate) fn command_leader(&mut self, leader: usize, command: LeaderCommand) {
        self.command::<Leader<S>>(Node::Leader(leader), command);
    }

    pub(crate) fn command_kgc(&mut self, command: KgcCommand) {
        self.command::<Kgc<S>>(Node::Kgc, command);
    }

    pub(crate) fn kgc(&self) -> &Kgc<S> {
        self.machine(Node::Kgc)
    }

    pub(crate) fn kgc_records(&self) -> &[KgcRecord] {
        self.node::<Kgc<S>>(Node::Kgc).records()
    }

    pub(crate) fn kgc_events(&self) -> &[KgcEvent] {
        &self.node::<Kgc<S>>(Node::Kgc).events
    }

    pub(crate) fn leader(&self, leader: usize) -> &Leader<S> {
        self.machine(Node::Leader(leader))
    }

    pub(crate) fn leader_node(&self, leader: usize) -> &TestNode<Leader<S>> {
        self.node(Node::Leader(leader))
    }

    pub(crate) fn leader_events(&self, leader: usize) -> &[LeaderEvent] {
        &self.leader_node(leader).events
    }

    pub(crate) fn leader_records(&self, leader: usize) -> &[LeaderRecord] {
        self.leader_node(leader).records()
    }

    pub(crate) fn set_leader_records(&mut self, leader: usize, records: Vec<LeaderRecord>) {
        *self.node_mut::<Leader<S>>(Node::Leader(leader)).records_mut() = records;
    }

    pub(crate) fn edge(&self, edge: usize) -> &Edge<S> {
        self.machine(Node::Edge(edge))
    }

    pub(crate) fn edge_node(&self, edge: usize) -> &TestNode<Edge<S>> {
        self.node(Node::Edge(edge))
    }

    pub(crate) fn edge_nodes(&self) -> impl Iterator<Item = &TestNode<Edge<S>>> {
        (0..self.tokens.len()).map(|edge| self.edge_node(edge))
    }

    pub(crate) fn edge_events(&self, edge: usize) -> &[EdgeEvent] {
        &self.edge_node(edge).events
    }

    /// The newest durable state of an edge.
    pub(crate) fn state(&self, edge: usize) -> Option<Snapshot> {
        self.edge_node(edge).records().last().cloned()
    }

    pub(crate) fn set_state(&mut self, edge: usize, state: Snapshot) {
        *self.node_mut::<Edge<S>>(Node::Edge(edge)).records_mut() = vec![state];
    }

    pub(crate) fn synced(&self, edge: usize) -> bool {
        self.edge_node(edge).machine().is_some_and(|machine| machine.status().synced)
    }

    pub(crate) fn status(&self, leader: usize) -> Option<LeaderStatus> {
        self.leader_node(leader).machine().map(|machine| machine.status())
    }

    /// Leaders in office, by ordinal.
    pub(crate) fn leading(&self) -> Vec<usize> {
        let leads =
            |leader: &usize| self.status(*leader).is_some_and(|status| status.stance == Stance::Leading);
        (0..self.leader_tokens.len()).filter(leads).collect()
    }

    pub(crate) fn epoch(&self, leader: usize) -> Option<Epoch> {
        self.status(leader)?.epoch
    }

    /// The epoch whose roster a deputy holds.
    pub(crate) fn held(&self, deputy: usize) -> Option<Epoch> {
        match self.status(deputy)?.stance {
            Stance::StandingBy { held, .. } => held,
            _ => None,
        }
    }

    /// The key that an edge would use now.
    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let key = self.edge_node(edge).machine()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    pub(crate) fn leader_key(&self, leader: usize) -> Option<Vec<u8>> {
        let key = self.leader_node(leader).machine()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    /// Returns true if all these edges hold this leader's key.
    pub(crate) fn follow(&self, leader: usize, edges: impl IntoIterator<Item = usize>) -> bool {
        let key = self.leader_key(leader);
        key.is_some() && edges.into_iter().all(|edge| self.key(edge) == key)
    }

    pub(crate) fn blamed_by(&self, node: Node) -> Vec<&Offence> {
        match node {
            Node::Kgc => Vec::new(),
            Node::Leader(leader) => self
                .leader_events(leader)
                .iter()
                .filter_map(matching!(LeaderEvent::Blamed { offence, .. } => offence))
                .collect(),
            Node::Edge(edge) => self
                .edge_events(edge)
                .iter()
                .filter_map(matching!(EdgeEvent::Blamed { offence, .. } => offence))
                .collect(),
        }
    }

    /// Number of joins that the leaders granted, all together.
    pub(crate) fn joins(&self) -> usize {
        let events = (0..self.leader_tokens.len()).flat_map(|leader| self.leader_events(leader));
        events.filter(|event| matches!(event, LeaderEvent::Joined { .. })).count()
    }

    /// Number of terms opened, all together.
    pub(crate) fn terms(&self) -> usize {
        let events = (0..self.leader_tokens.len()).flat_map(|leader| self.leader_events(leader));
        let opened = |event: &&LeaderEvent| {
            matches!(event, LeaderEvent::EpochActivated { kind: quiver_ainq::EpochKind::Open, .. })
        };
        events.filter(opened).count()
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
