//! Other leaders of the same group: their headers, and proof against them.

use quiver_ainq::{DronePublicKey, EquivocationProof, Error, Header, Suite};
use quiver_message::{Message, Rekey};
use rand_core::CryptoRngCore;

use super::backlog::Backlog;
use super::deputies::Deputies;
use super::links::Links;
use super::memory::{epoch_change, refused_change};
use super::{Leader, LeaderEvent};
use crate::refused::encode_proof;
use crate::{Now, Offence, Peer};

impl<S: Suite> Leader<S> {
    /// A header that somebody shows: if it validly belongs to a higher term, this leader leads no longer.
    ///
    /// If it is this leader's own, its memory is older than its group (a backup was restored), or somebody leads with a copy
    /// of it: it opens the next term, and says so.
    pub(super) fn rival(&mut self, now: Now, from: Peer, header: &Header<S>, rng: &mut dyn CryptoRngCore) {
        if let Some(proof) = self.contradiction(header) {
            return self.equivocation(now, from, proof, rng);
        }
        let before = self.memory.newest.map_or(0, |(epoch, _)| epoch.term);
        // Its own last one, from before a start, tells it nothing.
        let known = self.is_known(header);
        match self.hear_of(now, header) {
            Err(Offence::Protocol(Error::Stale)) if self.is_known(header) => {}
            Err(offence) => {
                // That keys have run out is no offence of who shows that they were there.
                if offence != Offence::Protocol(Error::Expired) || !self.is_known(header) {
                    self.behind(now, from, header, offence);
                }
                self.lead_above(now, rng);
            }
            Ok(()) if self.memory.keypair.as_ref().is_some_and(|own| *own.public() == header.core.leader) => {
                if !known {
                    self.out.event(LeaderEvent::OwnHeader { epoch: header.core.epoch });
                }
                self.own_header(now, rng);
            }
            Ok(()) => {
                self.step_down(now, header, rng);
                self.await_vacancy(now, header);
                if header.core.epoch.term > before {
                    self.turn_to(now, from);
                } else {
                    self.ask_soon(now, from);
                }
            }
        }
    }

    /// Our own header of an epoch that we do not remember.
    fn own_header(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let led = self.lead.is_some();
        self.set_down();
        // While it stands by, another may have led since.
        if led || self.config.timing.silence.is_none() {
            self.open_term(now, rng);
        }
    }

    /// A refused leader went ahead of our term, and some members with it: they follow nothing that is not above.
    fn lead_above(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let newest = self.memory.newest.map(|(epoch, _)| epoch);
        if self.lead.is_some() && newest > self.epoch() {
            self.set_down();
            self.open_term(now, rng);
            self.announce();
            self.announce_to_group();
        }
    }

    /// Verifies a header of a newer epoch than any known, or of the newest one, and remembers it.
    ///
    /// That a refused leader's epoch exists is remembered too, or one whose keys have run out: the next term has to be
    /// above it, or nobody who held it would follow.
    pub(super) fn hear_of(&mut self, now: Now, header: &Header<S>) -> Result<(), Offence> {
        let refused = self.memory.refused.names(&header.core.leader);
        let (deployment, list) = (&self.config.deployment, self.memory.revocations.list());
        let newest = self.memory.newest;
        if self.lead.is_none() && newest == Some((header.core.epoch, header.digest(deployment))) {
            if refused {
                return Err(Offence::RefusedLeader);
            }
            // Known, perhaps from before a start, or as one that had run out: then it is verified here, so that it can be shown.
            if self.standby.seen.as_ref().is_none_or(|seen| seen.core.epoch != header.core.epoch) {
                header.clone().verify(deployment, &self.config.group, None, list, now.unix)?;
                self.standby.seen = Some(header.clone());
            }
            return Ok(());
        }
        let newest = newest.map(|(epoch, _)| epoch);
        let verified = match header.clone().verify(deployment, &self.config.group, newest, list, now.unix) {
            // Looked at last: everything else about it holds.
            Err(Error::Expired) if now.unix < header.core.leader.identity.not_after => None,
            verified => Some(verified?),
        };
        let (epoch, digest) = (header.core.epoch, header.digest(deployment));
        self.memory.newest = Some((epoch, digest));
        self.persist(&[epoch_change(epoch, digest)]);
        if refused {
            return Err(Offence::RefusedLeader);
        }
        self.standby.seen = Some(verified.ok_or(Error::Expired)?.into_header());
        Ok(())
    }

    /// Whether it is the newest header we know ourselves.
    fn is_known(&self, header: &Header<S>) -> bool {
        self.memory.newest == Some((header.core.epoch, header.digest(&self.config.deployment)))
    }

    /// The newest header known, whoever signed it.
    pub(super) fn newest_header(&self) -> Option<&Header<S>> {
        match &self.lead {
            Some(lead) => Some(&lead.now.header),
            None => self.standby.seen.as_ref(),
        }
    }

    /// A leader that shows us a term that is past is shown the present one. A member may well know no newer header; anybody
    /// is blamed for one that does not hold.
    fn behind(&mut self, now: Now, from: Peer, header: &Header<S>, offence: Offence) {
        if offence != Offence::Protocol(Error::Stale) {
            return self.blame(from, offence);
        }
        let another_leader = self.leaders.contains(&from) || self.deputies.peers().any(|peer| peer == from);
        if another_leader {
            if let Some(header) = self.newest_header().cloned() {
                let rekey = Rekey { header, part: None };
                self.out.send(&self.config.deployment, from, &Message::Rekey(rekey));
            }
            return;
        }
        let (deployment, list) = (&self.config.deployment, self.memory.revocations.list());
        let held = header.clone().verify(deployment, &self.config.group, None, list, now.unix);
        match held {
            Ok(_) | Err(Error::Expired | Error::Revoked) => {}
            Err(error) => self.blame(from, error),
        }
    }

    /// Another leader leads. Its header goes to the members that we reached, so that they ask it for their entries.
    fn step_down(&mut self, now: Now, header: &Header<S>, rng: &mut dyn CryptoRngCore) {
        if self.lead.is_none() {
            return;
        }
        self.hand_over_evictions(rng);
        self.set_down();
        self.out.event(LeaderEvent::SteppedDown { term: header.core.epoch.term });
        self.overruled();
        self.begin_standby(now);
        let rekey = Message::Rekey(Rekey { header: header.clone(), part: None });
        let message = rekey.encode(&self.config.deployment);
        for peer in self.hints.peers() {
            self.out.send_encoded(peer, message.clone());
        }
        self.out.send_encoded_to_group(message);
    }

    /// What belongs to leading goes; what is public stays.
    fn set_down(&mut self) {
        let Some(lead) = self.lead.take() else { return };
        self.memory.roster = lead.leadership.roster().clone();
        self.memory.roster.forget_anonymous();
        self.close_gate();
        // As the records say.
        for handle in self.backlog.evictions() {
            if let Some(slot) = self.memory.roster.evict(*handle) {
                self.memory.remove_spare(slot);
            }
        }
        self.leaves.clear();
        self.restart_renewal = None;
        self.waiting.abandon();
        self.backlog = Backlog::new();
        self.deputies = Deputies::new();
        self.links_to_hints();
    }

    fn links_to_hints(&mut self) {
        for (slot, peer) in self.links.reached() {
            if let Some(public) = self.memory.roster.get(slot) {
                self.hints.insert(public.handle(), peer);
            }
        }
        self.links = Links::default();
    }

    /// Another header for the newest epoch, by the same leader.
    fn contradiction(&self, header: &Header<S>) -> Option<EquivocationProof<S>> {
        let known = self.newest_header()?;
        let same = known.core.epoch == header.core.epoch && known.core.leader == header.core.leader;
        let deployment = &self.config.deployment;
        (same && known.digest(deployment) != header.digest(deployment))
            .then(|| EquivocationProof { first: known.clone(), second: header.clone() })
    }

    /// Proof that a leader contradicted itself, found or told. It is refused for good, and whoever reaches others tells them.
    pub(super) fn equivocation(
        &mut self,
        now: Now,
        from: Peer,
        proof: EquivocationProof<S>,
        rng: &mut dyn CryptoRngCore,
    ) {
        // Known long since: no curve arithmetic for it.
        if self.memory.refused.names(&proof.first.core.leader) {
            return;
        }
        let encoded = encode_proof(&self.config.deployment, &proof);
        let epoch = proof.first.core.epoch;
        let leader = match proof.verify(&self.config.deployment, &self.config.group) {
            Ok(leader) => leader,
            Err(error) => return self.blame(from, error),
        };
        let encoded = encoded.unwrap_or_default();
        if !self.memory.refused.insert(leader.handle(), encoded.clone()) {
            return;
        }
        self.persist(&[refused_change(&leader.handle(), &encoded)]);
        self.out.event(LeaderEvent::Equivocation { leader: leader.identity.name.clone(), epoch });
        self.tell_of_equivocation(&encoded);
        self.go_on_without(now, &leader, rng);
    }

    fn tell_of_equivocation(&mut self, proof: &[u8]) {
        if proof.is_empty() {
            return;
        }
        for peer in self.kgcs.iter().chain(&self.leaders) {
            self.out.send_encoded(*peer, proof.to_vec());
        }
        self.out.send_encoded_to_group(proof.to_vec());
    }

    /// If it led, its deputies take over, one after the other; if it was ourselves, we lead no more.
    fn go_on_without(&mut self, now: Now, leader: &DronePublicKey<S>, rng: &mut dyn CryptoRngCore) {
        let own = self.memory.keypair.as_ref().is_some_and(|own| own.public() == leader);
        if own {
            if let Some(epoch) = self.epoch() {
                self.set_down();
                self.out.event(LeaderEvent::SteppedDown { term: epoch.term });
            }
        } else if self.lead.is_none() {
            let led = self.standby.seen.as_ref().is_some_and(|seen| seen.core.leader == *leader);
            if led {
                self.leaderless(now);
                self.tick_standby(now, rng);
            }
        }
    }
}
