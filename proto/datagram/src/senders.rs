//! The senders of an epoch as a receiver knows them: keys, replay windows, signers; bounded. §20.4, §20.7.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::{REMEMBERED_PER_SENDER, SALT_LEN, Start, TrafficKey, Window};
use quiver_ainq::{DronePublicKey, Handle, Name, Slot, Suite};
use quiver_crypto::Secret;

use crate::body::{Hash, Manifest};
use crate::header::Hint;

/// Distance of numbers of which the low bits tell half as many again.
const FAR_BEHIND: u32 = 1 << 13;

/// Number of epochs before this one of which the last numbers stay known.
const PAST: usize = 3;

/// Numbers of datagrams of one kind that came from a sender.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    window: Window,
    /// Number that is expected next.
    expected: u32,
    /// Time of the first datagram that did not open since one did.
    failing: Option<Duration>,
}

impl Numbers {
    fn from(floor: u32) -> Self {
        Self { window: Window::from(floor.into()), expected: floor, failing: None }
    }

    /// The number closest to the one expected that has these low bits (as RFC 9147, 4.2.2).
    pub(crate) fn reconstruct(&self, low: u16) -> u32 {
        reconstruct(self.expected, low)
    }

    pub(crate) fn accepts(&self, counter: u32) -> bool {
        // The last number is never sent: it says of a sender that is forgotten that nothing follows.
        counter < u32::MAX && self.window.accepts(counter.into())
    }

    pub(crate) fn mark(&mut self, counter: u32) {
        self.window.mark(counter.into());
        // A late datagram must not move the search back.
        self.expected = self.expected.max(counter.saturating_add(1));
        self.failing = None;
    }

    /// A datagram in the sender's name did not open. Returns whether none has for so long.
    pub(crate) fn note_failure(&mut self, now: Duration, patience: Duration) -> bool {
        let since = *self.failing.get_or_insert(now);
        let late = now.saturating_sub(since) > patience;
        // Begun anew, so that the sender is asked once in each such time.
        self.failing.take_if(|_| late);
        late
    }

    /// Marks a number; whether it is new.
    pub(crate) fn take(&mut self, counter: u32) -> bool {
        let new = self.accepts(counter);
        if new {
            self.mark(counter);
        }
        new
    }

    /// The sender itself says where it is.
    fn expect(&mut self, next: u32) {
        self.expected = next;
    }

    /// The sender signed that it is there, or further.
    pub(crate) fn expect_from(&mut self, next: u32) {
        self.expected = self.expected.max(next);
    }

    /// Returns true if a number that the sender signed is so far ahead that its low bits may soon mean
    /// another.
    pub(crate) fn is_far_behind(&self, next: u32) -> bool {
        next.saturating_sub(self.expected) >= FAR_BEHIND
    }

    fn next(&self) -> u32 {
        u32::try_from(self.window.next()).unwrap_or(u32::MAX)
    }

    fn last(&self) -> LastNumbers {
        let next = self.next();
        let seen = |back: u32| next.checked_sub(back + 1).is_none_or(|counter| !self.accepts(counter));
        LastNumbers { next, seen: (0..64).filter(|back| seen(*back)).fold(0, |bits, back| bits | 1 << back) }
    }
}

/// The last 64 numbers of an epoch that is over.
#[derive(Clone, Copy, Debug)]
struct LastNumbers {
    next: u32,
    /// The number n below `next` is at bit n.
    seen: u64,
}

impl LastNumbers {
    /// Marks a number; whether it is new. Numbers too old to tell are not.
    fn take(&mut self, counter: u32) -> bool {
        if let Some(ahead) = counter.checked_sub(self.next) {
            // By one more, so that bit 0 is this number's.
            self.seen = self.seen.checked_shl(ahead.saturating_add(1)).unwrap_or_default() | 1;
            self.next = counter.saturating_add(1);
            return true;
        }
        let bit = 1_u64.checked_shl(self.next - counter - 1).unwrap_or_default();
        let new = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

/// Numbers that came from a sender in an epoch that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PastSender {
    hint: Hint,
    unsigned: LastNumbers,
    signed: LastNumbers,
}

/// The number closest to `expected` with these low bits.
pub(crate) fn reconstruct(expected: u32, low: u16) -> u32 {
    let distance = low.wrapping_sub(expected as u16);
    let ahead = expected.wrapping_add(distance.into());
    // More than half of 2^16 ahead is rather behind.
    if distance > 1 << 15 || ahead < expected { ahead.checked_sub(1 << 16).unwrap_or(ahead) } else { ahead }
}

/// Decision on whether a drone may sign what comes from its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignerPermission {
    /// The application has not said yet.
    Asked,
    Allowed,
    Forbidden,
}

/// Signer of an announcement.
#[derive(Clone, Debug)]
pub(crate) struct AnnouncementSigner<S: Suite> {
    pub(crate) drone: DronePublicKey<S>,
    pub(crate) handle: Handle,
    pub(crate) standing: SignerPermission,
}

/// A sender in one epoch.
#[derive(Debug)]
pub(crate) struct DatagramSender<S: Suite> {
    pub(crate) start: Start,
    /// `None` once the epoch opens nothing any more.
    pub(crate) key: Option<Secret<16>>,
    /// True if anything under this epoch's key came from this start: else it is known from the epoch before
    /// and may be another by now.
    pub(crate) confirmed: bool,
    pub(crate) unsigned: Numbers,
    pub(crate) signed: Numbers,
    /// The number of the newest announcement.
    pub(crate) announced: Option<u32>,
    pub(crate) signer: Option<Box<AnnouncementSigner<S>>>,
    /// Time between its manifests, as it signed.
    pub(crate) manifests: Option<Duration>,
    /// Time of the first unsigned datagram that no manifest was about yet.
    pub(crate) unvouched: Option<Duration>,
    /// True if the application was told that manifests ended.
    pub(crate) reported: bool,
    /// Hashes of the unsigned datagrams that came since.
    pub(crate) hashes: VecDeque<(u32, Hash)>,
    /// Numbers that came from this start in the epochs before.
    past: [Option<PastSender>; PAST],
    /// True if more may have come under former keys than is known.
    past_lost: bool,
    pub(crate) heard: Option<Duration>,
    pub(crate) received: u64,
    /// Order of the last datagrams of all senders.
    recency: u64,
}

impl<S: Suite> DatagramSender<S> {
    pub(crate) fn new(start: Start, traffic: &TrafficKey) -> Self {
        Self {
            start,
            key: Some(traffic.datagram_key(&start)),
            confirmed: false,
            unsigned: Numbers::from(0),
            signed: Numbers::from(0),
            announced: None,
            signer: None,
            manifests: None,
            unvouched: None,
            reported: false,
            hashes: VecDeque::new(),
            past: [None; PAST],
            past_lost: false,
            heard: None,
            received: 0,
            recency: 0,
        }
    }

    pub(crate) fn numbers(&mut self, signed: bool) -> &mut Numbers {
        if signed { &mut self.signed } else { &mut self.unsigned }
    }

    /// The same start as it is expected in the next epoch.
    fn expected(&self, traffic: &TrafficKey, past: [Option<PastSender>; PAST]) -> Self {
        Self {
            signer: self.signer.clone(),
            manifests: self.manifests,
            past,
            past_lost: self.past_lost,
            recency: self.recency,
            // §20.8: nothing is confirmed under the new key before a datagram opens.
            ..Self::new(self.start, traffic)
        }
    }

    /// Numbers that stay known in the next epoch: of the epochs just over, and of those before them.
    fn past_of_next(&self, over: [Option<PastSender>; 2]) -> [Option<PastSender>; PAST] {
        let mut known: [Option<PastSender>; PAST] = [None; PAST];
        for past in over.into_iter().chain(self.past).flatten() {
            let twice = known.iter().flatten().any(|other| other.hint == past.hint);
            if let Some(place) = known.iter_mut().find(|place| place.is_none()).filter(|_| !twice) {
                *place = Some(past);
            }
        }
        known
    }

    /// Returns true if anything came, in this epoch or before, that its next start in the slot must not lose.
    fn has_past(&self) -> bool {
        self.confirmed || self.past_lost || self.past.iter().any(Option::is_some)
    }

    fn past(&self, hint: Hint) -> PastSender {
        PastSender { hint, unsigned: self.unsigned.last(), signed: self.signed.last() }
    }

    /// §20.8: marks a number of an epoch before; whether nothing came under it.
    pub(crate) fn take_past(&mut self, hint: Hint, signed: bool, counter: u32) -> bool {
        if !self.past.iter().flatten().any(|past| past.hint == hint) {
            // Rather lost than received twice.
            if self.past_lost {
                return false;
            }
            // Of an epoch that this receiver was not in, or in which it did not know the sender.
            let none = LastNumbers { next: 0, seen: 0 };
            let here = PastSender { hint, unsigned: none, signed: none };
            self.past = self.past_of_next([Some(here), None]);
        }
        let past = self.past.iter_mut().flatten().find(|past| past.hint == hint);
        past.is_some_and(|past| {
            let numbers = if signed { &mut past.signed } else { &mut past.unsigned };
            numbers.take(counter)
        })
    }

    /// A newer announcement of the same start.
    pub(crate) fn announce(&mut self, number: u32, next: u32) {
        self.confirmed = true;
        self.announced = self.announced.max(Some(number));
        self.unsigned.expect(next);
    }

    /// Remembers the hash of an unsigned datagram, of so many at most.
    pub(crate) fn remember(&mut self, counter: u32, hash: Hash, most: usize) {
        if most == 0 {
            return;
        }
        if self.hashes.len() >= most {
            // The oldest goes: the next manifest is most likely about the newest.
            self.hashes.pop_front();
        }
        self.hashes.push_back((counter, hash));
    }

    /// Returns true if a datagram came under a number that the sender sent another under.
    pub(crate) fn contradicts(&self, manifest: &Manifest) -> bool {
        self.hashes.iter().any(|(counter, hash)| manifest.hash(*counter).is_some_and(|sent| sent != hash))
    }

    /// Forgets the hashes that a manifest covers; the hashes after it are for the next one. If numbers are
    /// this far ahead of what the sender sent, it did not send them; then its numbers go on from where the
    /// manifest ends, or they would be refused.
    pub(crate) fn settle(&mut self, manifest: &Manifest, far: u32) -> bool {
        let end = manifest.end();
        (self.unvouched, self.reported) = (None, false);
        self.hashes.retain(|(counter, _)| *counter >= end);
        let ahead = self.unsigned.next() > end.saturating_add(far);
        if ahead {
            self.hashes.clear();
            self.unsigned = Numbers::from(end);
        }
        ahead
    }

    /// Returns true if datagrams come for longer than this without a manifest about them. True once.
    pub(crate) fn is_unvouched(&mut self, now: Duration, slack: Duration) -> bool {
        let Some(interval) = self.manifests.filter(|_| self.name().is_some() && !self.reported) else {
            return false;
        };
        let since = *self.unvouched.get_or_insert(now);
        // Two manifests may be lost.
        self.reported = now.saturating_sub(since) > interval * 3 + slack;
        self.reported
    }

    pub(crate) fn name(&self) -> Option<&Name> {
        let signer = self.signer.as_ref().filter(|signer| signer.standing == SignerPermission::Allowed)?;
        Some(&signer.drone.identity.name)
    }
}

/// Last numbers of a start of which something came: nothing below is received again.
#[derive(Clone, Copy, Debug)]
struct StartFloor {
    slot: Slot,
    /// Signer of the announcement: 0 if nobody signed it, else [the signer's number](signer_number).
    signer: u64,
    boot_no: u32,
    salt: [u8; SALT_LEN],
    unsigned: u32,
    signed: u32,
}

impl StartFloor {
    fn of<S: Suite>(sender: &DatagramSender<S>) -> Self {
        let Start { slot, boot_no, salt } = sender.start;
        let signer = sender.signer.as_ref().map_or(0, |signer| signer_number(&signer.handle));
        Self { slot, signer, boot_no, salt, unsigned: sender.unsigned.next(), signed: sender.signed.next() }
    }

    fn is_of(&self, start: &Start) -> bool {
        (self.boot_no, self.salt) == (start.boot_no, start.salt)
    }

    /// Returns true if a start is older, or the same with another salt.
    fn refuses(&self, start: &Start) -> bool {
        start.boot_no < self.boot_no || start.boot_no == self.boot_no && start.salt != self.salt
    }

    /// §20.7: A floor only rises: with the numbers of its start, or to a later one.
    fn raise(&mut self, to: &Self) {
        if (self.boot_no, self.salt) == (to.boot_no, to.salt) {
            self.unsigned = self.unsigned.max(to.unsigned);
            self.signed = self.signed.max(to.signed);
        } else if to.boot_no > self.boot_no {
            *self = *to;
        }
    }
}

/// The start of a signer's handle, and never 0.
fn signer_number(handle: &Handle) -> u64 {
    handle.as_bytes().first_chunk().map_or(1, |head| u64::from_be_bytes(*head).max(1))
}

/// The senders of an epoch.
#[derive(Debug)]
pub(crate) struct Senders<S: Suite> {
    limit: usize,
    clock: u64,
    /// Senders in boxes, because a map makes room for eleven at once.
    recent: BTreeMap<Slot, Box<DatagramSender<S>>>,
    /// Ascending by slot and signer.
    floors: Vec<StartFloor>,
    /// Number of epochs, this one included, for which something that came under former keys is not known any more,
    /// because its sender was forgotten.
    past_lost: usize,
}

/// Error if there is no memory for another sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The start is older than one that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outdated;

impl<S: Suite> Senders<S> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, clock: 0, recent: BTreeMap::new(), floors: Vec::new(), past_lost: 0 }
    }

    /// §20.8: the senders of the epoch before are expected in this one, under the same start. Nothing is taken
    /// for certain of them.
    /// `older` are those of the epoch before that, as long as it opens: more may have come meanwhile.
    pub(crate) fn following(
        limit: usize,
        (before, hint): (&Self, Hint),
        older: Option<(&Self, Hint)>,
        traffic: &TrafficKey,
    ) -> Self {
        let mut senders = Self::new(limit);
        senders.clock = before.clock;
        let lost = older.map_or(0, |(older, _)| older.past_lost).max(before.past_lost);
        // An epoch later, one epoch fewer is in doubt.
        senders.past_lost = lost.saturating_sub(1);
        for (slot, known) in &before.recent {
            let same = |(older, hint): (&Self, Hint)| {
                let older = older.recent.get(slot).filter(|older| older.start == known.start)?;
                Some(older.past(hint))
            };
            let past = known.past_of_next([Some(known.past(hint)), older.and_then(same)]);
            senders.recent.insert(*slot, Box::new(known.expected(traffic, past)));
        }
        // Announced after the key had changed here.
        if let Some((older, hint)) = older {
            for (slot, known) in &older.recent {
                if senders.recent.len() < limit && !senders.recent.contains_key(slot) {
                    let past = known.past_of_next([Some(known.past(hint)), None]);
                    senders.recent.insert(*slot, Box::new(known.expected(traffic, past)));
                }
            }
        }
        senders
    }

    /// Returns true if a sender of which something came was forgotten in this epoch.
    pub(crate) const fn has_forgotten(&self) -> bool {
        self.past_lost == PAST
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&DatagramSender<S>> {
        self.recent.get(&slot).map(|sender| &**sender)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut DatagramSender<S>> {
        self.recent.get_mut(&slot).map(|sender| &mut **sender)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &DatagramSender<S>)> {
        self.recent.iter().map(|(slot, sender)| (*slot, &**sender))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut DatagramSender<S>> {
        self.recent.values_mut().map(|sender| &mut **sender)
    }

    /// Erases or makes anew the keys of all senders.
    pub(crate) fn set_keys(&mut self, traffic: Option<&TrafficKey>) {
        for sender in self.recent.values_mut() {
            sender.key = traffic.map(|traffic| traffic.datagram_key(&sender.start));
        }
    }

    /// A datagram of this sender was received.
    pub(crate) fn note_heard(&mut self, slot: Slot, now: Duration) {
        self.clock += 1;
        if let Some(sender) = self.recent.get_mut(&slot) {
            sender.recency = self.clock;
            sender.confirmed = true;
            sender.heard = Some(now);
            sender.received += 1;
        }
    }

    /// §20.7: whether a start is older than what the slot had before. A signer's is compared with its own alone, so
    /// that nothing that another says of the slot keeps it out or lets it in.
    pub(crate) fn check_floor(&self, start: &Start, signer: Option<&Handle>) -> Result<(), Outdated> {
        let signer = signer.map(signer_number);
        let counts = |floor: &&StartFloor| signer.is_none_or(|signer| signer == floor.signer);
        let refused = self.floors_of(start.slot).iter().filter(counts).any(|floor| floor.refuses(start));
        if refused { Err(Outdated) } else { Ok(()) }
    }

    fn floors_of(&self, slot: Slot) -> &[StartFloor] {
        let from = self.floors.partition_point(|floor| floor.slot < slot);
        let to = self.floors.partition_point(|floor| floor.slot <= slot);
        self.floors.get(from..to).unwrap_or_default()
    }

    fn keep_floor(&mut self, floor: &StartFloor) {
        let key = |floor: &StartFloor| (floor.slot, floor.signer);
        match self.floors.binary_search_by_key(&key(floor), key) {
            Ok(place) => {
                if let Some(known) = self.floors.get_mut(place) {
                    known.raise(floor);
                }
            }
            Err(place) => self.floors.insert(place, *floor),
        }
    }

    /// Puts a start in the place of what is known of its slot. It is the caller's to have checked it.
    pub(crate) fn begin(&mut self, start: Start, traffic: &TrafficKey) -> Result<(), Full> {
        let slot = start.slot;
        // §20.7: the number of senders is bounded, because any member can announce starts in many slots.
        if !self.recent.contains_key(&slot) && self.recent.len() >= self.limit {
            self.forget_one()?;
        }
        let mut sender = DatagramSender::new(start, traffic);
        sender.past_lost = self.past_lost > 0;
        if let Some(replaced) = self.recent.remove(&slot) {
            // §20.8: what came under former keys may be this sender's, if another's word stood in between.
            sender.past_lost |= replaced.has_past();
            if replaced.confirmed {
                self.keep_floor(&StartFloor::of(&replaced));
            }
        }
        // §20.7: of a start that was known before nothing is received again, whoever announced it.
        let known = self.floors_of(slot).iter().filter(|floor| floor.is_of(&start));
        sender.unsigned = Numbers::from(known.map(|floor| floor.unsigned).max().unwrap_or(0));
        self.clock += 1;
        sender.recency = self.clock;
        self.recent.insert(slot, Box::new(sender));
        Ok(())
    }

    /// §20.7: This drone signs what comes from the slot. Nothing that it signed under the start before is received
    /// again.
    pub(crate) fn set_signer(&mut self, slot: Slot, signer: AnnouncementSigner<S>) {
        let number = signer_number(&signer.handle);
        let floor = self.floors_of(slot).iter().find(|floor| floor.signer == number).copied();
        let Some(sender) = self.get_mut(slot) else { return };
        if sender.signer.as_ref().is_some_and(|known| known.handle != signer.handle) {
            // Another's numbers are no measure for those of this one.
            sender.signed = Numbers::from(0);
        }
        if let Some(floor) = floor.filter(|floor| floor.is_of(&sender.start))
            && sender.signed.next() < floor.signed
        {
            sender.signed = Numbers::from(floor.signed);
        }
        sender.signer = Some(Box::new(signer));
    }

    /// The slot is that of the drone with this name: another that signed there does so no more, and whoever has the
    /// slot may announce itself. The other's signed payloads stay received.
    pub(crate) fn assign(&mut self, slot: Slot, name: &Name) {
        let Some(sender) = self.get_mut(slot) else { return };
        if sender.signer.as_ref().is_some_and(|signer| signer.drone.identity.name != *name) {
            let floor = StartFloor::of(sender);
            (sender.signer, sender.confirmed, sender.signed) = (None, false, Numbers::from(0));
            self.keep_floor(&floor);
        }
    }

    /// Forgets one sender, but for its floor: one that nothing came from, else one whose key is not known,
    /// else the one received least recently.
    fn forget_one(&mut self) -> Result<(), Full> {
        let rank = |sender: &DatagramSender<S>| (sender.confirmed, sender.name().is_some(), sender.recency);
        let least = self.recent.iter().min_by_key(|(_, sender)| rank(sender)).map(|(slot, _)| *slot);
        let slot = least.ok_or(Full)?;
        let confirmed = self.recent.get(&slot).is_some_and(|sender| sender.confirmed);
        let room = self.limit.saturating_mul(REMEMBERED_PER_SENDER as usize);
        // §20.7: full memory fails closed: no new sender rather than a replay.
        if confirmed && self.floors.len() >= room {
            return Err(Full);
        }
        if let Some(sender) = self.recent.remove(&slot) {
            // §20.8: commands of a forgotten sender, sealed again, can no longer be told from new ones.
            if sender.has_past() {
                self.past_lost = PAST;
            }
            if sender.confirmed {
                self.keep_floor(&StartFloor::of(&sender));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    extern crate std;

    proptest! {
        #[test]
        fn a_number_within_half_the_range_of_the_expected_one_is_found_again(expected in any::<u32>(), distance in -32_768..32_768_i64) {
            let number = i64::from(expected) + distance;
            if let Ok(number) = u32::try_from(number) {
                prop_assert_eq!(reconstruct(expected, number as u16), number);
            }
        }

        #[test]
        fn a_number_has_the_low_bits_that_came(expected in any::<u32>(), low in any::<u16>()) {
            prop_assert_eq!(reconstruct(expected, low) as u16, low);
        }
    }

    proptest! {
        #[test]
        fn of_an_epoch_that_is_over_each_of_the_last_numbers_is_taken_once(
            before in prop::collection::vec(0..200_u32, 0..80), after in prop::collection::vec(0..300_u32, 1..60),
        ) {
            let (mut numbers, mut taken) = (Numbers::from(0), std::collections::BTreeSet::new());
            for counter in before.into_iter().filter(|counter| taken.insert(*counter)) {
                numbers.mark(counter);
            }
            let mut last = numbers.last();
            for counter in after {
                let recent = taken.last().is_none_or(|highest| counter + 64 > *highest);
                prop_assert_eq!(last.take(counter), taken.insert(counter) && recent);
            }
        }
    }

    #[test]
    fn at_the_start_no_number_is_negative() {
        assert_eq!(reconstruct(0, 65_535), 65_535);
        assert_eq!(reconstruct(3, 65_535), 65_535);
        assert_eq!(reconstruct(65_540, 65_535), 65_535);
        assert_eq!(reconstruct(65_535, 3), 65_539);
    }
}
