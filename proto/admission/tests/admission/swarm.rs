//! A leader that demands a policy, and anonymous edges: every run over a connection of its own.

use std::fmt::Debug;
use std::time::Duration;

use quiver_abke::Credential;
use quiver_admission::gate::GateTiming;
use quiver_admission::{
    AdmissionError, AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, AnonymousConfig,
    AnonymousEdge, AnonymousEvent, AnyEdge, Demand, Ending,
};
use quiver_ainq::{IssuedToken, MasterSecret, OperatorSecretKey, Role, StrategyKind, TokenGrant};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcConfig};
use quiver_group::edge::EdgeTiming;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Edge, EdgeCommand, EdgeConfig, Leader, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_kem::KemSetting;
use quiver_machine::{FinishedJob, Input, Job, Machine, Now, Output, Route};
use quiver_testbed::{Stimulus, matching};
use rand_chacha::rand_core::CryptoRngCore;

use crate::world::{MOST, Node, PERIOD, Packet, S, START, World, name};

pub(crate) const FENCE: &str = "(x - 100)^2 + (y + 50)^2 < 2500 or medic";

/// The leader, and what one input may cost it.
#[derive(derive_more::Deref)]
pub(crate) struct Measured {
    #[deref]
    leader: AdmittingLeader<S>,
    /// Pieces of the gate's work that may be under way beside the leader's loop, and those that are.
    workers: usize,
    under_way: usize,
}

impl Machine for Measured {
    type Command = AdmittingLeaderCommand;
    type Event = AdmittingLeaderEvent;
    type Record = LeaderRecord;

    fn handle_input(&mut self, now: Now, input: Input<'_, Self::Command>, rng: &mut dyn CryptoRngCore) {
        let (before, timeout) = (self.admission_work(), matches!(input, Input::Timeout));
        self.leader.handle_input(now, input, rng);
        // Bound on one input's work at the leader: no message costs curve work at the gate, and a timeout one
        // piece of it.
        let done = self.admission_work().saturating_sub(before);
        assert!(done <= u64::from(timeout && self.workers == 0), "{done} pieces of work with one input");
    }

    fn poll_output(&mut self) -> Output<AdmittingLeaderEvent, LeaderRecord> {
        self.leader.poll_output()
    }

    fn take_job(&mut self) -> Option<Job> {
        let job = self.leader.take_job()?;
        self.under_way += 1;
        assert!(self.under_way <= self.workers);
        Some(job)
    }

    fn finish_job(&mut self, now: Now, done: FinishedJob, rng: &mut dyn CryptoRngCore) {
        // The job may be that of an earlier life.
        self.under_way = self.under_way.saturating_sub(1);
        self.leader.finish_job(now, done, rng);
    }
}

/// All of them.
pub(crate) struct Swarm {
    pub(crate) world: World,
    strategy: StrategyKind,
    operator: OperatorSecretKey<S>,
    token: IssuedToken<S>,
    drones: usize,
    /// Drones that dialled the leader, each with the number of messages sent before.
    dials: Vec<(usize, usize)>,
    pub(crate) validity: Duration,
    /// Pieces of the gate's work that are done beside the leader's loop.
    pub(crate) workers: usize,
}

impl Swarm {
    /// A leader that is enrolled and demands [`FENCE`], with the slot keys of the period.
    pub(crate) fn new(seed: u64, strategy: StrategyKind) -> Self {
        Self::hybrid(seed, strategy, KemSetting::None)
    }

    /// The same in a deployment that says this of a second factor.
    pub(crate) fn hybrid(seed: u64, strategy: StrategyKind, kem: KemSetting) -> Self {
        let mut world = World::new(seed);
        world.kem = kem;
        let operator = OperatorSecretKey::generate(&mut world.rng);
        let role = Role::Leader { group: name("alpha"), ordinal: 1 };
        let token = token(&mut world, &operator, "leader", role);
        let (validity, dials) = (Duration::from_secs(600), Vec::new());
        let mut swarm = Self { world, strategy, operator, token, drones: 0, dials, validity, workers: 0 };
        // Enrolled without demanding anything: with a KGC that is not needed afterwards.
        let leader = Leader::new(swarm.leader_config(), []).unwrap();
        let records = swarm.enrol(Node::Leader, leader, |leader| leader.keypair().is_some());
        swarm.world.add::<Measured>(Node::Leader, records);
        swarm.world.subscribe(Node::Leader);
        swarm.start_leader();
        swarm
    }

    fn leader_config(&self) -> LeaderConfig<S> {
        LeaderConfig {
            max_members: 100,
            strategy: self.strategy,
            timing: LeaderTiming { validity: self.validity, ..LeaderTiming::default() },
            ..LeaderConfig::new(
                self.world.deployment.clone(),
                name("alpha"),
                Some(IssuedToken::decode(&self.token.encode()).unwrap()),
            )
        }
    }

    /// Starts the leader from what it persisted. Earlier connections are gone.
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
        let records = self.world.node::<Measured>(Node::Leader).records().to_vec();
        let leader = Leader::new(self.leader_config(), records).unwrap().with_kem(self.world.kem);
        let leader = AdmittingLeader::from(leader).demanding(demand, self.world.clock().unix).unwrap();
        self.world.start(Node::Leader, Measured { leader, workers: self.workers, under_way: 0 });
        self.world.feed(Node::Leader, Stimulus::Deadline);
    }

    pub(crate) fn crash_leader(&mut self) {
        self.world.stop(Node::Leader);
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
        self.drones += 1;
        self.apply_knowing(self.drones - 1, &credential, revocations);
        self.drones - 1
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
            kem: self.world.kem,
        };
        let id = Node::Drone(drone);
        let records = if self.world.has(id) { self.world.node::<AnyEdge<S>>(id).records() } else { &[] };
        let machine = AnonymousEdge::new(config, records.last()).unwrap();
        self.start(drone, machine);
    }

    /// An enrolled drone with a name, which knows nothing of policies; connected.
    pub(crate) fn add_named(&mut self, text: &str) -> usize {
        let token = token(&mut self.world, &self.operator, text, Role::Edge);
        let config = |token| EdgeConfig::new(self.world.deployment.clone(), Some(name("alpha")), token);
        let (first, then) = (config(Some(token)), config(None));
        let (drone, machine) = (self.drones, Edge::new(first, None).unwrap());
        let states = self.enrol(Node::Drone(drone), machine, |edge| edge.keypair().is_some());
        self.world.add::<AnyEdge<S>>(Node::Drone(drone), Vec::new());
        self.drones += 1;
        self.start(drone, Edge::new(then, states.last()).unwrap());
        drone
    }

    fn start(&mut self, drone: usize, machine: impl Into<AnyEdge<S>>) {
        self.world.start::<AnyEdge<S>>(Node::Drone(drone), machine.into());
        self.world.subscribe(Node::Drone(drone));
        self.dial(drone);
    }

    /// Gives a machine a KGC until it has its key. What it persisted.
    fn enrol<M: Machine<Event: Debug, Record: Clone> + 'static>(
        &mut self,
        id: Node,
        machine: M,
        enrolled: impl Fn(&M) -> bool,
    ) -> Vec<M::Record> {
        let config = KgcConfig::single(
            self.world.deployment.clone(),
            MasterSecret::decode(&self.world.master.encode()).unwrap(),
            vec![self.operator.public()],
            Secret::random(&mut self.world.rng),
        );
        self.world.start(Node::Kgc, Kgc::new(config, []).unwrap());
        self.world.start(id, machine);
        self.world.connect(id, Node::Kgc, Route::Kgc);
        self.world.run_until("it is enrolled", |net| enrolled(net.machine(id)));
        let records = self.world.node::<M>(id).records().to_vec();
        self.world.stop(id);
        self.world.stop(Node::Kgc);
        records
    }

    /// A connection under a name that nobody had before.
    pub(crate) fn dial(&mut self, drone: usize) {
        self.dials.push((drone, self.world.recorded.len()));
        self.world.connect(Node::Drone(drone), Node::Leader, Route::Leader);
    }

    pub(crate) fn hang_up(&mut self, drone: usize) {
        self.world.disconnect(Node::Leader, Node::Drone(drone));
    }

    pub(crate) fn lead(&mut self, command: impl Into<AdmittingLeaderCommand>) {
        self.world.command::<Measured>(Node::Leader, command.into());
    }

    pub(crate) fn command(&mut self, drone: usize, command: EdgeCommand) {
        self.world.command::<AnyEdge<S>>(Node::Drone(drone), command);
    }

    pub(crate) fn leader(&self) -> &AdmittingLeader<S> {
        self.world.machine::<Measured>(Node::Leader)
    }

    pub(crate) fn drone(&self, drone: usize) -> &AnyEdge<S> {
        self.world.machine(Node::Drone(drone))
    }

    /// Events of a drone, in all its lives.
    pub(crate) fn events_of(&self, drone: usize) -> &[AnonymousEvent] {
        &self.world.node::<AnyEdge<S>>(Node::Drone(drone)).events
    }

    /// Events of the leader, except denials by its gate.
    pub(crate) fn events(&self) -> Vec<&LeaderEvent> {
        let events = self.world.node::<Measured>(Node::Leader).events.iter();
        let of_leader = events.filter_map(|event| match event {
            AdmittingLeaderEvent::Leader(event) => Some(event),
            AdmittingLeaderEvent::Denied { .. } => None,
        });
        of_leader.collect()
    }

    /// Errors of drones that were not admitted.
    pub(crate) fn denied(&self) -> Vec<&AdmissionError> {
        let events = self.world.node::<Measured>(Node::Leader).events.iter();
        let denied = events.filter_map(|event| match event {
            AdmittingLeaderEvent::Denied { why, .. } => Some(why),
            AdmittingLeaderEvent::Leader(_) => None,
        });
        denied.collect()
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.world.time() + time;
        let mut steps = 0;
        while self.world.step(end) {
            steps += 1;
            assert!(steps < 100_000, "the machines never come to rest");
        }
    }

    /// Goes on to the beginning of the next period, and a little beyond.
    pub(crate) fn run_to_the_next_period(&mut self) {
        let left = PERIOD - self.world.clock().unix % PERIOD;
        self.run(Duration::from_secs(left) + Duration::from_millis(500));
    }

    /// Asserts that these drones, and no others, hold the leader's key of the epoch in force.
    pub(crate) fn assert_in(&self, members: &[usize]) {
        self.assert_in_but_behind(members, &[]);
    }

    /// The same, but these members hold an older epoch.
    pub(crate) fn assert_in_but_behind(&self, members: &[usize], behind: &[usize]) {
        let leader = self.leader();
        let key = leader.export(&name("test")).unwrap();
        for drone in 0..self.drones {
            let held = self.drone(drone).export(&name("test"));
            let held = held.is_some_and(|held| held.expose() == key.expose());
            let holds = members.contains(&drone) && !behind.contains(&drone);
            assert_eq!(held, holds, "drone {drone}: {:?}; {:?}", self.events_of(drone), self.events());
        }
        assert_eq!(leader.status().members, members.len());
        assert_eq!(leader.status().anonymous, members.len());
    }

    /// The ending of a drone's machine, if it ended.
    pub(crate) fn ending(&self, drone: usize) -> Option<&Ending> {
        self.events_of(drone).iter().rev().find_map(matching!(AnonymousEvent::Ended(why) => why))
    }

    /// Messages of a drone to the leader, by connection.
    pub(crate) fn by_connection(&self, drone: usize) -> Vec<Vec<&Packet>> {
        let dials: Vec<_> = self.dials.iter().filter(|(who, _)| *who == drone).map(|(_, at)| *at).collect();
        let ends = dials.iter().skip(1).copied().chain([self.world.recorded.len()]);
        let said = dials.iter().zip(ends).map(|(from, to)| self.world.recorded[*from..to].iter());
        let own = |packet: &&Packet| packet.from == Node::Drone(drone) && packet.to == Node::Leader;
        said.map(|said| said.filter(own).collect()).collect()
    }
}

fn token(world: &mut World, operator: &OperatorSecretKey<S>, text: &str, role: Role) -> IssuedToken<S> {
    let groups = vec![name("alpha")];
    let (not_after, expiry) = (START + 1000 * PERIOD, START + 1000 * PERIOD);
    let grant = TokenGrant { name: name(text), role, groups, not_after, expiry };
    operator.issue(&world.deployment, grant, &mut world.rng).unwrap()
}
