//! Members die between any two outputs and come back out of their records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use quiver_message::quorum::QuorumMessage;
use quiver_quorum_node::QuorumCommand;

use crate::key_generation::check_keys;
use crate::world::World;

/// No member ever sends two different messages in one session to one member, whatever happened in between.
fn check_consistency(world: &World) {
    let mut said: BTreeMap<_, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for packet in world.sent() {
        let QuorumMessage::Ceremony(message) = &packet.message else { continue };
        let Some(rounds) = &message.rounds else { continue };
        let parts = [
            rounds.commitments.as_ref().map(|both| [both.ainq.clone(), both.ibe.clone()].concat()),
            rounds.echo.as_ref().map(|echo| echo.digests.concat()),
            rounds.share.as_ref().map(|both| [both.ainq.expose(), both.ibe.expose()].concat()),
            rounds.confirmation.map(|digest| digest.to_vec()),
        ];
        for (part, bytes) in parts.into_iter().enumerate().filter_map(|(part, bytes)| Some((part, bytes?))) {
            // Broadcasts are the same for all.
            let to = if part == 2 { packet.to } else { 0 };
            said.entry((rounds.session, packet.from, to, part)).or_default().insert(bytes);
        }
    }
    for ((_, from, to, part), variants) in said {
        assert_eq!(variants.len(), 1, "member {from} said two things to {to} in part {part}");
    }
}

#[test]
fn a_member_killed_after_any_output_goes_on_where_it_was() {
    let mut died = 0;
    for outputs in 0..40 {
        let mut world = World::new(400 + u64::from(outputs), 3, 2);
        world.crash_after(2, outputs);
        world.generate();
        check_keys(&mut world);
        check_consistency(&world);
        world.run_for(Duration::from_secs(100));
        world.crash_after(3, outputs);
        world.command(1, QuorumCommand::Refresh);
        world.until("shares are refreshed", |world| world.all_hold(1));
        check_keys(&mut world);
        check_consistency(&world);
        died += world.member(2).lives() - 1 + world.member(3).lives() - 1;
    }
    assert!(died > 40, "the test tests something: {died}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whoever_dies_when_and_whatever_the_weather_they_come_to_one_key(
        seed in any::<u64>(),
        (n, t) in prop_oneof![Just((3_u16, 2_u16)), Just((4, 3)), Just((5, 3))],
        deaths in proptest::collection::vec((1_u16..=5, 0_u32..60), 0..8),
        (lost, twice, late) in (0_u8..90, 0_u8..90, 0_u64..5000),
    ) {
        let mut world = World::new(seed, n, t);
        world.set_faults(lost, twice, late);
        for (id, outputs) in &deaths {
            world.crash_after((id - 1) % n + 1, *outputs);
        }
        world.generate();
        check_keys(&mut world);
        for (id, outputs) in &deaths {
            world.crash_after(id % n + 1, *outputs);
        }
        world.run_for(Duration::from_secs(100));
        world.until("all are up", |world| world.all_alive());
        world.command(1, QuorumCommand::Refresh);
        // A member that dies of it may take the command with it.
        world.run_for(Duration::from_secs(5));
        world.until("all are up", |world| world.all_alive());
        world.command(1, QuorumCommand::Refresh);
        world.until("shares are refreshed", |world| world.all_hold(1));
        check_keys(&mut world);
        check_consistency(&world);
    }
}
