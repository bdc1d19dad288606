//! Finds out which epoch is current: after a start, after a gap, and when the key runs out.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{Epoch, Error, GroupMembership, Suite, catch_up_tag, fresh_tag};
use quiver_crypto::ct_eq;
use quiver_machine::{Backoff, Now, Offence, due, earlier};
use quiver_message::{CatchUpNumber, CatchUpReply, CatchUpRequest, Message};

use crate::edge::EdgeContext;

/// Number of unusable answers after which a member joins again. Such an answer is not signed as a whole, so
/// one is no reason; an attacker that can alter every one of them could as well refuse us in the leader's
/// name.
const FRUITLESS: u32 = 3;
/// Time to wait for the epoch that a leader makes for members that lost its key.
const RENEWAL: Duration = Duration::from_secs(12);

/// The questions of a member, and what it knows of when to ask.
#[derive(Debug)]
pub(in crate::edge) struct CatchUp {
    /// Request under way, in a box, because most of the time there is none.
    pending: Option<Box<PendingRequest>>,
    /// Number of requests in a row whose answers were unusable.
    fruitless: u32,
    /// Number of requests since the start.
    pub(super) count: u32,
    /// Number of the latest request whose answer proved which epoch is current.
    pub(super) proven: u32,
    pub(super) backoff: Backoff,
    /// Time from which an unauthenticated message may make it ask again.
    heeds_from: Duration,
    /// Time on the monotonic clock at which a leader last answered a nonce of this drone.
    pub(super) answered: Option<Duration>,
    /// Time on the monotonic clock to ask because no leader has answered for so long.
    probe: Option<Duration>,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    number: CatchUpNumber,
    deadline: Duration,
    /// The epoch held when it was sent.
    held: Epoch,
    /// True if the answer was unusable.
    fruitless: bool,
}

/// §11.1: whether a reply was made for its question by a holder of the member's pairwise key.
pub(super) fn is_fresh<S: Suite>(
    membership: &GroupMembership<S>,
    digest: &[u8; 32],
    reply: &CatchUpReply<S>,
) -> bool {
    ct_eq(&fresh_tag::<S>(membership.auth_key(), digest, &reply.number), &reply.tag)
}

impl CatchUp {
    pub(super) fn new(backoff: Backoff) -> Self {
        let heeds_from = Duration::ZERO;
        Self {
            pending: None,
            fruitless: 0,
            count: 0,
            proven: 0,
            backoff,
            heeds_from,
            answered: None,
            probe: None,
        }
    }

    /// Asks the first connected leader which epoch is current, unless a question is under way.
    pub(super) fn request<S: Suite>(&mut self, cx: &mut EdgeContext<'_, S>, membership: &GroupMembership<S>) {
        let Some(leader) = cx.leaders.first() else { return };
        if self.pending.as_ref().is_some_and(|pending| pending.deadline > cx.now.monotonic) {
            return;
        }
        self.count = self.count.saturating_add(1);
        // §11.1: r is the boot number, a count and 8 random bytes. §11.2: of the count the lowest bit marks that keys
        // are missing, the next that K_g is.
        let lost = membership.group_key().is_none();
        let lacks = lost || !membership.has_path();
        let marked = self.count.wrapping_shl(2) | u32::from(lost) << 1 | u32::from(lacks);
        let mut number = [0; 16];
        cx.rng.fill_bytes(&mut number);
        if let Some((head, rest)) = number.split_first_chunk_mut::<4>() {
            *head = cx.boot_no.to_be_bytes();
            if let Some(count) = rest.first_chunk_mut::<4>() {
                *count = marked.to_be_bytes();
            }
        }
        let deadline = cx.now.monotonic + self.backoff.next(cx.rng);
        let pending = PendingRequest { number, deadline, held: membership.epoch(), fruitless: false };
        self.pending = Some(Box::new(pending));
        // §11.1: the tag proves that the asker is the member of this slot, and binds what it holds.
        let tag = catch_up_tag::<S>(membership.auth_key(), &number, membership.digest());
        let (group, slot, held) = (membership.group().clone(), membership.slot(), *membership.digest());
        cx.send(leader, &Message::CatchUpRequest(CatchUpRequest { group, slot, number, held, tag }));
    }

    /// Returns true if an answer or refusal with this number is to the question under way.
    pub(super) fn is_about(&self, number: &[u8]) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.number == number)
    }

    /// The epoch held when the question under way was sent.
    pub(super) fn asked_with(&self) -> Option<Epoch> {
        self.pending.as_ref().map(|pending| pending.held)
    }

    /// A leader has just answered a nonce of ours; so long from now is soon enough to ask again.
    pub(super) fn answered(&mut self, now: Now, probe: Option<Duration>) {
        self.answered = Some(now.monotonic);
        self.probe = probe.map(|probe| now.monotonic.saturating_add(probe));
    }

    /// Drops the question under way.
    pub(super) fn cancel(&mut self) {
        self.pending = None;
    }

    /// The question has its answer.
    pub(super) fn settle(&mut self) {
        self.pending = None;
        self.backoff.reset();
    }

    /// The answer was of use.
    pub(super) fn succeed(&mut self) {
        self.settle();
        self.fruitless = 0;
    }

    /// The leader confirms that the epoch held is current. The question stays if the key is missing, or if it
    /// ran out.
    pub(super) fn confirmed(
        &mut self,
        now: Now,
        probe: Option<Duration>,
        (waits_for_key, void): (bool, bool),
    ) {
        self.answered(now, probe);
        if self.pending.is_some() {
            // The one under way is the latest.
            self.proven = self.count;
        }
        self.fruitless = 0;
        // §11.1: in step, unless the key is missing or has run out.
        self.pending.take_if(|_| !waits_for_key && !void);
        if !void {
            self.backoff.reset();
        }
        if let Some(pending) = self.pending.as_mut().filter(|_| waits_for_key) {
            // §11.2: the leader makes an epoch for members that lost the key.
            pending.deadline = now.monotonic + RENEWAL;
        }
    }

    /// Notes that the question under way brought what is not made for us.
    pub(super) fn note_useless(&mut self, offence: &Offence) {
        // §7.4: an entry that is sealed for another, or for a spare pair that is gone.
        const SIGNS: [Error; 4] = [Error::WrongTag, Error::SealBroken, Error::WrongSpare, Error::Exhausted];
        if let Some(pending) = &mut self.pending {
            pending.fruitless |= matches!(offence, Offence::Protocol(error) if SIGNS.contains(error));
        }
    }

    /// Returns true, once in a while, if an unauthenticated message is to be acted on.
    pub(super) fn heeds_hearsay(&mut self, now: Now, pause: Duration) -> bool {
        let heeds = self.heeds_from <= now.monotonic;
        // §13.6: what came by the topic makes it ask no more often than this.
        if heeds {
            self.heeds_from = now.monotonic + pause;
        }
        heeds
    }

    /// Waits for the answer no longer than this.
    pub(super) fn expire_within(&mut self, now: Now, pause: Option<Duration>) {
        if let (Some(pending), Some(pause)) = (&mut self.pending, pause) {
            pending.deadline = pending.deadline.min(now.monotonic + pause);
        }
    }

    /// Drops a question that was not answered in time. Returns whether it did.
    pub(super) fn time_out(&mut self, now: Duration) -> bool {
        let pending = self.pending.take_if(|pending| pending.deadline <= now);
        // §7.4: counted when nothing better has come.
        self.fruitless += pending.as_ref().map_or(0, |pending| u32::from(pending.fruitless));
        pending.is_some()
    }

    /// §7.4: Whether so many answers were of no use that the member joins again.
    pub(super) const fn is_futile(&self) -> bool {
        self.fruitless >= FRUITLESS
    }

    /// Returns true if no leader has answered for too long; the next check is `probe` from now.
    pub(super) fn probes(&mut self, now: Duration, probe: Option<Duration>) -> bool {
        let probes = due(self.probe, now);
        if probes {
            self.probe = probe.map(|probe| now.saturating_add(probe));
        }
        probes
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        earlier(self.pending.as_ref().map(|pending| pending.deadline), self.probe)
    }
}
