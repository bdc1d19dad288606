//! A network for tests of a board: a real KGC, leader and gateway, and other drones, on one thread and in
//! virtual time. The board is the firmware on the host, or an image in its model.
//!
//! The test drives it: [`TestNetwork::set_time`], [`TestNetwork::work`] with the bytes of the board's line,
//! until nothing is left to do, and again at [`TestNetwork::due`]. One seed gives one run.
#![forbid(unsafe_code)]

mod companions;
mod gateway;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use quiver_ainq::{
    Deployment, IssuedToken, MasterSecret, Name, OperatorSecretKey, Revoked, Ristretto255, Role,
    StrategyKind, TokenGrant,
};
use quiver_crypto::Secret;
use quiver_enrolment::{Kgc, KgcCommand, KgcConfig, KgcEvent, Kgcs};
use quiver_group::edge::Provisioning;
use quiver_group::leader::LeaderTiming;
use quiver_group::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
use quiver_link::{GatewayEndpoint, Limits, LineDecoder, Report, Wants};
use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route, Via};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use self::companions::Companion;

type S = Ristretto255;

/// 2027-01-01, in seconds since 1970: when virtual time is 0.
pub const EPOCH_START: u64 = 1_798_761_600;
/// The leader's group.
pub const GROUP: &str = "alpha";
/// Handle by which leader and KGC know each other.
const KGC_LEADER_LINK: Peer = Peer(1);

/// A message under way: its receiver, and its sender's handle there.
enum InFlight {
    Kgc(Peer, Vec<u8>),
    Leader(Peer, Vec<u8>),
    Board(u64, quiver_link::Via, Vec<u8>),
    Companion(usize, Peer, Vec<u8>),
}

/// See the [crate](self).
pub struct TestNetwork {
    /// Generator of everything random here.
    pub rng: ChaCha20Rng,
    /// The deployment of all nodes.
    pub deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
    kgc: Kgc<S>,
    leader: Leader<S>,
    leading: (StrategyKind, LeaderTiming),
    /// Records that the leader has persisted.
    leader_records: Vec<LeaderRecord>,
    deadlines: [Option<Duration>; 2],
    now: Duration,
    /// Events of the leader so far.
    pub leader_events: Vec<LeaderEvent>,
    /// Number of keys that the KGC has issued.
    pub keys_issued: usize,
    companions: Vec<Companion>,
    flights: VecDeque<InFlight>,
    /// The gateway's end of the link.
    pub gateway: GatewayEndpoint,
    decoder: LineDecoder,
    /// Whether the gateway runs.
    pub gateway_up: bool,
    /// Whether the gateway's leader is made up: messages from and to the leader are dropped.
    pub leader_made_up: bool,
    wants: Wants,
    /// The board's numbers for KGC and leader, which are also its handles at them.
    to_kgc: Option<u64>,
    to_leader: Option<u64>,
    last_number: u64,
    /// The board's last report.
    pub report: Option<Report>,
    /// All datagrams that ever came from the board.
    pub sent: Vec<u8>,
    /// Bytes that wait for the board's line.
    for_board: Vec<u8>,
}

impl TestNetwork {
    /// A running network in which no drone has enrolled.
    ///
    /// # Panics
    /// If the machines refuse their configuration.
    #[must_use]
    pub fn new(seed: u64, strategy: StrategyKind, timing: LeaderTiming, now: Duration) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let master = MasterSecret::<S>::generate(&mut rng);
        let deployment = Deployment::new(name("alps"), master.public());
        let operator = OperatorSecretKey::<S>::generate(&mut rng);
        let kgc = KgcConfig {
            deployment: deployment.clone(),
            master: master.into(),
            id: 1,
            operators: vec![operator.public()],
            cookie_key: Secret::random(&mut rng),
            revocation_validity: 86_400,
        };
        let role = Role::Leader { group: name(GROUP), ordinal: 0 };
        let token = operator.issue(&deployment, grant("leader", role), &mut rng).unwrap();
        let leader = leader_config(&deployment, Some(token), strategy, timing);
        let mut network = Self {
            kgc: Kgc::new(kgc, Vec::new()).unwrap(),
            leading: (strategy, timing),
            leader: Leader::new(leader, Vec::new()).unwrap(),
            leader_records: Vec::new(),
            companions: Vec::new(),
            rng,
            deployment,
            operator,
            deadlines: [Some(Duration::ZERO); 2],
            now,
            leader_events: Vec::new(),
            keys_issued: 0,
            flights: VecDeque::new(),
            gateway: GatewayEndpoint::new(Limits::line(1 << 17), 77),
            decoder: LineDecoder::new(),
            gateway_up: true,
            leader_made_up: false,
            wants: Wants::default(),
            to_kgc: None,
            to_leader: None,
            last_number: 10,
            report: None,
            sent: Vec::new(),
            for_board: Vec::new(),
        };
        network.feed_kgc(Input::Connected { peer: KGC_LEADER_LINK, route: Route::Inbound });
        network.feed_leader(Input::Connected { peer: KGC_LEADER_LINK, route: Route::Kgc });
        network
    }

    /// Provisioning of a board of this name.
    ///
    /// # Panics
    /// If it is no name.
    #[must_use]
    pub fn provisioning(&mut self, drone: &str) -> Provisioning<S> {
        let token = self.operator.issue(&self.deployment, grant(drone, Role::Edge), &mut self.rng).unwrap();
        Provisioning {
            deployment: self.deployment.clone(),
            kgcs: vec![1],
            group: Some(name(GROUP)),
            time: EPOCH_START,
            radio: None,
            token: Some(token),
        }
    }

    /// Tells the leader to do something.
    pub fn lead(&mut self, command: LeaderCommand) {
        self.feed_leader(Input::Command(command));
    }

    /// Revokes so many unknown drones.
    pub fn revoke(&mut self, count: u8) {
        let drones = (0..count).map(|n| Revoked::unknown([n; 16])).collect();
        self.feed_kgc(Input::Command(KgcCommand::RevokeDrones(drones)));
    }

    /// Restarts the leader from its records.
    ///
    /// # Panics
    /// If it does not.
    pub fn restart_leader(&mut self) {
        let wants = self.disconnect_leader();
        let (strategy, timing) = self.leading;
        let config = leader_config(&self.deployment, None, strategy, timing);
        self.leader = Leader::new(config, self.leader_records.clone()).unwrap();
        self.feed_leader(Input::Connected { peer: KGC_LEADER_LINK, route: Route::Kgc });
        self.connect(wants);
        self.reconnect_companions();
    }

    /// The leader's epoch, as a board's console prints it: `term.counter`, and its digest.
    #[must_use]
    pub fn epoch(&self) -> Option<String> {
        let status = self.leader.status();
        let epoch = status.epoch?;
        let digest = status.digest.map(hex::encode)?;
        Some(format!("{}.{} digest {digest}", epoch.term, epoch.counter))
    }

    /// Sets the time. It never goes back.
    pub fn set_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Deadline of the next action.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let gateway = self.gateway.timeout().filter(|_| self.gateway_up);
        let next = [gateway, self.deadlines[0], self.deadlines[1], self.companions_due()];
        next.into_iter().flatten().min()
    }

    /// Handles the deadlines that have passed, but for the gateway's, which [`work`](Self::work) handles.
    pub fn wake(&mut self) {
        if self.deadlines[0].is_some_and(|at| at <= self.now) {
            self.feed_kgc(Input::Timeout);
        }
        if self.deadlines[1].is_some_and(|at| at <= self.now) {
            self.feed_leader(Input::Timeout);
        }
        self.wake_companions();
    }

    /// Handles bytes from the board's line, and delivers the messages under way. Returns whether there was
    /// anything, and so may be more.
    pub fn work(&mut self, heard: &[u8]) -> bool {
        self.work_gateway(heard) | self.deliver()
    }

    /// Takes the bytes for the board's line.
    #[must_use]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.for_board)
    }

    fn deliver(&mut self) -> bool {
        let mut busy = false;
        while let Some(flight) = self.flights.pop_front() {
            busy = true;
            match flight {
                InFlight::Leader(from, _) if self.leader_made_up && from != KGC_LEADER_LINK => {}
                InFlight::Board(from, ..) if self.leader_made_up && self.to_leader == Some(from) => {}
                InFlight::Kgc(from, bytes) => {
                    self.feed_kgc(Input::Received { from, via: Via::Peer, bytes: &bytes });
                }
                InFlight::Leader(from, bytes) => {
                    self.feed_leader(Input::Received { from, via: Via::Peer, bytes: &bytes });
                }
                InFlight::Board(from, via, bytes) => self.forward(from, via, bytes),
                InFlight::Companion(index, from, bytes) => {
                    self.feed_companion(index, Input::Received { from, via: Via::Peer, bytes: &bytes });
                }
            }
        }
        busy
    }

    fn times(&self) -> Now {
        Now { monotonic: self.now, unix: EPOCH_START + self.now.as_secs() }
    }

    fn feed_kgc(&mut self, input: Input<'_, KgcCommand>) {
        self.kgc.handle_input(self.times(), input, &mut self.rng);
        loop {
            match self.kgc.poll_output() {
                Output::Timeout(at) => return self.deadlines[0] = at,
                Output::Transmit { to: Destination::Peer(KGC_LEADER_LINK), payload } => {
                    self.flights.push_back(InFlight::Leader(KGC_LEADER_LINK, payload));
                }
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    self.flights.push_back(flight(to, companions::KGC, payload));
                }
                Output::Event(KgcEvent::Issued { .. }) => self.keys_issued += 1,
                _ => {}
            }
        }
    }

    fn feed_leader(&mut self, input: Input<'_, LeaderCommand>) {
        self.leader.handle_input(self.times(), input, &mut self.rng);
        loop {
            match self.leader.poll_output() {
                Output::Timeout(at) => return self.deadlines[1] = at,
                Output::Transmit { to: Destination::Peer(KGC_LEADER_LINK), payload } => {
                    self.flights.push_back(InFlight::Kgc(KGC_LEADER_LINK, payload));
                }
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    self.flights.push_back(flight(to, companions::LEADER, payload));
                }
                Output::Transmit { to: Destination::Group, payload } => {
                    for index in 0..self.companions.len() {
                        let copy = payload.clone();
                        self.flights.push_back(InFlight::Companion(index, companions::LEADER, copy));
                    }
                    if let Some(number) = self.to_leader.filter(|_| self.wants.group() == Some(GROUP)) {
                        self.flights.push_back(InFlight::Board(number, quiver_link::Via::Group, payload));
                    }
                }
                Output::Event(event) => self.leader_events.push(event),
                Output::Persist(record) => self.leader_records.push(record),
                Output::Block(_) | Output::Relay { .. } | Output::Penalize { .. } => {}
            }
        }
    }
}

fn leader_config(
    deployment: &Deployment<S>,
    token: Option<IssuedToken<S>>,
    strategy: StrategyKind,
    timing: LeaderTiming,
) -> LeaderConfig<S> {
    LeaderConfig {
        deployment: deployment.clone(),
        group: name(GROUP),
        token,
        kgcs: Kgcs::single(),
        allow: BTreeSet::new(),
        max_members: 2_000,
        strategy,
        timing,
    }
}

/// A message of KGC or leader to the node with this handle.
fn flight(to: Peer, from: Peer, payload: Vec<u8>) -> InFlight {
    match companions::index(to) {
        Some(index) => InFlight::Companion(index, from, payload),
        None => InFlight::Board(to.0, quiver_link::Via::Peer, payload),
    }
}

/// A name that is one.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn grant(drone: &str, role: Role) -> TokenGrant {
    let (not_after, expiry) = (EPOCH_START + 10_000_000, EPOCH_START + 1_000_000);
    TokenGrant { name: name(drone), role, groups: vec![name(GROUP)], not_after, expiry }
}
