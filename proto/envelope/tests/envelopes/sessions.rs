//! One encapsulation, many messages; and who missed the first.

use std::time::Duration;

use quiver_envelope::{EnvelopeMessage, OpeningRequest};
use quiver_message::Message;

use crate::authority::{envelope_leader, give, last_envelope, opened, order, swarm};
use crate::world::{Node, S, World, decode};

/// Envelopes that went from the leader to edge 0, in order.
fn sealed(world: &World) -> Vec<Vec<u8>> {
    let packets = world.recorded.iter().filter(|f| f.from == Node::Leader && f.to == Node::Edge(0));
    let envelopes = packets.filter_map(|packet| match decode(world, packet).extension()?.unwrap() {
        EnvelopeMessage::Envelope(envelope) => Some(envelope.sealed),
        EnvelopeMessage::OpeningRequest(_) => None,
    });
    envelopes.collect()
}

/// Drops everything between the leader and edge 0, or stops doing so.
fn cut_off(world: &mut World, cut: bool) {
    if cut {
        world.isolated.insert(Node::Edge(0))
    } else {
        world.isolated.remove(&Node::Edge(0))
    };
}

#[test]
fn messages_after_the_first_carry_no_encapsulated_key() {
    let (mut world, authority) = swarm(11, &["scout"]);
    for data in [b"one", b"two"] {
        order(&mut world, &authority, "scout", data);
    }
    order(&mut world, &authority, "scout or medic", b"new");
    let sealed = sealed(&world);
    assert_eq!(sealed.len(), 3);
    // Header, one chunk, trailer with a signature of 64 bytes.
    assert_eq!(sealed[1].len(), 8 + 37 + (3 + 16) + (64 + 16));
    assert!(sealed[0].len() > sealed[1].len() + 100 && sealed[2].len() > sealed[0].len());
    assert_eq!(opened(&world, 0).len(), 3);
}

#[test]
fn who_missed_the_opening_asks_for_it_and_reads_everything() {
    let (mut world, authority) = swarm(12, &["scout", "scout"]);
    cut_off(&mut world, true);
    order(&mut world, &authority, "scout", b"zero");
    world.run_for(Duration::from_secs(1));
    cut_off(&mut world, false);
    order(&mut world, &authority, "scout", b"one");
    let heard: Vec<_> = opened(&world, 0).into_iter().map(|(data, _)| data).collect();
    assert_eq!(heard, [b"zero".to_vec(), b"one".to_vec()]);
    assert_eq!(opened(&world, 1).len(), 2);
    let sealed = sealed(&world);
    assert_eq!((sealed.len(), &sealed[0]), (3, &sealed[2]), "said again, as identical bytes");
}

#[test]
fn who_was_away_for_seventy_messages_and_who_came_after_them_read_the_next() {
    let (mut world, authority) = swarm(22, &["scout", "", "scout"]);
    order(&mut world, &authority, "scout", b"zero");
    cut_off(&mut world, true);
    for _ in 0..70 {
        envelope_leader(&mut world, authority.seal("scout", b"lost", true));
        world.run_for(Duration::from_millis(20));
    }
    cut_off(&mut world, false);
    give(&mut world, 1, &authority.key("scout"));
    order(&mut world, &authority, "scout", b"next");
    let heard = |edge| opened(&world, edge).into_iter().map(|(data, _)| data).collect::<Vec<_>>();
    assert_eq!(heard(2).len(), 72);
    for edge in [0, 1] {
        assert_eq!(heard(edge), [b"zero".to_vec(), b"next".to_vec()]);
    }
    assert_eq!([0, 1].map(|edge| world.blamed_by_edge(edge).len()), [0, 0]);
}

#[test]
fn no_session_is_lost_of_a_sender_that_opens_all_it_may_in_one_second() {
    let (mut world, authority) = swarm(25, &["scout"]);
    let policies = ["", "1", "2", "3", "4", "5", "6", "7"].map(|other| format!("scout or other{other}"));
    for data in [b"zero", b"one "] {
        for policy in &policies {
            envelope_leader(&mut world, authority.seal(policy, data, true));
        }
        world.run_for(Duration::from_millis(100));
    }
    assert_eq!(opened(&world, 0).len(), 2 * policies.len());
    let sealed = sealed(&world);
    assert_eq!(sealed.len(), 2 * policies.len(), "nothing was said again");
    assert!(sealed[policies.len()..].iter().all(|following| following.len() < 200));
}

#[test]
fn more_policies_than_a_sender_keeps_sessions_for_lose_no_message() {
    let (mut world, authority) = swarm(26, &["scout"]);
    for round in 0..2u8 {
        for other in 0..10 {
            let policy = format!("scout or other{other}");
            envelope_leader(&mut world, authority.seal(&policy, &[round], true));
        }
        world.run_for(Duration::from_millis(100));
    }
    assert_eq!(opened(&world, 0).len(), 20);
}

#[test]
fn a_session_is_not_read_on_without_a_key_and_not_begun_again_with_one() {
    let (mut world, authority) = swarm(27, &["scout"]);
    order(&mut world, &authority, "scout", b"zero");
    give(&mut world, 0, &authority.public());
    order(&mut world, &authority, "scout", b"one");
    assert_eq!(opened(&world, 0).len(), 1);
    assert_eq!(sealed(&world).len(), 2, "its opening is not asked for");
    give(&mut world, 0, &authority.key("scout"));
    order(&mut world, &authority, "scout", b"two");
    let heard: Vec<_> = opened(&world, 0).into_iter().map(|(data, _)| data).collect();
    assert_eq!(heard, [b"zero".to_vec(), b"two".to_vec()]);
}

#[test]
fn a_session_is_not_read_on_with_a_narrower_key_and_with_another_that_fits_it_is() {
    let (mut world, authority) = swarm(28, &["scout, sector:7"]);
    let mut hear = |key: &str, data: &[u8]| {
        give(&mut world, 0, &authority.key(key));
        order(&mut world, &authority, "scout and sector:7", data);
        assert!(world.blamed_by_edge(0).is_empty());
        let heard: Vec<_> = opened(&world, 0).into_iter().map(|(data, _)| data).collect();
        (heard, sealed(&world).len())
    };
    assert_eq!(hear("scout, sector:7", b"zero").0, [b"zero".to_vec()]);
    assert_eq!(hear("sector:7", b"one").0, [b"zero".to_vec()], "the drone is no scout any more");
    let (heard, sealed) = hear("medic, scout, sector:7", b"two");
    assert_eq!(heard, [b"zero".to_vec(), b"two".to_vec()], "a renewed key reads on");
    assert_eq!(sealed, 3, "the opening is not asked for");
}

#[test]
fn a_number_beyond_what_a_session_carries_is_nobodys_fault_and_changes_nothing() {
    let (mut world, authority) = swarm(23, &["scout"]);
    for data in [b"zero", b"one "] {
        order(&mut world, &authority, "scout", data);
    }
    let mut forged = last_envelope(&world, Node::Leader);
    // The message's number follows the session's name.
    let name = forged.windows(4).position(|window| window == b"QvE\x01").unwrap() + 9;
    forged[name + 32..name + 36].copy_from_slice(&0xf_ffff_u32.to_be_bytes());
    world.inject(Node::Leader, Node::Edge(0), &forged);
    world.run_for(Duration::from_millis(500));
    assert!(world.blamed_by_edge(0).is_empty());
    order(&mut world, &authority, "scout", b"two");
    assert_eq!(opened(&world, 0).len(), 3);
}

#[test]
fn an_opening_is_said_again_at_most_once_a_second_however_many_ask() {
    let (mut world, authority) = swarm(13, &["scout"; 20]);
    for edge in 0..20 {
        world.isolated.insert(Node::Edge(edge));
    }
    order(&mut world, &authority, "scout", b"zero");
    world.run_for(Duration::from_secs(1));
    world.isolated.clear();
    order(&mut world, &authority, "scout", b"one");
    assert_eq!(sealed(&world).len(), 3);
    assert!((0..20).all(|edge| opened(&world, edge).len() == 2));
}

#[test]
fn a_restarted_reader_gets_the_opening_again_and_a_restarted_sender_begins_anew() {
    let (mut world, authority) = swarm(14, &["scout"]);
    order(&mut world, &authority, "scout", b"zero");
    world.restart_edge(0);
    give(&mut world, 0, &authority.key("scout"));
    world.run_for(Duration::from_secs(5));
    order(&mut world, &authority, "scout", b"one");
    // Its memory of read messages is gone: within the session's lifetime it reads the opening again.
    let heard: Vec<_> = opened(&world, 0).into_iter().map(|(data, _)| data).collect();
    assert_eq!(heard, [b"zero".to_vec(), b"zero".to_vec(), b"one".to_vec()]);
    let first = sealed(&world)[0].clone();
    world.restart_leader();
    world.run_for(Duration::from_secs(20));
    let keys = quiver_envelope::EnvelopeCommand::Keys(authority.public());
    envelope_leader(&mut world, keys);
    order(&mut world, &authority, "scout", b"two");
    let last = last_envelope(&world, Node::Leader);
    assert_ne!(last[..200], first[..200]);
    assert_eq!(opened(&world, 0).len(), 4);
}

#[test]
fn a_session_ends_with_its_time_at_both_ends() {
    let (mut world, authority) = swarm(15, &["scout"]);
    order(&mut world, &authority, "scout", b"zero");
    order(&mut world, &authority, "scout", b"one");
    world.run_for(Duration::from_secs(86_400));
    let openings = |world: &World| sealed(world).iter().filter(|bytes| bytes.len() > 250).count();
    assert_eq!(openings(&world), 1);
    order(&mut world, &authority, "scout", b"two");
    assert_eq!((openings(&world), opened(&world, 0).len()), (2, 3));
}

#[test]
fn requests_for_sessions_of_others_are_nobodys_affair() {
    let (mut world, _) = swarm(16, &["scout"]);
    let request: Message<S> = EnvelopeMessage::from(OpeningRequest { session: [5; 32] }).into();
    let bytes = request.encode(&world.deployment);
    let before = world.recorded.len();
    world.inject(Node::Edge(0), Node::Leader, &bytes);
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.recorded.len(), before);
    assert!(world.blamed_by_leader().is_empty());
}
