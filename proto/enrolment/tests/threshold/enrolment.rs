//! The way it goes, and the way it goes when some KGCs are not there.

use std::time::Duration;

use quiver_ainq::{Bls12381G1, DroneKeypair, Handle, Label, Ristretto255};
use quiver_enrolment::threshold::QuorumSuite;
use quiver_enrolment::{EnrolmentTrouble, KgcEvent};
use quiver_machine::RefusalReason;

use crate::world::{Node, Said, World};

fn a_drone_gets_a_key<S: QuorumSuite>(members: u16, threshold: u16) {
    let mut world = World::<S>::new(1, members, threshold);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(1));
    let machine = world.drone(drone);
    let keypair = machine.keypair().expect("enrolled");
    // A key like a single KGC's: it restores and signs under the deployment.
    let public = keypair.public().clone();
    let restored = DroneKeypair::restore(&world.deployment, public.clone(), &keypair.to_bytes()).unwrap();
    let signature = restored.sign(&world.deployment, Label::Join, b"hello", &mut world.rng);
    assert_eq!(signature.verify(&world.deployment, &public, Label::Join, b"hello"), Ok(()));
    // Every KGC has pinned the token, and t of them know what they contributed to.
    assert!((0..world.kgc_ids.len()).all(|place| world.kgc(place).issued() == 1));
    let handles: Vec<Handle> =
        (0..world.kgc_ids.len()).flat_map(|place| world.kgc_events(place)).filter_map(handle).collect();
    assert_eq!(handles, vec![public.handle(); threshold.into()]);
    assert!(world.trouble(drone).is_empty());
}

fn handle(event: &KgcEvent) -> Option<Handle> {
    match event {
        KgcEvent::Contributed { handle, .. } => Some(*handle),
        _ => None,
    }
}

#[test]
fn a_drone_gets_a_key_of_three_out_of_five() {
    a_drone_gets_a_key::<Ristretto255>(5, 3);
}

#[test]
fn a_drone_gets_a_key_in_the_other_suite() {
    a_drone_gets_a_key::<Bls12381G1>(3, 2);
}

#[test]
fn a_drone_gets_a_key_of_all_where_all_are_needed() {
    a_drone_gets_a_key::<Ristretto255>(3, 3);
}

#[test]
fn every_kgc_that_contributed_learns_that_its_drone_holds_a_key() {
    let mut world = World::<Ristretto255>::new(21, 5, 3);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(1));
    let held = world.drone(drone).keypair().unwrap().public().handle();
    let proven = |world: &World<Ristretto255>, place: usize| {
        let events = world.kgc_events(place).iter();
        events.filter(|event| matches!(event, KgcEvent::Enrolled { handle, .. } if *handle == held)).count()
    };
    assert!((0..5).all(|place| proven(&world, place) == 1));
    // Repeated at the next connection, where it is no news; one that was away receives it then.
    world.stop(Node::Drone(drone));
    world.start_drone(drone);
    world.run_for(Duration::from_secs(1));
    assert!((0..5).all(|place| proven(&world, place) == 1));
}

#[test]
fn a_drone_whose_shares_get_lost_enrols_in_one_round() {
    let mut world = World::<Ristretto255>::new(22, 3, 3);
    let lost = std::rc::Rc::new(std::cell::Cell::new(0));
    let drone = world.add("wren");
    while !world.is_enrolled(drone) && lost.get() < 3 {
        let share = world.pending().iter().position(|packet| {
            packet.to == Node::Drone(drone) && matches!(world.decode(&packet.bytes), Said::Share(_))
        });
        match share {
            Some(place) => {
                world.lose(place);
                lost.set(lost.get() + 1);
            }
            None if world.pending().is_empty() => {
                let next = world.time() + Duration::from_millis(100);
                world.wait(next);
            }
            None => world.deliver(0),
        }
    }
    world.run_for(Duration::from_secs(5));
    assert!(world.is_enrolled(drone));
    let contributed =
        (0..world.kgc_ids.len()).flat_map(|place| world.kgc_events(place)).filter_map(handle).count();
    assert_eq!((lost.get(), contributed), (3, 3), "three shares got lost, and no second round was opened");
}

#[test]
fn a_quorum_of_sixty_four_serves_a_drone() {
    a_drone_gets_a_key::<Ristretto255>(64, 33);
}

#[test]
fn one_kgc_dead_and_one_lying_are_routed_around() {
    let mut world = World::<Ristretto255>::new(2, 5, 3);
    world.stop(Node::Kgc(0));
    world.set_lying(1, true);
    let drones: Vec<_> = (0..10).map(|number| world.add(&format!("drone-{number}"))).collect();
    world.run_for(Duration::from_secs(10));
    let mut named = 0;
    for drone in drones {
        assert!(world.is_enrolled(drone), "{:?}", world.drone_events(drone));
        for trouble in world.trouble(drone) {
            let EnrolmentTrouble::WrongShare { kgc, .. } = trouble else { panic!("{trouble:?}") };
            assert_eq!(*kgc, 2);
            named += 1;
        }
    }
    assert!(named > 0);
}

#[test]
fn too_few_kgcs_are_reported_with_those_missing_and_more_are_waited_for() {
    let mut world = World::<Ristretto255>::new(3, 5, 3);
    for place in [0, 3, 4] {
        world.stop(Node::Kgc(place));
    }
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(20));
    assert!(!world.is_enrolled(drone));
    let expected =
        EnrolmentTrouble::TooFew { answered: vec![2, 3], missing: vec![1, 4, 5], threshold: Some(3) };
    assert_eq!(world.trouble(drone).first(), Some(&&expected));
    assert!(expected.to_string().contains("[1, 4, 5]"), "{expected}");
    world.start_kgc(3);
    world.run_for(Duration::from_secs(60));
    assert!(world.is_enrolled(drone));
}

#[test]
fn shares_of_two_versions_are_reported_as_such() {
    let mut world = World::<Ristretto255>::refreshed(5, 3, 2);
    world.put_back.insert(2);
    for place in [1, 2] {
        world.stop(Node::Kgc(place));
    }
    world.start_kgc(2);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(20));
    assert!(!world.is_enrolled(drone));
    let expected = EnrolmentTrouble::SharesDiffer { shares: vec![(1, 1), (3, 0)], threshold: 2 };
    assert_eq!(world.trouble(drone).first(), Some(&&expected));
    let told = expected.to_string();
    assert!(told.contains("KGC 1: version 1, KGC 3: version 0") && told.contains("repair"), "{told}");
    // Two of one version will do, whatever the third has.
    world.start_kgc(1);
    world.run_for(Duration::from_secs(60));
    assert!(world.is_enrolled(drone));
}

#[test]
fn without_any_kgc_nothing_is_known_of_the_threshold() {
    let mut world = World::<Ristretto255>::new(4, 3, 2);
    let drone = world.add("wren");
    // They are connected and say nothing.
    for _ in 0..20 {
        world.lose_all();
        let end = world.time() + Duration::from_secs(1);
        world.wait(end);
    }
    let expected = EnrolmentTrouble::TooFew { answered: vec![], missing: vec![1, 2, 3], threshold: None };
    assert_eq!(world.trouble(drone).first(), Some(&&expected));
    world.run_for(Duration::from_secs(120));
    assert!(world.is_enrolled(drone));
}

#[test]
fn a_kgc_that_commits_itself_and_never_signs_is_left_out() {
    let mut world = World::<Ristretto255>::new(5, 5, 3);
    world.set_mute(0);
    let drone = world.add("wren");
    world.run_for(Duration::from_secs(1));
    assert!(!world.is_enrolled(drone));
    world.run_for(Duration::from_secs(5));
    assert!(world.is_enrolled(drone));
    assert!(matches!(world.trouble(drone)[..], [EnrolmentTrouble::Silent { kgc: 1, .. }]));
}

#[test]
fn a_kgc_that_crashes_between_the_rounds_is_replaced_at_once() {
    let mut world = World::<Ristretto255>::new(6, 4, 3);
    let drone = world.add("wren");
    while !world.recorded.iter().any(|packet| matches!(world.decode(&packet.bytes), Said::Signing(_))) {
        world.deliver(0);
    }
    let signers: Vec<_> =
        world.pending().iter().map(|packet| packet.to).filter(|node| matches!(node, Node::Kgc(_))).collect();
    world.stop(signers[0]);
    let before = world.time();
    while !world.is_enrolled(drone) {
        world.deliver(0);
    }
    assert_eq!(world.time(), before, "no deadline had to pass");
}

#[test]
fn a_drone_that_crashes_between_the_rounds_goes_on_with_the_same_request() {
    let mut world = World::<Ristretto255>::new(7, 3, 3);
    let drone = world.add("wren");
    while !world.recorded.iter().any(|packet| matches!(world.decode(&packet.bytes), Said::Signing(_))) {
        world.deliver(0);
    }
    world.stop(Node::Drone(drone));
    world.start_drone(drone);
    world.run_for(Duration::from_secs(5));
    assert!(world.is_enrolled(drone));
    for place in 0..3 {
        assert!(world.pins(place).values().all(|pins| pins.len() == 1));
    }
}

#[test]
fn a_drone_that_everybody_refuses_is_told_why() {
    let mut world = World::<Ristretto255>::new(8, 5, 3);
    let token = world.token("wren");
    let first = world.add_drone(&token, (0..5).collect());
    world.run_for(Duration::from_secs(1));
    let second = world.add_drone(&token, (0..5).collect());
    world.run_for(Duration::from_secs(60));
    assert!(world.is_enrolled(first) && !world.is_enrolled(second));
    assert!(world.refused(second).contains(&RefusalReason::TokenReused));
}

#[test]
fn one_kgc_that_refuses_is_no_reason_to_give_up() {
    let mut world = World::<Ristretto255>::new(9, 3, 2);
    let token = world.token("wren");
    // A thief was faster at one KGC, and alone with it.
    let thief = world.add_drone(&token, vec![0]);
    world.run_for(Duration::from_secs(1));
    let owner = world.add_drone(&token, vec![0, 1, 2]);
    world.run_for(Duration::from_secs(10));
    assert!(world.is_enrolled(owner) && !world.is_enrolled(thief));
    assert!(world.refused(owner).is_empty());
    assert!(world.trouble(owner).iter().any(|trouble| matches!(
        trouble,
        EnrolmentTrouble::Refused { reason: RefusalReason::TokenReused, .. }
    )));
}
