//! Membership in a group that demands a policy: members, their rights, and what others learn of them.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_abke::Error as AbkeError;
use quiver_admission::{AdmissionError, AdmissionLeave, AnonymousEvent, AnyEdge, Ending};
use quiver_ainq::{RevocationStatement, Revoked, StrategyKind};
use quiver_group::{EdgeCommand, EdgeEvent, LeaderCommand, LeaderEvent, MessageOrigin};
use quiver_machine::RefusalReason;
use quiver_message::Message;

use quiver_testbed::matching;

use crate::swarm::Swarm;
use crate::world::{Node, Packet, S, Said, name};

const BOTH: [StrategyKind; 2] = [StrategyKind::Flat, StrategyKind::Tree];
const A_WHILE: Duration = Duration::from_secs(20);

#[test]
fn those_who_satisfy_the_policy_are_members_and_follow_and_nobody_else_gets_anything() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(1, strategy);
        let inside = [swarm.add(100, -50, false), swarm.add(-9, -9, true)];
        let outside = swarm.add(300, -50, false);
        swarm.run(A_WHILE);
        swarm.assert_in(&inside);
        assert_eq!(
            swarm.ending(outside),
            Some(&Ending::Denied(AdmissionError::Exchange(AbkeError::Unsatisfied)))
        );
        let outsider = swarm.drone(outside);
        assert!(outsider.export(&name("test")).is_none() && outsider.status().slot.is_none());
        // Epochs of every kind: on command, for one who comes, for one who goes.
        swarm.lead(LeaderCommand::Rekey);
        swarm.run(A_WHILE);
        swarm.assert_in(&inside);
        let late = swarm.add(101, -51, false);
        swarm.run(A_WHILE);
        let all = [inside[0], inside[1], late];
        swarm.assert_in(&all);
        swarm.command(inside[0], EdgeCommand::Leave);
        swarm.run(A_WHILE);
        swarm.assert_in(&all[1..]);
        assert_eq!(swarm.ending(inside[0]), Some(&Ending::Left));
        assert!(swarm.events_of(inside[0]).contains(&AnonymousEvent::Edge(EdgeEvent::Left)));
        let parted = swarm.events().into_iter().filter(|event| matches!(event, LeaderEvent::Parted { .. }));
        assert_eq!(parted.count(), 1);
        for _ in 0..3 {
            swarm.lead(LeaderCommand::Rekey);
            swarm.run(A_WHILE);
        }
        swarm.assert_in(&all[1..]);
    }
}

#[test]
fn members_of_one_program_keep_one_header_and_follow_all_the_same() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(14, strategy);
        let inside = [swarm.add(100, -50, false), swarm.add(101, -51, false)];
        swarm.run(A_WHILE);
        let mut kept = Vec::new();
        for drone in inside {
            let machine = swarm.world.node_mut::<AnyEdge<S>>(Node::Drone(drone)).machine_mut().unwrap();
            machine.share_header(|header| {
                kept.push(header.clone());
                kept[0].clone()
            });
        }
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0], kept[1]);
        swarm.lead(LeaderCommand::Rekey);
        swarm.run(A_WHILE);
        swarm.assert_in(&inside);
    }
}

#[test]
fn leader_that_demands_a_policy_lets_nobody_in_by_name() {
    let mut swarm = Swarm::new(2, StrategyKind::Flat);
    let named = swarm.add_named("edge-1");
    let inside = swarm.add(100, -50, false);
    swarm.run(A_WHILE);
    swarm.assert_in(&[inside]);
    assert!(
        swarm
            .events_of(named)
            .contains(&AnonymousEvent::Edge(EdgeEvent::Refused(RefusalReason::AdmissionOnly)))
    );
    assert!(!swarm.events().iter().any(|event| matches!(event, LeaderEvent::Joined { .. })));
}

#[test]
fn member_without_a_name_hears_and_speaks_but_signs_nothing() {
    let mut swarm = Swarm::new(3, StrategyKind::Tree);
    let (one, other) = (swarm.add(100, -50, false), swarm.add(100, -51, false));
    swarm.run(A_WHILE);
    let send = |signed| EdgeCommand::Send { channel: name("chat"), data: b"hello".to_vec(), signed };
    swarm.command(one, send(true));
    swarm.command(one, send(false));
    swarm.lead(LeaderCommand::Send { channel: name("orders"), data: b"north".to_vec() });
    swarm.run(A_WHILE);
    assert!(
        swarm
            .events_of(one)
            .iter()
            .any(|event| matches!(event, AnonymousEvent::Edge(EdgeEvent::SendFailed(_))))
    );
    let heard = |drone: usize| {
        let events = swarm.events_of(drone).iter();
        let messages = events.filter_map(matching!(
            AnonymousEvent::Edge(EdgeEvent::Message { data, source, .. }) => (data.to_vec(), source.clone())
        ));
        messages.collect::<Vec<_>>()
    };
    let slot = swarm.drone(one).status().slot.unwrap();
    let unsigned = MessageOrigin::Unauthenticated { slot };
    assert!(heard(other).contains(&(b"hello".to_vec(), unsigned.clone())));
    let signed = heard(one);
    assert!(
        signed
            .iter()
            .any(|(data, source)| data == b"north" && matches!(source, MessageOrigin::Signed { .. }))
    );
    let to_leader = swarm
        .events()
        .iter()
        .any(|event| matches!(event, LeaderEvent::Message { source, .. } if *source == unsigned));
    assert!(to_leader, "{:?}", swarm.events());
}

#[test]
fn gap_is_mended_by_a_question_under_the_key_of_the_pair() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(4, strategy);
        let (one, other) = (swarm.add(100, -50, false), swarm.add(100, -51, false));
        swarm.run(A_WHILE);
        swarm.hang_up(one);
        for _ in 0..3 {
            swarm.lead(LeaderCommand::Rekey);
            swarm.run(A_WHILE);
        }
        swarm.assert_in_but_behind(&[one, other], &[one]);
        swarm.dial(one);
        swarm.run(A_WHILE);
        swarm.assert_in(&[one, other]);
        assert_eq!(swarm.ending(one), None);
    }
}

/// Every stretch of 12 bytes of what a drone said, but for what everybody says: the KGC's fingerprint, the
/// group, the epoch.
fn stretches(swarm: &Swarm, said: &[&Packet]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for message in said {
        let said = match swarm.world.decode(message) {
            Said::Hello(hello) => hello.nonce.to_vec(),
            Said::Proof(proof) => [proof.nonce.to_vec(), proof.step].concat(),
            Said::Step(step) => [step.nonce.to_vec(), step.step].concat(),
            Said::Other(Message::Ack(ack)) => ack.tag.to_vec(),
            Said::Other(Message::CatchUpRequest(request)) => {
                [request.number.to_vec(), request.tag.to_vec()].concat()
            }
            Said::Leave(leave) => leave.tag.to_vec(),
            // Channel, epoch, slot and count are the swarm's; the boot number is 1 for everybody.
            Said::Other(Message::GroupMessage(message)) => {
                [message.frame.salt.to_vec(), message.frame.ciphertext].concat()
            }
            other => panic!("a drone without a name that says {other:?}"),
        };
        found.extend(said.windows(12).map(<[u8]>::to_vec));
    }
    found
}

#[test]
fn two_memberships_of_one_drone_have_nothing_in_common_that_a_leader_sees() {
    for strategy in BOTH {
        let mut swarm = Swarm::new(5, strategy);
        let credential = swarm.world.credential(100, -50, false);
        let witness = swarm.add(-9, -9, true);
        let drone = swarm.add(100, -50, false);
        for again in [false, true] {
            if again {
                swarm.apply(drone, &credential);
            }
            swarm.run(A_WHILE);
            let data = format!("over and out, {again}").into_bytes();
            swarm.command(drone, EdgeCommand::Send { channel: name("chat"), data, signed: false });
            // A gap, a question, another epoch; then it leaves.
            swarm.hang_up(drone);
            swarm.lead(LeaderCommand::Rekey);
            swarm.run(A_WHILE);
            swarm.dial(drone);
            swarm.run(A_WHILE);
            swarm.assert_in(&[witness, drone]);
            swarm.command(drone, EdgeCommand::Leave);
            swarm.run(A_WHILE);
            swarm.assert_in(&[witness]);
        }
        // Its connections: two of each membership, for there was a gap.
        let own = swarm.by_connection(drone);
        assert_eq!(own.len(), 4);
        let said: Vec<_> = own.iter().map(|said| stretches(&swarm, said)).collect();
        for first in &said[..2] {
            for second in &said[2..] {
                assert_eq!(first.intersection(second).count(), 0, "a stretch of one membership in another");
            }
        }
        assert!(said[0].len() > 6_000 && said[2].len() > 6_000, "there was something to compare");
        let admitted = |event: &LeaderEvent| match event {
            LeaderEvent::Admitted { pseudonym, .. } => Some(*pseudonym),
            _ => None,
        };
        let pseudonyms: Vec<_> = swarm.events().into_iter().filter_map(admitted).collect();
        assert_eq!(pseudonyms.len(), 3);
        assert_eq!(pseudonyms.iter().collect::<BTreeSet<_>>().len(), 3);
    }
}

#[test]
fn what_another_drone_says_in_its_slot_moves_no_member() {
    let mut swarm = Swarm::new(6, StrategyKind::Flat);
    let (one, other) = (swarm.add(100, -50, false), swarm.add(100, -51, false));
    swarm.run(A_WHILE);
    let slot = swarm.drone(one).status().slot.unwrap();
    let held = swarm.drone(one).status().digest.unwrap();
    let leave = AdmissionLeave { group: name("alpha"), slot, held, tag: [7; 32] };
    let bytes = Said::Leave(leave).encode(&swarm.world.deployment);
    swarm.world.inject(Node::Drone(other), Node::Leader, &bytes);
    swarm.run(A_WHILE);
    swarm.assert_in(&[one, other]);
    assert!(swarm.events().iter().any(|event| matches!(event, LeaderEvent::Blamed { .. })));
    // A member's own message does not end its membership twice.
    swarm.command(one, EdgeCommand::Leave);
    swarm.run(A_WHILE);
    let mut said = swarm.world.recorded.iter().rev();
    let leave = said.find(|said| matches!(swarm.world.decode(said), Said::Leave(_)));
    let leave = leave.unwrap().bytes.clone();
    let third = swarm.add(100, -52, false);
    swarm.run(A_WHILE);
    assert_eq!(swarm.drone(third).status().slot, Some(slot), "the same slot");
    swarm.world.inject(Node::Drone(other), Node::Leader, &leave);
    swarm.run(A_WHILE);
    swarm.assert_in(&[other, third]);
}

#[test]
fn drone_shows_nothing_to_a_leader_that_the_kgc_revoked() {
    let mut swarm = Swarm::new(7, StrategyKind::Flat);
    let serial = swarm.leader().keypair().unwrap().public().identity.serial;
    let mut list = RevocationStatement::empty();
    (list.number, list.issued, list.next_update) = (1, swarm.world.clock().unix, u64::MAX);
    list.revoked.push(Revoked::unknown(serial));
    let list =
        swarm.world.master.sign_revocations(&swarm.world.deployment, list, &mut swarm.world.rng).unwrap();
    let drone = swarm.add_knowing(100, -50, false, Some(list.encode()));
    swarm.run(A_WHILE);
    assert_eq!(swarm.ending(drone), Some(&Ending::Denied(AdmissionError::Leader("it is revoked"))));
    let proofs =
        swarm.world.recorded.iter().filter(|said| matches!(swarm.world.decode(said), Said::Proof(_)));
    assert_eq!(proofs.count(), 0);
}
