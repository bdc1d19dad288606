//! A leader that demands a policy, and edges without a name: every run over a connection of its own, on a
//! virtual clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_abke::Credential;
use quiver_admission::gate::GateTiming;
use quiver_admission::{
    AdmissionError, AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, AnonymousConfig,
    AnonymousEdge, AnonymousEvent, AnyEdge, Demand, Ending,
};
use quiver_ainq::{IssuedToken, MasterSecret, OperatorSecretKey, Role, StrategyKind, TokenGrant};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig, Kgcs};
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_machine::{Destination, Input, Job, Machine, Misdeed, Output, Peer, Route, Snapshot, Via};
use quiver_message::Message;

use crate::world::{MOST, PERIOD, S, START, World, name};

pub(crate) const FENCE: &str = "(x - 100)^2 + (y + 50)^2 < 2500 or medic";

/// An edge, what a driver would keep for it, and the connection that it has.
pub(crate) struct Drone {
    pub(crate) machine: Option<AnyEdge<S>>,
    pub(crate) state: Option<Snapshot>,
    pub(crate) events: Vec<AnonymousEvent>,
    deadline: Option<Duration>,
    /// What the leader calls its connection, and it the leader's.
    peers: Option<(Peer, Peer)>,
}

/// What a drone said: who, over which connection, which bytes.
pub(crate) struct Said {
    pub(crate) drone: usize,
    pub(crate) connection: Peer,
    pub(crate) bytes: Vec<u8>,
}

/// All of them.
pub(crate) struct Swarm {
    pub(crate) world: World,
    strategy: StrategyKind,
    operator: OperatorSecretKey<S>,
    token: IssuedToken<S>,
    pub(crate) leader: Option<AdmittingLeader<S>>,
    records: Vec<LeaderRecord>,
    pub(crate) events: Vec<LeaderEvent>,
    /// Why drones were not admitted.
    pub(crate) denied: Vec<AdmissionError>,
    deadline: Option<Duration>,
    pub(crate) drones: Vec<Drone>,
    /// To a drone, or from one to the leader.
    queue: VecDeque<(Option<usize>, usize, Via, Vec<u8>)>,
    pub(crate) said: Vec<Said>,
    pub(crate) validity: Duration,
    /// Pieces of the gate's work that are done beside the leader's loop, and those under way.
    pub(crate) workers: usize,
    pub(crate) jobs: VecDeque<Job>,
    /// Whether jobs are left undone.
    pub(crate) held: bool,
    /// The drones whose connection the leader wants cut for a while, and for what. It is not, so that the
    /// test goes on.
    pub(crate) penalized: Vec<(usize, Misdeed)>,
}

impl Swarm {
    /// A leader that is enrolled and demands [`FENCE`], with the slot keys of the period.
    pub(crate) fn new(seed: u64, strategy: StrategyKind) -> Self {
        let mut world = World::new(seed);
        let operator = OperatorSecretKey::generate(&mut world.rng);
        let role = Role::Leader { group: name("alpha"), ordinal: 1 };
        let token = token(&mut world, &operator, "leader", role);
        let mut swarm = Self {
            world,
            strategy,
            operator,
            token,
            leader: None,
            records: Vec::new(),
            events: Vec::new(),
            denied: Vec::new(),
            deadline: None,
            drones: Vec::new(),
            queue: VecDeque::new(),
            said: Vec::new(),
            validity: Duration::from_secs(600),
            workers: 0,
            jobs: VecDeque::new(),
            held: false,
            penalized: Vec::new(),
        };
        // Enrolled without demanding anything: with a KGC that is not needed afterwards.
        let mut leader = Leader::new(swarm.leader_config(), []).unwrap();
        swarm.records = swarm.enrol(&mut leader, |leader| leader.keypair().is_some());
        swarm.start_leader();
        swarm
    }

    fn leader_config(&self) -> LeaderConfig<S> {
        LeaderConfig {
            deployment: self.world.deployment.clone(),
            group: name("alpha"),
            token: Some(IssuedToken::decode(&self.token.encode()).unwrap()),
            kgcs: Kgcs::single(),
            allow: BTreeSet::new(),
            max_members: 100,
            strategy: self.strategy,
            timing: LeaderTiming { validity: self.validity, ..LeaderTiming::default() },
        }
    }

    /// Starts the leader from what it persisted. Whoever was connected is not any more.
    pub(crate) fn start_leader(&mut self) {
        self.start_leader_without_slot_keys();
        let keys = self.world.slot_keys();
        self.lead(AdmittingLeaderCommand::SlotKeys(keys));
    }

    pub(crate) fn start_leader_without_slot_keys(&mut self) {
        let policy = self.world.policy(FENCE, "alpha");
        let authority = self.world.authority.clone();
        let demand = Demand {
            policy,
            authority,
            timing: GateTiming { workers: self.workers, ..GateTiming::default() },
        };
        let leader = Leader::new(self.leader_config(), self.records.clone()).unwrap();
        self.leader = Some(AdmittingLeader::from(leader).demanding(demand, self.world.now().unix).unwrap());
        self.feed_leader(Input::Timeout);
    }

    pub(crate) fn crash_leader(&mut self) {
        self.leader = None;
        self.queue.clear();
        for drone in 0..self.drones.len() {
            self.hang_up(drone);
        }
    }

    /// A drone with these fields certified, connected over a connection that nobody had before.
    pub(crate) fn add(&mut self, x: i128, y: i128, medic: bool) -> usize {
        self.add_knowing(x, y, medic, None)
    }

    /// The same for one that knows this revocation list.
    pub(crate) fn add_knowing(
        &mut self,
        x: i128,
        y: i128,
        medic: bool,
        revocations: Option<Vec<u8>>,
    ) -> usize {
        let credential = self.world.credential(x, y, medic);
        let drone = Drone { machine: None, state: None, events: Vec::new(), deadline: None, peers: None };
        self.drones.push(drone);
        let drone = self.drones.len() - 1;
        self.apply_knowing(drone, &credential, revocations);
        drone
    }

    /// Makes a fresh machine of a drone, as after its end or a crash, from what is on its disk; and connects
    /// it.
    pub(crate) fn apply(&mut self, drone: usize, credential: &Credential) {
        self.apply_knowing(drone, credential, None);
    }

    fn apply_knowing(&mut self, drone: usize, credential: &Credential, revocations: Option<Vec<u8>>) {
        self.hang_up(drone);
        let config = AnonymousConfig {
            deployment: self.world.deployment.clone(),
            group: name("alpha"),
            authority: self.world.authority.clone(),
            credential: credential.clone(),
            period: self.world.period(),
            revocations,
            most: MOST,
            patience: Duration::from_secs(120),
            timing: EdgeTiming::default(),
        };
        let machine = AnonymousEdge::new(config, self.drones[drone].state.as_ref()).unwrap();
        self.drones[drone].machine = Some(machine.into());
        self.dial(drone);
    }

    /// An enrolled drone with a name, which knows nothing of policies; connected.
    pub(crate) fn add_named(&mut self, text: &str) -> usize {
        let token = token(&mut self.world, &self.operator, text, Role::Edge);
        let config = |token| EdgeConfig {
            deployment: self.world.deployment.clone(),
            group: Some(name("alpha")),
            token,
            kgcs: Kgcs::single(),
            timing: EdgeTiming::default(),
        };
        let (first, then) = (config(Some(token)), config(None));
        let mut machine = Edge::new(first, None).unwrap();
        let states = self.enrol(&mut machine, |edge| edge.keypair().is_some());
        let machine = Some(Edge::new(then, states.last()).unwrap().into());
        let drone = Drone { machine, state: None, events: Vec::new(), deadline: None, peers: None };
        self.drones.push(drone);
        self.dial(self.drones.len() - 1);
        self.drones.len() - 1
    }

    /// Gives a machine a KGC until it has its key. What it persisted.
    fn enrol<M: Machine>(&mut self, machine: &mut M, enrolled: impl Fn(&M) -> bool) -> Vec<M::Record> {
        let config = KgcConfig {
            deployment: self.world.deployment.clone(),
            master: MasterSecret::decode(&self.world.master.encode()).unwrap().into(),
            id: 1,
            operators: vec![self.operator.public()],
            cookie_key: Secret::random(&mut self.world.rng),
            revocation_validity: 86_400,
        };
        let mut kgc = Kgc::new(config, []).unwrap();
        let (there, here, now, rng) = (Peer(1), Peer(2), self.world.now(), &mut self.world.rng);
        kgc.handle_input(now, Input::Connected { peer: there, route: Route::Inbound }, rng);
        machine.handle_input(now, Input::Connected { peer: here, route: Route::Kgc }, rng);
        let mut records = Vec::new();
        loop {
            let mut up = Vec::new();
            while let Some(output) = next(machine) {
                match output {
                    Output::Persist(record) => records.push(record),
                    Output::Transmit { to: Destination::Peer(_), payload } => up.push(payload),
                    _ => {}
                }
            }
            if enrolled(machine) {
                return records;
            }
            assert!(!up.is_empty(), "it asks");
            for bytes in up {
                kgc.handle_input(now, Input::Received { from: there, via: Via::Peer, bytes: &bytes }, rng);
            }
            while let Some(output) = next(&mut kgc) {
                if let Output::Transmit { to: Destination::Peer(_), payload } = output {
                    machine.handle_input(
                        now,
                        Input::Received { from: here, via: Via::Peer, bytes: &payload },
                        rng,
                    );
                }
            }
        }
    }

    /// A connection under a name that nobody had before.
    pub(crate) fn dial(&mut self, drone: usize) {
        if self.leader.is_none() {
            return;
        }
        let (at_leader, at_drone) = (self.world.fresh_peer(), self.world.fresh_peer());
        self.drones[drone].peers = Some((at_leader, at_drone));
        self.feed_leader(Input::Connected { peer: at_leader, route: Route::Inbound });
        self.feed(drone, Input::Connected { peer: at_drone, route: Route::Leader });
    }

    pub(crate) fn hang_up(&mut self, drone: usize) {
        if let Some((at_leader, at_drone)) = self.drones[drone].peers.take() {
            self.queue.retain(|(to, of, ..)| *to != Some(drone) && *of != drone);
            self.feed_leader(Input::Disconnected { peer: at_leader });
            self.feed(drone, Input::Disconnected { peer: at_drone });
        }
    }

    pub(crate) fn lead(&mut self, command: impl Into<AdmittingLeaderCommand>) {
        self.feed_leader(Input::Command(command.into()));
    }

    pub(crate) fn command(&mut self, drone: usize, command: EdgeCommand) {
        self.feed(drone, Input::Command(command));
    }

    /// Something said to the leader over a drone's connection.
    pub(crate) fn say(&mut self, drone: usize, bytes: &[u8]) {
        self.queue.push_back((None, drone, Via::Peer, bytes.to_vec()));
    }

    fn feed_leader(&mut self, input: Input<'_, AdmittingLeaderCommand>) {
        let now = self.world.now();
        let Some(leader) = &mut self.leader else { return };
        let (before, timeout) = (leader.admission_work(), matches!(input, Input::Timeout));
        leader.handle_input(now, input, &mut self.world.rng);
        // What one input can hold the leader up: no message of anybody costs curve work at the gate, and a
        // timeout one piece of it.
        let done = leader.admission_work().saturating_sub(before);
        assert!(done <= u64::from(timeout && self.workers == 0), "{done} pieces of work with one input");
        self.drain_leader();
    }

    /// Does the oldest job of the leader's gate. Returns false if there is none.
    pub(crate) fn work(&mut self) -> bool {
        let (Some(job), now) = (self.jobs.pop_front(), self.world.now()) else { return false };
        let done = job.run();
        if let Some(leader) = &mut self.leader {
            leader.finish_job(now, done, &mut self.world.rng);
            self.drain_leader();
        }
        true
    }

    fn drain_leader(&mut self) {
        let Some(leader) = &mut self.leader else { return };
        while let Some(job) = leader.take_job() {
            self.jobs.push_back(job);
        }
        assert!(self.jobs.len() <= self.workers);
        loop {
            match leader.poll_output() {
                Output::Persist(record) => self.records.push(record),
                Output::Event(AdmittingLeaderEvent::Leader(event)) => self.events.push(event),
                Output::Event(AdmittingLeaderEvent::Denied { why, .. }) => self.denied.push(why),
                Output::Transmit { to, payload } => {
                    let by = way(to);
                    let connected =
                        self.drones.iter().enumerate().filter_map(|(drone, it)| Some((drone, it.peers?)));
                    let to = connected.filter(|(_, (at_leader, _))| match to {
                        Destination::Peer(peer) => peer == *at_leader,
                        Destination::Group => true,
                    });
                    self.queue.extend(to.map(|(drone, _)| (Some(drone), usize::MAX, by, payload.clone())));
                }
                Output::Penalize { peer, misdeed } => {
                    let whose = |drone: &Drone| drone.peers.is_some_and(|(at_leader, _)| at_leader == peer);
                    if let Some(drone) = self.drones.iter().position(whose) {
                        self.penalized.push((drone, misdeed));
                    }
                }
                Output::Block(_) | Output::Relay { .. } => {}
                Output::Timeout(deadline) => break self.deadline = deadline,
            }
        }
    }

    fn feed(&mut self, drone: usize, input: Input<'_, EdgeCommand>) {
        let now = self.world.now();
        let it = &mut self.drones[drone];
        let Some(machine) = &mut it.machine else { return };
        machine.handle_input(now, input, &mut self.world.rng);
        loop {
            match machine.poll_output() {
                Output::Persist(state) => it.state = Some(state),
                Output::Event(event) => it.events.push(event),
                Output::Transmit { to, payload } => {
                    let Some((connection, _)) = it.peers else { continue };
                    self.said.push(Said { drone, connection, bytes: payload.clone() });
                    self.queue.push_back((None, drone, way(to), payload.clone()));
                    if to == Destination::Group {
                        // The leader is the hub of the star.
                        self.queue.push_back((Some(usize::MAX), drone, Via::Group, payload));
                    }
                }
                Output::Block(_) | Output::Relay { .. } | Output::Penalize { .. } => {}
                Output::Timeout(deadline) => break it.deadline = deadline,
            }
        }
    }

    /// Delivers one message or goes on to the next deadline, not beyond `end`.
    fn step(&mut self, end: Duration) -> bool {
        match self.queue.pop_front() {
            Some((None, drone, via, bytes)) => {
                if let Some((from, _)) = self.drones[drone].peers {
                    self.feed_leader(Input::Received { from, via, bytes: &bytes });
                }
                return true;
            }
            Some((Some(to), of, via, bytes)) => {
                let receivers = if to == usize::MAX { 0..self.drones.len() } else { to..to + 1 };
                for drone in receivers.filter(|drone| *drone != of) {
                    if let Some((_, from)) = self.drones[drone].peers {
                        self.feed(drone, Input::Received { from, via, bytes: &bytes });
                    }
                }
                return true;
            }
            None if !self.held && self.work() => return true,
            None => {}
        }
        let drones = self.drones.iter().enumerate().filter(|(_, drone)| drone.machine.is_some());
        let drones = drones.filter_map(|(drone, it)| Some((it.deadline?, Some(drone))));
        let leader = self.deadline.filter(|_| self.leader.is_some()).map(|deadline| (deadline, None));
        match drones.chain(leader).min() {
            Some((deadline, node)) if deadline <= end => {
                self.world.clock = self.world.clock.max(deadline);
                match node {
                    None => self.feed_leader(Input::Timeout),
                    Some(drone) => self.feed(drone, Input::Timeout),
                }
                true
            }
            _ => {
                self.world.clock = end;
                false
            }
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.world.clock + time;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 100_000, "the machines never come to rest");
        }
    }

    /// Goes on to the beginning of the next period, and a little beyond.
    pub(crate) fn run_to_the_next_period(&mut self) {
        let left = PERIOD - self.world.now().unix % PERIOD;
        self.run(Duration::from_secs(left) + Duration::from_millis(500));
    }

    /// Whether these drones, and no others, hold the leader's key of the epoch in force.
    pub(crate) fn assert_in(&self, members: &[usize]) {
        self.assert_in_but_behind(members, &[]);
    }

    /// The same, but these members hold an older epoch.
    pub(crate) fn assert_in_but_behind(&self, members: &[usize], behind: &[usize]) {
        let leader = self.leader.as_ref().unwrap();
        let key = leader.export(&name("test")).unwrap();
        for (drone, it) in self.drones.iter().enumerate() {
            let held = it.machine.as_ref().and_then(|machine| machine.export(&name("test")));
            let held = held.is_some_and(|held| held.expose() == key.expose());
            let holds = members.contains(&drone) && !behind.contains(&drone);
            assert_eq!(held, holds, "drone {drone}: {:?}; {:?}", it.events, self.events);
        }
        assert_eq!(leader.status().members, members.len());
        assert_eq!(leader.status().anonymous, members.len());
    }

    /// How the machine of a drone ended, if it did.
    pub(crate) fn ending(&self, drone: usize) -> Option<&Ending> {
        self.drones[drone].events.iter().rev().find_map(|event| match event {
            AnonymousEvent::Ended(why) => Some(why),
            _ => None,
        })
    }

    pub(crate) fn decode(&self, bytes: &[u8]) -> Message<S> {
        Message::decode(&self.world.deployment, bytes).unwrap()
    }

    /// What was said over each connection.
    pub(crate) fn by_connection(&self) -> BTreeMap<Peer, Vec<&Said>> {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for said in &self.said {
            found.entry(said.connection).or_default().push(said);
        }
        found
    }
}

fn token(world: &mut World, operator: &OperatorSecretKey<S>, text: &str, role: Role) -> IssuedToken<S> {
    let groups = vec![name("alpha")];
    let (not_after, expiry) = (START + 1000 * PERIOD, START + 1000 * PERIOD);
    let grant = TokenGrant { name: name(text), role, groups, not_after, expiry };
    operator.issue(&world.deployment, grant, &mut world.rng).unwrap()
}

fn way(to: Destination) -> Via {
    if to == Destination::Group { Via::Group } else { Via::Peer }
}

fn next<M: Machine>(machine: &mut M) -> Option<Output<M::Event, M::Record>> {
    match machine.poll_output() {
        Output::Timeout(_) => None,
        output => Some(output),
    }
}
