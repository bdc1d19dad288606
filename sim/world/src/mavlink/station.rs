//! A member's datagrams, its stream of frames, and, once it is captured, what the adversary does with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_ainq::{Epoch, EpochKeys, Slot, Suite};
use quiver_crypto::Digest;
use quiver_datagram::{Datagrams, Event, Payload, Priority};
use quiver_mavlink::{Frame, FrameBatch, MAX_FRAME_LEN, priority};
use quiver_testbed::NEVER;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::MavlinkReport;
use super::stream::Stream;

/// Datagrams of others that the adversary remembers.
const HEARD: usize = 256;
/// Datagrams that the adversary has ready to send.
const HOSTILE: usize = 4;

/// The reasons, among what datagrams count, for which one is not taken.
const REFUSALS: [&str; 13] = [
    "malformed",
    "closed",
    "own",
    "wrong_slot",
    "old_epoch",
    "replayed",
    "repeated",
    "old_start",
    "forged",
    "bad_signature",
    "unknown",
    "overflowed",
    "too_many_senders",
];

/// Bytes for the radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutgoingDatagram {
    /// A datagram with payloads.
    Payloads(Vec<u8>, Vec<Vec<u8>>),
    /// An announcement, or a manifest.
    Announcement(Vec<u8>),
    /// A datagram of somebody else, as it was or altered.
    Hostile(Vec<u8>),
}

/// Time at which a payload arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalPeriod {
    /// The time before anything of its sender was opened.
    SenderUnknown,
    /// The few seconds after a removal.
    AfterRemoval,
    /// Any other time.
    Usual,
}

/// Outcome of a frame that the stream offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Taken,
    NoKey,
}

/// A station.
pub(crate) struct Station<S: Suite> {
    datagrams: Datagrams<S>,
    stream: Stream,
    /// Payloads that wait to be sealed, the oldest first, as the datagrams' own queue has them.
    waiting: VecDeque<Vec<u8>>,
    /// Payloads dropped from it so far.
    dropped: u64,
    /// Frames among them that were dropped because there was no key any more.
    closed: u64,
    /// The epoch that it seals under.
    pub(crate) sealing: Option<(Epoch, Slot)>,
    digest: Option<Digest>,
    /// Time from which its radio can take another datagram.
    pub(crate) free: Duration,
    /// Time of the next planned wake-up in nanoseconds.
    pub(crate) wake: u64,
    /// True if the adversary has it.
    pub(crate) captured: bool,
    heard: VecDeque<Vec<u8>>,
    hostile: VecDeque<Vec<u8>>,
    /// Numbers of the datagrams that arrived, and payloads that arrived and were not opened yet.
    pub(super) seen: BTreeSet<u64>,
    pub(super) unopened: BTreeMap<Vec<u8>, ArrivalPeriod>,
}

impl<S: Suite> Station<S> {
    pub(super) fn new(datagrams: Datagrams<S>, stream: Stream) -> Self {
        Self {
            datagrams,
            stream,
            waiting: VecDeque::new(),
            dropped: 0,
            closed: 0,
            sealing: None,
            digest: None,
            free: Duration::ZERO,
            wake: NEVER,
            captured: false,
            heard: VecDeque::new(),
            hostile: VecDeque::new(),
            seen: BTreeSet::new(),
            unopened: BTreeMap::new(),
        }
    }

    /// The number of the stream's next frame.
    pub(super) fn frame_number(&self) -> u32 {
        self.stream.number()
    }

    /// Follows the member's machine: its epoch, or none. The adversary keeps the last one there was.
    pub(super) fn follow(
        &mut self,
        now: Duration,
        keys: Option<EpochKeys<S>>,
        keep_former: bool,
        rng: &mut ChaCha8Rng,
    ) {
        match keys {
            Some(mut keys) => {
                let is_next = self.digest != Some(keys.digest);
                if keep_former && is_next {
                    keys.continues = self.digest;
                }
                self.digest = Some(keys.digest);
                self.sealing = Some((keys.epoch, keys.slot));
                self.datagrams.set_epoch(now, keys, rng);
            }
            None if self.captured => {}
            None => {
                self.datagrams.close();
                self.closed += self.dropped() - self.dropped;
                self.sealing = None;
            }
        }
        self.note_dropped();
    }

    /// Forgets everything that it received.
    pub(super) fn forget(&mut self, datagrams: Datagrams<S>) {
        self.datagrams = datagrams;
        (self.dropped, self.digest) = (0, None);
        self.waiting.clear();
    }

    /// Offers the frame that is due, and does what else is. Gives what became of the frame, if one was.
    pub(super) fn serve(&mut self, now: Duration, rng: &mut ChaCha8Rng) -> Option<Offered> {
        if self.datagrams.timeout().is_some_and(|at| at <= now) {
            self.datagrams.handle_timeout(now);
            self.note_dropped();
        }
        let frame = self.stream.due(now)?;
        if self.captured {
            self.prepare_attack(rng);
        }
        Some(self.offer(now, &frame))
    }

    fn offer(&mut self, now: Duration, frame: &[u8]) -> Offered {
        let mut batch = FrameBatch::new();
        let Ok(frame) = Frame::parse(frame) else { return Offered::NoKey };
        batch.push(frame, MAX_FRAME_LEN);
        let bytes = batch.take();
        let priority = match priority(frame) {
            quiver_mavlink::Priority::Telemetry => Priority::Telemetry,
            quiver_mavlink::Priority::Command => Priority::Command,
        };
        let payload = Payload { bytes: bytes.clone(), priority, sign: false };
        if self.datagrams.send(now, payload).is_err() {
            return Offered::NoKey;
        }
        self.note_dropped();
        self.waiting.push_back(bytes);
        Offered::Taken
    }

    /// A datagram that was received before, as it was or with a bit flipped.
    fn prepare_attack(&mut self, rng: &mut ChaCha8Rng) {
        if self.heard.is_empty() || self.hostile.len() >= HOSTILE {
            return;
        }
        let Some(mut bytes) = self.heard.get(rng.gen_range(0..self.heard.len())).cloned() else { return };
        let (alter, place, bit) =
            (rng.gen_bool(0.5), rng.gen_range(0..bytes.len().max(1)), rng.gen_range(0..8));
        if let Some(byte) = bytes.get_mut(place).filter(|_| alter) {
            *byte ^= 1 << bit;
        }
        self.hostile.push_back(bytes);
    }

    /// The next datagram for the radio, if it can take one.
    pub(super) fn poll(&mut self, now: Duration) -> Option<OutgoingDatagram> {
        if self.free > now {
            return None;
        }
        if let Some(bytes) = self.hostile.pop_front() {
            return Some(OutgoingDatagram::Hostile(bytes));
        }
        let before = self.datagrams.counters().sent_payloads;
        let datagram = self.datagrams.poll_datagram(now);
        self.note_dropped();
        let bytes = datagram?;
        let sealed = usize::try_from(self.datagrams.counters().sent_payloads - before).unwrap_or(usize::MAX);
        if sealed == 0 {
            return Some(OutgoingDatagram::Announcement(bytes));
        }
        let payloads = self.waiting.drain(..sealed.min(self.waiting.len())).collect();
        Some(OutgoingDatagram::Payloads(bytes, payloads))
    }

    /// §20.9: the oldest telemetry is dropped first.
    fn note_dropped(&mut self) {
        let dropped = self.dropped();
        let fresh = usize::try_from(dropped - self.dropped).unwrap_or(usize::MAX);
        self.waiting.drain(..fresh.min(self.waiting.len()));
        self.dropped = dropped;
    }

    /// Payloads dropped before they left.
    fn dropped(&self) -> u64 {
        let counters = self.datagrams.counters();
        counters.dropped_telemetry + counters.dropped_commands
    }

    /// Takes what the radio received.
    pub(super) fn receive(&mut self, now: Duration, bytes: &[u8]) {
        if self.captured {
            if self.heard.len() >= HEARD {
                self.heard.pop_front();
            }
            self.heard.push_back(bytes.to_vec());
        }
        self.datagrams.handle_datagram(now, bytes);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event<S>> {
        self.datagrams.poll_event()
    }

    pub(crate) fn datagrams(&mut self) -> &mut Datagrams<S> {
        &mut self.datagrams
    }

    /// Adds what the station counted itself.
    pub(super) fn book(&self, report: &mut MavlinkReport) {
        report.shaped += self.dropped() - self.closed;
        report.without_key += self.closed;
        for arrival in self.unopened.values() {
            *match arrival {
                ArrivalPeriod::SenderUnknown => &mut report.unopened_at_first,
                ArrivalPeriod::AfterRemoval => &mut report.unopened_at_removal,
                ArrivalPeriod::Usual => &mut report.unopened,
            } += 1;
        }
        // A datagram that the adversary cannot open is no refusal.
        if !self.captured {
            let counters = self.datagrams.counters().iter();
            for (reason, count) in counters.filter(|(reason, count)| REFUSALS.contains(reason) && *count > 0)
            {
                *report.refused.entry(reason).or_default() += count;
            }
        }
    }

    /// Time at which it next has to be served.
    pub(super) fn deadline(&self, now: Duration) -> Duration {
        let waits = |at: Duration| at.max(self.free);
        let hostile = (!self.hostile.is_empty()).then_some(now);
        let datagrams = [self.datagrams.timeout(), hostile].into_iter().flatten().min().map(waits);
        datagrams.map_or(self.stream.next, |at| at.min(self.stream.next))
    }
}
