//! Messages as frames: how many, how often repeated, and when given up.

use std::time::Duration;

use proptest::prelude::*;
use quiver_world::boards::ObservedLoss;
use quiver_world::radio::{Cast, Loss, Preset};

use super::{clear, rng};

#[test]
fn ideal_radio_costs_nothing() {
    let radio = Preset::Ideal.profile();
    for cast in [Cast::Unicast, Cast::Broadcast] {
        let sent = radio.send(1_000_000, cast, &mut clear(), &mut rng(1));
        assert_eq!(
            (sent.frames, sent.on_air, sent.latency, sent.delivered),
            (1, Duration::ZERO, Duration::ZERO, true)
        );
    }
}

#[test]
fn dead_link_uses_up_its_retries_and_gives_up() {
    let radio = Preset::Ieee802154.profile();
    let mut dead = Loss::independent(1.0).unwrap().link(&mut rng(1));
    let sent = radio.send(500, Cast::Unicast, &mut dead, &mut rng(2));
    // macMaxFrameRetries is 3; the remaining frames of the message stay unsent.
    assert_eq!((sent.frames, sent.retransmissions), (1, 3));
    assert!(!sent.delivered);
    assert_eq!(sent.on_air, radio.airtime(127) * 4);
    assert_eq!(sent.acknowledgements, Duration::ZERO);
}

#[test]
fn lossy_unicast_repeats_as_often_as_the_loss_says() {
    let radio = Preset::Ieee802154.profile();
    let (lost, messages) = (0.1, 20_000);
    let mut link = Loss::independent(lost).unwrap().link(&mut rng(1));
    let mut random = rng(2);
    let sent: u64 = (0..messages)
        .map(|_| u64::from(radio.send(50, Cast::Unicast, &mut link, &mut random).retransmissions))
        .sum();
    // A try fails if the frame or its acknowledgement is lost: f = 0.19; retries are f + f² + f³ per frame.
    // The variance is below 0.35, six sigma are 0.025.
    let fails: f64 = 1.0 - (1.0 - lost) * (1.0 - lost);
    let expected = fails + fails * fails + fails * fails * fails;
    let mean = sent as f64 / f64::from(messages);
    assert!((mean - expected).abs() < 0.025, "{mean} instead of {expected}");
}

#[test]
fn broadcast_in_three_rounds_is_three_broadcasts() {
    let once = Preset::Ieee802154.profile();
    let thrice = once.clone().with_rounds(3);
    let one = once.send(1_000, Cast::Broadcast, &mut clear(), &mut rng(1));
    let three = thrice.send(1_000, Cast::Broadcast, &mut clear(), &mut rng(1));
    assert_eq!(three.on_air, one.on_air * 3);
    assert_eq!(three.bytes_on_air, one.bytes_on_air * 3);
    assert_eq!((three.frames, three.retransmissions), (one.frames, one.frames * 2));
}

#[test]
fn rounds_help_receivers_as_the_square_of_the_loss() {
    let radio = Preset::Wifi.profile().with_rounds(2);
    let mut link = Loss::independent(0.2).unwrap().link(&mut rng(1));
    let mut random = rng(2);
    let messages = 20_000;
    let heard = (0..messages).filter(|_| radio.receive(10, &mut link, &mut random)).count();
    let expected = (1.0f64 - 0.04).powi(10);
    let share = heard as f64 / f64::from(messages);
    // Six sigma of 20,000 coin flips are at most 0.0212.
    assert!((share - expected).abs() < 0.0212, "{share} instead of {expected}");
}

#[test]
fn parity_frames_bring_a_broadcast_to_all_but_one_in_ten_thousand() {
    let radio = Preset::Ieee802154.profile().with_coding();
    let receivers = 100_000;
    for (lost, all) in [(0.1, 13), (0.3, 22)] {
        // Seven frames of 108 bytes.
        let sent = radio.broadcast(700, lost, &mut rng(1));
        assert_eq!(sent.frames, all);
        let plain = radio.send(700, Cast::Broadcast, &mut clear(), &mut rng(1));
        assert_eq!(sent.bytes_on_air, plain.bytes_on_air + u64::from(all - 7) * 133);
        let mut link = Loss::independent(lost).unwrap().link(&mut rng(1));
        let mut random = rng(2);
        let missed = (0..receivers).filter(|_| !radio.receives(&sent, &mut link, &mut random)).count();
        // At most 10 are expected, six sigma are 19.
        assert!(missed < 29, "{missed}");
        let plain_missed = (0..receivers).filter(|_| !radio.receives(&plain, &mut link, &mut random)).count();
        assert!(plain_missed > receivers / 2, "{plain_missed}");
    }
}

#[test]
fn parity_frames_of_a_link_with_a_memory_are_drawn_one_by_one() {
    let radio = Preset::Ieee802154.profile().with_coding();
    let sent = radio.broadcast(700, 0.3, &mut rng(1));
    // Bursts of one frame on average are as good as independent losses, or better.
    let mut random = rng(2);
    let mut short = Loss::bursts(0.3, 1.0).unwrap().link(&mut random);
    let missed = (0..10_000).filter(|_| !radio.receives(&sent, &mut short, &mut random)).count();
    assert!(missed < 10, "{missed}");
    let mut dead =
        Loss::GilbertElliott { p_good_to_bad: 0.5, p_bad_to_good: 0.5, loss_good: 1.0, loss_bad: 1.0 }
            .link(&mut random);
    assert!(!radio.receives(&sent, &mut dead, &mut random));
}

#[test]
fn long_broadcast_is_coded_in_blocks() {
    let radio = Preset::Ieee802154.profile().with_coding();
    let sent = radio.broadcast(64_000, 0.1, &mut rng(1));
    let coding = sent.coding.unwrap();
    assert_eq!(coding.blocks, 5, "593 frames, at most 128 each");
    let mut link = Loss::independent(0.1).unwrap().link(&mut rng(1));
    let mut random = rng(2);
    let missed = (0..20_000).filter(|_| !radio.receives(&sent, &mut link, &mut random)).count();
    assert!(missed < 2 + 9, "{missed}");
    assert!(sent.frames < 593 * 13 / 10, "{}", sent.frames);
}

#[test]
fn what_takes_one_frame_or_loses_none_has_no_parity() {
    let radio = Preset::Ieee802154.profile();
    let coded = radio.clone().with_coding();
    assert_eq!(coded.coding(116, 0.3), None);
    assert_eq!(coded.coding(700, 0.0), None);
    assert_eq!(radio.coding(700, 0.3), None, "not asked for");
    assert_eq!(coded.clone().with_rounds(2).coding(700, 0.3), None, "repeated instead");
    assert!(coded.coding(117, 0.3).is_some());
    assert_eq!(
        coded.broadcast(700, 0.0, &mut rng(1)),
        radio.send(700, Cast::Broadcast, &mut clear(), &mut rng(1))
    );
}

#[test]
fn acknowledgements_show_the_loss() {
    let radio = Preset::Ieee802154.profile();
    for lost in [0.0, 0.1, 0.3] {
        let mut link = Loss::independent(lost).unwrap().link(&mut rng(1));
        let (mut observed, mut random) = (ObservedLoss::default(), rng(2));
        assert_eq!(observed.estimate(), 0.0, "nothing is known yet");
        for _ in 0..20_000 {
            observed.note(&radio.send(50, Cast::Unicast, &mut link, &mut random));
        }
        // Of 8,000 attempts or more; six sigma are 0.03.
        assert!((observed.estimate() - lost).abs() < 0.03, "{} instead of {lost}", observed.estimate());
    }
    let mut dead = Loss::independent(1.0).unwrap().link(&mut rng(1));
    let mut observed = ObservedLoss::default();
    for _ in 0..100 {
        observed.note(&radio.send(50, Cast::Unicast, &mut dead, &mut rng(2)));
    }
    assert_eq!(observed.estimate(), 0.5, "bounded");
}

#[test]
fn lora_keeps_its_duty_cycle_and_can_be_freed_of_it() {
    let radio = Preset::ALL[2].profile();
    for (cast, share) in [(Cast::Unicast, 0.01), (Cast::Broadcast, 0.1)] {
        let sent = radio.send(2_000, cast, &mut clear(), &mut rng(1));
        let busy = sent.sent().as_secs_f64() / (sent.latency + sent.silence).as_secs_f64();
        assert!(busy <= share + 1e-9, "{cast:?}: {busy}");
        assert!(busy > share * 0.9, "{cast:?}: {busy}");
        let free = radio.clone().without_duty_cycle().send(2_000, cast, &mut clear(), &mut rng(1));
        assert_eq!((free.on_air, free.silence), (sent.on_air, Duration::ZERO));
        assert!(free.latency < sent.latency);
    }
}

#[test]
fn same_seed_gives_the_same_transmission() {
    for preset in Preset::ALL {
        let radio = preset.profile();
        let send = || {
            let mut random = rng(7);
            let mut link = Loss::bursts(0.3, 4.0).unwrap().link(&mut random);
            radio.send(3_000, Cast::Unicast, &mut link, &mut random)
        };
        assert_eq!(send(), send(), "{preset}");
    }
}

proptest! {
    #[test]
    fn frames_are_as_many_as_the_payload_fills(payload in 0usize..300_000) {
        for preset in Preset::ALL {
            let radio = preset.profile();
            for cast in [Cast::Unicast, Cast::Broadcast] {
                let (whole, piece) = radio.capacity(cast);
                let expected = if payload <= whole { 1 } else { payload.div_ceil(piece) };
                prop_assert_eq!(radio.frames(payload, cast) as usize, expected);
            }
        }
    }

    #[test]
    fn every_payload_byte_goes_on_air_once_with_equal_overhead(payload in 200usize..10_000) {
        // On IEEE 802.15.4 every frame of a fragmented message bears 6 + 11 + 8 octets.
        let sent = Preset::Ieee802154.profile().send(payload, Cast::Broadcast, &mut clear(), &mut rng(1));
        prop_assert_eq!(sent.bytes_on_air, payload as u64 + u64::from(sent.frames) * 25);
        prop_assert_eq!(sent.on_air, Duration::from_micros(sent.bytes_on_air * 32));
    }

    #[test]
    fn clear_unicast_is_delivered_at_the_first_try(payload in 0usize..20_000) {
        for preset in Preset::ALL {
            let sent = preset.profile().send(payload, Cast::Unicast, &mut clear(), &mut rng(3));
            prop_assert!(sent.delivered);
            prop_assert_eq!(sent.retransmissions, 0);
            prop_assert!(sent.latency >= sent.on_air);
        }
    }

    #[test]
    fn what_a_lossy_unicast_costs_adds_up(payload in 0usize..5_000, rate in 0.0f64..0.6, seed: u64) {
        let radio = Preset::Ieee802154.profile();
        let mut random = rng(seed);
        let mut link = Loss::bursts(rate, 3.0).unwrap().link(&mut random);
        let sent = radio.send(payload, Cast::Unicast, &mut link, &mut random);
        prop_assert!(sent.retransmissions <= sent.frames * 3);
        prop_assert_eq!(sent.on_air, Duration::from_micros(sent.bytes_on_air * 32));
        // An acknowledgement is 11 octets on air, 352 µs.
        prop_assert_eq!(sent.acknowledgements.as_micros() % 352, 0);
        prop_assert!(sent.latency >= sent.on_air);
    }
}
