//! The node: machine, stored state, gateway session, clock and randomness. Everything of a board but its line
//! and console, whose input and output [`run`](crate::run) carries.

#[cfg_attr(feature = "envelopes", path = "parts/envelopes/attribute_keys.rs")]
#[cfg_attr(not(feature = "envelopes"), path = "node/attributes/absent.rs")]
mod attributes;
#[cfg_attr(feature = "broadcasts", path = "parts/broadcasts.rs")]
#[cfg_attr(not(feature = "broadcasts"), path = "node/broadcasts/absent.rs")]
mod broadcasts;
mod commands;
mod connections;
#[cfg(feature = "envelopes")]
#[path = "parts/envelopes/sealing.rs"]
mod envelopes;
#[cfg_attr(feature = "datagrams", path = "parts/datagrams.rs")]
#[cfg_attr(not(feature = "datagrams"), path = "node/group_datagrams/absent.rs")]
mod group_datagrams;
mod persistence;
mod reports;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use quiver_ainq::Ristretto255;
use quiver_enrolment::Kgcs;
use quiver_group::edge::{EdgeCommand, EdgeStatus, EdgeTiming, Provisioning};
use quiver_group::{Edge, EdgeConfig};
use quiver_link::{BoardEndpoint, BoardEvent, BoardReport, EndpointLimits, Route as LinkRoute, Wants};
use quiver_machine::{Destination, Either, Input, Machine, Now, Output, Peer, Route, Snapshot, Via};
use rand_core::CryptoRngCore;

use self::attributes::{Attributes, Parts, parts};
use self::broadcasts::Broadcasts;
use self::connections::Connections;
use self::group_datagrams::GroupDatagrams;
use crate::clock::GatewayClock;
use crate::console::LineReader;
use crate::randomness::Randomness;
use crate::storage::Storage;
use crate::stored_state::StoredState;
use crate::{About, FrameErrors, Hooks, IndicatorState, RadioAddress};

pub(crate) type S = Ristretto255;
/// The edge with what this image has beside it.
type ImageEdge = quiver_machine::Node<Edge<S>, Parts>;
/// Commands of the machine.
type EdgeNodeCommand = <ImageEdge as Machine>::Command;

/// The longest message that a board takes, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024;
/// The longest revocation list that a board takes, in bytes: without its edges, it has some 330 leaders.
const MAX_LIST: u32 = 8 * 1024;
const _: () = assert!(MAX_LIST as usize == quiver_ainq::BOARD_REVOCATION_LIST_LEN);
/// Delay before a failed operation is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// The same for writes to flash that fail again and again.
const RETRY_MAX: Duration = Duration::from_secs(600);
/// Time without an answer from a leader after which the board asks for one.
const PROBE: Duration = Duration::from_secs(300);
/// Greatest age of a leader's last answer at which the board counts as served: a few tries after [`PROBE`].
const LATELY: Duration = Duration::from_secs(420);
/// Number of senders of group messages for which the board keeps windows in an epoch: at worst 21 KB, and as
/// much again while the epoch before is still received.
const SENDERS: u32 = 32;
/// Period of the reports of counters to the gateway.
const REPORT: Duration = Duration::from_secs(60);

/// Returns true if a medium that carries datagrams of this length is a radio.
const fn is_radio(mtu: usize) -> bool {
    mtu < 512
}

/// Link limits for a medium that carries datagrams of this length.
fn limits(mtu: usize) -> EndpointLimits {
    let limits =
        if is_radio(mtu) { EndpointLimits::radio(MAX_MESSAGE) } else { EndpointLimits::line(MAX_MESSAGE) };
    EndpointLimits { mtu, ..limits }
}

/// See the [module](self).
pub(crate) struct BoardEdgeNode<F, R> {
    pub(crate) about: About,
    storage: Storage<F>,
    /// True if the flash has been looked at.
    loaded: bool,
    retry_at: Duration,
    patience: Duration,
    /// Delay before the state that was replaced by a too long one is restored.
    relapse: Duration,
    random: Randomness<R>,
    /// True if the console knows that randomness fails.
    reported_faulty: bool,
    clock: GatewayClock,
    settings: Option<Provisioning<S>>,
    machine: Option<Box<ImageEdge>>,
    deadline: Option<Duration>,
    attributes: Attributes,
    group_datagrams: GroupDatagrams,
    broadcasts: Broadcasts,
    /// Snapshot that must be durable before the held message is sent.
    unsaved: Option<Snapshot>,
    held: Option<(Destination, Vec<u8>)>,
    pub(crate) endpoint: BoardEndpoint,
    mtu: usize,
    connections: Connections,
    lines: LineReader,
    /// Text that waits for the console.
    pub(crate) out: String,
    report: BoardReport,
    next_report: Duration,
    pub(crate) frame_errors: FrameErrors,
    pub(crate) link_errors: u32,
    /// The radio address, if there is one, when it may just have changed.
    pub(crate) moved: Option<Option<RadioAddress>>,
    pub(crate) must_reset: bool,
}

impl<F: MultiwriteNorFlash, R: CryptoRngCore> BoardEdgeNode<F, R> {
    /// Boxed: it is large, and moving it would use the stack.
    #[inline(never)]
    pub(crate) fn new(about: About, storage: Storage<F>, rng: R, mtu: usize) -> Box<Self> {
        let mut random = Randomness::new(rng);
        let endpoint = BoardEndpoint::new(limits(mtu), random.number(), Wants::default());
        let mut node = Box::new(Self {
            about,
            storage,
            loaded: false,
            retry_at: Duration::ZERO,
            patience: RETRY,
            relapse: RETRY,
            random,
            reported_faulty: false,
            clock: GatewayClock::default(),
            settings: None,
            machine: None,
            deadline: None,
            attributes: Attributes::none(),
            group_datagrams: GroupDatagrams::none(),
            broadcasts: Broadcasts::none(),
            unsaved: None,
            held: None,
            endpoint,
            mtu,
            connections: Connections::default(),
            lines: LineReader::new(),
            out: String::new(),
            report: BoardReport::default(),
            next_report: Duration::ZERO,
            frame_errors: FrameErrors::default(),
            link_errors: 0,
            moved: None,
            must_reset: false,
        });
        node.started();
        node
    }

    /// Starts anew with the gateway if the link now carries datagrams of another length: it is another
    /// medium.
    pub(crate) async fn use_mtu(&mut self, now: Duration, mtu: usize) {
        if core::mem::replace(&mut self.mtu, mtu) == mtu {
            return;
        }
        self.endpoint = BoardEndpoint::new(limits(mtu), self.random.number(), Wants::default());
        self.group_datagrams = GroupDatagrams::none();
        self.broadcasts = Broadcasts::none();
        self.want();
        self.part_with_all(now).await;
    }

    /// Takes a datagram from the medium: the gateway's, for this board or for all, or the group's.
    pub(crate) fn handle_datagram(&mut self, now: Duration, datagram: &[u8]) {
        if !self.take_group_datagram(now, datagram) && !self.take_coded_frame(now, datagram) {
            self.endpoint.handle_datagram(now, datagram);
        }
    }

    /// Does everything that is due. At most a handful of operations of the machine, with the watchdog fed
    /// between.
    pub(crate) async fn work(&mut self, now: Duration, hooks: &mut impl Hooks) {
        if !self.loaded && self.retry_at <= now {
            self.load(now).await;
        }
        self.endpoint.handle_timeout(now);
        while self.is_fit(now).await {
            let Some(event) = self.endpoint.poll_event() else { break };
            self.handle_gateway_event(now, event).await;
            hooks.alive();
        }
        self.step_broadcasts(now).await;
        if let Some(input) = self.due_input(now)
            && self.is_fit(now).await
        {
            self.input(now, input).await;
        }
        self.step_attributes(now).await;
        self.step_group_datagrams(now);
        self.want();
        self.endpoint.set_served(now, self.is_served(now));
        if self.next_report <= now && self.endpoint.has_session() {
            self.next_report = now.saturating_add(REPORT);
            self.send_report(now, hooks);
        }
    }

    /// Deadline by which [`work`](Self::work) must be called.
    pub(crate) fn due(&self) -> Option<Duration> {
        let blocked = !self.loaded || self.unsaved.is_some();
        let machine = if blocked { Some(self.retry_at) } else { self.deadline };
        let attributes = self.attributes.due().filter(|_| !blocked && self.can_fetch());
        let on_air = self.group_datagrams.due().into_iter().chain(self.broadcasts.due()).min();
        let report = self.endpoint.has_session().then_some(self.next_report);
        [machine, attributes, on_air, report, self.endpoint.timeout()].into_iter().flatten().min()
    }

    /// Input that the machine is to be given now: its deadline has come, or datagrams come under a key that
    /// is not known.
    fn due_input(&mut self, now: Duration) -> Option<Input<'static, EdgeNodeCommand>> {
        if self.group_datagrams.take_question() {
            return Some(Input::Command(Either::Left(EdgeCommand::CatchUp)));
        }
        self.deadline.filter(|at| *at <= now).map(|_| Input::Timeout)
    }

    /// Returns true if an input can be taken: the state before is durable, and there is randomness.
    async fn is_fit(&mut self, now: Duration) -> bool {
        if !self.loaded {
            return false;
        }
        let healthy = self.random.generator(now).is_some();
        if self.reported_faulty == healthy {
            self.reported_faulty = !healthy;
            self.report_randomness(healthy);
        }
        if !healthy {
            return false;
        }
        (self.unsaved.is_none() && self.held.is_none()) || (self.retry_at <= now && self.drain(now).await)
    }

    /// Feeds the machine an input and executes its outputs.
    async fn input(&mut self, now: Duration, input: Input<'_, EdgeNodeCommand>) {
        self.advance(now, input);
        self.drain(now).await;
    }

    /// Apart from what waits, so that the stack under the machine's deepest calls holds nothing else.
    #[inline(never)]
    fn advance(&mut self, now: Duration, input: Input<'_, EdgeNodeCommand>) {
        let times = Now { monotonic: now, unix: self.clock.unix(now) };
        if let (Some(machine), Some(rng)) = (&mut self.machine, self.random.generator(now)) {
            machine.handle_input(times, input, rng);
            self.group_datagrams.machine_changed();
        }
    }

    /// Executes the machine's outputs in order. False if something could not be made durable: the rest waits.
    async fn drain(&mut self, now: Duration) -> bool {
        loop {
            if self.held.is_some() && !self.save(now).await {
                return false;
            }
            if let Some((to, payload)) = self.held.take() {
                self.transmit(to, payload);
            }
            let Some(machine) = &mut self.machine else { return true };
            match machine.poll_output() {
                // Of several snapshots in a row only the last one matters, and flash wears.
                Output::Persist(state) => self.unsaved = Some(state.into_left()),
                Output::Transmit { to, payload } => self.held = Some((to, payload)),
                Output::Event(Either::Left(event)) => self.print_event(event),
                Output::Event(Either::Right(event)) => self.print_part_event(event),
                Output::Block(peer) => self.block(peer),
                // A board relays for nobody and penalises nobody.
                Output::Relay { .. } | Output::Penalize { .. } | Output::Disconnect(_) => {}
                Output::Timeout(at) => {
                    self.deadline = at;
                    return self.save(now).await;
                }
            }
        }
    }

    /// Handles an event of the link to the gateway.
    async fn handle_gateway_event(&mut self, now: Duration, event: BoardEvent) {
        match event {
            BoardEvent::Begun { unix_time } => {
                self.clock.begin(unix_time, now);
                self.next_report = now;
                self.announce_broadcasts();
                self.print_line(format_args!("gateway connected time {}", self.clock.unix(now)));
            }
            BoardEvent::Time { unix_time } => self.clock.adjust(unix_time, now),
            BoardEvent::Connected { peer, route } => {
                let route = match route {
                    LinkRoute::Kgc => Route::Kgc,
                    LinkRoute::Leader => Route::Leader,
                };
                if let Some(peer) = self.connections.connected(peer, route) {
                    self.input(now, Input::Connected { peer, route }).await;
                    self.fetch_from(now, peer, route).await;
                }
            }
            BoardEvent::Disconnected { peer } => {
                if let Some(peer) = self.connections.disconnected(peer) {
                    self.part_with(now, peer).await;
                }
            }
            BoardEvent::Received { from, via, bytes } => {
                if let Some(from) = self.connections.peer(from)
                    && !self.fetched(now, from, &bytes).await
                {
                    let via = match via {
                        quiver_link::Via::Peer => Via::Peer,
                        quiver_link::Via::Group => Via::Group,
                    };
                    self.input(now, Input::Received { from, via, bytes: &bytes }).await;
                }
            }
            BoardEvent::Lost => {
                self.print_line(format_args!("gateway lost"));
                self.part_with_all(now).await;
            }
        }
    }

    async fn part_with_all(&mut self, now: Duration) {
        while let Some(peer) = self.connections.pop() {
            self.part_with(now, peer).await;
        }
    }

    async fn part_with(&mut self, now: Duration, peer: Peer) {
        self.input(now, Input::Disconnected { peer }).await;
        self.fetch_without(now, peer).await;
    }

    /// Creates the machine for these settings and connects it to all current peers.
    async fn set_up(&mut self, now: Duration, stored: StoredState) {
        self.create_machine(now, stored);
        self.deadline = Some(Duration::ZERO);
        for (peer, route) in self.connections.renamed() {
            self.input(now, Input::Connected { peer, route }).await;
        }
    }

    #[inline(never)]
    #[cfg_attr(
        not(feature = "envelopes"),
        expect(clippy::unit_arg, reason = "without envelopes there are no parts")
    )]
    fn create_machine(&mut self, now: Duration, stored: StoredState) {
        let StoredState { mut settings, keyring, state } = stored;
        let config = EdgeConfig {
            deployment: settings.deployment.clone(),
            group: settings.group.clone(),
            token: settings.token.take().filter(|_| state.is_none()),
            kgcs: Self::kgcs(&settings),
            timing: EdgeTiming { probe: Some(PROBE), ..EdgeTiming::default() },
        };
        let kem = settings.kem;
        self.clock.set_floor(settings.time, now);
        self.moved = Some(settings.radio.map(|place| RadioAddress { pan: place.pan, short: place.address }));
        self.settings = Some(settings);
        self.take_attributes(&keyring, state.as_ref());
        self.group_datagrams.machine_changed();
        match Edge::new(config, state.as_ref()) {
            Ok(machine) => {
                let machine = machine.with_kem(kem).with_senders(SENDERS).with_list_limit(MAX_LIST);
                self.machine = Some(Box::new(ImageEdge::new(machine, parts())));
            }
            Err(error) => self.report_restore_error(&error),
        }
    }

    #[cfg(feature = "quorum")]
    fn kgcs(settings: &Provisioning<S>) -> Kgcs<S> {
        Kgcs::quorum(settings.kgcs.clone())
    }

    /// Single KGC, because others are not provisioned.
    #[cfg(not(feature = "quorum"))]
    fn kgcs(_: &Provisioning<S>) -> Kgcs<S> {
        Kgcs::single()
    }

    /// Sends the gateway the connections that the board wants.
    fn want(&mut self) {
        let status = self.machine.as_deref().map(|machine| machine.status());
        let group = status.as_ref().and_then(|status| status.group.as_ref());
        let enrolling = status.as_ref().is_some_and(|status| status.name.is_none());
        let kgc = enrolling || self.attributes.is_fetching();
        // A group's name has the same alphabet here and there.
        if let Ok(wants) = Wants::new(group.map(quiver_ainq::Name::as_str), kgc) {
            self.endpoint.set_wants(wants);
        }
    }

    /// Returns true if the board has what it wants of others: it is enrolled and, if it has a group, in sync
    /// with it, connected to a leader, and has an answer from one that is not old. The connection is the
    /// gateway's word alone; an answer is a leader's.
    fn is_served(&self, now: Duration) -> bool {
        let Some(status) = self.status() else { return true };
        let follows = status.synced && self.connections.has(Route::Leader) && answered_lately(&status, now);
        status.name.is_some() && (follows || status.group.is_none())
    }

    fn status(&self) -> Option<EdgeStatus> {
        self.machine.as_deref().map(|machine| machine.status())
    }

    /// State of the node, for LEDs.
    pub(crate) fn state(&self, now: Duration) -> IndicatorState {
        let Some(status) = self.status() else {
            return if self.loaded && self.settings.is_none() && !self.random.is_faulty() {
                IndicatorState::Unprovisioned
            } else {
                IndicatorState::Fault
            };
        };
        match status {
            _ if !self.loaded || self.unsaved.is_some() || self.random.is_faulty() => IndicatorState::Fault,
            _ if !self.endpoint.has_session() => IndicatorState::NoGateway,
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
