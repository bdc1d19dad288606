//! Delivery for schemes that have none: fragments, reports of what is missing, retransmissions.
//!
//! A parcel becomes fragments, each of which fits one frame of the radio. The last fragment of a round asks for
//! reports; each receiver answers at a random time within a window, so that thousands of reports do not come at once.
//! Parcels that any receiver misses go out again, until all have everything or the rounds are used up.
//! Parcels go out one after the other; of those for one receiver each, a few at a time.
//!
//! ```text
//! fragment  1 ‖ audience u8 ‖ number u16 ‖ index u16 ‖ count u16 ‖ window u16 in 10 ms, 0 but in the last of a round ‖ bytes
//! report    2 ‖ number u16 ‖ (first u16 ‖ length u16) for each gap; none: complete
//! ```
//!
//! Nothing here is authenticated: what a scheme's messages need, the scheme gives them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use quiver_machine::{Destination, Peer};
use rand_core::CryptoRngCore;

use crate::contract::{CONTROLLER, MemberId, Pace, member_of, peer_of};

/// Bytes of a fragment ahead of its part of the parcel.
pub const FRAGMENT_HEADER: usize = 10;
const REPORT_HEADER: usize = 3;
const GAP: usize = 4;
const FRAGMENT: u8 = 1;
const REPORT: u8 = 2;
/// Rounds after which a parcel is given up.
const MAX_ROUNDS: u32 = 40;
/// Parcels for one receiver each that are under way at a time.
const MAX_UNICASTS: usize = 4;
/// Parcels that a receiver puts together at a time, and numbers of complete ones that it remembers.
const MAX_ASSEMBLIES: usize = 8;
const MAX_COMPLETE: usize = 1024;
/// Time added to every deadline, for machines that compute.
const SLACK: Duration = Duration::from_millis(100);

/// Receivers for which a fragment is meant, apart from its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReceiverFilter {
    /// Members that hold a key.
    WithKey = 0,
    /// Members that hold none.
    WithoutKey = 1,
    /// All.
    Everybody = 2,
}

impl ReceiverFilter {
    const fn takes(code: u8, has_key: bool) -> bool {
        match code {
            0 => has_key,
            1 => !has_key,
            _ => true,
        }
    }
}

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingFrame {
    /// Receiver of the parcel, or all.
    pub to: Destination,
    /// Bytes of the parcel.
    pub bytes: Vec<u8>,
}

struct Queued {
    to: Option<MemberId>,
    filter: ReceiverFilter,
    expected: BTreeSet<MemberId>,
    bytes: Vec<u8>,
}

struct Active {
    number: u16,
    parcel: Queued,
    missing: BTreeSet<u16>,
    rounds: u32,
    deadline: Duration,
}

/// Sending side, at the controller.
pub struct DeliverySender {
    pace: Pace,
    queue: VecDeque<Queued>,
    active: Vec<Active>,
    next: u16,
    given_up: usize,
}

impl DeliverySender {
    /// A sender with nothing to send.
    #[must_use]
    pub const fn new(pace: Pace) -> Self {
        Self { pace, queue: VecDeque::new(), active: Vec::new(), next: 0, given_up: 0 }
    }

    /// Bytes of a parcel in each fragment.
    fn piece(&self) -> usize {
        self.pace.capacity.saturating_sub(FRAGMENT_HEADER).max(1)
    }

    /// Queues a parcel for one member, or for all `expected` ones in one broadcast.
    ///
    /// # Errors
    /// A sentence, if the parcel needs more than 65,535 fragments.
    pub fn push(
        &mut self,
        to: Option<MemberId>,
        filter: ReceiverFilter,
        expected: BTreeSet<MemberId>,
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        if bytes.len().div_ceil(self.piece()) > usize::from(u16::MAX) {
            return Err(format!("a parcel of {} bytes needs more than 65535 fragments", bytes.len()));
        }
        if !expected.is_empty() {
            self.queue.push_back(Queued { to, filter, expected, bytes });
        }
        Ok(())
    }

    /// Expects no reports of these members any more: they are removed.
    pub fn forget(&mut self, members: &[MemberId]) {
        for parcel in self.queue.iter_mut().chain(self.active.iter_mut().map(|active| &mut active.parcel)) {
            parcel.expected.retain(|member| !members.contains(member));
        }
        self.queue.retain(|parcel| !parcel.expected.is_empty());
        self.active.retain(|active| !active.parcel.expected.is_empty());
    }

    /// Number of parcels that were given up because somebody never reported them complete.
    #[must_use]
    pub const fn given_up(&self) -> usize {
        self.given_up
    }

    /// Takes a report.
    pub fn receive(&mut self, from: Peer, bytes: &[u8]) {
        let (Some(member), Some((&REPORT, rest))) = (member_of(from), bytes.split_first()) else { return };
        let Some((number, gaps)) = rest.split_first_chunk::<2>() else { return };
        let number = u16::from_be_bytes(*number);
        let piece = self.piece();
        let Some(active) = self.active.iter_mut().find(|active| active.number == number) else { return };
        if gaps.is_empty() {
            active.parcel.expected.remove(&member);
            return;
        }
        let count = fragments(active.parcel.bytes.len(), piece);
        for gap in gaps.as_chunks::<GAP>().0 {
            let [a, b, c, d] = *gap;
            let (first, length) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let end = first.saturating_add(length).min(count);
            active.missing.extend(first..end);
        }
    }

    /// Starts what can start, and begins the rounds that are due.
    pub fn poll(&mut self, now: Duration, out: &mut Vec<OutgoingFrame>) {
        self.active.retain(|active| !active.parcel.expected.is_empty());
        let mut rest = Vec::new();
        for mut active in std::mem::take(&mut self.active) {
            if active.deadline > now {
                rest.push(active);
            } else if active.rounds >= MAX_ROUNDS {
                self.given_up += 1;
            } else {
                self.send_round(now, &mut active, out);
                rest.push(active);
            }
        }
        self.active = rest;
        while self.may_start() {
            let Some(parcel) = self.queue.pop_front() else { return };
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            let missing = (0..fragments(parcel.bytes.len(), self.piece())).collect();
            let mut active = Active { number, parcel, missing, rounds: 0, deadline: now };
            self.send_round(now, &mut active, out);
            self.active.push(active);
        }
    }

    fn may_start(&self) -> bool {
        let unicast = self.queue.front().is_some_and(|parcel| parcel.to.is_some());
        self.active.is_empty()
            || unicast
                && self.active.len() < MAX_UNICASTS
                && self.active.iter().all(|active| active.parcel.to.is_some())
    }

    fn send_round(&self, now: Duration, active: &mut Active, out: &mut Vec<OutgoingFrame>) {
        let piece = self.piece();
        let count = fragments(active.parcel.bytes.len(), piece);
        let last = count - 1;
        let mut indices = std::mem::take(&mut active.missing);
        indices.remove(&last);
        let reporters = u32::try_from(active.parcel.expected.len()).unwrap_or(u32::MAX);
        // Twice the time that the reports take if they do not meet.
        let window =
            if active.parcel.to.is_some() { self.pace.frame } else { self.pace.frame * 2 * reporters };
        let ticks = u16::try_from(window.as_millis().div_ceil(10)).unwrap_or(u16::MAX).max(1);
        let to = active.parcel.to.map_or(Destination::Group, |member| Destination::Peer(peer_of(member)));
        let sent = u32::try_from(indices.len()).unwrap_or(u32::MAX).saturating_add(1);
        for index in indices.into_iter().chain([last]) {
            let mut bytes = vec![FRAGMENT, active.parcel.filter as u8];
            bytes.extend(active.number.to_be_bytes());
            bytes.extend(index.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            let asks = if index == last { ticks } else { 0 };
            bytes.extend(asks.to_be_bytes());
            let start = usize::from(index) * piece;
            let end = (start + piece).min(active.parcel.bytes.len());
            bytes.extend(active.parcel.bytes.get(start..end).unwrap_or_default());
            out.push(OutgoingFrame { to, bytes });
        }
        // Others may hold the channel, the longer the more often nothing was heard.
        let patience = self.pace.frame * 4 * (1 << active.rounds.min(6));
        let window = Duration::from_millis(u64::from(ticks) * 10);
        active.rounds += 1;
        active.deadline = now + self.pace.controller_frame * sent + window + patience + SLACK;
    }

    /// Time of the next round.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.active.iter().map(|active| active.deadline).min()
    }
}

/// Number of fragments; at least one.
fn fragments(len: usize, piece: usize) -> u16 {
    u16::try_from(len.div_ceil(piece)).unwrap_or(u16::MAX).max(1)
}

struct ParcelAssembly {
    has: Vec<bool>,
    held: usize,
    pieces: BTreeMap<u16, Vec<u8>>,
}

/// A parcel that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    /// Number of the parcel, the same at all receivers.
    pub number: u16,
    /// Bytes of the parcel; those of its first fragment at a receiver that keeps no more.
    pub bytes: Vec<u8>,
}

/// Receiving side, at a member.
pub struct DeliveryReceiver {
    capacity: usize,
    keeps_bytes: bool,
    assemblies: BTreeMap<u16, ParcelAssembly>,
    complete: VecDeque<u16>,
    /// Reports that are due: when, of which parcel.
    reports: Vec<(Duration, u16)>,
}

impl DeliveryReceiver {
    /// A receiver that keeps the bytes of its parcels, or their first fragments and which it has.
    #[must_use]
    pub const fn new(pace: Pace, keeps_bytes: bool) -> Self {
        let capacity = pace.capacity;
        Self {
            capacity,
            keeps_bytes,
            assemblies: BTreeMap::new(),
            complete: VecDeque::new(),
            reports: Vec::new(),
        }
    }

    /// Takes a fragment. Gives the parcel that it completes.
    pub fn receive(
        &mut self,
        now: Duration,
        bytes: &[u8],
        has_key: bool,
        rng: &mut dyn CryptoRngCore,
    ) -> Option<Complete> {
        let (header, piece) = bytes.split_first_chunk::<FRAGMENT_HEADER>()?;
        let [FRAGMENT, filter, a, b, c, d, e, f, g, h] = *header else { return None };
        let (number, index) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (count, ticks) = (u16::from_be_bytes([e, f]), u16::from_be_bytes([g, h]));
        let known = self.complete.contains(&number);
        // A member that has begun a parcel, or has it, goes on reporting it although it holds a key by now.
        if !known && !self.assemblies.contains_key(&number) && !ReceiverFilter::takes(filter, has_key) {
            return None;
        }
        if ticks > 0 && !self.reports.iter().any(|(_, of)| *of == number) {
            let within = Duration::from_millis(u64::from(ticks) * 10).as_nanos();
            let part = (within * u128::from(rng.next_u32())) >> 32;
            let wait = Duration::from_nanos(u64::try_from(part).unwrap_or(u64::MAX));
            self.reports.push((now + wait, number));
        }
        if known || index >= count {
            return None;
        }
        if self.assemblies.len() >= MAX_ASSEMBLIES && !self.assemblies.contains_key(&number) {
            self.assemblies.pop_first();
        }
        let assembly = self.assemblies.entry(number).or_insert_with(|| ParcelAssembly {
            has: vec![false; usize::from(count)],
            held: 0,
            pieces: BTreeMap::new(),
        });
        let has = assembly.has.get_mut(usize::from(index))?;
        if !std::mem::replace(has, true) {
            assembly.held += 1;
            // The first tells which parcel it is.
            if self.keeps_bytes || index == 0 {
                assembly.pieces.insert(index, piece.to_vec());
            }
        }
        if assembly.held < assembly.has.len() {
            return None;
        }
        let assembly = self.assemblies.remove(&number)?;
        if self.complete.len() >= MAX_COMPLETE {
            self.complete.pop_front();
        }
        self.complete.push_back(number);
        Some(Complete { number, bytes: assembly.pieces.into_values().flatten().collect() })
    }

    /// Sends the reports that are due.
    pub fn poll(&mut self, now: Duration, out: &mut Vec<OutgoingFrame>) {
        let due: Vec<u16> =
            self.reports.extract_if(.., |(at, _)| *at <= now).map(|(_, number)| number).collect();
        for number in due {
            let mut bytes = vec![REPORT];
            bytes.extend(number.to_be_bytes());
            if let Some(assembly) = self.assemblies.get(&number) {
                let most = self.capacity.saturating_sub(REPORT_HEADER) / GAP;
                for (first, length) in gaps(&assembly.has).into_iter().take(most.max(1)) {
                    bytes.extend(first.to_be_bytes());
                    bytes.extend(length.to_be_bytes());
                }
            }
            out.push(OutgoingFrame { to: Destination::Peer(CONTROLLER), bytes });
        }
    }

    /// Time of the next report.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.reports.iter().map(|(at, _)| *at).min()
    }
}

/// Runs of fragments that are missing: first, and how many.
fn gaps(has: &[bool]) -> Vec<(u16, u16)> {
    let mut gaps: Vec<(u16, u16)> = Vec::new();
    for (index, _) in has.iter().enumerate().filter(|(_, has)| !**has) {
        let Ok(index) = u16::try_from(index) else { break };
        match gaps.last_mut() {
            Some((first, length)) if *first + *length == index => *length += 1,
            _ => gaps.push((index, 1)),
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    use super::*;

    const PACE: Pace =
        Pace { capacity: 30, frame: Duration::from_millis(5), controller_frame: Duration::from_millis(5) };

    /// Runs one parcel to so many receivers over links that lose a share of all frames. Gives what each has.
    fn run(members: u32, len: usize, loss: u32, unicast: bool) -> (Vec<Option<Vec<u8>>>, Vec<u8>, usize) {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(members) + len as u64);
        let mut bytes = vec![0; len];
        rng.fill_bytes(&mut bytes);
        let (mut sender, mut frames) = (DeliverySender::new(PACE), 0);
        if unicast {
            for member in 0..members {
                sender.push(Some(member), ReceiverFilter::Everybody, [member].into(), bytes.clone()).unwrap();
            }
        } else {
            sender.push(None, ReceiverFilter::WithoutKey, (0..members).collect(), bytes.clone()).unwrap();
        }
        let mut receivers: Vec<DeliveryReceiver> =
            (0..members).map(|_| DeliveryReceiver::new(PACE, true)).collect();
        let mut have: Vec<Option<Vec<u8>>> = vec![None; members as usize];
        let mut now = Duration::ZERO;
        loop {
            let mut out = Vec::new();
            sender.poll(now, &mut out);
            frames += out.len();
            for frame in out {
                assert!(frame.bytes.len() <= PACE.capacity);
                for (member, receiver) in receivers.iter_mut().enumerate() {
                    let to_it = frame.to == Destination::Group
                        || frame.to == Destination::Peer(peer_of(member as u32));
                    if to_it && rng.next_u32() % 100 >= loss {
                        let has_key = have[member].is_some();
                        if let Some(complete) = receiver.receive(now, &frame.bytes, has_key, &mut rng) {
                            assert!(have[member].replace(complete.bytes).is_none(), "delivered twice");
                        }
                    }
                }
            }
            let deadlines = receivers.iter().filter_map(DeliveryReceiver::deadline).chain(sender.deadline());
            let Some(next) = deadlines.min() else { break };
            now = next;
            for (member, receiver) in receivers.iter_mut().enumerate() {
                let mut out = Vec::new();
                receiver.poll(now, &mut out);
                for frame in out {
                    assert!(frame.bytes.len() <= PACE.capacity);
                    if rng.next_u32() % 100 >= loss {
                        sender.receive(peer_of(member as u32), &frame.bytes);
                    }
                }
            }
        }
        assert_eq!(sender.given_up(), 0);
        (have, bytes, frames)
    }

    #[test]
    fn every_receiver_gets_the_parcel_once_whatever_is_lost() {
        for (members, len, loss) in [(1, 0, 0), (1, 19, 30), (20, 20, 10), (20, 2_000, 0), (50, 1_001, 30)] {
            for unicast in [false, true] {
                let (have, bytes, _) = run(members, len, loss, unicast);
                assert!(
                    have.iter().all(|one| one.as_ref() == Some(&bytes)),
                    "{members} {len} {loss} {unicast}"
                );
            }
        }
    }

    #[test]
    fn without_loss_every_fragment_goes_out_once() {
        assert_eq!(run(20, 2_000, 0, false).2, 100);
        assert_eq!(run(20, 20, 0, true).2, 20);
    }

    #[test]
    fn nobody_is_waited_for_who_is_removed_and_not_for_ever() {
        let mut sender = DeliverySender::new(PACE);
        sender.push(None, ReceiverFilter::Everybody, [1, 2].into(), vec![1]).unwrap();
        let mut out = Vec::new();
        sender.poll(Duration::ZERO, &mut out);
        sender.forget(&[1, 2]);
        assert_eq!(sender.deadline(), None);
        sender.push(None, ReceiverFilter::Everybody, [3].into(), vec![1]).unwrap();
        sender.poll(Duration::ZERO, &mut out);
        while let Some(deadline) = sender.deadline() {
            sender.poll(deadline, &mut out);
        }
        assert_eq!((sender.given_up(), out.len()), (1, 1 + MAX_ROUNDS as usize));
    }

    #[test]
    fn strange_bytes_do_nothing() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut receiver = DeliveryReceiver::new(PACE, true);
        let mut sender = DeliverySender::new(PACE);
        sender.push(None, ReceiverFilter::Everybody, [0].into(), vec![0; 100]).unwrap();
        sender.poll(Duration::ZERO, &mut Vec::new());
        for length in 0..40 {
            for kind in 0..4 {
                let mut bytes = vec![0xFF; length];
                bytes.iter_mut().take(1).for_each(|byte| *byte = kind);
                assert_eq!(receiver.receive(Duration::ZERO, &bytes, false, &mut rng), None);
                sender.receive(peer_of(0), &bytes);
                sender.receive(CONTROLLER, &bytes);
            }
        }
        assert!(receiver.assemblies.is_empty());
        assert!(sender.push(None, ReceiverFilter::Everybody, [0].into(), vec![0; 2_000_000]).is_err());
    }
}
