//! Attackers between drone and KGCs, and drones that lie.

use std::time::Duration;

use proptest::prelude::*;
use quiver_ainq::{Ristretto255, Suite};
use quiver_enrolment::threshold::{EnrolCommitment, EnrolSigning};
use quiver_enrolment::{EnrolmentTrouble, KgcEvent, KgcRecord};
use quiver_group::EdgeEvent;
use quiver_machine::RefusalReason;

use crate::world::{Node, Said, World};

type S = Ristretto255;

/// Delivers everything for so long; `tamper` gives what arrives in place of each message.
fn run(world: &mut World<S>, time: Duration, mut tamper: impl FnMut(&mut World<S>, Said<S>) -> Said<S>) {
    let end = world.time() + time;
    for _ in 0..20_000 {
        if !world.pending().is_empty() {
            let message = world.decode(&world.pending()[0].bytes);
            let bytes = tamper(world, message).encode(&world.deployment);
            world.deliver_changed(0, bytes);
        } else if !world.wait(end) {
            return;
        }
    }
    panic!("the machines never come to rest");
}

#[test]
fn nobody_on_the_way_learns_the_partial_key() {
    let mut world = World::<S>::new(1, 3, 2);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(1));
    assert!(world.is_enrolled(drone));
    let machine = world.drone(drone);
    let secret = machine.keypair().unwrap().to_bytes();
    for packet in &world.recorded {
        assert!(!packet.bytes.windows(secret.len()).any(|window| window == secret.as_slice()));
    }
    // A KGC's records have no secret either: pins and handles alone.
    for record in (0..world.kgc_ids.len()).flat_map(|place| world.kgc_records(place)) {
        let public = matches!(
            record,
            KgcRecord::Pinned { .. } | KgcRecord::Contributed { .. } | KgcRecord::Enrolled { .. }
        );
        assert!(public, "{record:?}");
    }
}

#[test]
fn a_statement_that_the_quorum_did_not_sign_is_blamed_on_its_sender() {
    let mut world = World::<S>::new(2, 3, 2);
    let stranger = World::<S>::new(99, 3, 2).statement.encode();
    let drone = world.add("wren");
    run(&mut world, Duration::from_secs(5), |_, message| match message {
        Said::Commitment(commitment) if commitment.kgc == 1 => {
            Said::Commitment(EnrolCommitment { statement: stranger.clone(), ..commitment })
        }
        other => other,
    });
    assert!(world.is_enrolled(drone));
    assert!(world.drone_events(drone).iter().any(|event| matches!(event, EdgeEvent::Blamed { .. })));
}

#[test]
fn a_kgc_under_another_ones_name_does_not_stop_a_drone() {
    // KGC 1 claims to be KGC 2: two do, and one of the two shares is wrong.
    for seed in 0..4 {
        let mut world = World::<S>::new(seed, 4, 3);
        let drone = world.add("wren");
        let liar = world.kgc_ids[0];
        run(&mut world, Duration::from_secs(30), |_, message| match message {
            Said::Commitment(commitment) if commitment.kgc == liar => {
                Said::Commitment(EnrolCommitment { kgc: 2, ..commitment })
            }
            other => other,
        });
        assert!(world.is_enrolled(drone), "{:?}", world.drone_events(drone));
    }
}

#[test]
fn other_commitments_in_the_package_make_no_key_and_name_whom_they_belong_to() {
    let mut world = World::<S>::new(3, 3, 2);
    let drone = world.add("wren");
    let mut spoilt = 0;
    run(&mut world, Duration::from_secs(1), |world, message| match message {
        Said::Signing(mut signing) if spoilt < 1 => {
            spoilt += 1;
            let point = S::mul_base(&S::scalar_random(&mut world.rng));
            let other = [S::encode(&point), S::encode(&point)].concat();
            let last = signing.parts.len() - 1;
            signing.parts[last].1 = other;
            Said::Signing(EnrolSigning { ..signing })
        }
        other => other,
    });
    // The KGC has signed another package than the drone's, so its share does not even open.
    assert_eq!(spoilt, 1);
    world.run_for(Duration::from_secs(30));
    assert!(world.is_enrolled(drone));
}

#[test]
fn liars_are_named_and_nobody_else_is() {
    for liars in [vec![0], vec![4], vec![1, 3]] {
        let mut world = World::<S>::new(4, 5, 3);
        for liar in &liars {
            world.set_lying(*liar, true);
        }
        let drone = world.add("wren");
        world.run_for(Duration::from_secs(10));
        assert!(world.is_enrolled(drone));
        for trouble in world.trouble(drone) {
            let EnrolmentTrouble::WrongShare { kgc, peer } = trouble else { panic!("{trouble:?}") };
            let place = usize::from(*kgc) - 1;
            assert!(liars.contains(&place), "{liars:?}: {kgc}");
            assert_eq!(world.peer(Node::Drone(drone), Node::Kgc(place)), Some(*peer));
        }
    }
}

#[test]
fn more_liars_than_the_others_can_make_up_for_stop_nothing_but_this() {
    let mut world = World::<S>::new(5, 3, 3);
    world.set_lying(0, true);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(60));
    assert!(!world.is_enrolled(drone));
    let few =
        world.trouble(drone).into_iter().filter(|trouble| matches!(trouble, EnrolmentTrouble::TooFew { .. }));
    // Doubling waits from two seconds to thirty: tried again, and not in a tight loop.
    assert!((2..30).contains(&few.count()));
    world.set_lying(0, false);
    world.run_for(Duration::from_secs(120));
    assert!(world.is_enrolled(drone), "a liar that stops lying is asked again");
}

#[test]
fn a_drone_gets_no_more_than_eight_shares_of_a_kgc_and_is_told_so() {
    let mut world = World::<S>::new(6, 3, 3);
    world.set_mute(0);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(2500));
    assert!(!world.is_enrolled(drone));
    let contributed = |record: &&KgcRecord| matches!(record, KgcRecord::Contributed { .. });
    let kept = world.kgc_records(1).iter().filter(contributed).count();
    assert_eq!(kept, 8);
    let made = |event: &&KgcEvent| matches!(event, KgcEvent::Contributed { .. });
    assert_eq!(world.kgc_events(1).iter().filter(made).count(), 8, "no share that no record tells of");
    assert!(world.refused(drone).contains(&RefusalReason::TokenSpent));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn one_changed_byte_on_the_way_costs_time_at_most(seed: u64, which in 0_usize..40, place: prop::sample::Index, value: u8) {
        let mut world = World::<S>::new(seed, 3, 2);
        let drone = world.add("wren");
        let mut number = 0;
        let end = world.time() + Duration::from_secs(120);
        for _ in 0..20_000 {
            if world.pending().is_empty() {
                if !world.wait(end) {
                    break;
                }
                continue;
            }
            if number == which {
                let mut bytes = world.pending()[0].bytes.clone();
                let at = place.index(bytes.len());
                bytes[at] = value;
                world.deliver_changed(0, bytes);
            } else {
                world.deliver(0);
            }
            number += 1;
        }
        prop_assert!(world.is_enrolled(drone), "{:?}", world.drone_events(drone));
    }
}
