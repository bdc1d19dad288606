//! Several leaders: whom to ask, whom to show oneself to, and proof against one of them.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, EquivocationProof, Header, Suite};
use quiver_message::{Message, Rekey};
use rand_core::CryptoRngCore;

use super::membership::member::KeptHeader;
use super::{Edge, EdgeEvent, Standing};
use crate::refused::encode_proof;
use quiver_machine::Backoff;
use quiver_machine::{Now, Offence, Peer};

impl<S: Suite> Edge<S> {
    /// This leader leads: it is asked first from now on.
    pub(super) fn prefer(&mut self, leader: Peer) {
        if let Some(place) = self.leaders.iter().position(|known| *known == leader) {
            self.leaders.swap(0, place);
        }
    }

    /// How long to wait before asking to join again, for a leader does not lead. If it says when it will, that is no reason
    /// to ask ever more rarely; meanwhile another may lead.
    pub(super) fn until_ready(
        &mut self,
        from: Peer,
        told: Duration,
        backoff: &mut Backoff,
        rng: &mut dyn CryptoRngCore,
    ) -> Duration {
        let several = self.leaders.len() > 1;
        let (wait, asks_it_again) = match self.told(told, rng) {
            None if several => (backoff.next(rng) / 8, false),
            None => (backoff.next(rng), true),
            Some(told) if several && told > self.config.timing.retry => (self.config.timing.retry, false),
            Some(told) => (told, true),
        };
        if !asks_it_again && self.leaders.first() == Some(&from) {
            self.leaders.rotate_left(1);
        }
        wait
    }

    /// The time that a refusal names, within reason, for nobody signs it; and spread, for thousands are told the same.
    fn told(&self, told: Duration, rng: &mut dyn CryptoRngCore) -> Option<Duration> {
        let timing = &self.config.timing;
        let named = told.min(timing.retry_max);
        // Up to a quarter more, in whole numbers: not every processor has others.
        let named = named + named / 4 * (rng.next_u32() >> 16) / 0xFFFF;
        (!told.is_zero()).then(|| named.max(timing.retry / 4))
    }

    /// The leader asked does not lead. It is shown the newest header we hold, and the next one is asked, though not as fast
    /// as refusals come; or the same one when it says that it will.
    pub(super) fn not_leading(&mut self, now: Now, from: Peer, told: Duration, rng: &mut dyn CryptoRngCore) {
        let retry = self.config.timing.retry;
        let pause = if self.leaders.len() > 1 { Some(retry / 4) } else { self.told(told, rng) };
        let Standing::Member(member) = &mut self.standing else { return };
        if let (Some(question), Some(pause)) = (&mut member.question, pause) {
            question.deadline = question.deadline.min(now.monotonic + pause);
        }
        if member.listens <= now.monotonic && self.leaders.contains(&from) {
            member.listens = now.monotonic + retry;
            let header = member.header.clone();
            self.send_header(from, &header);
        }
    }

    /// Shows a leader a header, which it or one like it signed.
    pub(super) fn send_header(&mut self, leader: Peer, header: &KeptHeader<S>) {
        if let Some(header) = header.header(&self.config.deployment) {
            let rekey = Message::Rekey(Rekey { header, part: None });
            self.out.send(&self.config.deployment, leader, &rekey);
        }
    }

    /// What a refused leader signs is as good as unsigned.
    pub(super) fn unless_refused(&self, header: &Header<S>) -> Result<(), Offence> {
        if self.refused.names(&header.core.leader) { Err(Offence::RefusedLeader) } else { Ok(()) }
    }

    /// Another header for the epoch held. If both are signed, whoever is reached learns of it.
    pub(super) fn contradicted(
        &mut self,
        now: Now,
        from: Peer,
        second: &Header<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        let first = self.member().and_then(|member| member.header.header(&self.config.deployment));
        let Some(first) = first else { return };
        let proof = EquivocationProof { first, second: second.clone() };
        let encoded = encode_proof(&self.config.deployment, &proof);
        if let (true, Some(proof)) = (self.equivocation(now, from, proof, rng), encoded) {
            for leader in &self.leaders {
                self.out.send_encoded(*leader, proof.clone());
            }
            self.out.send_encoded_to_group(proof);
        }
    }

    /// Proof that a leader signed two headers for one epoch: it is refused for good. Its group waits for a deputy's term,
    /// without a key. Says whether it was news.
    #[inline(never)]
    pub(super) fn equivocation(
        &mut self,
        now: Now,
        from: Peer,
        proof: EquivocationProof<S>,
        rng: &mut dyn CryptoRngCore,
    ) -> bool {
        // Known long since, or of a group that is none of our business: no curve arithmetic for it.
        let core = &proof.first.core;
        let concerned = self.wanted.as_ref() == Some(&core.group)
            || self.member().is_some_and(|member| *member.membership.group() == core.group);
        if !concerned || self.refused.names(&core.leader) {
            return false;
        }
        let (epoch, group) = (core.epoch, core.group.clone());
        let leader = match proof.verify(&self.config.deployment, &group) {
            Ok(leader) => leader,
            Err(error) => {
                self.blame(from, error);
                return false;
            }
        };
        if !self.refused.insert(leader.identity.serial, Vec::new()) {
            return false;
        }
        let led = self.leading().is_some_and(|leading| leading.identity.serial == leader.identity.serial);
        if let Standing::Member(member) = &mut self.standing
            && led
        {
            member.stand_still();
        }
        self.persist();
        self.out.event(EdgeEvent::Equivocation { leader: leader.identity.name, epoch });
        if led {
            // Whoever leads next is asked until it answers.
            self.catch_up(now, rng);
        }
        true
    }

    /// The leader that signed the epoch held.
    fn leading(&self) -> Option<DronePublicKey<S>> {
        let header = self.member()?.header.header(&self.config.deployment)?;
        Some(header.core.leader)
    }

    /// Leaders that do not lead may do so one day, and then they should know where we are. They are shown the spare point
    /// in a while, when they have heard that we are a member.
    pub(super) fn introduce_soon(&mut self, now: Now) {
        if self.leaders.len() > 1 && matches!(self.standing, Standing::Member(_)) {
            self.spares.introduce = Some(now.monotonic + self.config.timing.retry);
        }
    }

    pub(super) fn introduce(&mut self, rng: &mut dyn CryptoRngCore) {
        self.spares.introduce = None;
        // Restored and drawn pairs alike are durable by now.
        if self.spares.current.is_some() {
            let others = self.leaders.iter().skip(1).copied().collect::<Vec<_>>();
            self.send_spare(&others, rng);
        }
    }
}
