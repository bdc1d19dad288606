//! Following the group from epoch to epoch.

use alloc::boxed::Box;

use quiver_ainq::{
    Deployment, DronePublicKey, Entry, Error, GroupContext, Header, Kind, Membership, Part, SparePair,
    StrategyKind, Suite, VerifiedHeader,
};
use quiver_message::{Ack, Message, Rekey};
use rand_core::CryptoRngCore;

use super::early_updates::{EarlyUpdate, builds_on};
use super::member::KeptHeader;
use crate::edge::{Edge, EdgeEvent, Member, Standing};
use crate::speech::{EpochFacts, Seat, Voice};
use quiver_machine::{Now, Offence, Peer, Via};

/// What a new header means for this member.
#[expect(clippy::large_enum_variant, reason = "short-lived, and most often the large one")]
pub(in crate::edge) enum Step<S: Suite> {
    /// The epoch held, once more.
    Known,
    /// A newer epoch, with its state.
    Newer(Membership<S>),
    /// Keys of the epoch held that were missing.
    Completed(Membership<S>),
    /// A newer epoch, to be taken up when the one that it builds on is there.
    Early(EarlyUpdate<S>),
    /// A newer epoch, but what came with its header does not hold.
    Spoilt(Error),
    /// We are out.
    Removed,
    /// Not to be reached from what we hold: join again.
    TooFar,
    /// Our entry is not there: ask for it.
    Ask,
}

impl<S: Suite> Edge<S> {
    #[inline(never)]
    pub(in crate::edge) fn rekeyed(
        &mut self,
        now: Now,
        (from, via): (Peer, Via),
        rekey: &mut Rekey<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        if !matches!(self.standing, Standing::Member(_)) {
            return;
        }
        match self.step(now, &mut rekey.header, rekey.part.as_ref()) {
            Err(Offence::Equivocation) => self.contradicted(now, from, &rekey.header, rng),
            Err(offence) => {
                // A genuine header, but an entry of no use: the leader is asked, for nobody signs entries.
                let asks = offence == Offence::Protocol(Error::WrongSpare);
                self.note_useless(from, &offence);
                if via == Via::Group {
                    // Anybody may publish what its leader signed long ago: that leader is shown nothing for it.
                    return self.blame(from, offence);
                }
                self.behind(now, from, &rekey.header, offence);
                if asks {
                    self.catch_up(now, rng);
                }
            }
            // No news: who publishes an epoch again is not to make all members acknowledge it again.
            Ok(Step::Known) if via == Via::Group => {}
            Ok(step) => self.take(now, from, step, &rekey.header, rng),
        }
    }

    /// Checks a header and works out what it means. Changes nothing, but that the leader's key in `header` remembers its Y.
    pub(in crate::edge) fn step(
        &self,
        now: Now,
        header: &mut Header<S>,
        part: Option<&Part>,
    ) -> Result<Step<S>, Offence> {
        let Standing::Member(member) = &self.standing else {
            return Err(Error::WrongGroup.into());
        };
        self.unless_refused(header)?;
        let deployment = &self.config.deployment;
        let (group, held) = (member.membership.group(), &member.membership);
        let list = self.revocations.list();
        if header.core.group == *group && header.core.epoch == held.epoch() {
            let known = header.digest(deployment) == *held.digest();
            let path = part.filter(|part| matches!(part, Part::Path(_)) && member.lacks_keys());
            if known && path.is_none() {
                return Ok(Step::Known);
            }
            let verified = header.clone().verify(deployment, group, None, list, now.unix)?;
            remember_leader(header, &verified, deployment);
            return match path {
                Some(path) if known => {
                    Ok(self.reach(member, &verified, None, path).map_or_else(Step::Spoilt, Step::Completed))
                }
                // Another header for the epoch held: proof against its signer, as it is signed.
                _ => Err(Offence::Equivocation),
            };
        }
        let verified = header.clone().verify(deployment, group, self.newest_in(group), list, now.unix)?;
        remember_leader(header, &verified, deployment);
        let tree = header.core.strategy == StrategyKind::Tree;
        match self.meaning(member, &verified, part) {
            // The header says that there is a newer epoch; only what came with it is of no use.
            Err(error) if tree && matches!(part, Some(Part::Delta(_) | Part::Path(_))) => {
                Ok(Step::Spoilt(error))
            }
            meaning => Ok(meaning?),
        }
    }

    pub(in crate::edge) fn meaning(
        &self,
        member: &Member<S>,
        header: &VerifiedHeader<S>,
        part: Option<&Part>,
    ) -> Result<Step<S>, Error> {
        let (core, held, slot) = (header.core(), &member.membership, member.membership.slot());
        let same_term = core.epoch.term == held.epoch().term;
        let tree = core.kind == Kind::Rekey && core.strategy == StrategyKind::Tree;
        if self.is_beyond_the_term(held, header) {
            return Ok(Step::TooFar);
        }
        if matches!(part, Some(Part::Delta(_) | Part::Path(_))) && !tree {
            return Err(Error::UnsupportedStrategy);
        }
        // Before any of them is kept: the header binds its wraps, whichever term it is of.
        if let Some(Part::Delta(delta)) = part
            && delta.root() != header.header().entries_root
        {
            return Err(Error::WrongWraps);
        }
        match (core.kind, part) {
            (Kind::Rekey, Some(Part::Delta(delta))) if !same_term || !builds_on(member, header) => {
                let removed = same_term && core.removed.contains(slot);
                let early = || Step::Early(EarlyUpdate { header: header.clone(), delta: delta.clone() });
                return Ok(if removed { Step::Removed } else { early() });
            }
            (Kind::Rekey, _) if !same_term => return Ok(Step::Ask),
            (Kind::Rekey, _) if core.removed.contains(slot) => return Ok(Step::Removed),
            (Kind::Open, _) if core.absent.contains(slot) => return Ok(Step::TooFar),
            _ => {}
        }
        let Some(part) = part else { return Ok(Step::Ask) };
        let spare = match part {
            // Nobody signs entries: another member's says nothing about us.
            Part::Entry(entry) if entry.slot != slot => return Err(Error::WrongSlot),
            Part::Entry(entry) => self.spare_for(core.kind, entry)?,
            _ => None,
        };
        self.reach(member, header, spare, part).map(Step::Newer)
    }

    /// The spare pair that an entry asks for; `None` if it asks for none.
    fn spare_for(&self, kind: Kind, entry: &Entry) -> Result<Option<&SparePair<S>>, Error> {
        match entry.q {
            Some(_) if kind == Kind::Rekey => Err(Error::Malformed("entry")),
            None => Ok(None),
            // Never published by us, or gone: the entry was altered, or the leader's copy of the group is old. Which of the two
            // shows when the leader is asked.
            Some(q) => self.spares.numbered(q).map(Some).ok_or(Error::WrongSpare),
        }
    }

    /// What the membership becomes with a header and what came with it.
    fn reach(
        &self,
        member: &Member<S>,
        header: &VerifiedHeader<S>,
        spare: Option<&SparePair<S>>,
        part: &Part,
    ) -> Result<Membership<S>, Error> {
        let core = header.core();
        if core.kind == Kind::Rekey || self.is_anonymous() {
            return member.membership.advance_in_term(header, part);
        }
        let keypair = self.keypair.as_ref().ok_or(Error::MissingEntry)?;
        let context = GroupContext {
            deployment: self.config.deployment.clone(),
            group: core.group.clone(),
            leader: core.leader.clone(),
        };
        member.membership.advance(&context, keypair, spare, header, part)
    }

    pub(in crate::edge) fn take(
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
            Step::Completed(membership) => self.completed(now, from, membership, header, rng),
            Step::Early(early) => {
                self.prefer(from);
                self.keep_early_update(now, early, rng);
            }
            Step::Spoilt(error) => {
                self.blame(from, error);
                self.catch_up(now, rng);
            }
            Step::Removed => self.removed(now, rng),
            Step::TooFar => self.rejoin(now, rng),
            Step::Ask => {
                self.prefer(from);
                self.catch_up(now, rng);
            }
        }
    }

    /// Puts the new state in the old one's place.
    pub(in crate::edge) fn advance(
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
        let asked = member.question.is_some();
        // Who skipped an epoch cannot know who was removed in it: then the former key falls silent at once.
        let core = &header.core;
        let overlap = core.removed.is_empty() && core.prev == *member.membership.digest();
        member.membership = membership;
        member.header = KeptHeader::new(header, &self.config.deployment);
        if new_term {
            self.spares.used(now, rng);
            self.prefer(from);
        }
        self.activated(now, from, header, overlap, rng);
        if new_term {
            self.publish_spare(now, rng);
        }
        if new_term && asked {
            // Perhaps the term went on since, and what follows gets lost.
            self.catch_up(now, rng);
        }
        self.apply_early_update(now, from, rng);
    }

    /// The epoch is the one held, and nothing of it is missing any more.
    pub(in crate::edge) fn completed(
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
        let had_key = member.membership.group_key().is_some();
        member.membership = membership;
        if had_key {
            self.persist();
        } else {
            self.activated(now, from, header, false, rng);
        }
        self.apply_early_update(now, from, rng);
    }

    /// A new epoch is held: durable first, then in use, then acknowledged.
    #[inline(never)]
    pub(in crate::edge) fn activated(
        &mut self,
        now: Now,
        from: Peer,
        header: &Header<S>,
        overlap: bool,
        rng: &mut dyn CryptoRngCore,
    ) {
        let core = &header.core;
        self.history.accept(&core.group, core.epoch);
        self.expect(&core.leader);
        self.persist();
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        member.question = None;
        member.fruitless = 0;
        member.backoff.reset();
        member.valid(now, core.valid_until);
        let (epoch, digest) = (member.membership.epoch(), *member.membership.digest());
        let slot = member.membership.slot();
        let former = member.voice.take().filter(|_| overlap);
        if let Some(traffic) = member.membership.take_traffic() {
            // Of the membership: to hash the leader's key anew with each epoch costs an eighth of following it.
            let facts = EpochFacts::new(header, digest, *member.membership.leader(), self.senders);
            let voice = Voice::new(traffic, facts, Seat { slot, boot_no: self.boot_no }, rng);
            let mut voice = voice;
            voice.overlap(former, now.monotonic + self.config.timing.overlap);
            member.voice = Some(voice);
        }
        let anchored = member.anchored;
        self.acknowledge(from);
        if anchored {
            self.out.event(EdgeEvent::KeyActivated { epoch, digest, slot });
        } else {
            // Signed, but perhaps not the newest there is: find out before using it.
            self.catch_up(now, rng);
        }
        if core.revocation_number > self.revocations.number() && !self.is_anonymous() {
            let query = Message::<S>::RevocationQuery(self.revocations.query());
            self.out.send(&self.config.deployment, from, &query);
        }
    }

    /// This leader is likely to speak next.
    pub(in crate::edge) fn expect(&mut self, leader: &DronePublicKey<S>) {
        let expected = self.expected.as_deref().filter(|expected| *expected == leader);
        if expected.is_none_or(|expected| !expected.remembers_implicit(&self.config.deployment)) {
            self.expected = Some(Box::new(leader.clone()));
        }
    }

    /// To a leader, from whomever the epoch came.
    pub(in crate::edge) fn acknowledge(&mut self, from: Peer) {
        let leader = self.leaders.iter().find(|leader| **leader == from).or(self.leaders.first()).copied();
        let Some(to) = leader else { return };
        let Some(member) = self.member().filter(|member| member.membership.group_key().is_some()) else {
            return;
        };
        let membership = &member.membership;
        let (slot, epoch) = (membership.slot(), membership.epoch());
        let ack = Ack { slot, epoch, tag: membership.ack_tag() };
        self.out.send(&self.config.deployment, to, &Message::<S>::Ack(ack));
    }

    /// What does not hold is blamed. But a leader that opens terms we are past has forgotten (its memory is older than
    /// its group), and so has one that answers with less than we held when we asked: show it the newest header, which it
    /// signed itself, so that it goes on from there.
    pub(in crate::edge) fn behind(&mut self, now: Now, from: Peer, header: &Header<S>, offence: Offence) {
        let retry = self.config.timing.retry;
        if let Standing::Member(member) = &mut self.standing
            && offence == Offence::Protocol(Error::Stale)
            && (header.core.epoch.term < member.membership.epoch().term
                || member.question.as_ref().is_some_and(|question| header.core.epoch < question.held))
            && self.leaders.contains(&from)
            && member.listens <= now.monotonic
        {
            member.listens = now.monotonic + retry;
            let header = member.header.clone();
            self.send_header(from, &header);
        }
        self.blame(from, offence);
    }
}

/// The leader's key in a header remembers what it remembers in the same header verified.
fn remember_leader<S: Suite>(
    header: &mut Header<S>,
    verified: &VerifiedHeader<S>,
    deployment: &Deployment<S>,
) {
    if !header.core.leader.remembers_implicit(deployment) {
        header.core.leader.clone_from(&verified.core().leader);
    }
}
