//! Verifies joins: the first of a connection at once, the others together, all signatures in one product.
//! docs/protocol.md §6.4.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use quiver_ainq::{Element, Error, Handle, Join, Label, Serial, SignedItem, Suite, verify_batch_implicit};
use quiver_message::RefusalReason;

use super::LeaderJoins;
use super::join_queue::UnverifiedJoin;
use super::join_request::authorize;
use crate::leader::LeaderEvent;
use crate::leader::context::LeaderContext;
use crate::leader::store::Change;
use crate::leader::term::Term;

/// A drone whose request verified, with what the epoch needs of it.
#[derive(Debug)]
pub(in crate::leader) struct VerifiedJoin<S: Suite> {
    pub(in crate::leader) candidate: UnverifiedJoin<S>,
    pub(in crate::leader) join: Join<S>,
}

impl<S: Suite> VerifiedJoin<S> {
    pub(in crate::leader) fn serial(&self) -> Serial {
        self.join.public().identity.serial
    }
}

/// Maximum number of joins, some of which are forged, that are verified one by one.
const ONE_BY_ONE: usize = 8;
/// Maximum number of signatures kept as evidence against a single KGC.
const MAX_EVIDENCE: usize = 64;

impl<S: Suite> LeaderJoins<S> {
    /// The waiting drones whose signatures verify, once each (the latest request counts), as many as fit.
    pub(super) fn verified_joins(
        &mut self,
        cx: &mut LeaderContext<'_, S>,
        term: &Term<S>,
    ) -> Vec<VerifiedJoin<S>> {
        let mut joins = Vec::with_capacity(self.queue.len());
        for candidate in self.queue.take(cx.now) {
            // §6.2: much may have happened while it waited.
            if let Err(reason) = authorize(cx, term.roster(), &term.pending, &candidate.request) {
                cx.refuse(candidate.peer, reason, &candidate.nonce, Duration::ZERO);
                continue;
            }
            let (drone, ephemeral) = (candidate.request.drone.clone(), candidate.request.ephemeral);
            let join = match candidate.implicit {
                Some(implicit) => Join::with_implicit(drone, implicit, ephemeral),
                None => Join::new(&cx.config.deployment, drone, ephemeral),
            };
            match join {
                Ok(join) => {
                    let join = match &candidate.kem {
                        Some(kem) => join.with_kem(kem.key.clone()),
                        None => join,
                    };
                    joins.push(VerifiedJoin { candidate, join });
                }
                Err(error) => turn_away(cx, &candidate, error),
            }
        }
        let signed = self.signed(cx, joins);
        let mut latest = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for join in signed {
            let (handle, serial) = (join.candidate.request.drone.handle(), join.serial());
            let before = *seen.entry(serial).or_insert(handle);
            if first_key(cx, &join.candidate, handle, before) {
                // §6.4: of several requests of one drone the latest counts.
                latest.insert(handle, join);
            }
        }
        fitting(cx, term, latest.into_values().collect())
    }

    /// Checks both signatures of a request. Gives the drone's Y.
    pub(super) fn verify_join(
        &self,
        cx: &LeaderContext<'_, S>,
        candidate: &UnverifiedJoin<S>,
    ) -> Result<Element<S>, Error> {
        let (deployment, request) = (&cx.config.deployment, &candidate.request);
        let (public, spare) = (&request.drone, &request.spare);
        self.count_checks(2);
        let implicit = public.implicit(deployment)?;
        let statement = &candidate.statement;
        // §6.1: `join` over group, leader, drone, n_L, n_e, E_now and the spare point; §6.6: `spare`.
        request.signature.verify_implicit(deployment, public, &implicit, Label::Join, statement)?;
        spare.verify_implicit(deployment, &cx.config.group, public, &implicit)?;
        Ok(implicit)
    }

    /// The joins whose signatures verify; the others are refused.
    fn signed(&self, cx: &mut LeaderContext<'_, S>, joins: Vec<VerifiedJoin<S>>) -> Vec<VerifiedJoin<S>> {
        // §6.4: the first of each connection was verified before it was queued.
        let unverified = joins.iter().enumerate().filter(|(_, join)| join.candidate.implicit.is_none());
        let unverified: Vec<(usize, &VerifiedJoin<S>)> = unverified.collect();
        let forged: BTreeSet<usize> = if self.all_signed(cx, &unverified) {
            BTreeSet::new()
        } else {
            self.forged(cx, &unverified).into_iter().collect()
        };
        let mut signed = Vec::with_capacity(joins.len());
        for (index, join) in joins.into_iter().enumerate() {
            if forged.contains(&index) {
                turn_away(cx, &join.candidate, Error::InvalidSignature);
            } else {
                signed.push(join);
            }
        }
        signed
    }

    /// Finds the forged ones among joins that do not all verify. Halving finds the only one soon; where both
    /// halves are bad, or few are left, one by one costs less. So it is never more than four checks for each.
    fn forged(&self, cx: &mut LeaderContext<'_, S>, joins: &[(usize, &VerifiedJoin<S>)]) -> Vec<usize> {
        let (first, second) = joins.split_at(joins.len() / 2);
        if joins.len() > ONE_BY_ONE {
            match (self.all_signed(cx, first), self.all_signed(cx, second)) {
                // §6.4: halving finds a single forgery.
                (true, _) => return self.forged(cx, second),
                (_, true) => return self.forged(cx, first),
                (false, false) => {}
            }
        }
        // §6.4: one by one, at most four checks for each.
        let forged = joins.iter().filter(|(_, join)| self.verify_join(cx, &join.candidate).is_err());
        forged.map(|(index, _)| *index).collect()
    }

    fn all_signed(&self, cx: &mut LeaderContext<'_, S>, joins: &[(usize, &VerifiedJoin<S>)]) -> bool {
        self.count_checks(2 * joins.len());
        let group = &cx.config.group;
        let requests = joins.iter().map(|(_, join)| &join.candidate.request);
        let spares: Vec<Vec<u8>> =
            requests.map(|request| request.spare.message(group, &request.drone)).collect();
        let mut items = Vec::with_capacity(joins.len() * 2);
        let mut implicit = Vec::with_capacity(joins.len() * 2);
        for ((_, VerifiedJoin { candidate, join }), spare) in joins.iter().zip(&spares) {
            let (request, public) = (&candidate.request, &candidate.request.drone);
            let (message, signature) = (&candidate.statement, &request.signature);
            items.push(SignedItem { public, label: Label::Join, message, signature });
            let (message, signature) = (spare, &request.spare.signature);
            items.push(SignedItem { public, label: Label::Spare, message, signature });
            implicit.extend([*join.implicit(), *join.implicit()]);
        }
        // §6.4: one random linear combination for all.
        verify_batch_implicit(&cx.config.deployment, &items, &implicit, cx.rng)
    }

    /// Tests count the signatures that are checked.
    #[cfg(test)]
    fn count_checks(&self, signatures: usize) {
        self.checks.set(self.checks.get() + signatures);
    }

    #[cfg(not(test))]
    const fn count_checks(&self, _: usize) {}
}

/// Checks that this is the first key seen for its identity. A second one that signs validly is refused
/// (§3.9).
///
/// If a single KGC issues keys, it issued this one too, though it binds a token to one key for ever: the
/// request is kept as evidence against it. In a quorum every drone can make itself a second key, which is
/// evidence against the drone alone.
fn first_key<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    candidate: &UnverifiedJoin<S>,
    handle: Handle,
    before: Handle,
) -> bool {
    let drone = &candidate.request.drone;
    // §6.2: the first key received for an identity is pinned.
    let pinned = cx.store.pins.get(&drone.identity.serial).copied().unwrap_or(before);
    if pinned == handle {
        return true;
    }
    // §6.2: under a quorum it is no evidence: a drone can make itself several keys.
    let evident = !cx.config.kgcs.is_quorum();
    if evident && cx.store.evidence.len() < MAX_EVIDENCE {
        let mut evidence = candidate.statement.clone();
        evidence.extend_from_slice(&candidate.request.signature.encode());
        cx.persist(&[Change::Evidence(evidence.clone())]);
        cx.store.evidence.push(evidence);
    }
    cx.event(LeaderEvent::SecondKey { name: drone.identity.name.clone(), handle, evident });
    cx.refuse(candidate.peer, RefusalReason::NotAuthorised, &candidate.nonce, Duration::ZERO);
    false
}

/// Takes as many as the group has room for; the others are refused.
fn fitting<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    term: &Term<S>,
    mut joins: Vec<VerifiedJoin<S>>,
) -> Vec<VerifiedJoin<S>> {
    let members = term.roster().len() + term.pending.joins();
    let room = (cx.config.max_members as usize).saturating_sub(members);
    for VerifiedJoin { candidate, .. } in joins.split_off(room.min(joins.len())) {
        cx.refuse(candidate.peer, RefusalReason::Full, &candidate.nonce, cx.config.timing.batching_max);
    }
    joins
}

pub(super) fn turn_away<S: Suite>(
    cx: &mut LeaderContext<'_, S>,
    candidate: &UnverifiedJoin<S>,
    error: Error,
) {
    cx.refuse(candidate.peer, RefusalReason::BadSignature, &candidate.nonce, Duration::ZERO);
    cx.blame(candidate.peer, error);
}

#[cfg(test)]
mod tests {
    use quiver_ainq::{DroneKeypair, Role, SparePair, StrategyKind};
    use quiver_message::{JoinHello, JoinRequest, Message};

    use super::super::super::test_support::{LeaderFixture, S, identity, issue_keypair, name};
    use super::super::super::{LeaderCommand, LeaderRecord};
    use super::*;
    use crate::statements;
    use quiver_enrolment::Kgcs;
    use quiver_machine::{Input, Misdeed, Output, Peer, Via};

    type Outputs = Vec<Output<LeaderEvent, LeaderRecord>>;

    fn drone(fixture: &mut LeaderFixture, number: u8) -> DroneKeypair<S> {
        let identity = identity([100 + number; 16], &alloc::format!("newcomer-{number}"), Role::Edge);
        issue_keypair(&fixture.master, &fixture.deployment, &identity, &mut fixture.rng)
    }

    fn received(fixture: &mut LeaderFixture, peer: u64, message: &Message<S>) -> Outputs {
        let bytes = message.encode(&fixture.deployment);
        fixture.input(Input::Received { from: Peer(peer), via: Via::Peer, bytes: &bytes })
    }

    /// A drone's hello and request over a connection; the signature is of something else if it is forged.
    fn ask_to_join(
        fixture: &mut LeaderFixture,
        peer: u64,
        keypair: &DroneKeypair<S>,
        forged: bool,
    ) -> Outputs {
        let (group, drone, mut nonce) = (name("alpha"), keypair.public().encode(), [0; 16]);
        rand_core::RngCore::fill_bytes(&mut fixture.rng, &mut nonce);
        let hello = JoinHello { group: group.clone(), drone: drone.clone(), nonce, kem: None };
        let outputs = received(fixture, peer, &Message::JoinHello(hello));
        let challenge = outputs.iter().find_map(|output| match output {
            Output::Transmit { payload, .. } => match Message::<S>::decode(&fixture.deployment, payload) {
                Ok(Message::JoinChallenge(challenge)) => Some(challenge),
                _ => None,
            },
            _ => None,
        });
        let challenge = challenge.expect("a challenge");
        let ephemeral = SparePair::<S>::ephemeral(&mut fixture.rng);
        let spare = SparePair::<S>::generate(1, &mut fixture.rng);
        let spare = spare.statement(keypair, &fixture.deployment, &group, &mut fixture.rng);
        let nonces = (&challenge.challenge, &nonce);
        let public = keypair.public();
        let mut statement =
            statements::join(&group, &challenge.leader, public, nonces, ephemeral.point(), &spare, None);
        statement.extend(forged.then_some(0));
        let signature = keypair.sign(&fixture.deployment, Label::Join, &statement, &mut fixture.rng);
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
            kem: None,
        };
        received(fixture, peer, &Message::JoinRequest(request))
    }

    fn close_batch(fixture: &mut LeaderFixture) -> Outputs {
        fixture.now.monotonic += Duration::from_secs(30);
        let mut outputs = fixture.input(Input::Timeout);
        outputs.extend(fixture.input(Input::Timeout));
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

    fn checks(fixture: &LeaderFixture) -> usize {
        fixture.leader.joining.checks.take()
    }

    #[test]
    fn a_strangers_forged_request_waits_for_nobody_and_costs_its_connection() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let (forger, honest) = (drone(&mut fixture, 1), drone(&mut fixture, 2));
        let mut outputs = Vec::new();
        for peer in 1..=50 {
            outputs.extend(ask_to_join(&mut fixture, peer, &forger, true));
            assert_eq!(fixture.leader.joining.queue.len(), 0, "nothing is held for a stranger");
            if peer == 25 {
                assert!(penalized(&ask_to_join(&mut fixture, 1000, &honest, false)).is_empty());
                assert_eq!(fixture.leader.joining.queue.len(), 1);
                // In the midst of the flood.
                let outputs = close_batch(&mut fixture);
                assert_eq!(joined(&outputs), 1);
                assert_eq!(checks(&fixture), 2 * (25 + 1), "two signatures of each request, once");
            }
        }
        assert_eq!(penalized(&outputs), (1..=50).collect::<Vec<_>>());
        assert_eq!(checks(&fixture), 2 * 25);
    }

    #[test]
    fn a_batch_of_forgeries_costs_at_most_four_checks_for_each() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let (honest, forger) = (drone(&mut fixture, 1), drone(&mut fixture, 2));
        ask_to_join(&mut fixture, 7, &honest, false);
        checks(&fixture);
        for _ in 0..64 {
            ask_to_join(&mut fixture, 7, &forger, true);
        }
        assert_eq!(checks(&fixture), 0, "they wait for the batch");
        let outputs = close_batch(&mut fixture);
        assert_eq!(joined(&outputs), 1);
        assert_eq!(penalized(&outputs), [7; 64]);
        let spent = checks(&fixture);
        assert!(spent <= 4 * 2 * 64, "{spent}");
        // The next request over that connection does not wait.
        ask_to_join(&mut fixture, 7, &forger, true);
        assert_eq!(checks(&fixture), 2);
    }

    #[test]
    fn the_only_forgery_of_a_batch_is_found_and_keeps_nobody_out() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        for number in 0..20 {
            let keypair = drone(&mut fixture, number);
            ask_to_join(&mut fixture, 7, &keypair, number == 13);
        }
        checks(&fixture);
        let outputs = close_batch(&mut fixture);
        assert_eq!((joined(&outputs), penalized(&outputs)), (19, alloc::vec![7]));
        let spent = checks(&fixture);
        assert!(spent <= 4 * 2 * 19, "{spent}");
    }

    #[test]
    fn batch_without_room_for_another_join_closes_at_once() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        fixture.leader.joining.queue.set_capacity(3);
        let mut joins = |number: u8| {
            let keypair = drone(&mut fixture, number);
            joined(&ask_to_join(&mut fixture, number.into(), &keypair, false))
        };
        assert_eq!([1, 2, 3].map(&mut joins), [0, 0, 3]);
        // The closed batch made room for as many.
        assert_eq!([4, 5, 6].map(&mut joins), [0, 0, 3]);
    }

    #[test]
    fn a_challenge_that_one_connection_answered_takes_no_others_room() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let keypair = drone(&mut fixture, 1);
        for _ in 0..300 {
            let full = fixture.leader.joining.queue.is_full_for(Peer(7), true);
            if full {
                break;
            }
            ask_to_join(&mut fixture, 7, &keypair, false);
        }
        assert!(fixture.leader.joining.queue.is_full_for(Peer(7), true));
        assert!(!fixture.leader.joining.queue.is_full_for(Peer(8), false));
        fixture.input(Input::Disconnected { peer: Peer(7) });
        assert_eq!(fixture.leader.joining.queue.remembered_challenges(), 0);
    }

    /// Two keys of one drone ask to join, one after the other: what the leader says of the second, and how
    /// much evidence it keeps, also after a start.
    fn met_two_keys(kgcs: Kgcs<S>) -> (Vec<bool>, [usize; 2]) {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        fixture.leader.base.config.kgcs = kgcs;
        let [first, second] = [drone(&mut fixture, 1), drone(&mut fixture, 1)];
        assert_ne!(first.public().handle(), second.public().handle());
        assert_eq!(first.public().identity, second.public().identity);
        ask_to_join(&mut fixture, 7, &first, false);
        assert_eq!(joined(&close_batch(&mut fixture)), 1);
        ask_to_join(&mut fixture, 8, &second, false);
        let outputs = close_batch(&mut fixture);
        assert_eq!(joined(&outputs), 0, "the key first seen stays in force");
        let claim = |output: &Output<LeaderEvent, LeaderRecord>| match output {
            Output::Event(LeaderEvent::SecondKey { handle, evident, .. }) => {
                assert_eq!(*handle, second.public().handle());
                Some(*evident)
            }
            _ => None,
        };
        let claims = outputs.iter().filter_map(claim).collect();
        let kept = fixture.leader.base.store.evidence.len();
        fixture.restart();
        (claims, [kept, fixture.leader.base.store.evidence.len()])
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
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let relays = |outputs: &Outputs| -> Vec<(u64, bool)> {
            let relay = |output: &Output<LeaderEvent, LeaderRecord>| match output {
                Output::Relay { peer, allowed } => Some((peer.0, *allowed)),
                _ => None,
            };
            outputs.iter().filter_map(relay).collect()
        };
        let (honest, forger) = (drone(&mut fixture, 1), drone(&mut fixture, 2));
        let outputs =
            fixture.input(Input::Connected { peer: Peer(7), route: quiver_machine::Route::Inbound });
        assert_eq!(relays(&outputs), []);
        assert_eq!(relays(&ask_to_join(&mut fixture, 7, &honest, false)), []);
        ask_to_join(&mut fixture, 8, &forger, true);
        assert_eq!(relays(&close_batch(&mut fixture)), [(7, true)]);
        let outputs = fixture.command(LeaderCommand::Evict(name("newcomer-1")));
        assert_eq!(relays(&outputs), [(7, false)]);
        let outputs = fixture.input(Input::Connected { peer: Peer(9), route: quiver_machine::Route::Leader });
        assert_eq!(relays(&outputs), [(9, true)]);
    }

    #[test]
    fn of_a_batch_as_many_join_as_the_group_has_room_for() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        fixture.leader.base.config.max_members = 5;
        for number in 1..=3 {
            let keypair = drone(&mut fixture, number);
            ask_to_join(&mut fixture, number.into(), &keypair, false);
        }
        let outputs = close_batch(&mut fixture);
        assert_eq!(joined(&outputs), 2);
        let full = |output: &Output<LeaderEvent, LeaderRecord>| match output {
            Output::Transmit { payload, .. } => matches!(
                Message::<S>::decode(&fixture.deployment, payload),
                Ok(Message::Refusal(refusal)) if refusal.reason == RefusalReason::Full
            ),
            _ => false,
        };
        assert_eq!(outputs.iter().filter(|output| full(output)).count(), 1);
        assert_eq!(fixture.term().roster().len(), 5);
    }

    /// Number of signatures that were verified without a cookie since this was asked.
    fn verified(fixture: &mut LeaderFixture) -> usize {
        core::mem::take(&mut fixture.leader.base.peers.checked)
    }

    fn forged(outputs: &Outputs) -> usize {
        let forged = |output: &&Output<LeaderEvent, LeaderRecord>| match output {
            Output::Event(LeaderEvent::Blamed { offence, .. }) => {
                *offence == quiver_machine::Offence::Protocol(Error::InvalidSignature)
            }
            _ => false,
        };
        outputs.iter().filter(forged).count()
    }

    /// A drone that joined over connection 7, and its slot.
    fn member(fixture: &mut LeaderFixture) -> (quiver_ainq::Slot, DroneKeypair<S>) {
        let member = drone(fixture, 1);
        ask_to_join(fixture, 7, &member, false);
        assert_eq!(joined(&close_batch(fixture)), 1);
        let slot = fixture.term().roster().find(&member.public().identity.serial).unwrap();
        verified(fixture);
        (slot, member)
    }

    fn spare_publication(
        fixture: &mut LeaderFixture,
        keypair: &DroneKeypair<S>,
        slot: quiver_ainq::Slot,
        q: u64,
    ) -> Message<S> {
        let spare = SparePair::<S>::generate(q, &mut fixture.rng);
        let spare = spare.statement(keypair, &fixture.deployment, &name("alpha"), &mut fixture.rng);
        Message::SparePublication(quiver_message::SparePublication { group: name("alpha"), slot, spare })
    }

    fn acknowledged(fixture: &LeaderFixture, outputs: &Outputs) -> usize {
        let ack = |output: &&Output<LeaderEvent, LeaderRecord>| match output {
            Output::Transmit { payload, .. } => {
                matches!(Message::<S>::decode(&fixture.deployment, payload), Ok(Message::SpareAck(_)))
            }
            _ => false,
        };
        outputs.iter().filter(ack).count()
    }

    #[test]
    fn stranger_that_forges_spare_points_and_leaves_is_refused_and_costs_little_until_then() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let (slot, _) = member(&mut fixture);
        let forger = drone(&mut fixture, 2);
        let held = fixture.leader.status().digest.unwrap();
        let mut outputs = Vec::new();
        for q in 1_000..1_100 {
            let spare = spare_publication(&mut fixture, &forger, slot, q);
            outputs.extend(received(&mut fixture, 77, &spare));
            let signature = forger.sign(&fixture.deployment, Label::Leave, b"", &mut fixture.rng);
            let leave = quiver_message::Leave { group: name("alpha"), slot, held, signature };
            outputs.extend(received(&mut fixture, 78, &Message::Leave(leave)));
        }
        // A driver disconnects it at the first penalty. Here nothing does, and no time passes.
        for peer in [77, 78] {
            let penalty = |output: &Output<LeaderEvent, LeaderRecord>| matches!(output, Output::Penalize { peer: of, .. } if of.0 == peer);
            let until = &outputs[..outputs.iter().position(penalty).expect("a penalty")];
            let blamed = |output: &&Output<LeaderEvent, LeaderRecord>| matches!(output, Output::Event(LeaderEvent::Blamed { peer: of, .. }) if of.0 == peer);
            assert!(until.iter().filter(blamed).count() <= 16);
        }
        assert_eq!((verified(&mut fixture), forged(&outputs)), (64, 64));
        assert_eq!(fixture.term().roster().len(), 4);
    }

    #[test]
    fn all_strangers_together_buy_no_more_signatures_than_their_rate_and_keep_no_member_out() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let (slot, member) = member(&mut fixture);
        let forger = drone(&mut fixture, 2);
        for peer in 1_000..1_100 {
            for q in 1_000..1_010 {
                let spare = spare_publication(&mut fixture, &forger, slot, q);
                received(&mut fixture, peer, &spare);
            }
        }
        assert_eq!(verified(&mut fixture), 256);
        // A member with a newer point is heard, over the connection that it joined over; shown again, the
        // point costs nothing.
        let spare = spare_publication(&mut fixture, &member, slot, 2);
        for checks in [1, 0, 0] {
            let outputs = received(&mut fixture, 7, &spare);
            assert_eq!((acknowledged(&fixture, &outputs), verified(&mut fixture)), (1, checks));
        }
        // Nor does it over a stranger's connection.
        let outputs = received(&mut fixture, 1_000, &spare);
        assert_eq!((acknowledged(&fixture, &outputs), verified(&mut fixture)), (1, 0));
        fixture.now.monotonic += Duration::from_secs(1);
        for peer in 1_000..1_400 {
            let spare = spare_publication(&mut fixture, &forger, slot, 1_000);
            received(&mut fixture, peer, &spare);
        }
        assert_eq!(verified(&mut fixture), 200, "a second later");
    }

    #[test]
    fn member_that_lost_its_slot_is_not_refused_for_what_it_could_not_know() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..3);
        let (slot, _) = member(&mut fixture);
        let former = drone(&mut fixture, 2);
        let mut outputs = Vec::new();
        // As often as it shows its point before it has to hear that it is out.
        for _ in 0..10 {
            let spare = spare_publication(&mut fixture, &former, slot, 5);
            outputs.extend(received(&mut fixture, 8, &spare));
            fixture.now.monotonic += Duration::from_secs(10);
        }
        assert_eq!((forged(&outputs), penalized(&outputs)), (10, Vec::new()));
    }

    /// Headers of past epochs, each of which a member left with.
    fn past_headers(fixture: &mut LeaderFixture, count: u32) -> Vec<Vec<u8>> {
        let mut past = Vec::new();
        for slot in 0..count {
            fixture.leave(slot);
            close_batch(fixture);
            let header = fixture.term().header().clone();
            assert!(header.core.removed.contains(slot));
            past.push(Message::Rekey(quiver_message::Rekey::new(header, None)).encode(&fixture.deployment));
        }
        fixture.command(LeaderCommand::Rekey);
        past
    }

    #[test]
    fn header_of_the_past_is_verified_once_however_often_strangers_play_it() {
        for restarted in [false, true] {
            let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..50);
            if restarted {
                fixture.records = fixture.leader.checkpoint();
                fixture.restart();
            }
            let past = past_headers(&mut fixture, 3);
            verified(&mut fixture);
            let mut outputs = Vec::new();
            for peer in 1_000..1_100 {
                for bytes in &past {
                    let input = Input::Received { from: Peer(peer), via: Via::Peer, bytes };
                    outputs.extend(fixture.input(input));
                }
            }
            assert_eq!(verified(&mut fixture), past.len(), "restarted: {restarted}");
            assert_eq!((forged(&outputs), penalized(&outputs)), (0, Vec::new()));
            // With another signature it is the same header, and believed no more than that.
            let Ok(Message::Rekey(mut rekey)) = Message::<S>::decode(&fixture.deployment, &past[0]) else {
                panic!("a re-key")
            };
            let Ok(Message::Rekey(other)) = Message::<S>::decode(&fixture.deployment, &past[1]) else {
                panic!("a re-key")
            };
            rekey.header.signature = other.header.signature;
            received(&mut fixture, 1_000, &Message::Rekey(rekey));
            assert_eq!(verified(&mut fixture), 0);
        }
    }

    #[test]
    fn a_recording_of_many_headers_buys_signatures_at_a_bounded_rate() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..400);
        let past = past_headers(&mut fixture, 300);
        verified(&mut fixture);
        for bytes in past.iter().rev() {
            fixture.input(Input::Received { from: Peer(99), via: Via::Peer, bytes });
        }
        assert_eq!(verified(&mut fixture), 32);
        // A publisher of them is no better off.
        for bytes in past.iter().rev() {
            fixture.input(Input::Received { from: Peer(99), via: Via::Group, bytes });
        }
        assert_eq!(verified(&mut fixture), 0);
    }

    #[test]
    fn departure_that_an_old_header_shows_holds_however_often_it_is_played() {
        let mut fixture = LeaderFixture::new(StrategyKind::Flat, 0..5);
        let records = fixture.leader.checkpoint();
        let past = past_headers(&mut fixture, 1);
        // A leader that has the roster of before, in a term of its own, is shown who left since.
        fixture.records = records;
        fixture.restart();
        assert_eq!(fixture.term().roster().len(), 5);
        for _ in 0..2 {
            fixture.input(Input::Received { from: Peer(9), via: Via::Peer, bytes: &past[0] });
        }
        close_batch(&mut fixture);
        assert_eq!(fixture.term().roster().len(), 4);
    }
}
