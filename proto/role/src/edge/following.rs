//! Following the group from epoch to epoch, and finding the way back after a start or a gap.

use core::time::Duration;

use quiver_ainq::{
    Entry, Error, GroupContext, Header, HeaderCore, Kind, Membership, Name, Suite, VerifiedHeader, ack_tag,
    catch_up_tag, fresh_tag,
};
use quiver_crypto::ct_eq;
use quiver_message::{Ack, CatchUpReply, CatchUpRequest, GroupMessage, Message, Rekey, RevocationQuery};
use rand_core::CryptoRngCore;

use super::member::Question;
use super::{Edge, EdgeEvent, Member, Standing};
use crate::backoff::due;
use crate::speech::{EpochFacts, Seat, Voice};
use crate::{Now, Offence, Peer};

/// What a new header means for this member.
#[expect(clippy::large_enum_variant, reason = "short-lived, and most often the large one")]
enum Step<S: Suite> {
    /// The epoch held, once more.
    Known,
    /// A newer epoch, with its state.
    Newer(Membership<S>),
    /// We are out.
    Removed,
    /// Not to be reached from what we hold: join again.
    TooFar,
    /// Our entry is not there: ask for it.
    Ask,
}

impl<S: Suite> Edge<S> {
    pub(super) fn rekeyed(&mut self, now: Now, from: Peer, rekey: &Rekey<S>, rng: &mut dyn CryptoRngCore) {
        let Standing::Member(member) = &self.standing else {
            return;
        };
        let slot = member.membership.slot();
        let entry = rekey.entries.iter().find(|entry| entry.slot == slot).cloned();
        match self.step(now, &rekey.header, entry.as_ref()) {
            Err(offence) => self.blame(from, offence),
            Ok(step) => self.take(now, from, step, &rekey.header.core, rng),
        }
    }

    /// Checks a header and works out what it means. Changes nothing.
    fn step(&self, now: Now, header: &Header<S>, entry: Option<&Entry>) -> Result<Step<S>, Offence> {
        let Standing::Member(member) = &self.standing else {
            return Err(Error::WrongGroup.into());
        };
        let deployment = &self.config.deployment;
        let (group, held) = (member.membership.group(), &member.membership);
        if header.core.group == *group && header.core.epoch == held.epoch() {
            if header.digest(deployment) == *held.digest() {
                return Ok(Step::Known);
            }
            // Another header for the epoch held: proof against its signer, if it is signed.
            let list = self.revocations.list();
            header.clone().verify(deployment, group, None, list, now.unix)?;
            return Err(Offence::Equivocation);
        }
        let newest = self.newest_in(group);
        let verified = header.clone().verify(deployment, group, newest, self.revocations.list(), now.unix)?;
        Ok(self.meaning(member, &verified, entry)?)
    }

    fn meaning(
        &self,
        member: &Member<S>,
        header: &VerifiedHeader<S>,
        entry: Option<&Entry>,
    ) -> Result<Step<S>, Error> {
        let (core, held, slot) = (header.core(), &member.membership, member.membership.slot());
        let same_term = core.epoch.term == held.epoch().term;
        match core.kind {
            Kind::Rekey if !same_term => return Ok(Step::Ask),
            Kind::Rekey if core.removed.contains(slot) => return Ok(Step::Removed),
            Kind::Open if core.absent.contains(slot) => return Ok(Step::TooFar),
            _ => {}
        }
        let Some(entry) = entry else { return Ok(Step::Ask) };
        let Some(keypair) = &self.keypair else {
            return Err(Error::MissingEntry);
        };
        let context = GroupContext {
            deployment: self.config.deployment.clone(),
            group: core.group.clone(),
            leader: core.leader.clone(),
        };
        let spare = entry.q.and_then(|q| self.spares.numbered(q));
        if entry.q.is_some() && spare.is_none() {
            return Ok(Step::TooFar);
        }
        held.advance(&context, keypair, spare, header, entry).map(Step::Newer)
    }

    fn take(
        &mut self,
        now: Now,
        from: Peer,
        step: Step<S>,
        core: &HeaderCore<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        match step {
            Step::Known => self.acknowledge(from),
            Step::Newer(membership) => self.advance(now, from, membership, core, rng),
            Step::Removed => self.removed(now, rng),
            Step::TooFar => self.rejoin(now, rng),
            Step::Ask => self.catch_up(now, rng),
        }
    }

    /// Puts the new state in the old one's place.
    fn advance(
        &mut self,
        now: Now,
        from: Peer,
        membership: Membership<S>,
        core: &HeaderCore<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        let new_term = membership.epoch().term != member.membership.epoch().term;
        // Who skipped an epoch cannot know who was removed in it: then the former key falls silent at once.
        let overlap = core.removed.is_empty() && core.prev == *member.membership.digest();
        member.membership = membership;
        if member.leader != core.leader {
            member.leader = core.leader.clone();
        }
        if new_term {
            self.spares.used(now, rng);
        }
        self.activated(now, from, core, overlap, rng);
        if new_term {
            self.publish_spare(now, rng);
        }
    }

    /// A new epoch is held: durable first, then in use, then acknowledged.
    pub(super) fn activated(
        &mut self,
        now: Now,
        from: Peer,
        core: &HeaderCore<S>,
        overlap: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        self.newest = Some((core.group.clone(), core.epoch));
        self.persist();
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        member.peer = Some(from);
        member.question = None;
        member.backoff.reset();
        member.valid(now, core.valid_until);
        let (epoch, digest) = (member.membership.epoch(), *member.membership.digest());
        let slot = member.membership.slot();
        let former = member.voice.take().filter(|_| overlap);
        if let Some(key) = member.membership.group_key() {
            let facts = EpochFacts { epoch, digest, valid_until: core.valid_until };
            let voice = Voice::new(key, facts, Seat { slot, boot_no: self.boot_no }, rng);
            member.voice = Some(voice.overlap(former, now.monotonic + self.config.timing.overlap));
        }
        let anchored = member.anchored;
        self.acknowledge(from);
        if anchored {
            self.out.event(EdgeEvent::KeyActivated { epoch, digest, slot });
        } else {
            // Signed, but perhaps not the newest there is: find out before using it.
            self.catch_up(now, rng);
        }
        if core.revocation_number > self.revocations.number() {
            let query = RevocationQuery { number: self.revocations.number() };
            self.out.send(&self.config.deployment, from, &Message::<S>::RevocationQuery(query));
        }
    }

    fn acknowledge(&mut self, to: Peer) {
        let Some(member) = self.member().filter(|member| member.membership.group_key().is_some()) else {
            return;
        };
        let membership = &member.membership;
        let tag = ack_tag::<S>(membership.auth_key(), membership.digest());
        let ack = Ack { slot: membership.slot(), epoch: membership.epoch(), tag };
        self.out.send(&self.config.deployment, to, &Message::<S>::Ack(ack));
    }

    /// Asks the first connected leader which epoch is current, unless a question is under way.
    pub(super) fn catch_up(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let (Some(leader), Standing::Member(member)) = (self.leaders.first().copied(), &mut self.standing)
        else {
            return;
        };
        if member.question.is_some_and(|question| question.deadline > now.monotonic) {
            return;
        }
        member.questions = member.questions.saturating_add(1);
        let mut number = [0; 16];
        rng.fill_bytes(&mut number);
        if let Some((head, rest)) = number.split_first_chunk_mut::<4>() {
            *head = self.boot_no.to_be_bytes();
            if let Some(count) = rest.first_chunk_mut::<4>() {
                let lost_key = u32::from(member.membership.group_key().is_none());
                *count = (member.questions.wrapping_shl(1) | lost_key).to_be_bytes();
            }
        }
        member.question = Some(Question { number, deadline: now.monotonic + member.backoff.next(rng) });
        let membership = &member.membership;
        let tag = catch_up_tag::<S>(membership.auth_key(), &number, membership.digest());
        let (group, slot, held) = (membership.group().clone(), membership.slot(), *membership.digest());
        let request = CatchUpRequest { group, slot, number, held, tag };
        self.out.send(&self.config.deployment, leader, &Message::<S>::CatchUpRequest(request));
    }

    pub(super) fn caught_up(
        &mut self,
        now: Now,
        from: Peer,
        reply: &CatchUpReply<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &self.standing else {
            return;
        };
        if member.question.is_none_or(|question| question.number != reply.number) {
            return;
        }
        match self.step(now, &reply.header, reply.entry.as_ref()) {
            Err(offence) => self.blame(from, offence),
            Ok(Step::Known) => self.confirmed(now, from, reply),
            Ok(Step::Newer(membership)) => {
                let digest = reply.header.digest(&self.config.deployment);
                if !ct_eq(&fresh_tag::<S>(membership.auth_key(), &digest, &reply.number), &reply.tag) {
                    return self.blame(from, Offence::Mac("CatchUpReply"));
                }
                if let Standing::Member(member) = &mut self.standing {
                    member.anchored = true;
                }
                self.advance(now, from, membership, &reply.header.core, rng);
            }
            Ok(step @ (Step::Removed | Step::TooFar)) => self.take(now, from, step, &reply.header.core, rng),
            // Of a term whose opening we missed and that is not to be had any more.
            Ok(Step::Ask) => self.rejoin(now, rng),
        }
    }

    /// The epoch held is the current one.
    fn confirmed(&mut self, now: Now, from: Peer, reply: &CatchUpReply<S>) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        let membership = &member.membership;
        if !ct_eq(&fresh_tag::<S>(membership.auth_key(), membership.digest(), &reply.number), &reply.tag) {
            return self.blame(from, Offence::Mac("CatchUpReply"));
        }
        let (epoch, digest, slot) = (membership.epoch(), *membership.digest(), membership.slot());
        // Without the key (it was lost with a restart) the leader makes a new epoch soon; ask again if it does not.
        let waits_for_key = membership.group_key().is_none();
        let news = !member.synced();
        member.anchored = true;
        member.peer = Some(from);
        member.valid(now, reply.header.core.valid_until);
        member.backoff.reset();
        member.question.take_if(|_| !waits_for_key);
        if let Some(question) = &mut member.question {
            question.deadline = now.monotonic + Duration::from_secs(12);
        }
        if news && !waits_for_key {
            self.out.event(EdgeEvent::KeyActivated { epoch, digest, slot });
        }
        self.acknowledge(from);
    }

    pub(super) fn tick_member(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        if let Some(voice) = &mut member.voice {
            voice.tick(now);
        }
        let late = due(member.runs_out, now.monotonic);
        member.runs_out.take_if(|_| late);
        let unanswered = due(member.question.map(|question| question.deadline), now.monotonic);
        if unanswered {
            member.question = None;
            if self.leaders.len() > 1 {
                self.leaders.rotate_left(1);
            }
        }
        let leaves = due(member.leaving, now.monotonic);
        if leaves {
            self.say_leave(now, rng);
        }
        if leaves || late || unanswered {
            self.catch_up(now, rng);
        }
    }

    pub(super) fn speak(
        &mut self,
        now: Now,
        channel: Name,
        data: &[u8],
        signed: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        let (Standing::Member(member), Some(keypair)) = (&mut self.standing, &self.keypair) else {
            return self.out.event(EdgeEvent::SendFailed("not a member of a group"));
        };
        let synced = member.synced();
        let Some(voice) = member.voice.as_mut().filter(|_| synced) else {
            return self.out.event(EdgeEvent::SendFailed("not yet in step with the group"));
        };
        match voice.speak(now, member.membership.group(), channel, data) {
            Err(reason) => self.out.event(EdgeEvent::SendFailed(reason)),
            Ok(mut message) => {
                if signed {
                    message = voice.sign(&self.config.deployment, keypair, message, rng);
                }
                self.out.send_to_group(&self.config.deployment, &Message::GroupMessage(message));
            }
        }
    }

    pub(super) fn hear(
        &mut self,
        now: Now,
        from: Peer,
        message: &GroupMessage<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        if message.group != *member.membership.group() {
            return;
        }
        let behind = message.epoch > member.membership.epoch();
        let synced = member.synced();
        let Some(voice) = member.voice.as_mut().filter(|_| synced) else {
            return;
        };
        match voice.hear(&self.config.deployment, &self.revocations, now, message) {
            Err(error) => self.blame(from, error),
            Ok(Some((data, source))) => {
                let channel = message.channel.clone();
                self.out.event(EdgeEvent::Message { channel, data: data.to_vec(), source });
            }
            // Somebody is ahead of us (or says so): asking costs one small message, at most one at a time.
            Ok(None) if behind => self.catch_up(now, rng),
            Ok(None) => {}
        }
    }
}
