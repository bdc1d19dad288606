//! LoRaWAN in Europe: LoRa at 125 kHz and coding rate 4/5, class C devices, multicast downlink for
//! broadcasts.
//!
//! Time on air: Semtech SX1276/77/78/79 data sheet, section 4.1.1.7. Frame sizes and settings: LoRaWAN 1.0.3
//! and LoRaWAN Regional Parameters 1.0.3 revision A (LoRa Alliance 2018), EU863-870. Duty cycles: ETSI EN 300
//! 220-2, 1 % in 868.0 to
//! 868.6 MHz for the drones' channels and 10 % in 869.4 to 869.65 MHz for downlinks.

use std::time::Duration;

use super::power::RadioPower;
use super::profile::{Access, Acknowledgement, CastProfile, DutyCycle, Phy, Profile, Spacing};
use super::{Preset, SpreadingFactor};

/// A chip at 125 kHz bandwidth; a symbol is 2^SF chips.
const CHIP: Duration = Duration::from_micros(8);
/// LoRaWAN preamble; the modem adds 4.25 symbols.
const PREAMBLE_SYMBOLS: u32 = 8;
/// Coding rate 4/5 is 1.
const CODING_RATE: u32 = 1;
/// The low data rate optimisation is mandated where a symbol exceeds 16 ms (same section).
const SLOW_SYMBOL: Duration = Duration::from_millis(16);
/// MHDR 1, DevAddr 4, FCtrl 1, FCnt 2, FPort 1, MIC 4.
const MAC_OCTETS: usize = 13;
/// An acknowledgement carries neither port nor payload.
const ACK_OCTETS: usize = 12;
/// Each frame of a larger message names message, frame and number of frames.
const FRAGMENT_OCTETS: usize = 8;
/// RECEIVE_DELAY1.
const RECEIVE_DELAY: Duration = Duration::from_secs(1);
/// ACK_TIMEOUT: two seconds, give or take one.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// LoRaWAN 1.0.3 recommends to give a confirmed frame up after eight transmissions.
const RETRIES: u32 = 7;
const UPLINK: DutyCycle = DutyCycle { per_mille: 10 };
const DOWNLINK: DutyCycle = DutyCycle { per_mille: 100 };

/// LoRa with explicit header and checksum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Modulation(SpreadingFactor);

impl Modulation {
    fn symbol(&self) -> Duration {
        CHIP * (1 << self.0.bits())
    }

    /// T = (n_preamble + 4.25 + n_payload) · T_sym, n_payload = 8 + max(⌈(8 PL − 4 SF + 28 + 16 CRC − 20 IH)
    /// / (4 (SF − 2 DE))⌉ (CR + 4), 0), here with CRC = 1 and IH = 0.
    pub(super) fn airtime(&self, octets: usize) -> Duration {
        let factor = self.0.bits() as usize;
        let optimised = if self.symbol() > SLOW_SYMBOL { 2 } else { 0 };
        let bits = (8 * octets + 28 + 16).saturating_sub(4 * factor);
        let blocks = bits.div_ceil(4 * (factor - optimised));
        let payload = 8 + blocks as u32 * (CODING_RATE + 4);
        self.symbol() * (PREAMBLE_SYMBOLS + 4 + payload) + self.symbol() / 4
    }
}

/// The largest application payload of the data rate ("maximum payload size" for EU863-870, repeater
/// compatible, column N).
fn capacity(factor: SpreadingFactor) -> usize {
    match factor.bits() {
        7 | 8 => 222,
        9 => 115,
        _ => 51,
    }
}

pub(super) fn profile(factor: SpreadingFactor) -> Profile {
    let modulation = Modulation(factor);
    let broadcast = CastProfile {
        capacity: capacity(factor),
        overhead: MAC_OCTETS,
        fragment_header: FRAGMENT_OCTETS,
        access: Access::Free,
        acknowledgement: None,
        retries: 0,
        spacing: Spacing::NONE,
        announcement: None,
        duty_cycle: Some(DOWNLINK),
    };
    let ack = modulation.airtime(ACK_OCTETS);
    let unicast = CastProfile {
        acknowledgement: Some(Acknowledgement {
            after: RECEIVE_DELAY,
            on_air: ack,
            octets: ACK_OCTETS,
            timeout: RECEIVE_DELAY + ack + ACK_TIMEOUT,
        }),
        retries: RETRIES,
        duty_cycle: Some(UPLINK),
        ..broadcast.clone()
    };
    let (preset, phy, power) = (Preset::LoRa(factor), Phy::LoRa(modulation), RadioPower::SX1276);
    Profile { preset, phy, unicast, broadcast, power, rounds: 1, coded: false }
}
