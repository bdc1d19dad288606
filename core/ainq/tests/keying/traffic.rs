//! Group messages: each opens once, in its epoch, from its channel; restarts of every kind.

use quiver_ainq::{Ceiling, Error, Frame, LEADER_SLOT, Name, Receiver, Ristretto255, Sender, TrafficKey};

use crate::swarm::{Swarm, name};

type S = Ristretto255;

fn news() -> Name {
    name("news")
}

/// K_tr and D as an edge has them.
fn traffic(swarm: &Swarm<S>, index: usize) -> (TrafficKey, [u8; 32]) {
    let member = swarm.edges[index].membership.as_ref().unwrap();
    (member.group_key().unwrap().traffic(member.digest()), *member.digest())
}

fn sender(swarm: &Swarm<S>, index: usize, boot_no: u32, salt: u8) -> Sender {
    let (key, digest) = traffic(swarm, index);
    Sender::new(&key, digest, swarm.slot(index), boot_no, [salt; 8])
}

fn receiver(swarm: &Swarm<S>, index: usize) -> Receiver {
    let (key, digest) = traffic(swarm, index);
    Receiver::new(key, digest)
}

fn frames(sender: &mut Sender, count: usize) -> Vec<Frame> {
    (0..count).map(|i| sender.seal(&news(), format!("message {i}").as_bytes()).unwrap()).collect()
}

#[test]
fn every_member_and_the_leader_reads_every_other() {
    let mut swarm = Swarm::<S>::formed(51, 2);
    swarm.expire();
    let mut from_edge = sender(&swarm, 0, 1, 1);
    let digest = *swarm.leadership.digest();
    let leaders_key = swarm.leadership.group_key().traffic(&digest);
    let mut from_leader = Sender::new(&leaders_key, digest, LEADER_SLOT, 1, [2; 8]);
    let mut edge = receiver(&swarm, 1);
    let mut leader = Receiver::new(leaders_key, digest);
    let message = from_edge.seal(&news(), b"hello").unwrap();
    assert_eq!(*edge.open(&message, &news()).unwrap(), b"hello");
    assert_eq!(*leader.open(&message, &news()).unwrap(), b"hello");
    let order = from_leader.seal(&news(), b"turn").unwrap();
    assert_eq!(*edge.open(&order, &news()).unwrap(), b"turn");
}

#[test]
fn messages_open_once_and_in_any_order_within_the_window() {
    let swarm = Swarm::<S>::formed(52, 2);
    let (mut sender, mut receiver) = (sender(&swarm, 0, 1, 1), receiver(&swarm, 1));
    let sent = frames(&mut sender, 1500);
    for index in [0, 2, 1, 1023, 700, 1499] {
        assert!(receiver.open(&sent[index], &news()).is_ok());
        assert_eq!(receiver.open(&sent[index], &news()).unwrap_err(), Error::Replay);
    }
    // 1499 − 1023 = 476 is the lowest number in the window.
    assert!(receiver.open(&sent[476], &news()).is_ok());
    assert_eq!(receiver.open(&sent[475], &news()).unwrap_err(), Error::Replay);
}

#[test]
fn changing_any_part_of_a_frame_breaks_the_seal_and_nothing_else() {
    let swarm = Swarm::<S>::formed(53, 2);
    let (mut sender, mut receiver) = (sender(&swarm, 0, 4, 1), receiver(&swarm, 1));
    let frame = frames(&mut sender, 1).remove(0);
    let changed = |change: &dyn Fn(&mut Frame)| {
        let mut frame = frame.clone();
        change(&mut frame);
        frame
    };
    let wrong = [
        changed(&|frame| frame.slot = 1),
        changed(&|frame| frame.boot_no = 5),
        changed(&|frame| frame.salt[0] ^= 1),
        changed(&|frame| frame.counter += 1),
        changed(&|frame| frame.ciphertext[0] ^= 1),
        changed(&|frame| frame.ciphertext.clear()),
        changed(&|frame| frame.ciphertext.truncate(20)),
    ];
    for frame in wrong {
        assert_eq!(receiver.open(&frame, &news()).unwrap_err(), Error::SealBroken);
    }
    let beyond = changed(&|frame| frame.counter = 1 << 32);
    assert_eq!(receiver.open(&beyond, &news()).unwrap_err(), Error::Malformed("frame number"));
    let nobody = changed(&|frame| frame.slot = LEADER_SLOT + 1);
    assert_eq!(receiver.open(&nobody, &news()).unwrap_err(), Error::WrongSlot);
    // No window was made by any of them: in particular not one for boot_no 5.
    assert!(receiver.open(&frame, &news()).is_ok());
}

#[test]
fn a_message_does_not_cross_epochs_groups_or_channels() {
    let mut swarm = Swarm::<S>::formed(54, 2);
    let other_group = Swarm::<S>::formed(55, 2);
    let frame = frames(&mut sender(&swarm, 0, 1, 1), 1).remove(0);
    let mut foreign = receiver(&other_group, 1);
    assert_eq!(foreign.open(&frame, &news()).unwrap_err(), Error::SealBroken);
    let mut here = receiver(&swarm, 1);
    assert_eq!(here.open(&frame, &name("olds")).unwrap_err(), Error::SealBroken);
    swarm.expire();
    assert_eq!(receiver(&swarm, 1).open(&frame, &news()).unwrap_err(), Error::SealBroken);
    assert!(here.open(&frame, &news()).is_ok());
}

#[test]
fn a_restarted_sender_is_heard_and_its_earlier_start_no_longer() {
    let swarm = Swarm::<S>::formed(56, 2);
    let mut receiver = receiver(&swarm, 1);
    let before = frames(&mut sender(&swarm, 0, 1, 1), 3);
    assert!(receiver.open(&before[0], &news()).is_ok());
    let after = frames(&mut sender(&swarm, 0, 2, 9), 1);
    assert!(receiver.open(&after[0], &news()).is_ok());
    assert_eq!(receiver.open(&before[1], &news()).unwrap_err(), Error::Replay);
    assert_eq!(receiver.open(&after[0], &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_sender_rolled_back_to_an_earlier_start_repeats_no_key_and_is_not_heard() {
    let swarm = Swarm::<S>::formed(57, 2);
    let mut receiver = receiver(&swarm, 1);
    let first = frames(&mut sender(&swarm, 0, 3, 1), 1).remove(0);
    assert!(receiver.open(&first, &news()).is_ok());
    // Its memory was rolled back, so boot_no comes again; the salt does not.
    let again = frames(&mut sender(&swarm, 0, 3, 2), 1).remove(0);
    assert_ne!(first.ciphertext, again.ciphertext);
    assert_eq!(receiver.open(&again, &news()).unwrap_err(), Error::Replay);
    let lower = frames(&mut sender(&swarm, 0, 2, 3), 1).remove(0);
    assert_eq!(receiver.open(&lower, &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_restored_receiver_accepts_nothing_it_may_have_seen() {
    let swarm = Swarm::<S>::formed(58, 2);
    let (key, digest) = traffic(&swarm, 1);
    let mut live = Receiver::new(key.clone(), digest);
    let sent = frames(&mut sender(&swarm, 0, 1, 1), 300);
    let mut stored: Vec<Ceiling> = Vec::new();
    let mut writes = 0;
    for frame in &sent[..100] {
        live.open(frame, &news()).unwrap();
        let risen = live.take_risen_ceilings();
        writes += risen.len();
        stored = if risen.is_empty() { stored } else { risen };
    }
    assert_eq!(writes, 2);
    drop(live);
    let mut restored = Receiver::restore(key, digest, stored);
    let opened: Vec<bool> = sent.iter().map(|frame| restored.open(frame, &news()).is_ok()).collect();
    assert!(opened[..128].iter().all(|opened| !opened) && opened[128..].iter().all(|opened| *opened));
    let older_start = frames(&mut sender(&swarm, 0, 0, 7), 1).remove(0);
    assert_eq!(restored.open(&older_start, &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_drone_that_lost_its_state_has_nothing_to_read_with_until_it_joins_again() {
    let mut swarm = Swarm::<S>::formed(59, 2);
    let state = swarm.edges[1].membership.as_ref().unwrap().encode();
    // Kept state has no group key either: the epoch in which it stopped stays closed.
    let restored = quiver_ainq::Membership::<S>::restore(&state).unwrap();
    assert!(restored.group_key().is_none());
    swarm.edges[1].membership = None;
    swarm.join(&[1]);
    let frame = frames(&mut sender(&swarm, 0, 1, 1), 1).remove(0);
    assert!(receiver(&swarm, 1).open(&frame, &news()).is_ok());
}
