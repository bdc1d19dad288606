//! Verifying those who wait: the first of a connection at once, the others together, all signatures in one product.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Element, Error, Handle, Join, Label, SignedItem, Suite, verify_batch_implicit};
use quiver_message::Reason;
use rand_core::CryptoRngCore;

use super::memory::Change;
use super::waiting::Candidate;
use super::{Leader, LeaderEvent};
use quiver_machine::Now;

/// A drone that waits to join, with what the epoch needs of it.
pub(super) type Vetted<S> = (Candidate<S>, Join<S>);

/// How many joins, some of which are forged, are checked one by one.
const ONE_BY_ONE: usize = 8;
/// How much evidence against a single KGC is kept.
const MAX_EVIDENCE: usize = 64;

impl<S: Suite> Leader<S> {
    /// Everyone who waited and whose signatures verify, once each (the latest request counts), as many as fit.
    pub(super) fn vetted(&mut self, now: Now, rng: &mut dyn CryptoRngCore) -> Vec<Vetted<S>> {
        let mut joins = Vec::with_capacity(self.waiting.len());
        for candidate in self.waiting.take(now) {
            // Much may have happened while it waited.
            if let Err(reason) = self.may_join(now, &candidate.request) {
                self.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO);
                continue;
            }
            let (drone, ephemeral) = (candidate.request.drone.clone(), candidate.request.ephemeral);
            let join = match candidate.implicit {
                Some(implicit) => Join::with_implicit(drone, implicit, ephemeral),
                None => Join::new(&self.config.deployment, drone, ephemeral),
            };
            match join {
                Ok(join) => joins.push((candidate, join)),
                Err(error) => self.turn_away(&candidate, error),
            }
        }
        let signed = self.signed(joins, rng);
        let mut latest = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for vetted in signed {
            let (handle, serial) = (vetted.0.request.drone.handle(), vetted.0.request.drone.identity.serial);
            let before = *seen.entry(serial).or_insert(handle);
            if self.first_key(&vetted.0, handle, before) {
                latest.insert(handle, vetted);
            }
        }
        self.fitting(latest.into_values().collect())
    }

    /// Checks both signatures of a request. Gives the drone's Y.
    pub(super) fn verify_join(&self, candidate: &Candidate<S>) -> Result<Element<S>, Error> {
        let (deployment, request) = (&self.config.deployment, &candidate.request);
        let (public, spare) = (&request.drone, &request.spare);
        self.count_checks(2);
        let implicit = public.implicit(deployment)?;
        let statement = &candidate.statement;
        request.signature.verify_implicit(deployment, public, &implicit, Label::Join, statement)?;
        spare.verify_implicit(deployment, &self.config.group, public, &implicit)?;
        Ok(implicit)
    }

    /// Those whose signatures verify; the others are turned away.
    fn signed(&mut self, joins: Vec<Vetted<S>>, rng: &mut dyn CryptoRngCore) -> Vec<Vetted<S>> {
        let unverified: Vec<(usize, &Vetted<S>)> =
            joins.iter().enumerate().filter(|(_, (candidate, _))| candidate.implicit.is_none()).collect();
        let forged: BTreeSet<usize> = if self.all_signed(&unverified, rng) {
            BTreeSet::new()
        } else {
            self.forged(&unverified, rng).into_iter().collect()
        };
        let mut signed = Vec::with_capacity(joins.len());
        for (place, vetted) in joins.into_iter().enumerate() {
            if forged.contains(&place) {
                self.turn_away(&vetted.0, Error::InvalidSignature);
            } else {
                signed.push(vetted);
            }
        }
        signed
    }

    /// Finds the forged ones among joins that do not all verify. Halving finds the only one soon; where both halves are bad, or
    /// few are left, one by one costs less. So it is never more than four checks for each.
    fn forged(&self, joins: &[(usize, &Vetted<S>)], rng: &mut dyn CryptoRngCore) -> Vec<usize> {
        let (first, second) = joins.split_at(joins.len() / 2);
        if joins.len() > ONE_BY_ONE {
            match (self.all_signed(first, rng), self.all_signed(second, rng)) {
                (true, _) => return self.forged(second, rng),
                (_, true) => return self.forged(first, rng),
                (false, false) => {}
            }
        }
        let forged = joins.iter().filter(|(_, (candidate, _))| self.verify_join(candidate).is_err());
        forged.map(|(place, _)| *place).collect()
    }

    fn all_signed(&self, joins: &[(usize, &Vetted<S>)], rng: &mut dyn CryptoRngCore) -> bool {
        self.count_checks(2 * joins.len());
        let group = &self.config.group;
        let spares: Vec<Vec<u8>> =
            joins.iter().map(|(_, (c, _))| c.request.spare.message(group, &c.request.drone)).collect();
        let mut items = Vec::with_capacity(joins.len() * 2);
        let mut implicit = Vec::with_capacity(joins.len() * 2);
        for ((_, (candidate, join)), spare) in joins.iter().zip(&spares) {
            let (request, public) = (&candidate.request, &candidate.request.drone);
            let (message, signature) = (&candidate.statement, &request.signature);
            items.push(SignedItem { public, label: Label::Join, message, signature });
            let (message, signature) = (spare, &request.spare.signature);
            items.push(SignedItem { public, label: Label::Spare, message, signature });
            implicit.extend([*join.implicit(), *join.implicit()]);
        }
        verify_batch_implicit(&self.config.deployment, &items, &implicit, rng)
    }

    /// Tests count the signatures that are checked.
    #[cfg(test)]
    fn count_checks(&self, signatures: usize) {
        self.waiting.checks.set(self.waiting.checks.get() + signatures);
    }

    #[cfg(not(test))]
    const fn count_checks(&self, _: usize) {}

    /// Whether this is the first key seen for its identity. A second one that signs validly is refused.
    ///
    /// Where one KGC issues, it issued this one too, though it binds a token to one key for ever: the request is kept as evidence
    /// against it. Of a quorum every drone can make itself a second key, which says nothing against anybody but the drone.
    fn first_key(&mut self, candidate: &Candidate<S>, handle: Handle, before: Handle) -> bool {
        let drone = &candidate.request.drone;
        let pinned = self.memory.pins.get(&drone.identity.serial).copied().unwrap_or(before);
        if pinned == handle {
            return true;
        }
        let evident = !self.config.kgcs.is_quorum();
        if evident && self.memory.evidence.len() < MAX_EVIDENCE {
            let mut evidence = candidate.statement.clone();
            evidence.extend_from_slice(&candidate.request.signature.encode());
            self.persist(&[Change::Evidence(evidence.clone())]);
            self.memory.evidence.push(evidence);
        }
        self.out.event(LeaderEvent::SecondKey { name: drone.identity.name.clone(), handle, evident });
        self.refuse(candidate.peer, Reason::NotAuthorised, &candidate.nonce, Duration::ZERO);
        false
    }

    fn fitting(&mut self, mut joins: Vec<Vetted<S>>) -> Vec<Vetted<S>> {
        let members = self.roster().len() + self.backlog.joins();
        let room = (self.config.max_members as usize).saturating_sub(members);
        for (candidate, _) in joins.split_off(room.min(joins.len())) {
            let wait = self.config.timing.batching_max;
            self.refuse(candidate.peer, Reason::Full, &candidate.nonce, wait);
        }
        joins
    }

    pub(super) fn turn_away(&mut self, candidate: &Candidate<S>, error: Error) {
        self.refuse(candidate.peer, Reason::BadSignature, &candidate.nonce, Duration::ZERO);
        self.blame(candidate.peer, error);
    }
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{DroneKeypair, Role, SparePair, StrategyKind};
    use quiver_message::{JoinHello, JoinRequest, Message};

    use super::super::crowd::{Crowd, S, identity, issue, name};
    use super::super::{LeaderCommand, LeaderRecord};
    use super::*;
    use crate::statements;
    use quiver_enrolment::Kgcs;
    use quiver_machine::{Input, Misdeed, Output, Peer, Via};

    type Outputs = Vec<Output<LeaderEvent, LeaderRecord>>;

    fn drone(crowd: &mut Crowd, number: u8) -> DroneKeypair<S> {
        let identity = identity([100 + number; 16], &alloc::format!("newcomer-{number}"), Role::Edge);
        issue(&crowd.master, &crowd.deployment, &identity, &mut crowd.rng)
    }

    fn received(crowd: &mut Crowd, peer: u64, message: &Message<S>) -> Outputs {
        let bytes = message.encode(&crowd.deployment);
        crowd.input(Input::Received { from: Peer(peer), via: Via::Peer, bytes: &bytes })
    }

    /// A drone's hello and request over a connection; the signature is of something else if it is forged.
    fn ask_to_join(crowd: &mut Crowd, peer: u64, keypair: &DroneKeypair<S>, forged: bool) -> Outputs {
        let (group, drone, mut nonce) = (name("alpha"), keypair.public().encode(), [0; 16]);
        rand_core::RngCore::fill_bytes(&mut crowd.rng, &mut nonce);
        let hello = JoinHello { group: group.clone(), drone: drone.clone(), nonce };
        let outputs = received(crowd, peer, &Message::JoinHello(hello));
        let challenge = outputs.iter().find_map(|output| match output {
            Output::Transmit { payload, .. } => match Message::<S>::decode(&crowd.deployment, payload) {
                Ok(Message::JoinChallenge(challenge)) => Some(challenge),
                _ => None,
            },
            _ => None,
        });
        let challenge = challenge.expect("a challenge");
        let ephemeral = SparePair::<S>::ephemeral(&mut crowd.rng);
        let spare = SparePair::<S>::generate(1, &mut crowd.rng);
        let spare = spare.statement(keypair, &crowd.deployment, &group, &mut crowd.rng);
        let nonces = (&challenge.challenge, &nonce);
        let public = keypair.public();
        let mut statement =
            statements::join(&group, &challenge.leader, public, nonces, ephemeral.point(), &spare);
        statement.extend(forged.then_some(0));
        let signature = keypair.sign(&crowd.deployment, Label::Join, &statement, &mut crowd.rng);
        let request = JoinRequest {
            group,
            drone,
            nonce,
            challenge: challenge.challenge,
            ephemeral: ephemeral.point().as_bytes().to_vec(),
            spare_q: spare.q,
            spare_point: spare.point.as_bytes().to_vec(),
            spare_signature: spare.signature.encode(),
            signature: signature.encode(),
        };
        received(crowd, peer, &Message::JoinRequest(request))
    }

    fn close_batch(crowd: &mut Crowd) -> Outputs {
        crowd.now.monotonic += Duration::from_secs(30);
        let mut outputs = crowd.input(Input::Timeout);
        outputs.extend(crowd.input(Input::Timeout));
        outputs
    }

    fn joined(outputs: &Outputs) -> usize {
        outputs.iter().filter(|output| matches!(output, Output::Event(LeaderEvent::Joined { .. }))).count()
    }

    fn penalized(outputs: &Outputs) -> Vec<u64> {
        let penalty = |output: &Output<LeaderEvent, LeaderRecord>| match output {
            Output::Penalize { peer, misdeed: Misdeed::Forgery } => Some(peer.0),
            _ => None,
        };
        outputs.iter().filter_map(penalty).collect()
    }

    fn checks(crowd: &Crowd) -> usize {
        crowd.leader.waiting.checks.take()
    }

    #[test]
    fn a_strangers_forged_request_waits_for_nobody_and_costs_its_connection() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        let (forger, honest) = (drone(&mut crowd, 1), drone(&mut crowd, 2));
        let mut outputs = Vec::new();
        for peer in 1..=50 {
            outputs.extend(ask_to_join(&mut crowd, peer, &forger, true));
            assert_eq!(crowd.leader.waiting.len(), 0, "nothing is held for a stranger");
            if peer == 25 {
                assert!(penalized(&ask_to_join(&mut crowd, 1000, &honest, false)).is_empty());
                assert_eq!(crowd.leader.waiting.len(), 1);
                // In the midst of the flood.
                let outputs = close_batch(&mut crowd);
                assert_eq!(joined(&outputs), 1);
                assert_eq!(checks(&crowd), 2 * (25 + 1), "two signatures of each request, once");
            }
        }
        assert_eq!(penalized(&outputs), (1..=50).collect::<Vec<_>>());
        assert_eq!(checks(&crowd), 2 * 25);
    }

    #[test]
    fn a_batch_of_forgeries_costs_at_most_four_checks_for_each() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        let (honest, forger) = (drone(&mut crowd, 1), drone(&mut crowd, 2));
        ask_to_join(&mut crowd, 7, &honest, false);
        checks(&crowd);
        for _ in 0..64 {
            ask_to_join(&mut crowd, 7, &forger, true);
        }
        assert_eq!(checks(&crowd), 0, "they wait for the batch");
        let outputs = close_batch(&mut crowd);
        assert_eq!(joined(&outputs), 1);
        assert_eq!(penalized(&outputs), [7; 64]);
        let spent = checks(&crowd);
        assert!(spent <= 4 * 2 * 64, "{spent}");
        // What comes next over that connection waits no more.
        ask_to_join(&mut crowd, 7, &forger, true);
        assert_eq!(checks(&crowd), 2);
    }

    #[test]
    fn the_only_forgery_of_a_batch_is_found_and_keeps_nobody_out() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        for number in 0..20 {
            let keypair = drone(&mut crowd, number);
            ask_to_join(&mut crowd, 7, &keypair, number == 13);
        }
        checks(&crowd);
        let outputs = close_batch(&mut crowd);
        assert_eq!((joined(&outputs), penalized(&outputs)), (19, alloc::vec![7]));
        let spent = checks(&crowd);
        assert!(spent <= 4 * 2 * 19, "{spent}");
    }

    #[test]
    fn a_challenge_that_one_connection_answered_takes_no_others_room() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        let keypair = drone(&mut crowd, 1);
        for _ in 0..300 {
            let full = crowd.leader.waiting.is_full_for(Peer(7));
            if full {
                break;
            }
            ask_to_join(&mut crowd, 7, &keypair, false);
        }
        assert!(crowd.leader.waiting.is_full_for(Peer(7)));
        assert!(!crowd.leader.waiting.is_full_for(Peer(8)));
        crowd.input(Input::Disconnected { peer: Peer(7) });
        assert_eq!(crowd.leader.waiting.remembered_challenges(), 0);
    }

    /// Two keys of one drone ask to join, one after the other: what the leader says of the second, and how much evidence it keeps,
    /// also after a start.
    fn met_two_keys(kgcs: Kgcs<S>) -> (Vec<bool>, [usize; 2]) {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        crowd.leader.config.kgcs = kgcs;
        let [first, second] = [drone(&mut crowd, 1), drone(&mut crowd, 1)];
        assert_ne!(first.public().handle(), second.public().handle());
        assert_eq!(first.public().identity, second.public().identity);
        ask_to_join(&mut crowd, 7, &first, false);
        assert_eq!(joined(&close_batch(&mut crowd)), 1);
        ask_to_join(&mut crowd, 8, &second, false);
        let outputs = close_batch(&mut crowd);
        assert_eq!(joined(&outputs), 0, "the key first seen stays in force");
        let claim = |output: &Output<LeaderEvent, LeaderRecord>| match output {
            Output::Event(LeaderEvent::SecondKey { handle, evident, .. }) => {
                assert_eq!(*handle, second.public().handle());
                Some(*evident)
            }
            _ => None,
        };
        let claims = outputs.iter().filter_map(claim).collect();
        let kept = crowd.leader.memory.evidence.len();
        crowd.restart();
        (claims, [kept, crowd.leader.memory.evidence.len()])
    }

    #[test]
    fn second_key_is_evidence_against_a_kgc_that_issues_alone() {
        assert_eq!(met_two_keys(Kgcs::single()), (alloc::vec![true], [1, 1]));
    }

    #[test]
    fn second_key_is_no_evidence_against_a_quorum_of_which_any_drone_can_have_several() {
        assert_eq!(met_two_keys(Kgcs::quorum(alloc::vec![1, 2, 3])), (alloc::vec![false], [0, 0]));
    }

    #[test]
    fn a_hub_relays_for_members_alone() {
        let mut crowd = Crowd::new(StrategyKind::Flat, 0..3);
        let relays = |outputs: &Outputs| -> Vec<(u64, bool)> {
            let relay = |output: &Output<LeaderEvent, LeaderRecord>| match output {
                Output::Relay { peer, allowed } => Some((peer.0, *allowed)),
                _ => None,
            };
            outputs.iter().filter_map(relay).collect()
        };
        let (honest, forger) = (drone(&mut crowd, 1), drone(&mut crowd, 2));
        let outputs = crowd.input(Input::Connected { peer: Peer(7), route: quiver_machine::Route::Inbound });
        assert_eq!(relays(&outputs), []);
        assert_eq!(relays(&ask_to_join(&mut crowd, 7, &honest, false)), []);
        ask_to_join(&mut crowd, 8, &forger, true);
        assert_eq!(relays(&close_batch(&mut crowd)), [(7, true)]);
        let outputs = crowd.command(LeaderCommand::Evict(name("newcomer-1")));
        assert_eq!(relays(&outputs), [(7, false)]);
        let outputs = crowd.input(Input::Connected { peer: Peer(9), route: quiver_machine::Route::Leader });
        assert_eq!(relays(&outputs), [(9, true)]);
    }
}
