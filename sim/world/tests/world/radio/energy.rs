//! Energy against the product specifications' currents, and accounts that add up.

use std::time::Duration;

use proptest::prelude::*;
use quiver_world::radio::cycles::{Arithmetic, CpuOperation, chacha20_poly1305, hmac_sha256, sha256};
use quiver_world::radio::power::{Power, RadioPower, computing, computing_time};
use quiver_world::radio::{Account, Cast, Energy, Ledger, Payer, Preset, Transmission};

use super::{clear, rng};

#[test]
fn largest_802154_frame_costs_82_microjoules_to_send_and_83_to_hear() {
    // 4.256 ms at 3 V and 6.40 mA, 6.53 mA.
    let frame = Transmission { on_air: Duration::from_micros(4256), ..Transmission::default() };
    let power = RadioPower::NRF52840_802154;
    assert_eq!(power.sending(&frame), (Energy::from_picojoules(81_715_200), Energy::ZERO));
    assert_eq!(power.hearing(&frame), (Energy::ZERO, Energy::from_picojoules(83_375_040)));
    assert_eq!(power.at_8_dbm().transmitting(), Power::of(16_400, 3_000));
    assert_eq!(power.at_8_dbm().receiving(), power.receiving());
}

#[test]
fn cpu_second_costs_what_the_current_says() {
    // 64 million cycles are a second: 3.3 mA at 3 V.
    assert_eq!(computing(64_000_000).picojoules(), 9_900_000_000);
    assert_eq!(computing_time(64_000_000), Duration::from_secs(1));
}

#[test]
fn multiplication_costs_three_times_as_much_without_assembly() {
    let portable = CpuOperation::Multiplication.cycles(Arithmetic::Portable);
    let assembly = CpuOperation::Multiplication.cycles(Arithmetic::Assembly);
    assert_eq!((portable, assembly), (1_939_184, 670_000));
    assert_eq!(
        CpuOperation::Sha256Block.cycles(Arithmetic::Portable),
        CpuOperation::Sha256Block.cycles(Arithmetic::Assembly)
    );
}

#[test]
fn hashes_and_seals_count_their_blocks() {
    let block = CpuOperation::Sha256Block.cycles(Arithmetic::Portable);
    assert_eq!(
        (sha256(0), sha256(55), sha256(56), sha256(119), sha256(120)),
        (block, block, 2 * block, 2 * block, 3 * block)
    );
    assert_eq!(hmac_sha256(32), 4 * block);
    let (stream, tag) = (
        CpuOperation::ChaCha20Block.cycles(Arithmetic::Portable),
        CpuOperation::Poly1305Block.cycles(Arithmetic::Portable),
    );
    assert_eq!(chacha20_poly1305(12, 64), 2 * stream + (1 + 4 + 1) * tag);
    assert_eq!(chacha20_poly1305(0, 0), stream + tag);
}

#[test]
fn energies_are_shown_with_a_fitting_unit() {
    let shown = |picojoules| Energy::from_picojoules(picojoules).to_string();
    assert_eq!(shown(999), "999 pJ");
    assert_eq!(shown(81_715_200), "81.72 µJ");
    assert_eq!(shown(1_500_000_000_000), "1.50 J");
}

#[test]
fn ledger_tells_drones_rekeys_and_infrastructure_apart() {
    let radio = Preset::Ieee802154.profile();
    let sent = radio.send(1_200, Cast::Broadcast, &mut clear(), &mut rng(1));
    let (leader, drone) = (Account::sending(&sent, radio.power()), Account::hearing(&sent, radio.power()));
    let mut ledger = Ledger::new(2);
    ledger.book(Payer::Infrastructure, Some(7), &leader);
    for number in 0..3 {
        ledger.book(Payer::Drone(number), Some(7), &drone);
    }
    ledger.book(Payer::Drone(1), None, &Account::computing(64_000_000));

    assert_eq!(ledger.drones().len(), 3);
    assert_eq!(ledger.infrastructure(), &leader);
    let rekeys: Vec<_> = ledger.rekeys().collect();
    assert_eq!(rekeys.len(), 1);
    assert_eq!(rekeys[0].0, 7);
    assert_eq!(rekeys[0].1.frames, u64::from(sent.frames));
    assert_eq!(rekeys[0].1.airtime, sent.on_air);
    assert_eq!(rekeys[0].1.receiving.picojoules(), 3 * drone.receiving.picojoules());
    assert_eq!(rekeys[0].1.computing, Energy::ZERO);
    assert_eq!(ledger.total().energy(), rekeys[0].1.energy() + computing(64_000_000));
}

#[test]
fn summary_gives_mean_percentile_and_maximum() {
    let mut ledger = Ledger::new(200);
    for drone in 0..200 {
        ledger.book(Payer::Drone(drone), None, &Account { frames: drone as u64 + 1, ..Account::default() });
    }
    let frames = ledger.per_drone().frames;
    // The mean of 1 to 200 is 100.5; 198 values do not exceed 198.
    assert_eq!((frames.mean, frames.p99, frames.max), (100, 198, 200));
    assert_eq!(ledger.per_drone().count, 200);
    assert_eq!(Ledger::new(0).per_drone().frames.max, 0);
    assert_eq!(ledger.per_rekey().count, 0);
}

/// A booking: drone or infrastructure, re-key or none, frames, cycles.
type Booking = (Option<u8>, Option<u8>, u16, u32);

fn booked(bookings: &[Booking]) -> Ledger {
    let mut ledger = Ledger::default();
    for &(drone, rekey, frames, cycles) in bookings {
        let payer = drone.map_or(Payer::Infrastructure, |drone| Payer::Drone(drone.into()));
        let account = Account {
            frames: frames.into(),
            airtime: Duration::from_nanos(frames.into()),
            transmitting: Energy::from_picojoules(u64::from(frames) * 3),
            ..Account::computing(cycles.into())
        };
        ledger.book(payer, rekey.map(u64::from), &account);
    }
    ledger
}

proptest! {
    #[test]
    fn energy_is_additive(a in 0u64..1 << 40, b in 0u64..1 << 40, microamperes in 0u64..300_000) {
        let power = Power::of(microamperes, 3_000);
        let over = |nanos| power.over(Duration::from_nanos(nanos)).picojoules();
        // Rounding down to picojoules loses less than one each time.
        prop_assert!(over(a) + over(b) <= over(a + b) && over(a + b) <= over(a) + over(b) + 1);
        let sum: Energy = [Energy::from_picojoules(a), Energy::from_picojoules(b)].into_iter().sum();
        prop_assert_eq!(sum.picojoules(), a + b);
    }

    #[test]
    fn merged_ledgers_are_one_ledger(bookings in prop::collection::vec(any::<Booking>(), 0..60), cut in any::<prop::sample::Index>()) {
        let (left, right) = bookings.split_at(if bookings.is_empty() { 0 } else { cut.index(bookings.len()) });
        let whole = booked(&bookings);
        for (first, second) in [(left, right), (right, left)] {
            let mut merged = booked(first);
            merged.merge(&booked(second));
            prop_assert_eq!(&merged, &whole);
        }
    }
}
