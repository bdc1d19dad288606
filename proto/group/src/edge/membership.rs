//! Follows a group as a member: its epochs, its messages, and its end.

mod catch_up;
mod deputies;
mod early_updates;
pub(super) mod history;
mod leave;
pub(super) mod member;
mod messages;
mod rekey;
mod short_rekey;
mod spare_points;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use quiver_ainq::traffic::MAX_SENDERS;
use quiver_ainq::{
    Deployment, DroneKeypair, DronePublicKey, EpochKeys, EpochKind, EpochPart, EquivocationProof, Error,
    GroupMembership, Header, Name, StrategyKind, Suite, UnixTime,
};
use quiver_crypto::Secret;
use quiver_machine::{Backoff, Now, Offence, Peer, Revocations, Via, earlier};
use quiver_message::{CatchUpReply, EvictionNotice, JoinChallenge, JoinCiphertext, Message, Rekey, SpareAck};

use self::deputies::Deputies;
use self::history::{History, KeptHeader};
pub use self::leave::{LeaveMessage, signed_leave};
use self::member::Member;
use self::rekey::HeaderMeaning;
use self::spare_points::SparePoints;
use super::failover::equivocation;
use super::kem_keys::KemKeys;
use super::{AT_SERVICES, EdgeContext, EdgeEvent, EdgeStatus};
use crate::refused::encode_proof;

/// Reason why a membership is over. Its keys are there until [`GroupMember::end`] erases them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipEnd {
    /// The drone left, as it asked to.
    Left,
    /// A header removes it.
    Removed,
    /// A leader's signed notice evicts it.
    Evicted,
    /// The member's state does not lead to the group's epoch: it has to join again.
    OutOfStep,
}

/// A drone's part in a group: the membership, if there is one, and what outlives it.
#[derive(Debug)]
pub struct GroupMember<S: Suite> {
    pub(super) member: Option<Member<S>>,
    /// The newest epoch seen of each group that this drone was a member of.
    pub(super) history: History<S>,
    /// The leader that is likely to send next, with its Y once a header of it was believed: decoding its key
    /// and computing Y for every header would be most of what a re-key costs. Whether it is believed does not
    /// depend on it.
    pub(super) expected: Option<Box<DronePublicKey<S>>>,
    pub(super) spare_points: SparePoints<S>,
    /// Maximum number of senders of each kind with replay windows in an epoch.
    pub(super) senders: u32,
    /// The second factor that it shares with leaders.
    pub(super) kem: KemKeys<S>,
    deputies: Deputies<S>,
    leave_message: LeaveMessage<S>,
}

impl<S: Suite> GroupMember<S> {
    /// A drone that is in no group. `leave_message` makes its request to be removed from one.
    #[must_use]
    pub fn new(leave_message: LeaveMessage<S>) -> Self {
        Self {
            member: None,
            history: History::new(),
            expected: None,
            spare_points: SparePoints::new(),
            senders: MAX_SENDERS,
            kem: KemKeys::new(),
            deputies: Deputies::new(),
            leave_message,
        }
    }

    /// The same in a deployment with this second factor (§24): headers of another, or of none, are not followed.
    #[must_use]
    pub fn with_kem(mut self, setting: quiver_kem::KemSetting) -> Self {
        self.kem.set(setting);
        self
    }

    /// Returns true if the drone is a member, perhaps not yet synced.
    #[must_use]
    pub const fn is_member(&self) -> bool {
        self.member.is_some()
    }

    /// The membership, if there is one.
    #[must_use]
    pub fn membership(&self) -> Option<&GroupMembership<S>> {
        self.member.as_ref().map(|member| &member.membership)
    }

    /// The state of the edge that follows a group under this name.
    #[must_use]
    pub fn status(
        &self,
        name: Option<Name>,
        group: Option<Name>,
        revocations: &Revocations<S>,
        boot_no: u32,
    ) -> EdgeStatus {
        let (member, membership) = (self.member.as_ref(), self.membership());
        EdgeStatus {
            name,
            group,
            epoch: membership.map(GroupMembership::epoch),
            digest: membership.map(|membership| *membership.digest()),
            slot: membership.map(GroupMembership::slot),
            synced: member.is_some_and(Member::synced),
            valid_until: member.and_then(|member| member.valid_until),
            answered: member.and_then(|member| member.catch_up.answered),
            asked: member.map_or(0, |member| member.catch_up.count),
            proven: member.map_or(0, |member| member.catch_up.proven),
            leader: None,
            revocation_number: revocations.number(),
            revocations_next_update: revocations.next_update(),
            boot_no,
        }
    }

    /// Time at which the key of the epoch held was made, by the leader's clock.
    #[must_use]
    pub fn key_issued_at(&self, deployment: &Deployment<S>) -> Option<UnixTime> {
        Some(self.member.as_ref()?.header.header(deployment)?.core.issued_at)
    }

    /// The leader of the epoch held.
    #[must_use]
    pub fn leader_name(&self, deployment: &Deployment<S>) -> Option<Name> {
        Some(self.member.as_ref()?.header.header(deployment)?.core.leader.identity.name)
    }

    /// Second factor that the deployment says.
    pub(super) const fn kem_setting(&self) -> quiver_kem::KemSetting {
        self.kem.setting()
    }

    /// State of κ with the leader of the epoch held; `None` without a second factor.
    #[must_use]
    pub fn kem_state(&self, deployment: &Deployment<S>) -> Option<crate::KemState> {
        let header = self.member.as_ref()?.header.header(deployment)?;
        self.kem.state(&header.core.leader.handle())
    }

    /// A secret that all synced members of the epoch can derive under this name; `None` unless synced.
    #[must_use]
    pub fn export(&self, name: &Name) -> Option<Secret<32>> {
        let member = self.member.as_ref().filter(|member| member.synced())?;
        Some(member.membership.group_key()?.export(name, member.membership.digest()))
    }

    /// Returns true if the drone holds the key of an epoch that it knows to be current.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.member.as_ref().is_some_and(Member::synced)
    }

    /// Keys of the epoch for datagrams; `None` unless synced, and as soon as the drone is no member.
    #[must_use]
    pub fn epoch_keys(&self, now: Now, keypair: Option<&DroneKeypair<S>>) -> Option<EpochKeys<S>> {
        // §20.2: fails closed: an epoch that is perhaps not the newest protects nothing.
        let member = self.member.as_ref().filter(|member| member.synced())?;
        member.messages.epoch_keys(now, keypair.map(DroneKeypair::public))
    }

    /// The key that is most likely to have signed what comes next.
    #[must_use]
    pub fn expected(&self) -> Option<&DronePublicKey<S>> {
        self.expected.as_deref()
    }

    /// Notes the leader that is likely to send next.
    pub fn expect(&mut self, deployment: &Deployment<S>, leader: &DronePublicKey<S>) {
        let expected = self.expected().filter(|expected| *expected == leader);
        if expected.is_none_or(|expected| !expected.remembers_implicit(deployment)) {
            self.expected = Some(Box::new(leader.clone()));
        }
    }

    /// Begins a membership with a welcome that was verified. Its pairwise secret is fresh and the header adds
    /// it: nothing older could have been made for it.
    pub fn admit(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        membership: GroupMembership<S>,
        header: &Header<S>,
    ) {
        let header_kept = KeptHeader::new(header, cx.deployment);
        let mut member = Member::new(membership, header_kept, cx.timing.backoff());
        // §11.1: the welcome answers a nonce of its own: it is in step.
        member.anchored = true;
        member.catch_up.answered(cx.now, cx.timing.probe);
        self.member = Some(member);
        self.spare_points.delivered();
        self.activate(cx, from, header, false);
        cx.leaders.prefer(from);
        cx.leaders.proven(from);
        self.introduce_soon(cx);
    }

    /// Restores a stored membership. `leaves`: it is to end. Nothing changes if it does not verify.
    pub(super) fn restore(
        &mut self,
        deployment: &Deployment<S>,
        membership: Option<&[u8]>,
        leaves: bool,
        backoff: Backoff,
    ) -> Result<(), Error> {
        let Some(kept) = self.history.last_header().cloned() else {
            return membership.map_or(Ok(()), |_| Err(Error::Malformed("header")));
        };
        let header = Header::decode(kept.bytes(), deployment)?;
        let membership = membership.map(GroupMembership::restore).transpose()?;
        self.expected = Some(Box::new(header.core.leader));
        let Some(membership) = membership else { return Ok(()) };
        let mut member = Member::new(membership, kept, backoff);
        if leaves {
            // §12.1: asks for the leave again.
            member.leaving.again_at(Duration::ZERO);
        }
        self.member = Some(member);
        // §9.3: published again, for whether it arrived is not stored.
        self.spare_points.republish_restored();
        Ok(())
    }

    /// Keeps the newest header in memory that is shared, and gives up the leader's decoded key.
    pub fn share_header(&mut self, shared: impl FnOnce(&Arc<[u8]>) -> Arc<[u8]>) {
        self.expected = None;
        let header = match &mut self.member {
            Some(member) => Some(&mut member.header),
            None => self.history.last_header(),
        };
        if let Some(header) = header {
            header.share(shared);
        }
    }

    /// Ends the membership and erases its keys. Its header stays, for a leader that forgets how far the group
    /// is.
    pub fn end(&mut self) {
        // §12.1: a deputy that has not heard of the end may open a term with the point that it knows.
        self.spare_points.discard();
        self.deputies.reset();
        // §7.3: the newest header of a former group stays.
        if let Some(member) = self.member.take() {
            self.history.keep(member.header);
        }
    }

    /// §13.9: resumes as after a start, unsynced until a leader's answer proves the current epoch. The group
    /// key is erased, because its receiver may have accepted messages before that it does not know of.
    pub fn resume(&mut self, cx: &mut EdgeContext<'_, S>) {
        if let Some(member) = &mut self.member {
            member.suspend();
            member.catch_up.backoff = cx.timing.backoff();
        }
        // §13.9: the new boot number is durable before anything is sent.
        cx.persist();
        self.request_catch_up(cx);
    }

    /// Sets the parameter set that the deployment says. Returns true if the membership held is of another.
    pub(super) fn set_kem(&mut self, setting: quiver_kem::KemSetting, deployment: &Deployment<S>) -> bool {
        self.kem.set(setting);
        let header = self.member.as_ref().and_then(|member| member.header.header(deployment));
        header.is_some_and(|header| self.kem.check(&header.core).is_err())
    }

    /// Returns true if the leader of the epoch held is revoked.
    pub(super) fn leader_is_revoked(&self, deployment: &Deployment<S>, revocations: &Revocations<S>) -> bool {
        let header = self.member.as_ref().and_then(|member| member.header.header(deployment));
        header.is_some_and(|header| revocations.names(&header.core.leader))
    }

    /// Takes a message that members take, or blames its sender. Returns why the membership is over, if it is.
    #[inline(never)]
    pub fn handle(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (from, via): (Peer, Via),
        message: &mut Message<S>,
    ) -> Option<MembershipEnd> {
        match message {
            Message::Rekey(rekey) => return self.rekey(cx, (from, via), rekey),
            Message::ShortRekey(short) => return self.short_rekey(cx, (from, via), short),
            Message::CatchUpReply(reply) => return self.catch_up_reply(cx, from, reply),
            Message::Refusal(refusal) => return self.member.as_mut()?.refused(cx, from, refusal),
            Message::EvictionNotice(notice) => return self.eviction_notice(cx, from, notice),
            Message::SpareAck(ack) => self.spare_ack(cx, from, ack),
            Message::GroupMessage(message) => {
                self.member.as_mut()?.group_message(cx, self.expected.as_deref(), from, message);
            }
            Message::EquivocationProof(proof) => {
                self.equivocation(cx, from, proof);
            }
            // A message for a part that this edge does not have.
            message if message.is_publication() => {}
            Message::Extension(_) if !AT_SERVICES => {}
            message => cx.blame(from, Offence::out_of_place(message, "message to an edge")),
        }
        None
    }

    /// Sends something to the group.
    pub fn send(&mut self, cx: &mut EdgeContext<'_, S>, channel: Name, data: &[u8], signed: bool) {
        let sent = self.member.as_mut().ok_or("not a member of a group");
        match sent.and_then(|member| member.seal(cx, channel, data, signed)) {
            Err(reason) => cx.event(EdgeEvent::SendFailed(reason)),
            Ok(message) => cx.publish(&Message::GroupMessage(message)),
        }
    }

    /// §11.1: Asks the first connected leader which epoch is current, unless a question is under way.
    pub fn request_catch_up(&mut self, cx: &mut EdgeContext<'_, S>) {
        if let Some(member) = &mut self.member {
            member.request_catch_up(cx);
        }
    }

    /// Asks to be removed; the keys are erased once a header lists the removal.
    pub fn leave(&mut self, cx: &mut EdgeContext<'_, S>) {
        if let Some(member) = &mut self.member {
            member.leave(cx, self.leave_message);
        }
    }

    /// §7.3: Takes a new epoch from its leader, or from a relay.
    #[inline(never)]
    fn rekey(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        (from, via): (Peer, Via),
        rekey: &mut Rekey<S>,
    ) -> Option<MembershipEnd> {
        match self.check(cx, &mut rekey.header, rekey.part.as_ref())? {
            // §7.5: two different headers for one epoch are proof against the leader.
            Err(Offence::Equivocation) => self.contradicted(cx, from, &rekey.header),
            Err(offence) => {
                // §7.4: a genuine header, but an unusable entry: the leader is asked, because entries are not
                // signed. So it is when another member's is sent to us: the leader takes us for that member, as a relay
                // can make it do (§21.1).
                let asks = matches!(offence, Offence::Protocol(Error::WrongSpare | Error::WrongSlot));
                self.note_useless(cx, from, &offence);
                if via == Via::Group {
                    // §13.6: anybody may publish what its leader signed long ago: that leader is sent nothing
                    // for it.
                    cx.blame(from, offence);
                    return None;
                }
                self.member.as_mut()?.behind(cx, from, &rekey.header, offence);
                if asks {
                    self.request_catch_up(cx);
                }
            }
            // §13.6: no news. An epoch published again is not to make all members acknowledge it again.
            Ok(HeaderMeaning::Known) if via == Via::Group => {}
            Ok(step) => return self.take(cx, from, step, &rekey.header),
        }
        None
    }

    /// §11.1: Takes the answer to a question about the current epoch.
    #[inline(never)]
    fn catch_up_reply(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        reply: &mut CatchUpReply<S>,
    ) -> Option<MembershipEnd> {
        let member = self.member.as_ref()?;
        if !member.catch_up.is_about(&reply.number) {
            return None;
        }
        // §8.2: the path message names the question that it answers.
        if matches!(&reply.part, Some(EpochPart::Path(path)) if path.r != reply.number) {
            cx.blame(from, Error::Replay);
            return None;
        }
        match self.check(cx, &mut reply.header, reply.part.as_ref())? {
            Err(Offence::Equivocation) => self.contradicted(cx, from, &reply.header),
            Err(offence) => {
                self.note_useless(cx, from, &offence);
                self.member.as_mut()?.behind(cx, from, &reply.header, offence);
            }
            Ok(HeaderMeaning::Spoilt(error)) => {
                let offence = Offence::Protocol(error);
                self.note_useless(cx, from, &offence);
                cx.blame(from, offence);
            }
            // §11.1: the epoch held is the newest, if the tag is made for this question.
            Ok(HeaderMeaning::Known) => self.member.as_mut()?.confirmed(cx, from, reply),
            Ok(step @ (HeaderMeaning::Newer(_) | HeaderMeaning::Completed(_))) => {
                return self.caught_up(cx, from, step, reply);
            }
            Ok(step @ (HeaderMeaning::Removed | HeaderMeaning::TooFar | HeaderMeaning::Early(_))) => {
                return self.take(cx, from, step, &reply.header);
            }
            // No answer has wraps.
            Ok(HeaderMeaning::Others) => {}
            Ok(HeaderMeaning::Ask) => {
                let term = self.membership().map(|membership| membership.epoch().term);
                if term != Some(reply.header.core.epoch.term) {
                    // §11.3: of a term whose opening we missed and that is not to be had any more.
                    return Some(MembershipEnd::OutOfStep);
                }
                cx.blame(from, Offence::Protocol(Error::MissingEntry));
            }
        }
        None
    }

    /// The reply brings the keys of the current epoch, if the leader made it for this question.
    fn caught_up(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        step: HeaderMeaning<S>,
        reply: &CatchUpReply<S>,
    ) -> Option<MembershipEnd> {
        let (HeaderMeaning::Newer(membership) | HeaderMeaning::Completed(membership), Some(member)) =
            (&step, &mut self.member)
        else {
            return None;
        };
        // §11.1: the tag proves that the leader has the pairwise key of this slot, and had the question.
        let digest = reply.header.digest(cx.deployment);
        if !catch_up::is_fresh(membership, &digest, reply) {
            cx.blame(from, Offence::Mac("CatchUpReply"));
            return None;
        }
        let comes_into_use = !member.anchored && member.membership.group_key().is_some();
        member.anchored = true;
        cx.leaders.proven(from);
        let waits = member.membership.group_key().is_none() && matches!(step, HeaderMeaning::Completed(_));
        member.catch_up.confirmed(cx.now, cx.timing.probe, (waits, false));
        let completed = matches!(step, HeaderMeaning::Completed(_));
        let held = member.membership.epoch();
        let activated = member.key_activated();
        let end = self.take(cx, from, step, &reply.header);
        // With its path complete the member may have followed to an epoch whose wraps it had kept, and
        // acknowledged that.
        let current = end.is_none() && self.membership().is_some_and(|membership| membership.epoch() == held);
        if completed && comes_into_use && current {
            cx.event(activated);
        }
        end
    }

    /// Checks a header against what is held. `None` if nothing is.
    fn check(
        &self,
        cx: &EdgeContext<'_, S>,
        header: &mut Header<S>,
        part: Option<&EpochPart>,
    ) -> Option<Result<HeaderMeaning<S>, Offence>> {
        let member = self.member.as_ref()?;
        // §24.6: whoever signed it, and before anything is computed.
        if let Err(error) = self.kem.check(&header.core) {
            return Some(Err(error.into()));
        }
        let newest = self.history.newest_in(member.membership.group());
        let secrets = (&self.spare_points, &self.kem);
        Some(rekey::check(cx, member, newest, secrets, header, part))
    }

    /// Does what a header means for this member.
    fn take(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        step: HeaderMeaning<S>,
        header: &Header<S>,
    ) -> Option<MembershipEnd> {
        match step {
            // To a leader only: the tag contains no time, so any holder could replay it in our place.
            HeaderMeaning::Known if cx.leaders.contains(from) => self.member.as_ref()?.acknowledge(cx, from),
            HeaderMeaning::Known | HeaderMeaning::Others => {}
            HeaderMeaning::Newer(membership) => return self.advance(cx, from, membership, header),
            HeaderMeaning::Completed(membership) => return self.complete(cx, from, membership),
            HeaderMeaning::Early(early) => {
                // §8.4: its wraps are kept; what is missing before them is asked for.
                cx.leaders.prefer(from);
                if let Some(member) = &mut self.member {
                    member.early.keep(*early);
                }
                self.request_catch_up(cx);
            }
            HeaderMeaning::Spoilt(error) => {
                cx.blame(from, error);
                self.request_catch_up(cx);
            }
            HeaderMeaning::Removed => {
                // §12.1: the header, or the wraps that it binds, are the leader's word for the leave.
                let left = self.member.as_ref().is_some_and(|member| member.leaving.is_under_way());
                return Some(if left { MembershipEnd::Left } else { MembershipEnd::Removed });
            }
            HeaderMeaning::TooFar => {
                // §24.7: the leader learns its count from the header held, before this member asks to join.
                if self.kem.is_past(&header.core)
                    && let Some(member) = self.member.as_ref().filter(|_| cx.leaders.contains(from))
                {
                    member.header.send(cx, from);
                }
                return Some(MembershipEnd::OutOfStep);
            }
            HeaderMeaning::Ask => {
                // §8.4: an epoch was missed: the answer has what leads to it.
                cx.leaders.prefer(from);
                self.request_catch_up(cx);
            }
        }
        None
    }

    /// Puts the state of a newer epoch in the old one's place.
    fn advance(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        membership: GroupMembership<S>,
        header: &Header<S>,
    ) -> Option<MembershipEnd> {
        let member = self.member.as_mut()?;
        let new_term = membership.epoch().term != member.membership.epoch().term;
        let asked = member.catch_up.asked_with().is_some();
        // §13.10: a member that skipped an epoch cannot know the members removed in it: then the former key
        // is dropped at once.
        let overlap = header.core.removes_nobody() && header.core.prev == *member.membership.digest();
        let by_entry = new_term && !opened_by_tree(&membership, header);
        member.membership = membership;
        member.header = KeptHeader::new(header, cx.deployment);
        if new_term {
            // §9.3: e_q is used, e_{q+1} is drawn and stored.
            self.spare_points.used(cx.now, cx.base.rng);
            // §24.3: κ before goes with the same record.
            self.kem.follow(&header.core);
            cx.leaders.prefer(from);
        }
        self.activate(cx, from, header, overlap);
        if new_term {
            // §9.3: e_{q+1} is durable by now, and is published.
            self.spare_points.publish(cx, self.member.as_ref().map(|member| &member.membership));
        }
        if by_entry && asked {
            // Perhaps the term went on since, and what follows gets lost. Wraps and paths are of the newest epoch.
            self.request_catch_up(cx);
        }
        self.apply_early_update(cx, from)
    }

    /// The epoch is the one held, and its path is there.
    fn complete(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        membership: GroupMembership<S>,
    ) -> Option<MembershipEnd> {
        let member = self.member.as_mut()?;
        let had_key = member.membership.group_key().is_some();
        member.membership = membership;
        if !had_key {
            // §13.5: the windows went with the key, so what came under it could be played again: the epoch is never
            // continued. The path leads to the next one, which the leader makes soon (§11.2).
            member.membership.forget_key();
        }
        cx.persist();
        self.apply_early_update(cx, from)
    }

    /// The epoch held is a new one: perhaps the wraps of the next came before it.
    fn apply_early_update(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer) -> Option<MembershipEnd> {
        let member = self.member.as_mut()?;
        let Some(early) = member.early.next(&member.membership) else {
            return self.apply_early_short(cx, from);
        };
        let (header, part) = (early.header, EpochPart::Delta(early.delta));
        match rekey::interpret(cx, member, (&self.spare_points, &self.kem), &header, Some(&part)) {
            Err(error) => {
                cx.blame(from, error);
                None
            }
            Ok(step) => self.take(cx, from, step, header.header()),
        }
    }

    /// §7.3: A new epoch is held: stored first, then in use, then acknowledged.
    #[inline(never)]
    fn activate(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer, header: &Header<S>, overlap: bool) {
        let core = &header.core;
        self.history.accept(&core.group, core.epoch);
        self.expect(cx.deployment, &core.leader);
        // §7.3, 6: durable before it is in use or acknowledged.
        cx.persist();
        let Some(member) = &mut self.member else { return };
        let asked = member.catch_up.asked_with().is_some();
        member.catch_up.succeed();
        member.set_validity(cx.now, core.valid_until);
        // §13.10: a sender switches at once; the former key may go on receiving.
        if let Some(traffic) = member.membership.take_traffic() {
            let (senders, membership) = (self.senders, &member.membership);
            member.messages.activate(cx, (traffic, senders, overlap), header, membership);
        } else {
            member.messages.stop();
        }
        member.acknowledge(cx, from);
        if member.anchored {
            cx.event(member.key_activated());
            if asked && cx.leaders.leading().is_none() && !opened_by_tree(&member.membership, header) {
                // §11.1: the answer would have shown who leads, and is not waited for any more. After an opening the
                // acknowledgement of the spare point does.
                member.request_catch_up(cx);
            }
        } else {
            // §11.1: signed, but perhaps not the newest there is: find out before using it.
            member.request_catch_up(cx);
        }
        // §12.3: the header's number shows that there is a newer list. §6.5: an anonymous member asks leaders
        // for none.
        if core.revocation_number > cx.revocations.number() && cx.keypair.is_some() {
            let query = Message::RevocationQuery(cx.revocations.query());
            cx.send(from, &query);
        }
    }

    /// The answer of the leader asked is not made for us: its copy of the group has another member in our
    /// slot, or one of our spare points that we have no more, or we have been away for too long.
    fn note_useless(&mut self, cx: &EdgeContext<'_, S>, from: Peer, offence: &Offence) {
        if let Some(member) = self.member.as_mut().filter(|_| cx.leaders.first() == Some(from)) {
            member.catch_up.note_useless(offence);
        }
    }

    /// Another header for the epoch held. If both are signed, they are proof of an equivocation, which is
    /// sent to all peers in reach.
    fn contradicted(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer, second: &Header<S>) {
        let first = self.member.as_ref().and_then(|member| member.header.header(cx.deployment));
        let Some(first) = first else { return };
        let proof = EquivocationProof { first, second: second.clone() };
        let encoded = encode_proof(cx.deployment, &proof);
        if let (true, Some(proof)) = (self.equivocation(cx, from, &proof), encoded) {
            // §10.7: to the leaders and the group.
            for leader in cx.leaders.as_slice() {
                cx.base.out.send_encoded(*leader, proof.clone());
            }
            cx.out.send_encoded_to_group(proof);
        }
    }

    /// §10.7: Takes proof that a leader signed two headers for one epoch. Its group waits for a deputy's
    /// term, without a key. Returns whether it was news.
    #[inline(never)]
    fn equivocation(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        proof: &EquivocationProof<S>,
    ) -> bool {
        let member_of = self.membership().map(GroupMembership::group);
        let Some(refused) = equivocation::refuse(cx, from, member_of, proof.clone()) else { return false };
        if let Some(member) = &mut self.member
            && let Some(header) = member.header.header(cx.deployment)
            && header.core.leader.identity.serial == refused.identity.serial
        {
            // §10.7: erases the key, and waits for a deputy's term.
            member.suspend();
            // The next leaders are asked until one answers.
            member.request_catch_up(cx);
        }
        true
    }

    /// §12.2: Takes a leader's signed notice.
    #[inline(never)]
    fn eviction_notice(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        notice: &EvictionNotice<S>,
    ) -> Option<MembershipEnd> {
        match leave::evicts(cx, self.membership()?, notice) {
            Err(offence) => {
                cx.blame(from, offence);
                None
            }
            Ok(evicts) => evicts.then_some(MembershipEnd::Evicted),
        }
    }

    /// Sends a leader the header of a former membership in this group, or one like it that the leader signed:
    /// it admits us with an older epoch, so it has forgotten how far its group is.
    pub(super) fn send_header_of(&self, cx: &mut EdgeContext<'_, S>, leader: Peer, group: &Name) {
        // §10.5: a leader that does not lead is sent the newest header that the edge holds.
        if let Some(header) = self.history.header_in(group).filter(|_| cx.leaders.contains(leader)) {
            header.send(cx, leader);
        }
    }

    fn spare_ack(&mut self, cx: &mut EdgeContext<'_, S>, from: Peer, ack: &SpareAck) {
        let Some(member) = &self.member else { return };
        match self.spare_points.acknowledged(&member.membership, ack) {
            Err(offence) => cx.blame(from, offence),
            // §9.3: only the leader of the pairwise key can have made it.
            Ok(true) => cx.leaders.proven(from),
            Ok(false) => {}
        }
    }

    /// §10.5: leaders that do not lead may do so one day, and need our address then. They are sent the spare
    /// point in a while, when they know that we are a member.
    pub(super) fn introduce_soon(&mut self, cx: &EdgeContext<'_, S>) {
        if cx.leaders.are_several() && cx.keypair.is_some() && self.is_member() {
            self.spare_points.introduce_at(cx.now.monotonic + cx.timing.retry);
            if !self.kem.setting().is_none() {
                // §24.7: and a second factor is made with them.
                self.deputies.ask_at(cx.now.monotonic + cx.timing.retry);
            }
        }
    }

    /// Takes the challenge of a deputy that was asked for κ.
    pub(super) fn deputy_challenged(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        challenge: &JoinChallenge<S>,
    ) {
        let Some(member) = &self.member else { return };
        let (group, secrets) = (member.membership.group(), (&self.kem, &self.spare_points));
        self.deputies.challenged(cx, secrets, group, (from, challenge));
    }

    /// Takes the ciphertext of a deputy that was asked for κ.
    pub(super) fn deputy_ciphertext(
        &mut self,
        cx: &mut EdgeContext<'_, S>,
        from: Peer,
        message: &JoinCiphertext,
    ) {
        let Some(member) = &self.member else { return };
        self.deputies.ciphertext(cx, &mut self.kem, member.membership.group(), (from, message));
    }

    /// A connection is gone.
    pub(super) fn disconnected(&mut self, peer: Peer) {
        self.deputies.disconnected(peer);
    }

    /// Does what is due for the membership.
    pub fn tick(&mut self, cx: &mut EdgeContext<'_, S>) -> Option<MembershipEnd> {
        self.member.as_mut()?.tick(cx, self.leave_message)
    }

    /// Does what is due for the spare points, which outlive a membership, and for the deputies.
    pub(super) fn tick_leaders(&mut self, cx: &mut EdgeContext<'_, S>) {
        let late = self.spare_points.tick(cx, self.member.as_ref().map(|member| &member.membership));
        if late && cx.leaders.leading().is_none() {
            // §9.3: perhaps the leader is in another term.
            self.request_catch_up(cx);
        }
        if let Some(member) = &self.member {
            self.deputies.tick(cx, &self.kem, member.membership.group());
        }
    }

    /// Latest time of the next call.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        let leaders = earlier(self.spare_points.deadline(), self.deputies.deadline());
        earlier(self.member.as_ref().and_then(Member::deadline), leaders)
    }
}

/// Returns true if a member followed this opening by wraps or by its path, which it then has. Both are of the
/// newest epoch when they are sent; entries may be of one that opened a term long ago.
fn opened_by_tree<S: Suite>(membership: &GroupMembership<S>, header: &Header<S>) -> bool {
    let tree = membership.follows() == StrategyKind::Tree;
    header.core.kind == EpochKind::Open && tree && membership.has_path()
}
