//! Time on air against published worked examples.

use std::time::Duration;

use proptest::prelude::*;
use quiver_world::radio::{Cast, Preset, SpreadingFactor};

use super::{clear, rng};

fn micros(preset: Preset, octets: usize) -> u64 {
    let airtime = preset.profile().airtime(octets);
    assert_eq!(airtime.subsec_nanos() % 1000, 0, "{airtime:?} is not a whole number of microseconds");
    airtime.as_micros() as u64
}

#[test]
fn largest_802154_frame_takes_4256_microseconds() {
    // 127 octets behind 6 of PHY header, 1,064 bits at 250 kbit/s: Freescale, ZigBee Technology Overview,
    // slide 16; as does its shortest PPDU of 16 octets, 0.512 ms.
    assert_eq!(micros(Preset::Ieee802154, 127), 4256);
    assert_eq!(micros(Preset::Ieee802154, 10), 512);
}

#[test]
fn lora_frames_take_what_the_designers_guide_calculator_says() {
    // Spreadsheet of the formulas of Semtech AN1200.13 by A. van Bentem: 24 bytes behind 13 of LoRaWAN
    // header, explicit header, coding rate 4/5, preamble 8, 125 kHz, low data rate optimisation for SF11 and
    // SF12.
    let published = [82_176, 143_872, 267_264, 493_568, 1_069_056, 1_974_272];
    for (factor, expected) in SpreadingFactor::ALL.into_iter().zip(published) {
        assert_eq!(micros(Preset::LoRa(factor), 37), expected, "{factor:?}");
    }
    // 13 bytes at SF9: an earlier version of the same spreadsheet.
    assert_eq!(micros(Preset::LoRa(SpreadingFactor::ALL[2]), 13), 164_864);
    // 10 bytes at SF7 and SF11: RF Wireless World, LoRaWAN airtime calculator, examples 1 and 2.
    assert_eq!(micros(Preset::LoRa(SpreadingFactor::ALL[0]), 10), 41_216);
    assert_eq!(micros(Preset::LoRa(SpreadingFactor::ALL[4]), 10), 577_536);
}

#[test]
fn ble_packets_take_what_the_link_layer_says() {
    // An empty packet 80 µs; 27 octets with a 4-octet MIC 328 µs and 251 with MIC 2,120 µs, the minimum and
    // maximum of connMaxTxTime on LE 1M.
    assert_eq!(micros(Preset::Ble, 2), 80);
    assert_eq!(micros(Preset::Ble, 2 + 27 + 4), 328);
    assert_eq!(micros(Preset::Ble, 2 + 251 + 4), 2120);
}

#[test]
fn wifi_frames_fill_whole_symbols() {
    // An ACK at 6 Mbit/s is 44 µs of OFDM; ERP-OFDM adds 6 µs of signal extension. Three more octets fill the
    // same number of symbols: 134 bits become 158 of 6 · 24 and 7 · 24.
    assert_eq!(micros(Preset::Wifi, 14), 50);
    assert_eq!(micros(Preset::Wifi, 15), 50);
    assert_eq!(micros(Preset::Wifi, 16), 54);
}

#[test]
fn flat_rekey_of_two_thousand_takes_seconds_and_a_tree_rekey_milliseconds() {
    let radio = Preset::Ieee802154.profile();
    let mut random = rng(1);
    let flat = radio.send(2_000 * 32 + 200, Cast::Broadcast, &mut clear(), &mut random);
    let tree = radio.send(1_200, Cast::Broadcast, &mut clear(), &mut random);
    assert!((2.0..4.0).contains(&flat.on_air.as_secs_f64()), "{flat:?}");
    assert!(tree.on_air < Duration::from_millis(60), "{tree:?}");
    assert!(tree.latency < Duration::from_millis(120), "{tree:?}");
}

proptest! {
    #[test]
    fn more_payload_never_takes_less_air(payload in 0usize..20_000, more in 0usize..500) {
        for preset in Preset::ALL {
            let radio = preset.profile();
            for cast in [Cast::Unicast, Cast::Broadcast] {
                let small = radio.send(payload, cast, &mut clear(), &mut rng(2));
                let large = radio.send(payload + more, cast, &mut clear(), &mut rng(2));
                prop_assert!(small.on_air <= large.on_air, "{preset} {cast:?}: {small:?} {large:?}");
                prop_assert!(small.bytes_on_air <= large.bytes_on_air);
                prop_assert!(small.frames <= large.frames);
            }
        }
    }
}
