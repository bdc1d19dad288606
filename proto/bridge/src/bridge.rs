//! The task between endpoints and carriers: routes frames, checks system ids, and drives [`Datagrams`].

mod corrections;
mod departures;
mod ground_stations;
mod group_questions;
mod links;
mod security_state;
mod status_texts;
mod wide_ids;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use quiver_ainq::{Deployment, EpochKeys, LEADER_SLOT, Slot, Suite};
use quiver_datagram::{
    Config, DatagramRefusal, Datagrams, Event, Payload, PayloadOrigin, Priority, Suspicion,
};
use quiver_mavlink::message::{GroundParameter, Severity};
use quiver_mavlink::{
    Dropped, EndpointId, Frame, FrameBatch, Grant, MAX_NARROW_SYSTEM, MessageClass, Origin, Router,
    SignedMessages, SystemIds, TableCounters, batch, message, priority,
};
use rand::rngs::OsRng;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::corrections::Corrections;
use self::departures::Departures;
use self::ground_stations::GroundStations;
use self::group_questions::{GroupAnswer, GroupQuestion};
use self::links::{BridgeLinks, EndpointLinks};
use self::security_state::SecurityState;
use self::status_texts::{PassageProblem, StatusTextThrottle};
use crate::carrier::{self, Arrived, CarrierCommand, CarrierContext, Content, MemoryCarrier, OpenCarrier};
use crate::endpoint::{self, EndpointPort, LinkEvent};
use crate::error::BridgeError;
use crate::flight_log::FlightLog;
use crate::frame_drop::FrameDrop;
use crate::group_inputs::{BridgeInputs, GroupServices, MissingKeyReason};
use crate::report::{
    BridgeReport, BridgeStatus, CarrierStatus, EndpointStatus, FrameDirection, SenderReport,
};
use crate::settings::BridgeSettings;

/// Events of endpoints that wait for the bridge.
const EVENTS: usize = 256;
/// Datagrams of carriers that wait for it; more are lost, as in a network.
const ARRIVED: usize = 1_024;
/// Questions to the group's machine under way.
const QUESTIONS: usize = 64;
/// Questions that wait; more are not asked.
const WAITING_QUESTIONS: usize = 1_024;
/// Members of an epoch whose datagrams are told from replays, some 600 bytes each; of more, those that were heard
/// least recently are forgotten and announce themselves again.
const MAX_SENDERS: usize = 4_096;
/// Interval between two publications of status and metrics.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// Sleep while nothing is due.
const IDLE: Duration = Duration::from_secs(3600);
/// The shortest sleep, while datagrams wait for a carrier that is full.
const SHORTEST: Duration = Duration::from_millis(1);
/// Payload that shows the leader's relay where a member is which has nothing to say; no batch begins so.
const KEEPALIVE: &[u8] = &[0xff];
/// Interval between keepalives, unless something else is sent. A relay forgets in 30 s.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
/// Bytes of the longest payload with one frame.
const LONGEST_BATCH: usize = 320;
/// Messages of which the log says that they are dropped because nobody signed them.
const LOGGED_UNSIGNED: usize = 64;
/// Reason for which a payload of a member is dropped that is no batch of frames.
const NO_FRAMES: &str = "it is no batch of frames: is that end of another version?";

/// Keepalives for a leader's relay.
#[derive(Debug)]
struct KeepaliveClock {
    /// Datagrams sent when the last keepalive was due.
    sent: u64,
    /// Time at which the next is due.
    due: Instant,
}

/// Systems of the ground stations that the autopilot here listens to, by its parameters.
#[derive(Debug, Default)]
struct ObeyedGrounds {
    /// The first; `None` until the autopilot has said so.
    first: Option<u32>,
    /// The last, or 0 if there is one alone.
    last: u32,
}

impl ObeyedGrounds {
    /// The systems; `None` if the autopilot has not said which.
    fn systems(&self) -> Option<RangeInclusive<u32>> {
        let first = self.first?;
        Some(first..=self.last.max(first))
    }
}

/// Open carriers, and what they share with the bridge.
struct CarrierSet {
    carriers: Vec<OpenCarrier>,
    arrived: mpsc::Receiver<Arrived>,
    context: CarrierContext,
    tasks: JoinSet<()>,
}

impl CarrierSet {
    fn none() -> Self {
        let (sender, arrived) = mpsc::channel(ARRIVED);
        let context =
            CarrierContext { arrived: sender, room: Arc::new(Notify::new()), system: Arc::default() };
        Self { carriers: Vec::new(), arrived, context, tasks: JoinSet::new() }
    }
}

/// Joins MAVLink endpoints to the group's datagrams.
pub struct Bridge<S: Suite> {
    begun: Instant,
    datagrams: Datagrams<S>,
    router: Router,
    /// The group, among the router's endpoints.
    group: EndpointId,
    links: BridgeLinks,
    /// Told when a program has taken something.
    drained: Arc<Notify>,
    signed: SignedMessages,
    /// Members that are ground stations.
    grounds: GroundStations,
    /// Messages that were dropped because they were not signed, and of which the log has said so.
    logged_unsigned: BTreeSet<u32>,
    /// Reasons for which something of a member was dropped, and of which the log has said so.
    refused_of_members: BTreeSet<FrameDrop>,
    carriers: Vec<OpenCarrier>,
    events: mpsc::Receiver<LinkEvent>,
    arrived: mpsc::Receiver<Arrived>,
    room: Arc<Notify>,
    /// Tells the carriers this end's system id.
    system: Arc<AtomicU32>,
    /// Endpoints and carriers; they end with the bridge.
    _tasks: JoinSet<()>,
    table: Arc<SystemIds>,
    /// The table, by slot.
    members: HashMap<Slot, (u32, String)>,
    /// Slot of this member while there is a valid key.
    slot: Option<Slot>,
    /// Digest of the epoch while there is a valid key.
    digest: Option<[u8; 32]>,
    /// System id of this end when it had a key last.
    last_system: Option<u32>,
    questions: VecDeque<GroupQuestion<S>>,
    /// Keepalives; `None` without a relay.
    keepalive: Option<KeepaliveClock>,
    /// Outcomes of the leader's messages about the table.
    table_counters: TableCounters,
    status_texts: StatusTextThrottle,
    departures: Departures,
    /// Reason why there is no key, if the service knows.
    obstacle: Option<MissingKeyReason>,
    /// The last frame of a program was of another system than the one granted.
    misnumbered: bool,
    /// The system of the last frame of a program: there is one that can be told something.
    local_system: Option<u32>,
    /// Ground stations that the autopilot here listens to.
    obeyed_grounds: ObeyedGrounds,
    state: SecurityState,
    corrections: Corrections,
    flight_log: Option<FlightLog>,
    report: BridgeReport,
}

impl<S: Suite> Bridge<S> {
    /// Opens endpoints and carriers. Must be called inside a tokio runtime with its I/O and time enabled.
    /// `clock` is the time since 1970, for MAVLink's own signatures, or `None` if it is not set.
    ///
    /// # Errors
    /// [`BridgeError::Open`] if a port is taken.
    pub async fn open(
        settings: BridgeSettings,
        deployment: Deployment<S>,
        clock: fn() -> Option<Duration>,
        report: BridgeReport,
    ) -> Result<Self, BridgeError> {
        let mut opened = CarrierSet::none();
        for (index, carrier) in settings.carriers.iter().enumerate() {
            let carrier = carrier::open(carrier, index, &opened.context, &mut opened.tasks).await?;
            opened.carriers.push(carrier);
        }
        Self::with_carriers(settings, deployment, clock, report, opened).await
    }

    /// The same on a medium in memory, in place of the settings' carriers.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_in_memory(
        settings: BridgeSettings,
        deployment: Deployment<S>,
        clock: fn() -> Option<Duration>,
        report: BridgeReport,
        carrier: MemoryCarrier,
    ) -> Result<Self, BridgeError> {
        let mut opened = CarrierSet::none();
        opened.carriers.push(carrier.open(&opened.context, &mut opened.tasks));
        Self::with_carriers(settings, deployment, clock, report, opened).await
    }

    async fn with_carriers(
        settings: BridgeSettings,
        deployment: Deployment<S>,
        clock: fn() -> Option<Duration>,
        report: BridgeReport,
        opened: CarrierSet,
    ) -> Result<Self, BridgeError> {
        let CarrierSet { carriers, arrived, context, mut tasks } = opened;
        let (opened_links, events) = mpsc::channel(EVENTS);
        let next = Arc::new(AtomicU64::new(0));
        let drained = Arc::new(Notify::new());
        for (index, config) in settings.endpoints.iter().enumerate() {
            let port =
                EndpointPort::new(index, opened_links.clone(), Arc::clone(&next), Arc::clone(&drained));
            // A port that is taken ends the start: half a bridge would pass frames of some programs alone.
            endpoint::open(config, port, &mut tasks).await?;
        }
        let is_star = settings.carriers.iter().any(|carrier| matches!(carrier, carrier::Carrier::Star(_)));
        let config = datagram_config(&settings);
        let mut router = Router::new(settings.deduplication, settings.sniffer);
        let group = router.add(settings.filters, None);
        Ok(Self {
            begun: Instant::now(),
            datagrams: Datagrams::new(config, deployment),
            router,
            group,
            links: BridgeLinks::new(settings.endpoints, settings.signing, clock),
            drained,
            signed: settings.signed,
            grounds: GroundStations::default(),
            logged_unsigned: BTreeSet::new(),
            refused_of_members: BTreeSet::new(),
            carriers,
            events,
            arrived,
            room: context.room,
            system: context.system,
            _tasks: tasks,
            table: Arc::default(),
            members: HashMap::new(),
            slot: None,
            digest: None,
            last_system: None,
            questions: VecDeque::new(),
            keepalive: is_star.then(|| KeepaliveClock { sent: 0, due: Instant::now() }),
            table_counters: TableCounters::default(),
            status_texts: StatusTextThrottle::default(),
            departures: Departures::default(),
            obstacle: None,
            misnumbered: false,
            local_system: None,
            obeyed_grounds: ObeyedGrounds::default(),
            state: SecurityState::new(Instant::now(), settings.state_every),
            corrections: Corrections::default(),
            flight_log: settings.flight_log.map(FlightLog::start),
            report,
        })
    }

    /// Works until the senders of its inputs are gone. Dropping the future closes everything.
    pub async fn run(mut self, mut inputs: BridgeInputs<S>, group: impl GroupServices<S>) {
        let mut answers = JoinSet::new();
        let mut publishing = interval(PUBLISH_EVERY);
        publishing.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Keys and grants of before the bridge ran are taken in the first round.
        inputs.keys.mark_changed();
        inputs.table.mark_changed();
        inputs.obstacle.mark_changed();
        loop {
            self.flush();
            // A few at a time, because the group's machine has members to serve besides.
            while answers.len() < QUESTIONS
                && let Some(question) = self.questions.pop_front()
            {
                answers.spawn(question.ask(group.clone()));
            }
            // Programs that are behind for a moment are waited for: what comes meanwhile waits at its source.
            let full_until = self.links.full_until(Instant::now());
            let wake_at = full_until.into_iter().fold(self.wake_at(), Instant::min);
            tokio::select! {
                changed = inputs.keys.changed() => match changed {
                    Ok(()) => {
                        let keys = inputs.keys.borrow_and_update().clone();
                        self.take_keys(keys.as_deref());
                    }
                    Err(_) => return,
                },
                changed = inputs.table.changed() => match changed {
                    Ok(()) => {
                        let table = Arc::clone(&inputs.table.borrow_and_update());
                        self.take_table(table);
                    }
                    Err(_) => return,
                },
                changed = inputs.revocation_list.changed() => match changed {
                    // §20.4: a drone that is revoked may sign no longer, though its start is known.
                    Ok(()) => self.look_at_signers(),
                    Err(_) => return,
                },
                changed = inputs.obstacle.changed() => match changed {
                    Ok(()) => {
                        self.obstacle = *inputs.obstacle.borrow_and_update();
                        self.publish();
                    }
                    Err(_) => return,
                },
                Some(event) = self.events.recv(), if full_until.is_none() => self.handle_link(event),
                Some(arrived) = self.arrived.recv(), if full_until.is_none() => self.handle_arrived(&arrived),
                () = self.drained.notified(), if full_until.is_some() => {}
                Some(answer) = answers.join_next() => {
                    if let Ok(answer) = answer {
                        self.handle_answer(answer);
                    }
                }
                () = self.room.notified() => {}
                () = sleep_until(wake_at) => {
                    let now = self.now();
                    self.datagrams.handle_timeout(now);
                }
                _ = publishing.tick() => {
                    self.keep_alive();
                    self.look_for_leader();
                    self.tell_programs();
                    self.links.log_dropped(Instant::now());
                    self.table_counters = *inputs.table_counters.borrow();
                    self.publish();
                    self.tell_state();
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        let at = self.datagrams.timeout().map_or(now + IDLE, |at| self.begun + at);
        // Work that is due while no carrier has room is done as soon as one has.
        if self.has_room() { at } else { at.max(now + SHORTEST) }
    }

    fn has_room(&self) -> bool {
        self.carriers.iter().any(|carrier| carrier.orders.capacity() > 0)
    }

    /// Takes the epoch into use, or closes.
    fn take_keys(&mut self, keys: Option<&EpochKeys<S>>) {
        let now = self.now();
        self.state.set_key(Instant::now(), keys.map(|keys| (keys.epoch, keys.valid_for)));
        // §20.2: without a key nothing passes, and nobody says which slot is this member's.
        self.slot = keys.map(|keys| keys.slot);
        self.digest = keys.map(|keys| keys.digest);
        if let Some(keys) = keys {
            self.departures.set_term(keys.epoch.term);
        }
        match keys {
            Some(keys) => self.datagrams.set_epoch(now, keys.clone(), &mut OsRng),
            // §20.2: a member that left, was evicted, or holds no valid key seals and opens nothing.
            None => self.datagrams.close(),
        }
        for carrier in &self.carriers {
            // A carrier that is full is told when its senders' time is over.
            let _ = carrier.orders.try_send(CarrierCommand::KeyChanged);
        }
        if let Some(keepalive) = &mut self.keepalive {
            // A relay is to be shown anew under each key.
            keepalive.sent = self.datagrams.counters().sent;
            keepalive.due = Instant::now();
        }
        self.keep_alive();
        self.grant();
        self.publish();
    }

    /// Shows the leader's relay where this member is, if it has sent nothing for a while.
    fn keep_alive(&mut self) {
        let sent = self.datagrams.counters().sent;
        let now = Instant::now();
        let Some(keepalive) = &mut self.keepalive else { return };
        // Only a datagram that opens under the present key shows the relay that a member sent it.
        if now < keepalive.due || self.slot.is_none() {
            return;
        }
        let is_silent = keepalive.sent == sent;
        keepalive.sent = sent;
        keepalive.due = now + KEEPALIVE_EVERY;
        if is_silent || sent == 0 {
            let payload = Payload { bytes: KEEPALIVE.into(), priority: Priority::Telemetry, sign: false };
            // Without a key there is nobody to show it to.
            let _ = self.datagrams.send(self.now(), payload);
        }
    }

    fn take_table(&mut self, table: Arc<SystemIds>) {
        // §20.12: the table says which system id stands behind which slot, and nothing else does.
        let former = std::mem::take(&mut self.members);
        self.table = table;
        for (name, grant) in self.table.iter() {
            if let Some(slot) = grant.slot {
                self.members.insert(slot, (grant.system_id, name.into()));
            }
        }
        for (slot, member) in self.members.iter().filter(|(slot, member)| former.get(slot) != Some(member)) {
            // §20.4: for a slot whose drone the table names, nobody else's announcement counts.
            self.datagrams.assign_slot(*slot, member.1.parse().ok());
        }
        for slot in former.keys().filter(|slot| !self.members.contains_key(slot)) {
            self.datagrams.assign_slot(*slot, None);
        }
        // A number that was granted to another is not yet a ground station's.
        for (system, name) in former.values() {
            let is_same = |grant: Grant| grant.system_id == *system && grant.slot.is_some();
            if !self.table.of_name(name).is_some_and(is_same) {
                self.grounds.forget(*system);
            }
        }
        let own = self.own_name();
        let others = self.table.iter().filter(|(name, _)| own.as_deref() != Some(*name));
        let granted: Vec<_> = others.map(|(_, grant)| (grant.system_id, grant.into())).collect();
        self.departures.take_table(Instant::now(), granted);
        self.grant();
        self.publish();
    }

    fn own_name(&self) -> Option<String> {
        self.members.get(&self.slot?).map(|(_, name)| name.clone())
    }

    /// Has the leader dialled while there is no valid key, or no new one although it is time.
    fn look_for_leader(&mut self) {
        let lacks = match self.passage_problem() {
            Some(
                PassageProblem::NotJoined
                | PassageProblem::RanOut
                | PassageProblem::BetweenKeys
                | PassageProblem::Behind
                | PassageProblem::EndsSoon,
            ) => true,
            Some(PassageProblem::Obstacle(obstacle)) => obstacle.may_end(),
            _ => false,
        };
        // Dialling costs nobody but this member, so that it may go on as long as something is lacking.
        if lacks {
            self.ask(GroupQuestion::ReachLeader);
        }
    }

    /// Reason why frames do not pass, or soon will not.
    fn passage_problem(&self) -> Option<PassageProblem> {
        let now = Instant::now();
        if self.slot.is_none() || !self.datagrams.is_open() {
            return Some(match (self.obstacle, self.state.has_run_out(now)) {
                (Some(obstacle), _) => PassageProblem::Obstacle(obstacle),
                (None, None) => PassageProblem::NotJoined,
                (None, Some(true)) => PassageProblem::RanOut,
                (None, Some(false)) => PassageProblem::BetweenKeys,
            });
        }
        // §20.12: receivers take frames as the system granted to the slot; without one they take none.
        if self.own_system().is_none() {
            return Some(PassageProblem::NoSystemId);
        }
        if self.misnumbered {
            return Some(PassageProblem::OtherSystem);
        }
        // §20.8: nothing opens, and datagrams of another epoch come.
        if self.datagrams.lacks_epoch(self.now()) {
            return Some(PassageProblem::Behind);
        }
        if self.state.ends_soon(now) {
            return Some(PassageProblem::EndsSoon);
        }
        let obeyed = self.obeyed_grounds.systems()?;
        let heard = self.grounds.other_than(now, &obeyed)?;
        Some(PassageProblem::OtherGround { listens: *obeyed.start(), heard })
    }

    /// Tells local programs what keeps frames from passing, and which systems are gone; once.
    fn tell_programs(&mut self) {
        let now = Instant::now();
        let gone = self.departures.take(now);
        for departure in &gone {
            self.state.note_departure(now, *departure);
        }
        // Before a program has sent something nobody is there to be told.
        if self.local_system.is_none() {
            return;
        }
        for departure in gone {
            let text = departure.text();
            tracing::info!(system = departure.system, "{text}");
            self.tell(Severity::Warning, &text, false);
        }
        let problem = self.passage_problem();
        // Once for each problem, and again after minutes: texts take room of telemetry.
        if let Some(told) = self.status_texts.note(now, problem) {
            let text = told.text();
            tracing::warn!(reason = %text, "MAVLink through the group: {text}");
            // Other members with the same key can be told, too: the ground station of a vehicle.
            let far = matches!(told, PassageProblem::EndsSoon | PassageProblem::OtherGround { .. });
            self.tell(told.severity(), &text, far);
        }
    }

    /// Sends a text to all local programs, and to the group if `far`.
    fn tell(&mut self, severity: Severity, text: &str, far: bool) {
        let system = self.own_system().or(self.last_system).or(self.local_system).unwrap_or(1);
        let frame = self.status_texts.frame(system, severity, text);
        for to in self.links.ids() {
            self.deliver(FrameDirection::Local, to, &frame);
        }
        if let Some(frame) = Frame::parse(&frame).ok().filter(|_| far) {
            let result = self.try_send(self.now(), frame);
            self.report.count(FrameDirection::ToGroup, result);
        }
    }

    /// Tells the router which systems are behind the group.
    fn grant(&mut self) {
        // The cause that kept the last frame from passing may be over.
        self.misnumbered = false;
        let own = self.own_system();
        self.system.store(own.unwrap_or(0), Ordering::Relaxed);
        // Without a key nobody says which of them is this end's, which is not behind the group for that.
        if self.slot.is_some() {
            self.last_system = own;
        }
        let is_own_known = self.slot.is_some() || self.last_system.is_some();
        let is_other = |system: &u32| is_own_known && Some(*system) != self.last_system;
        let others = self.members.values().map(|(system, _)| *system).filter(is_other);
        self.router.grant(self.group, others.collect::<Vec<_>>());
    }

    fn own_system(&self) -> Option<u32> {
        self.members.get(&self.slot?).map(|(system, _)| *system)
    }

    fn ask(&mut self, question: GroupQuestion<S>) {
        // Bounded, because strangers can cause questions; what is dropped is asked again when it recurs.
        if self.questions.len() < WAITING_QUESTIONS {
            self.questions.push_back(question);
        }
    }

    /// Asks again whether those may sign whose signatures are known.
    fn look_at_signers(&mut self) {
        let signers: Vec<_> =
            self.datagrams.signers().map(|(slot, drone)| (slot, Box::new(drone.clone()))).collect();
        for (slot, drone) in signers {
            self.ask(GroupQuestion::MaySign(slot, drone));
        }
    }

    fn handle_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Opened { endpoint, link, out } => {
                self.links.open(&mut self.router, endpoint, link, out);
                // A program that connects later is to be told, too.
                self.status_texts.repeat();
            }
            LinkEvent::Closed { link } => self.links.close(&mut self.router, link),
            LinkEvent::Bytes { link, bytes, whole, skipped, at } => {
                for received in self.links.read(link, &bytes, whole, skipped) {
                    match received {
                        Ok((from, frame)) => self.handle_local(from, &frame, at),
                        // Noise of a line is in no flight log.
                        Err(FrameDrop::NoFrame) => {
                            self.report.count(FrameDirection::Local, Err(FrameDrop::NoFrame));
                        }
                        Err(reason) => self.drop_frame(FrameDirection::Local, reason, &[]),
                    }
                }
            }
        }
    }

    /// A frame of a local program.
    fn handle_local(&mut self, from: EndpointId, bytes: &[u8], at: Instant) {
        let Ok(frame) = Frame::parse(bytes) else { return };
        let now = self.now();
        if !message::is_of_radio(frame) {
            self.local_system = Some(frame.system_id());
        }
        if self.own_system() == Some(frame.system_id()) {
            match GroundParameter::from_frame(frame) {
                Some(GroundParameter::First(system)) => self.obeyed_grounds.first = Some(system),
                Some(GroundParameter::Last(system)) => self.obeyed_grounds.last = system,
                None => {}
            }
        }
        // The router drops duplicates and what a filter keeps out, before anything is sealed.
        let receivers = match self.router.route(now, from, frame) {
            Ok(receivers) => receivers,
            // Perhaps it has none because its system id is another's: that is told to the program.
            Err(Dropped::NoReceiver) => Vec::new(),
            Err(dropped) => {
                if dropped == Dropped::Damaged {
                    let because =
                        "its check sum is wrong: does the line lose bytes, or is it of another dialect?";
                    self.links.say_dropped(from, frame, because, FrameDrop::Damaged);
                }
                return self.drop_frame(FrameDirection::Local, dropped.into(), bytes);
            }
        };
        if !receivers.contains(&self.group) && self.is_misnumbered(from, frame) {
            self.note_sent(from, frame, Err(FrameDrop::OtherSystem));
        } else if receivers.is_empty() {
            self.drop_frame(FrameDirection::Local, FrameDrop::NoReceiver, bytes);
        }
        let mut is_passed = false;
        for to in receivers {
            if to != self.group {
                is_passed |= self.deliver(FrameDirection::Local, to, bytes);
            // A radio's report about itself concerns this end alone.
            } else if !message::is_of_radio(frame) {
                is_passed |= self.send_to_group(now, from, frame);
                self.report.delayed(FrameDirection::ToGroup, at.elapsed());
            }
        }
        if is_passed {
            self.log_passed(FrameDirection::ToGroup, bytes);
        }
    }

    /// Counts a frame that is dropped, and logs it.
    fn drop_frame(&self, way: FrameDirection, reason: FrameDrop, bytes: &[u8]) {
        self.report.count(way, Err(reason));
        if let Some(log) = &self.flight_log {
            log.dropped(way, reason, bytes);
        }
    }

    fn log_passed(&self, way: FrameDirection, bytes: &[u8]) {
        if let Some(log) = &self.flight_log {
            log.passed(way, bytes);
        }
    }

    /// Returns true if a program that never spoke as this drone's system speaks as another member's: the
    /// router keeps from the group what says that it comes from there. Of a program that did, it is an echo:
    /// autopilots forward between their lines.
    fn is_misnumbered(&self, from: EndpointId, frame: Frame<'_>) -> bool {
        let (system, own) = (frame.system_id(), self.own_system());
        let is_members = |name| self.table.of_name(name).is_some_and(|grant| grant.slot.is_some());
        own.is_some_and(|own| own != system && !self.router.hears(from, own))
            && self.table.holder(system).is_some_and(is_members)
            && !message::is_of_radio(frame)
    }

    /// Tells whether the frame passes.
    fn send_to_group(&mut self, now: Duration, from: EndpointId, frame: Frame<'_>) -> bool {
        let result = self.try_send(now, frame);
        self.note_sent(from, frame, result);
        result.is_ok()
    }

    /// Counts a frame for the group, and tells local programs if it is of the wrong system.
    fn note_sent(&mut self, from: EndpointId, frame: Frame<'_>, result: Result<(), FrameDrop>) {
        match result {
            Ok(()) => self.report.count(FrameDirection::ToGroup, Ok(())),
            Err(reason) => self.drop_frame(FrameDirection::ToGroup, reason, frame.bytes()),
        }
        self.misnumbered = result == Err(FrameDrop::OtherSystem);
        if self.misnumbered {
            if let Some(own) = self.own_system() {
                let because = format!("the leader granted this end system {own}");
                self.links.say_dropped(from, frame, &because, FrameDrop::OtherSystem);
            }
            self.tell_programs();
        }
    }

    /// Tries to send a frame to the group; the error is the reason if it does not go.
    fn try_send(&mut self, now: Duration, frame: Frame<'_>) -> Result<(), FrameDrop> {
        if self.slot.is_none() || !self.datagrams.is_open() {
            return Err(FrameDrop::NoKey);
        }
        // §20.11: the source does not travel: it is the one granted to the slot.
        let own = self.own_system().ok_or(FrameDrop::NoSystemId)?;
        if own != frame.system_id() {
            return Err(FrameDrop::OtherSystem);
        }
        // Some ground stations send a correction once for each vehicle; one copy on the air reaches all.
        if self.corrections.is_repeated(now, frame) {
            return Err(FrameDrop::Duplicate);
        }
        let mut batch = FrameBatch::new();
        // §20.11: one frame for now; what waits together is sealed together (§20.3).
        if !batch.push(frame, LONGEST_BATCH) {
            return Err(FrameDrop::TooLong);
        }
        let priority = match priority(frame) {
            quiver_mavlink::Priority::Command => Priority::Command,
            quiver_mavlink::Priority::Telemetry => Priority::Telemetry,
        };
        let at = Instant::now();
        // From its first one on, a ground station's heartbeats are signed: failsafes wait for their absence.
        if message::is_ground_heartbeat(frame) {
            self.grounds.note(at, own);
        }
        // §20.5: what makes its receiver act is signed, so that no member speaks as another.
        let sign = self.signed.contains(frame, self.grounds.contains(at, own));
        let payload = Payload { bytes: batch.take(), priority, sign };
        self.datagrams.send(now, payload).map_err(|refusal| match refusal {
            DatagramRefusal::Closed => FrameDrop::NoKey,
            DatagramRefusal::TooLong { .. } => FrameDrop::TooLong,
            DatagramRefusal::NoSigner => FrameDrop::NoSigner,
            _ => FrameDrop::Refused,
        })
    }

    /// Handles a datagram or a radio's status that a carrier received.
    fn handle_arrived(&mut self, arrived: &Arrived) {
        let datagram = match &arrived.content {
            Content::Datagram(datagram) => datagram,
            // About this end's radio; anybody on the same radio could have said it.
            Content::RadioStatus(bytes) => {
                let Ok(frame) = Frame::parse(bytes) else { return };
                for to in self.links.ids() {
                    if self.router.lets_out(to, frame) {
                        self.deliver(FrameDirection::Local, to, bytes);
                    } else {
                        self.report.count(FrameDirection::Local, Err(FrameDrop::NoReceiver));
                    }
                }
                return;
            }
        };
        // §20.7: opened before it is forwarded, so that strangers' datagrams go no further.
        let (now, before) = (self.now(), self.accepted());
        self.datagrams.handle_datagram(now, datagram);
        if let Some(from) = arrived.from
            && let Some(carrier) = self.carriers.get(arrived.carrier)
        {
            let proven = self.accepted() > before;
            let order = CarrierCommand::Forward { from, datagram: datagram.clone(), proven };
            // A relay that is behind loses it, as any network.
            if carrier.orders.try_send(order).is_err() {
                carrier.counters.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.handle_events(Some(arrived.at));
    }

    /// Number of datagrams that opened under the group's key.
    fn accepted(&self) -> u64 {
        let counters = self.datagrams.counters();
        counters.received + counters.announcements + counters.manifests
    }

    fn handle_answer(&mut self, answer: GroupAnswer<S>) {
        let now = self.now();
        match answer {
            GroupAnswer::Signed(id, Some(signature)) => self.datagrams.provide_signature(now, id, &signature),
            // §20.4: who may sign is for the group's machine to say.
            GroupAnswer::MaySign(slot, drone, true) => {
                self.datagrams.allow_signer(now, slot, &drone.handle());
            }
            GroupAnswer::MaySign(_, drone, false) => self.datagrams.forbid_signer(&drone.handle()),
            // The machine gives up by itself what is not signed.
            GroupAnswer::Signed(_, None) | GroupAnswer::Done => {}
        }
    }

    /// Handles what the machine has to say, and gives the carriers what may leave.
    fn flush(&mut self) {
        self.handle_events(None);
        let now = self.now();
        // §20.9: nothing is sealed before it can leave, so that commands can still go before telemetry.
        while self.has_room()
            && let Some(datagram) = self.datagrams.poll_datagram(now)
        {
            for carrier in &self.carriers {
                // A carrier that is full loses it, because others must not wait for the slowest.
                if carrier.orders.try_send(CarrierCommand::Send(datagram.clone())).is_err() {
                    carrier.counters.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.handle_events(None);
    }

    fn handle_events(&mut self, at: Option<Instant>) {
        while let Some(event) = self.datagrams.poll_event() {
            match event {
                Event::Received { slot, bytes, source } => {
                    self.receive(slot, &bytes, &source);
                    if let Some(at) = at {
                        self.report.delayed(FrameDirection::FromGroup, at.elapsed());
                    }
                }
                Event::SignatureWanted(request) => self.ask(GroupQuestion::Sign(request)),
                Event::SignerAnnounced { slot, drone } => self.ask(GroupQuestion::MaySign(slot, drone)),
                // §20.8: the leader is asked about the epoch.
                Event::EpochWanted => self.ask(GroupQuestion::WantEpoch),
                Event::TooManyForgeries { count } => {
                    tracing::error!(count, "{count} datagrams were forged in this epoch: somebody guesses");
                    // §20.10: the leader makes a new key; the digest says of which one the guesses were.
                    if let Some(digest) = self.digest {
                        self.ask(GroupQuestion::Forgeries(digest));
                    }
                }
                Event::Impostor { slot, suspicion } => self.suspect(slot, suspicion),
            }
        }
    }

    fn suspect(&self, slot: Slot, suspicion: Suspicion) {
        let name = self.members.get(&slot).map_or("a member without a system id", |(_, name)| name.as_str());
        match suspicion {
            Suspicion::Own => tracing::error!(
                "another process sends datagrams as this drone: a copy of its memory runs, or a member pretends; restart it"
            ),
            _ => tracing::error!(
                slot,
                name,
                ?suspicion,
                "perhaps another member sends as {name}; evict one of them"
            ),
        }
    }

    /// Counts what a member sent and nobody can use; the log names the first of each kind.
    fn drop_of_member(&mut self, slot: Slot, reason: FrameDrop, because: &str, bytes: &[u8]) {
        self.drop_frame(FrameDirection::FromGroup, reason, bytes);
        // An end that has just begun has no table yet.
        if self.members.is_empty() || !self.refused_of_members.insert(reason) {
            return;
        }
        let known = self.members.get(&slot);
        let (system, name) =
            known.map_or((None, "a member"), |(system, name)| (Some(*system), name.as_str()));
        tracing::warn!(
            slot,
            system,
            "what {name} sends is dropped: {because}; more is counted as `{}`",
            reason.label()
        );
    }

    /// A payload of a member.
    fn receive(&mut self, slot: Slot, bytes: &[u8], source: &PayloadOrigin) {
        let now = self.now();
        // It was for the relay; there is no frame in it.
        if bytes == KEEPALIVE {
            return;
        }
        // §20.12: without a system id of the slot the frames have no source.
        let Some((system, name)) = self.members.get(&slot).cloned() else {
            return self.drop_of_member(
                slot,
                FrameDrop::NoSystemId,
                "the leader granted it no system id",
                bytes,
            );
        };
        let signed = match source {
            PayloadOrigin::Member => false,
            // A slot is its sender's claim; a signature is not.
            PayloadOrigin::Signed { name: signer, .. } if signer.as_str() == name => true,
            PayloadOrigin::Signed { .. } => {
                return self.drop_of_member(slot, FrameDrop::OtherSigner, "another drone signed it", bytes);
            }
        };
        // §20.11: source and start byte are put back.
        let Ok(frames) = batch::decode(bytes, system) else {
            return self.drop_of_member(slot, FrameDrop::Malformed, NO_FRAMES, bytes);
        };
        for bytes in frames {
            let Ok(frame) = Frame::parse(&bytes) else {
                self.drop_of_member(slot, FrameDrop::Malformed, NO_FRAMES, &bytes);
                continue;
            };
            // About its sender's own modem: here it would slow down whoever believes it.
            if message::is_of_radio(frame) {
                self.drop_frame(FrameDirection::FromGroup, FrameDrop::RadioStatus, &bytes);
                continue;
            }
            let at = Instant::now();
            // §20.5: an unsigned datagram is some member's, so that a command in it is nobody's.
            if !signed && self.signed.contains(frame, self.grounds.contains(at, system)) {
                self.drop_frame(FrameDirection::FromGroup, FrameDrop::UnsignedCommand, &bytes);
                log_unsigned(&mut self.logged_unsigned, frame);
                continue;
            }
            if signed && message::is_ground_heartbeat(frame) {
                self.grounds.note(at, system);
            }
            match self.router.route(now, self.group, frame) {
                Ok(receivers) => {
                    let mut is_passed = false;
                    for to in receivers {
                        is_passed |= self.deliver(FrameDirection::FromGroup, to, &bytes);
                    }
                    if is_passed {
                        self.log_passed(FrameDirection::FromGroup, &bytes);
                    }
                }
                Err(Dropped::Damaged) => {
                    let because = "a frame's check sum is wrong";
                    self.drop_of_member(slot, FrameDrop::Damaged, because, &bytes);
                }
                Err(dropped) => self.drop_frame(FrameDirection::FromGroup, dropped.into(), &bytes),
            }
        }
    }

    /// Hands a frame to a program; tells whether it takes it.
    fn deliver(&mut self, way: FrameDirection, to: EndpointId, bytes: &[u8]) -> bool {
        let result = self.links.deliver(to, bytes);
        match result {
            Ok(()) => self.report.count(way, Ok(())),
            Err(reason) => self.drop_frame(way, reason, bytes),
        }
        if let Some((to, notice)) = self.links.take_notice() {
            // From a system that a program which knows 8 bits alone can read.
            let system =
                self.own_system().filter(|own| *own <= MAX_NARROW_SYSTEM).unwrap_or(MAX_NARROW_SYSTEM);
            let told = self.status_texts.frame(system, Severity::Warning, &notice.text());
            // A program that is behind is told by the log.
            let _ = self.links.deliver(to, &told);
        }
        result.is_ok()
    }

    /// Tells local programs the security state, if it is time.
    fn tell_state(&mut self) {
        let now = Instant::now();
        let Some(system) = self.own_system().or(self.last_system).filter(|_| self.state.is_due(now)) else {
            return;
        };
        let status = self.report.status();
        let counters = *self.datagrams.counters();
        let texts = &mut self.status_texts;
        let next =
            || Origin { system, component: message::BRIDGE_COMPONENT, sequence: texts.next_sequence() };
        for bytes in self.state.frames(now, (&status, &counters), self.members.len(), next) {
            let Ok(frame) = Frame::parse(&bytes) else { continue };
            for to in self.links.ids() {
                // A program that is behind has the next one.
                if self.router.lets_out(to, frame) {
                    let _ = self.links.deliver(to, &bytes);
                }
            }
        }
    }

    fn publish(&mut self) {
        let counters = *self.datagrams.counters();
        let now = self.now();
        let senders = self.datagrams.senders().map(|sender| SenderReport {
            slot: (sender.slot != LEADER_SLOT).then_some(sender.slot),
            name: sender.name.map(|name| name.to_string()),
            system_id: self.members.get(&sender.slot).map(|(system, _)| *system),
            received: sender.received,
            heard_ago: sender
                .heard
                .map(|at| now.saturating_sub(at).as_millis().try_into().unwrap_or(u64::MAX)),
        });
        let problem = self.passage_problem();
        let status = BridgeStatus {
            open: self.slot.is_some() && self.datagrams.is_open(),
            passes: problem.is_none_or(|problem| !problem.stops()),
            system_id: self.own_system().or(self.last_system),
            system_ids: self.table.len(),
            trouble: problem.map(PassageProblem::text),
            senders: senders.collect(),
            endpoints: self.endpoint_status(),
            carriers: self.carriers.iter().map(carrier_status).collect(),
            frames: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            flight_log: self.flight_log.as_ref().map(FlightLog::status),
            tables: self
                .table_counters
                .iter()
                .filter(|(_, number)| *number > 0)
                .map(|(what, number)| (what.into(), number))
                .collect(),
        };
        self.report.publish(status, &counters);
    }

    fn endpoint_status(&self) -> Vec<EndpointStatus> {
        let status = |EndpointLinks { endpoint, links, dropped, wide }: EndpointLinks| {
            let mut systems: Vec<u32> = links.iter().flat_map(|id| self.router.systems(*id)).collect();
            systems.sort_unstable();
            systems.dedup();
            let wide_frames = (wide.given, wide.kept);
            EndpointStatus { endpoint, links: links.len(), systems, dropped, narrow: wide.told, wide_frames }
        };
        self.links.by_endpoint().map(status).collect()
    }
}

impl<S: Suite> std::fmt::Debug for Bridge<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("carriers", &self.carriers).finish_non_exhaustive()
    }
}

/// Says once of a message that it is dropped because its sender did not sign it, and why it has to.
fn log_unsigned(logged: &mut BTreeSet<u32>, frame: Frame<'_>) {
    let (id, system) = (frame.message_id(), frame.system_id());
    if logged.len() >= LOGGED_UNSIGNED || !logged.insert(id) {
        return;
    }
    let reason =
        MessageClass::of_message(id).map_or("is of a dialect that is not known", |(_, reason)| reason);
    tracing::warn!(
        id,
        system,
        "MAVLink message {id} of system {system} is dropped, because it {reason} and no member signed it; \
         others are counted"
    );
}

fn carrier_status(open: &OpenCarrier) -> CarrierStatus {
    let counters = &open.counters;
    let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
    CarrierStatus {
        carrier: open.carrier.clone(),
        sent: (of(&counters.sent), of(&counters.sent_bytes)),
        received: (of(&counters.received), of(&counters.received_bytes)),
        dropped: of(&counters.dropped),
        forwarded: (of(&counters.forwarded), of(&counters.refused)),
    }
}

/// Settings that suit all carriers: the shortest datagrams and the lowest rate of any.
fn datagram_config(settings: &BridgeSettings) -> Config {
    let defaults = Config::default();
    let carriers = &settings.carriers;
    let mtu = carriers.iter().map(carrier::Carrier::mtu).min().unwrap_or(defaults.mtu);
    let slowest =
        carriers.iter().filter(|carrier| carrier.bit_rate().is_some()).min_by_key(|one| one.bit_rate());
    Config {
        mtu,
        bit_rate: slowest.and_then(carrier::Carrier::bit_rate),
        framing: slowest.map_or(0, carrier::Carrier::framing),
        burst: 2 * mtu,
        max_senders: MAX_SENDERS,
        manifest_every: settings.manifest.then(|| Duration::from_secs(1)),
        ..defaults
    }
}
