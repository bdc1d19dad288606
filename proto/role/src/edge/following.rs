//! Following the group from epoch to epoch.

use alloc::vec::Vec;

use quiver_ainq::{
    Entry, Error, GroupContext, Header, Kind, Membership, Part, Suite, VerifiedHeader, ack_tag,
};
use quiver_message::{Ack, Message, Rekey, RevocationQuery};
use rand_core::CryptoRngCore;

use super::{Edge, EdgeEvent, Member, Standing};
use crate::speech::{EpochFacts, Seat, Voice};
use crate::{Now, Offence, Peer};

/// What a new header means for this member.
#[expect(clippy::large_enum_variant, reason = "short-lived, and most often the large one")]
pub(super) enum Step<S: Suite> {
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
            Err(offence) => self.behind(now, from, &rekey.header, offence),
            Ok(step) => self.take(now, from, step, &rekey.header, rng),
        }
    }

    /// Checks a header and works out what it means. Changes nothing.
    pub(super) fn step(
        &self,
        now: Now,
        header: &Header<S>,
        entry: Option<&Entry>,
    ) -> Result<Step<S>, Offence> {
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
        match entry.q {
            Some(_) if core.kind == Kind::Rekey => return Err(Error::Malformed("entry")),
            // Never published by us: the entry, which nobody signs, was altered.
            Some(q) if q >= self.spares.next_q => return Err(Error::WrongSpare),
            _ => {}
        }
        let spare = entry.q.and_then(|q| self.spares.numbered(q));
        if entry.q.is_some() && spare.is_none() {
            return Ok(Step::TooFar);
        }
        held.advance(&context, keypair, spare, header, &Part::Entry(entry.clone())).map(Step::Newer)
    }

    pub(super) fn take(
        &mut self,
        now: Now,
        from: Peer,
        step: Step<S>,
        header: &Header<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        match step {
            // To a leader only: the tag says nothing of when, so whoever has it could show it for us.
            Step::Known if self.leaders.contains(&from) => self.acknowledge(from),
            Step::Known => {}
            Step::Newer(membership) => self.advance(now, from, membership, header, rng),
            Step::Removed => self.removed(now, rng),
            Step::TooFar => self.rejoin(now, rng),
            Step::Ask => self.catch_up(now, rng),
        }
    }

    /// Puts the new state in the old one's place.
    pub(super) fn advance(
        &mut self,
        now: Now,
        from: Peer,
        membership: Membership<S>,
        header: &Header<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        let new_term = membership.epoch().term != member.membership.epoch().term;
        // Who skipped an epoch cannot know who was removed in it: then the former key falls silent at once.
        let core = &header.core;
        let overlap = core.removed.is_empty() && core.prev == *member.membership.digest();
        member.membership = membership;
        member.header = header.clone();
        if new_term {
            self.spares.used(now, rng);
        }
        self.activated(now, from, header, overlap, rng);
        if new_term {
            self.publish_spare(now, rng);
        }
    }

    /// A new epoch is held: durable first, then in use, then acknowledged.
    pub(super) fn activated(
        &mut self,
        now: Now,
        from: Peer,
        header: &Header<S>,
        overlap: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        let core = &header.core;
        self.newest = Some((core.group.clone(), core.epoch));
        self.persist();
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
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

    pub(super) fn acknowledge(&mut self, to: Peer) {
        let Some(member) = self.member().filter(|member| member.membership.group_key().is_some()) else {
            return;
        };
        let membership = &member.membership;
        let tag = ack_tag::<S>(membership.auth_key(), membership.digest());
        let ack = Ack { slot: membership.slot(), epoch: membership.epoch(), tag };
        self.out.send(&self.config.deployment, to, &Message::<S>::Ack(ack));
    }

    /// What does not hold is blamed. But a leader that opens terms we are past has forgotten (its memory is older than
    /// its group): show it the newest header, which it signed itself, so that it goes on from there.
    pub(super) fn behind(&mut self, now: Now, from: Peer, header: &Header<S>, offence: Offence) {
        let retry = self.config.timing.retry;
        if let Standing::Member(member) = &mut self.standing
            && offence == Offence::Protocol(Error::Stale)
            && header.core.epoch.term < member.membership.epoch().term
            && self.leaders.contains(&from)
            && member.listens <= now.monotonic
        {
            member.listens = now.monotonic + retry;
            let rekey = Rekey { header: member.header.clone(), entries: Vec::new() };
            self.out.send(&self.config.deployment, from, &Message::Rekey(rekey));
        }
        self.blame(from, offence);
    }
}
