//! Finding out which epoch is current: after a start, after a gap, and when the key runs out.

use alloc::boxed::Box;
use core::time::Duration;

use quiver_ainq::{Error, HeaderCore, Part, StrategyKind, Suite, catch_up_tag, fresh_tag};
use quiver_crypto::ct_eq;
use quiver_message::{CatchUpReply, CatchUpRequest, Message};
use rand_core::CryptoRngCore;

use super::member::PendingRequest;
use super::rekey::Step;
use crate::edge::{Edge, EdgeEvent, Standing};
use crate::statements;
use quiver_machine::due;
use quiver_machine::{Now, Offence, Peer};

/// After how many answers that are of no use a member joins again. Nobody signs such an answer as a whole, so one is no
/// reason; who can alter every one of them could as well refuse us in the leader's name.
const FRUITLESS: u32 = 3;

impl<S: Suite> Edge<S> {
    /// Asks the first connected leader which epoch is current, unless a question is under way.
    pub(in crate::edge) fn catch_up(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let (Some(leader), Standing::Member(member)) = (self.leaders.first().copied(), &mut self.standing)
        else {
            return;
        };
        if member.question.as_ref().is_some_and(|question| question.deadline > now.monotonic) {
            return;
        }
        member.questions = member.questions.saturating_add(1);
        let mut number = [0; 16];
        rng.fill_bytes(&mut number);
        if let Some((head, rest)) = number.split_first_chunk_mut::<4>() {
            *head = self.boot_no.to_be_bytes();
            if let Some(count) = rest.first_chunk_mut::<4>() {
                let lacks_keys = u32::from(member.lacks_keys());
                *count = (member.questions.wrapping_shl(1) | lacks_keys).to_be_bytes();
            }
        }
        let deadline = now.monotonic + member.backoff.next(rng);
        let membership = &member.membership;
        let question = PendingRequest { number, deadline, held: membership.epoch(), fruitless: false };
        member.question = Some(Box::new(question));
        let tag = catch_up_tag::<S>(membership.auth_key(), &number, membership.digest());
        let (group, slot, held) = (membership.group().clone(), membership.slot(), *membership.digest());
        let request = CatchUpRequest { group, slot, number, held, tag };
        self.out.send(&self.config.deployment, leader, &Message::<S>::CatchUpRequest(request));
    }

    #[inline(never)]
    pub(in crate::edge) fn caught_up(
        &mut self,
        now: Now,
        from: Peer,
        reply: &mut CatchUpReply<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let Standing::Member(member) = &self.standing else {
            return;
        };
        if member.question.as_ref().is_none_or(|question| question.number != reply.number) {
            return;
        }
        if matches!(&reply.part, Some(Part::Path(path)) if path.r != reply.number) {
            return self.blame(from, Error::Replay);
        }
        match self.step(now, &mut reply.header, reply.part.as_ref()) {
            Err(Offence::Equivocation) => self.contradicted(now, from, &reply.header, rng),
            Err(offence) => {
                self.note_useless(from, &offence);
                self.behind(now, from, &reply.header, offence);
            }
            Ok(Step::Spoilt(error)) => {
                let offence = Offence::Protocol(error);
                self.note_useless(from, &offence);
                self.blame(from, offence);
            }
            Ok(Step::Known) => self.confirmed(now, from, reply),
            Ok(step @ (Step::Newer(_) | Step::Completed(_))) => self.brought_up(now, from, step, reply, rng),
            Ok(step @ (Step::Removed | Step::TooFar | Step::Early(_))) => {
                self.take(now, from, step, &reply.header, rng);
            }
            Ok(Step::Ask) if self.same_term(&reply.header.core) => {
                self.blame(from, Offence::Protocol(Error::MissingEntry));
            }
            // Of a term whose opening we missed and that is not to be had any more.
            Ok(Step::Ask) => self.rejoin(now, rng),
        }
    }

    /// The reply brings the keys of the current epoch, if the leader made it for this question.
    fn brought_up(
        &mut self,
        now: Now,
        from: Peer,
        step: Step<S>,
        reply: &CatchUpReply<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let (Step::Newer(membership) | Step::Completed(membership)) = &step else {
            return;
        };
        let digest = reply.header.digest(&self.config.deployment);
        if !ct_eq(&fresh_tag::<S>(membership.auth_key(), &digest, &reply.number), &reply.tag) {
            return self.blame(from, Offence::Mac("CatchUpReply"));
        }
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        let speaks_up = !member.anchored && member.membership.group_key().is_some();
        member.anchored = true;
        member.answered(now, self.config.timing.probe);
        member.question = None;
        member.backoff.reset();
        let completed = matches!(step, Step::Completed(_));
        let (epoch, digest, slot) =
            (member.membership.epoch(), *member.membership.digest(), member.membership.slot());
        self.take(now, from, step, &reply.header, rng);
        // With its path complete the member may have gone on to an epoch whose wraps it had kept, and said so.
        let current = self.member().is_some_and(|member| member.membership.epoch() == epoch);
        if completed && speaks_up && current {
            self.out.event(EdgeEvent::KeyActivated { epoch, digest, slot });
        }
    }

    /// What the leader asked tells us is not made for us: its copy of the group has another member in our slot, or one of
    /// our spare points that we have no more, or we have been away for too long.
    pub(in crate::edge) fn note_useless(&mut self, from: Peer, offence: &Offence) {
        const SIGNS: [Error; 4] = [Error::WrongTag, Error::SealBroken, Error::WrongSpare, Error::Exhausted];
        if let Standing::Member(member) = &mut self.standing
            && let Some(question) = &mut member.question
            && self.leaders.first() == Some(&from)
        {
            question.fruitless |= matches!(offence, Offence::Protocol(error) if SIGNS.contains(error));
        }
    }

    fn same_term(&self, core: &HeaderCore<S>) -> bool {
        self.member().is_some_and(|member| member.membership.epoch().term == core.epoch.term)
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
        if membership.follows() == StrategyKind::Tree
            && statements::lacks_keys(&reply.number)
            && member.lacks_keys()
        {
            // The question said so; it is asked again when it is due.
            return self.blame(from, Error::MissingPath);
        }
        let (epoch, digest, slot) = (membership.epoch(), *membership.digest(), membership.slot());
        // Without the key (it was lost with a restart) the leader makes a new epoch soon; ask again if it does not.
        let waits_for_key = membership.group_key().is_none();
        let news = !member.synced();
        member.anchored = true;
        member.answered(now, self.config.timing.probe);
        member.fruitless = 0;
        let void = now.unix >= reply.header.core.valid_until;
        member.question.take_if(|_| !waits_for_key && !void);
        if !void {
            member.valid(now, reply.header.core.valid_until);
            member.backoff.reset();
        }
        if let Some(question) = member.question.as_mut().filter(|_| waits_for_key) {
            question.deadline = now.monotonic + Duration::from_secs(12);
        }
        if news && !waits_for_key {
            self.out.event(EdgeEvent::KeyActivated { epoch, digest, slot });
        }
        self.acknowledge(from);
    }

    pub(in crate::edge) fn tick_member(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let Standing::Member(member) = &mut self.standing else {
            return;
        };
        if let Some(voice) = &mut member.voice {
            voice.tick(now);
        }
        let late = due(member.runs_out, now.monotonic);
        if late {
            // A key that ran out neither speaks nor listens nor is exported.
            member.runs_out = None;
            member.voice = None;
            member.membership.forget_key();
        }
        let question = member.question.take_if(|question| question.deadline <= now.monotonic);
        let unanswered = question.is_some();
        if let Some(question) = question {
            member.fruitless += u32::from(question.fruitless);
            if member.fruitless >= FRUITLESS {
                return if self.wanted.is_some() { self.rejoin(now, rng) } else { self.left() };
            }
            if self.leaders.len() > 1 {
                self.leaders.rotate_left(1);
            }
        }
        let probes = due(member.probe, now.monotonic);
        if probes {
            member.probe = self.config.timing.probe.map(|probe| now.monotonic.saturating_add(probe));
        }
        let leaves = due(member.leaving, now.monotonic);
        if leaves {
            self.send_leave(now, rng);
        }
        if leaves || late || unanswered || probes {
            self.catch_up(now, rng);
        }
    }
}
