//! The node: machine, stored state, gateway session, clock and randomness. Everything of a board but its line
//! and console, whose input and output [`run`](crate::run) carries.

mod board_state;
mod commands;
mod connections;
pub(crate) mod gateway;
mod persistence;
mod status;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::Ristretto255;
use quiver_enrolment::Kgcs;
use quiver_group::edge::{EdgeStatus, EdgeTiming};
use quiver_group::{Edge, EdgeConfig};
use quiver_link::{BoardEvent, Route as LinkRoute, Via as LinkVia, Wants};
use quiver_machine::{Either, Input, Machine, MachinePart, Output, Peer, Route, Via};
use rand_core::CryptoRngCore;

pub(crate) use self::board_state::BoardState;
use self::persistence::FlashStore;
use crate::console::LineReader;
use crate::parts::{BoardPart, PartContext, PartRequest};
use crate::randomness::Randomness;
use crate::storage::Storage;
use crate::stored_state::StoredState;
use crate::{About, FrameErrors, Hooks, IndicatorState, RadioAddress};

pub(crate) type S = Ristretto255;
/// The edge with the machine that the parts have beside it.
type BoardMachine<P> = quiver_machine::Node<Edge<S>, <P as BoardPart>::Beside>;
/// Commands of the machine.
type MachineCommand<P> = <BoardMachine<P> as Machine>::Command;

/// The longest message that a board takes, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024;
/// The longest revocation list that a board takes, in bytes: without its edges, it has some 330 leaders.
const MAX_LIST: u32 = 8 * 1024;
const _: () = assert!(MAX_LIST as usize == quiver_ainq::BOARD_REVOCATION_LIST_LEN);
/// Time without an answer from a leader after which the board asks for one.
const PROBE: Duration = Duration::from_secs(300);
/// Greatest age of a leader's last answer at which the board counts as served: a few tries after [`PROBE`].
const LATELY: Duration = Duration::from_secs(420);
/// Number of senders of group messages for which the board keeps windows in an epoch: at worst 21 KB, and as
/// much again while the epoch before is still received.
const SENDERS: u32 = 32;
/// Period of the reports of counters to the gateway.
const REPORT: Duration = Duration::from_secs(60);

/// See the [module](self).
pub(crate) struct BoardEdgeNode<F, R, P: BoardPart> {
    pub(crate) board: BoardState<R>,
    store: FlashStore<F>,
    parts: P,
    machine: Option<Box<BoardMachine<P>>>,
    /// Deadline of the machine.
    deadline: Option<Duration>,
    lines: LineReader,
    next_report: Duration,
    pub(crate) frame_errors: FrameErrors,
    /// The radio address, if there is one, when it may just have changed.
    pub(crate) moved: Option<Option<RadioAddress>>,
    pub(crate) must_reset: bool,
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore, P: BoardPart> BoardEdgeNode<F, R, P> {
    /// Boxed: it is large, and moving it would use the stack.
    #[inline(never)]
    pub(crate) fn new(about: About, storage: Storage<F>, rng: R, mtu: usize, parts: P) -> Box<Self> {
        Box::new(Self {
            board: BoardState::new(about, Randomness::new(rng), mtu),
            store: FlashStore::new(storage),
            parts,
            machine: None,
            deadline: None,
            lines: LineReader::new(),
            next_report: Duration::ZERO,
            frame_errors: FrameErrors::default(),
            moved: None,
            must_reset: false,
        })
    }

    /// Calls the parts with what they use of the node.
    fn with_parts<T>(&mut self, now: Duration, act: impl FnOnce(&mut P, &mut PartContext<'_, R>) -> T) -> T {
        let is_ready = self.is_ready();
        let edge = self.machine.as_deref().map(|machine| &**machine);
        let takes_extensions = P::Beside::TAKES_MESSAGES;
        let (state_limit, board) = (self.store.limit(), &mut self.board);
        act(&mut self.parts, &mut PartContext { now, is_ready, takes_extensions, edge, state_limit, board })
    }

    /// Starts anew with the gateway if the link now carries datagrams of another length: it is another
    /// medium.
    pub(crate) async fn use_mtu(&mut self, now: Duration, mtu: usize) {
        if self.board.gateway.mtu == mtu {
            return;
        }
        let start = self.board.random.number();
        self.board.gateway.use_medium(mtu, start);
        self.parts.medium_changed();
        self.want();
        self.part_with_all(now).await;
    }

    /// Takes a datagram from the medium: the gateway's, for this board or for all, or the group's.
    pub(crate) fn handle_datagram(&mut self, now: Duration, datagram: &[u8]) {
        if !self.with_parts(now, |parts, cx| parts.handle_datagram(cx, datagram)) {
            self.board.gateway.endpoint.handle_datagram(now, datagram);
        }
    }

    /// The next datagram for the gateway.
    pub(crate) fn poll_datagram(&mut self, clock: fn() -> Duration) -> Option<Vec<u8>> {
        let datagram = self.board.gateway.endpoint.poll_datagram(clock());
        datagram.or_else(|| self.parts.poll_datagram(&self.board, clock))
    }

    /// The next datagram for everybody on the medium.
    pub(crate) fn poll_broadcast(&mut self, clock: fn() -> Duration) -> Option<Vec<u8>> {
        self.parts.poll_broadcast(clock)
    }

    /// Does everything that is due. At most a handful of operations of the machine, with the watchdog fed
    /// between.
    pub(crate) async fn work(&mut self, now: Duration, hooks: &mut impl Hooks) {
        if !self.store.is_loaded() && self.store.may_retry(now) {
            self.load(now).await;
        }
        self.board.gateway.endpoint.handle_timeout(now);
        while self.is_fit(now).await {
            let Some(event) = self.board.gateway.endpoint.poll_event() else { break };
            self.handle_gateway_event(now, event).await;
            hooks.alive();
        }
        let mut is_due = self.deadline.is_some_and(|at| at <= now);
        while self.feed(now, core::mem::take(&mut is_due)) {
            self.drain(now).await;
            hooks.alive();
        }
        self.with_parts(now, |parts, cx| parts.step(cx));
        self.want();
        let is_served = self.is_served(now);
        self.board.gateway.endpoint.set_served(now, is_served);
        if self.next_report <= now && self.board.gateway.endpoint.has_session() {
            self.next_report = now.saturating_add(REPORT);
            self.send_report(now, hooks);
        }
    }

    /// Deadline by which [`work`](Self::work) must be called.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Duration> {
        let machine = self.store.blocked_until().or(self.deadline);
        let parts = self.with_parts(now, |parts, cx| parts.due(cx));
        let endpoint = &self.board.gateway.endpoint;
        let report = endpoint.has_session().then_some(self.next_report);
        [machine, parts, report, endpoint.timeout()].into_iter().flatten().min()
    }

    /// Returns true if an input can be taken, as far as is known: the state before is durable, and randomness was well.
    const fn is_ready(&self) -> bool {
        self.store.is_loaded() && self.store.is_durable() && !self.board.random.is_faulty()
    }

    /// Returns true if an input can be taken. Looks whether randomness is well, and tries again to make the state
    /// before durable.
    async fn is_fit(&mut self, now: Duration) -> bool {
        if !self.store.is_loaded() || !self.board.check_randomness(now) {
            return false;
        }
        self.store.is_durable() || (self.store.may_retry(now) && self.drain(now).await)
    }

    /// Feeds the machine an input and executes its outputs.
    async fn input(&mut self, now: Duration, input: Input<'_, MachineCommand<P>>) {
        self.advance(now, input);
        self.drain(now).await;
    }

    /// Apart from what waits, so that the stack under the machine's deepest calls holds nothing else.
    #[inline(never)]
    fn advance(&mut self, now: Duration, input: Input<'_, MachineCommand<P>>) {
        let times = self.board.times(now);
        if let (Some(machine), Some(rng)) = (&mut self.machine, self.board.random.generator(now)) {
            machine.handle_input(times, input, rng);
            self.parts.machine_changed();
        }
    }

    /// Executes the machine's outputs in order. False if something could not be made durable: the rest waits.
    async fn drain(&mut self, now: Duration) -> bool {
        loop {
            if self.store.holds() && !self.save(now).await {
                return false;
            }
            if let Some((to, payload)) = self.store.take_held() {
                self.board.gateway.transmit(to, payload);
            }
            let Some(machine) = &mut self.machine else { return true };
            match machine.poll_output() {
                Output::Persist(state) => self.store.must_save(state.into_left()),
                Output::Transmit { to, payload } => self.store.hold(to, payload),
                Output::Event(Either::Left(event)) => {
                    self.parts.edge_event(&mut self.board, &event);
                    self.board.report_event(event);
                }
                Output::Event(Either::Right(event)) => self.parts.beside_event(&mut self.board, event),
                Output::Block(peer) => self.board.gateway.block(peer),
                // A board relays for nobody and penalises nobody.
                Output::Relay { .. } | Output::Penalize { .. } | Output::Disconnect(_) => {}
                Output::Timeout(at) => {
                    self.deadline = at;
                    return self.save(now).await;
                }
            }
        }
    }

    /// Feeds the machine its timeout if that is due, or else executes the next request of a part. False if there is
    /// nothing to do, or nothing can be done now. The caller drains the machine: with one place that waits, the image is
    /// smaller than with one for each request.
    #[inline(never)]
    fn feed(&mut self, now: Duration, is_due: bool) -> bool {
        if !self.is_ready() {
            return false;
        }
        if is_due {
            self.advance(now, Input::Timeout);
            return true;
        }
        match self.with_parts(now, |parts, cx| parts.poll_request(cx)) {
            None => return false,
            Some(PartRequest::Command(command)) => self.advance(now, Input::Command(command)),
            Some(PartRequest::Publication { from, bytes }) => {
                self.advance(now, Input::Received { from, via: Via::Group, bytes: &bytes });
            }
            Some(PartRequest::Store(state)) => self.store.must_save(state),
        }
        true
    }

    /// Handles an event of the link to the gateway.
    async fn handle_gateway_event(&mut self, now: Duration, event: BoardEvent) {
        match event {
            BoardEvent::Begun { unix_time } => {
                self.board.clock.begin(unix_time, now);
                self.next_report = now;
                self.parts.session_began(&mut self.board);
                let time = self.board.clock.unix(now);
                self.print_line(format_args!("gateway connected time {time}"));
            }
            BoardEvent::Time { unix_time } => self.board.clock.adjust(unix_time, now),
            BoardEvent::Connected { peer, route } => {
                let route = match route {
                    LinkRoute::Kgc => Route::Kgc,
                    LinkRoute::Leader => Route::Leader,
                };
                if let Some(peer) = self.board.gateway.connections.connected(peer, route) {
                    self.input(now, Input::Connected { peer, route }).await;
                    self.with_parts(now, |parts, cx| parts.connected(cx, peer, route));
                }
            }
            BoardEvent::Disconnected { peer } => {
                if let Some(peer) = self.board.gateway.connections.disconnected(peer) {
                    self.part_with(now, peer).await;
                }
            }
            BoardEvent::Received { from, via, bytes } => {
                // A peer of which the board does not know is one too many for it.
                let Some(from) = self.board.gateway.connections.peer(from) else { return };
                if self.with_parts(now, |parts, cx| parts.received(cx, from, &bytes)) {
                    return;
                }
                let via = match via {
                    LinkVia::Peer => Via::Peer,
                    LinkVia::Group => Via::Group,
                };
                self.input(now, Input::Received { from, via, bytes: &bytes }).await;
            }
            BoardEvent::Lost => {
                self.print_line(format_args!("gateway lost"));
                self.part_with_all(now).await;
            }
        }
    }

    async fn part_with_all(&mut self, now: Duration) {
        while let Some(peer) = self.board.gateway.connections.pop() {
            self.part_with(now, peer).await;
        }
    }

    async fn part_with(&mut self, now: Duration, peer: Peer) {
        self.input(now, Input::Disconnected { peer }).await;
        self.with_parts(now, |parts, cx| parts.disconnected(cx, peer));
    }

    /// Connects a new machine to all current peers.
    async fn connect_machine(&mut self, now: Duration) {
        self.deadline = Some(Duration::ZERO);
        for (peer, route) in self.board.gateway.connections.renamed() {
            self.input(now, Input::Connected { peer, route }).await;
        }
    }

    /// Creates the machine for these settings. Apart from what waits, because settings take more than a kilobyte of the
    /// stack.
    #[inline(never)]
    fn create_machine(&mut self, now: Duration, stored: StoredState) {
        let StoredState { mut settings, record, state } = stored;
        let config = EdgeConfig {
            deployment: settings.deployment.clone(),
            group: settings.group.clone(),
            token: settings.token.take().filter(|_| state.is_none()),
            // Others than a single KGC are provisioned for a part alone.
            kgcs: P::kgcs(&settings).unwrap_or_else(Kgcs::single),
            timing: EdgeTiming { probe: Some(PROBE), ..EdgeTiming::default() },
        };
        let kem = settings.kem;
        self.board.clock.set_floor(settings.time, now);
        self.moved = Some(settings.radio.map(|place| RadioAddress { pan: place.pan, short: place.address }));
        self.board.settings = Some(settings);
        self.parts.restore(&mut self.board, &record, state.as_ref());
        match Edge::new(config, state.as_ref()) {
            Ok(machine) => {
                let machine = machine.with_kem(kem).with_senders(SENDERS).with_list_limit(MAX_LIST);
                self.machine = Some(Box::new(BoardMachine::<P>::new(machine, P::beside())));
            }
            Err(error) => self.board.report_restore_error(&error),
        }
        self.parts.machine_changed();
    }

    /// Sends the gateway the connections that the board wants.
    fn want(&mut self) {
        let status = self.status();
        let group = status.as_ref().and_then(|status| status.group.as_ref());
        let enrolling = status.as_ref().is_some_and(|status| status.name.is_none());
        let kgc = enrolling || self.parts.wants_kgcs();
        // A group's name has the same alphabet here and there.
        if let Ok(wants) = Wants::new(group.map(quiver_ainq::Name::as_str), kgc) {
            self.board.gateway.endpoint.set_wants(wants);
        }
    }

    /// Returns true if the board has what it wants of others: it is enrolled and, if it has a group, in sync
    /// with it, connected to a leader, and has an answer from one that is not old. The connection is the
    /// gateway's word alone; an answer is a leader's.
    fn is_served(&self, now: Duration) -> bool {
        // A board that is not provisioned wants nothing.
        let Some(status) = self.status() else { return true };
        let has_leader = self.board.gateway.connections.has(Route::Leader);
        let follows = status.synced && has_leader && answered_lately(&status, now);
        status.name.is_some() && (follows || status.group.is_none())
    }

    fn status(&self) -> Option<EdgeStatus> {
        self.machine.as_deref().map(|machine| machine.status())
    }

    /// State of the node, for LEDs.
    pub(crate) fn state(&self, now: Duration) -> IndicatorState {
        let is_faulty = self.board.random.is_faulty();
        let Some(status) = self.status() else {
            return if self.store.is_loaded() && self.board.settings.is_none() && !is_faulty {
                IndicatorState::Unprovisioned
            } else {
                IndicatorState::Fault
            };
        };
        match status {
            _ if self.store.blocked_until().is_some() || is_faulty => IndicatorState::Fault,
            _ if !self.board.gateway.endpoint.has_session() => IndicatorState::NoGateway,
            EdgeStatus { name: None, .. } => IndicatorState::Enrolling,
            EdgeStatus { synced: false, .. } => IndicatorState::Joining,
            status if answered_lately(&status, now) => IndicatorState::Member,
            _ => IndicatorState::NoLeader,
        }
    }
}

fn answered_lately(status: &EdgeStatus, now: Duration) -> bool {
    status.answered.is_some_and(|at| now.saturating_sub(at) < LATELY)
}
