//! The one-time secret of a member ends with its membership, however that ends.

use std::time::Duration;

use quiver_enrolment::KgcCommand;
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_machine::Snapshot;
use quiver_message::{Message, Refusal, RefusalReason};

use crate::beside::own;
use crate::world::{GROUP, Node, S, World, decode, name};

/// Bytes of a record in front of its fields: version and fingerprint.
const HEAD_LEN: usize = 33;

/// The fields of an edge's record up to the spare pair: boot number, what is under way of the enrolment, D R P, y, the
/// revocation list, the group wanted, q ‖ e_q.
type Fields<'a> = (
    u32,
    Option<&'a [u8]>,
    Option<&'a [u8]>,
    Option<&'a [u8]>,
    Option<&'a [u8]>,
    Option<&'a str>,
    Option<&'a [u8]>,
);

/// The spare pair that a record holds.
fn spare(state: &Snapshot) -> Option<Vec<u8>> {
    let (fields, _) = postcard::take_from_bytes::<Fields<'_>>(&state.as_bytes()[HEAD_LEN..]).unwrap();
    fields.6.map(<[u8]>::to_vec)
}

fn holds(state: &Snapshot, secret: &[u8]) -> bool {
    state.as_bytes().windows(secret.len()).any(|bytes| bytes == secret)
}

/// End of the membership of edge 1.
type End = fn(&mut World);

#[test]
fn no_record_has_the_one_time_secret_of_a_membership_that_is_over() {
    let ends: [(&str, End); 7] = [
        ("left", |world| world.command_edge(1, EdgeCommand::Leave)),
        ("evicted", |world| world.command_leader(LeaderCommand::Evict(name("edge-1")))),
        ("removed without a notice", |world| {
            let deployment = world.deployment.clone();
            world.lose_where(move |packet| {
                let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
                packet.to == Node::Edge(1) && matches!(message, Message::EvictionNotice(_))
            });
            world.command_leader(LeaderCommand::Evict(name("edge-1")));
        }),
        ("its leader revoked", |world| {
            let list = world.revoke_leader();
            world.inject(Node::Kgc, Node::Edge(1), &list);
        }),
        ("gone to another group", |world| world.command_edge(1, EdgeCommand::Join(name("elsewhere")))),
        ("revoked", |world| {
            let serial = world.tokens[1].token.statement.id;
            world.command_kgc(KgcCommand::RevokeDrones(vec![quiver_ainq::Revoked::unknown(serial)]));
        }),
        ("out of step", |world| {
            // A peer that refuses a question in its leader's name can direct it to join again.
            world.restart_edge(1);
            world.isolated.insert(Node::Edge(1));
            world.run_for(Duration::from_millis(10));
            let asked = world.newest(|packet| {
                packet.from == Node::Edge(1) && matches!(decode(world, packet), Message::CatchUpRequest(_))
            });
            let Message::CatchUpRequest(asked) = decode(world, &asked) else { panic!("a question") };
            let refusal = Refusal {
                reference: asked.number.to_vec(),
                reason: RefusalReason::Rejoin,
                retry_after: Duration::ZERO,
            };
            let bytes = Message::<S>::Refusal(refusal).encode(&world.deployment);
            world.isolated.clear();
            world.inject(Node::Leader, Node::Edge(1), &bytes);
        }),
    ];
    for (end, ends) in ends {
        let mut world = World::grouped(1, 3);
        let held = spare(&world.state(1).unwrap()).expect("a member has published a point");
        ends(&mut world);
        world.run_until(end, |world| world.edge(1).status().epoch.is_none());
        // As soon as the membership is over, and whatever follows.
        assert!(!holds(&world.state(1).unwrap(), &held), "{end}");
        world.run_for(Duration::from_secs(30));
        assert!(!holds(&world.state(1).unwrap(), &held), "{end}, later");
    }
}

#[test]
fn the_one_time_secret_goes_with_a_stored_membership_that_cannot_be_restored() {
    let mut world = World::grouped(2, 2);
    let state = world.state(1).unwrap();
    let held = spare(&state).unwrap();
    world.stop(Node::Edge(1));
    // The last of the membership's fields is its key: the group's name is in front, and is changed to none.
    let mut bytes = state.as_bytes().to_vec();
    let place = bytes.windows(GROUP.len()).rposition(|window| window == GROUP.as_bytes()).unwrap();
    bytes[place] = 0;
    world.set_state(1, Some(Snapshot::new(bytes)));
    world.isolated.insert(Node::Edge(1));
    world.start_edge(1);
    world.run_for(Duration::from_secs(1));
    let dropped = |event: &EdgeEvent| matches!(event, EdgeEvent::MembershipDropped { .. });
    assert!(world.edge_events(1).iter().filter_map(own).any(dropped));
    let state = world.state(1).unwrap();
    assert!(spare(&state).is_none() && !holds(&state, &held));
    world.isolated.clear();
    world.run_until("in again", |world| world.synced(1));
}

#[test]
fn a_request_to_join_that_ends_with_the_process_leaves_no_one_time_secret() {
    let mut world = World::grouped(3, 1);
    let deployment = world.deployment.clone();
    world.lose_where(move |packet| {
        let message = Message::<S>::decode(&deployment, &packet.bytes).unwrap();
        matches!(message, Message::Welcome(_) | Message::Rekey(_) | Message::ShortRekey(_))
    });
    let edge = world.add_edge("late");
    world.run_until("asked", |world| world.state(edge).is_some_and(|state| spare(&state).is_some()));
    world.stop(Node::Edge(edge));
    world.isolated.insert(Node::Edge(edge));
    world.start_edge(edge);
    world.run_for(Duration::from_secs(1));
    assert_eq!(spare(&world.state(edge).unwrap()), None);
}
