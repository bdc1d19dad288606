//! Strangers, relays and hostile members.

use std::time::Duration;

use aes::Aes128;
use ccm::consts::{U13, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use quiver_ainq::instrumented::{decodings, multiplications, reset};
use quiver_ainq::traffic::Start;
use quiver_ainq::{Epoch, LEADER_SLOT, Label, Slot};
use quiver_datagram::{Config, Event, Payload, PayloadOrigin, Priority, Suspicion};
use quiver_testbed::name;
use rand_chacha::rand_core::RngCore;

use crate::swarm::{Faults, Swarm};

const STEP: Duration = Duration::from_millis(20);

/// A group in which everybody knows everybody.
fn acquainted(nodes: usize, config: Config) -> Swarm {
    let mut swarm = Swarm::new(nodes, config);
    for node in 0..nodes {
        swarm.command(node, b"hello", true);
    }
    swarm.settle();
    swarm.run_for(Duration::from_secs(2), STEP);
    for node in &mut swarm.nodes {
        node.inbox.clear();
    }
    swarm.air.clear();
    swarm
}

/// A node takes a slot, and what it signs there comes to another.
fn command_from_slot(swarm: &mut Swarm, (node, slot): (usize, Slot), to: usize, command: &[u8]) {
    swarm.nodes[node].slot = slot;
    swarm.open(node, None);
    swarm.command(node, command, true);
    swarm.take(node).iter().for_each(|datagram| swarm.deliver(to, datagram));
}

/// Members send a manifest every second.
fn manifests() -> Config {
    Config { manifest_every: Some(Duration::from_secs(1)), ..Config::default() }
}

/// Two members, one of which vouches every second for what it sent; the other knows it.
fn vouched() -> Swarm {
    let mut swarm = Swarm::new(2, manifests());
    swarm.command(1, b"hello", true);
    swarm.settle();
    swarm
}

#[test]
fn nothing_altered_by_a_relay_is_received() {
    let mut swarm = acquainted(2, Config::default());
    swarm.telemetry(1, b"telemetry");
    swarm.command(1, b"command", true);
    let sent = swarm.take(1);
    for datagram in &sent {
        for bit in 0..datagram.len() * 8 {
            let mut altered = datagram.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            swarm.deliver(0, &altered);
        }
        for len in 0..datagram.len() {
            swarm.deliver(0, &datagram[..len]);
        }
        swarm.deliver(0, &[datagram, &[0][..]].concat());
    }
    assert!(swarm.nodes[0].inbox.is_empty());
    // And none of it kept the genuine ones out.
    sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert_eq!(swarm.nodes[0].inbox.len(), 2);
    assert_eq!(swarm.nodes[0].impostors, []);
}

#[test]
fn replays_and_datagrams_of_another_epoch_or_group_are_not_received() {
    let mut swarm = acquainted(2, Config::default());
    swarm.telemetry(1, b"one");
    swarm.command(1, b"two", true);
    swarm.settle();
    let air = swarm.air.clone();
    for _ in 0..3 {
        air.iter().for_each(|(_, datagram)| swarm.deliver(0, datagram));
    }
    assert_eq!(swarm.nodes[0].inbox.len(), 2);
    swarm.run_for(Duration::from_secs(1), STEP);
    // Eight epochs later the low bits are the same.
    for _ in 0..8 {
        swarm.rekey([0, 1], false);
    }
    air.iter().for_each(|(_, datagram)| swarm.deliver(0, datagram));
    swarm.run_for(Duration::from_secs(1), STEP);
    assert_eq!(swarm.nodes[0].inbox.len(), 2);
}

#[test]
fn what_a_stranger_sends_costs_no_curve_arithmetic_and_is_not_answered() {
    let mut swarm = acquainted(2, Config::default());
    reset();
    for _ in 0..2_000 {
        let len = (swarm.rng.next_u32() % 200) as usize;
        let mut noise = swarm.noise(len);
        if let [first, slot, ..] = noise.as_mut_slice() {
            // Of this version and epoch, from a sender that is known.
            (*first, *slot) = (0x40 | *first & 0x38 | 1, 2);
        }
        swarm.deliver(0, &noise);
    }
    assert_eq!((multiplications(), decodings()), (0, 0));
    assert!(swarm.nodes[0].inbox.is_empty());
    let forged = swarm.nodes[0].datagrams.counters().forged;
    assert!(forged > 1_500, "{forged}");
    assert!(swarm.take(0).is_empty());
    swarm.now += Duration::from_secs(1);
    assert!(swarm.take(0).is_empty());
}

#[test]
fn a_flood_of_forgeries_is_reported_once_per_epoch_and_keeps_nobody_out() {
    let mut swarm = acquainted(2, Config { forgery_limit: 1_000, ..Config::default() });
    let flood = |swarm: &mut Swarm| {
        for number in 0..2_500_u16 {
            let mut forged = vec![0x40 | (swarm.epoch.counter & 7) as u8, 2];
            forged.extend_from_slice(&number.to_be_bytes());
            forged.extend_from_slice(&[0; 30]);
            swarm.deliver(0, &forged);
        }
    };
    flood(&mut swarm);
    assert_eq!(swarm.nodes[0].forgeries, [1_001]);
    swarm.telemetry(1, b"genuine");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [b"genuine"]);
    swarm.rekey([0, 1], false);
    swarm.telemetry(1, b"under the next key");
    swarm.settle();
    flood(&mut swarm);
    assert_eq!(swarm.nodes[0].forgeries, [1_001, 1_001]);
}

#[test]
fn requests_for_announcements_are_bounded_whatever_comes() {
    let mut swarm = acquainted(2, Config::default());
    let (mut announcements, seconds) = (0, 10);
    for _ in 0..seconds * 50 {
        swarm.now += STEP;
        for slot in 3..60_u8 {
            swarm.deliver(0, &[0x41, slot, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        }
        announcements += swarm.take(0).len();
    }
    assert_eq!(announcements, seconds * 2);
}

#[test]
fn a_captured_member_cannot_sign_as_another() {
    let mut swarm = acquainted(3, Config::default());
    // Node 2 takes node 1's slot and signs with its own key.
    swarm.nodes[2].boot_no = 7;
    command_from_slot(&mut swarm, (2, 1), 0, b"fire");
    assert!(swarm.nodes[0].inbox.is_empty());
    assert_eq!(swarm.nodes[0].impostors, [(1, Suspicion::Signer)]);
    // Node 1 notices too, and is heard as before.
    swarm.telemetry(1, b"genuine");
    swarm.command(1, b"land", true);
    swarm.settle();
    let source = swarm.source_of(1);
    assert_eq!(swarm.nodes[0].inbox[0], (1, b"genuine".to_vec(), PayloadOrigin::Member));
    assert_eq!(swarm.nodes[0].inbox[1], (1, b"land".to_vec(), source));
}

#[test]
fn nobody_but_the_leader_signs_from_its_slot_and_no_leader_from_another() {
    let mut swarm = Swarm::new(3, Config::default());
    command_from_slot(&mut swarm, (2, LEADER_SLOT), 1, b"fire");
    command_from_slot(&mut swarm, (0, 5), 1, b"fire");
    assert!(swarm.nodes[1].inbox.is_empty());
    assert_eq!(swarm.nodes[1].datagrams.counters().refused_signer, 2);
}

#[test]
fn a_slot_that_is_assigned_is_not_taken_by_another_signer() {
    let mut swarm = Swarm::new(3, Config::default());
    swarm.nodes[0].datagrams.assign_slot(1, Some(name("drone-1")));
    command_from_slot(&mut swarm, (2, 1), 0, b"fire");
    assert!(swarm.nodes[0].inbox.is_empty());
    assert_eq!(swarm.nodes[0].impostors, [(1, Suspicion::Signer)]);
    swarm.command(1, b"land", true);
    swarm.settle();
    swarm.run_for(Duration::from_secs(1), STEP);
    assert_eq!(swarm.nodes[0].inbox, [(1, b"land".to_vec(), swarm.source_of(1))]);
}

#[test]
fn a_slot_assigned_later_goes_to_its_holder() {
    let mut swarm = Swarm::new(3, Config::default());
    command_from_slot(&mut swarm, (2, 1), 0, b"fire");
    // Without a roster, whoever signs first has the slot until it is assigned.
    assert_eq!(swarm.nodes[0].payloads(), [b"fire"]);
    swarm.nodes[0].datagrams.assign_slot(1, Some(name("drone-1")));
    swarm.command(1, b"land", true);
    swarm.settle();
    swarm.run_for(Duration::from_secs(1), STEP);
    assert_eq!(swarm.nodes[0].payloads(), [&b"fire"[..], b"land"]);
}

#[test]
fn a_hostile_member_cannot_silence_what_another_signs() {
    let mut swarm = acquainted(3, Config::default());
    // It knows the shared key: it announces a later start in that slot, and sends far ahead in numbers.
    swarm.nodes[2].slot = 1;
    swarm.nodes[2].boot_no = 99;
    swarm.nodes[2].signs = false;
    swarm.open(2, None);
    for _ in 0..5 {
        swarm.telemetry(2, b"as 1");
        swarm.take(2).iter().for_each(|datagram| swarm.deliver(0, datagram));
    }
    assert!(swarm.nodes[0].inbox.is_empty(), "a signer's start was replaced by an unsigned one");
    swarm.command(1, b"land", true);
    swarm.telemetry(1, b"telemetry");
    swarm.settle();
    assert_eq!(swarm.nodes[0].payloads(), [&b"land"[..], b"telemetry"]);
}

/// A copy of node 1's machine that sends with its key and start: what a member that knows the shared key and
/// node 1's announcement can make itself.
fn impostor(swarm: &Swarm) -> Swarm {
    let mut copy = Swarm::new(swarm.nodes.len(), manifests());
    copy.nodes[1].signs = false;
    copy.now = swarm.now;
    copy
}

#[test]
fn a_member_that_speaks_as_another_is_found_out_by_its_manifest() {
    let mut swarm = vouched();
    let mut copy = impostor(&swarm);
    for round in 0..20_u8 {
        swarm.telemetry(1, &[round; 9]);
        if round == 10 {
            // The genuine one is lost on the way to node 0, the impostor's has its number.
            swarm.take(1);
            for _ in 0..=round {
                copy.telemetry(1, b"I am 1");
                let forged = copy.take(1);
                forged.iter().for_each(|datagram| swarm.deliver(0, datagram));
            }
        }
        swarm.run_for(Duration::from_millis(50), STEP);
    }
    assert!(swarm.nodes[0].payloads().contains(&&b"I am 1"[..]), "unsigned, it is a member's");
    swarm.run_for(Duration::from_millis(500), STEP);
    assert_eq!(swarm.nodes[0].impostors, [(1, Suspicion::Manifest)]);
}

#[test]
fn manifests_accuse_nobody_whatever_is_lost_doubled_or_reordered() {
    let config = Config { manifest_every: Some(Duration::from_millis(500)), ..Config::default() };
    let mut swarm = Swarm::new(3, config);
    swarm.command(1, b"hello", true);
    swarm.settle();
    swarm.faults = Faults { loss: 20, doubles: 20, reorders: 20 };
    for round in 0..1_000_u32 {
        swarm.telemetry(1, &round.to_be_bytes());
        if round % 300 == 299 {
            swarm.rekey(0..3, round % 600 == 299);
        }
        swarm.run_for(STEP, STEP);
    }
    for node in [0, 2] {
        assert_eq!(swarm.nodes[node].impostors, []);
        assert!(swarm.nodes[node].datagrams.counters().manifests > 20);
    }
}

#[test]
fn a_member_that_speaks_far_ahead_as_another_is_found_out_and_does_not_silence_it() {
    let mut swarm = vouched();
    let mut copy = impostor(&swarm);
    for _ in 0..2_000 {
        copy.telemetry(1, b"I am 1");
        copy.take(1);
    }
    copy.telemetry(1, b"I am 1");
    copy.take(1).iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert!(swarm.nodes[0].payloads().contains(&&b"I am 1"[..]));
    for round in 0..100_u8 {
        swarm.telemetry(1, &[round]);
        swarm.run_for(STEP, STEP);
    }
    assert_eq!(swarm.nodes[0].impostors.first(), Some(&(1, Suspicion::Ahead)));
    assert!(swarm.nodes[0].payloads().contains(&&[99][..]), "silenced");
}

#[test]
fn a_sender_whose_manifests_end_is_reported() {
    let mut swarm = vouched();
    assert_reported_unvouched(&mut swarm);
}

/// Asserts that sender 1, which cannot sign from now on because another sends in its place, is reported.
fn assert_reported_unvouched(swarm: &mut Swarm) {
    swarm.nodes[1].signs = false;
    for round in 0..250_u8 {
        swarm.telemetry(1, &[round]);
        swarm.run_for(STEP, STEP);
    }
    assert_eq!(swarm.nodes[0].impostors, [(1, Suspicion::Unvouched)]);
}

#[test]
fn a_member_cannot_take_back_that_another_sends_manifests() {
    let mut swarm = vouched();
    // It knows the key of announcements, repeats the signature, and says that there are none.
    let (_, signed) = swarm.air.iter().find(|(from, datagram)| *from == 1 && datagram.len() > 200).unwrap();
    let (header, sealed) = signed.split_at(18);
    let start = Start {
        slot: 1,
        boot_no: u32::from_be_bytes(header[2..6].try_into().unwrap()),
        salt: header[6..14].try_into().unwrap(),
    };
    let key = swarm.traffic(swarm.epoch).announcement_key(&start);
    let cipher = Ccm::<Aes128, U16, U13>::new(key.expose().into());
    let (body, tag) = sealed.split_at(sealed.len() - 16);
    let (mut header, mut body, mut nonce) = (header.to_vec(), body.to_vec(), [0; 13]);
    nonce[9..].copy_from_slice(&header[14..]);
    let opened = body.as_mut_slice().into();
    cipher.decrypt_inout_detached(&nonce.into(), &header, opened, tag.try_into().unwrap()).unwrap();
    assert_eq!(body[1], 10);
    body[1] = 0;
    header[14..].copy_from_slice(&1_000_u32.to_be_bytes());
    nonce[9..].copy_from_slice(&header[14..]);
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &header, body.as_mut_slice().into()).unwrap();
    let before = swarm.nodes[0].datagrams.counters().announcements;
    swarm.deliver(0, &[&header[..], &body, &tag].concat());
    assert_eq!(swarm.nodes[0].datagrams.counters().announcements, before + 1);
    assert_reported_unvouched(&mut swarm);
}

#[test]
fn another_groups_datagrams_are_not_received() {
    let mut swarm = acquainted(2, Config::default());
    let mut other = Swarm::closed(2, Config::default());
    // Another epoch's key stands for another group's: D is another.
    other.epoch = Epoch { term: Epoch::term_of(77, 0), counter: 1 };
    other.open(1, None);
    other.send(1, b"foreign", Priority::Command, true).unwrap();
    let datagrams = other.take(1);
    assert!(datagrams.len() > 1);
    datagrams.iter().for_each(|datagram| swarm.deliver(0, datagram));
    swarm.run_for(Duration::from_secs(1), STEP);
    assert!(swarm.nodes[0].inbox.is_empty());
}

/// Four windows: so many senders are soon forgotten.
fn forgetful() -> Config {
    Config { max_senders: 4, ..Config::default() }
}

/// A node signs an order, which another receives. Gives all that was recorded of it, its announcement with the key
/// included.
fn order_recorded(swarm: &mut Swarm, speaker: usize, listener: usize) -> Vec<Vec<u8>> {
    swarm.command(speaker, b"fire", true);
    swarm.settle();
    assert_eq!(swarm.nodes[listener].payloads(), [b"fire"]);
    // A member that starts anew asks for the key.
    swarm.restart(2, forgetful());
    swarm.open(2, None);
    swarm.command(speaker, b"hold", true);
    swarm.settle();
    swarm.run_for(Duration::from_secs(13), STEP);
    let of_speaker = swarm.air.iter().filter(|(from, _)| *from == speaker);
    let recorded: Vec<_> = of_speaker.map(|(_, datagram)| datagram.clone()).collect();
    assert!(recorded.iter().any(|datagram| datagram.len() > 200), "an announcement with the key");
    swarm.nodes[listener].inbox.clear();
    recorded
}

/// Node 2 signs from as many slots as the listener has windows, until it has forgotten the speaker.
fn displace(swarm: &mut Swarm, speaker: usize, listener: usize) {
    swarm.nodes[2].signs = true;
    let slot = swarm.nodes[speaker].slot;
    let known = |swarm: &Swarm| swarm.nodes[listener].datagrams.senders().any(|sender| sender.slot == slot);
    // Datagrams that the listener held may have brought a sender of that slot back.
    for slot in (10..14).cycle().take(16) {
        swarm.nodes[2].boot_no += 1;
        command_from_slot(swarm, (2, slot), listener, b"noise");
        if slot == 13 && !known(swarm) {
            return;
        }
    }
    panic!("not forgotten");
}

/// Node 2 announces two later starts in another's slot, unsigned or signed by itself.
fn announce_as(swarm: &mut Swarm, speaker: usize, listener: usize, signs: bool) {
    swarm.nodes[2].signs = signs;
    swarm.nodes[2].slot = swarm.nodes[speaker].slot;
    for _ in 0..2 {
        swarm.nodes[2].boot_no += 1;
        swarm.open(2, None);
        swarm.send(2, b"as another", Priority::Command, signs).unwrap();
        swarm.take(2).iter().for_each(|datagram| swarm.deliver(listener, datagram));
    }
}

#[test]
fn what_a_member_signed_is_received_once_whatever_others_announce_in_its_slot() {
    type Interference = fn(&mut Swarm, usize, usize);
    let interferences: [Interference; 6] = [
        |_, _, _| {},
        |swarm, speaker, listener| announce_as(swarm, speaker, listener, false),
        |swarm, speaker, listener| {
            announce_as(swarm, speaker, listener, true);
            displace(swarm, speaker, listener);
        },
        |swarm, speaker, listener| {
            announce_as(swarm, speaker, listener, false);
            announce_as(swarm, speaker, listener, true);
            displace(swarm, speaker, listener);
            announce_as(swarm, speaker, listener, false);
        },
        // The slot is said to be another's, and its own again.
        |swarm, speaker, listener| {
            let (slot, datagrams) = (swarm.nodes[speaker].slot, &mut swarm.nodes[listener].datagrams);
            datagrams.assign_slot(slot, Some(name("drone-2")));
            datagrams.assign_slot(slot, Some(name(&format!("drone-{speaker}"))));
        },
        |swarm, speaker, listener| {
            let slot = swarm.nodes[speaker].slot;
            swarm.nodes[listener].datagrams.assign_slot(slot, Some(name("drone-2")));
            announce_as(swarm, speaker, listener, true);
            swarm.nodes[listener].datagrams.assign_slot(slot, Some(name(&format!("drone-{speaker}"))));
        },
    ];
    for (speaker, listener) in [(1, 0), (0, 1)] {
        for (number, interfere) in interferences.iter().enumerate() {
            let case = format!("{number}, from node {speaker}");
            for displaced in [true, false] {
                let mut swarm = acquainted(3, forgetful());
                let recorded = order_recorded(&mut swarm, speaker, listener);
                let source = swarm.source_of(speaker);
                for _ in 0..2 {
                    if displaced {
                        displace(&mut swarm, speaker, listener);
                    }
                    interfere(&mut swarm, speaker, listener);
                    for _ in 0..3 {
                        recorded.iter().for_each(|datagram| swarm.deliver(listener, datagram));
                    }
                    let again = swarm.nodes[listener].inbox.iter().filter(|(_, _, from)| *from == source);
                    assert_eq!(again.count(), 0, "received again: {case}");
                }
                // And what it signs next is received.
                swarm.nodes[2].slot = 2;
                swarm.open(2, None);
                swarm.run_for(Duration::from_secs(1), STEP);
                swarm.command(speaker, b"land", true);
                swarm.settle();
                swarm.run_for(Duration::from_secs(2), STEP);
                let landed =
                    |(_, bytes, from): &&(Slot, Vec<u8>, PayloadOrigin)| bytes == b"land" && *from == source;
                assert_eq!(swarm.nodes[listener].inbox.iter().filter(landed).count(), 1, "silenced: {case}");
            }
        }
    }
}

#[test]
fn whoever_took_a_slot_under_anothers_very_start_silences_nothing_that_its_holder_signs() {
    let mut swarm = acquainted(3, Config::default());
    swarm.rekey(0..3, true);
    // Before node 1 speaks under the new key, node 2 announces its start as its own, and signs far ahead in numbers.
    // The same random numbers give the same salt.
    let mut copy = Swarm::closed(3, Config::default());
    copy.epoch = swarm.epoch;
    copy.now = swarm.now;
    let mut keys = copy.keys(1, copy.epoch, None);
    keys.signer = Some(swarm.nodes[2].keypair.public().clone());
    let mut sent = Vec::new();
    let (now, keypair) = (copy.now, &swarm.nodes[2].keypair);
    let node = &mut copy.nodes[1];
    node.datagrams.set_epoch(now, keys, &mut node.rng);
    for _ in 0..2_000 {
        let payload = Payload { bytes: b"as 1".to_vec(), priority: Priority::Command, sign: true };
        node.datagrams.send(now, payload).unwrap();
        while let Some(event) = node.datagrams.poll_event() {
            if let Event::SignatureWanted(request) = event {
                let signature =
                    keypair.sign(&copy.deployment, Label::Datagram, &request.statement, &mut node.rng);
                node.datagrams.provide_signature(now, request.id, &signature);
            }
        }
        sent.extend(std::iter::from_fn(|| node.datagrams.poll_datagram(now)));
    }
    sent.iter().for_each(|datagram| swarm.deliver(0, datagram));
    assert!(swarm.nodes[0].inbox.len() > 1_000, "without a roster, whoever signs first has the slot");
    swarm.nodes[0].inbox.clear();
    swarm.nodes[0].datagrams.assign_slot(1, Some(name("drone-1")));
    swarm.command(1, b"land", true);
    swarm.settle();
    swarm.run_for(Duration::from_secs(2), STEP);
    let source = swarm.source_of(1);
    assert_eq!(swarm.nodes[0].inbox, [(1, b"land".to_vec(), source)]);
}

#[test]
fn a_command_sealed_again_is_received_once_by_who_was_made_to_forget_its_sender() {
    for (sign, removes) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut swarm = acquainted(3, forgetful());
        swarm.command(1, b"arm", sign);
        swarm.take(1).iter().for_each(|datagram| swarm.deliver(0, datagram));
        swarm.rekey(0..3, removes);
        let again = swarm.take(1);
        assert_eq!(swarm.nodes[1].datagrams.counters().sealed_again, 1);
        // Under the new key nothing came from its sender yet, so that anybody's word displaces it.
        swarm.nodes[2].signs = false;
        for slot in 10..18 {
            swarm.nodes[2].slot = slot;
            swarm.nodes[2].boot_no += 1;
            swarm.open(2, None);
            swarm.telemetry(2, b"noise");
            swarm.take(2).iter().for_each(|datagram| swarm.deliver(0, datagram));
        }
        assert!(swarm.nodes[0].datagrams.senders().all(|sender| sender.slot != 1), "forgotten");
        again.iter().for_each(|datagram| swarm.deliver(0, datagram));
        swarm.settle();
        swarm.run_for(Duration::from_secs(2), STEP);
        let times = swarm.nodes[0].payloads().iter().filter(|payload| **payload == b"arm").count();
        assert_eq!(times, 1, "signed: {sign}, removes: {removes}");
    }
}

/// A datagram of nobody's in the current epoch that claims a slot.
fn forged(swarm: &Swarm, slot: u8, number: u8) -> Vec<u8> {
    vec![0x40 | (swarm.epoch.counter & 7) as u8, slot, 0, number, 1, 2, 3, 4, 5, 6, 7, 8]
}

/// All receive the same.
fn deliver_to_all(swarm: &mut Swarm, datagram: &[u8]) {
    (0..swarm.nodes.len()).for_each(|node| swarm.deliver(node, datagram));
}

/// Number of datagrams and bytes that the members say while this comes every so often.
fn said_while(
    swarm: &mut Swarm,
    times: u8,
    pause: Duration,
    stranger: impl Fn(&Swarm, u8) -> Vec<u8>,
) -> (usize, usize) {
    let mark = swarm.air.len();
    for number in 0..times {
        let datagram = stranger(swarm, number);
        deliver_to_all(swarm, &datagram);
        swarm.run_for(pause, STEP);
    }
    (swarm.air.len() - mark, swarm.air[mark..].iter().map(|(_, datagram)| datagram.len()).sum())
}

fn asked_leader(swarm: &Swarm) -> usize {
    swarm.nodes.iter().map(|node| node.epoch_wanted).sum()
}

#[test]
fn a_strangers_datagram_now_and_then_makes_nobody_ask_or_speak() {
    for slot in [3, 100] {
        let mut swarm = acquainted(20, Config::default());
        let other_epoch = |swarm: &Swarm, number: u8| {
            let mut datagram = forged(swarm, slot, number);
            datagram[0] ^= 4;
            datagram
        };
        assert_eq!(said_while(&mut swarm, 10, Duration::from_secs(2), other_epoch), (0, 0));
        assert_eq!(asked_leader(&swarm), 0);
    }
    // From the slot of a member that is known.
    let mut swarm = acquainted(20, Config::default());
    let said =
        said_while(&mut swarm, 10, Duration::from_millis(500), |swarm, number| forged(swarm, 3, number));
    assert_eq!(said, (0, 0));
}

#[test]
fn whoever_goes_on_forging_hears_fewer_bytes_than_it_sends() {
    // From the slot of a member that is known.
    let mut swarm = acquainted(20, Config::default());
    let known = |swarm: &Swarm, number| forged(swarm, 3, number);
    let (count, bytes) = said_while(&mut swarm, 240, Duration::from_millis(100), known);
    assert!(count > 0 && bytes < 240 * 12, "{count} datagrams, {bytes} bytes");
    // From slots that nobody has: all ask, but not all for themselves.
    let mut swarm = acquainted(20, Config::default());
    let invented = |swarm: &Swarm, number| forged(swarm, 100 + number % 4, number);
    let (count, bytes) = said_while(&mut swarm, 100, Duration::from_millis(100), invented);
    // Two questions a second, of each alone, would be 400.
    assert!((10..100).contains(&count), "{count} datagrams, {bytes} bytes");
}

#[test]
fn questions_about_an_epoch_that_there_is_not_are_spread_and_become_rare() {
    let mut swarm = acquainted(20, Config::default());
    let (mut asked, mut most_at_once) = (0, 0);
    for number in 0..6_000_u32 {
        let mut datagram = forged(&swarm, 100, number as u8);
        datagram[0] ^= 4;
        deliver_to_all(&mut swarm, &datagram);
        swarm.run_for(STEP, STEP);
        let now = asked_leader(&swarm);
        most_at_once = most_at_once.max(now - asked);
        asked = now;
    }
    // After 2, 4, 8, 16, 32 and 64 s, in two minutes.
    assert!((20..=20 * 7).contains(&asked), "{asked}");
    assert!(most_at_once <= 8, "{most_at_once} of 20 in {STEP:?}");
    // The next epoch is asked for as soon as ever.
    swarm.rekey(0..20, true);
    let before = swarm.nodes[0].epoch_wanted;
    swarm.rekey(1..20, true);
    for _ in 0..60 {
        swarm.telemetry(1, b"one");
        swarm.run_for(STEP, STEP);
    }
    assert_eq!(swarm.nodes[0].epoch_wanted, before + 1);
}

#[test]
fn a_newer_epoch_of_some_is_asked_for_while_others_are_in_ones_own() {
    let mut swarm = acquainted(3, Config::default());
    swarm.next_epoch();
    swarm.open(2, None);
    let mut asked = Vec::new();
    for _ in 0..300 {
        swarm.telemetry(1, b"of this epoch");
        swarm.telemetry(2, b"of the next");
        swarm.run_for(STEP, STEP);
        asked.push(swarm.nodes[0].epoch_wanted);
    }
    assert_eq!((asked[100], asked[249]), (0, 1), "not within two seconds, but within five");
}

#[test]
fn a_sender_of_which_nothing_opens_any_more_is_asked_to_announce_itself() {
    let mut swarm = acquainted(2, Config { announce_every: Duration::from_secs(60), ..Config::default() });
    // It starts anew, and its announcements are lost.
    swarm.restart(1, Config { announce_every: Duration::from_secs(60), ..Config::default() });
    swarm.open(1, None);
    let mut heard = Vec::new();
    for _ in 0..4_000 {
        swarm.telemetry(1, b"here");
        for datagram in swarm.take(1) {
            if datagram.len() < 40 {
                swarm.deliver(0, &datagram);
            }
        }
        swarm.now += STEP;
        for question in swarm.take(0) {
            swarm.deliver(1, &question);
            swarm.take(1).iter().for_each(|datagram| swarm.deliver(0, datagram));
        }
        heard.push(swarm.nodes[0].inbox.len());
    }
    assert!(heard[2_900] == 0 && heard[3_999] > 0, "after a minute it is asked");
}

#[test]
fn slots_that_a_stranger_invents_keep_nobody_from_asking_a_known_sender_for_its_key() {
    let mut swarm = Swarm::new(2, Config::default());
    swarm.nodes[1].signs = false;
    swarm.telemetry(1, b"unsigned");
    swarm.settle();
    // Until it asks for a signature again.
    swarm.run_for(Duration::from_millis(1_100), STEP);
    swarm.nodes[1].signs = true;
    for slot in 40..60 {
        let datagram = forged(&swarm, slot, 0);
        swarm.deliver(0, &datagram);
    }
    swarm.command(1, b"signed", true);
    for datagram in swarm.take(1) {
        // Its announcement is lost.
        if datagram.len() < 200 {
            swarm.deliver(0, &datagram);
        }
    }
    swarm.run_for(Duration::from_millis(400), STEP);
    assert_eq!(swarm.nodes[0].payloads(), [&b"unsigned"[..], b"signed"]);
}
