//! A star on the testbed whose every step is recorded: a KGC, a leader, and edges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use quiver_ainq::{
    Deployment, Epoch, IssuedToken, MasterSecret, Name, OperatorSecretKey, Role, Slot, StrategyKind,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, KgcEvent};
use quiver_group::leader::LeaderTiming;
use quiver_group::{
    Edge, EdgeCommand, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig, LeaderEvent,
};
use quiver_machine::Route;
use quiver_testbed::{LinkFaults, Net, copy_token, name, token_grant};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::suite::{Overheard as S, take_secrets};

pub(crate) const GROUP: &str = "alpha";
pub(crate) type Node = &'static str;

/// Leaders by their ordinal.
pub(crate) static LEADERS: [Node; 2] = ["leader", "deputy"];
const EDGES: [Node; 4] = ["edge-0", "edge-1", "edge-2", "edge-3"];
/// Edges that come at once, as many as follow by wraps (§6.1).
const CROWD: [Node; 10] =
    ["edge-0", "edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6", "edge-7", "edge-8", "edge-9"];
/// Maximum silence of a leader that has a deputy.
const SILENCE: Duration = Duration::from_secs(6);

/// Strategy of a group, and how many lead it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) strategy: StrategyKind,
    pub(crate) shared_medium: bool,
    pub(crate) deputy: bool,
}

impl Plan {
    pub(crate) const FLAT: Self = Self { strategy: StrategyKind::Flat, shared_medium: false, deputy: false };
    pub(crate) const TREE: Self = Self { strategy: StrategyKind::Tree, ..Self::FLAT };
    pub(crate) const SHARED: Self = Self { shared_medium: true, ..Self::TREE };
    pub(crate) const FAILOVER: Self = Self { deputy: true, ..Self::FLAT };
    pub(crate) const TREE_FAILOVER: Self = Self { deputy: true, ..Self::TREE };
    pub(crate) const ALL: [Self; 5] =
        [Self::FLAT, Self::TREE, Self::SHARED, Self::FAILOVER, Self::TREE_FAILOVER];

    /// Leaders of the group, the active one first.
    fn leaders(self) -> &'static [Node] {
        if self.deputy { &LEADERS } else { &LEADERS[..1] }
    }

    fn edges(self) -> &'static [Node] {
        if self.shared_medium { &CROWD } else { &EDGES }
    }
}

/// A step of a run.
#[derive(Clone)]
pub(crate) enum Step {
    /// A node was switched on.
    Started(Node),
    /// A message left.
    Sent { from: Node, to: Node, bytes: Vec<u8> },
    /// A node has its key.
    Enrolled(Node),
    /// The leader was told to evict a drone.
    Evicts(Node),
    /// An edge uses the key of an epoch.
    Activated { at: Node, epoch: Epoch, digest: [u8; 32], slot: Slot },
    /// A node received a message of the group.
    Received { at: Node, channel: Name, data: Vec<u8> },
    /// All members have acknowledged an epoch.
    Delivered { epoch: Epoch, members: usize },
}

/// Length and first bytes of a string, for errors that people read.
struct Start<'a>(&'a [u8]);

impl fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = self;
        write!(f, "{} bytes ", bytes.len())?;
        bytes.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(if bytes.len() > 8 { "…" } else { "" })
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(node) => write!(f, "{node} starts"),
            Self::Sent { from, to, bytes } => write!(f, "{from} to {to}, {:?}", Start(bytes)),
            Self::Enrolled(node) => write!(f, "{node} has its key"),
            Self::Evicts(node) => write!(f, "the leader is told to evict {node}"),
            Self::Activated { at, epoch, digest, slot } => {
                write!(f, "{at} uses {epoch:?} in slot {slot}, D of {:?}", Start(digest))
            }
            Self::Received { at, channel, data } => {
                write!(f, "{at} receives {:?} on {channel:?}", Start(data))
            }
            Self::Delivered { epoch, members } => write!(f, "{members} members have {epoch:?}"),
        }
    }
}

/// A run: its steps, and the pairwise secrets that its machines computed.
pub(crate) struct Recording {
    pub(crate) deployment: Deployment<S>,
    pub(crate) strategy: StrategyKind,
    pub(crate) steps: Vec<Step>,
    pub(crate) secrets: BTreeSet<Vec<u8>>,
    /// Records that leaders have written.
    pub(crate) written: Vec<Vec<u8>>,
}

struct World {
    plan: Plan,
    net: Net<Node>,
    deployment: Deployment<S>,
    tokens: BTreeMap<Node, IssuedToken<S>>,
    steps: Vec<Step>,
    packets: usize,
    events: BTreeMap<Node, usize>,
}

/// Drones enrol and join, keys are renewed, members send, restart, leave and are evicted, and the leader restarts or is
/// followed by its deputy.
pub(crate) fn record(seed: u64, faults: LinkFaults, plan: Plan) -> Recording {
    take_secrets();
    let mut world = World::new(seed, plan);
    world.net.network.set_faults(faults);
    for edge in plan.edges() {
        world.start_edge(edge);
    }
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
    world.edge("edge-2", EdgeCommand::Leave);
    world.run(60);
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
    take_secrets();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut world = World::new(seed, plan);
    world.net.network.set_faults(faults);
    for edge in plan.edges() {
        world.start_edge(edge);
    }
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
        let records = |leader: &Node| self.net.node::<Leader<S>>(*leader).records().to_vec();
        let written =
            self.plan.leaders().iter().flat_map(records).map(|record| record.as_bytes().to_vec()).collect();
        let (deployment, strategy, steps) = (self.deployment, self.plan.strategy, self.steps);
        Recording { deployment, strategy, steps, secrets: take_secrets(), written }
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
        let kgc =
            KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(&mut rng));
        let mut world = Self {
            plan,
            net: Net::new(seed),
            deployment,
            tokens,
            steps: Vec::new(),
            packets: 0,
            events: BTreeMap::new(),
        };
        world.net.skip(Duration::from_secs(100));
        world.net.start("kgc", Kgc::<S>::new(kgc, []).unwrap());
        for leader in plan.leaders() {
            world.start_leader(leader);
        }
        world
    }

    fn start_leader(&mut self, node: Node) {
        self.steps.push(Step::Started(node));
        let records =
            if self.net.has(node) { self.net.node::<Leader<S>>(node).records().to_vec() } else { Vec::new() };
        let config = LeaderConfig {
            strategy: self.plan.strategy,
            shared_medium: self.plan.shared_medium,
            timing: LeaderTiming {
                validity: Duration::from_secs(10_000),
                silence: self.plan.deputy.then_some(SILENCE),
                ..LeaderTiming::default()
            },
            ..LeaderConfig::new(self.deployment.clone(), name(GROUP), Some(copy_token(&self.tokens[node])))
        };
        self.net.subscribe(node);
        self.net.start(node, Leader::<S>::new(config, records).unwrap());
        self.collect();
        self.net.connect(node, "kgc", Route::Kgc);
        self.collect();
        for other in LEADERS.into_iter().filter(|other| *other != node) {
            if self.net.has(other) {
                // Leaders dial each other: each has one handle, and the route is the dialler's own.
                self.net.link(node, other, (Route::Leader, Route::Leader));
                self.collect();
            }
        }
    }

    /// Every edge dials the leader again.
    fn restart_leader(&mut self) {
        self.net.stop("leader");
        self.start_leader("leader");
        for edge in self.plan.edges() {
            self.net.connect(edge, "leader", Route::Leader);
            self.collect();
        }
    }

    fn start_edge(&mut self, edge: Node) {
        self.steps.push(Step::Started(edge));
        let state =
            if self.net.has(edge) { self.net.node::<Edge<S>>(edge).records().last().cloned() } else { None };
        let config =
            EdgeConfig::new(self.deployment.clone(), Some(name(GROUP)), Some(copy_token(&self.tokens[edge])));
        self.net.subscribe(edge);
        self.net.start(edge, Edge::<S>::new(config, state.as_ref()).unwrap());
        self.collect();
        let leaders = self.plan.leaders().iter().map(|leader| (*leader, Route::Leader));
        for (to, route) in [("kgc", Route::Kgc)].into_iter().chain(leaders) {
            self.net.connect(edge, to, route);
            self.collect();
        }
    }

    fn edge(&mut self, edge: Node, command: EdgeCommand) {
        self.net.command::<Edge<S>>(edge, command);
        self.collect();
    }

    fn lead(&mut self, leader: Node, command: LeaderCommand) {
        self.net.command::<Leader<S>>(leader, command);
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
            let told: Vec<Step> = if node == "kgc" {
                self.new_events::<Kgc<S>>(node).into_iter().filter_map(|event| told_by_kgc(&event)).collect()
            } else if LEADERS.contains(&node) {
                self.new_events::<Leader<S>>(node)
                    .into_iter()
                    .filter_map(|event| told_by_leader(node, event))
                    .collect()
            } else {
                self.new_events::<Edge<S>>(node)
                    .into_iter()
                    .filter_map(|event| told_by_edge(node, event))
                    .collect()
            };
            self.steps.extend(told);
        }
        let new = self.net.recorded.get(self.packets..).unwrap_or_default();
        let sent = new.iter().map(|packet| Step::Sent {
            from: packet.from,
            to: packet.to,
            bytes: packet.bytes.clone(),
        });
        self.steps.extend(sent);
        self.packets = self.net.recorded.len();
    }

    fn new_events<M: quiver_machine::Machine<Event: Clone + fmt::Debug> + 'static>(
        &mut self,
        node: Node,
    ) -> Vec<M::Event> {
        let events = &self.net.node::<M>(node).events;
        let seen = self.events.insert(node, events.len()).unwrap_or_default();
        events.get(seen..).unwrap_or_default().to_vec()
    }
}

/// The KGC's own events are not the group's.
fn told_by_kgc(_: &KgcEvent) -> Option<Step> {
    None
}

fn told_by_leader(at: Node, event: LeaderEvent) -> Option<Step> {
    match event {
        LeaderEvent::Enrolled { .. } => Some(Step::Enrolled(at)),
        LeaderEvent::Delivered { epoch, members } => Some(Step::Delivered { epoch, members }),
        LeaderEvent::Message { channel, data, .. } => {
            Some(Step::Received { at, channel, data: data.to_vec() })
        }
        _ => None,
    }
}

fn told_by_edge(at: Node, event: EdgeEvent) -> Option<Step> {
    match event {
        EdgeEvent::Enrolled { .. } => Some(Step::Enrolled(at)),
        EdgeEvent::KeyActivated { epoch, digest, slot } => Some(Step::Activated { at, epoch, digest, slot }),
        EdgeEvent::Message { channel, data, .. } => Some(Step::Received { at, channel, data: data.to_vec() }),
        _ => None,
    }
}
