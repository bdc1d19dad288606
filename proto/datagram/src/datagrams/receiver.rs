//! Opens datagrams and announcements. §20.4 to §20.8.
//!
//! In the order of cost: what it claims, the tag, which a stranger cannot make, then the signature. A window
//! is marked last, so that nobody moves that of a signer in its name. Faults are counted, never answered.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::traffic::Start;
use quiver_ainq::{DronePublicKey, Handle, LEADER_SLOT, Label, Role, Signature, Slot, Suite};

use super::Datagrams;
use super::sender::QUESTIONS;
use crate::announcement::{
    Announcement, AnnouncementRequest, MAX_WANTED, announced, interval, split_signed_part,
};
use crate::body::{Manifest, Payloads, manifest_hash, statement};
use crate::cipher::{DatagramNonce, open, open_full};
use crate::epoch::DatagramEpoch;
use crate::header::{Datagram, DatagramKind, Hint, Number};
use crate::held::HeldDatagram;
use crate::senders::{AnnouncementSigner, SignerPermission, reconstruct};
use crate::{DatagramCounters, Event, PayloadOrigin, Suspicion};

/// Numbers that are this far ahead of a sender's manifest are not its own.
const FAR: u32 = 1_024;

/// Number of datagrams of an epoch that is not known, within a time, after which the leader is asked about it; the time
/// for which they must come while datagrams of the current epoch open; and the time for which one shows that they do.
const STRANGE: u32 = 5;
const STRANGE_WITHIN: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(3);
const AGREES: Duration = Duration::from_secs(1);

/// Places of those that are asked to announce themselves which are for senders that are known.
const RESERVED: usize = 2;

/// Announcements whose signatures are verified at once, and the time for each further one.
const VERIFICATIONS: u32 = 256;
const VERIFICATION: Duration = Duration::from_millis(20);

/// Reason why a datagram was not received.
enum Verdict {
    /// Counted here.
    Drop(fn(&mut DatagramCounters) -> &mut u64),
    /// The tag does not hold. Perhaps its sender has another start, or is at other numbers, by now: then it is asked.
    Forged(Option<AnnouncementRequest>),
    /// The datagram's epoch is not known yet.
    UnknownEpoch,
    /// The start of the datagram's sender, or its key, is not known yet.
    UnknownSender(AnnouncementRequest),
    /// The application has not yet allowed its signer.
    Undecided,
}

use Verdict::{Drop, Forged, Undecided, UnknownEpoch, UnknownSender};

/// Epoch of a datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Current,
    Former,
}

impl<S: Suite> Datagrams<S> {
    /// Takes what the carrier received. Faults are counted, and never answered.
    pub fn handle_datagram(&mut self, now: Duration, datagram: &[u8]) {
        if !self.is_open_at(now) {
            self.counters.closed += 1;
            return;
        }
        // §20.8: the former key opens nothing when its overlap is over.
        self.former.take_if(|(_, until)| *until <= now);
        let until = now.saturating_add(self.config.hold_for);
        if self.receive(now, datagram, until) {
            self.want_epoch(now);
        }
    }

    /// Tries datagrams again that were held, because something is known now that was not.
    pub(super) fn retry_held(&mut self, now: Duration) {
        if !self.is_open_at(now) {
            return;
        }
        for held in self.held.take() {
            self.receive(now, &held.bytes, held.until);
        }
    }

    /// Returns whether the epoch is not known yet.
    fn receive(&mut self, now: Duration, bytes: &[u8], until: Duration) -> bool {
        let verdict = match Datagram::read(bytes) {
            Err(_) => Err(Drop(|counters| &mut counters.malformed)),
            Ok(datagram) => self.open(now, &datagram),
        };
        let unknown_epoch = matches!(verdict, Err(UnknownEpoch));
        match verdict {
            Ok(()) => return false,
            Err(Drop(counter)) => {
                *counter(&mut self.counters) += 1;
                return false;
            }
            Err(Forged(wanted)) => {
                self.note_forged();
                if let Some(wanted) = wanted {
                    self.want(now, wanted);
                }
                return false;
            }
            // §20.8: held, because epoch or answer may come within the next moments.
            Err(Undecided | UnknownEpoch) => {}
            Err(UnknownSender(wanted)) => self.want(now, wanted),
        }
        // A datagram that was held before keeps its first deadline, so that it is not held for ever.
        if until > now {
            let held = HeldDatagram { until, bytes: bytes.to_vec() };
            self.counters.overflowed += self.held.push(&self.config, held);
        } else {
            self.counters.unknown += 1;
        }
        unknown_epoch
    }

    /// §20.8: asks about the epoch, if what came cannot be a stranger's few datagrams, when it should have arrived by
    /// itself. Nothing shows that a datagram of another epoch is a member's.
    fn want_epoch(&mut self, now: Duration) {
        if self.strange.1 == 0 || now.saturating_sub(self.strange.0) > STRANGE_WITHIN {
            self.strange = (now, 0);
        }
        self.strange.1 = self.strange.1.saturating_add(1);
        // Others are where this member is: perhaps it is the sender that is behind, or nobody.
        let agrees = now.saturating_sub(self.opened) < AGREES;
        let patience = if agrees { PATIENCE } else { Duration::ZERO };
        let enough = self.strange.1 >= STRANGE && now.saturating_sub(self.strange.0) >= patience;
        // §20.8: five or more, and for 3 s if the current epoch opens meanwhile: a stranger sends a few at no
        // cost.
        if enough {
            self.lacked = Some(now);
        }
        if enough && self.ask_epoch.is_none() {
            // So that not all receivers ask at once.
            let spread = self.spread(self.config.hold_for);
            let due = now.saturating_add(self.config.hold_for / 2).max(self.next_epoch_question);
            self.ask_epoch = Some(due.saturating_add(spread));
        }
    }

    /// A time below this, another at each call and at each member.
    fn spread(&mut self, below: Duration) -> Duration {
        // Xorshift. It is no secret: the salt that it began with is announced.
        self.spread ^= self.spread << 13;
        self.spread ^= self.spread >> 7;
        self.spread ^= self.spread << 17;
        below.saturating_mul((self.spread >> 48) as u32) / 0xFFFF
    }

    /// §20.10: a tag of 8 bytes can be guessed: the guesses are counted.
    fn note_forged(&mut self) {
        self.counters.forged += 1;
        let Some(current) = &mut self.current else { return };
        current.forged += 1;
        // §20.10: told once; the leader makes a new key, and the receiver goes on.
        if current.forged == self.config.forgery_limit.saturating_add(1) {
            self.events.push_back(Event::TooManyForgeries { count: current.forged });
        }
    }

    /// A sender is to announce itself.
    fn want(&mut self, now: Duration, wanted: AnnouncementRequest) {
        if self.wanted.is_empty() {
            // §20.4: so that of all who lack the same one asks first, and the others hear it.
            let spread = self.spread(self.config.hold_for / 2);
            self.ask = self.ask.max(now.saturating_add(spread));
        }
        // Anybody claims slots that nobody announced: they leave room for senders that are known.
        let is_known =
            self.current.as_ref().is_some_and(|current| current.senders.get(wanted.slot).is_some());
        let most = if is_known { MAX_WANTED } else { MAX_WANTED - RESERVED };
        let room = self.wanted.len() < most;
        match self.wanted.iter_mut().find(|known| known.slot == wanted.slot) {
            // One entry for a slot, so that eight places serve eight senders.
            Some(known) => known.key |= wanted.key,
            None if room => self.wanted.push(wanted),
            None => {}
        }
    }

    /// §20.4: somebody asks for the same, and all hear the answer.
    fn note_question(&mut self, now: Duration, asked: &[AnnouncementRequest]) {
        let answers = |wanted: &AnnouncementRequest, asked: &AnnouncementRequest| {
            wanted.slot == asked.slot && (asked.key || !wanted.key)
        };
        let before = self.wanted.len();
        self.wanted.retain(|wanted| !asked.iter().any(|asked| answers(wanted, asked)));
        if self.wanted.len() < before {
            let spread = self.spread(self.config.hold_for / 2);
            self.ask = self.ask.max(now.saturating_add(QUESTIONS).saturating_add(spread));
        }
    }

    fn open(&mut self, now: Duration, datagram: &Datagram<'_>) -> Result<(), Verdict> {
        let of = self.epoch_of(datagram)?;
        let Some((epoch, _)) = self.split(of) else { return Err(UnknownEpoch) };
        // §20.7, 1: what it claims, which costs nothing to check.
        if !epoch.has_slot(datagram.slot) {
            return Err(Drop(|counters| &mut counters.wrong_slot));
        }
        match datagram.number {
            _ if datagram.slot == epoch.own.start.slot => self.own(of, datagram),
            Number::Announcement { start, number } => self.announcement(now, of, datagram, (start, number)),
            Number::Payloads(low) => {
                let opened = self.payloads(now, of, datagram, low);
                if opened.is_ok() && of == Of::Current {
                    self.opened = now;
                }
                opened
            }
        }
    }

    /// §20.8: the current epoch, or the one before as long as it opens.
    fn epoch_of(&self, datagram: &Datagram<'_>) -> Result<Of, Verdict> {
        let Some(current) = &self.current else { return Err(UnknownEpoch) };
        if current.hint() == datagram.hint {
            return Ok(Of::Current);
        }
        let former = self.former.as_ref().filter(|(former, _)| former.hint() == datagram.hint);
        match former {
            Some((former, _)) if former.keys.is_some() => Ok(Of::Former),
            // §13.10: the former key opens nothing after a removal.
            Some(_) => Err(Drop(|counters| &mut counters.old_epoch)),
            None if datagram.hint.precedes(current.hint()) => Err(Drop(|counters| &mut counters.old_epoch)),
            None => Err(UnknownEpoch),
        }
    }

    /// The epoch, and the one before it.
    fn split(&mut self, of: Of) -> Option<(&mut DatagramEpoch<S>, Option<&mut DatagramEpoch<S>>)> {
        let former = self.former.as_mut().map(|(former, _)| former);
        match of {
            Of::Current => Some((self.current.as_mut()?, former)),
            Of::Former => Some((former?, None)),
        }
    }

    /// Judges a datagram in this member's own slot: its own, come back, or of somebody who has no right to
    /// it.
    fn own(&mut self, of: Of, datagram: &Datagram<'_>) -> Result<(), Verdict> {
        let own = Drop(|counters: &mut DatagramCounters| &mut counters.own);
        let Some((epoch, _)) = self.split(of) else { return Err(own) };
        let (slot, ours) = (datagram.slot, epoch.own.start);
        let Some(keys) = epoch.keys.as_ref().filter(|_| of == Of::Current) else { return Err(own) };
        let opens = match datagram.number {
            Number::Payloads(low) => {
                let signed = datagram.kind.is_signed();
                let next = epoch.own.next(signed);
                let counter = reconstruct(next, low);
                // §20.2: a number that this member has used: the medium gave its own datagram back.
                if counter < next {
                    return Err(own);
                }
                open(&keys.own, DatagramNonce { signed, counter }, datagram.header, datagram.sealed).is_some()
            }
            Number::Announcement { start, number } => {
                if start == ours && number < epoch.own.announced() || start.boot_no < ours.boot_no {
                    return Err(own);
                }
                let key = keys.traffic.announcement_key(&start);
                let nonce = DatagramNonce { signed: false, counter: number };
                open_full(&key, nonce, datagram.header, datagram.sealed).is_some()
            }
        };
        if !opens {
            return Err(Drop(|counters| {
                counters.own += 1;
                &mut counters.forged
            }));
        }
        // §20.2: it holds, and this process did not make it.
        self.suspect(slot, Suspicion::Own);
        Ok(())
    }

    fn suspect(&mut self, slot: Slot, suspicion: Suspicion) {
        self.events.push_back(Event::Impostor { slot, suspicion });
    }

    /// §20.4: takes a sender's announcement of its start.
    fn announcement(
        &mut self,
        now: Duration,
        of: Of,
        datagram: &Datagram<'_>,
        (start, number): (Start, u32),
    ) -> Result<(), Verdict> {
        let slot = start.slot;
        let Some((epoch, _)) = self.split(of) else { return Err(UnknownEpoch) };
        let Some(keys) = &epoch.keys else { return Err(UnknownEpoch) };
        let known = epoch.senders.get(slot).filter(|sender| sender.confirmed);
        // §20.4, 1: whether it is news.
        if let Some(known) = known {
            let same = known.start == start;
            if same && known.announced.is_some_and(|announced| announced >= number) {
                return Err(Drop(|counters| &mut counters.replayed));
            }
            // A signer's word counts more than that of an unsigned sender, whichever start it is of.
            if !same && start.boot_no < known.start.boot_no && known.signer.is_some() {
                return Err(Drop(|counters| &mut counters.old_start));
            }
        }
        // §20.4, 2: the tag, of 16 bytes.
        let nonce = DatagramNonce { signed: false, counter: number };
        let key = keys.traffic.announcement_key(&start);
        let body = open_full(&key, nonce, datagram.header, datagram.sealed).ok_or(Forged(None))?;
        let malformed = Drop(|counters| &mut counters.malformed);
        let Ok((announcement, signed)) = Announcement::read(&body) else { return Err(malformed) };
        // A handle that is only claimed; the signature comes below.
        let claimed = signed.and_then(|part| split_signed_part::<S>(part).ok());
        let claimed = claimed.map(|(_, encoded)| Handle::of_encoded::<S>(encoded));
        let old_start = || Drop(|counters: &mut DatagramCounters| &mut counters.old_start);
        let another = known.is_some_and(|known| known.start != start);
        let is_new = known.is_none() || another;
        if is_new && epoch.senders.check_floor(&start, claimed.as_ref()).is_err() {
            return Err(old_start());
        }
        // §20.7: what nobody signed may not begin below any floor of the slot.
        let unsigned_too = !is_new || epoch.senders.check_floor(&start, None).is_ok();
        // §20.4, 3: the signature, unless it is known.
        let (signer, verified) = match signed {
            None => (None, false),
            Some(part) => match self.signer(now, of, &start, &announcement, part)? {
                Some((signer, verified)) => (Some(signer), verified),
                // §20.7: a member may announce itself under ever new starts, and verifying costs more than that.
                None if another => return Err(Drop(|counters| &mut counters.unverified)),
                None if !unsigned_too => return Err(old_start()),
                // Its telemetry passes as that of a sender without a key, which is asked for once it is needed: of
                // thousands that begin together most would not be heard until they announce themselves again.
                None => {
                    self.counters.unverified += 1;
                    (None, false)
                }
            },
        };
        self.begin(of, start, signer)?;
        let own = self.split(of).map(|(epoch, _)| epoch.own.start.slot);
        let Some(sender) = self.split(of).and_then(|(epoch, _)| epoch.senders.get_mut(slot)) else {
            return Err(UnknownEpoch);
        };
        // The number of the next unsigned datagram is any member's word, so that it only guides the search.
        sender.announce(number, announcement.next);
        // An announcement that was not verified here, because the signer is known, is not taken as signed.
        if verified {
            sender.manifests = interval(announcement.interval);
            sender.signed.expect_from(announcement.next_signed);
        }
        self.counters.announcements += 1;
        self.answer(now, own, &announcement.wanted);
        self.note_question(now, &announcement.wanted);
        self.retry_held(now);
        Ok(())
    }

    /// Somebody asks for announcements, perhaps for this member's.
    fn answer(&mut self, now: Duration, own: Option<Slot>, wanted: &[AnnouncementRequest]) {
        let (Some(wanted), Some(current)) =
            (wanted.iter().find(|wanted| Some(wanted.slot) == own), &mut self.current)
        else {
            return;
        };
        current.own.asked = true;
        current.own.key_due |= wanted.key;
        self.request_signatures(now);
    }

    /// Finds the signer of an announcement, and whether it was verified here: a signer that is known is not
    /// verified again, and then nothing else that the announcement says counts as signed. `None` if so many were verified
    /// that this one is not.
    fn signer(
        &mut self,
        now: Duration,
        of: Of,
        start: &Start,
        announcement: &Announcement,
        part: &[u8],
    ) -> Result<Option<(AnnouncementSigner<S>, bool)>, Verdict> {
        let slot = start.slot;
        let Ok((signature, encoded)) = split_signed_part::<S>(part) else {
            return Err(Drop(|counters| &mut counters.malformed));
        };
        let handle = Handle::of_encoded::<S>(encoded);
        let Some((epoch, _)) = self.split(of) else { return Err(UnknownEpoch) };
        let (digest, leader) = (epoch.digest, epoch.leader);
        let known = epoch.senders.get(slot).filter(|sender| sender.start == *start);
        // §20.4: but for a number that this receiver is far behind.
        let known = known.filter(|sender| !sender.signed.is_far_behind(announcement.next_signed));
        let known = known.and_then(|sender| sender.signer.as_ref()).filter(|signer| signer.handle == handle);
        if let Some(known) = known {
            return Ok(Some(((**known).clone(), false)));
        }
        // §20.5: nobody but the term's leader signs from the leader's slot.
        if slot == LEADER_SLOT && handle != leader {
            return Err(Drop(|counters| &mut counters.refused_signer));
        }
        let full = self.verified.max(now).saturating_add(VERIFICATION);
        if full > now.saturating_add(VERIFICATION * VERIFICATIONS) {
            return Ok(None);
        }
        self.verified = full;
        let bad = || Drop(|counters: &mut DatagramCounters| &mut counters.bad_signature);
        let mut drone = DronePublicKey::<S>::decode(encoded).map_err(|_| bad())?;
        let is_edge = drone.identity.role == Role::Edge;
        // §20.4: edges sign from members' slots, and the leader from its own.
        if is_edge == (slot == LEADER_SLOT) {
            return Err(Drop(|counters| &mut counters.refused_signer));
        }
        drone.remember_implicit(&self.deployment).map_err(|_| bad())?;
        let signature = Signature::<S>::decode(signature).map_err(|_| bad())?;
        let statement = announced(&digest, start, announcement.interval, announcement.next_signed);
        signature.verify(&self.deployment, &drone, Label::Datagram, &statement).map_err(|_| bad())?;
        // §20.4: the leader's table says whose slot it is; it is checked after the signature, so that no
        // stranger raises the suspicion.
        if self.assigned.get(&slot).is_some_and(|name| *name != drone.identity.name) {
            self.suspect(slot, Suspicion::Signer);
            return Err(Drop(|counters| &mut counters.refused_signer));
        }
        Ok(Some((AnnouncementSigner { drone, handle, standing: SignerPermission::Asked }, true)))
    }

    /// §20.4: puts an announced start in the place of what is known of the slot, if it may stand there.
    fn begin(&mut self, of: Of, start: Start, signer: Option<AnnouncementSigner<S>>) -> Result<(), Verdict> {
        let slot = start.slot;
        let Some((epoch, _)) = self.split(of) else { return Err(UnknownEpoch) };
        let Some(keys) = &epoch.keys else { return Err(UnknownEpoch) };
        let old_start = || Drop(|counters: &mut DatagramCounters| &mut counters.old_start);
        let mut kept = None;
        let mut same = false;
        if let Some(known) = epoch.senders.get(slot) {
            same = known.start == start;
            let by_known = match (&known.signer, &signer) {
                (Some(known), Some(signer)) => known.handle == signer.handle,
                _ => false,
            };
            match (&known.signer, &signer) {
                // The start known is announced once more.
                _ if same => {}
                // Nothing came from it in this epoch: the slot may have another holder by now.
                _ if !known.confirmed => {}
                // §20.4: a signer's start is followed by one that the same drone signed, and by no other.
                (Some(_), Some(_)) if by_known && start.boot_no > known.start.boot_no => {}
                (Some(_), Some(_)) if by_known => return Err(old_start()),
                (Some(_), Some(_)) => {
                    self.suspect(slot, Suspicion::Signer);
                    return Err(Drop(|counters| &mut counters.refused_signer));
                }
                (Some(_), None) => return Err(UnknownSender(AnnouncementRequest { slot, key: true })),
                // A signed statement counts more than one that any member can make.
                (None, Some(_)) => {}
                (None, None) if start.boot_no > known.start.boot_no => {}
                (None, None) => return Err(old_start()),
            }
            if by_known {
                kept = known.signer.as_ref().map(|signer| signer.standing);
            }
        }
        if !same && epoch.senders.begin(start, &keys.traffic).is_err() {
            return Err(Drop(|counters| &mut counters.too_many_senders));
        }
        let (Some(sender), Some(mut signer)) = (epoch.senders.get(slot), signer) else { return Ok(()) };
        // The application said of this drone already what it thinks.
        signer.standing = kept.unwrap_or(SignerPermission::Asked);
        let asks = kept.is_none().then(|| Box::new(signer.drone.clone()));
        if same
            && sender.confirmed
            && sender.signer.as_ref().is_some_and(|known| known.handle != signer.handle)
        {
            self.suspect(slot, Suspicion::Signer);
            return Err(Drop(|counters| &mut counters.refused_signer));
        }
        epoch.senders.set_signer(slot, signer);
        if let Some(drone) = asks {
            self.events.push_back(Event::SignerAnnounced { slot, drone });
        }
        Ok(())
    }

    /// §20.7: opens a datagram with payloads, or a manifest.
    fn payloads(&mut self, now: Duration, of: Of, datagram: &Datagram<'_>, low: u16) -> Result<(), Verdict> {
        let (kind, slot) = (datagram.kind, datagram.slot);
        let deployment = self.deployment.clone();
        let (memory, slack) = (self.config.manifest_memory, self.config.hold_for);
        let announces = self.config.announce_every;
        let Some((epoch, _)) = self.split(of) else { return Err(UnknownEpoch) };
        let digest = epoch.digest;
        let unknown = || UnknownSender(AnnouncementRequest { slot, key: kind.is_signed() });
        let Some(sender) = epoch.senders.get_mut(slot) else { return Err(unknown()) };
        // §20.7, 1: number and window.
        let signed = kind.is_signed();
        let counter = sender.numbers(signed).reconstruct(low);
        if !sender.numbers(signed).accepts(counter) {
            return Err(Drop(|counters| &mut counters.replayed));
        }
        // §20.7, 2: the tag.
        let Some(key) = &sender.key else { return Err(UnknownEpoch) };
        let nonce = DatagramNonce { signed, counter };
        let Some(plaintext) = open(key, nonce, datagram.header, datagram.sealed) else {
            // Known from the epoch before alone, its sender may have started since.
            if !sender.confirmed {
                return Err(unknown());
            }
            // §20.4: so may one of which nothing opens for longer than its announcements are apart. Before, it
            // announces itself.
            let late = sender.numbers(signed).note_failure(now, announces);
            return Err(Forged(late.then_some(AnnouncementRequest { slot, key: signed })));
        };
        // §20.7, 3: the signature.
        let mut body: &[u8] = &plaintext;
        let mut source = PayloadOrigin::Member;
        if signed {
            let Some(signer) = &sender.signer else { return Err(unknown()) };
            match signer.standing {
                SignerPermission::Allowed => {}
                SignerPermission::Asked => return Err(Undecided),
                SignerPermission::Forbidden => return Err(Drop(|counters| &mut counters.refused_signer)),
            }
            let bad = || Drop(|counters: &mut DatagramCounters| &mut counters.bad_signature);
            let split = body.len().checked_sub(Signature::<S>::LEN).ok_or_else(bad)?;
            let (signed_body, signature) = body.split_at_checked(split).ok_or_else(bad)?;
            let signature = Signature::<S>::decode(signature).map_err(|_| bad())?;
            let statement = statement(&digest, &sender.start, kind, counter, signed_body);
            signature.verify(&deployment, &signer.drone, Label::Datagram, &statement).map_err(|_| bad())?;
            body = signed_body;
            source =
                PayloadOrigin::Signed { name: signer.drone.identity.name.clone(), handle: signer.handle };
        }
        // §20.7, 4: the window, marked last.
        sender.numbers(signed).mark(counter);
        // §20.6: a manifest is for the receiver, not for the application.
        if kind == DatagramKind::Manifest {
            epoch.senders.note_heard(slot, now);
            return self.manifest(of, slot, body);
        }
        let mut unvouched = false;
        if !signed && memory > 0 && sender.manifests.is_some() {
            sender.remember(counter, manifest_hash(kind, counter, body), memory);
            unvouched = sender.is_unvouched(now, slack);
        }
        epoch.senders.note_heard(slot, now);
        if unvouched {
            self.suspect(slot, Suspicion::Unvouched);
        }
        self.deliver(of, datagram, body, &source)
    }

    /// §20.6: compares what came from a sender with what it signs that it sent.
    fn manifest(&mut self, of: Of, slot: Slot, body: &[u8]) -> Result<(), Verdict> {
        let Ok(manifest) = Manifest::read(body) else {
            return Err(Drop(|counters| &mut counters.malformed));
        };
        self.counters.manifests += 1;
        let Some(sender) = self.split(of).and_then(|(epoch, _)| epoch.senders.get_mut(slot)) else {
            return Ok(());
        };
        let contradicts = sender.contradicts(&manifest);
        let ahead = sender.settle(&manifest, FAR);
        if contradicts {
            self.suspect(slot, Suspicion::Manifest);
        }
        if ahead {
            self.suspect(slot, Suspicion::Ahead);
        }
        Ok(())
    }

    /// Gives the payloads to the application.
    fn deliver(
        &mut self,
        of: Of,
        datagram: &Datagram<'_>,
        body: &[u8],
        source: &PayloadOrigin,
    ) -> Result<(), Verdict> {
        let (kind, slot) = (datagram.kind, datagram.slot);
        let Ok(Payloads { payloads, before }) = Payloads::read(kind, body) else {
            return Err(Drop(|counters| &mut counters.malformed));
        };
        // §20.8: a command that is sealed again is given to the application once.
        if let Some((hint, counter)) = before
            && !self.take_before(of, slot, kind.is_signed(), (hint, counter))
        {
            return Err(Drop(|counters| &mut counters.repeated));
        }
        self.counters.received += 1;
        self.counters.received_payloads += payloads.len() as u64;
        self.events.extend(payloads.into_iter().map(|payload| Event::Received {
            slot,
            bytes: Vec::from(payload),
            source: source.clone(),
        }));
        Ok(())
    }

    /// §20.8: whether nothing came under the number that payloads had under a former key. It is marked there,
    /// so that they do not come again.
    fn take_before(&mut self, of: Of, slot: Slot, signed: bool, (hint, counter): (Hint, u32)) -> bool {
        let Some((epoch, _)) = self.split(of) else { return false };
        let Some(start) = epoch.senders.get(slot).map(|sender| sender.start) else { return false };
        let mut new = true;
        let current = self.current.as_mut().map(|current| (current, false));
        let former = self.former.as_mut().map(|(former, _)| {
            let is_that_epoch = former.hint() == hint;
            (former, is_that_epoch)
        });
        for (epoch, is_that_epoch) in current.into_iter().chain(former) {
            let forgot = epoch.senders.has_forgotten();
            let sender = epoch.senders.get_mut(slot).filter(|sender| sender.start == start);
            let Some(sender) = sender else {
                // Rather lost than received twice.
                new &= !(is_that_epoch && forgot);
                continue;
            };
            new &= if is_that_epoch {
                // More may have come than when the next epoch began.
                sender.numbers(signed).take(counter)
            } else {
                sender.take_past(hint, signed, counter)
            };
        }
        new
    }
}
