//! The arena: one controller and its members over one radio, or over links; counts what events cost, checks what must hold.
//!
//! Virtual time, one queue, one seed: a run repeats itself. Processor time alone is measured, in real time, at the
//! controller and at a few members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use quiver_machine::{Destination, Input, Now, Output, Peer, Route, Via};
use quiver_testbed::{EPOCH_START, EventQueue};
use quiver_world::boards::ObservedLoss;
use quiver_world::radio::{Account, Cast, Energy, Loss, LossState, Medium, Profile, Transmission};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::contract::{
    CONTROLLER, Command, Contender, ContenderError, Fingerprint, MemberId, Pace, Participant, SecretsOrigin,
    member_of, peer_of,
};

/// The most members.
pub const MAX_MEMBERS: u32 = 100_000;
/// Payload of a frame where the radio sets no limit.
const LARGEST_FRAME: usize = 60_000;
/// Shortest time between two wake-ups of a machine.
const SHORTEST: Duration = Duration::from_millis(1);
/// Time after which a machine that was disconnected is connected again.
const RECONNECT: Duration = Duration::from_secs(1);
/// Members whose processor time is measured.
const WATCHED: usize = 8;
/// Steps after which an event is given up.
const MAX_STEPS: u64 = 400_000_000;
/// Steps between two looks at the processor's clock.
const STEPS_UNTIMED: u64 = 256;

/// Carrier of the messages.
#[derive(Clone, Debug, PartialEq)]
pub enum ArenaCarrier {
    /// A radio channel that all share.
    Radio {
        /// The radio.
        profile: Box<Profile>,
        /// Losses of frames.
        loss: Loss,
    },
    /// A reliable, ordered stream to each member, as TCP over a wire: what is lost comes later.
    Streams {
        /// Time under way.
        delay: Duration,
        /// Share of segments lost.
        loss: f64,
    },
}

/// Payload of a TCP segment, and what Ethernet, IPv4 and TCP with time stamps add.
const SEGMENT: usize = 1448;
const SEGMENT_HEADERS: usize = 14 + 20 + 32;
/// First time-out of TCP after which a lost segment goes out again (RFC 6298, the least that systems use).
const TIMEOUT: Duration = Duration::from_millis(200);

impl ArenaCarrier {
    /// The radio as schemes need to know it.
    #[must_use]
    pub fn pace(&self) -> Pace {
        let Self::Radio { profile, .. } = self else {
            let frame = Duration::from_millis(1);
            return Pace { capacity: LARGEST_FRAME, frame, controller_frame: frame };
        };
        let (unicast, broadcast) = (profile.capacity(Cast::Unicast).0, profile.capacity(Cast::Broadcast).0);
        let capacity = unicast.min(broadcast).min(LARGEST_FRAME);
        let gateway = profile.as_ref().clone().at_gateway();
        let time = |profile: &Profile, cast| {
            let mut rng = ChaCha8Rng::from_seed([1; 32]);
            let one = |_| {
                let sent = profile.send(capacity, cast, &mut LossState::default(), &mut rng);
                sent.latency + sent.silence
            };
            (0..16).map(one).sum::<Duration>() / 16 + Duration::from_micros(100)
        };
        let controller_frame = time(&gateway, Cast::Unicast).max(time(&gateway, Cast::Broadcast));
        Pace { capacity, frame: time(profile, Cast::Unicast), controller_frame }
    }

    /// Returns true if one transmission reaches all.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Radio { .. })
    }
}

/// Event of a group of N members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArenaEvent {
    /// N members come into an empty group at once.
    Form,
    /// All members get a fresh key.
    Expire,
    /// One member is removed.
    RemoveOne,
    /// One member comes.
    AdmitOne,
    /// A tenth of the members is removed at once.
    RemoveTenth,
    /// A tenth more comes at once.
    AdmitTenth,
    /// The controller is lost and starts again with its disk; all members get a key of the new one.
    LoseController,
}

impl ArenaEvent {
    /// All, in the order in which they are played.
    pub const ALL: [Self; 7] = [
        Self::Form,
        Self::Expire,
        Self::RemoveOne,
        Self::AdmitOne,
        Self::RemoveTenth,
        Self::AdmitTenth,
        Self::LoseController,
    ];

    /// Members that come in the course of all events.
    #[must_use]
    pub const fn newcomers(members: u32) -> u32 {
        1 + members.div_ceil(10)
    }

    /// Name of the event in paths.
    #[must_use]
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Expire => "expire",
            Self::RemoveOne => "remove-one",
            Self::AdmitOne => "admit-one",
            Self::RemoveTenth => "remove-tenth",
            Self::AdmitTenth => "admit-tenth",
            Self::LoseController => "lose-controller",
        }
    }

    /// Name of the event for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Form => "The group forms",
            Self::Expire => "The key expires",
            Self::RemoveOne => "One member is removed",
            Self::AdmitOne => "One member comes",
            Self::RemoveTenth => "10 % of the members are removed",
            Self::AdmitTenth => "10 % more members come",
            Self::LoseController => "The controller is lost and starts again",
        }
    }
}

/// Costs of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Members that are to have the key.
    pub members: usize,
    /// Members that have it in the end.
    pub reached: usize,
    /// Octets sent, with all headers.
    pub bytes: u64,
    /// Frames sent, repetitions included.
    pub frames: u64,
    /// Time for which the channel carried a signal.
    pub airtime: Duration,
    /// Radio energy of the controller.
    pub controller_energy: Energy,
    /// Radio energy of all nodes.
    pub energy: Energy,
    /// Processor time of the controller on this machine.
    pub controller_cpu: Duration,
    /// The same of a member, on average over those that are measured.
    pub member_cpu: Duration,
    /// Time from the command until half of the members, 99 % and all have the newest key; `None` if they never do.
    pub until: [Option<Duration>; 3],
    /// Complaints of machines.
    pub complaints: Vec<String>,
    /// True if the processor time was used up before the event was over: no figure is whole then.
    pub is_cut: bool,
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArenaViolation {
    /// A member holds a key that the controller never made.
    ForeignKey(MemberId),
    /// A removed member holds a key that was made after its removal.
    RemovedHasKey(MemberId),
    /// A newcomer holds a key that was made before it came.
    NewcomerHasOldKey(MemberId),
}

impl std::fmt::Display for ArenaViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ForeignKey(id) => write!(f, "member {id} holds a key that the controller never made"),
            Self::RemovedHasKey(id) => write!(f, "member {id}, which is removed, holds a key of afterwards"),
            Self::NewcomerHasOldKey(id) => write!(f, "member {id} holds a key of before it came"),
        }
    }
}

/// Standing of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberPresence {
    Outside,
    /// The member is in the group since this number of keys had been made.
    Inside(usize),
    /// Removed when so many keys had been made. It hears everything and says nothing that arrives.
    Removed(usize),
}

struct ArenaNode {
    machine: Box<dyn Participant>,
    connected: bool,
    /// Time of the planned wake-up, and what its machine wants.
    wake: Option<Duration>,
    deadline: Option<Duration>,
    silent_until: Duration,
    observed: ObservedLoss,
    account: Account,
    cpu: Duration,
    watched: bool,
    key: Option<Fingerprint>,
    rng: ChaCha8Rng,
}

enum Due {
    Wake(usize),
    Arrive { from: usize, to: usize, via: Via, bytes: Arc<[u8]> },
    Broadcast { from: usize, sent: Box<Transmission>, bytes: Arc<[u8]> },
    Connect(MemberId),
    Begin(MemberId),
}

/// A frame as an eavesdropper records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The sender: 0 is the controller, member i is i + 1.
    pub from: usize,
    /// The receiver; `None`: all.
    pub to: Option<usize>,
    /// Bytes of the message.
    pub bytes: Arc<[u8]>,
}

/// A world with one controller and its members.
pub struct Arena<'a> {
    contender: &'a mut dyn Contender,
    link: ArenaCarrier,
    gateway: Option<Profile>,
    nodes: Vec<ArenaNode>,
    standing: Vec<MemberPresence>,
    founders: u32,
    queue: EventQueue<Due>,
    now: Duration,
    medium: Medium,
    /// Arrival of the last message of each stream.
    streams: BTreeMap<(usize, usize), Duration>,
    burst_links: BTreeMap<(usize, usize), LossState>,
    rng: ChaCha8Rng,
    /// Keys that the controller made, in order.
    made: Vec<Fingerprint>,
    violations: BTreeSet<ArenaViolation>,
    complaints: Vec<String>,
    last_sent: Duration,
    airtime: Duration,
    /// Time at which each member got the newest key.
    reached: BTreeMap<MemberId, Duration>,
    quiet: Duration,
    limit: Duration,
    /// Processor time for the next event, if it is limited.
    processor_limit: Option<Duration>,
    /// Frames, if they are recorded.
    recording: Option<Vec<Recorded>>,
}

impl<'a> Arena<'a> {
    /// A world of `founders` members that will form the group, and those that come later.
    ///
    /// # Errors
    /// [`ContenderError`].
    pub fn new(
        contender: &'a mut dyn Contender,
        link: ArenaCarrier,
        founders: u32,
        newcomers: u32,
        seed: u64,
    ) -> Result<Self, ContenderError> {
        let total = founders.saturating_add(newcomers);
        if !(2..=MAX_MEMBERS).contains(&founders) || total > 2 * MAX_MEMBERS {
            return Err(ContenderError::Members(founders));
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut nodes = vec![node(contender.controller(SecretsOrigin::Genuine)?, true, &mut rng)];
        let mut watched = [0, 0];
        for id in 0..total {
            // As many among those that come later.
            let among = usize::from(id >= founders);
            let watch =
                contender.is_whole(id) && watched.get(among).is_some_and(|count| *count < WATCHED / 2);
            if let Some(count) = watched.get_mut(among) {
                *count += usize::from(watch);
            }
            nodes.push(node(contender.member(id)?, watch, &mut rng));
        }
        let pace = link.pace();
        let gateway = match &link {
            ArenaCarrier::Radio { profile, .. } => Some(profile.as_ref().clone().at_gateway()),
            ArenaCarrier::Streams { .. } => None,
        };
        let mut arena = Self {
            contender,
            gateway,
            nodes,
            standing: vec![MemberPresence::Outside; total as usize],
            founders,
            queue: EventQueue::default(),
            now: Duration::ZERO,
            medium: Medium::new(),
            streams: BTreeMap::new(),
            burst_links: BTreeMap::new(),
            rng,
            made: Vec::new(),
            violations: BTreeSet::new(),
            complaints: Vec::new(),
            last_sent: Duration::ZERO,
            airtime: Duration::ZERO,
            reached: BTreeMap::new(),
            quiet: (pace.frame.max(pace.controller_frame) * 20).max(Duration::from_secs(20)),
            limit: Duration::from_secs(7 * 86_400),
            processor_limit: None,
            recording: None,
            link,
        };
        arena.feed(0, Input::Timeout);
        Ok(arena)
    }

    /// Records every frame from now on.
    pub fn record(&mut self) {
        self.recording = Some(Vec::new());
    }

    /// Limits the processor time that the next event may take, and each after it. An event that takes longer is cut, after
    /// the input that a machine is taking.
    pub const fn limit_processor_time(&mut self, limit: Duration) {
        self.processor_limit = Some(limit);
    }

    /// The frames recorded so far.
    #[must_use]
    pub fn recorded(&self) -> &[Recorded] {
        self.recording.as_deref().unwrap_or_default()
    }

    /// Violations so far.
    #[must_use]
    pub const fn violations(&self) -> &BTreeSet<ArenaViolation> {
        &self.violations
    }

    /// Keys that the controller made, in order.
    #[must_use]
    pub fn keys(&self) -> &[Fingerprint] {
        &self.made
    }

    /// The machine of a member.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&dyn Participant> {
        self.nodes.get(id as usize + 1).map(|node| node.machine.as_ref())
    }

    /// Feeds a member's machine a frame that an adversary sends in the controller's name. Its answers go nowhere.
    pub fn inject(&mut self, id: MemberId, bytes: &[u8]) {
        let now = self.clock();
        if let Some(node) = self.nodes.get_mut(id as usize + 1) {
            for via in [Via::Group, Via::Peer] {
                let input = Input::Received { from: CONTROLLER, via, bytes };
                node.machine.handle_input(now, input, &mut node.rng);
                while !matches!(node.machine.poll_output(), Output::Timeout(_)) {}
            }
        }
    }

    /// Members in the group.
    #[must_use]
    pub fn inside(&self) -> Vec<MemberId> {
        let ids = (0..).zip(&self.standing);
        ids.filter(|(_, standing)| matches!(standing, MemberPresence::Inside(_))).map(|(id, _)| id).collect()
    }

    /// The first so many members from this one on that never were in the group.
    fn outside(&self, first: MemberId, count: u32) -> Vec<MemberId> {
        let ids = (0..).zip(&self.standing).skip(first as usize);
        let outside = ids.filter(|(_, standing)| **standing == MemberPresence::Outside).map(|(id, _)| id);
        outside.take(count as usize).collect()
    }

    /// Plays an event to its end: all members have the newest key, and the channel is quiet.
    ///
    /// # Errors
    /// [`ContenderError`] if a new controller cannot be made.
    pub fn play(&mut self, event: ArenaEvent) -> Result<Outcome, ContenderError> {
        for node in &mut self.nodes {
            (node.account, node.cpu) = (Account::default(), Duration::ZERO);
        }
        (self.airtime, self.last_sent) = (Duration::ZERO, self.now);
        self.reached.clear();
        let (start, before) = (self.now, self.made.len());
        if self.processor_limit.is_some_and(|limit| limit.is_zero()) {
            return Ok(Outcome { is_cut: true, ..Outcome::default() });
        }
        let timer = ThreadTime::now();
        match event {
            ArenaEvent::Form => self.admit(0, self.founders),
            ArenaEvent::AdmitOne => self.admit(self.founders, 1),
            ArenaEvent::AdmitTenth => self.admit(self.founders, self.founders.div_ceil(10)),
            ArenaEvent::Expire => self.command(0, Command::Expire),
            ArenaEvent::RemoveOne => self.remove(1),
            ArenaEvent::RemoveTenth => self.remove(self.founders.div_ceil(10)),
            ArenaEvent::LoseController => self.restart_controller()?,
        }
        let is_cut = !self.run(start, before, timer);
        Ok(Outcome { is_cut, ..self.outcome(start) })
    }

    fn admit(&mut self, first: MemberId, count: u32) {
        let ids = self.outside(first, count);
        let pace = self.contender.pace_of_newcomers();
        for id in &ids {
            self.set_standing(*id, MemberPresence::Inside(self.made.len()));
            self.connect(*id);
        }
        for (before, id) in (0..).zip(&ids) {
            if pace.is_zero() {
                self.command(*id as usize + 1, Command::Join);
            } else {
                self.queue.push(nanos(self.now + pace * before), Due::Begin(*id));
            }
        }
        self.command(0, Command::Admit(ids));
    }

    fn remove(&mut self, count: u32) {
        let inside = self.inside();
        let apart = (inside.len() / count.max(1) as usize).max(1);
        let ids: Vec<MemberId> = inside.iter().skip(1).step_by(apart).take(count as usize).copied().collect();
        for id in &ids {
            self.set_standing(*id, MemberPresence::Removed(self.made.len()));
        }
        self.command(0, Command::Remove(ids));
    }

    fn restart_controller(&mut self) -> Result<(), ContenderError> {
        let inside = self.inside();
        let machine = self.contender.controller(SecretsOrigin::Genuine)?;
        let mut fresh = node(machine, true, &mut self.rng);
        if let Some(controller) = self.nodes.first_mut() {
            // The radio's silence outlives its computer.
            fresh.silent_until = controller.silent_until;
            *controller = fresh;
        }
        for id in &inside {
            self.disconnect(*id);
        }
        self.feed(0, Input::Timeout);
        for id in &inside {
            self.connect(*id);
        }
        self.command(0, Command::Admit(inside));
        Ok(())
    }

    fn set_standing(&mut self, id: MemberId, standing: MemberPresence) {
        if let Some(place) = self.standing.get_mut(id as usize) {
            *place = standing;
        }
    }

    fn command(&mut self, node: usize, command: Command) {
        self.feed(node, Input::Command(command));
    }

    fn connect(&mut self, id: MemberId) {
        if let Some(node) = self.nodes.get_mut(id as usize + 1) {
            node.connected = true;
        }
        self.feed(0, Input::Connected { peer: peer_of(id), route: Route::Inbound });
        self.feed(id as usize + 1, Input::Connected { peer: CONTROLLER, route: Route::Leader });
    }

    fn disconnect(&mut self, id: MemberId) {
        if let Some(node) = self.nodes.get_mut(id as usize + 1) {
            node.connected = false;
        }
        self.feed(0, Input::Disconnected { peer: peer_of(id) });
        self.feed(id as usize + 1, Input::Disconnected { peer: CONTROLLER });
    }

    /// Runs an event to its end. False if its processor time was used up before.
    fn run(&mut self, start: Duration, before: usize, timer: ThreadTime) -> bool {
        let (mut steps, wanted) = (0_u64, self.inside().len());
        while let Some(at) = self.queue.next_at() {
            let at = Duration::from_nanos(at);
            let done = self.made.len() > before && self.reached.len() == wanted;
            let quiet_for = at.saturating_sub(self.last_sent.max(start));
            // Nobody has said anything for long: it is over, or it will never be.
            let patience = if done { self.quiet } else { self.quiet * 50 };
            if quiet_for > patience || at.saturating_sub(start) > self.limit || steps > MAX_STEPS {
                break;
            }
            if steps.is_multiple_of(STEPS_UNTIMED)
                && self.processor_limit.is_some_and(|limit| timer.elapsed() > limit)
            {
                return false;
            }
            steps += 1;
            let Some(due) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.take(due.event);
        }
        self.now += self.quiet;
        true
    }

    fn take(&mut self, due: Due) {
        match due {
            Due::Wake(index) => {
                let Some(node) = self.nodes.get_mut(index) else { return };
                // An earlier wake-up was planned since, and has been.
                if node.wake.is_none_or(|wake| wake > self.now) {
                    return;
                }
                node.wake = None;
                if node.deadline.is_some_and(|deadline| deadline <= self.now) {
                    self.feed(index, Input::Timeout);
                } else {
                    self.plan(index);
                }
            }
            Due::Arrive { from, to, via, bytes } => {
                let member = from.max(to);
                if self.nodes.get(member).is_some_and(|node| node.connected) {
                    let from = if from == 0 { CONTROLLER } else { Peer(from as u64) };
                    self.feed(to, Input::Received { from, via, bytes: &bytes });
                }
            }
            Due::Broadcast { from, sent, bytes } => self.reach(from, &sent, &bytes),
            Due::Connect(id) => {
                let is_inside = matches!(self.standing.get(id as usize), Some(MemberPresence::Inside(_)));
                let is_off = self.nodes.get(id as usize + 1).is_some_and(|node| !node.connected);
                if is_inside && is_off {
                    self.connect(id);
                }
            }
            Due::Begin(id) => self.command(id as usize + 1, Command::Join),
        }
    }

    /// Delivers a broadcast to those in range, each with a loss of its own.
    fn reach(&mut self, from: usize, sent: &Transmission, bytes: &Arc<[u8]>) {
        let ArenaCarrier::Radio { profile, loss } = self.link.clone() else { return };
        let power = *profile.power();
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            let Some(node) = self.nodes.get_mut(to) else { continue };
            // A node that is not there yet hears nothing; one that is removed does, and pays for itself.
            if to > 0 && !node.connected {
                continue;
            }
            let removed = to > 0 && matches!(self.standing.get(to - 1), Some(MemberPresence::Removed(_)));
            if !removed {
                node.account += &Account::hearing(sent, &power);
            }
            let mut link = self.burst_links.remove(&(from, to)).unwrap_or_else(|| loss.link(&mut self.rng));
            let heard = profile.receives(sent, &mut link, &mut self.rng);
            if matches!(loss, Loss::GilbertElliott { .. }) {
                self.burst_links.insert((from, to), link);
            }
            if heard {
                let peer = if from == 0 { CONTROLLER } else { Peer(from as u64) };
                self.feed(to, Input::Received { from: peer, via: Via::Group, bytes });
            }
        }
    }

    fn clock(&self) -> Now {
        Now { monotonic: self.now, unix: EPOCH_START + self.now.as_secs() }
    }

    /// Feeds a machine an input, and carries out what it wants.
    fn feed(&mut self, index: usize, input: Input<'_, Command>) {
        let clock = self.clock();
        let Some(node) = self.nodes.get_mut(index) else { return };
        let timer = node.watched.then(ThreadTime::now);
        node.machine.handle_input(clock, input, &mut node.rng);
        let mut outputs = Vec::new();
        let deadline = loop {
            match node.machine.poll_output() {
                Output::Timeout(deadline) => break deadline,
                output => outputs.push(output),
            }
        };
        if let Some(timer) = timer {
            node.cpu += timer.elapsed();
        }
        node.deadline = deadline.map(|deadline| deadline.max(self.now + SHORTEST));
        let key = node.machine.key_state().map(|state| state.key);
        let changed = key != node.key;
        node.key = key;
        if changed {
            self.key_changed(index, key);
        }
        for output in outputs {
            match output {
                Output::Transmit { to, payload } => self.transmit(index, to, payload.into()),
                Output::Event(what) => self.complain(what),
                Output::Block(peer) | Output::Penalize { peer, .. } => self.cut(index, peer, false),
                Output::Disconnect(peer) => self.cut(index, peer, true),
                Output::Relay { .. } | Output::Timeout(_) => {}
                Output::Persist(never) => match never {},
            }
        }
        self.plan(index);
    }

    fn complain(&mut self, what: String) {
        // The first few say enough.
        if self.complaints.len() < 16 {
            self.complaints.push(what);
        }
    }

    fn cut(&mut self, index: usize, peer: Peer, comes_again: bool) {
        let member = if index == 0 { member_of(peer) } else { u32::try_from(index - 1).ok() };
        let Some(id) = member else { return };
        if matches!(self.standing.get(id as usize), Some(MemberPresence::Removed(_))) {
            // Nothing keeps a radio from listening.
            return self.feed(0, Input::Disconnected { peer: peer_of(id) });
        }
        self.disconnect(id);
        if comes_again {
            self.queue.push(nanos(self.now + RECONNECT), Due::Connect(id));
        }
    }

    fn plan(&mut self, index: usize) {
        let Some(node) = self.nodes.get_mut(index) else { return };
        if let Some(deadline) = node.deadline
            && node.wake.is_none_or(|wake| deadline < wake || wake < self.now)
        {
            // Virtual time is in whole nanoseconds.
            let at = Duration::from_nanos(nanos(deadline));
            node.wake = Some(at);
            self.queue.push(nanos(at), Due::Wake(index));
        }
    }

    fn key_changed(&mut self, index: usize, key: Option<Fingerprint>) {
        let Some(id) = index.checked_sub(1).and_then(|id| u32::try_from(id).ok()) else {
            if let Some(key) = key.filter(|key| !self.made.contains(key)) {
                self.made.push(key);
                self.reached.clear();
                self.note_holders(key);
            }
            return;
        };
        self.reached.remove(&id);
        let Some(key) = key else { return };
        let standing = self.standing.get(id as usize).copied().unwrap_or(MemberPresence::Outside);
        if let Some(violation) = self.judge(id, standing, key) {
            self.violations.insert(violation);
        }
        if matches!(standing, MemberPresence::Inside(_)) && self.made.last() == Some(&key) {
            self.reached.insert(id, self.now);
        }
    }

    /// Members may have a key before the controller says that it is in force.
    fn note_holders(&mut self, key: Fingerprint) {
        for id in self.inside() {
            if self.nodes.get(id as usize + 1).is_some_and(|node| node.key == Some(key)) {
                self.reached.insert(id, self.now);
            }
        }
    }

    fn judge(&self, id: MemberId, standing: MemberPresence, key: Fingerprint) -> Option<ArenaViolation> {
        let Some(number) = self.made.iter().position(|made| *made == key) else {
            return Some(ArenaViolation::ForeignKey(id));
        };
        match standing {
            MemberPresence::Removed(at) if number >= at => Some(ArenaViolation::RemovedHasKey(id)),
            MemberPresence::Inside(since) if number < since => Some(ArenaViolation::NewcomerHasOldKey(id)),
            MemberPresence::Outside => Some(ArenaViolation::NewcomerHasOldKey(id)),
            MemberPresence::Inside(_) | MemberPresence::Removed(_) => None,
        }
    }

    fn transmit(&mut self, from: usize, to: Destination, bytes: Arc<[u8]>) {
        let removed = from > 0 && matches!(self.standing.get(from - 1), Some(MemberPresence::Removed(_)));
        if removed {
            return;
        }
        let to = match to {
            Destination::Group => None,
            // The peers of a member are the controller alone.
            Destination::Peer(_) if from > 0 => Some(0),
            Destination::Peer(peer) => match member_of(peer) {
                Some(id) if (id as usize) < self.standing.len() => Some(id as usize + 1),
                _ => return,
            },
        };
        self.last_sent = self.now;
        if let Some(recording) = &mut self.recording {
            recording.push(Recorded { from, to, bytes: Arc::clone(&bytes) });
        }
        match self.link.clone() {
            ArenaCarrier::Radio { profile, loss } => self.send_by_radio(&profile, loss, from, to, bytes),
            ArenaCarrier::Streams { delay, loss } => {
                let receivers: Vec<usize> = match to {
                    Some(to) => vec![to],
                    None => {
                        self.inside().iter().map(|id| *id as usize + 1).filter(|to| *to != from).collect()
                    }
                };
                for to in receivers {
                    self.send_by_stream(delay, loss, (from, to), if from == 0 { to } else { from }, &bytes);
                }
            }
        }
    }

    fn send_by_radio(
        &mut self,
        profile: &Profile,
        loss: Loss,
        from: usize,
        to: Option<usize>,
        bytes: Arc<[u8]>,
    ) {
        let own = match (&self.gateway, from) {
            (Some(gateway), 0) => gateway.clone(),
            _ => profile.clone(),
        };
        let Some(node) = self.nodes.get_mut(from) else { return };
        let ready = node.silent_until.max(self.now);
        let (cast, sent) = match to {
            None => (Cast::Broadcast, own.broadcast(bytes.len(), node.observed.estimate(), &mut self.rng)),
            Some(to) => {
                let mut link =
                    self.burst_links.remove(&(from, to)).unwrap_or_else(|| loss.link(&mut self.rng));
                let sent = own.send(bytes.len(), Cast::Unicast, &mut link, &mut self.rng);
                if matches!(loss, Loss::GilbertElliott { .. }) {
                    self.burst_links.insert((from, to), link);
                }
                if own.acknowledges() {
                    node.observed.note(&sent);
                }
                (Cast::Unicast, sent)
            }
        };
        let slot = self.medium.reserve(ready, &own, cast, &sent, &mut self.rng);
        self.last_sent = self.last_sent.max(slot.end);
        if !sent.silence.is_zero() {
            node.silent_until = slot.end + sent.silence;
            self.last_sent = self.last_sent.max(node.silent_until);
        }
        node.account += &Account::sending(&sent, own.power());
        self.airtime += sent.on_air;
        let at = nanos(slot.end);
        match to {
            None => self.queue.push(at, Due::Broadcast { from, sent: Box::new(sent), bytes }),
            Some(to) => {
                if let Some(receiver) = self.nodes.get_mut(to) {
                    receiver.account += &Account::hearing(&sent, own.power());
                }
                if sent.delivered {
                    self.queue.push(at, Due::Arrive { from, to, via: Via::Peer, bytes });
                }
            }
        }
    }

    fn send_by_stream(
        &mut self,
        delay: Duration,
        loss: f64,
        (from, to): (usize, usize),
        member: usize,
        bytes: &Arc<[u8]>,
    ) {
        if !self.nodes.get(member).is_some_and(|node| node.connected) {
            return;
        }
        let segments = bytes.len().div_ceil(SEGMENT).max(1);
        let mut account = Account { frames: segments as u64, ..Account::default() };
        let mut late = Duration::ZERO;
        for _ in 0..segments {
            let mut timeout = TIMEOUT;
            while f64::from(self.rng.next_u32()) < loss * f64::from(u32::MAX) && timeout < TIMEOUT * 64 {
                account.retransmissions += 1;
                late += timeout;
                timeout *= 2;
            }
        }
        let sent = account.frames + account.retransmissions;
        account.bytes = (bytes.len() + SEGMENT_HEADERS * segments) as u64 * sent / account.frames.max(1);
        let before = self.streams.get(&(from, to)).copied().unwrap_or_default();
        let at = (self.now + delay + late).max(before);
        self.streams.insert((from, to), at);
        if let Some(node) = self.nodes.get_mut(from) {
            node.account += &account;
        }
        self.queue.push(nanos(at), Due::Arrive { from, to, via: Via::Peer, bytes: Arc::clone(bytes) });
    }

    fn outcome(&mut self, start: Duration) -> Outcome {
        let members = self.inside().len();
        let mut times: Vec<Duration> = self.reached.values().map(|at| at.saturating_sub(start)).collect();
        times.sort_unstable();
        let until = [50, 99, 100].map(|share| times.get((members * share).div_ceil(100).max(1) - 1).copied());
        let removed = |index: usize| {
            index > 0 && matches!(self.standing.get(index - 1), Some(MemberPresence::Removed(_)))
        };
        let counted = self.nodes.iter().enumerate().filter(|(index, _)| !removed(*index));
        let mut total = Account::default();
        counted.for_each(|(_, node)| total += &node.account);
        let watched: Vec<Duration> = (1..)
            .zip(self.nodes.iter().skip(1))
            .filter(|(index, node)| {
                node.watched && matches!(self.standing.get(index - 1), Some(MemberPresence::Inside(_)))
            })
            .map(|(_, node)| node.cpu)
            .collect();
        let count = u32::try_from(watched.len()).unwrap_or(u32::MAX).max(1);
        let controller = self.nodes.first();
        Outcome {
            members,
            reached: times.len(),
            bytes: total.bytes,
            frames: total.frames + total.retransmissions,
            airtime: self.airtime,
            controller_energy: controller.map_or(Energy::ZERO, |node| node.account.radio()),
            energy: total.radio(),
            controller_cpu: controller.map_or(Duration::ZERO, |node| node.cpu),
            member_cpu: watched.iter().sum::<Duration>() / count,
            until,
            complaints: std::mem::take(&mut self.complaints),
            is_cut: false,
        }
    }
}

fn node(machine: Box<dyn Participant>, watched: bool, rng: &mut ChaCha8Rng) -> ArenaNode {
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    ArenaNode {
        machine,
        connected: false,
        wake: None,
        deadline: None,
        silent_until: Duration::ZERO,
        observed: ObservedLoss::default(),
        account: Account::default(),
        cpu: Duration::ZERO,
        watched,
        key: None,
        rng: ChaCha8Rng::from_seed(seed),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
