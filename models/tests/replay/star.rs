//! A star on the testbed whose every step is recorded: a KGC, a leader, and edges. Each feature has a module of its
//! own.

mod admission;
mod datagrams;
mod quorum;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, OperatorSecretKey, Role, StrategyKind, VerifiedAuthority,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, Kgcs};
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderCommand, LeaderConfig};
use quiver_kem::KemSetting;
use quiver_machine::{Machine, Route};
use quiver_testbed::{LinkFaults, Net, copy_token, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::recording::{
    Epochs, Exchanges, GROUP, Group, Node, Recording, Step, told_by_edge, told_by_leader,
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
    datagrams: datagrams::Speakers,
    authority: Option<VerifiedAuthority<S>>,
}

/// Drones enrol and join, keys are renewed, members send, restart, leave and are evicted, and the leader
/// restarts or is followed by its deputy.
pub(crate) fn record(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    if plan.anonymous {
        return admission::record(seed, faults, plan);
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

impl World {
    fn recording(self) -> Recording {
        let records = |leader: Node| match self.plan.anonymous {
            true => self.records_of_admitting(leader),
            false => self.records::<Leader<S>>(leader),
        };
        let written = self
            .plan
            .leaders()
            .iter()
            .copied()
            .flat_map(records)
            .map(|record| record.as_bytes().to_vec())
            .collect();
        let certification = self.authority.clone().map(|authority| self.certification(authority));
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
        let authority = plan.anonymous.then(|| admission::authority(&deployment, &master, &mut rng));
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
            datagrams: datagrams::Speakers::new(),
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
        let keys = quorum::signing_keys(&deployment, &self.master, rng);
        for ((node, id), master) in KGCS.into_iter().zip(1..).zip(keys) {
            let config = KgcConfig {
                deployment: deployment.clone(),
                master,
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
            self.start_anonymous(edge, authority);
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
            self.command_anonymous(edge, command);
        } else {
            self.net.command::<Edge<S>>(edge, command);
        }
        self.collect();
    }

    fn lead(&mut self, leader: Node, command: LeaderCommand) {
        if self.plan.anonymous {
            self.command_admitting(leader, command);
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
                    self.new_events_of_admitting(node)
                } else {
                    self.new_events::<Leader<S>>(node)
                };
                events.iter().for_each(|event| self.epochs.told_by_leader(event));
                events.into_iter().filter_map(|event| told_by_leader(node, event)).collect()
            } else {
                let events = if self.plan.anonymous {
                    self.new_events_of_anonymous(node)
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
                let rng = self.anonymous_generator(edge);
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

    fn new_events<M: Machine<Event: Clone + fmt::Debug> + 'static>(&mut self, node: Node) -> Vec<M::Event> {
        let events = &self.net.node::<M>(node).events;
        let seen = self.events.insert(node, events.len()).unwrap_or_default();
        events.get(seen..).unwrap_or_default().to_vec()
    }
}
