//! Deltas and paths that get lost, come late, come twice or come changed.

use std::time::Duration;

use quiver_ainq::{Epoch, EpochPart, Error};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand};
use quiver_machine::{Offence, Route};
use quiver_message::{CatchUpRequest, Message, Rekey};

use crate::world::{GROUP, Node, Packet, S, World, decode, name};
use crate::wraps::{change_wraps, questions};
use crate::{answered_path, deliver, is_delta, is_epoch, pushed_path, withhold};

const A_MOMENT: Duration = Duration::from_millis(10);

#[test]
fn who_lost_a_delta_holds_the_next_back_and_catches_up() {
    let mut world = World::grouped(1, 5);
    let lost = withhold(&mut world, 0, is_epoch);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    assert!(!world.agree([0]) && world.agree(1..5));
    assert_eq!(lost.borrow().len(), 1);
    world.tamper = None;
    let mark = world.recorded.len();
    world.command_leader(LeaderCommand::Rekey);
    let epoch = world.leader_epoch();
    world.run_for(A_MOMENT);
    assert!(world.agree(0..5));
    assert_eq!(world.leader_epoch(), epoch);
    assert_eq!(questions(&world, 0, mark), 1);
    assert!(world.blamed_by_edge(0).is_empty(), "{:?}", world.blamed_by_edge(0));
}

#[test]
fn deltas_that_overtake_each_other_are_applied_in_order() {
    let mut world = World::grouped(2, 4);
    // Nor is a question answered, so that nothing else can help.
    let held =
        withhold(&mut world, 0, |message| is_epoch(message) || matches!(message, Message::CatchUpReply(_)));
    for _ in 0..4 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(A_MOMENT);
    }
    let deltas: Vec<_> = held.borrow_mut().drain(..).filter(|packet| is_delta(&world, packet)).collect();
    assert_eq!(deltas.len(), 4);
    let [first, second, third, fourth] = <[_; 4]>::try_from(deltas).unwrap();
    deliver(&mut world, [fourth, second, third]);
    world.run_for(A_MOMENT);
    assert!(!world.agree([0]));
    deliver(&mut world, [first]);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    assert!(world.blamed_by_edge(0).is_empty(), "{:?}", world.blamed_by_edge(0));
}

#[test]
fn who_missed_many_epochs_asks_no_more_than_once_at_a_time() {
    let mut world = World::grouped(3, 4);
    let held =
        withhold(&mut world, 0, |message| is_epoch(message) || matches!(message, Message::CatchUpReply(_)));
    for _ in 0..20 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(A_MOMENT);
    }
    let deltas: Vec<_> = held.borrow_mut().drain(..).filter(|packet| is_delta(&world, packet)).collect();
    let mark = world.recorded.len();
    deliver(&mut world, deltas.into_iter().skip(1));
    world.run_for(A_MOMENT);
    assert!(!world.agree([0]));
    assert_eq!(questions(&world, 0, mark), 1);
    world.tamper = None;
    world.run_for(Duration::from_secs(10));
    assert!(world.agree(0..4));
}

#[test]
fn a_changed_delta_is_blamed_and_made_good() {
    let mut world = World::grouped(4, 4);
    change_wraps(&mut world, 0);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    // §7.6: the header is completed with the root of the wraps beside it.
    assert_eq!(world.blamed_by_edge(0), [&Offence::Protocol(Error::InvalidSignature)]);
}

#[test]
fn a_changed_path_is_blamed_and_made_good() {
    let mut world = World::grouped(5, 3);
    let deployment = world.deployment.clone();
    let mut done = false;
    world.change_with(move |packet| {
        if let Ok(Message::CatchUpReply(_)) = Message::<S>::decode(&deployment, &packet.bytes)
            && !core::mem::replace(&mut done, true)
        {
            // The last bytes are the MAC of the reply; the seal of the path ends 36 bytes before the end.
            let place = packet.bytes.len() - 36;
            packet.bytes[place] ^= 1;
        }
    });
    world.restart_edge(0);
    world.run_for(A_MOMENT);
    assert!(!world.synced(0));
    assert_eq!(world.blamed_by_edge(0), [&Offence::Protocol(Error::SealBroken)]);
    world.run_for(Duration::from_secs(5));
    assert!(world.agree(0..3));
}

#[test]
fn members_that_restart_together_follow_to_one_new_epoch() {
    let mut world = World::grouped(6, 9);
    let epoch = world.leader_epoch();
    for edge in 0..9 {
        world.restart_edge(edge);
    }
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..9));
    assert_eq!(world.leader_epoch(), Epoch { counter: epoch.counter + 1, ..epoch });
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..9));
}

#[test]
fn a_path_gives_no_member_the_key_of_an_epoch_back_that_it_held_before_a_start_or_a_resume() {
    for resumed in [false, true] {
        let mut world = World::grouped(11, 4);
        let (epoch, channel) = (world.leader_epoch(), name("chat"));
        world.command_edge(1, EdgeCommand::Send { channel, data: b"once".to_vec(), signed: true });
        world.run_for(A_MOMENT);
        let said = |packet: &Packet| packet.to == Node::Edge(0) && packet.from != Node::Kgc;
        let said: Vec<_> = world.recorded.iter().filter(|packet| said(packet)).cloned().collect();
        // Nothing comes but answers, as of a leader that makes no new epoch; and nothing that was recorded helps.
        let _epochs = withhold(&mut world, 0, is_epoch);
        let (mark, events) = (world.recorded.len(), world.edge_events(0).len());
        if resumed {
            world.resume(Node::Edge(0));
        } else {
            world.restart_edge(0);
        }
        world.run_for(Duration::from_secs(1));
        assert!(world.recorded[mark..].iter().any(|packet| answered_path(&world, packet).is_some()));
        deliver(&mut world, said);
        world.run_for(A_MOMENT);
        let heard = world.edge_events(0)[events..].iter();
        let heard =
            heard.filter(|event| matches!(event, EdgeEvent::Message { .. } | EdgeEvent::KeyActivated { .. }));
        assert_eq!((heard.count(), world.key(0)), (0, None), "resumed: {resumed}");
        assert!(world.leader_epoch() > epoch, "the leader makes a new one");
        world.tamper = None;
        world.run_until("in step again", |world| world.agree(0..4));
    }
}

#[test]
fn a_member_that_lacks_its_path_alone_makes_the_leader_renew_nothing() {
    let mut world = World::grouped(12, 4);
    world.stop(Node::Leader);
    world.start_leader_alone();
    // It follows by its entry, is not sent its path, and asks for that.
    let _paths = withhold(&mut world, 0, |message| {
        matches!(message, Message::Rekey(Rekey { part: Some(EpochPart::Path(_)), .. }))
    });
    (0..4).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    world.command_edge(0, EdgeCommand::CatchUp);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.leader_epoch().counter, 1);
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4), "the answer had its path");
}

#[test]
fn a_question_that_is_played_again_gets_no_answer() {
    let mut world = World::grouped(7, 3);
    let restart = |world: &mut World| {
        let mark = world.recorded.len();
        world.restart_edge(0);
        world.run_until("in step again", |world| world.agree([0]));
        let packets = &world.recorded[mark..];
        let asked = packets.iter().find(|packet| matches!(decode(world, packet), Message::CatchUpRequest(_)));
        let path = packets.iter().find_map(|packet| answered_path(world, packet));
        (asked.unwrap().clone(), path.unwrap())
    };
    let (question, first) = restart(&mut world);
    let mark = world.recorded.len();
    for _ in 0..5 {
        world.inject(Node::Edge(0), Node::Leader, &question.bytes);
        world.run_for(A_MOMENT);
    }
    assert!(world.recorded[mark..].iter().all(|packet| answered_path(&world, packet).is_none()));
    assert_eq!(world.blamed_by_leader().last(), Some(&&Offence::Protocol(Error::Replay)));
    let (_, second) = restart(&mut world);
    assert_ne!((first.r, first.encode()), (second.r, second.encode()));
}

#[test]
fn forged_questions_keep_nobody_out() {
    let mut world = World::grouped(8, 3);
    world.disconnect_all(Node::Edge(0));
    world.stop(Node::Leader);
    world.start_leader_alone();
    (1..3).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(Duration::from_secs(1));
    let forged = CatchUpRequest { group: name(GROUP), slot: 0, number: [9; 16], held: [1; 32], tag: [2; 32] };
    let bytes = Message::<S>::CatchUpRequest(forged).encode(&world.deployment);
    let mut paths = Vec::new();
    for _ in 0..3 {
        world.command_leader(LeaderCommand::Rekey);
        let mark = world.recorded.len();
        (0..2).for_each(|_| world.inject(Node::Edge(1), Node::Leader, &bytes));
        world.run_for(A_MOMENT);
        let packets = &world.recorded[mark..];
        paths.push(packets.iter().filter(|packet| pushed_path(&world, packet).is_some()).count());
    }
    // Each is answered by what only the member can open, until the connection has had what nothing
    // authenticates often enough.
    assert_eq!(paths, [2, 2, 0]);
    world.connect(Node::Edge(0), Node::Leader, Route::Leader);
    world.run_for(Duration::from_secs(1));
    assert!(world.agree(0..3));
}

#[test]
fn a_delta_that_overtakes_the_path_that_it_needs_is_applied_after_it() {
    let mut world = World::grouped(9, 4);
    world.stop(Node::Leader);
    world.start_leader_alone();
    // Nothing but how the term was opened gets through.
    let held = withhold(&mut world, 0, |message| match message {
        Message::Rekey(rekey) => !matches!(rekey.part, Some(EpochPart::Entry(_))),
        message => matches!(message, Message::ShortRekey(_) | Message::CatchUpReply(_)),
    });
    (0..4).for_each(|edge| world.connect(Node::Edge(edge), Node::Leader, Route::Leader));
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    let mut pushed: Vec<_> = held.borrow_mut().drain(..).collect();
    pushed.retain(|packet| pushed_path(&world, packet).is_some());
    assert_eq!(pushed.len(), 1);
    // Questions are not answered either: only what was pushed can help.
    let _answers = withhold(&mut world, 0, |message| matches!(message, Message::CatchUpReply(_)));
    world.command_leader(LeaderCommand::Rekey);
    world.run_for(A_MOMENT);
    assert!(!world.agree([0]) && world.agree(1..4));
    deliver(&mut world, pushed);
    world.run_for(A_MOMENT);
    assert!(world.agree(0..4));
    assert!(world.blamed_by_edge(0).is_empty(), "{:?}", world.blamed_by_edge(0));
}

#[test]
fn deltas_of_the_past_change_nothing_and_are_blamed() {
    let mut world = World::grouped(10, 3);
    let mark = world.recorded.len();
    for _ in 0..3 {
        world.command_leader(LeaderCommand::Rekey);
        world.run_for(A_MOMENT);
    }
    let to_first = world.recorded[mark..].iter().filter(|packet| packet.to == Node::Edge(0));
    let deltas: Vec<_> = to_first.filter(|packet| is_delta(&world, packet)).cloned().collect();
    assert_eq!(deltas.len(), 3);
    let key = world.key(0);
    deliver(&mut world, deltas);
    world.run_for(A_MOMENT);
    assert_eq!(world.key(0), key);
    // The newest is known, the two before are stale.
    assert_eq!(world.blamed_by_edge(0), [&Offence::Protocol(Error::Stale); 2]);
}
