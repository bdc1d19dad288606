//! One channel, many senders.

use std::time::Duration;

use proptest::prelude::*;
use quiver_world::radio::{Cast, Medium, Preset};

use super::{clear, rng};

#[test]
fn free_channel_is_had_at_once() {
    for preset in Preset::ALL {
        let radio = preset.profile();
        let sent = radio.send(100, Cast::Broadcast, &mut clear(), &mut rng(1));
        let now = Duration::from_secs(5);
        let slot = Medium::new().reserve(now, &radio, Cast::Broadcast, &sent, &mut rng(2));
        assert_eq!((slot.start, slot.end, slot.deferrals), (now, now + sent.latency, 0), "{preset}");
    }
}

#[test]
fn hundred_senders_at_once_take_turns() {
    for preset in [Preset::Ieee802154, Preset::Wifi, Preset::Ble, Preset::ALL[2]] {
        let radio = preset.profile();
        let (mut medium, mut random) = (Medium::new(), rng(3));
        let mut slots: Vec<_> = (0..100)
            .map(|_| {
                let sent = radio.send(80, Cast::Unicast, &mut clear(), &mut random);
                medium.reserve(Duration::ZERO, &radio, Cast::Unicast, &sent, &mut random)
            })
            .collect();
        slots.sort_by_key(|slot| slot.start);
        assert!(slots.windows(2).all(|pair| pair[0].end <= pair[1].start), "{preset}");
        assert!(slots[1..].iter().all(|slot| slot.deferrals > 0), "{preset}");
        assert_eq!(medium.busy_until(), slots[99].end);
    }
}

#[test]
fn csma_finds_a_channel_soon_after_it_falls_free() {
    // The longest backoff is 31 periods of 320 µs.
    let radio = Preset::Ieee802154.profile();
    let long = radio.send(5_000, Cast::Broadcast, &mut clear(), &mut rng(1));
    for seed in 0..200 {
        let (mut medium, mut random) = (Medium::new(), rng(seed));
        let busy = medium.reserve(Duration::ZERO, &radio, Cast::Broadcast, &long, &mut random);
        let slot = medium.reserve(Duration::from_millis(1), &radio, Cast::Broadcast, &long, &mut random);
        assert!(
            slot.start >= busy.end && slot.start < busy.end + Duration::from_micros(31 * 320),
            "{slot:?}"
        );
    }
}

#[test]
fn a_wait_of_hours_is_counted_and_ends_as_a_short_one_does() {
    let radio = Preset::Ieee802154.profile();
    let short = radio.send(20, Cast::Broadcast, &mut clear(), &mut rng(1));
    let (mut medium, mut random) = (Medium::new(), rng(2));
    // Far ahead of its time: a sender that is ready now has to wait for hours.
    let ahead = Duration::from_secs(10_000);
    let busy = medium.reserve(ahead, &radio, Cast::Broadcast, &short, &mut random).end;
    let slot = medium.reserve(Duration::ZERO, &radio, Cast::Broadcast, &short, &mut random);
    assert!(slot.start >= busy && slot.start < busy + Duration::from_micros(31 * 320), "{slot:?}");
    // Rounds of five backoffs of 7.5, 15.5, 15.5, 15.5 and 3.5 periods on average: 18.4 ms.
    let rounds = f64::from(slot.deferrals) / 5.0;
    assert!((10_000.0 / 0.0190..10_000.0 / 0.0180).contains(&rounds), "{rounds}");
}

proptest! {
    #[test]
    fn messages_never_overlap(seed: u64, wishes in prop::collection::vec((0u64..200_000, 1usize..2_000), 1..40)) {
        let radio = Preset::Ieee802154.profile();
        let (mut medium, mut random) = (Medium::new(), rng(seed));
        let (mut now, mut before, mut on_air) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for (wait, payload) in wishes {
            now += Duration::from_micros(wait);
            let sent = radio.send(payload, Cast::Broadcast, &mut clear(), &mut random);
            let slot = medium.reserve(now, &radio, Cast::Broadcast, &sent, &mut random);
            prop_assert!(slot.start >= now && slot.start >= before);
            prop_assert_eq!(slot.end - slot.start, sent.latency);
            on_air += sent.on_air;
            before = slot.end;
        }
        prop_assert_eq!(medium.carried(), on_air);
    }
}
