//! Misbehaving members: they are named, and no member's shares change.

use std::time::Duration;

use quiver_ainq::KgcId;
use quiver_message::quorum::{Both, QuorumMessage, SecretBytes};
use quiver_quorum_node::{AbortCause, QuorumCommand, QuorumEvent};

use crate::key_generation::{check_keys, holdings};
use quiver_testbed::Stimulus;

use crate::world::{Packet, Tamper, World};

/// Changes member 2's messages in the rounds.
fn changed(mut change: impl FnMut(KgcId, &mut quiver_message::quorum::Rounds) + 'static) -> Tamper {
    Box::new(move |mut packet: Packet| {
        if let (2, QuorumMessage::Ceremony(message)) = (packet.from, &mut packet.message)
            && let Some(rounds) = &mut message.rounds
        {
            change(packet.to, rounds);
        }
        vec![packet]
    })
}

fn flip(bytes: &mut [u8]) {
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
}

fn aborts(world: &World, id: KgcId) -> Vec<AbortCause> {
    let cause = |event: &QuorumEvent| match event {
        QuorumEvent::Aborted { cause, .. } => Some(cause.clone()),
        _ => None,
    };
    world.events(id).iter().filter_map(cause).collect()
}

/// Members that the honest ones blame, in a key generation and then in a refresh that this member spoils.
fn spoilt(seed: u64, lie: fn() -> Tamper) -> Vec<AbortCause> {
    let mut world = World::new(seed, 4, 3);
    world.set_tamper(lie());
    world.command_all(&QuorumCommand::Generate);
    world.run_for(Duration::from_secs(200));
    assert!(world.ids().iter().all(|id| world.node(*id).keys().is_none()), "no key is made");
    let mut all: Vec<_> = [1, 3, 4].into_iter().flat_map(|id| aborts(&world, id)).collect();
    world.tamper = None;
    world.ids().into_iter().for_each(|id| world.command(id, QuorumCommand::Abandon));
    world.run_for(Duration::from_secs(100));
    world.generate();
    check_keys(&mut world);
    world.run_for(Duration::from_secs(100));
    let before = holdings(&world);
    world.ids().into_iter().for_each(|id| world.member_mut(id).events.clear());
    world.set_tamper(lie());
    world.command(1, QuorumCommand::Refresh);
    world.run_for(Duration::from_secs(50));
    for (old, new) in before.iter().zip(holdings(&world)) {
        assert_eq!(old.encode(), new.encode(), "an abort leaves the old share in place");
    }
    all.extend([1, 3, 4].into_iter().flat_map(|id| aborts(&world, id)));
    world.tamper = None;
    world.ids().into_iter().for_each(|id| world.command(id, QuorumCommand::Abandon));
    world.run_for(Duration::from_secs(100));
    world.command(3, QuorumCommand::Refresh);
    world.until("shares are refreshed", |world| world.all_hold(1));
    check_keys(&mut world);
    all
}

/// No member but member 2 is called a liar, and at least one calls it so.
fn only_the_liar_is_named(causes: &[AbortCause]) {
    let mut named = 0;
    for cause in causes {
        match cause {
            AbortCause::Fault { culprit, .. } => {
                assert_eq!(*culprit, 2, "{causes:?}");
                named += 1;
            }
            AbortCause::Left { blames, .. } => assert!(matches!(blames, None | Some(2)), "{causes:?}"),
            AbortCause::Abandoned => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(named >= 2, "in key generation and in refresh: {causes:?}");
}

#[test]
fn commitments_that_are_none_are_blamed_on_their_sender() {
    only_the_liar_is_named(&spoilt(1, || {
        changed(|_, rounds| {
            if let Some(commitments) = &mut rounds.commitments {
                commitments.ibe.truncate(40);
            }
        })
    }));
}

#[test]
fn too_many_commitments_are_blamed_on_their_sender() {
    only_the_liar_is_named(&spoilt(2, || {
        changed(|_, rounds| {
            if let Some(Both { ainq, .. }) = &mut rounds.commitments {
                let first = ainq[..32].to_vec();
                ainq.splice(0..0, first);
            }
        })
    }));
}

#[test]
fn a_share_that_was_not_committed_to_is_blamed_on_its_sender() {
    only_the_liar_is_named(&spoilt(3, || {
        changed(|to, rounds| {
            if let (4, Some(share)) = (to, &mut rounds.share) {
                let mut wrong = share.ainq.expose().to_vec();
                wrong[0] ^= 1;
                share.ainq = SecretBytes::new(wrong.into());
            }
        })
    }));
}

#[test]
fn an_echo_of_what_was_not_said_is_blamed_on_its_sender() {
    only_the_liar_is_named(&spoilt(4, || {
        changed(|_, rounds| {
            if let Some(echo) = &mut rounds.echo {
                // About member 2's own messages.
                flip(&mut echo.digests[1]);
            }
        })
    }));
    only_the_liar_is_named(&spoilt(5, || {
        changed(|_, rounds| {
            if let Some(echo) = &mut rounds.echo {
                flip(&mut echo.hashes.ibe);
            }
        })
    }));
}

#[test]
fn who_says_two_things_is_blamed_for_it() {
    only_the_liar_is_named(&spoilt(6, || {
        let mut second = false;
        changed(move |to, rounds| {
            if let (3, Some(commitments)) = (to, &mut rounds.commitments) {
                if second {
                    flip(&mut commitments.ainq);
                }
                second = true;
            }
        })
    }));
}

#[test]
fn who_tells_members_different_things_is_named_with_those_who_say_so() {
    // Member 2 takes part honestly with members 1 and 3, but sends member 4 other commitments that are as
    // good.
    let mut other = World::new(8, 4, 3);
    other.command_all(&QuorumCommand::Generate);
    other.run_for(Duration::from_secs(1));
    let said = other.sent().iter().find_map(|packet| match &packet.message {
        QuorumMessage::Ceremony(message) if packet.from == 2 => message.rounds.as_ref()?.commitments.clone(),
        _ => None,
    });
    let another = said.expect("it has committed");
    let mut world = World::new(9, 4, 3);
    world.set_tamper(changed(move |to, rounds| {
        if let (4, Some(commitments)) = (to, &mut rounds.commitments) {
            *commitments = another.clone();
        }
    }));
    world.command_all(&QuorumCommand::Generate);
    world.run_for(Duration::from_secs(100));
    assert!(world.ids().iter().all(|id| world.node(*id).keys().is_none()));
    let causes: Vec<_> = [1, 3, 4].into_iter().flat_map(|id| aborts(&world, id)).collect();
    let about_2 = |cause: &AbortCause| match cause {
        AbortCause::Transcript { sender, .. } => *sender == 2,
        AbortCause::Fault { culprit, .. } => *culprit == 2,
        _ => false,
    };
    assert!(
        causes.iter().any(|cause| matches!(cause, AbortCause::Transcript { sender: 2, .. })),
        "{causes:?}"
    );
    let named = |cause: &&AbortCause| !matches!(cause, AbortCause::Left { .. });
    assert!(causes.iter().filter(named).all(about_2), "{causes:?}");
    let blamed = |cause: &AbortCause| matches!(cause, AbortCause::Left { blames, .. } if !matches!(blames, None | Some(2)));
    assert!(!causes.iter().any(blamed));
}

#[test]
fn who_withholds_its_confirmation_delays_a_refresh_and_takes_nothing_away() {
    let mut world = World::new(10, 5, 3);
    world.generate();
    world.run_for(Duration::from_secs(100));
    // Member 2 confirms to member 1 alone, and reports to the others that it has left.
    world.set_tamper(Box::new(|mut packet| {
        if packet.from == 2 && packet.to > 2 {
            match &mut packet.message {
                QuorumMessage::Ceremony(message) => {
                    let Some(rounds) = &mut message.rounds else { return vec![packet] };
                    if rounds.confirmation.is_some() {
                        let session = rounds.session;
                        let abort = quiver_message::quorum::CeremonyAbort { session, culprit: None };
                        packet.message = QuorumMessage::Abort(abort);
                    }
                }
                _ => return vec![packet],
            }
        }
        vec![packet]
    }));
    world.command(1, QuorumCommand::Refresh);
    world.run_for(Duration::from_secs(200));
    let version = |world: &World, id| world.node(id).keys().unwrap().version();
    assert_eq!([1, 3, 4, 5].map(|id| version(&world, id)), [1, 0, 0, 0]);
    // The others hold both, and their operators can put the new ones in force.
    for id in [3, 4, 5] {
        assert_eq!(world.node(id).view().ceremony.unwrap().waits_for, [2]);
        world.command(id, QuorumCommand::Adopt);
    }
    assert_eq!([1, 3, 4, 5].map(|id| version(&world, id)), [1; 4]);
    world.tamper = None;
    world.until("all have the new shares", |world| world.all_hold(1));
    check_keys(&mut world);
}

#[test]
fn strangers_and_garbage_are_reported_and_change_nothing() {
    let mut world = World::new(11, 3, 2);
    world.generate();
    let before = holdings(&world);
    let status = world.sent()[0].message.encode(world.membership.fingerprint());
    let stranger = quiver_machine::Peer(999_999);
    world.feed(1, Stimulus::Received(stranger, quiver_machine::Via::Peer, status.into()));
    assert_eq!(world.events(1).last(), Some(&QuorumEvent::Stranger(quiver_machine::Peer(999_999))));
    let route = quiver_machine::Route::Member(4);
    let peer = quiver_machine::Peer(888_888);
    world.feed(1, Stimulus::Connected(peer, route));
    assert_eq!(world.events(1).last(), Some(&QuorumEvent::Stranger(peer)));
    for (old, new) in before.iter().zip(holdings(&world)) {
        assert_eq!(old.encode(), new.encode());
    }
}
