//! A board with the real firmware, and a KGC, a leader and a gateway as they really are, in virtual time.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quiver_ainq::{
    Deployment, Handle, IssuedToken, MasterSecret, Name, OperatorSecretKey, Ristretto255, Role, StrategyKind,
    TokenGrant,
};
use quiver_crypto::Secret;
use quiver_firmware::{About, Board, Hooks, Memory, ResetCause, SerialLine, State, run};
use quiver_link::{
    Destination as LinkDestination, GatewayEndpoint, GatewayEvent, Limits, LineDecoder, Report,
    Route as LinkRoute, ToBoard, Wants, encode_line,
};
use quiver_role::edge::Provisioning;
use quiver_role::leader::LeaderTiming;
use quiver_role::{
    Destination, Input, Kgc, KgcCommand, KgcConfig, Kgcs, Leader, LeaderCommand, LeaderConfig, LeaderEvent,
    LeaderRecord, Machine, Now, Output, Peer, Route,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{CryptoRng, Error, RngCore, SeedableRng};

use self::companions::Companion;
use crate::flash::Flash;
use crate::wire::Wire;
use crate::{meter, time};

#[path = "companions.rs"]
mod companions;

type S = Ristretto255;
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// 2027-01-01, in seconds since 1970.
pub(crate) const EPOCH_START: u64 = 1_798_761_600;
pub(crate) const GROUP: &str = "alpha";
/// Pages of the flash region.
const PAGES: usize = 16;
/// What the leader and the KGC know each other as.
const COLLEAGUE: Peer = Peer(1);

/// What is shared with the board's hooks.
#[derive(Clone, Default)]
pub(crate) struct Knobs {
    /// The board asked to start anew.
    reset: Rc<Cell<bool>>,
    /// Somebody holds the button.
    pub(crate) button: Rc<Cell<bool>>,
    pub(crate) state: Rc<Cell<Option<State>>>,
    /// When the watchdog was fed last, and the longest that it was not.
    fed: Rc<Cell<Duration>>,
    pub(crate) starved: Rc<Cell<Duration>>,
    /// The source of randomness gives the same byte for ever.
    pub(crate) stuck: Rc<Cell<bool>>,
}

impl Hooks for Knobs {
    fn alive(&mut self) {
        self.starved.set(self.starved.get().max(time::now() - self.fed.get()));
        self.fed.set(time::now());
    }

    fn show(&mut self, state: State) {
        self.state.set(Some(state));
    }

    fn memory(&self) -> Memory {
        Memory { heap_size: Some(65_536), ..Memory::default() }
    }

    async fn wipe_button(&mut self) {
        poll_fn(|_| if self.button.take() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    async fn reset(&mut self) -> ! {
        self.reset.set(true);
        pending().await
    }
}

struct Source {
    rng: ChaCha20Rng,
    stuck: Rc<Cell<bool>>,
}

impl RngCore for Source {
    fn next_u32(&mut self) -> u32 {
        self.rng.next_u32()
    }
    fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.rng.fill_bytes(bytes);
        if self.stuck.get() {
            bytes.fill(0xa5);
        }
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Source {}

/// Who a message on the ground is for, and from whom it is as its receiver knows them.
enum Flight {
    Kgc(Peer, Vec<u8>),
    Leader(Peer, Vec<u8>),
    Board(u64, Vec<u8>),
    Companion(usize, Peer, Vec<u8>),
}

pub(crate) struct World {
    rng: ChaCha20Rng,
    pub(crate) deployment: Deployment<S>,
    operator: OperatorSecretKey<S>,
    kgc: Kgc<S>,
    leader: Leader<S>,
    leading: (StrategyKind, LeaderTiming),
    /// What the leader keeps.
    leader_records: Vec<LeaderRecord>,
    deadlines: [Option<Duration>; 2],
    pub(crate) leader_events: Vec<LeaderEvent>,
    pub(crate) companions: Vec<Companion>,
    flights: VecDeque<Flight>,
    pub(crate) gateway: GatewayEndpoint,
    decoder: LineDecoder,
    /// Whether the gateway runs.
    pub(crate) gateway_up: bool,
    /// Whether the leader that the gateway speaks of is made up: what is for the leader, and what it says, goes nowhere.
    pub(crate) leader_made_up: bool,
    wants: Wants,
    /// What the board knows KGC and leader as; they know it by the same number.
    to_kgc: Option<u64>,
    to_leader: Option<u64>,
    last_number: u64,
    pub(crate) report: Option<Report>,
    pub(crate) wire: Wire,
    pub(crate) console: Wire,
    pub(crate) flash: Flash,
    pub(crate) knobs: Knobs,
    board: Option<Running>,
    starts: u64,
    /// All that the console ever said.
    pub(crate) said: String,
    /// All datagrams that ever came from the board.
    pub(crate) sent: Vec<u8>,
}

impl World {
    /// Everything runs, and the board is fresh from the factory.
    pub(crate) fn new(seed: u64, strategy: StrategyKind, timing: LeaderTiming) -> Self {
        Self::with_flash(seed, strategy, timing, PAGES)
    }

    /// The same, with a region of so many pages for the state.
    pub(crate) fn with_flash(seed: u64, strategy: StrategyKind, timing: LeaderTiming, pages: usize) -> Self {
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
        let mut world = Self {
            kgc: Kgc::new(kgc, Vec::new()).unwrap(),
            leading: (strategy, timing),
            leader: Leader::new(leader, Vec::new()).unwrap(),
            leader_records: Vec::new(),
            companions: Vec::new(),
            rng,
            deployment,
            operator,
            deadlines: [Some(Duration::ZERO); 2],
            leader_events: Vec::new(),
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
            wire: Wire::new(seed),
            console: Wire::new(seed),
            flash: Flash::new(pages, seed),
            knobs: Knobs::default(),
            board: None,
            starts: 0,
            said: String::new(),
            sent: Vec::new(),
        };
        world.feed_kgc(Input::Connected { peer: COLLEAGUE, route: Route::Inbound });
        world.feed_leader(Input::Connected { peer: COLLEAGUE, route: Route::Kgc });
        world.start_board();
        world
    }

    /// A world whose board is a member.
    pub(crate) fn joined(seed: u64) -> Self {
        let mut world = Self::new(seed, StrategyKind::Flat, LeaderTiming::default());
        world.provision("board-1");
        world.until("a key", |world| world.said.contains("\nkey "));
        world
    }

    pub(crate) fn provisioning(&mut self, drone: &str) -> Provisioning<S> {
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

    pub(crate) fn provision(&mut self, drone: &str) {
        let bytes = self.provisioning(drone).encode();
        self.type_line(&format!("provision {}", hex::encode(&*bytes)));
        self.until("provisioned", |world| world.said.contains("\nprovisioned\n"));
    }

    /// Power comes, or comes back.
    pub(crate) fn start_board(&mut self) {
        self.flash.power_on();
        self.starts += 1;
        let rng = ChaCha20Rng::seed_from_u64(self.rng.next_u64() ^ self.starts);
        self.knobs.fed.set(time::now());
        let board = Board {
            link: SerialLine::new(self.wire.clone()),
            console: self.console.clone(),
            flash: self.flash.clone(),
            rng: Source { rng, stuck: self.knobs.stuck.clone() },
            hooks: self.knobs.clone(),
            about: About { name: "test", mcu: "host", clock_hz: 1, reset: ResetCause::Power },
        };
        self.board = Some(meter::board(|| -> Running { Box::pin(async move { run(board).await }) }));
    }

    /// Power goes.
    pub(crate) fn stop_board(&mut self) {
        let board = self.board.take();
        meter::board(|| drop(board));
        meter::forget();
        self.console.both().to_board.clear();
        self.wire.both().to_board.clear();
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.console.say(line.as_bytes());
        self.console.say(b"\n");
    }

    pub(crate) fn lead(&mut self, command: LeaderCommand) {
        self.feed_leader(Input::Command(command));
    }

    /// The KGC revokes so many keys of nobody here.
    pub(crate) fn revoke(&mut self, count: u8) {
        let handles = (0..count).map(|n| Handle([n; 32])).collect();
        self.feed_kgc(Input::Command(KgcCommand::RevokeDrones { handles, serials: Vec::new() }));
    }

    /// Lets time pass until something holds; within an hour.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let limit = time::now() + Duration::from_secs(3_600);
        while !holds(self) {
            assert!(time::now() < limit, "never: {what}; the console said:\n{}", self.said);
            self.step(limit);
        }
    }

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = time::now() + span;
        while time::now() < end {
            self.step(end);
        }
    }

    /// The newest line that the console said of this kind.
    pub(crate) fn last(&self, kind: &str) -> Option<&str> {
        self.said.lines().rfind(|line| line.starts_with(kind))
    }

    /// Everything that is to be done now; if that is nothing, the next moment when there is something, at most `end`.
    fn step(&mut self, end: Duration) {
        let mut busy = self.poll_board();
        busy |= self.work_gateway();
        busy |= self.deliver();
        if busy {
            return;
        }
        let gateway = self.gateway.timeout().filter(|_| self.gateway_up);
        let next =
            [Some(time::alarm()), gateway, self.deadlines[0], self.deadlines[1], self.companions_due()];
        let next = next.into_iter().flatten().min().unwrap_or(end).min(end);
        time::set(next.max(time::now() + Duration::from_micros(1)));
        self.wake();
    }

    fn wake(&mut self) {
        let now = time::now();
        if self.deadlines[0].is_some_and(|at| at <= now) {
            self.feed_kgc(Input::Timeout);
        }
        if self.deadlines[1].is_some_and(|at| at <= now) {
            self.feed_leader(Input::Timeout);
        }
        self.wake_companions();
    }

    /// Whether anything came of it.
    fn poll_board(&mut self) -> bool {
        time::forget_alarms();
        if let Some(board) = &mut self.board {
            let polled = meter::board(|| board.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            assert!(polled.is_pending(), "a board never ends");
        }
        let said = self.console.hear();
        self.said.push_str(&String::from_utf8_lossy(&said));
        let powered = self.flash.chip().powered;
        if self.board.is_some() && (!powered || self.knobs.reset.take()) {
            self.stop_board();
            self.start_board();
            return true;
        }
        !said.is_empty()
    }

    fn work_gateway(&mut self) -> bool {
        let (now, bytes) = (time::now(), self.wire.hear());
        if !self.gateway_up {
            return false;
        }
        let mut input = bytes.as_slice();
        while let Some(frame) = self.decoder.next_frame(&mut input) {
            self.sent.extend(frame.datagram);
            self.gateway.handle_datagram(now, frame.datagram);
        }
        self.gateway.handle_timeout(now);
        let mut busy = !bytes.is_empty();
        while let Some(event) = self.gateway.poll_event() {
            busy = true;
            self.gateway_event(event);
        }
        while let Some(datagram) = self.gateway.poll_datagram(now, EPOCH_START + now.as_secs()) {
            busy = true;
            self.wire.say(&encode_line(0, &datagram).unwrap());
        }
        busy
    }

    fn gateway_event(&mut self, event: GatewayEvent) {
        match event {
            GatewayEvent::Begun { wants, .. } => {
                self.hang_up();
                self.connect(wants);
            }
            GatewayEvent::Wants(wants) => self.connect(wants),
            GatewayEvent::Transmit { to: LinkDestination::Peer(number), payload } => {
                if self.to_kgc == Some(number) {
                    self.flights.push_back(Flight::Kgc(Peer(number), payload));
                } else if self.to_leader == Some(number) {
                    self.flights.push_back(Flight::Leader(Peer(number), payload));
                }
            }
            GatewayEvent::Transmit { to: LinkDestination::Group, payload } => {
                let from = Peer(self.to_leader.unwrap_or(0));
                self.flights.push_back(Flight::Leader(from, payload));
            }
            GatewayEvent::Block { peer } => panic!("the board blocks {peer}"),
            GatewayEvent::Report(report) => self.report = Some(report),
            GatewayEvent::Lost => self.hang_up(),
        }
    }

    fn connect(&mut self, wants: Wants) {
        if wants.kgc && self.to_kgc.is_none() {
            let number = self.number();
            self.to_kgc = Some(number);
            let _ = self.gateway.send(&ToBoard::Connected { peer: number, route: LinkRoute::Kgc });
            self.feed_kgc(Input::Connected { peer: Peer(number), route: Route::Inbound });
        }
        if !wants.kgc
            && let Some(number) = self.to_kgc.take()
        {
            let _ = self.gateway.send(&ToBoard::Disconnected { peer: number });
            self.feed_kgc(Input::Disconnected { peer: Peer(number) });
        }
        if self.to_leader.is_none() {
            let number = self.number();
            self.to_leader = Some(number);
            let _ = self.gateway.send(&ToBoard::Connected { peer: number, route: LinkRoute::Leader });
            self.feed_leader(Input::Connected { peer: Peer(number), route: Route::Inbound });
        }
        self.wants = wants;
    }

    fn hang_up(&mut self) {
        if let Some(number) = self.to_kgc.take() {
            self.feed_kgc(Input::Disconnected { peer: Peer(number) });
        }
        if let Some(number) = self.to_leader.take() {
            self.feed_leader(Input::Disconnected { peer: Peer(number) });
        }
        self.wants = Wants::default();
    }

    /// The board hears these bytes as if its leader had said them.
    pub(crate) fn pretend(&mut self, bytes: &[u8]) {
        let from = self.to_leader.expect("a leader is connected");
        self.gateway.send(&ToBoard::Received { from, bytes: bytes.into() }).unwrap();
    }

    /// Another gateway takes this one's place.
    pub(crate) fn restart_gateway(&mut self) {
        self.hang_up();
        self.gateway = GatewayEndpoint::new(Limits::line(1 << 17), self.rng.next_u32());
        self.decoder = LineDecoder::new();
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn deliver(&mut self) -> bool {
        let mut busy = false;
        while let Some(flight) = self.flights.pop_front() {
            busy = true;
            match flight {
                Flight::Leader(from, _) if self.leader_made_up && from != COLLEAGUE => {}
                Flight::Board(from, _) if self.leader_made_up && self.to_leader == Some(from) => {}
                Flight::Kgc(from, bytes) => self.feed_kgc(Input::Received { from, bytes: &bytes }),
                Flight::Leader(from, bytes) => self.feed_leader(Input::Received { from, bytes: &bytes }),
                Flight::Board(from, bytes) => {
                    let _ = self.gateway.send(&ToBoard::Received { from, bytes });
                }
                Flight::Companion(index, from, bytes) => {
                    self.feed_companion(index, Input::Received { from, bytes: &bytes });
                }
            }
        }
        busy
    }

    fn times() -> Now {
        Now { monotonic: time::now(), unix: EPOCH_START + time::now().as_secs() }
    }

    fn feed_kgc(&mut self, input: Input<'_, KgcCommand>) {
        self.kgc.handle_input(Self::times(), input, &mut self.rng);
        loop {
            match self.kgc.poll_output() {
                Output::Timeout(at) => return self.deadlines[0] = at,
                Output::Transmit { to: Destination::Peer(COLLEAGUE), payload } => {
                    self.flights.push_back(Flight::Leader(COLLEAGUE, payload));
                }
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    self.flights.push_back(flight(to, companions::KGC, payload));
                }
                _ => {}
            }
        }
    }

    fn feed_leader(&mut self, input: Input<'_, LeaderCommand>) {
        self.leader.handle_input(Self::times(), input, &mut self.rng);
        loop {
            match self.leader.poll_output() {
                Output::Timeout(at) => return self.deadlines[1] = at,
                Output::Transmit { to: Destination::Peer(COLLEAGUE), payload } => {
                    self.flights.push_back(Flight::Kgc(COLLEAGUE, payload));
                }
                Output::Transmit { to: Destination::Peer(to), payload } => {
                    self.flights.push_back(flight(to, companions::LEADER, payload));
                }
                Output::Transmit { to: Destination::Group, payload } => {
                    for index in 0..self.companions.len() {
                        let copy = payload.clone();
                        self.flights.push_back(Flight::Companion(index, companions::LEADER, copy));
                    }
                    if let Some(number) = self.to_leader.filter(|_| self.wants.group() == Some(GROUP)) {
                        self.flights.push_back(Flight::Board(number, payload));
                    }
                }
                Output::Event(event) => self.leader_events.push(event),
                Output::Persist(record) => self.leader_records.push(record),
                Output::Block(_) => {}
            }
        }
    }

    /// The leader starts again from what it keeps.
    pub(crate) fn restart_leader(&mut self) {
        self.hang_up();
        let (strategy, timing) = self.leading;
        let config = leader_config(&self.deployment, None, strategy, timing);
        self.leader = Leader::new(config, self.leader_records.clone()).unwrap();
        self.feed_leader(Input::Connected { peer: COLLEAGUE, route: Route::Kgc });
        self.connect(self.wants.clone());
        self.reconnect_companions();
    }

    /// The leader's epoch, as the console spells it: `term.counter`, and its digest.
    pub(crate) fn epoch(&self) -> Option<String> {
        let status = self.leader.status();
        let epoch = status.epoch?;
        let digest = status.digest.map(hex::encode)?;
        Some(format!("{}.{} digest {digest}", epoch.term, epoch.counter))
    }

    /// The board's epoch, likewise.
    pub(crate) fn board_epoch(&self) -> Option<String> {
        let words: Vec<_> = self.last("key ")?.split(' ').collect();
        Some(format!("{} digest {}", words[1], words[5]))
    }

    /// Whether the board holds the leader's key.
    pub(crate) fn agree(&self) -> bool {
        self.board_epoch().is_some() && self.board_epoch() == self.epoch()
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

/// What KGC or leader says to whom they know by this number.
fn flight(to: Peer, from: Peer, payload: Vec<u8>) -> Flight {
    match companions::index(to) {
        Some(index) => Flight::Companion(index, from, payload),
        None => Flight::Board(to.0, payload),
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn grant(drone: &str, role: Role) -> TokenGrant {
    let (not_after, expiry) = (EPOCH_START + 10_000_000, EPOCH_START + 1_000_000);
    TokenGrant { name: name(drone), role, groups: vec![name(GROUP)], not_after, expiry }
}
