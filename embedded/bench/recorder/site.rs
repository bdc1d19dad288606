//! A KGC, a leader and drones without a network: every message arrives, and the clock advances when none is
//! under way.

use std::collections::VecDeque;
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, StrategyKind,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeConfig, EdgeEvent, Leader, LeaderCommand, LeaderConfig};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

type S = Ristretto255;

/// 2027-01-01, in seconds since 1970.
pub(super) const UNIX: u64 = 1_798_761_600;
pub(super) const GROUP: &str = "alpha";

/// Handles of the two services; a drone's is its place and these two more.
const KGC: Peer = Peer(0);
const LEADER: Peer = Peer(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchNode {
    Kgc,
    Leader,
    Drone(usize),
}

impl BenchNode {
    const fn handle(self) -> Peer {
        match self {
            Self::Kgc => KGC,
            Self::Leader => LEADER,
            Self::Drone(place) => Peer(place as u64 + 2),
        }
    }
}

/// An input of a machine, as recorded.
#[derive(Clone, Debug)]
pub(super) enum RecordedInput {
    Timeout,
    Connected(BenchNode, Route),
    Received(BenchNode, Via, Vec<u8>),
}

/// An input of a drone.
#[derive(Clone, Debug)]
pub(super) struct InputRecord {
    pub(super) at: Duration,
    pub(super) input: RecordedInput,
    /// True if a new key is in use by it.
    pub(super) activates: bool,
}

/// A drone, its driver's state, and its inputs since they are recorded.
pub(super) struct RecordedDrone {
    pub(super) edge: Edge<S>,
    rng: ChaCha20Rng,
    state: Option<Snapshot>,
    deadline: Option<Duration>,
    pub(super) keys: usize,
    pub(super) inputs: Vec<InputRecord>,
}

pub(super) struct RecordingSite {
    pub(super) clock: Duration,
    pub(super) deployment: Deployment<S>,
    rng: ChaCha20Rng,
    operator: OperatorSecretKey<S>,
    kgc: Kgc<S>,
    leader: Leader<S>,
    leader_deadline: Option<Duration>,
    pub(super) drones: Vec<RecordedDrone>,
    queue: VecDeque<(BenchNode, BenchNode, Via, Vec<u8>)>,
}

impl RecordingSite {
    pub(super) fn new(strategy: StrategyKind) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(Name::new("bench").unwrap(), master.public());
        let operator = OperatorSecretKey::generate(&mut rng);
        let kgc =
            KgcConfig::single(deployment.clone(), master, vec![operator.public()], Secret::new([7; 32]));
        let group = Name::new(GROUP).unwrap();
        let role = Role::Leader { group: group.clone(), ordinal: 0 };
        let leader = LeaderConfig {
            max_members: 2000,
            strategy,
            timing: LeaderTiming { validity: Duration::from_secs(100_000), ..LeaderTiming::default() },
            ..LeaderConfig::new(
                deployment.clone(),
                group,
                Some(token(&operator, &deployment, "leader", role, &mut rng)),
            )
        };
        let mut site = Self {
            clock: Duration::ZERO,
            deployment,
            rng,
            operator,
            kgc: Kgc::new(kgc, []).unwrap(),
            leader: Leader::new(leader, Vec::new()).unwrap(),
            leader_deadline: None,
            drones: Vec::new(),
            queue: VecDeque::new(),
        };
        site.feed(BenchNode::Leader, &RecordedInput::Timeout);
        site.connect(BenchNode::Leader, BenchNode::Kgc, Route::Kgc);
        site.run(Duration::from_secs(1));
        site
    }

    /// A drone that enrols; it does not know the leader yet.
    pub(super) fn enrol(&mut self) -> usize {
        let place = self.drones.len();
        let token =
            token(&self.operator, &self.deployment, &format!("drone-{place}"), Role::Edge, &mut self.rng);
        let edge = Edge::new(self.config(Some(token)), None).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        rng.set_stream(place as u64 + 1);
        self.drones.push(RecordedDrone {
            edge,
            rng,
            state: None,
            deadline: None,
            keys: 0,
            inputs: Vec::new(),
        });
        self.connect(BenchNode::Drone(place), BenchNode::Kgc, Route::Kgc);
        self.deliver();
        assert!(self.drones[place].edge.keypair().is_some(), "drone {place} has not enrolled");
        place
    }

    fn config(&self, token: Option<IssuedToken<S>>) -> EdgeConfig<S> {
        EdgeConfig::new(self.deployment.clone(), Some(Name::new(GROUP).unwrap()), token)
    }

    /// Starts a drone again from what was stored, with a generator of this seed; from here on it is recorded.
    pub(super) fn restart(&mut self, place: usize, seed: u64) -> Snapshot {
        let state = self.drones[place].state.clone().unwrap();
        let edge = Edge::new(self.config(None), Some(&state)).unwrap();
        let drone = &mut self.drones[place];
        (drone.edge, drone.rng, drone.deadline) = (edge, ChaCha20Rng::seed_from_u64(seed), None);
        drone.inputs.clear();
        state
    }

    pub(super) fn connect(&mut self, dialler: BenchNode, listener: BenchNode, route: Route) {
        self.feed(listener, &RecordedInput::Connected(dialler, Route::Inbound));
        self.feed(dialler, &RecordedInput::Connected(listener, route));
    }

    pub(super) fn lead(&mut self, command: LeaderCommand) {
        let now = self.now();
        self.leader.handle_input(now, Input::Command(command), &mut self.rng);
        self.drain(BenchNode::Leader);
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock, unix: UNIX + self.clock.as_secs() }
    }

    fn feed(&mut self, node: BenchNode, input: &RecordedInput) {
        let now = self.now();
        match node {
            BenchNode::Kgc => self.kgc.handle_input(now, as_input(input), &mut self.rng),
            BenchNode::Leader => self.leader.handle_input(now, as_input(input), &mut self.rng),
            BenchNode::Drone(place) => {
                let drone = &mut self.drones[place];
                drone.edge.handle_input(now, as_input(input), &mut drone.rng);
            }
        }
        let keys = self.keys(node);
        self.drain(node);
        let activates = self.keys(node) > keys;
        if let BenchNode::Drone(place) = node {
            self.drones[place].inputs.push(InputRecord {
                at: now.monotonic,
                input: input.clone(),
                activates,
            });
        }
    }

    fn keys(&self, node: BenchNode) -> usize {
        if let BenchNode::Drone(place) = node { self.drones[place].keys } else { 0 }
    }

    fn drain(&mut self, node: BenchNode) {
        let mut sent = Vec::new();
        match node {
            BenchNode::Kgc => drop(outputs(&mut self.kgc, &mut sent)),
            BenchNode::Leader => self.leader_deadline = outputs(&mut self.leader, &mut sent).2,
            BenchNode::Drone(place) => {
                let drone = &mut self.drones[place];
                let (events, mut states, deadline) = outputs(&mut drone.edge, &mut sent);
                drone.keys +=
                    events.iter().filter(|event| matches!(event, EdgeEvent::KeyActivated { .. })).count();
                drone.state = states.pop().or(drone.state.take());
                drone.deadline = deadline;
            }
        }
        for (to, bytes) in sent {
            let nodes = [BenchNode::Kgc, BenchNode::Leader]
                .into_iter()
                .chain((0..self.drones.len()).map(BenchNode::Drone));
            let via = if to == Destination::Group { Via::Group } else { Via::Peer };
            let to = nodes.filter(|other| match to {
                Destination::Peer(peer) => other.handle() == peer,
                Destination::Group => matches!(other, BenchNode::Drone(_)) && *other != node,
            });
            self.queue.extend(to.map(|to| (node, to, via, bytes.clone())));
        }
    }

    fn deliver(&mut self) {
        while let Some((from, to, via, bytes)) = self.queue.pop_front() {
            self.feed(to, &RecordedInput::Received(from, via, bytes));
        }
    }

    /// Delivers everything, and so long as there are deadlines before the end, lets them come.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.clock + time;
        loop {
            self.deliver();
            let drones = self.drones.iter().enumerate();
            let drones = drones.map(|(place, drone)| (drone.deadline, BenchNode::Drone(place)));
            let due = drones.chain([(self.leader_deadline, BenchNode::Leader)]);
            let due = due.filter_map(|(deadline, node)| Some((deadline?, node)));
            let Some((deadline, node)) = due.filter(|(at, _)| *at <= end).min_by_key(|(at, _)| *at) else {
                break;
            };
            self.clock = self.clock.max(deadline);
            self.feed(node, &RecordedInput::Timeout);
        }
        self.clock = end;
    }
}

fn as_input<C>(input: &RecordedInput) -> Input<'_, C> {
    match input {
        RecordedInput::Timeout => Input::Timeout,
        RecordedInput::Connected(node, route) => Input::Connected { peer: node.handle(), route: *route },
        RecordedInput::Received(from, via, bytes) => {
            Input::Received { from: from.handle(), via: *via, bytes }
        }
    }
}

type Drained<M> = (Vec<<M as Machine>::Event>, Vec<<M as Machine>::Record>, Option<Duration>);

fn outputs<M: Machine>(machine: &mut M, sent: &mut Vec<(Destination, Vec<u8>)>) -> Drained<M> {
    let (mut events, mut records) = (Vec::new(), Vec::new());
    loop {
        match machine.poll_output() {
            Output::Persist(record) => records.push(record),
            Output::Transmit { to, payload } => sent.push((to, payload)),
            Output::Event(event) => events.push(event),
            Output::Block(peer) | Output::Penalize { peer, .. } => panic!("{peer:?} is cut off"),
            Output::Relay { .. } | Output::Disconnect(_) => {}
            Output::Timeout(deadline) => return (events, records, deadline),
        }
    }
}

fn token(
    operator: &OperatorSecretKey<S>,
    deployment: &Deployment<S>,
    name: &str,
    role: Role,
    rng: &mut ChaCha20Rng,
) -> IssuedToken<S> {
    let grant = TokenGrant {
        name: Name::new(name).unwrap(),
        role,
        groups: vec![Name::new(GROUP).unwrap()],
        not_after: UNIX + 10_000_000,
        expiry: UNIX + 1_000_000,
    };
    operator.issue(deployment, grant, rng).unwrap()
}
