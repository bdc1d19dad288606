//! All members of a group agree on its key, in histories of every kind.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quiver_ainq::{EpochKind, EpochPart, Error, GroupMembership, StrategyKind, Suite};

use crate::swarm::Swarm;

for_each_strategy! {
    members_agree_after_any_history;
    an_edge_catches_up_over_epochs_it_missed;
    a_restarted_edge_has_no_key_until_the_next_epoch;
    a_member_without_spare_is_absent_and_joins_again;
    a_member_that_joins_again_gets_a_new_pairwise_key;
    an_edge_that_missed_a_terms_opening_must_join_again;
    of_two_competing_openings_the_higher_can_still_be_followed;
    a_second_leader_takes_over_from_public_data;
    every_epoch_that_adds_members_has_a_point_of_its_own;
    acknowledgements_are_of_one_member_and_one_epoch;
}

#[derive(Clone, Debug)]
enum Step {
    Join(usize),
    Leave(usize),
    Expire,
    /// A term opens; the edge of that number has published no spare point.
    Open(usize),
    /// The edge goes offline, or back online and receives the newest epoch.
    SleepOrWake(usize),
    Restart(usize),
}

const EDGES: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    let edge = 0..EDGES;
    prop_oneof![
        4 => edge.clone().prop_map(Step::Join),
        2 => edge.clone().prop_map(Step::Leave),
        2 => Just(Step::Expire),
        1 => (0..EDGES + 3).prop_map(Step::Open),
        2 => edge.clone().prop_map(Step::SleepOrWake),
        1 => edge.prop_map(Step::Restart),
    ]
}

/// The test's own state of an edge.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    /// True if it is in the roster.
    member: bool,
    /// The term in which it has a pairwise key, as far as it received.
    term: Option<u64>,
    asleep: bool,
    /// True if it restarted and has received no epoch since.
    unsynced: bool,
}

struct History<S: Suite> {
    swarm: Swarm<S>,
    expected: [Expected; EDGES],
}

fn members_agree_after_any_history<S: Suite>(strategy: StrategyKind) {
    let cases = if S::POINT_LEN == 32 { 48 } else { 6 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let histories = (any::<u64>(), proptest::collection::vec(step(), 1..24));
    let run = |(seed, steps): (u64, Vec<Step>)| {
        let mut history = History {
            swarm: Swarm::<S>::keyed_by(strategy, seed, EDGES),
            expected: [Expected::default(); EDGES],
        };
        for step in steps {
            history.take(&step);
            history.check(&step);
        }
        Ok(())
    };
    TestRunner::new(config).run(&histories, run).unwrap();
}

impl<S: Suite> History<S> {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Join(index) => self.rekey(Some(index), None),
            Step::Leave(index) if self.expected[index].member => {
                // It keeps its state and goes on receiving.
                self.expected[index].member = false;
                let serial = self.swarm.edges[index].keypair.public().identity.serial;
                self.rekey(None, self.swarm.leadership.roster().find(&serial));
            }
            Step::Leave(_) => {}
            Step::Expire => self.rekey(None, None),
            Step::Open(without) => {
                let spares: Vec<usize> =
                    (0..EDGES).filter(|index| self.expected[*index].member && *index != without).collect();
                self.swarm.open_undelivered(&spares);
                self.spread();
            }
            Step::SleepOrWake(index) => {
                self.expected[index].asleep ^= true;
                self.deliver(index);
            }
            Step::Restart(index) => {
                if let Some(membership) = &self.swarm.edges[index].membership {
                    let restored = GroupMembership::restore(&membership.encode()).unwrap();
                    self.swarm.edges[index].membership = Some(restored);
                    self.expected[index].unsynced = true;
                }
            }
        }
    }

    fn rekey(&mut self, joining: Option<usize>, removed: Option<u32>) {
        let joining: Vec<usize> = joining.into_iter().collect();
        let (output, secrets) = self.swarm.rekey_undelivered(&joining, removed.into_iter().collect());
        self.swarm.deliver_joins(&joining, &secrets, &output);
        for index in joining {
            let term = Some(self.swarm.leadership.epoch().term);
            self.expected[index] = Expected { member: true, term, asleep: false, unsynced: false };
        }
        self.spread();
    }

    fn spread(&mut self) {
        (0..EDGES).for_each(|index| self.deliver(index));
    }

    /// Brings the newest epoch to an edge that is awake; whether it follows must be as expected.
    fn deliver(&mut self, index: usize) {
        let expected = &mut self.expected[index];
        let Some(membership) = self.swarm.edges[index].membership.as_ref().filter(|_| !expected.asleep)
        else {
            return;
        };
        let newest = self.swarm.leadership.epoch();
        let last = self.swarm.last();
        let opened = last.header.core.kind == EpochKind::Open && last.entry(membership.slot()).is_some();
        let paired = opened || expected.term == Some(newest.term);
        // A path of the tree gives a restarted edge the epoch back that it had. Wraps and entries do
        // not: what they are wrapped under is gone.
        let recovers = expected.unsynced && matches!(last.part(membership.slot()), Ok(EpochPart::Path(_)));
        let news = membership.epoch() < newest || (recovers && membership.epoch() == newest);
        let follows = expected.member && news && paired;
        if follows {
            *expected = Expected { term: Some(newest.term), unsynced: false, ..*expected };
        }
        assert_eq!(self.swarm.deliver(index).is_ok(), follows, "edge {index}");
    }

    fn check(&self, step: &Step) {
        let newest = self.swarm.leadership.epoch();
        for (index, edge) in self.expected.iter().enumerate().filter(|(_, edge)| !edge.asleep) {
            let has_key = edge.member && edge.term == Some(newest.term) && !edge.unsynced;
            assert_eq!(self.swarm.agrees(index), has_key, "edge {index} ({edge:?}) after {step:?}");
        }
        let members = self.expected.iter().filter(|edge| edge.member).count();
        assert_eq!(self.swarm.leadership.roster().len(), members);
    }
}

fn an_edge_catches_up_over_epochs_it_missed<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 1, 2);
    for _ in 0..5 {
        swarm.rekey_undelivered(&[], vec![]);
    }
    assert!(!swarm.agrees(0));
    swarm.deliver(0).unwrap();
    assert!(swarm.agrees(0));
    let earlier = swarm.broadcasts[3].clone();
    assert_eq!(swarm.deliver_one(0, &earlier), Err(Error::Stale));
    assert!(swarm.agrees(0));
}

fn a_restarted_edge_has_no_key_until_the_next_epoch<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 2, 1);
    let state = swarm.edges[0].membership.as_ref().unwrap().encode();
    let restored = GroupMembership::<S>::restore(&state).unwrap();
    assert!(!restored.synced());
    assert_eq!(*restored.encode(), *state);
    swarm.edges[0].membership = Some(restored);
    // Under flat what wrapped its key is gone. Under tree it has a path to get back, of this same epoch.
    let again = match strategy {
        StrategyKind::Flat => Err(Error::Stale),
        StrategyKind::Tree => Ok(()),
    };
    assert_eq!(swarm.deliver(0), again);
    assert_eq!(swarm.agrees(0), again.is_ok());
    swarm.expire();
    assert!(swarm.agrees(0));
}

fn a_member_without_spare_is_absent_and_joins_again<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 3, 3);
    let output = swarm.open(&[0, 2]);
    assert_eq!(output.header.core.absent.iter().collect::<Vec<_>>(), [1]);
    assert_eq!(swarm.leadership.absent().collect::<Vec<_>>(), [1]);
    assert!(swarm.agrees(0) && !swarm.agrees(1) && swarm.agrees(2));
    let output = swarm.join(&[1]);
    assert_eq!((output.assigned, output.dropped), (vec![1], vec![1]));
    assert!((0..3).all(|index| swarm.agrees(index)));
}

fn a_member_that_joins_again_gets_a_new_pairwise_key<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 4, 2);
    let before = swarm.edges[0].membership.as_ref().unwrap().auth_key().clone();
    let output = swarm.join(&[0]);
    assert!(output.header.core.removed.contains(0) && output.header.core.added.contains(0));
    assert_ne!(swarm.edges[0].membership.as_ref().unwrap().auth_key(), &before);
    assert!(swarm.agrees(0) && swarm.agrees(1));
}

fn an_edge_that_missed_a_terms_opening_must_join_again<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 5, 1);
    swarm.open_undelivered(&[0]);
    swarm.rekey_undelivered(&[], vec![]);
    assert_eq!(swarm.deliver(0), Err(Error::TermNotOpened));
    swarm.join(&[0]);
    assert!(swarm.agrees(0));
}

fn of_two_competing_openings_the_higher_can_still_be_followed<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 6, 1);
    let spare = quiver_ainq::SparePair::decode(&swarm.edges[0].spare.encode()).unwrap();
    let (low, _) = (swarm.open_undelivered(&[0]), swarm.open_undelivered(&[0]));
    let low = crate::swarm::Broadcast::of(&low);
    swarm.deliver_one(0, &low).unwrap();
    // The old spare is still there, as it is for a minute.
    swarm.edges[0].spare = spare;
    swarm.deliver(0).unwrap();
    assert!(swarm.agrees(0));
    assert_eq!(swarm.deliver_one(0, &low), Err(Error::Stale));
}

fn a_second_leader_takes_over_from_public_data<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 7, 3);
    let deputy = swarm.enrol(crate::swarm::leader_role("alpha", 2));
    // A replica is built from public data: slots, public keys, evictions.
    let mut replica = quiver_ainq::Roster::new();
    for (slot, public) in swarm.leadership.roster().iter() {
        replica.insert(slot, public.clone()).unwrap();
    }
    assert_eq!(replica.hash(), swarm.last().header.core.roster_hash);
    let spares =
        (0..3u32).zip(&swarm.edges).map(|(slot, edge)| (slot, (edge.spare.q(), *edge.spare.point())));
    let (leadership, output) = quiver_ainq::Leadership::open_term(
        crate::swarm::context_of(&swarm.deployment, &deputy),
        &deputy,
        replica,
        &spares.collect(),
        2 << 16 | 2,
        *swarm.leadership.digest(),
        &crate::swarm::times(),
        strategy,
        &mut swarm.rng,
    )
    .unwrap();
    (swarm.leadership, swarm.leader) = (leadership, deputy);
    swarm.broadcasts.push(crate::swarm::Broadcast::of(&output));
    for index in 0..3 {
        swarm.deliver(index).unwrap();
        assert!(swarm.agrees(index));
    }
}

fn every_epoch_that_adds_members_has_a_point_of_its_own<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 91, 2);
    swarm.expire();
    swarm.add_edge();
    swarm.join(&[2]);
    swarm.expire();
    swarm.open(&[0, 1, 2]);
    assert!((0..3).all(|index| swarm.agrees(index)));
    let points: Vec<_> = swarm.broadcasts.iter().filter_map(|epoch| epoch.header.core.point).collect();
    assert_eq!(points.len(), 3);
    assert!(points[0] != points[1] && points[1] != points[2] && points[0] != points[2]);
}

#[test]
fn headers_and_memberships_of_one_suite_are_refused_under_another() {
    use quiver_ainq::{Bls12381G1, Header, Ristretto255};

    let (own, other) = (Swarm::<Ristretto255>::formed(91, 2), Swarm::<Bls12381G1>::formed(91, 2));
    let bytes = other.last().header.encode(&other.deployment);
    assert_eq!(Header::decode(&bytes, &own.deployment).unwrap_err(), Error::WrongSuite);
    let state = other.edges[0].membership.as_ref().unwrap().encode();
    assert_eq!(GroupMembership::<Ristretto255>::restore(&state).unwrap_err(), Error::WrongSuite);
}

/// §7.4: a leader that takes an acknowledgement of another member, or of an epoch before, would not send a key again.
fn acknowledgements_are_of_one_member_and_one_epoch<S: Suite>(strategy: StrategyKind) {
    let mut swarm = Swarm::<S>::formed_by(strategy, 92, 3);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        for edge in &swarm.edges {
            let member = edge.membership.as_ref().unwrap();
            let auth = swarm.leadership.auth_key(member.slot()).unwrap();
            assert_eq!(member.ack_tag(), quiver_ainq::ack_tag::<S>(auth, swarm.leadership.digest()));
            assert!(seen.insert(member.ack_tag()));
        }
        swarm.expire();
    }
    assert_eq!(seen.len(), 6);
}
