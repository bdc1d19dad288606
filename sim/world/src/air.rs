//! The shared radio channel: airtime, losses and energy of every message.
//!
//! Messages with an edge at one end go over the radio; the KGC and the leaders reach each other by other
//! means. A message to the group is one broadcast. The cost of a re-key is all that is said about the newest
//! epoch, from its broadcast to the last straggler's catch-up, and what drones compute to follow it.

mod compute_cost;
mod message_kind;

use std::collections::BTreeMap;
use std::time::Duration;

use quiver_ainq::Epoch;
use quiver_group::LeaderEvent;
use rand_chacha::ChaCha8Rng;

pub use self::compute_cost::compute_cost;
use self::message_kind::is_about_an_epoch;
pub(crate) use self::message_kind::{is_rekey, purpose};
use crate::boards::{Coding, ObservedLoss};
use crate::radio::cycles::Arithmetic;
use crate::radio::{Account, Cast, Ledger, Loss, LossState, Medium, Payer, Profile, Transmission};
use crate::{NodeEvent, NodeId, Step};

/// A radio with its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct AirSetup {
    /// The radio.
    pub profile: Profile,
    /// Losses of frames on each link.
    pub loss: Loss,
    /// Curve arithmetic of the drones.
    pub arithmetic: Arithmetic,
}

/// Purpose of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransmissionPurpose {
    /// A message of the protocol.
    Message,
    /// A datagram of the group.
    Datagram,
}

/// A broadcast on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AirBroadcast {
    transmission: Transmission,
    from: NodeId,
    rekey: Option<u64>,
    /// True if it is the announcement of a sender of datagrams.
    announcement: bool,
    /// Time from the sending until the end of the last frame.
    pub(crate) after: Duration,
}

impl AirBroadcast {
    /// Code of the broadcast, if it has parity frames.
    pub(crate) fn coding(&self) -> Option<Coding> {
        self.transmission.coding
    }

    /// Frames, each once.
    pub(crate) fn frames(&self) -> u32 {
        self.transmission.frames
    }

    /// Time on air of all of them.
    pub(crate) fn airtime(&self) -> Duration {
        self.transmission.on_air
    }
}

/// A channel for all nodes.
#[derive(Clone, Debug)]
pub struct Air {
    setup: AirSetup,
    /// The radio of the nodes that are no edges.
    gateway: Profile,
    /// The radio as datagrams use it: each goes out once.
    once: Profile,
    medium: Medium,
    ledger: Ledger,
    links: BTreeMap<(NodeId, NodeId), LossState>,
    /// Loss that each sender observes.
    observed: BTreeMap<NodeId, ObservedLoss>,
    /// Time from which a sender may send again.
    silent_until: BTreeMap<NodeId, Duration>,
    rng: ChaCha8Rng,
    newest: Option<u64>,
}

impl Air {
    pub(crate) fn new(setup: AirSetup, edges: u32, rng: ChaCha8Rng) -> Self {
        Self {
            gateway: setup.profile.clone().at_gateway(),
            once: setup.profile.clone().with_rounds(1),
            setup,
            medium: Medium::new(),
            ledger: Ledger::new(edges as usize),
            links: BTreeMap::new(),
            observed: BTreeMap::new(),
            silent_until: BTreeMap::new(),
            rng,
            newest: None,
        }
    }

    /// Costs so far. Re-keys are numbered by [`rekey_number`].
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The channel.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// The radio.
    pub fn profile(&self) -> &Profile {
        &self.setup.profile
    }

    /// The loss of frames that a node sees, from 0 to 0.5: what its broadcasts are coded for.
    pub fn observed_loss(&self, node: NodeId) -> f64 {
        self.observed.get(&node).map_or(0.0, ObservedLoss::estimate)
    }

    /// Returns true if messages between two nodes go over the radio.
    pub(crate) fn joins(one: NodeId, other: NodeId) -> bool {
        matches!(one, NodeId::Edge(_)) || matches!(other, NodeId::Edge(_))
    }

    /// Changes the radio of all nodes.
    pub(crate) fn retune(&mut self, setup: AirSetup) {
        self.gateway = setup.profile.clone().at_gateway();
        self.once = setup.profile.clone().with_rounds(1);
        self.setup = setup;
        self.links.clear();
        self.observed.clear();
        self.silent_until.clear();
    }

    /// Links lose no frames any more.
    pub(crate) fn calm(&mut self) {
        self.setup.loss = Loss::None;
        self.links.clear();
    }

    /// Notes a step's epoch, and books a drone's computation.
    pub(crate) fn note(&mut self, step: &Step) {
        for event in step.events() {
            if let NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) = event {
                self.newest = self.newest.max(Some(rekey_number(*epoch)));
            }
        }
        if let NodeId::Edge(number) = step.node {
            let (cycles, about_an_epoch) = self.compute_cost(step);
            if cycles > 0 {
                let rekey = self.newest.filter(|_| about_an_epoch);
                self.ledger.book(Payer::Drone(number as usize), rekey, &Account::computing(cycles));
            }
        }
    }

    /// CPU cycles of a drone's step, and whether it was about an epoch.
    pub(crate) fn compute_cost(&self, step: &Step) -> (u64, bool) {
        match &step.account {
            None => compute_cost(step, self.setup.arithmetic),
            Some(account) => (account.cycles, account.about_an_epoch),
        }
    }

    /// Sends a message to one node. Gives how long after `at` it arrives, if it does.
    pub(crate) fn unicast(
        &mut self,
        at: Duration,
        from: NodeId,
        to: NodeId,
        payload: &[u8],
    ) -> Option<Duration> {
        let mut link = self.take_link(from, to);
        let (transmission, after) =
            self.send(at, from, (Cast::Unicast, TransmissionPurpose::Message), payload.len(), &mut link);
        self.keep_link(from, to, link);
        if self.setup.profile.acknowledges() {
            self.observed.entry(from).or_default().note(&transmission);
        }
        let rekey = self.rekey(payload);
        let power = self.setup.profile.power();
        self.ledger.book(payer(from), rekey, &Account::sending(&transmission, power));
        self.ledger.book(payer(to), rekey, &Account::hearing(&transmission, power));
        transmission.delivered.then_some(after)
    }

    /// Sends a message to every node in range.
    pub(crate) fn broadcast(&mut self, at: Duration, from: NodeId, payload: &[u8]) -> AirBroadcast {
        let (transmission, after) = self.send(
            at,
            from,
            (Cast::Broadcast, TransmissionPurpose::Message),
            payload.len(),
            &mut LossState::default(),
        );
        let rekey = self.rekey(payload);
        self.ledger.book(payer(from), rekey, &Account::sending(&transmission, self.setup.profile.power()));
        AirBroadcast { transmission, from, rekey, announcement: false, after }
    }

    /// A member repeats a leader's broadcast in the frames that it had.
    pub(crate) fn repeat(
        &mut self,
        at: Duration,
        from: NodeId,
        payload: &[u8],
        coding: Option<Coding>,
    ) -> AirBroadcast {
        let ready = self.silent_until.get(&from).copied().unwrap_or_default().max(at);
        let profile = &self.setup.profile;
        let transmission = profile.broadcast_coded(payload.len(), coding, &mut self.rng);
        let slot = self.medium.reserve(ready, profile, Cast::Broadcast, &transmission, &mut self.rng);
        if !transmission.silence.is_zero() {
            self.silent_until.insert(from, slot.end + transmission.silence);
        }
        let rekey = self.rekey(payload);
        self.ledger.book(payer(from), rekey, &Account::sending(&transmission, self.setup.profile.power()));
        AirBroadcast { transmission, from, rekey, announcement: false, after: slot.end.saturating_sub(at) }
    }

    /// Returns true if a node receives the whole broadcast; it pays for listening either way.
    pub(crate) fn reaches(&mut self, flight: &AirBroadcast, to: NodeId) -> bool {
        let account = Account::hearing(&flight.transmission, self.setup.profile.power());
        self.ledger.book(payer(to), flight.rekey, &account);
        let mut link = self.take_link(flight.from, to);
        let heard = self.setup.profile.receives(&flight.transmission, &mut link, &mut self.rng);
        self.keep_link(flight.from, to, link);
        heard
    }

    /// Sends a datagram of the group to every node in range, once.
    pub(crate) fn datagram(
        &mut self,
        at: Duration,
        from: NodeId,
        len: usize,
        announcement: bool,
    ) -> AirBroadcast {
        let how = (Cast::Broadcast, TransmissionPurpose::Datagram);
        let (transmission, after) = self.send(at, from, how, len, &mut LossState::default());
        let account = Account::sending(&transmission, self.setup.profile.power());
        self.ledger.book(payer(from), None, &account);
        self.ledger.book_datagram(announcement, &account);
        AirBroadcast { transmission, from, rekey: None, announcement, after }
    }

    /// Returns true if a node receives the datagram; it pays for listening either way.
    pub(crate) fn datagram_reaches(&mut self, flight: &AirBroadcast, to: NodeId) -> bool {
        let account = Account::hearing(&flight.transmission, self.setup.profile.power());
        self.ledger.book(payer(to), None, &account);
        self.ledger.book_datagram(flight.announcement, &account);
        let mut link = self.take_link(flight.from, to);
        let heard = self.once.receive(flight.transmission.frames, &mut link, &mut self.rng);
        self.keep_link(flight.from, to, link);
        heard
    }

    /// Waits for the sender's duty cycle and the channel, then sends.
    fn send(
        &mut self,
        at: Duration,
        from: NodeId,
        (cast, purpose): (Cast, TransmissionPurpose),
        bytes: usize,
        link: &mut LossState,
    ) -> (Transmission, Duration) {
        let ready = self.silent_until.get(&from).copied().unwrap_or_default().max(at);
        let profile = match (purpose, from) {
            (TransmissionPurpose::Datagram, _) => &self.once,
            (TransmissionPurpose::Message, NodeId::Edge(_)) => &self.setup.profile,
            (TransmissionPurpose::Message, _) => &self.gateway,
        };
        let transmission = match (cast, purpose) {
            (Cast::Broadcast, TransmissionPurpose::Message) => {
                let seen = self.observed_loss(from);
                profile.broadcast(bytes, seen, &mut self.rng)
            }
            // A datagram goes out once, as it is.
            _ => profile.send(bytes, cast, link, &mut self.rng),
        };
        let slot = self.medium.reserve(ready, profile, cast, &transmission, &mut self.rng);
        if !transmission.silence.is_zero() {
            self.silent_until.insert(from, slot.end + transmission.silence);
        }
        (transmission, slot.end.saturating_sub(at))
    }

    fn rekey(&self, payload: &[u8]) -> Option<u64> {
        self.newest.filter(|_| is_about_an_epoch(payload))
    }

    /// Only bursts have a memory; all other links are the same at any time.
    fn take_link(&mut self, from: NodeId, to: NodeId) -> LossState {
        let loss = self.setup.loss;
        match self.links.get(&(from, to)) {
            Some(link) => link.clone(),
            None => loss.link(&mut self.rng),
        }
    }

    fn keep_link(&mut self, from: NodeId, to: NodeId, link: LossState) {
        if let Loss::GilbertElliott { .. } = self.setup.loss {
            self.links.insert((from, to), link);
        }
    }
}

/// The number under which a [`Ledger`] keeps what an epoch cost: it grows with the epoch.
pub fn rekey_number(epoch: Epoch) -> u64 {
    epoch.term << 32 | (epoch.counter & u64::from(u32::MAX))
}

fn payer(node: NodeId) -> Payer {
    match node {
        NodeId::Edge(number) => Payer::Drone(number as usize),
        NodeId::Kgc(_) | NodeId::Leader(_) | NodeId::Relay(_) => Payer::Infrastructure,
    }
}
