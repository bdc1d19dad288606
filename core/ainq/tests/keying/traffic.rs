//! Group messages: each opens once, in its epoch, from its channel; restarts of every kind.

use quiver_ainq::{
    Ceiling, Error, Handle, LEADER_SLOT, Name, Receiver, Ristretto255, SealedMessage, Sender, TrafficKey,
};
use quiver_crypto::Zeroizing;

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
    Receiver::new(key, digest, leader(swarm))
}

fn leader(swarm: &Swarm<S>) -> Handle {
    swarm.last().header.core.leader.handle()
}

/// Opens and accepts an unsigned message.
fn receive(
    receiver: &mut Receiver,
    frame: &SealedMessage,
    channel: &Name,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let opened = receiver.open(frame, channel, None)?;
    receiver.accept(opened)
}

/// The same if this signs it, and the signature holds.
fn receive_signed(
    receiver: &mut Receiver,
    frame: &SealedMessage,
    signer: &Handle,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let opened = receiver.open(frame, &news(), Some(signer))?;
    receiver.accept(opened)
}

fn frames(sender: &mut Sender, count: usize) -> Vec<SealedMessage> {
    (0..count).map(|i| sender.seal(&news(), None, format!("message {i}").as_bytes()).unwrap()).collect()
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
    let by_leader = leader(&swarm);
    let mut leader = Receiver::new(leaders_key, digest, by_leader);
    let message = from_edge.seal(&news(), None, b"hello").unwrap();
    assert_eq!(*receive(&mut edge, &message, &news()).unwrap(), b"hello");
    assert_eq!(*receive(&mut leader, &message, &news()).unwrap(), b"hello");
    let order = from_leader.seal(&news(), Some(&by_leader), b"turn").unwrap();
    assert_eq!(*receive_signed(&mut edge, &order, &by_leader).unwrap(), b"turn");
}

#[test]
fn messages_open_once_and_in_any_order_within_the_window() {
    let swarm = Swarm::<S>::formed(52, 2);
    let (mut sender, mut receiver) = (sender(&swarm, 0, 1, 1), receiver(&swarm, 1));
    let sent = frames(&mut sender, 1500);
    for index in [0, 2, 1, 1023, 700, 1499] {
        assert!(receive(&mut receiver, &sent[index], &news()).is_ok());
        assert_eq!(receive(&mut receiver, &sent[index], &news()).unwrap_err(), Error::Replay);
    }
    // 1499 − 1023 = 476 is the lowest number in the window.
    assert!(receive(&mut receiver, &sent[476], &news()).is_ok());
    assert_eq!(receive(&mut receiver, &sent[475], &news()).unwrap_err(), Error::Replay);
}

#[test]
fn changing_any_part_of_a_frame_breaks_the_seal_and_nothing_else() {
    let swarm = Swarm::<S>::formed(53, 2);
    let (mut sender, mut receiver) = (sender(&swarm, 0, 4, 1), receiver(&swarm, 1));
    let frame = frames(&mut sender, 1).remove(0);
    let changed = |change: &dyn Fn(&mut SealedMessage)| {
        let mut frame = frame.clone();
        change(&mut frame);
        frame
    };
    let wrong = [
        changed(&|frame| frame.slot = 1),
        changed(&|frame| frame.boot_no = 5),
        changed(&|frame| frame.salt[0] ^= 1),
        changed(&|frame| frame.counter += 1),
        changed(&|frame| frame.hedge[7] ^= 1),
        changed(&|frame| frame.ciphertext[0] ^= 1),
        changed(&|frame| frame.ciphertext.clear()),
        changed(&|frame| frame.ciphertext.truncate(20)),
    ];
    for frame in wrong {
        assert_eq!(receive(&mut receiver, &frame, &news()).unwrap_err(), Error::SealBroken);
    }
    let beyond = changed(&|frame| frame.counter = 1 << 32);
    assert_eq!(receive(&mut receiver, &beyond, &news()).unwrap_err(), Error::Malformed("frame number"));
    let nobody = changed(&|frame| frame.slot = LEADER_SLOT + 1);
    assert_eq!(receive(&mut receiver, &nobody, &news()).unwrap_err(), Error::WrongSlot);
    // No window was made by any of them: in particular not one for boot_no 5.
    assert!(receive(&mut receiver, &frame, &news()).is_ok());
}

#[test]
fn a_message_does_not_cross_epochs_groups_or_channels() {
    let mut swarm = Swarm::<S>::formed(54, 2);
    let other_group = Swarm::<S>::formed(55, 2);
    let frame = frames(&mut sender(&swarm, 0, 1, 1), 1).remove(0);
    let mut foreign = receiver(&other_group, 1);
    assert_eq!(receive(&mut foreign, &frame, &news()).unwrap_err(), Error::SealBroken);
    let mut here = receiver(&swarm, 1);
    assert_eq!(receive(&mut here, &frame, &name("olds")).unwrap_err(), Error::SealBroken);
    swarm.expire();
    assert_eq!(receive(&mut receiver(&swarm, 1), &frame, &news()).unwrap_err(), Error::SealBroken);
    assert!(receive(&mut here, &frame, &news()).is_ok());
}

#[test]
fn a_restarted_sender_is_heard_and_its_earlier_start_no_longer() {
    let swarm = Swarm::<S>::formed(56, 2);
    let mut receiver = receiver(&swarm, 1);
    let before = frames(&mut sender(&swarm, 0, 1, 1), 3);
    assert!(receive(&mut receiver, &before[0], &news()).is_ok());
    let after = frames(&mut sender(&swarm, 0, 2, 9), 1);
    assert!(receive(&mut receiver, &after[0], &news()).is_ok());
    assert_eq!(receive(&mut receiver, &before[1], &news()).unwrap_err(), Error::Replay);
    assert_eq!(receive(&mut receiver, &after[0], &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_sender_rolled_back_to_an_earlier_start_repeats_no_key_and_is_not_heard() {
    let swarm = Swarm::<S>::formed(57, 2);
    let mut receiver = receiver(&swarm, 1);
    let first = frames(&mut sender(&swarm, 0, 3, 1), 1).remove(0);
    assert!(receive(&mut receiver, &first, &news()).is_ok());
    // Its memory was rolled back, so boot_no comes again; the salt does not.
    let again = frames(&mut sender(&swarm, 0, 3, 2), 1).remove(0);
    assert_ne!(first.ciphertext, again.ciphertext);
    assert_eq!(receive(&mut receiver, &again, &news()).unwrap_err(), Error::Replay);
    let lower = frames(&mut sender(&swarm, 0, 2, 3), 1).remove(0);
    assert_eq!(receive(&mut receiver, &lower, &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_restored_receiver_accepts_nothing_it_may_have_seen() {
    let swarm = Swarm::<S>::formed(58, 2);
    let (key, digest) = traffic(&swarm, 1);
    let mut live = Receiver::new(key.clone(), digest, leader(&swarm));
    let sent = frames(&mut sender(&swarm, 0, 1, 1), 300);
    let mut stored: Vec<Ceiling> = Vec::new();
    let mut writes = 0;
    for frame in &sent[..100] {
        receive(&mut live, frame, &news()).unwrap();
        let risen = live.take_risen_ceilings();
        writes += risen.len();
        stored = if risen.is_empty() { stored } else { risen };
    }
    assert_eq!(writes, 2);
    drop(live);
    let mut restored = Receiver::restore(key, digest, leader(&swarm), stored);
    let opened: Vec<bool> = sent.iter().map(|frame| receive(&mut restored, frame, &news()).is_ok()).collect();
    assert!(opened[..128].iter().all(|opened| !opened) && opened[128..].iter().all(|opened| *opened));
    let older_start = frames(&mut sender(&swarm, 0, 0, 7), 1).remove(0);
    assert_eq!(receive(&mut restored, &older_start, &news()).unwrap_err(), Error::Replay);
}

#[test]
fn a_drone_that_lost_its_state_has_nothing_to_read_with_until_it_joins_again() {
    let mut swarm = Swarm::<S>::formed(59, 2);
    let state = swarm.edges[1].membership.as_ref().unwrap().encode();
    // Kept state has no group key either: the epoch in which it stopped stays closed.
    let restored = quiver_ainq::GroupMembership::<S>::restore(&state).unwrap();
    assert!(restored.group_key().is_none());
    swarm.edges[1].membership = None;
    swarm.join(&[1]);
    let frame = frames(&mut sender(&swarm, 0, 1, 1), 1).remove(0);
    assert!(receive(&mut receiver(&swarm, 1), &frame, &news()).is_ok());
}

/// A frame of an insider with the epoch's key and a made-up sender.
fn forged(swarm: &Swarm<S>, slot: u32, boot_no: u32, signer: Option<&Handle>) -> SealedMessage {
    let (key, digest) = traffic(swarm, 0);
    Sender::new(&key, digest, slot, boot_no, [0xEE; 8]).seal(&news(), signer, b"forged").unwrap()
}

#[test]
fn opening_changes_nothing_until_the_message_is_accepted() {
    let swarm = Swarm::<S>::formed(60, 2);
    let mut receiver = receiver(&swarm, 1);
    let signer = Handle([4; 32]);
    // In the signer's name, with a later start than any: its signature will not hold, so it is not accepted.
    let frame = forged(&swarm, 0, u32::MAX, Some(&signer));
    drop(receiver.open(&frame, &news(), Some(&signer)).unwrap());
    assert_eq!(receiver.senders(), 0);
    let genuine = sender(&swarm, 0, 1, 1).seal(&news(), Some(&signer), b"genuine").unwrap();
    assert!(receive_signed(&mut receiver, &genuine, &signer).is_ok());
    // Opened twice, accepted once.
    let next = sender(&swarm, 0, 2, 2).seal(&news(), Some(&signer), b"next").unwrap();
    let twice = [0, 1].map(|_| receiver.open(&next, &news(), Some(&signer)).unwrap());
    let accepted = twice.map(|opened| receiver.accept(opened).map(|_| ()));
    assert_eq!(accepted, [Ok(()), Err(Error::Replay)]);
}

#[test]
fn no_member_silences_the_leader_or_whoever_signs() {
    let swarm = Swarm::<S>::formed(61, 2);
    let (leader, signer) = (leader(&swarm), Handle([4; 32]));
    let mut receiver = receiver(&swarm, 1);
    // One frame with the latest start there is, unsigned in the leader's slot: refused, as the leader always
    // signs.
    let silencer = forged(&swarm, LEADER_SLOT, u32::MAX, None);
    assert_eq!(receive(&mut receiver, &silencer, &news()).unwrap_err(), Error::WrongSlot);
    // Signed by another member in the leader's slot, or by the leader's key out of it.
    let silencer = forged(&swarm, LEADER_SLOT, u32::MAX, Some(&signer));
    assert_eq!(receive_signed(&mut receiver, &silencer, &signer).unwrap_err(), Error::WrongSlot);
    let silencer = forged(&swarm, 0, u32::MAX, Some(&leader));
    assert_eq!(receive_signed(&mut receiver, &silencer, &leader).unwrap_err(), Error::WrongSlot);
    let (key, digest) = traffic(&swarm, 0);
    let mut commands = Sender::new(&key, digest, LEADER_SLOT, 1, [1; 8]);
    let command = commands.seal(&news(), Some(&leader), b"command").unwrap();
    assert!(receive_signed(&mut receiver, &command, &leader).is_ok());
    assert_eq!(receive_signed(&mut receiver, &command, &leader).unwrap_err(), Error::Replay);
    // An unsigned frame in its slot silences the unsigned messages of a member, and no signed one.
    assert!(receive(&mut receiver, &forged(&swarm, 0, u32::MAX, None), &news()).is_ok());
    let mut member = sender(&swarm, 0, 1, 1);
    let unsigned = member.seal(&news(), None, b"unsigned").unwrap();
    assert_eq!(receive(&mut receiver, &unsigned, &news()).unwrap_err(), Error::Replay);
    let signed = member.seal(&news(), Some(&signer), b"signed").unwrap();
    assert!(receive_signed(&mut receiver, &signed, &signer).is_ok());
}

#[test]
fn a_signature_cannot_be_cut_off_or_exchanged() {
    let swarm = Swarm::<S>::formed(62, 2);
    let (signer, other) = (Handle([4; 32]), Handle([5; 32]));
    let mut receiver = receiver(&swarm, 1);
    let signed = sender(&swarm, 0, 1, 1).seal(&news(), Some(&signer), b"signed").unwrap();
    assert_eq!(receive(&mut receiver, &signed, &news()).unwrap_err(), Error::SealBroken);
    assert_eq!(receive_signed(&mut receiver, &signed, &other).unwrap_err(), Error::SealBroken);
    assert!(receive_signed(&mut receiver, &signed, &signer).is_ok());
}

#[test]
fn invented_slots_neither_fill_a_receiver_nor_silence_who_is_heard() {
    let swarm = Swarm::<S>::formed(63, 2);
    let mut receiver = receiver(&swarm, 1).with_senders(32);
    let genuine = frames(&mut sender(&swarm, 0, 1, 1), 400);
    let (slot, mut heard) = (swarm.slot(0), 0);
    for invented in (0..400).filter(|invented| *invented != slot) {
        // Some are refused once there is no room for more; the genuine sender never is.
        let _ = receive(&mut receiver, &forged(&swarm, invented, 1, None), &news());
        heard += usize::from(receive(&mut receiver, &genuine[invented as usize], &news()).is_ok());
        assert!(receiver.senders() <= 32);
    }
    assert_eq!(heard, 399);
    // A signer has a window of its own.
    let signer = Handle([4; 32]);
    let signed = sender(&swarm, 0, 1, 1).seal(&news(), Some(&signer), b"signed").unwrap();
    assert!(receive_signed(&mut receiver, &signed, &signer).is_ok());
}

#[test]
fn nothing_of_a_forgotten_sender_is_accepted_again() {
    let swarm = Swarm::<S>::formed(64, 2);
    let mut receiver = receiver(&swarm, 1).with_senders(4);
    let sent: Vec<SealedMessage> = (0..40).map(|slot| forged(&swarm, slot, 2, None)).collect();
    let accepted = |receiver: &mut Receiver| {
        sent.iter().filter(|frame| receive(receiver, frame, &news()).is_ok()).count()
    };
    // Four windows and 32 floors: beyond, a new sender is refused, rather than a replay accepted.
    assert_eq!(accepted(&mut receiver), 36);
    assert_eq!(receive(&mut receiver, &sent[39], &news()).unwrap_err(), Error::Exhausted);
    assert_eq!(accepted(&mut receiver), 0);
    // A forgotten sender continues, and starts anew; neither makes an earlier message new.
    let (key, digest) = traffic(&swarm, 0);
    let mut goes_on = Sender::new(&key, digest, 0, 2, [0xEE; 8]);
    goes_on.skip_to(1).unwrap();
    let next = goes_on.seal(&news(), None, b"next").unwrap();
    assert!(receive(&mut receiver, &next, &news()).is_ok());
    assert!(receive(&mut receiver, &forged(&swarm, 1, 3, None), &news()).is_ok());
    assert_eq!(receive(&mut receiver, &forged(&swarm, 2, 1, None), &news()).unwrap_err(), Error::Replay);
    assert_eq!(accepted(&mut receiver), 0);
    assert_eq!(receive(&mut receiver, &next, &news()).unwrap_err(), Error::Replay);
}

#[test]
fn the_sender_heard_least_recently_is_forgotten_first() {
    let swarm = Swarm::<S>::formed(65, 2);
    let mut receiver = receiver(&swarm, 1).with_senders(2);
    let (key, digest) = traffic(&swarm, 0);
    let mut senders = [0, 1, 2].map(|slot| Sender::new(&key, digest, slot, 1, [0xEE; 8]));
    let mut sent = [0, 1, 2].map(|slot: usize| frames(&mut senders[slot], 8));
    // Overtaken: a window accepts late messages, a floor does not.
    sent.iter_mut().for_each(|frames| frames.swap(0, 7));
    for (sender, index) in [(0, 0), (1, 0), (0, 1), (2, 0)] {
        assert!(receive(&mut receiver, &sent[sender][index], &news()).is_ok());
    }
    assert!(receive(&mut receiver, &sent[0][2], &news()).is_ok());
    assert_eq!(receive(&mut receiver, &sent[1][1], &news()).unwrap_err(), Error::Replay);
}

#[test]
fn slots_that_nobody_can_hold_are_refused_unopened() {
    let swarm = Swarm::<S>::formed(66, 2);
    let mut receiver = receiver(&swarm, 1).with_slots(4);
    for slot in [4, 5, LEADER_SLOT - 1] {
        assert_eq!(
            receive(&mut receiver, &forged(&swarm, slot, 1, None), &news()).unwrap_err(),
            Error::WrongSlot
        );
    }
    assert!(receive(&mut receiver, &forged(&swarm, 3, 1, None), &news()).is_ok());
    let leader = leader(&swarm);
    let command = forged(&swarm, LEADER_SLOT, 1, Some(&leader));
    assert!(receive_signed(&mut receiver, &command, &leader).is_ok());
    assert_eq!(receiver.senders(), 2);
}
