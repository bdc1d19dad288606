//! Other leaders of the same group: their headers, and proof against them.

use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{DronePublicKey, EquivocationProof, Error, Header, Slot, Suite};
use quiver_message::{Message, Rekey};
use rand_core::CryptoRngCore;

use super::backlog::Backlog;
use super::deputies::Deputies;
use super::links::Links;
use super::memory::{departed_change, epoch_change, refused_change};
use super::{Leader, LeaderEvent};
use crate::refused::encode_proof;
use quiver_machine::{Now, Offence, Peer, Via};

/// How long no further term is opened above somebody's who must not lead. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// How long at most; after as long without, the pause is the first one again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// Paces the terms that are opened because somebody went ahead whom nobody should follow.
#[derive(Debug, Default)]
pub(super) struct Outbidding {
    next: Duration,
    pause: Duration,
}

impl Outbidding {
    fn allows(&self, now: Now) -> bool {
        now.monotonic >= self.next
    }

    fn note(&mut self, now: Now) {
        let quiet = now.monotonic >= self.next.saturating_add(LONGEST_PAUSE);
        let pause = if quiet { FIRST_PAUSE } else { self.pause * 2 };
        self.pause = pause.clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.next = now.monotonic.saturating_add(self.pause);
    }
}

impl<S: Suite> Leader<S> {
    /// A header that somebody shows: if it validly belongs to a higher term, this leader leads no longer.
    ///
    /// If it is this leader's own, its memory is older than its group (a backup was restored), or somebody leads with a copy
    /// of it: it opens the next term, and says so.
    pub(super) fn rival(&mut self, now: Now, from: Peer, header: &Header<S>, rng: &mut dyn CryptoRngCore) {
        if let Some(offence) = self.discredits(&header.core.leader) {
            return self.went_ahead(now, from, header, offence, rng);
        }
        if let Some(proof) = self.contradiction(header) {
            return self.equivocation(now, from, proof, rng);
        }
        let before = self.memory.newest.map_or(0, |(epoch, _)| epoch.term);
        // Its own last one, from before a start, tells it nothing.
        let known = self.is_known(header);
        match self.hear_of(now, header) {
            Err(Offence::Protocol(Error::Stale)) if self.is_known(header) => {}
            Err(offence) => {
                // That keys have run out, which is looked at last, is no offence of who shows that they were there.
                let ran_out = now.unix < header.core.leader.identity.not_after;
                if offence != Offence::Protocol(Error::Expired) || !ran_out {
                    self.behind(now, from, header, offence);
                }
                self.lead_above(now, rng);
            }
            Ok(()) if self.is_this(&header.core.leader) => {
                if !known {
                    self.out.event(LeaderEvent::OwnHeader { epoch: header.core.epoch });
                }
                self.own_header(now, header, rng);
            }
            Ok(()) => {
                self.step_down(now, header, rng);
                self.note_departures(now, header);
                self.await_vacancy(now, header);
                if header.core.epoch.term > before {
                    self.turn_to(now, from);
                } else if self.via == Via::Peer || !known {
                    self.ask_soon(now, from);
                }
            }
        }
    }

    /// Our own header of an epoch that we do not remember.
    fn own_header(&mut self, now: Now, header: &Header<S>, rng: &mut dyn CryptoRngCore) {
        let led = self.lead.is_some();
        self.set_down();
        self.note_departures(now, header);
        // While it stands by, another may have led since.
        if led || self.config.timing.silence.is_none() {
            self.open_term(now, rng);
        }
    }

    /// Why nobody is to follow this leader, if so.
    fn discredits(&self, leader: &DronePublicKey<S>) -> Option<Offence> {
        let revoked = self.memory.revocations.names(leader).then_some(Offence::Protocol(Error::Revoked));
        if self.memory.refused.names(leader) { Some(Offence::RefusedLeader) } else { revoked }
    }

    /// A header of a leader that is refused or revoked. It tells us nothing, and whoever brings it is blamed.
    ///
    /// But a member that followed it before it heard of the proof or the list follows nothing that is not above (Failover,
    /// "Going ahead"). So what comes over a member's connection counts, and not more often than [`Outbidding`] says: the term
    /// is opened above, once for all who strayed so far, and the group is shown the proof, after which nobody strays again.
    fn went_ahead(
        &mut self,
        now: Now,
        from: Peer,
        header: &Header<S>,
        offence: Offence,
        rng: &mut dyn CryptoRngCore,
    ) {
        if self.lead.is_none() || !self.links.carries(from) {
            return self.blame(from, offence);
        }
        let newest = self.memory.newest.map(|(epoch, _)| epoch);
        if !self.outbidding.allows(now) || newest >= Some(header.core.epoch) {
            return;
        }
        let (deployment, list) = (&self.config.deployment, self.memory.revocations.list());
        match header.clone().verify(deployment, &self.config.group, newest, list, now.unix) {
            // Everything else about it holds.
            Ok(_) | Err(Error::Revoked | Error::Expired) => {}
            Err(error) => return self.blame(from, error),
        }
        self.remember_epoch(header);
        let leader = header.core.leader.clone();
        let proof = self.memory.refused.proof(&leader).map(<[u8]>::to_vec);
        self.lead_above(now, rng);
        self.tell_of_equivocation(&proof.unwrap_or_default());
    }

    fn remember_epoch(&mut self, header: &Header<S>) {
        let (epoch, digest) = (header.core.epoch, header.digest(&self.config.deployment));
        self.memory.newest = Some((epoch, digest));
        self.persist(&[epoch_change(epoch, digest)]);
    }

    /// Somebody went ahead of our term who does not lead, and some members with him: they follow nothing that is not above.
    fn lead_above(&mut self, now: Now, rng: &mut dyn CryptoRngCore) {
        let newest = self.memory.newest.map(|(epoch, _)| epoch);
        if self.lead.is_some() && newest > self.epoch() {
            self.outbidding.note(now);
            self.set_down();
            self.open_term(now, rng);
            self.announce();
            self.announce_to_group();
        }
    }

    /// Verifies a header of a newer epoch than any known, or of the newest one, and remembers it.
    ///
    /// That an epoch exists whose keys have run out is remembered too: the next term has to be above it, or nobody who held it
    /// would follow. Who leads remembers it, and so opens the next term, not more often than [`Outbidding`] says.
    pub(super) fn hear_of(&mut self, now: Now, header: &Header<S>) -> Result<(), Offence> {
        if self.memory.refused.names(&header.core.leader) {
            return Err(Offence::RefusedLeader);
        }
        let (deployment, list) = (&self.config.deployment, self.memory.revocations.list());
        let newest = self.memory.newest;
        if self.lead.is_none() && newest == Some((header.core.epoch, header.digest(deployment))) {
            // Known, perhaps from before a start, or as one that had run out: then it is verified here, so that it can be shown.
            if self.standby.seen.as_ref().is_none_or(|seen| seen.core.epoch != header.core.epoch) {
                header.clone().verify(deployment, &self.config.group, None, list, now.unix)?;
                self.standby.seen = Some(header.clone());
            }
            return Ok(());
        }
        let newest = newest.map(|(epoch, _)| epoch);
        let verified = match header.clone().verify(deployment, &self.config.group, newest, list, now.unix) {
            Err(Error::Expired) if self.lead.is_some() && !self.outbidding.allows(now) => {
                return Err(Error::Expired.into());
            }
            // Looked at last: everything else about it holds.
            Err(Error::Expired) if now.unix < header.core.leader.identity.not_after => None,
            verified => Some(verified?),
        };
        self.remember_epoch(header);
        if self.lead.is_none() {
            self.note_departures(now, header);
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
        let (deployment, list) = (&self.config.deployment, self.memory.revocations.list());
        let held = header.clone().verify(deployment, &self.config.group, None, list, now.unix);
        if let Ok(_) | Err(Error::Expired) = held {
            self.note_departures(now, header);
        }
        let another_leader = self.leaders.contains(&from) || self.deputies.peers().any(|peer| peer == from);
        if another_leader {
            if self.via == Via::Group {
                return;
            }
            if let Some(header) = self.newest_header().cloned() {
                let rekey = Rekey { header, part: None };
                self.out.send(&self.config.deployment, from, &Message::Rekey(rekey));
            }
            return;
        }
        match held {
            Ok(_) | Err(Error::Expired | Error::Revoked) => {}
            Err(error) => self.blame(from, error),
        }
    }

    /// Heeds who is out since the roster was copied, as a leader's header says, already verified. So a leave that a leader
    /// acknowledged, with a header, holds against its deputy too, if that header reaches it by anybody: members show theirs to
    /// leaders that do not lead. Who has a slot that somebody else was given since is out of it as well.
    ///
    /// Who leads by then puts them out with the next batch, unless they joined in its own term.
    fn note_departures(&mut self, now: Now, header: &Header<S>) {
        let core = &header.core;
        let with = match &self.lead {
            Some(lead) => lead.opened_with,
            None => self.memory.held.map(|(epoch, _)| epoch),
        };
        // Without a roster of before there is nothing to tell it.
        if with.is_none_or(|with| core.epoch <= with) || (core.removed.is_empty() && core.added.is_empty()) {
            return;
        }
        let slots = self.roster().iter().map(|(slot, _)| slot);
        let out = slots.filter(|slot| core.removed.contains(*slot) || core.added.contains(*slot));
        if let Some(lead) = &self.lead {
            let out: Vec<Slot> = out.filter(|slot| !lead.joined.contains(slot)).collect();
            if !out.is_empty() {
                self.leaves.extend(out);
                self.waiting.stir(now);
            }
            return;
        }
        let out = out.filter(|slot| !self.memory.is_departed(*slot, core.epoch));
        let out: Vec<Slot> = out.collect();
        if !out.is_empty() {
            self.memory.departed(&out, core.epoch);
            self.persist(&[departed_change(core.epoch, out)]);
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
    pub(super) fn set_down(&mut self) {
        let Some(lead) = self.lead.take() else { return };
        self.memory.roster = lead.leadership.roster().clone();
        self.memory.roster.forget_anonymous();
        self.close_gate();
        // As the records say.
        for serial in self.backlog.evictions().chain(self.backlog.barred()) {
            if let Some(slot) = self.memory.roster.evict(*serial) {
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
                self.hints.insert(public.identity.serial, peer);
            }
        }
        self.links = Links::default();
        self.relays.all_changed();
    }

    /// Whether this is our own identity, under whichever key.
    fn is_this(&self, leader: &DronePublicKey<S>) -> bool {
        let own = self.memory.keypair.as_ref().map(|own| own.public().identity.serial);
        own == Some(leader.identity.serial)
    }

    /// Another header for the newest epoch, by the same leader, under whichever of its keys.
    fn contradiction(&self, header: &Header<S>) -> Option<EquivocationProof<S>> {
        let known = self.newest_header()?;
        let same = known.core.epoch == header.core.epoch
            && known.core.leader.identity.serial == header.core.leader.identity.serial;
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
        if !self.memory.refused.insert(leader.identity.serial, encoded.clone()) {
            return;
        }
        self.persist(&[refused_change(&leader.identity.serial, &encoded)]);
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
        if self.is_this(leader) {
            if let Some(epoch) = self.epoch() {
                self.set_down();
                self.out.event(LeaderEvent::SteppedDown { term: epoch.term });
            }
        } else if self.lead.is_none() {
            let led = self.standby.seen.as_ref();
            let led = led.is_some_and(|seen| seen.core.leader.identity.serial == leader.identity.serial);
            if led {
                self.leaderless(now);
                self.tick_standby(now, rng);
            }
        }
    }
}
