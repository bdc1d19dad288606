//! A KGC, leaders and edges whose deployments say a parameter set of ML-KEM each, on the testbed.

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, KemTerm, MasterSecret, OperatorSecretKey, Ristretto255, Role, StrategyKind,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcRecord};
use quiver_group::leader::LeaderTiming;
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderConfig, LeaderEvent, LeaderRecord,
};
use quiver_kem::KemSetting;
use quiver_machine::{Machine, Offence, Route, Snapshot};
use quiver_message::{JoinCiphertext, JoinRequest, KemOffer, Message};
use quiver_testbed::{LinkFaults, Net, PATIENCE, copy_token, deref_to_net, matching, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) type S = Ristretto255;
pub(crate) type Packet = quiver_testbed::Packet<Node>;

pub(crate) const GROUP: &str = "alpha";
/// Maximum silence of a leader among several.
const SILENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Kgc,
    Leader(usize),
    Edge(usize),
}

/// All machines, and what they are set up with.
pub(crate) struct World {
    net: Net<Node>,
    rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
    master: Vec<u8>,
    pub(crate) strategy: StrategyKind,
    pub(crate) shared_medium: bool,
    /// Setting of a node's deployment, unless it is [`KemSetting::MlKem768`].
    pub(crate) settings: BTreeMap<Node, KemSetting>,
    leaders: Vec<IssuedToken<S>>,
    edges: Vec<IssuedToken<S>>,
}

deref_to_net!(World, Node);

impl World {
    /// A KGC and leaders with the ordinals 0, 1, …
    pub(crate) fn new(seed: u64, leaders: usize) -> Self {
        Self::with(seed, leaders, StrategyKind::Flat, false)
    }

    pub(crate) fn with(seed: u64, leaders: usize, strategy: StrategyKind, shared_medium: bool) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let mut world = Self {
            net: Net::new(seed),
            rng,
            deployment,
            operator,
            master: master.encode().to_vec(),
            strategy,
            shared_medium,
            settings: BTreeMap::new(),
            leaders: Vec::new(),
            edges: Vec::new(),
        };
        world.skip(Duration::from_secs(100));
        world.network.set_faults(LinkFaults { delay: Duration::from_millis(5), ..LinkFaults::INSTANT });
        for ordinal in 0..leaders {
            let role = Role::Leader { group: name(GROUP), ordinal: ordinal as u16 };
            let token = world.token(&format!("leader-{ordinal}"), role);
            world.leaders.push(token);
        }
        world.start(Node::Kgc);
        (0..leaders).for_each(|leader| world.start(Node::Leader(leader)));
        world.run_until("a leader leads", |world| world.key_of_leader(0).is_some());
        world
    }

    /// A world whose leader 0 leads and whose `n` edges are members.
    pub(crate) fn grouped(seed: u64, leaders: usize, n: usize) -> Self {
        let mut world = Self::new(seed, leaders);
        world.form(n);
        world
    }

    pub(crate) fn form(&mut self, n: usize) {
        for index in 0..n {
            self.add_edge(&format!("edge-{index}"));
        }
        self.run_until("all edges joined", |world| world.follow(0, 0..n));
        self.run_for(Duration::from_secs(8));
    }

    fn token(&mut self, text: &str, role: Role) -> IssuedToken<S> {
        self.operator.issue(&self.deployment, token_grant(text, role, GROUP), &mut self.rng).unwrap()
    }

    pub(crate) fn setting(&self, node: Node) -> KemSetting {
        self.settings.get(&node).copied().unwrap_or(KemSetting::MlKem768)
    }

    pub(crate) fn add_edge(&mut self, text: &str) -> usize {
        let token = self.token(text, Role::Edge);
        self.edges.push(token);
        let edge = self.edges.len() - 1;
        self.start(Node::Edge(edge));
        edge
    }

    /// Starts a machine from what it persisted, and connects it.
    pub(crate) fn start(&mut self, node: Node) {
        let setting = self.setting(node);
        match node {
            Node::Kgc => {
                let config = KgcConfig {
                    revocation_validity: 10_000_000,
                    ..KgcConfig::single(
                        self.deployment.clone(),
                        MasterSecret::decode(&self.master).unwrap(),
                        vec![self.operator.public()],
                        Secret::random(&mut self.rng),
                    )
                };
                let records: Vec<KgcRecord> = self.records::<Kgc<S>>(node);
                self.net.start(node, Kgc::new(config, records).unwrap());
            }
            Node::Leader(leader) => {
                let silence = (self.leaders.len() > 1).then_some(SILENCE);
                let validity = Duration::from_secs(10_000);
                let token = copy_token(&self.leaders[leader]);
                let config = LeaderConfig {
                    max_members: 2000,
                    strategy: self.strategy,
                    shared_medium: self.shared_medium,
                    timing: LeaderTiming { validity, silence, ..LeaderTiming::default() },
                    ..LeaderConfig::new(self.deployment.clone(), name(GROUP), Some(token))
                };
                let records = self.records::<Leader<S>>(node);
                self.subscribe(node);
                self.net.start(node, Leader::new(config, records).unwrap().with_kem(setting));
            }
            Node::Edge(edge) => {
                let token = copy_token(&self.edges[edge]);
                let config = EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), Some(token));
                let state = self.records::<Edge<S>>(node).pop();
                self.subscribe(node);
                self.net.start(node, Edge::new(config, state.as_ref()).unwrap().with_kem(setting));
            }
        }
        for other in self.ids() {
            for (dialler, listener) in [(node, other), (other, node)] {
                match (dialler, listener) {
                    (Node::Leader(_) | Node::Edge(_), Node::Kgc) => {
                        self.connect(dialler, listener, Route::Kgc);
                    }
                    (Node::Leader(a), Node::Leader(b)) if a != b => {
                        self.link(dialler, listener, (Route::Leader, Route::Leader));
                    }
                    (Node::Edge(_), Node::Leader(_)) => self.connect(dialler, listener, Route::Leader),
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn restart(&mut self, node: Node) {
        self.stop(node);
        self.start(node);
    }

    /// All that a node persisted.
    pub(crate) fn records<M: Machine<Event: std::fmt::Debug, Record: Clone> + 'static>(
        &self,
        node: Node,
    ) -> Vec<M::Record> {
        if self.has(node) { self.node::<M>(node).records().to_vec() } else { Vec::new() }
    }

    pub(crate) fn set_leader_records(&mut self, records: Vec<LeaderRecord>) {
        *self.node_mut::<Leader<S>>(Node::Leader(0)).records_mut() = records;
    }

    pub(crate) fn states(&self, edge: usize) -> Vec<Snapshot> {
        self.records::<Edge<S>>(Node::Edge(edge))
    }

    pub(crate) fn set_states(&mut self, edge: usize, states: Vec<Snapshot>) {
        *self.node_mut::<Edge<S>>(Node::Edge(edge)).records_mut() = states;
    }

    pub(crate) fn run_until(&mut self, what: &str, reached: impl FnMut(&Self) -> bool) {
        quiver_testbed::run_until(self, PATIENCE, what, reached);
    }

    pub(crate) fn command_edge(&mut self, edge: usize, command: EdgeCommand) {
        self.command::<Edge<S>>(Node::Edge(edge), command);
    }

    pub(crate) fn leader(&self, leader: usize) -> &Leader<S> {
        self.machine(Node::Leader(leader))
    }

    pub(crate) fn edge(&self, edge: usize) -> &Edge<S> {
        self.machine(Node::Edge(edge))
    }

    pub(crate) fn synced(&self, edge: usize) -> bool {
        let machine = self.node::<Edge<S>>(Node::Edge(edge)).machine();
        machine.is_some_and(|machine| machine.status().synced)
    }

    fn key_of_leader(&self, leader: usize) -> Option<Vec<u8>> {
        let key = self.node::<Leader<S>>(Node::Leader(leader)).machine()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    pub(crate) fn key(&self, edge: usize) -> Option<Vec<u8>> {
        let key = self.node::<Edge<S>>(Node::Edge(edge)).machine()?.export(&name("test"))?;
        Some(key.expose().to_vec())
    }

    /// Returns true if all these edges hold this leader's key.
    pub(crate) fn follow(&self, leader: usize, edges: impl IntoIterator<Item = usize>) -> bool {
        let key = self.key_of_leader(leader);
        key.is_some() && edges.into_iter().all(|edge| self.key(edge) == key)
    }

    pub(crate) fn leader_events(&self, leader: usize) -> &[LeaderEvent] {
        &self.node::<Leader<S>>(Node::Leader(leader)).events
    }

    pub(crate) fn edge_events(&self, edge: usize) -> &[EdgeEvent] {
        &self.node::<Edge<S>>(Node::Edge(edge)).events
    }

    pub(crate) fn blamed_by_edge(&self, edge: usize) -> Vec<&Offence> {
        let events = self.edge_events(edge).iter();
        events.filter_map(matching!(EdgeEvent::Blamed { offence, .. } => offence)).collect()
    }

    pub(crate) fn decode(&self, packet: &Packet) -> Option<Message<S>> {
        Message::decode(&self.deployment, &packet.bytes).ok()
    }

    /// Messages sent since so many messages.
    pub(crate) fn sent_since(&self, start: usize) -> impl Iterator<Item = (&Packet, Message<S>)> {
        let sent = self.recorded.iter().skip(start);
        sent.filter_map(|packet| Some((packet, self.decode(packet)?)))
    }

    /// The requests to join since so many messages.
    pub(crate) fn requests_since(&self, start: usize) -> Vec<JoinRequest> {
        let sent = self.sent_since(start).map(|(_, message)| message);
        sent.filter_map(|message| match message {
            Message::JoinRequest(request) => Some(request),
            _ => None,
        })
        .collect()
    }

    pub(crate) fn ciphertexts_since(&self, start: usize) -> Vec<JoinCiphertext> {
        let sent = self.sent_since(start).map(|(_, message)| message);
        sent.filter_map(|message| match message {
            Message::JoinCiphertext(ciphertext) => Some(ciphertext),
            _ => None,
        })
        .collect()
    }

    /// The second factor that the newest header of a leader names.
    pub(crate) fn kem(&self, leader: usize) -> Option<KemTerm> {
        let mut newest = None;
        for (packet, message) in self.sent_since(0) {
            let header = match message {
                Message::Rekey(rekey) => rekey.header,
                Message::Welcome(welcome) => welcome.header,
                _ => continue,
            };
            if packet.from == Node::Leader(leader) {
                newest = header.core.kem;
            }
        }
        newest
    }
}

/// The encapsulation keys that requests bring.
pub(crate) fn keys(requests: &[JoinRequest]) -> Vec<&Vec<u8>> {
    requests
        .iter()
        .filter_map(matching!(JoinRequest { kem: Some(KemOffer::Key { key, .. }), .. } => key))
        .collect()
}
