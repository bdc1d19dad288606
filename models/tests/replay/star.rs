//! A star on the testbed whose every step is recorded: a KGC, a leader, and edges.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quiver_abke::Authority;
use quiver_admission::certifying::CertificationTerms;
use quiver_admission::gate::GateTiming;
use quiver_admission::{
    AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, AnonymousConfig, AnonymousEdge,
    AnonymousEvent, Demand, PolicyStatement, SignedPolicy,
};
use quiver_ainq::{
    Deployment, EpochKeys, IssuedToken, KgcId, MasterSecret, OperatorSecretKey, Purpose, QuorumStatement,
    Role, SecretScalar, StrategyKind, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_datagram::{Config, Datagrams, Event, Payload, PayloadOrigin, Priority};
use quiver_enrolment::{Kgc, KgcConfig, Kgcs, MasterShare};
use quiver_garble::policy::Schema;
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderCommand, LeaderConfig};
use quiver_kem::KemSetting;
use quiver_machine::{Machine, Now, Route};
use quiver_quorum::{PublicShares, QuorumParameters, SecretShare, SigningPackage};
use quiver_testbed::{EPOCH_START, LinkFaults, Net, copy_token, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::recording::{
    Certification, Epochs, Exchanges, GROUP, Group, Node, Recording, Step, told_by_edge, told_by_leader,
};
use crate::suite::{Overheard as S, take_products, take_secrets};
use crate::wire;

/// Leaders by their ordinal.
static LEADERS: [Node; 2] = ["leader", "deputy"];
/// KGCs of a quorum, by their number less one.
static KGCS: [Node; 3] = ["kgc-1", "kgc-2", "kgc-3"];
/// KGCs of the quorum that issue together.
const THRESHOLD: usize = 2;
const EDGES: [Node; 4] = ["edge-0", "edge-1", "edge-2", "edge-3"];
/// Edges that come at once, as many as follow by wraps (§6.1).
const CROWD: [Node; 10] =
    ["edge-0", "edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8", "edge-9"];
/// Maximum silence of a leader that has a deputy.
const SILENCE: Duration = Duration::from_secs(6);
/// Members that send datagrams.
const SPEAKERS: [Node; 3] = ["leader", "edge-0", "edge-1"];
/// Length of a period of credentials, in which a run ends.
const PERIOD: Duration = Duration::from_secs(100 * 86_400);

/// Strategy of a group, how many lead it, and what else there is.
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) strategy: StrategyKind,
    pub(crate) shared_medium: bool,
    pub(crate) deputy: bool,
    /// A second factor of pairwise secrets.
    pub(crate) kem: bool,
    /// A quorum of KGCs in the place of one.
    pub(crate) quorum: bool,
    /// Members exchange datagrams, too.
    pub(crate) datagrams: bool,
    /// Drones join by a policy, without their names.
    pub(crate) anonymous: bool,
}

impl Plan {
    pub(crate) const FLAT: Self = Self {
        strategy: StrategyKind::Flat,
        shared_medium: false,
        deputy: false,
        kem: false,
        quorum: false,
        datagrams: false,
        anonymous: false,
    };
    pub(crate) const TREE: Self = Self { strategy: StrategyKind::Tree, ..Self::FLAT };
    pub(crate) const SHARED: Self = Self { shared_medium: true, ..Self::TREE };
    pub(crate) const FAILOVER: Self = Self { deputy: true, ..Self::FLAT };
    pub(crate) const TREE_FAILOVER: Self = Self { deputy: true, ..Self::TREE };
    pub(crate) const KEM: Self = Self { kem: true, ..Self::FAILOVER };
    pub(crate) const QUORUM: Self = Self { quorum: true, ..Self::FLAT };
    pub(crate) const DATAGRAMS: Self = Self { datagrams: true, ..Self::TREE };
    pub(crate) const ANONYMOUS: Self = Self { anonymous: true, ..Self::FLAT };
    pub(crate) const ALL: [Self; 9] = [
        Self::FLAT,
        Self::TREE,
        Self::SHARED,
        Self::FAILOVER,
        Self::TREE_FAILOVER,
        Self::KEM,
        Self::QUORUM,
        Self::DATAGRAMS,
        Self::ANONYMOUS,
    ];

    /// Leaders of the group, the active one first.
    fn leaders(self) -> &'static [Node] {
        if self.deputy { &LEADERS } else { &LEADERS[..1] }
    }

    /// The group that the rules are told of.
    fn group(self) -> Group {
        Group {
            leaders: LEADERS.to_vec(),
            kgcs: self.kgcs().to_vec(),
            threshold: if self.quorum { THRESHOLD } else { 1 },
            strategy: self.strategy,
            kem: self.kem,
            anonymous: self.anonymous,
            two_keys: None,
            twins: BTreeMap::new(),
        }
    }

    fn edges(self) -> &'static [Node] {
        if self.shared_medium { &CROWD } else { &EDGES }
    }

    fn kgcs(self) -> &'static [Node] {
        if self.quorum { &KGCS } else { &["kgc"] }
    }
}

struct World {
    plan: Plan,
    net: Net<Node>,
    rng: ChaCha20Rng,
    deployment: Deployment<S>,
    master: MasterSecret<S>,
    tokens: BTreeMap<Node, IssuedToken<S>>,
    steps: Vec<Step>,
    packets: usize,
    events: BTreeMap<Node, usize>,
    exchanges: Exchanges,
    epochs: Epochs,
    datagrams: BTreeMap<Node, Datagrams<S>>,
    authority: Option<VerifiedAuthority<S>>,
}

/// Drones enrol and join, keys are renewed, members send, restart, leave and are evicted, and the leader
/// restarts or is followed by its deputy.
pub(crate) fn record(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    if plan.anonymous {
        return record_anonymous(seed, faults, plan);
    }
    let mut world = World::begin(seed, faults, plan);
    world.run(60);
    world.lead("leader", LeaderCommand::Rekey);
    world.run(20);
    for signed in [true, false] {
        world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"up".to_vec(), signed });
    }
    world.lead("leader", LeaderCommand::Send { channel: name("orders"), data: b"home".to_vec() });
    world.run(5);
    world.net.stop("edge-0");
    world.start_edge("edge-0");
    world.run(60);
    world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"again".to_vec(), signed: true });
    if plan.datagrams {
        world.exchange_datagrams();
        world.lead("leader", LeaderCommand::Rekey);
        world.run(20);
        world.exchange_datagrams();
    }
    world.edge("edge-2", EdgeCommand::Leave);
    world.run(60);
    if plan.kem {
        // A drone that comes back names what it and the leader have.
        world.edge("edge-2", EdgeCommand::Join(name(GROUP)));
        world.run(60);
        world.restart_leader();
        world.run(60);
    }
    world.steps.push(Step::Evicts("edge-3"));
    world.lead("leader", LeaderCommand::Evict(name("edge-3")));
    world.run(30);
    let leader = if plan.deputy {
        world.net.stop("leader");
        "deputy"
    } else {
        world.restart_leader();
        "leader"
    };
    world.run(120);
    world.lead(leader, LeaderCommand::Rekey);
    world.run(60);
    if plan.deputy {
        // It hears of the higher term, and stands by.
        world.restart_leader();
        world.run(60);
        world
            .edge("edge-1", EdgeCommand::Send { channel: name("chat"), data: b"on".to_vec(), signed: false });
        world.run(5);
    }
    world.recording()
}

/// Drones join by a policy, keys are renewed, members send, ask, leave and are evicted, and the leader
/// restarts.
fn record_anonymous(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    let mut world = World::begin(seed, faults, plan);
    // Under loss a run may end before its drone is admitted, and the next begins after a while.
    world.run(240);
    for _ in 0..2 {
        world.lead("leader", LeaderCommand::Rekey);
        world.run(20);
    }
    world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"up".to_vec(), signed: false });
    world.lead("leader", LeaderCommand::Send { channel: name("orders"), data: b"home".to_vec() });
    world.run(5);
    world.edge("edge-0", EdgeCommand::CatchUp);
    world.run(5);
    world.edge("edge-2", EdgeCommand::Leave);
    world.run(30);
    // One that is a member by now.
    let slot_of = |edge: &Node| world.net.machine::<AnonymousEdge<S>>(edge).status().slot;
    let evicted = ["edge-3", "edge-1", "edge-0"].into_iter().find_map(|edge| Some((edge, slot_of(&edge)?)));
    // Under loss nobody may be one.
    if let Some((evicted, slot)) = evicted {
        world.steps.push(Step::Evicts(evicted));
        world.lead("leader", LeaderCommand::EvictSlot(slot));
    }
    world.run(30);
    // Its members are forgotten, and apply again.
    for edge in ["edge-0", "edge-1"] {
        world.net.stop(edge);
    }
    world.restart_leader();
    for edge in ["edge-0", "edge-1"] {
        world.start_edge(edge);
    }
    world.run(60);
    world.lead("leader", LeaderCommand::Rekey);
    world.run(20);
    world.recording()
}

/// A number below this one.
fn below(rng: &mut ChaCha20Rng, bound: u32) -> usize {
    (rng.next_u32() % bound) as usize
}

/// Records a run as [`record`] does, of which the seed decides what happens when.
pub(crate) fn record_random(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut world = World::begin(seed, faults, plan);
    world.run(60);
    for _ in 0..16 {
        let edge = EDGES[below(&mut rng, 4)];
        match below(&mut rng, 7) {
            0 => world.lead("leader", LeaderCommand::Rekey),
            1 => world.lead(
                "leader",
                LeaderCommand::Send { channel: name("orders"), data: rng.next_u64().to_be_bytes().to_vec() },
            ),
            2 => {
                let (channel, data, signed) =
                    (name("chat"), rng.next_u64().to_be_bytes().to_vec(), below(&mut rng, 2) == 1);
                world.edge(edge, EdgeCommand::Send { channel, data, signed });
            }
            3 => {
                world.net.stop(edge);
                world.start_edge(edge);
            }
            4 => world.edge(edge, EdgeCommand::Leave),
            5 => world.edge(edge, EdgeCommand::Join(name(GROUP))),
            _ => world.restart_leader(),
        }
        world.run(1 + below(&mut rng, 40) as u64);
    }
    world.recording()
}

/// Shares of a master secret, and the statement about them that its holders sign.
fn deal(
    deployment: &Deployment<S>,
    master: &MasterSecret<S>,
    rng: &mut ChaCha20Rng,
) -> (Vec<SecretShare<S>>, QuorumStatement<S>) {
    let parameters = QuorumParameters::new(KGCS.len() as u16, THRESHOLD as u16).unwrap();
    let (shares, public): (Vec<SecretShare<S>>, PublicShares<S>) =
        quiver_quorum::dealer::split(master, parameters, rng).unwrap();
    let signers = &shares[..THRESHOLD];
    let drawn: Vec<_> = signers.iter().map(|share| share.commit(rng).unwrap()).collect();
    let commitments = signers.iter().zip(&drawn).map(|(share, (_, commitment))| (share.kgc(), *commitment));
    let message = Purpose::Quorum.message(deployment, &public.encode());
    let package = SigningPackage::new(public.version(), message, commitments).unwrap();
    let parts = signers.iter().zip(drawn);
    let parts = parts.map(|(share, (nonces, _))| (share.kgc(), share.sign(nonces, &package).unwrap()));
    let signature = public.aggregate_statement(&package, &parts.collect()).unwrap();
    let statement = QuorumStatement::new(public.encode(), signature).unwrap();
    (shares, statement)
}

fn terms() -> CertificationTerms {
    CertificationTerms::new(Schema::parse("medic: bool, pilot: bool").unwrap(), PERIOD).unwrap()
}

impl World {
    fn recording(self) -> Recording {
        let records = |leader: &Node| match self.plan.anonymous {
            true => self.net.node::<AdmittingLeader<S>>(*leader).records().to_vec(),
            false => self.net.node::<Leader<S>>(*leader).records().to_vec(),
        };
        let written =
            self.plan.leaders().iter().flat_map(records).map(|record| record.as_bytes().to_vec()).collect();
        let slots = || [self.certification().key().fingerprint()].into();
        let certification =
            self.authority.clone().map(|authority| Certification { authority, slots: slots() });
        Recording {
            group: self.plan.group(),
            deployment: self.deployment,
            steps: self.steps,
            secrets: take_secrets(),
            products: take_products(),
            shared: self.exchanges.shared,
            ephemeral: self.exchanges.ephemeral,
            certification,
            opened: self.epochs.opened(),
            silent: self.epochs.silent(),
            lies: std::collections::BTreeSet::new(),
            written,
        }
    }

    /// All KGCs and leaders, and edges that are switched on.
    fn begin(seed: u64, faults: LinkFaults, plan: Plan) -> Self {
        take_secrets();
        take_products();
        let mut world = Self::new(seed, plan);
        world.net.network.set_faults(faults);
        for edge in plan.edges() {
            world.start_edge(edge);
        }
        world
    }

    fn new(seed: u64, plan: Plan) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let mut tokens = BTreeMap::new();
        for node in plan.edges().iter().chain(plan.leaders()).copied() {
            let ordinal = LEADERS.iter().position(|leader| *leader == node);
            let leads = |ordinal: usize| Role::Leader { group: name(GROUP), ordinal: ordinal as u16 };
            let role = ordinal.map_or(Role::Edge, leads);
            let grant = token_grant(node, role, GROUP);
            tokens.insert(node, operator.issue(&deployment, grant, &mut rng).unwrap());
        }
        let authority = plan.anonymous.then(|| {
            let point = SecretScalar::generate(&mut rng).public();
            let statement = terms().statement(name("skills"), point).unwrap();
            master.sign_authority(&deployment, statement, &mut rng).unwrap().verify(&deployment).unwrap()
        });
        let mut world = Self {
            plan,
            net: Net::new(seed),
            rng,
            deployment,
            master,
            tokens,
            steps: Vec::new(),
            packets: 0,
            events: BTreeMap::new(),
            exchanges: Exchanges::default(),
            epochs: Epochs::default(),
            datagrams: BTreeMap::new(),
            authority,
        };
        world.net.skip(Duration::from_secs(100));
        world.start_kgcs(vec![operator.public()]);
        for leader in plan.leaders() {
            world.start_leader(leader);
        }
        world
    }

    fn start_kgcs(&mut self, operators: Vec<quiver_ainq::OperatorPublicKey<S>>) {
        let (deployment, rng) = (self.deployment.clone(), &mut self.rng);
        if !self.plan.quorum {
            let master = MasterSecret::decode(&self.master.encode()).unwrap();
            let config = KgcConfig::single(deployment, master, operators, Secret::random(rng));
            self.net.start("kgc", Kgc::<S>::new(config, []).unwrap());
            return;
        }
        let (shares, statement) = deal(&deployment, &self.master, rng);
        for (node, share) in KGCS.into_iter().zip(shares) {
            let id: KgcId = share.kgc();
            let config = KgcConfig {
                deployment: deployment.clone(),
                master: MasterShare::new(&deployment, share, &statement).unwrap().into(),
                id,
                operators: operators.clone(),
                cookie_key: Secret::random(rng),
                revocation_validity: 86_400,
            };
            self.net.start(node, Kgc::<S>::new(config, []).unwrap());
        }
    }

    fn drone_kgcs(&self) -> Kgcs<S> {
        if self.plan.quorum { Kgcs::quorum((1..=KGCS.len() as u16).collect()) } else { Kgcs::single() }
    }

    fn kem(&self) -> KemSetting {
        if self.plan.kem { KemSetting::MlKem768 } else { KemSetting::None }
    }

    fn start_leader(&mut self, node: Node) {
        self.steps.push(Step::Started(node));
        let config = LeaderConfig {
            strategy: self.plan.strategy,
            shared_medium: self.plan.shared_medium,
            kgcs: self.drone_kgcs(),
            timing: LeaderTiming {
                validity: Duration::from_secs(10_000),
                silence: self.plan.deputy.then_some(SILENCE),
                ..LeaderTiming::default()
            },
            ..LeaderConfig::new(self.deployment.clone(), name(GROUP), Some(copy_token(&self.tokens[node])))
        };
        self.net.subscribe(node);
        if let Some(authority) = self.authority.clone() {
            self.start_admitting(node, config, authority);
        } else {
            let records = self.records::<Leader<S>>(node);
            let leader = Leader::<S>::new(config, records).unwrap().with_kem(self.kem());
            self.net.start(node, leader);
        }
        self.collect();
        for kgc in self.plan.kgcs() {
            self.net.connect(node, kgc, Route::Kgc);
            self.collect();
        }
        for other in LEADERS.into_iter().filter(|other| *other != node) {
            if self.net.has(other) {
                // Leaders dial each other: each has one handle, and the route is the dialler's own.
                self.net.link(node, other, (Route::Leader, Route::Leader));
                self.collect();
            }
        }
    }

    /// A leader that admits whoever shows that it is a medic and a pilot, and the slot keys of the period.
    fn start_admitting(&mut self, node: Node, config: LeaderConfig<S>, authority: VerifiedAuthority<S>) {
        let policy = PolicyStatement {
            authority: *authority.fingerprint(),
            group: name(GROUP),
            name: name("medics"),
            not_after: EPOCH_START + 2 * PERIOD.as_secs(),
            text: "medic and pilot".into(),
        };
        let policy = SignedPolicy::sign(&self.master, &self.deployment, policy, &mut self.rng).unwrap();
        let policy = policy.verify(&self.deployment).unwrap();
        let demand = Demand { policy, authority, timing: GateTiming { workers: 0, ..GateTiming::default() } };
        let leader = Leader::new(config, self.records::<AdmittingLeader<S>>(node)).unwrap();
        let leader = AdmittingLeader::from(leader).demanding(demand, self.net.clock().unix).unwrap();
        self.net.start(node, leader);
        let keys = self.certification().key().clone();
        self.net.command::<AdmittingLeader<S>>(node, AdmittingLeaderCommand::SlotKeys(keys));
    }

    fn certification(&self) -> Authority {
        let period = terms().period_at(self.net.clock().unix);
        Authority::derive(&Secret::new([9; 32]), period, terms().schema().bits()).unwrap()
    }

    fn records<M: Machine<Event: fmt::Debug, Record: Clone> + 'static>(&self, node: Node) -> Vec<M::Record> {
        if self.net.has(node) { self.net.node::<M>(node).records().to_vec() } else { Vec::new() }
    }

    /// Every edge dials the leader again.
    fn restart_leader(&mut self) {
        self.net.stop("leader");
        self.start_leader("leader");
        for edge in self.plan.edges() {
            if self.net.alive(edge) {
                self.net.connect(edge, "leader", Route::Leader);
                self.collect();
            }
        }
    }

    fn start_edge(&mut self, edge: Node) {
        self.steps.push(Step::Started(edge));
        self.net.subscribe(edge);
        if let Some(authority) = self.authority.clone() {
            let attributes = terms().schema().encode(&[("medic", 1), ("pilot", 1)]).unwrap();
            let credential = self.certification().certify(&attributes, &mut self.rng).unwrap();
            let config = AnonymousConfig {
                deployment: self.deployment.clone(),
                group: name(GROUP),
                authority,
                credential,
                period: terms().period_at(self.net.clock().unix),
                revocations: None,
                most: 8,
                patience: Duration::from_secs(120),
                timing: EdgeTiming::default(),
                kem: self.kem(),
            };
            let state = self.records::<AnonymousEdge<S>>(edge);
            self.net.start(edge, AnonymousEdge::<S>::new(config, state.last()).unwrap());
        } else {
            let token = Some(copy_token(&self.tokens[edge]));
            let config = EdgeConfig {
                kgcs: self.drone_kgcs(),
                ..EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), token)
            };
            let state = self.records::<Edge<S>>(edge);
            self.net.start(edge, Edge::<S>::new(config, state.last()).unwrap().with_kem(self.kem()));
        }
        self.collect();
        // A drone without a name does not show itself to the KGC.
        let kgcs = if self.plan.anonymous { &[] } else { self.plan.kgcs() };
        let kgcs = kgcs.iter().map(|kgc| (*kgc, Route::Kgc));
        let leaders = self.plan.leaders().iter().map(|leader| (*leader, Route::Leader));
        for (to, route) in kgcs.chain(leaders) {
            self.net.connect(edge, to, route);
            self.collect();
        }
    }

    fn edge(&mut self, edge: Node, command: EdgeCommand) {
        if self.plan.anonymous {
            self.net.command::<AnonymousEdge<S>>(edge, command);
        } else {
            self.net.command::<Edge<S>>(edge, command);
        }
        self.collect();
    }

    fn lead(&mut self, leader: Node, command: LeaderCommand) {
        if self.plan.anonymous {
            self.net.command::<AdmittingLeader<S>>(leader, command.into());
        } else {
            self.net.command::<Leader<S>>(leader, command);
        }
        self.collect();
    }

    fn run(&mut self, seconds: u64) {
        let end = self.net.time() + Duration::from_secs(seconds);
        while self.net.step(end) {
            self.collect();
        }
        self.collect();
    }

    /// Takes up what happened since: what nodes tell, and then what left them.
    fn collect(&mut self) {
        for node in self.net.ids() {
            let told: Vec<Step> = if node.starts_with("kgc") {
                // The KGC's own events are not the group's.
                Vec::new()
            } else if LEADERS.contains(&node) {
                let events = if self.plan.anonymous {
                    let of_leader = |event| match event {
                        AdmittingLeaderEvent::Leader(event) => Some(event),
                        AdmittingLeaderEvent::Denied { .. } => None,
                    };
                    self.new_events::<AdmittingLeader<S>>(node).into_iter().filter_map(of_leader).collect()
                } else {
                    self.new_events::<Leader<S>>(node)
                };
                events.iter().for_each(|event| self.epochs.told_by_leader(event));
                events.into_iter().filter_map(|event| told_by_leader(node, event)).collect()
            } else {
                let events = if self.plan.anonymous {
                    let of_edge = |event| match event {
                        AnonymousEvent::Edge(event) => Some(event),
                        _ => None,
                    };
                    self.new_events::<AnonymousEdge<S>>(node).into_iter().filter_map(of_edge).collect()
                } else {
                    self.new_events::<Edge<S>>(node)
                };
                events.into_iter().filter_map(|event| told_by_edge(node, event)).collect()
            };
            self.steps.extend(told);
        }
        let new = self.net.recorded.get(self.packets..).unwrap_or_default();
        for packet in new {
            if let Ok(message) = wire::decode(&self.deployment, &packet.bytes) {
                self.epochs.see(&message);
                if self.plan.kem || self.plan.anonymous {
                    self.exchanges.see(packet.from, &message);
                }
            }
            self.steps.push(Step::Sent { from: packet.from, to: packet.to, bytes: packet.bytes.clone() });
        }
        self.packets = self.net.recorded.len();
        for edge in self.plan.edges().iter().filter(|_| self.plan.anonymous) {
            if self.net.has(edge) {
                let rng = self.net.node::<AnonymousEdge<S>>(edge).generator();
                self.exchanges.before.insert(edge, rng);
            }
        }
        for leader in self.plan.leaders().iter().filter(|_| self.plan.kem) {
            if self.net.has(leader) {
                let rng = self.net.node::<Leader<S>>(leader).generator();
                self.exchanges.before.insert(leader, rng);
            }
        }
    }

    fn epoch_keys(&self, node: Node, now: Now) -> Option<EpochKeys<S>> {
        if LEADERS.contains(&node) {
            self.net.machine::<Leader<S>>(node).epoch_keys(now)
        } else {
            self.net.machine::<Edge<S>>(node).epoch_keys(now)
        }
    }

    /// Members send datagrams of every kind: signed and not, alone and several together, announcements,
    /// manifests.
    fn exchange_datagrams(&mut self) {
        let begin = self.net.time();
        for node in SPEAKERS {
            let keys = self.epoch_keys(node, self.net.clock_of(node)).expect("a member");
            let config = Config { manifest_every: Some(Duration::from_secs(1)), ..Config::default() };
            let machine =
                self.datagrams.entry(node).or_insert_with(|| Datagrams::new(config, self.deployment.clone()));
            machine.set_epoch(begin, keys, &mut self.rng);
        }
        for tenth in 0..25 {
            let now = begin + tenth * Duration::from_millis(100);
            for node in SPEAKERS {
                let machine = self.datagrams.get_mut(node).expect("it speaks");
                // Two at once travel together.
                for (number, sign) in [(0, false), (4, false), (4, false), (8, true), (12, true), (12, true)]
                {
                    if number == tenth {
                        let bytes = format!("{node} {tenth} {sign} {begin:?}").into_bytes();
                        machine.send(now, Payload { bytes, priority: Priority::Command, sign }).unwrap();
                    }
                }
                machine.handle_timeout(now);
                self.answer(node, now);
                while let Some(bytes) =
                    self.datagrams.get_mut(node).and_then(|machine| machine.poll_datagram(now))
                {
                    self.steps.push(Step::Datagram { from: node, bytes: bytes.clone() });
                    for other in SPEAKERS.into_iter().filter(|other| *other != node) {
                        self.datagrams.get_mut(other).expect("it speaks").handle_datagram(now, &bytes);
                        self.answer(other, now);
                    }
                    self.answer(node, now);
                }
            }
        }
    }

    /// Signs what a member's datagrams need signed, and takes up what it hears.
    fn answer(&mut self, node: Node, now: Duration) {
        let (clock, leads) = (self.net.clock_of(node), LEADERS.contains(&node));
        let machine = self.datagrams.get_mut(node).expect("it speaks");
        while let Some(event) = machine.poll_event() {
            match event {
                Event::SignatureWanted(wanted) => {
                    let signature = if leads {
                        self.net.machine::<Leader<S>>(node).sign_datagram(&wanted.statement, &mut self.rng)
                    } else {
                        self.net.machine::<Edge<S>>(node).sign_datagram(&wanted.statement, &mut self.rng)
                    };
                    machine.provide_signature(now, wanted.id, &signature.expect("a member"));
                }
                Event::SignerAnnounced { slot, drone } => {
                    let may = if leads {
                        self.net.machine::<Leader<S>>(node).may_sign_datagrams(clock, slot, &drone)
                    } else {
                        self.net.machine::<Edge<S>>(node).may_sign_datagrams(clock, slot, &drone)
                    };
                    may.unwrap();
                    machine.allow_signer(now, slot, &drone.handle());
                }
                Event::Received { slot, bytes, source } => {
                    let signer = match source {
                        PayloadOrigin::Member => None,
                        PayloadOrigin::Signed { name, .. } => Some(name),
                    };
                    self.steps.push(Step::Heard { at: node, slot, signer, data: bytes });
                }
                _ => {}
            }
        }
    }

    fn new_events<M: Machine<Event: Clone + fmt::Debug> + 'static>(&mut self, node: Node) -> Vec<M::Event> {
        let events = &self.net.node::<M>(node).events;
        let seen = self.events.insert(node, events.len()).unwrap_or_default();
        events.get(seen..).unwrap_or_default().to_vec()
    }
}
