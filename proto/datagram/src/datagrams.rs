//! Sends and receives a member's datagrams: the machine.
//!
//! | module | what it does |
//! |---|---|
//! | [`receiver`] | opens datagrams and announcements, in the order of §20.7 |
//! | [`sender`] | seals payloads, announcements and manifests, at the carrier's pace |

mod receiver;
mod sender;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::{SALT_LEN, Start};
use quiver_ainq::{Deployment, DronePublicKey, EpochKeys, Handle, Name, Slot, Suite};
use rand_core::CryptoRngCore;

use self::sender::{PendingSignature, SentCommand};
use crate::announcement::AnnouncementRequest;
use crate::epoch::DatagramEpoch;
use crate::held::HeldDatagrams;
use crate::queue::{PayloadQueue, SealedDatagram, Shaper};
use crate::senders::{Senders, SignerPermission};
use crate::{Config, DatagramCounters, Event};

/// Pause between two questions about the epoch, at first and at most.
const EPOCH_QUESTIONS: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// Time for which datagrams of an epoch that is not known show that there is one.
const LACKING_FOR: Duration = Duration::from_secs(10);
/// Time for which no datagram of the current epoch opened if others have another.
const NOTHING_OPENS: Duration = Duration::from_secs(3);

/// Milliseconds over which the members' announcements after a re-key are spread.
const ANNOUNCEMENT_SPREAD: u32 = 1_000;

/// A sender of datagrams, as a receiver knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderStatus {
    /// Slot of the sender, or [`LEADER_SLOT`](quiver_ainq::LEADER_SLOT).
    pub slot: Slot,
    /// Name of the sender, if it signed its announcement and may.
    pub name: Option<Name>,
    /// Time of its last datagram in this epoch.
    pub heard: Option<Duration>,
    /// Number of datagrams received from it in this epoch.
    pub received: u64,
}

/// Sends and receives a member's datagrams.
#[derive(derive_more::Debug)]
#[debug("Datagrams {{ epoch: {:?}, open: {}, .. }}", current.as_ref().map(|current| current.epoch), self.is_open())]
pub struct Datagrams<S: Suite> {
    config: Config,
    deployment: Deployment<S>,
    counters: DatagramCounters,
    events: VecDeque<Event<S>>,
    /// The newest epoch that was set; without keys while closed.
    current: Option<DatagramEpoch<S>>,
    /// Time at which the key of the current epoch is no longer valid.
    expires: Duration,
    /// The epoch before, and until when it is remembered. It has keys if it still opens.
    former: Option<(DatagramEpoch<S>, Duration)>,
    queue: PayloadQueue,
    /// Signed datagrams, ready to leave.
    sealed: VecDeque<SealedDatagram>,
    shaper: Shaper,
    /// Commands that left under the current key in the last moments.
    sent: VecDeque<SentCommand>,
    pending: Vec<PendingSignature>,
    /// Time at which the last signature came, or was given up.
    signed: Duration,
    next_id: u64,
    held: HeldDatagrams,
    /// Names of the drones by slot, as far as the application knows.
    assigned: BTreeMap<Slot, Name>,
    /// Senders that are to announce themselves, and when they are asked next.
    wanted: Vec<AnnouncementRequest>,
    ask: Duration,
    /// Time to ask about the epoch, and the earliest time to ask again.
    ask_epoch: Option<Duration>,
    next_epoch_question: Duration,
    /// Time to the next question but one: it doubles with each that brings no newer epoch.
    epoch_pause: Duration,
    /// Time since which datagrams of an epoch that is not known come, and their number.
    strange: (Duration, u32),
    /// Time of the last reason to believe that others have a newer epoch.
    lacked: Option<Duration>,
    /// Time at which a datagram of the current epoch opened.
    opened: Duration,
    /// Number that spreads this member's questions.
    spread: u64,
    /// Time from which on signatures of announcements may be verified at the full rate again.
    verified: Duration,
}

impl<S: Suite> Datagrams<S> {
    /// Closed: nothing passes before the first epoch is [set](Self::set_epoch).
    ///
    /// A process has one, for all epochs. An anonymous member makes another for each membership: the salt of one
    /// would tell that it is the same drone.
    #[must_use]
    pub fn new(config: Config, deployment: Deployment<S>) -> Self {
        Self {
            config,
            deployment,
            counters: DatagramCounters::default(),
            events: VecDeque::new(),
            current: None,
            expires: Duration::ZERO,
            former: None,
            queue: PayloadQueue::default(),
            sealed: VecDeque::new(),
            shaper: Shaper::default(),
            sent: VecDeque::new(),
            pending: Vec::new(),
            signed: Duration::ZERO,
            next_id: 0,
            held: HeldDatagrams::default(),
            assigned: BTreeMap::new(),
            wanted: Vec::new(),
            ask: Duration::ZERO,
            ask_epoch: None,
            next_epoch_question: Duration::ZERO,
            epoch_pause: EPOCH_QUESTIONS,
            strange: (Duration::ZERO, 0),
            lacked: None,
            opened: Duration::ZERO,
            spread: 1,
            verified: Duration::ZERO,
        }
    }

    /// Takes an epoch into use. The one in use again, under the same start, changes nothing.
    pub fn set_epoch(&mut self, now: Duration, keys: EpochKeys<S>, rng: &mut dyn CryptoRngCore) {
        let known = self.current.as_ref().map(|current| current.own.start);
        let same = known.filter(|start| (start.slot, start.boot_no) == (keys.slot, keys.boot_no));
        let is_current = self.current.as_ref().is_some_and(|current| current.digest == keys.digest);
        if is_current && same.is_some() && self.is_open_at(now) {
            return;
        }
        // §20.2: a salt for each start; not for each epoch, because each has a key of its own.
        let start = same.unwrap_or_else(|| fresh_start(keys.slot, keys.boot_no, rng));
        self.expires = now.saturating_add(keys.valid_for);
        self.ask_epoch = None;
        // §20.8: what came before the new epoch is no reason to ask about it, or to ask more seldom.
        self.strange = (now, 0);
        self.lacked = None;
        self.spread ^= u64::from_be_bytes(start.salt) & !1;
        // The same epoch, opened again, is no answer to the questions: their pause stays.
        if !is_current {
            (self.next_epoch_question, self.epoch_pause) = (now, EPOCH_QUESTIONS);
        }
        // Their numbers are of the same start in the epoch before, or receivers could not tell them.
        self.give_back(now, !is_current && same.is_some());
        match &mut self.current {
            Some(current) if is_current => {
                // §20.2: numbers go on where they were, and so do windows.
                current.reopen(keys, start, now);
            }
            _ => self.follow(now, keys, start, same.is_some()),
        }
        // §20.8: what came before the epoch was known can be opened now.
        self.retry_held(now);
        self.request_signatures(now);
    }

    /// A newer epoch follows the one held.
    fn follow(&mut self, now: Duration, keys: EpochKeys<S>, start: Start, announced: bool) {
        let limit = self.config.max_senders;
        let spread = Duration::from_millis((start.slot.wrapping_mul(61) % ANNOUNCEMENT_SPREAD).into());
        // Members that knew this start before know it still.
        let due = if announced { (now + spread, false) } else { (now, true) };
        let Some(mut before) = self.current.take() else {
            self.current = Some(DatagramEpoch::new(keys, start, Senders::new(limit), due));
            return;
        };
        let older = self.former.as_ref().map(|(older, _)| (&older.senders, older.hint()));
        let senders = Senders::following(limit, (&before.senders, before.hint()), older, &keys.traffic);
        // §13.10, §20.8: a removed member could still send as anyone under the former key. Datagrams received
        // under it stay known.
        if keys.continues != Some(before.digest) {
            before.close();
        }
        // §20.8: the windows of the former epoch stay known for the overlap, even if it opens nothing.
        self.former = Some((before, now.saturating_add(self.config.overlap)));
        self.current = Some(DatagramEpoch::new(keys, start, senders, due));
    }

    /// Closes the epoch, because there is no valid key: nothing passes, and all secrets are erased. Payloads
    /// that waited to be sent are dropped.
    pub fn close(&mut self) {
        if let Some(current) = &mut self.current {
            current.close();
        }
        if let Some((former, _)) = &mut self.former {
            former.close();
        }
        // Sealed bytes are of a key that must not be used any more.
        for sealed in self.sealed.drain(..) {
            self.counters.dropped_commands += sealed.queued.map_or(0, |queued| queued.payloads.len() as u64);
        }
        for pending in self.pending.drain(..) {
            self.counters.dropped_commands += pending.payloads();
        }
        self.queue.clear(&mut self.counters);
        self.held.clear();
        self.wanted.clear();
        self.ask_epoch = None;
        self.lacked = None;
    }

    /// Returns true if there is a valid key.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.keys.is_some())
    }

    /// Returns true if others seem to have a newer epoch: datagrams of one that is not known come, and none
    /// of this member's opens. Nothing shows that they are members': what follows from it must not cost more
    /// than a question.
    #[must_use]
    pub fn lacks_epoch(&self, now: Duration) -> bool {
        let lacked = self.lacked.filter(|at| now.saturating_sub(*at) < LACKING_FOR);
        lacked.is_some_and(|at| self.opened < at && now.saturating_sub(self.opened) >= NOTHING_OPENS)
    }

    fn is_open_at(&self, now: Duration) -> bool {
        self.is_open() && now < self.expires
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event<S>> {
        self.events.pop_front()
    }

    /// Answers an [`Event::SignerAnnounced`]: the drone with this key may sign datagrams from this slot.
    pub fn allow_signer(&mut self, now: Duration, slot: Slot, handle: &Handle) {
        let epochs = [self.current.as_mut(), self.former.as_mut().map(|(former, _)| former)];
        for epoch in epochs.into_iter().flatten() {
            let signer = epoch.senders.get_mut(slot).and_then(|sender| sender.signer.as_mut());
            if let Some(signer) = signer.filter(|signer| signer.handle == *handle) {
                // By the key, not the slot: the holder of the slot may have changed since the question.
                signer.standing = SignerPermission::Allowed;
            }
        }
        self.retry_held(now);
    }

    /// The drone with this key may sign datagrams no longer, or may not: it is revoked, for instance.
    pub fn forbid_signer(&mut self, handle: &Handle) {
        let epochs = [self.current.as_mut(), self.former.as_mut().map(|(former, _)| former)];
        for epoch in epochs.into_iter().flatten() {
            let signers = epoch.senders.iter_mut().filter_map(|sender| sender.signer.as_mut());
            for signer in signers.filter(|signer| signer.handle == *handle) {
                signer.standing = SignerPermission::Forbidden;
            }
        }
    }

    /// The drones that signed that they send from these slots, allowed or not: to be looked at again when there
    /// is a newer revocation list.
    pub fn signers(&self) -> impl Iterator<Item = (Slot, &DronePublicKey<S>)> {
        let senders = self.current.iter().flat_map(|current| current.senders.iter());
        senders.filter_map(|(slot, sender)| Some((slot, &sender.signer.as_ref()?.drone)))
    }

    /// Says which drone has this slot, as far as that is known from the roster or a signed table: nobody
    /// else's signed announcement is accepted for it. It holds until it is said otherwise.
    pub fn assign_slot(&mut self, slot: Slot, name: Option<Name>) {
        if let (Some(current), Some(name)) = (&mut self.current, &name) {
            current.senders.assign(slot, name);
        }
        match name {
            Some(name) => self.assigned.insert(slot, name),
            None => self.assigned.remove(&slot),
        };
    }

    /// Time of the next [`handle_timeout`](Self::handle_timeout), or of the next datagram that may leave.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        if !self.is_open() {
            return self.former.as_ref().map(|(_, until)| *until);
        }
        let leaves = self.next_departure().map(|at| at.max(self.shaper.ready(&self.config)));
        [
            Some(self.expires),
            self.former.as_ref().map(|(_, until)| *until),
            self.held.deadline(),
            self.queue.deadline(&self.config),
            self.pending.iter().map(|pending| pending.until).min(),
            self.current.as_ref().and_then(|current| current.own.manifest),
            self.ask_epoch,
            // §20.9: nothing leaves before the carrier's bit rate allows it.
            leaves,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Duration) {
        // §20.2: an expired key seals and opens nothing.
        if self.is_open() && now >= self.expires {
            self.close();
        }
        // §20.8: the former key is erased when its overlap is over.
        self.former.take_if(|(_, until)| *until <= now);
        self.counters.unknown += self.held.expire(now);
        self.queue.expire(&self.config, &mut self.counters, now);
        self.sent.retain(|sent| sent.at.saturating_add(self.config.hold_for) > now);
        self.expire_signatures(now);
        self.note_waits(now);
        if self.ask_epoch.is_some_and(|at| at <= now) {
            self.ask_epoch = None;
            self.strange = (now, 0);
            self.next_epoch_question = now.saturating_add(self.epoch_pause);
            // §20.8: whoever makes this member ask in vain makes it ask ever more seldom.
            self.epoch_pause = (self.epoch_pause * 2).min(LONGEST_PAUSE);
            self.events.push_back(Event::EpochWanted);
        }
        if self.is_open() {
            self.request_signatures(now);
        }
    }

    /// Counts of datagrams and payloads by outcome since the start.
    #[must_use]
    pub const fn counters(&self) -> &DatagramCounters {
        &self.counters
    }

    /// The senders known in this epoch; of those not received from yet, where the epoch before knew them.
    pub fn senders(&self) -> impl Iterator<Item = SenderStatus> {
        let senders = self.current.iter().flat_map(|current| current.senders.iter());
        senders.map(|(slot, sender)| SenderStatus {
            slot,
            name: sender.name().cloned(),
            heard: sender.heard,
            received: sender.received,
        })
    }
}

/// §20.2: 8 random bytes for each start: a start whose number was rolled back is another.
fn fresh_start(slot: Slot, boot_no: u32, rng: &mut dyn CryptoRngCore) -> Start {
    let mut salt = [0; SALT_LEN];
    rng.fill_bytes(&mut salt);
    Start { slot, boot_no, salt }
}
