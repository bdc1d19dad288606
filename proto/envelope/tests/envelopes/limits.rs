//! Drones with less time and memory than a service.

use std::time::Duration;

use quiver_envelope::{EnvelopeEvent, EnvelopeLimits, Envelopes};

use quiver_testbed::matching;

use crate::authority::{
    Authority, envelope_edge, envelope_events, give, not_satisfied, opened, order, swarm,
};
use crate::world::World;

/// A group of one edge, with a key for `scout`, that has these limits.
fn limited(seed: u64, limits: EnvelopeLimits) -> (World, Authority) {
    let (mut world, authority) = swarm(seed, &[""]);
    *world.edge_node(0).machine_mut().unwrap().parts_mut() = Envelopes::new(limits);
    give(&mut world, 0, &authority.key("scout"));
    (world, authority)
}

fn too_large(world: &World) -> usize {
    let told = |event: &&EnvelopeEvent| matches!(event, EnvelopeEvent::TooLarge { .. });
    envelope_events(world, 0).filter(told).count()
}

#[test]
fn a_policy_that_is_more_than_a_drone_opens_is_told_once_and_costs_nothing() {
    let (mut world, authority) =
        limited(41, EnvelopeLimits { ciphertext: 1_024, ..EnvelopeLimits::default() });
    let large: Vec<_> = (0..30).map(|leaf| format!("scout-{leaf}")).collect();
    let large = format!("scout or {}", large.join(" or "));
    for text in [b"one", b"two"] {
        order(&mut world, &authority, &large, text);
        order(&mut world, &authority, "scout", text);
    }
    assert_eq!(opened(&world, 0).len(), 2);
    assert_eq!((too_large(&world), not_satisfied(&world, 0)), (1, 0));
    assert!(world.blamed_by_edge(0).is_empty());
}

#[test]
fn openings_beyond_what_a_drone_has_time_for_wait_until_it_has() {
    let minute = Duration::from_secs(60);
    let (mut world, authority) =
        limited(42, EnvelopeLimits { openings: (2, minute), ..EnvelopeLimits::default() });
    let tell = |world: &mut World, other: u8| {
        order(world, &authority, &format!("scout or other-{other}"), b"hello");
        opened(world, 0).len()
    };
    world.run_for(2 * minute);
    let told: Vec<_> = (0..4).map(|other| tell(&mut world, other)).collect();
    assert_eq!(told, [1, 2, 2, 2]);
    world.run_for(minute);
    // The next message of a session makes the drone request its opening.
    assert_eq!(tell(&mut world, 2), 4, "the message that was passed over, and this one");
}

#[test]
fn a_drone_keeps_as_many_sessions_of_its_own_as_it_may() {
    let (mut world, authority) = limited(43, EnvelopeLimits { open: 1, ..EnvelopeLimits::default() });
    let mut numbers = Vec::new();
    for policy in ["medic", "medic", "scout", "medic"] {
        envelope_edge(&mut world, 0, authority.seal(policy, b"help", true));
        let sent = envelope_events(&world, 0)
            .rev()
            .find_map(matching!(EnvelopeEvent::Sent { number, .. } => *number));
        numbers.extend(sent);
    }
    assert_eq!(numbers, [0, 1, 0, 0], "the session before makes room");
}
