//! State of an edge while it is a member.

use core::time::Duration;

use quiver_ainq::{DronePublicKey, Error, GroupMembership, Header, Name, Suite, UnixTime};
use quiver_machine::{Backoff, Now, Offence, Peer, due, earlier};
use quiver_message::{Ack, CatchUpReply, GroupMessage, Message, Refusal, RefusalReason};

use super::MembershipEnd;
use super::catch_up::{CatchUp, is_fresh};
use super::early_updates::EarlyUpdates;
use super::history::KeptHeader;
use super::leave::{LeaveMessage, Leaving};
use super::messages::Messages;
use crate::edge::{EdgeContext, EdgeEvent};
use crate::statements;

/// A membership and what hangs on it.
#[derive(Debug)]
pub(in crate::edge) struct Member<S: Suite> {
    pub(in crate::edge) membership: GroupMembership<S>,
    /// The header of the epoch held: for a leader that fell behind.
    pub(in crate::edge) header: KeptHeader<S>,
    /// True if, since the last start, an answer to a nonce of this drone showed that the epoch held was
    /// current.
    pub(super) anchored: bool,
    pub(super) valid_until: Option<UnixTime>,
    /// Time on the monotonic clock to ask because nothing newer came although the key runs out.
    runs_out: Option<Duration>,
    pub(super) messages: Messages,
    pub(super) catch_up: CatchUp,
    pub(in crate::edge) leaving: Leaving,
    pub(super) early: EarlyUpdates<S>,
}

impl<S: Suite> Member<S> {
    pub(in crate::edge) fn new(
        membership: GroupMembership<S>,
        header: KeptHeader<S>,
        backoff: Backoff,
    ) -> Self {
        Self {
            membership,
            header,
            anchored: false,
            valid_until: None,
            runs_out: None,
            messages: Messages::default(),
            catch_up: CatchUp::new(backoff),
            leaving: Leaving::default(),
            early: EarlyUpdates::new(),
        }
    }

    /// §11.1: Whether it holds the key of an epoch that it knows to be current.
    pub(super) fn synced(&self) -> bool {
        self.anchored && self.membership.group_key().is_some()
    }

    /// The epoch held is no longer valid for sending or receiving: the key is erased, the way to the next
    /// term stays.
    pub(super) fn suspend(&mut self) {
        self.anchored = false;
        // §10.7, §13.9: a leader's answer to a new question decides which epoch counts.
        self.erase_key();
        self.catch_up.cancel();
    }

    fn erase_key(&mut self) {
        self.messages.stop();
        self.membership.forget_key();
    }

    /// Notes until when the key is valid.
    pub(super) fn set_validity(&mut self, now: Now, until: UnixTime) {
        self.valid_until = Some(until);
        let left = Duration::from_secs(until.saturating_sub(now.unix));
        self.runs_out = Some(now.monotonic.saturating_add(left));
    }

    /// Erases a key that ran out: it neither sends nor receives nor is exported. Returns whether it did.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let late = due(self.runs_out, now);
        if late {
            // §11.1: it asks for the next epoch when it is due.
            self.runs_out = None;
            self.erase_key();
        }
        late
    }

    /// Sends a connected leader that fell behind the header held, once in a while.
    pub(super) fn send_header(&mut self, cx: &mut EdgeContext<'_, S>, leader: Peer) {
        if cx.leaders.contains(leader) && self.catch_up.heeds_hearsay(cx.now, cx.timing.retry) {
            self.header.send(cx, leader);
        }
    }

    /// The event that the key of the epoch held is in use.
    pub(super) fn key_activated(&self) -> EdgeEvent {
        let (epoch, digest) = (self.membership.epoch(), *self.membership.digest());
        EdgeEvent::KeyActivated { epoch, digest, slot: self.membership.slot() }
    }

    /// §6.1: Proves to a leader that the epoch is held, from whomever it came.
    pub(super) fn acknowledge(&self, cx: &mut EdgeContext<'_, S>, from: Peer) {
        let leader = if cx.leaders.contains(from) { Some(from) } else { cx.leaders.first() };
        let (Some(to), Some(_)) = (leader, self.membership.group_key()) else { return };
        let (slot, epoch, tag) = (self.membership.slot(), self.membership.epoch(), self.membership.ack_tag());
        cx.send(to, &Message::Ack(Ack { slot, epoch, tag }));
    }

    /// Seals a message to the group.
    pub(super) fn seal(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        channel: Name,
        data: &[u8],
        signed: bool,
    ) -> Result<GroupMessage, &'static str> {
        if signed && cx.keypair.is_none() {
            return Err("an anonymous member has no key to sign with");
        }
        if !self.synced() {
            return Err("not yet in step with the group");
        }
        self.messages.seal(cx, (self.membership.group(), channel), data, signed)
    }

    /// Opens what another member sent.
    #[inline(never)]
    pub(super) fn group_message(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        expected: Option<&DronePublicKey<S>>,
        from: Peer,
        message: &GroupMessage,
    ) {
        if message.group != *self.membership.group() || !self.synced() {
            return;
        }
        match self.messages.open(cx, expected, message) {
            Err(offence) => cx.blame(from, offence),
            Ok(Some((data, source))) => {
                cx.event(EdgeEvent::Message { channel: message.channel.clone(), data, source });
            }
            // §11.1: the sender is ahead of us, or claims so: ask, but not as often as it is claimed.
            Ok(None) => {
                let ahead = message.epoch > self.membership.epoch();
                if ahead && self.catch_up.heeds_hearsay(cx.now, cx.timing.retry) {
                    self.request_catch_up(cx);
                }
            }
        }
    }

    /// §11.1: Asks the first connected leader which epoch is current, unless a question is under way.
    pub(super) fn request_catch_up(&mut self, cx: &mut EdgeContext<'_, S>) {
        self.catch_up.request(cx, &self.membership);
    }

    /// §11.1: A leader answers that the epoch held is the current one.
    pub(super) fn confirmed(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer, reply: &CatchUpReply<S>) {
        if !is_fresh(&self.membership, self.membership.digest(), reply) {
            return cx.blame(from, Offence::Mac("CatchUpReply"));
        }
        if statements::lacks_keys(&reply.number) && !self.membership.has_path() {
            // The question named it; it is asked again when it is due.
            return cx.blame(from, Error::MissingPath);
        }
        let news = !self.synced();
        // §11.2: without the key (it was lost with a restart) the leader makes a new epoch soon; ask again if
        // not.
        let waits_for_key = self.membership.group_key().is_none();
        self.anchored = true;
        cx.leaders.proven(from);
        let valid_until = reply.header.core.valid_until;
        let void = cx.now.unix >= valid_until;
        self.catch_up.confirmed(cx.now, cx.timing.probe, (waits_for_key, void));
        if !void {
            self.set_validity(cx.now, valid_until);
        }
        if news && !waits_for_key {
            cx.event(self.key_activated());
        }
        self.acknowledge(cx, from);
    }

    /// §11.1: takes a refusal of the question under way. It is not signed: it may make a member ask another
    /// leader, or join again, no more.
    #[inline(never)]
    pub(super) fn refused(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        refusal: &Refusal,
    ) -> Option<MembershipEnd> {
        if !self.catch_up.is_about(&refusal.reference) {
            return None;
        }
        if refusal.reason == RefusalReason::Rejoin {
            // §11.1: the state held does not lead to the current epoch; a leaving member is out already.
            let left = self.leaving.is_under_way();
            return Some(if left { MembershipEnd::Left } else { MembershipEnd::OutOfStep });
        }
        cx.event(EdgeEvent::Refused(refusal.reason));
        if refusal.reason == RefusalReason::NotReady {
            // §10.5: it does not lead. It is sent the newest header held, and the next one is asked.
            let pause = cx.leaders.catch_up_pause(refusal.retry_after, cx.timing, cx.base.rng);
            self.catch_up.expire_within(cx.now, pause);
            self.send_header(cx, from);
        }
        None
    }

    /// Blames the sender of an answer that does not verify. But a leader that opens terms older than ours has
    /// forgotten (its memory is older than its group), and so has one that answers with less than we held
    /// when we asked: it is sent the newest header, which it signed itself, so that it resumes from there.
    pub(super) fn behind(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        header: &Header<S>,
        offence: Offence,
    ) {
        if offence == Offence::Protocol(Error::Stale)
            && (header.core.epoch.term < self.membership.epoch().term
                || self.catch_up.asked_with().is_some_and(|held| header.core.epoch < held))
        {
            self.send_header(cx, from);
        }
        cx.blame(from, offence);
    }

    /// §12.1: asks to be removed, again and again until a header lists the removal.
    pub(super) fn leave(&mut self, cx: &mut EdgeContext<'_, S>, leave_message: LeaveMessage<S>) {
        self.leaving.again_at(cx.now.monotonic + self.catch_up.backoff.next(cx.rng));
        let Some(leader) = cx.leaders.first() else { return };
        if let Some(leave) = leave_message(&mut cx.base, &self.membership) {
            cx.send(leader, &leave);
        }
    }

    /// Does what is due.
    pub(super) fn tick(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        leave_message: LeaveMessage<S>,
    ) -> Option<MembershipEnd> {
        let now = cx.now.monotonic;
        // §13.10: the former key is erased when its overlap is over.
        self.messages.tick(cx.now);
        let late = self.expire(now);
        let unanswered = self.catch_up.time_out(now);
        if unanswered {
            if self.catch_up.is_futile() {
                let wanted = cx.group.is_some();
                return Some(if wanted { MembershipEnd::OutOfStep } else { MembershipEnd::Left });
            }
            // §10.5: the next leader is asked.
            cx.leaders.rotate();
        }
        let probes = self.catch_up.probes(now, cx.timing.probe);
        let leaves = self.leaving.is_due(now);
        if leaves {
            self.leave(cx, leave_message);
        }
        if leaves || late || unanswered || probes {
            self.request_catch_up(cx);
        }
        None
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        let questions = earlier(self.catch_up.deadline(), self.messages.deadline());
        earlier(questions, earlier(self.runs_out, self.leaving.deadline()))
    }
}
