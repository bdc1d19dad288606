//! Recorders: over long simulated histories no key wraps twice, and no key meets a nonce twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use quiver_ainq::{Epoch, Error, Ratchet, Receiver, Ristretto255, Sender, Suite};
use quiver_crypto::{Secret, prf};
use rand_core::RngCore;

use crate::swarm::{Swarm, name};

for_each_suite! {
    no_wrap_key_is_used_twice;
}

/// W of the next wrap, as the edge's state has it.
fn next_chain<S: Suite>(state: &[u8]) -> [u8; 32] {
    let ratchet = &state[state.len() - Ratchet::<S>::ENCODED_LEN..];
    ratchet[8..40].try_into().unwrap()
}

fn no_wrap_key_is_used_twice<S: Suite>() {
    let mut swarm = Swarm::<S>::formed(71, 3);
    let (mut used, mut masks, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
    for round in 0..12 {
        // The members' keys for the next epoch are those with which the leader wraps, as all agree
        // afterwards.
        let before: Vec<_> =
            swarm.edges.iter().map(|edge| edge.membership.as_ref().unwrap().encode()).collect();
        match round % 4 {
            0 => drop(swarm.join(&[1])),
            2 => drop(swarm.open(&[0, 1, 2])),
            _ => drop(swarm.expire()),
        }
        let d0 = swarm.last().header.core.digest(&swarm.deployment);
        for (index, state) in before.iter().enumerate() {
            assert!(swarm.agrees(index));
            let slot = swarm.slot(index);
            if swarm.last().header.core.adds(slot) {
                continue;
            }
            count += 1;
            let chain = next_chain::<S>(state);
            used.insert(chain);
            let pad = prf(&Secret::new(chain), S::ID, "wrap", &[&d0, &slot.to_be_bytes()]);
            masks.insert(*pad.expose());
        }
    }
    assert_eq!((used.len(), masks.len()), (count, count));
    let wraps: BTreeSet<_> =
        swarm.broadcasts.iter().flat_map(|epoch| &epoch.entries).map(|entry| entry.wrap).collect();
    assert_eq!(wraps.len(), swarm.broadcasts.iter().map(|epoch| epoch.entries.len()).sum::<usize>());
}

#[test]
fn a_sender_refuses_to_go_on_when_its_numbers_are_used_up() {
    let swarm = Swarm::<Ristretto255>::formed(72, 1);
    let member = swarm.edges[0].membership.as_ref().unwrap();
    let key = member.group_key().unwrap().traffic(member.digest());
    let mut sender = Sender::new(&key, *member.digest(), 0, 1, [0; 8]);
    sender.skip_to(quiver_ainq::MAX_FRAMES - 1).unwrap();
    assert_eq!(sender.skip_to(7), Err(Error::Stale));
    assert_eq!(sender.skip_to(quiver_ainq::MAX_FRAMES), Err(Error::Exhausted));
    assert_eq!(sender.seal(&name("news"), None, b"last").unwrap().counter, u64::from(u32::MAX));
    assert_eq!(sender.seal(&name("news"), None, b"one too many").unwrap_err(), Error::Exhausted);
}

#[test]
fn a_forked_sender_sealing_different_messages_never_repeats_key_and_nonce() {
    let swarm = Swarm::<Ristretto255>::formed(75, 1);
    let member = swarm.edges[0].membership.as_ref().unwrap();
    let key = member.group_key().unwrap().traffic(member.digest());
    // A snapshot of a running machine: key, salt and counter come back, and no start is counted.
    let fork = || Sender::new(&key, *member.digest(), 0, 1, [9; 8]);
    let signer = quiver_ainq::Handle([3; 32]);
    let mut nonces = BTreeSet::new();
    let mut sealed = 0;
    for copy in 0..64 {
        let mut sender = fork();
        for number in 0..16 {
            let plaintext = format!("copy {copy}, message {number}");
            let frame = sender.seal(&name("news"), None, plaintext.as_bytes()).unwrap();
            assert_eq!(frame.counter, number);
            nonces.insert((frame.hedge, frame.counter));
            sealed += 1;
        }
    }
    assert_eq!(nonces.len(), sealed);
    // For the same plaintext, the associated data separates the nonces.
    let of = |channel, signer| fork().seal(&name(channel), signer, b"same").unwrap();
    let frames = [of("news", None), of("olds", None), of("news", Some(&signer))];
    let hedges: BTreeSet<_> = frames.iter().map(|frame| frame.hedge).collect();
    assert_eq!(hedges.len(), frames.len());
    // The same in everything is the same frame.
    assert_eq!(of("news", None), frames[0]);
}

#[test]
fn a_frame_has_a_number_that_a_sender_has() {
    let swarm = Swarm::<Ristretto255>::formed(76, 1);
    let member = swarm.edges[0].membership.as_ref().unwrap();
    let key = member.group_key().unwrap().traffic(member.digest());
    let mut sender = Sender::new(&key, *member.digest(), 0, 1, [0; 8]);
    let receiver = Receiver::new(key, *member.digest(), swarm.leader.public().handle());
    sender.skip_to(quiver_ainq::MAX_FRAMES - 1).unwrap();
    let mut frame = sender.seal(&name("news"), None, b"last").unwrap();
    assert!(receiver.open(&frame, &name("news"), None).is_ok());
    frame.counter = quiver_ainq::MAX_FRAMES;
    let refused = receiver.open(&frame, &name("news"), None).map(drop);
    assert_eq!(refused, Err(Error::Malformed("frame number")));
}

#[test]
fn a_ratchet_skips_as_far_as_the_bound_says_and_no_further_than_the_last_epoch() {
    const END: u64 = Epoch::MAX_COUNTER + 1;
    let at = |u: u64| Ratchet::<Ristretto255>::decode(&[&u.to_be_bytes()[..], &[1; 64]].concat());
    assert_eq!(at(7).unwrap().skip_to(7 + quiver_ainq::MAX_SKIP), Ok(()));
    assert_eq!(at(7).unwrap().skip_to(8 + quiver_ainq::MAX_SKIP), Err(Error::Exhausted));
    assert_eq!(at(END - 1).unwrap().skip_to(END), Ok(()));
    assert_eq!(at(END - 1).unwrap().skip_to(END + 1), Err(Error::Exhausted));
    assert_eq!(at(END).unwrap().skip_to(END), Ok(()));
    assert_eq!(at(END + 1).map(drop), Err(Error::Malformed("ratchet")));
}

#[test]
fn secrets_are_encoded_into_memory_that_is_not_outgrown() {
    // A vector that grew would leave a copy of its content behind, unerased.
    let swarm = Swarm::<Ristretto255>::formed(77, 1);
    let state = swarm.edges[0].membership.as_ref().unwrap().encode();
    assert_eq!(state.capacity(), state.len());
    let ratchet = &state[state.len() - Ratchet::<Ristretto255>::ENCODED_LEN..];
    let ratchet = Ratchet::<Ristretto255>::decode(ratchet).unwrap().encode();
    assert_eq!((ratchet.capacity(), ratchet.len()), (72, 72));
}

/// Memory that survives a restart.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Kept,
    /// The boot number as it was some starts ago.
    RolledBack(u32),
    Lost,
}

#[test]
fn no_key_meets_a_nonce_twice_over_thousands_of_restarts() {
    let mut swarm = Swarm::<Ristretto255>::formed(73, 1);
    let (mut recorder, mut boot_no, mut frames) = (BTreeSet::new(), 0u32, 0);
    for restart in 0..4000u32 {
        let memory = match swarm.rng.next_u32() % 10 {
            0 => Memory::RolledBack(swarm.rng.next_u32() % 8),
            1 => Memory::Lost,
            _ => Memory::Kept,
        };
        match memory {
            Memory::Kept => boot_no += 1,
            Memory::RolledBack(starts) => boot_no = (boot_no + 1).saturating_sub(starts).max(1),
            // It cannot distinguish its starts any more, so it joins again, under the key of a new epoch.
            Memory::Lost => {
                boot_no = 1;
                drop(swarm.join(&[0]));
            }
        }
        // An epoch now and then; most restarts fall into the same one.
        if restart % 16 == 0 {
            swarm.expire();
        }
        let member = swarm.edges[0].membership.as_ref().unwrap();
        let digest = *member.digest();
        let k_tr = member.group_key().unwrap().traffic(&digest);
        let mut sender = Sender::with_fresh_salt(&k_tr, digest, 0, boot_no, &mut swarm.rng);
        for _ in 0..3 {
            let frame = sender.seal(&name("news"), None, b"same plaintext").unwrap();
            // The key is a function of the first four, the nonce of the rest.
            recorder.insert((digest, frame.slot, frame.boot_no, frame.salt, frame.hedge, frame.counter));
            frames += 1;
        }
    }
    assert_eq!(recorder.len(), frames);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_ratchet_skips_forward_only_and_not_too_far(steps in 0..200u64, back in 1..50u64) {
        let swarm = Swarm::<Ristretto255>::formed(74, 1);
        let state = swarm.edges[0].membership.as_ref().unwrap().encode();
        let mut one = Ratchet::<Ristretto255>::decode(&state[state.len() - Ratchet::<Ristretto255>::ENCODED_LEN..]).unwrap();
        let start = one.u();
        let mut other = one.clone();
        one.skip_to(start + steps).unwrap();
        (0..steps).for_each(|_| other.step());
        prop_assert_eq!(one.encode(), other.encode());
        let before = one.encode();
        if back <= one.u() {
            let u = one.u() - back;
            prop_assert_eq!(one.skip_to(u), Err(Error::Stale));
        }
        let far = one.u() + quiver_ainq::MAX_SKIP + 1;
        prop_assert_eq!(one.skip_to(far), Err(Error::Exhausted));
        prop_assert_eq!(one.encode(), before);
    }
}
