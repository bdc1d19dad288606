//! A member that lost its shares gets the same ones again.

use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_message::quorum::{Both, QuorumMessage, SecretBytes};
use quiver_quorum_node::{QuorumCommand, QuorumEvent};

use crate::key_generation::{check_keys, holdings};
use crate::world::{Packet, S, World};

/// A disk is gone, and a new machine takes its place.
fn lose(world: &mut World, id: KgcId) {
    world.stop(id);
    world.member_mut(id).records_mut().clear();
    world.start(id);
}

fn helped_by(world: &mut World, helpers: &[KgcId], lost: KgcId) {
    helpers.iter().for_each(|helper| world.command(*helper, QuorumCommand::HelpRecover(lost)));
}

#[test]
fn lost_shares_come_back_as_they_were() {
    for seed in 0..6 {
        let mut world = World::new(200 + seed, 5, 3);
        world.generate();
        let before = holdings(&world);
        world.set_faults(60, 60, 2000);
        lose(&mut world, 2);
        world.command(2, QuorumCommand::Recover);
        helped_by(&mut world, &[1, 3, 5], 2);
        world.until("shares are back", |world| world.all_hold(0));
        for (old, new) in before.iter().zip(holdings(&world)) {
            assert_eq!(old.encode(), new.encode());
        }
        assert!(world.events(2).contains(&QuorumEvent::Recovered { version: 0 }));
        assert!(world.node(2).deployment() == world.node(1).deployment());
        check_keys(&mut world);
        // And all is as before: the member knows what was signed, and takes part in a refresh.
        world.until("it learns who the quorum is", |world| world.node(2).quorum_statement().is_some());
        world.run_for(Duration::from_secs(100));
        world.command(2, QuorumCommand::Refresh);
        world.until("shares are refreshed", |world| world.all_hold(1));
        check_keys(&mut world);
    }
}

#[test]
fn member_that_knows_p_pub_takes_no_shares_of_another_key() {
    let mut world = World::new(12, 3, 2);
    world.generate();
    let genuine = *world.node(1).deployment().unwrap().master();
    let other = quiver_ainq::SecretScalar::<S>::generate(&mut world.rng).public();
    for (pinned, taken) in [(other, false), (genuine, true)] {
        lose(&mut world, 2);
        world.member_mut(2).map_machine(|node| node.with_master(pinned));
        world.command(2, QuorumCommand::Recover);
        helped_by(&mut world, &[1, 3], 2);
        world.run_for(Duration::from_secs(200));
        let refused = QuorumEvent::Refused("members offer shares that are not this quorum's");
        assert!(world.events(2).contains(&refused), "by the first");
        assert_eq!(world.node(2).keys().is_some(), taken);
    }
}

#[test]
fn nobody_helps_without_its_operators_word() {
    let mut world = World::new(7, 5, 3);
    world.generate();
    lose(&mut world, 4);
    world.command(4, QuorumCommand::Recover);
    helped_by(&mut world, &[1, 2], 4);
    world.run_for(Duration::from_secs(600));
    assert!(world.node(4).keys().is_none(), "two are not enough");
    assert!(world.events(3).contains(&QuorumEvent::HelpWanted { by: 4 }));
    let secret = |packet: &Packet| {
        packet.to == 4
            && matches!(packet.message, QuorumMessage::RepairAnswer(_) | QuorumMessage::RepairDelta(_))
    };
    assert!(!world.sent().iter().any(secret));
    helped_by(&mut world, &[3], 4);
    world.until("shares are back", |world| world.all_hold(0));
}

/// Secrets that a member was sent, or that helpers sent each other.
fn secrets(world: &World) -> usize {
    let is_secret = |packet: &&Packet| {
        matches!(packet.message, QuorumMessage::RepairAnswer(_) | QuorumMessage::RepairDelta(_))
    };
    world.sent().iter().filter(is_secret).count()
}

#[test]
fn an_approval_is_good_for_one_repair() {
    let mut world = World::new(13, 3, 2);
    world.generate();
    lose(&mut world, 2);
    world.command(2, QuorumCommand::Recover);
    helped_by(&mut world, &[1, 3], 2);
    world.until("shares are back", |world| world.all_hold(0));
    world.run_for(Duration::from_secs(60));
    let before = secrets(&world);
    // A holder of this member's transport key asks again within the hour.
    lose(&mut world, 2);
    world.command(2, QuorumCommand::Recover);
    world.run_for(Duration::from_secs(600));
    assert!(world.node(2).keys().is_none() && secrets(&world) == before);
    for helper in [1, 3] {
        let told = |event: &&QuorumEvent| **event == QuorumEvent::HelpWantedAgain { by: 2 };
        assert!(world.events(helper).iter().filter(told).count() > 0, "the operator of {helper} is told");
    }
    helped_by(&mut world, &[1, 3], 2);
    world.until("shares are back", |world| world.all_hold(0));
}

#[test]
fn an_approval_that_was_used_is_not_used_by_whoever_comes_next() {
    let mut world = World::new(14, 3, 2);
    world.generate();
    lose(&mut world, 2);
    world.command(2, QuorumCommand::Recover);
    helped_by(&mut world, &[1, 3], 2);
    // The disk loses the shares right behind the answers: the member reports to nobody that it has its
    // shares.
    world.until("it is answered", |world| {
        let answered = |packet: &Packet| matches!(packet.message, QuorumMessage::RepairAnswer(_));
        world.sent().iter().filter(|packet| answered(packet)).count() >= 2
    });
    lose(&mut world, 2);
    let before = secrets(&world);
    world.command(2, QuorumCommand::Recover);
    world.run_for(Duration::from_secs(600));
    assert!(world.node(2).keys().is_none() && secrets(&world) == before);
    assert!(world.events(1).contains(&QuorumEvent::HelpWantedAgain { by: 2 }));
}

#[test]
fn an_approval_ends_with_a_restart_of_the_helper() {
    let mut world = World::new(15, 3, 2);
    world.generate();
    lose(&mut world, 2);
    helped_by(&mut world, &[1, 3], 2);
    world.stop(1);
    world.start(1);
    world.command(2, QuorumCommand::Recover);
    world.run_for(Duration::from_secs(300));
    assert!(world.node(2).keys().is_none() && secrets(&world) == 0);
    helped_by(&mut world, &[1], 2);
    world.until("shares are back", |world| world.all_hold(0));
}

#[test]
fn nobody_helps_a_member_for_which_another_was_meant() {
    let mut world = World::new(8, 3, 2);
    world.generate();
    // Member 1 would have the shares of member 3.
    helped_by(&mut world, &[2], 3);
    world.command(1, QuorumCommand::Recover);
    world.run_for(Duration::from_secs(300));
    assert!(!world.events(2).iter().any(|event| matches!(event, QuorumEvent::Helped { .. })));
}

#[test]
fn a_helper_that_crashes_midway_is_replaced_or_starts_again() {
    for outputs in 1..8 {
        let mut world = World::new(300 + outputs as u64, 4, 2 + 1);
        world.generate();
        let before = holdings(&world);
        lose(&mut world, 1);
        helped_by(&mut world, &[2, 3, 4], 1);
        world.crash_after(3, outputs);
        world.command(1, QuorumCommand::Recover);
        // The operator's approval is gone with the helper, as its part in the repair is.
        world.run_for(Duration::from_secs(20));
        if !world.alive(3) {
            world.start(3);
        }
        helped_by(&mut world, &[3], 1);
        world.until("shares are back", |world| world.all_hold(0));
        assert_eq!(before[0].encode(), holdings(&world)[0].encode());
    }
}

#[test]
fn a_helper_that_lies_is_named_and_left_out() {
    let mut world = World::new(9, 5, 3);
    world.generate();
    let before = holdings(&world);
    lose(&mut world, 5);
    helped_by(&mut world, &[1, 2, 3, 4], 5);
    world.set_tamper(Box::new(|mut packet| {
        if let (2, QuorumMessage::RepairAnswer(answer)) = (packet.from, &mut packet.message) {
            let mut wrong = answer.answer.ainq.expose().to_vec();
            wrong[40] ^= 1;
            answer.answer = Both { ainq: SecretBytes::new(wrong.into()), ibe: answer.answer.ibe.clone() };
        }
        vec![packet]
    }));
    world.command(5, QuorumCommand::Recover);
    world.until("shares are back", |world| world.all_hold(0));
    assert_eq!(before[4].encode(), holdings(&world)[4].encode());
    for event in world.events(5) {
        if let QuorumEvent::RecoveryFailed { culprits, .. } = event {
            assert_eq!(culprits, &[2]);
        }
    }
}

#[test]
fn a_helper_that_deals_wrongly_is_named_by_the_other_helpers() {
    let mut world = World::new(10, 5, 3);
    world.generate();
    let before = holdings(&world);
    lose(&mut world, 5);
    helped_by(&mut world, &[1, 2, 3, 4], 5);
    world.set_tamper(Box::new(|mut packet| {
        if let (2, QuorumMessage::RepairDelta(delta)) = (packet.from, &mut packet.message) {
            let mut wrong = delta.delta.ibe.expose().to_vec();
            wrong[0] ^= 1;
            delta.delta.ibe = SecretBytes::new(wrong.into());
        }
        vec![packet]
    }));
    world.command(5, QuorumCommand::Recover);
    world.until("shares are back", |world| world.all_hold(0));
    assert_eq!(before[4].encode(), holdings(&world)[4].encode());
    for event in world.ids().into_iter().flat_map(|id| world.events(id)) {
        if let QuorumEvent::Blamed { member, offence } = event {
            assert_eq!(*member, 2, "{offence}");
        }
    }
}
