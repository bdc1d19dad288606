//! The way it goes: who gets which key, when, and once.

use quiver_ainq::{Role, SignedAuthority};
use quiver_delivery::attributes::{FetchEvent, Grant, IssuerEvent, KeyResponse};
use quiver_machine::{Either, RefusalReason, Route};

use crate::world::{INTERVAL, Node, START, World, name};

#[test]
fn drone_gets_its_keys_and_the_statements_to_check_them_by() {
    let mut world = World::new(1, &["orders", "sensors", "idle"]);
    let (drone, other) = (world.add_drone(), world.add_drone());
    world.grant("orders", drone, Some(b"scout"));
    world.grant("sensors", drone, Some(b"thermal"));
    world.grant("orders", other, Some(b"tanker"));
    world.fetch(drone);
    world.fetch(other);
    assert!(world.key(drone, "orders").unwrap().starts_with(b"key for scout"));
    assert!(world.key(drone, "sensors").unwrap().starts_with(b"key for thermal"));
    assert!(world.key(other, "orders").unwrap().starts_with(b"key for tanker"));
    assert_eq!((world.key(other, "sensors"), world.key(drone, "idle")), (None, None));
    for (text, (statement, _)) in world.ring(other) {
        let statement =
            SignedAuthority::<crate::world::S>::decode(statement).unwrap().verify(&world.deployment);
        assert_eq!(statement.unwrap().name, *text, "also of authorities that grant nothing");
    }
    assert_eq!(world.drone_events(drone).last(), Some(&FetchEvent::Done { answered: 3, refused: 0 }));
    assert_eq!(world.issued(), 3);
}

#[test]
fn leaders_get_keys_like_anybody() {
    let mut world = World::new(2, &["orders"]);
    let role = Role::Leader { group: name("alpha"), ordinal: 1 };
    let keypair = world.keypair(9, role, START + 1_000_000);
    let leader = world.add_drone_with(keypair);
    world.grant("orders", leader, Some(b"command"));
    world.fetch(leader);
    assert!(world.key(leader, "orders").unwrap().starts_with(b"key for command"));
}

#[test]
fn key_that_is_held_is_not_made_again() {
    let (mut world, drone) = World::granted(3, b"scout");
    world.fetch(drone);
    let key = world.key(drone, "orders").unwrap().to_vec();
    world.fetch(drone);
    world.restart_drone(drone);
    world.fetch(drone);
    assert_eq!(world.key(drone, "orders").unwrap(), key);
    assert_eq!((world.made(), world.issued()), (1, 1));
    let held =
        world.issuer_events().iter().filter(|event| matches!(event, IssuerEvent::HeldAlready { .. })).count();
    assert_eq!(held, 2);
}

#[test]
fn lost_key_is_made_anew_with_randomness_of_its_own() {
    let (mut world, drone) = World::granted(4, b"scout");
    world.fetch(drone);
    let key = world.key(drone, "orders").unwrap().to_vec();
    world.lose_ring(drone);
    world.run_for(INTERVAL);
    world.restart_drone(drone);
    world.fetch(drone);
    assert_ne!(world.key(drone, "orders").unwrap(), key);
    assert_eq!((world.made(), world.issued()), (2, 2));
}

#[test]
fn changed_grant_brings_another_key_and_a_withdrawn_one_takes_it() {
    let (mut world, drone) = World::granted(5, b"scout");
    world.fetch(drone);
    world.grant("orders", drone, Some(b"scout and night"));
    world.run_for(INTERVAL);
    world.fetch(drone);
    assert!(world.key(drone, "orders").unwrap().starts_with(b"key for scout and night"));
    world.grant("orders", drone, None);
    world.fetch(drone);
    assert_eq!(world.key(drone, "orders"), None);
    assert!(matches!(
        world.drone_events(drone).iter().rev().nth(1),
        Some(FetchEvent::Answered { response: KeyResponse::Withdrawn, .. })
    ));
}

#[test]
fn who_asks_too_often_waits() {
    let (mut world, drone) = World::granted(6, b"scout");
    world.fetch(drone);
    let before = world.time();
    world.lose_ring(drone);
    world.restart_drone(drone);
    world.fetch(drone);
    assert!(world.refusals(drone).contains(&RefusalReason::Busy));
    assert!(world.time() - before >= INTERVAL);
    assert!(world.key(drone, "orders").is_some());
}

#[test]
fn fetch_that_is_cut_off_goes_on_where_it_was() {
    let mut world = World::new(7, &["a", "b", "c"]);
    let drone = world.add_drone();
    for authority in ["a", "b", "c"] {
        world.grant(authority, drone, Some(b"x"));
    }
    // The second answer is lost, and the connection with it.
    let mut answers = 0;
    world.lose_where(move |packet| {
        let large = packet.from == Node::Centre && packet.bytes.len() > 200;
        answers += usize::from(large);
        large && answers == 2
    });
    world.dial(drone);
    world.run_for(std::time::Duration::from_millis(1));
    assert_eq!(world.ring(drone).len(), 1);
    world.tamper = None;
    world.hang_up(drone);
    world.run_for(INTERVAL);
    world.fetch(drone);
    assert!(["a", "b", "c"].iter().all(|authority| world.key(drone, authority).is_some()));
    assert_eq!(world.made(), 4, "one of them twice, because its first answer was lost");
}

#[test]
fn grants_outlive_the_centre() {
    let (mut world, drone) = World::granted(8, b"old");
    world.grant("orders", drone, Some(b"new"));
    world.stop_centre();
    world.grants.reverse();
    world.start_centre();
    world.fetch(drone);
    assert!(world.key(drone, "orders").unwrap().starts_with(b"key for new"), "in whatever order they come");
    assert_eq!(world.centre().parts().keys.issuer().grants(), 1);
}

#[test]
fn centre_that_starts_goes_by_the_newest_word_before_anybody_tells_it_more() {
    let mut world = World::new(12, &["orders", "sensors"]);
    let drone = world.add_drone();
    world.grant("orders", drone, Some(b"wide"));
    world.grant("sensors", drone, Some(b"thermal"));
    world.fetch(drone);
    world.stop_centre();
    let narrowed = Grant { revision: 3, granted: Some(b"narrow".to_vec()), ..world.grants[0].clone() };
    let withdrawn = Grant { revision: 4, granted: None, ..world.grants[1].clone() };
    world.grants.extend([narrowed, withdrawn]);
    // No command comes in before the drone's requests.
    world.start_centre();
    world.run_for(INTERVAL);
    world.fetch(drone);
    assert!(world.key(drone, "orders").unwrap().starts_with(b"key for narrow"));
    assert_eq!(world.key(drone, "sensors"), None);
    assert_eq!(world.made(), 3, "and never one for the old grants again");
}

#[test]
fn centre_that_forgot_a_grant_takes_no_key() {
    let (mut world, drone) = World::granted(13, b"scout");
    world.fetch(drone);
    let key = world.key(drone, "orders").unwrap().to_vec();
    world.stop_centre();
    let grants = std::mem::take(&mut world.grants);
    world.start_centre();
    world.fetch(drone);
    let last = world.drone_events(drone).iter().rev().nth(1);
    assert!(matches!(last, Some(FetchEvent::Answered { response: KeyResponse::Nothing, .. })), "{last:?}");
    assert_eq!(world.key(drone, "orders"), Some(&key[..]));
    // Known again: the drone still sends the mark of its grant.
    world.stop_centre();
    world.grants = grants;
    world.start_centre();
    world.fetch(drone);
    assert_eq!((world.key(drone, "orders"), world.made()), (Some(&key[..]), 1));
}

#[test]
fn registry_that_was_put_back_does_not_keep_a_drone_from_its_new_key() {
    let (mut world, drone) = World::granted(11, b"old");
    world.fetch(drone);
    // From a backup made before that grant: the next one gets its number again.
    world.stop_centre();
    world.grants.clear();
    world.start_centre();
    world.grant("orders", drone, Some(b"new"));
    world.run_for(INTERVAL);
    world.fetch(drone);
    assert!(world.key(drone, "orders").unwrap().starts_with(b"key for new"));
}

#[test]
fn impossible_grant_is_reported_and_stops_nobody() {
    let mut world = World::new(9, &["a", "b", "c"]);
    let drone = world.add_drone();
    world.grant("a", drone, Some(b"impossible"));
    world.grant("b", drone, Some(b"endless"));
    world.grant("c", drone, Some(b"fine"));
    world.fetch(drone);
    assert!(world.key(drone, "c").is_some());
    assert_eq!((world.key(drone, "a"), world.key(drone, "b")), (None, None));
    assert_eq!(world.refusals(drone), [RefusalReason::NotReady, RefusalReason::NotReady]);
    let failed =
        world.issuer_events().iter().filter(|event| matches!(event, IssuerEvent::NotMade { .. })).count();
    assert_eq!((failed, world.issued()), (2, 1));
}

#[test]
fn enrolment_and_revocation_go_on_beside_the_issuer() {
    let mut world = World::new(10, &["orders"]);
    let drone = world.add_drone();
    world.dial(drone);
    let query =
        quiver_message::Message::<crate::world::S>::RevocationQuery(quiver_message::RevocationQuery {
            number: 0,
            max_len: 0,
        });
    let query = query.encode(&world.deployment);
    world.inject(Node::Drone(drone), Node::Centre, &query);
    world.revoke(drone);
    world.run_for(INTERVAL);
    let (_, list) =
        world.last(Node::Centre, |message| matches!(message, quiver_message::Message::RevocationList(_)));
    assert!(matches!(list, quiver_message::Message::RevocationList(_)));
    assert!(matches!(world.centre_records(), [Either::Left(_)]));
}

#[test]
fn drone_leaves_a_kgc_that_does_not_answer_for_another() {
    let (mut world, drone) = World::granted(14, b"scout");
    let silent = Node::Drone(world.add_drone());
    world.lose_where(move |packet| packet.to == silent);
    world.connect(Node::Drone(drone), silent, Route::Kgc);
    world.fetch(drone);
    assert!(world.key(drone, "orders").is_some());
}
