//! A star on the testbed whose every step is recorded: a KGC, a leader, and edges.

use std::collections::{BTreeMap, BTreeSet};
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

const EDGES: [Node; 4] = ["edge-0", "edge-1", "edge-2", "edge-3"];

/// A step of a run.
#[derive(Clone, Debug)]
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

/// A run: its steps, and the pairwise secrets that its machines computed.
pub(crate) struct Recording {
    pub(crate) deployment: Deployment<S>,
    pub(crate) steps: Vec<Step>,
    pub(crate) secrets: BTreeSet<Vec<u8>>,
}

struct World {
    net: Net<Node>,
    deployment: Deployment<S>,
    tokens: BTreeMap<Node, IssuedToken<S>>,
    steps: Vec<Step>,
    packets: usize,
    events: BTreeMap<Node, usize>,
}

/// Drones enrol and join, keys are renewed, members send, restart, leave and are evicted, and the leader restarts.
pub(crate) fn record(seed: u64, faults: LinkFaults) -> Recording {
    take_secrets();
    let mut world = World::new(seed);
    world.net.network.set_faults(faults);
    for edge in EDGES {
        world.start_edge(edge);
    }
    world.run(60);
    world.lead(LeaderCommand::Rekey);
    world.run(20);
    for signed in [true, false] {
        world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"up".to_vec(), signed });
    }
    world.lead(LeaderCommand::Send { channel: name("orders"), data: b"home".to_vec() });
    world.run(5);
    world.net.stop("edge-0");
    world.start_edge("edge-0");
    world.run(60);
    world.edge("edge-0", EdgeCommand::Send { channel: name("chat"), data: b"again".to_vec(), signed: true });
    world.edge("edge-2", EdgeCommand::Leave);
    world.run(60);
    world.steps.push(Step::Evicts("edge-3"));
    world.lead(LeaderCommand::Evict(name("edge-3")));
    world.run(30);
    world.restart_leader();
    world.run(120);
    world.lead(LeaderCommand::Rekey);
    world.run(60);
    Recording { deployment: world.deployment, steps: world.steps, secrets: take_secrets() }
}

/// A number below this one.
fn below(rng: &mut ChaCha20Rng, bound: u32) -> usize {
    (rng.next_u32() % bound) as usize
}

/// As [`record`], but what happens when is drawn from the seed.
pub(crate) fn record_random(seed: u64, faults: LinkFaults) -> Recording {
    take_secrets();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut world = World::new(seed);
    world.net.network.set_faults(faults);
    for edge in EDGES {
        world.start_edge(edge);
    }
    world.run(60);
    for _ in 0..16 {
        let edge = EDGES[below(&mut rng, 4)];
        match below(&mut rng, 7) {
            0 => world.lead(LeaderCommand::Rekey),
            1 => world.lead(LeaderCommand::Send {
                channel: name("orders"),
                data: rng.next_u64().to_be_bytes().to_vec(),
            }),
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
    Recording { deployment: world.deployment, steps: world.steps, secrets: take_secrets() }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("test"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let mut tokens = BTreeMap::new();
        for node in EDGES.into_iter().chain(["leader"]) {
            let leads = Role::Leader { group: name(GROUP), ordinal: 0 };
            let role = if node == "leader" { leads } else { Role::Edge };
            let grant = token_grant(node, role, GROUP);
            tokens.insert(node, operator.issue(&deployment, grant, &mut rng).unwrap());
        }
        let kgc =
            KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::random(&mut rng));
        let mut world = Self {
            net: Net::new(seed),
            deployment,
            tokens,
            steps: Vec::new(),
            packets: 0,
            events: BTreeMap::new(),
        };
        world.net.skip(Duration::from_secs(100));
        world.net.start("kgc", Kgc::<S>::new(kgc, []).unwrap());
        world.start_leader();
        world
    }

    fn start_leader(&mut self) {
        self.steps.push(Step::Started("leader"));
        let records = if self.net.has("leader") {
            self.net.node::<Leader<S>>("leader").records().to_vec()
        } else {
            Vec::new()
        };
        let config = LeaderConfig {
            strategy: StrategyKind::Flat,
            timing: LeaderTiming { validity: Duration::from_secs(10_000), ..LeaderTiming::default() },
            ..LeaderConfig::new(
                self.deployment.clone(),
                name(GROUP),
                Some(copy_token(&self.tokens["leader"])),
            )
        };
        self.net.subscribe("leader");
        self.net.start("leader", Leader::<S>::new(config, records).unwrap());
        self.collect();
        self.net.connect("leader", "kgc", Route::Kgc);
        self.collect();
    }

    /// Every edge dials the leader again.
    fn restart_leader(&mut self) {
        self.net.stop("leader");
        self.start_leader();
        for edge in EDGES {
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
        for (to, route) in [("kgc", Route::Kgc), ("leader", Route::Leader)] {
            self.net.connect(edge, to, route);
            self.collect();
        }
    }

    fn edge(&mut self, edge: Node, command: EdgeCommand) {
        self.net.command::<Edge<S>>(edge, command);
        self.collect();
    }

    fn lead(&mut self, command: LeaderCommand) {
        self.net.command::<Leader<S>>("leader", command);
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
            } else if node == "leader" {
                self.new_events::<Leader<S>>(node).into_iter().filter_map(told_by_leader).collect()
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

    fn new_events<M: quiver_machine::Machine<Event: Clone + std::fmt::Debug> + 'static>(
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

fn told_by_leader(event: LeaderEvent) -> Option<Step> {
    match event {
        LeaderEvent::Enrolled { .. } => Some(Step::Enrolled("leader")),
        LeaderEvent::Delivered { epoch, members } => Some(Step::Delivered { epoch, members }),
        LeaderEvent::Message { channel, data, .. } => {
            Some(Step::Received { at: "leader", channel, data: data.to_vec() })
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
