//! Seals payloads, announcements and manifests, at the carrier's pace. §20.3 to §20.6, §20.9.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Signature, Suite};

use super::Datagrams;
use crate::announcement::{Announcement, AnnouncementRequest, announced, interval_code, signed_part};
use crate::body::{
    AGAIN_LEN, HASH_LEN, Manifest, batch_len, manifest_hash, statement, write_again, write_batch,
};
use crate::cipher::{DatagramNonce, FULL_TAG_LEN, TAG_LEN, seal, seal_full};
use crate::epoch::DatagramEpoch;
use crate::header::{DatagramKind, Hint, begin, begin_announcement};
use crate::queue::{Queued, SealedDatagram, Taken};
use crate::{Config, DatagramRefusal, Event, Payload, Priority, SigningRequest};

/// Time after which a signature that did not come is given up.
const SIGNING: Duration = Duration::from_secs(1);

/// Pause between an epoch's first announcement and the second.
const SECOND_ANNOUNCEMENT: Duration = Duration::from_secs(1);

/// Pause between announcements that others ask for.
const ANSWERS: Duration = Duration::from_millis(250);

/// Pause between questions to others.
pub(super) const QUESTIONS: Duration = Duration::from_millis(500);

/// Number of signed datagrams after which the signature of an announcement is made anew, with the next number.
const NUMBERED_EVERY: u32 = 1 << 14;

/// Number of hashes that wait for a manifest to be signed.
const MAX_HASHES: usize = 4_096;

/// A command that left under the current key a moment ago.
pub(super) struct SentCommand {
    pub(super) at: Duration,
    queued: Queued,
    signed: bool,
    number: (Hint, u32),
}

/// Statement that is being signed.
pub(super) struct PendingSignature {
    id: u64,
    pub(super) until: Duration,
    purpose: SignaturePurpose,
}

enum SignaturePurpose {
    /// An announcement, with the number of a signed datagram, or 0.
    Announcement(u32),
    /// A datagram, with the number that it has by now.
    Datagram { kind: DatagramKind, counter: u32, body: Vec<u8>, queued: Option<Queued> },
}

impl PendingSignature {
    /// Number of payloads that wait for it.
    pub(super) fn payloads(&self) -> u64 {
        match &self.purpose {
            SignaturePurpose::Datagram { queued: Some(queued), .. } => queued.payloads.len() as u64,
            _ => 0,
        }
    }

    /// The payloads that wait for it.
    const fn queued(&self) -> Option<&Queued> {
        match &self.purpose {
            SignaturePurpose::Datagram { queued, .. } => queued.as_ref(),
            SignaturePurpose::Announcement(_) => None,
        }
    }

    fn is_announcement(&self) -> bool {
        matches!(self.purpose, SignaturePurpose::Announcement(_))
    }

    fn is_manifest(&self) -> bool {
        matches!(self.purpose, SignaturePurpose::Datagram { kind: DatagramKind::Manifest, .. })
    }
}

impl<S: Suite> Datagrams<S> {
    /// Takes a payload to be sent.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn send(&mut self, now: Duration, payload: Payload) -> Result<(), DatagramRefusal> {
        let Some(current) = self.current.as_ref().filter(|_| self.is_open_at(now)) else {
            return Err(DatagramRefusal::Closed);
        };
        let Payload { bytes, priority, sign } = payload;
        if bytes.is_empty() {
            return Err(DatagramRefusal::Empty);
        }
        if sign {
            let signer = current.own.signer.as_ref().ok_or(DatagramRefusal::NoSigner)?;
            let needed = announcement_len::<S>(signer.encode().len());
            // Without its key no receiver would accept what this member signs.
            if needed > self.config.mtu {
                return Err(DatagramRefusal::AnnouncementTooLong { needed, mtu: self.config.mtu });
            }
        }
        // A command may have to be sealed again, with a few bytes more.
        let again =
            if priority == Priority::Command { AGAIN_LEN + batch_len(bytes.len()) - bytes.len() } else { 0 };
        let max = room::<S>(&self.config, current, sign).saturating_sub(again);
        if bytes.len() > max {
            return Err(DatagramRefusal::TooLong { len: bytes.len(), max });
        }
        // §20.2: numbers are used up, and a nonce must not repeat. The next epoch has new ones.
        if current.own.next(sign) == u32::MAX {
            return Err(DatagramRefusal::Exhausted);
        }
        let queued = Queued::new(now, priority, bytes);
        self.queue.push(&self.config, &mut self.counters, queued, sign);
        if sign {
            self.request_signatures(now);
        }
        Ok(())
    }

    /// The next datagram for the carrier, if its bit rate allows one.
    pub fn poll_datagram(&mut self, now: Duration) -> Option<Vec<u8>> {
        self.handle_timeout(now);
        if !self.is_open() || self.shaper.ready(&self.config) > now {
            return None;
        }
        // §20.4: the announcement goes first, because receivers can open nothing without it.
        let bytes = if self.announcement_due().is_some_and(|due| due <= now) {
            self.announce(now)?
        } else if let Some(sealed) = self.sealed_that_leaves() {
            self.release(now, sealed)
        } else {
            self.seal_unsigned(now)?
        };
        self.counters.sent += 1;
        self.shaper.spend(&self.config, now, bytes.len());
        Some(bytes)
    }

    /// Returns true if anything waits, be it for its signature.
    fn has_payloads(&self) -> bool {
        !self.queue.is_empty() || !self.sealed.is_empty() || !self.pending.is_empty()
    }

    /// Time at which something may leave as far as this member is concerned.
    pub(super) fn next_departure(&self) -> Option<Duration> {
        if self.is_sealed_next() || self.is_unsigned_next() {
            return Some(Duration::ZERO);
        }
        // §20.9: what follows a payload that is being signed waits for it, but not for long.
        let waits = self.queue.has_unsigned() || !self.sealed.is_empty();
        let overtakes = waits.then(|| self.queue.ordered_until(self.taken_to_sign())).flatten();
        overtakes.into_iter().chain(self.announcement_due()).min()
    }

    /// §20.9: notes whether payloads have waited for so long that they need no longer stay in order.
    pub(super) fn note_waits(&mut self, now: Duration) {
        let taken = self.taken_to_sign();
        self.queue.note_waits(now, taken);
    }

    /// Payloads that were taken to be signed, and did not leave.
    fn taken(&self) -> impl Iterator<Item = &Queued> {
        let sealed = self.sealed.iter().filter_map(|sealed| sealed.queued.as_ref());
        sealed.chain(self.pending.iter().filter_map(PendingSignature::queued))
    }

    fn taken_to_sign(&self) -> Taken {
        Taken {
            oldest: self.taken().filter_map(Queued::waits_since).min(),
            signing: self.pending.iter().any(|pending| pending.queued().is_some()),
            signed: self.signed,
            nothing: self.taken().next().is_none(),
        }
    }

    /// Place of the first payload that was taken to be signed, and did not leave.
    fn first_taken(&self) -> Option<u64> {
        self.taken().map(|queued| queued.order).min()
    }

    /// Returns true if the first sealed datagram may leave before everything that is not signed.
    fn is_sealed_next(&self) -> bool {
        let Some(sealed) = self.sealed.front() else { return false };
        let before = sealed.queued.as_ref().zip(self.queue.first_unsigned());
        self.queue.is_short() || before.is_none_or(|(queued, unsigned)| queued.order < unsigned)
    }

    /// Returns true if an unsigned payload waits, and nothing signed goes before it.
    fn is_unsigned_next(&self) -> bool {
        let signed = self.first_taken().into_iter().chain(self.queue.first_signed()).min();
        let Some(unsigned) = self.queue.first_unsigned() else { return false };
        self.queue.is_short() || signed.is_none_or(|signed| unsigned < signed)
    }

    fn sealed_that_leaves(&mut self) -> Option<SealedDatagram> {
        if self.is_sealed_next() { self.sealed.pop_front() } else { None }
    }

    /// Time at which the next announcement is due.
    fn announcement_due(&self) -> Option<Duration> {
        let own = &self.current.as_ref()?.own;
        // §20.4: with a sender's first datagrams, and every few seconds while it sends.
        let regular = self.has_payloads().then_some(own.announce);
        // The key goes out as soon as it is signed.
        let with_key = (own.key_due && own.signed_part.is_some()).then_some(Duration::ZERO);
        // §20.4: when asked, at a bounded rate.
        let last = own.last_announcement.map_or(Duration::ZERO, |last| last.saturating_add(ANSWERS));
        let answer = own.asked.then_some(last);
        let question = (!self.wanted.is_empty()).then_some(self.ask);
        let with_key = with_key.map(|due| due.max(last));
        [regular, with_key, answer, question].into_iter().flatten().min()
    }

    /// §20.4: announces this member's start, and asks for those of others.
    fn announce(&mut self, now: Duration) -> Option<Vec<u8>> {
        let current = self.current.as_mut()?;
        let (hint, own) = (current.hint(), &mut current.own);
        let number = own.take_announcement()?;
        let part = own.signed_part.as_deref().filter(|_| own.key_due);
        // With the key there is no room for questions on the smallest carriers: they follow.
        let wanted: Vec<AnnouncementRequest> =
            if part.is_some() { Vec::new() } else { self.wanted.drain(..).collect() };
        if !wanted.is_empty() {
            self.ask = now.saturating_add(QUESTIONS);
        }
        let interval = interval_code(self.config.manifest_every);
        let (next, next_signed) = (own.next(false), own.signed_for);
        let announcement = Announcement { interval, next, next_signed, wanted };
        let mut bytes = begin_announcement(hint, &own.start, number);
        let header = bytes.len();
        announcement.write(&mut bytes, part);
        if part.is_some() {
            own.key_due = false;
        }
        // Every announcement answers all that asked, because all receive it.
        own.asked = false;
        own.last_announcement = Some(now);
        let pause = if own.announced() == 1 { SECOND_ANNOUNCEMENT } else { self.config.announce_every };
        // §20.4: the key, which follows once it is signed, is not in place of what is sent a second later: of two
        // announcements within that second many receivers of a large swarm lose both.
        if part.is_none() || own.announced() == 1 || own.announce <= now {
            own.announce = now.saturating_add(pause);
        }
        let nonce = DatagramNonce { signed: false, counter: number };
        let key = &current.keys.as_ref()?.announcements;
        self.counters.sent_announcements += 1;
        Some(seal_full(key, nonce, bytes, header))
    }

    /// A signed datagram leaves.
    fn release(&mut self, now: Duration, sealed: SealedDatagram) -> Vec<u8> {
        match sealed.queued {
            None => self.counters.sent_manifests += 1,
            Some(queued) => self.note_sent(now, queued, true, sealed.counter),
        }
        sealed.bytes
    }

    /// Seals what waits, as many payloads as fit.
    fn seal_unsigned(&mut self, now: Duration) -> Option<Vec<u8>> {
        let signed = self.first_taken();
        let current = self.current.as_mut()?;
        let room = room::<S>(&self.config, current, false);
        let queued = self.queue.take_unsigned(signed, |lens| fits(lens, room))?;
        let Some(counter) = current.own.take(false) else {
            // §20.2: all numbers of this start are used up.
            self.counters.dropped_telemetry += queued.payloads.len() as u64;
            return None;
        };
        let (kind, body) = body_of(&queued, false);
        if self.config.manifest_every.is_some() && current.own.signer.is_some() {
            let own = &mut current.own;
            // §20.6: hashes of consecutive numbers.
            if own.hashes.len() >= MAX_HASHES {
                // Nobody signs them: the signer does not answer, or manifests do not leave.
                own.hashes.clear();
            }
            if own.hashes.is_empty() {
                own.hashes_from = counter;
            }
            own.hashes.push(manifest_hash(kind, counter, &body));
            own.manifest = own.manifest.or(self.config.manifest_every.map(|every| now.saturating_add(every)));
        }
        let mut bytes = begin(kind, current.hint(), current.own.start.slot, counter);
        let header = bytes.len();
        bytes.extend_from_slice(&body);
        let bytes =
            seal(&current.keys.as_ref()?.own, DatagramNonce { signed: false, counter }, bytes, header);
        self.note_sent(now, queued, false, counter);
        Some(bytes)
    }

    /// Counts what leaves, and remembers commands for a moment.
    fn note_sent(&mut self, now: Duration, queued: Queued, signed: bool, counter: u32) {
        self.counters.sent_payloads += queued.payloads.len() as u64;
        let Some(hint) = self.current.as_ref().map(DatagramEpoch::hint) else { return };
        if queued.priority == Priority::Command {
            self.sent.push_back(SentCommand { at: now, queued, signed, number: (hint, counter) });
            let bytes = |sent: &SentCommand| sent.queued.payloads.iter().map(Vec::len).sum::<usize>();
            let mut total: usize = self.sent.iter().map(bytes).sum();
            // The oldest go: receivers that changed the key in time have them.
            while total > self.config.hold_bytes || self.sent.len() > self.config.hold_datagrams {
                let Some(oldest) = self.sent.pop_front() else { break };
                total -= bytes(&oldest);
            }
        }
    }

    /// §20.8: the key changes. Payloads that are sealed or being signed and did not leave go back to those
    /// that wait, and so do commands that left in the last moments, if they are to be sent again.
    pub(super) fn give_back(&mut self, now: Duration, again: bool) {
        for pending in core::mem::take(&mut self.pending).into_iter().rev() {
            if let SignaturePurpose::Datagram { queued: Some(queued), .. } = pending.purpose {
                self.queue.push_front(queued, true);
            }
        }
        for sealed in core::mem::take(&mut self.sealed).into_iter().rev() {
            if let Some(queued) = sealed.queued {
                self.queue.push_front(queued, true);
            }
        }
        let recent = |sent: &SentCommand| again && sent.at.saturating_add(self.config.hold_for) > now;
        let again: Vec<SentCommand> = core::mem::take(&mut self.sent).into_iter().filter(recent).collect();
        for SentCommand { mut queued, signed, number, .. } in again.into_iter().rev() {
            self.counters.sealed_again += 1;
            // However often it is sealed again, receivers know it by its first number.
            queued.before = queued.before.or(Some(number));
            self.queue.push_front(queued, signed);
        }
    }

    /// Asks for the signatures that are wanted next: of the announcement, of a manifest, and of one datagram
    /// at a time, into which meanwhile more payloads come together.
    pub(super) fn request_signatures(&mut self, now: Duration) {
        self.request_announcement(now);
        self.request_manifest(now);
        // One at a time, so that one signature, of 64 bytes, serves what came meanwhile.
        if self.pending.iter().any(|pending| !pending.is_announcement() && !pending.is_manifest()) {
            return;
        }
        let Some(current) = &mut self.current else { return };
        if current.keys.is_none() || current.own.signer.is_none() {
            return;
        }
        let room = room::<S>(&self.config, current, true);
        let Some(queued) = self.queue.take_signed(|lens| fits(lens, room)) else { return };
        let (kind, body) = body_of(&queued, true);
        self.request_datagram(now, kind, body, Some(queued));
    }

    fn request_announcement(&mut self, now: Duration) {
        let has_payloads = self.has_payloads();
        let Some(current) = self.current.as_mut().filter(|current| current.own.key_due) else { return };
        let own = &mut current.own;
        let len = own.signer.as_ref().map(|signer| announcement_len::<S>(signer.encode().len()));
        let Some(len) = len.filter(|len| *len <= self.config.mtu) else { return };
        // §20.4: signed anew before receivers could no longer tell the numbers that follow by their low bits.
        let next = own.next(true);
        let numbered = next >= NUMBERED_EVERY && len + 4 <= self.config.mtu;
        if numbered && next - own.signed_for >= NUMBERED_EVERY {
            own.signed_part = None;
        }
        let wanted = own.signed_part.is_none() && (has_payloads || own.asked);
        if !wanted || current.keys.is_none() || self.pending.iter().any(PendingSignature::is_announcement) {
            return;
        }
        let next_signed = if numbered { next } else { 0 };
        let interval = interval_code(self.config.manifest_every);
        let statement = announced(&current.digest, &own.start, interval, next_signed);
        self.request(now, statement, SignaturePurpose::Announcement(next_signed));
    }

    fn request_manifest(&mut self, now: Duration) {
        if self.pending.iter().any(PendingSignature::is_manifest) {
            return;
        }
        let Some(current) = self.current.as_mut().filter(|current| current.keys.is_some()) else { return };
        let most = room::<S>(&self.config, current, true).saturating_sub(4) / HASH_LEN;
        let own = &mut current.own;
        let due = own.manifest.is_some_and(|due| due <= now) || own.hashes.len() >= most;
        if own.hashes.is_empty() || !due || most == 0 {
            return;
        }
        // Hashes that do not fit go into the next manifest, which is due at once.
        let rest = own.hashes.split_off(most.min(own.hashes.len()));
        let manifest = Manifest { from: own.hashes_from, hashes: core::mem::replace(&mut own.hashes, rest) };
        own.hashes_from = manifest.end();
        own.manifest = (!own.hashes.is_empty()).then_some(now);
        self.request_datagram(now, DatagramKind::Manifest, manifest.write(), None);
    }

    fn request_datagram(&mut self, now: Duration, kind: DatagramKind, body: Vec<u8>, queued: Option<Queued>) {
        let Some(current) = &mut self.current else { return };
        let Some(counter) = current.own.take(true) else {
            // §20.2: no number is left for a signed datagram.
            self.counters.dropped_commands += queued.map_or(0, |queued| queued.payloads.len() as u64);
            return;
        };
        let statement = statement(&current.digest, &current.own.start, kind, counter, &body);
        self.request(now, statement, SignaturePurpose::Datagram { kind, counter, body, queued });
    }

    fn request(&mut self, now: Duration, statement: Vec<u8>, purpose: SignaturePurpose) {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.push(PendingSignature { id, until: now.saturating_add(SIGNING), purpose });
        self.events.push_back(Event::SignatureWanted(SigningRequest { id, statement }));
    }

    /// Answers an [`Event::SignatureWanted`]. Nothing happens if it comes too late.
    pub fn provide_signature(&mut self, now: Duration, id: u64, signature: &Signature<S>) {
        let Some(place) = self.pending.iter().position(|pending| pending.id == id) else { return };
        let pending = self.pending.remove(place);
        let Some(current) = &mut self.current else { return };
        // The epoch was closed meanwhile: nothing may be sealed under it.
        let Some(keys) = &current.keys else { return };
        match pending.purpose {
            SignaturePurpose::Announcement(next_signed) => {
                let own = &mut current.own;
                own.signed_part = own.signer.as_ref().map(|signer| signed_part(signer, signature));
                own.signed_for = next_signed;
            }
            SignaturePurpose::Datagram { kind, counter, body, queued } => {
                // §20.9: the time of the signature does not count against the carrier.
                self.signed = now;
                let mut bytes = begin(kind, Hint::of(&current.epoch), current.own.start.slot, counter);
                let header = bytes.len();
                bytes.extend_from_slice(&body);
                bytes.extend_from_slice(&signature.encode());
                let bytes = seal(&keys.own, DatagramNonce { signed: true, counter }, bytes, header);
                self.sealed.push_back(SealedDatagram { bytes, counter, queued });
            }
        }
        self.request_signatures(now);
    }

    /// Gives up signatures that did not come in time.
    pub(super) fn expire_signatures(&mut self, now: Duration) {
        for pending in self.pending.extract_if(.., |pending| pending.until <= now) {
            self.counters.dropped_commands += pending.payloads();
            self.signed = now;
        }
    }
}

/// Bytes of the header and the tag of a member's datagrams.
fn overhead<S: Suite>(current: &DatagramEpoch<S>) -> usize {
    begin(DatagramKind::Single, current.hint(), current.own.start.slot, 0).len() + TAG_LEN
}

/// Bytes of a body that fit a datagram.
fn room<S: Suite>(config: &Config, current: &DatagramEpoch<S>, signed: bool) -> usize {
    let signature = if signed { Signature::<S>::LEN } else { 0 };
    config.mtu.saturating_sub(overhead(current) + signature)
}

/// Longest announcement with a key of this encoded length: 20 bytes of header, 7, the signature, the tag.
fn announcement_len<S: Suite>(encoded: usize) -> usize {
    20 + 7 + Signature::<S>::LEN + encoded + FULL_TAG_LEN
}

/// Returns true if payloads of these lengths fit this number of bytes.
fn fits(lens: &[usize], room: usize) -> bool {
    // They may have to be sealed again, with a few bytes more.
    lens.iter().map(|len| batch_len(*len)).sum::<usize>() + AGAIN_LEN <= room
}

/// §20.3: one payload stands alone, several each behind its length.
fn body_of(queued: &Queued, signed: bool) -> (DatagramKind, Vec<u8>) {
    let payloads = || queued.payloads.iter().map(Vec::as_slice);
    let mut body = Vec::new();
    let kind = match (queued.before, queued.payloads.as_slice()) {
        (Some(before), _) => {
            write_again(&mut body, before, payloads());
            if signed { DatagramKind::SignedAgain } else { DatagramKind::Again }
        }
        (None, [payload]) => {
            body.extend_from_slice(payload);
            if signed { DatagramKind::SignedSingle } else { DatagramKind::Single }
        }
        (None, _) => {
            write_batch(&mut body, payloads());
            if signed { DatagramKind::SignedBatch } else { DatagramKind::Batch }
        }
    };
    (kind, body)
}
