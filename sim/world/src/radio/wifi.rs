//! Wi-Fi at 2.4 GHz and 6 Mbit/s: the lowest OFDM rate (ERP-OFDM), which every station in range can decode.
//!
//! Constants are those of IEEE Std 802.11-2016 under the names used there: clause 17 (OFDM PHY), clause 18
//! (ERP PHY) and the distributed coordination function of clause 10. Datagrams are UDP over IPv4; no
//! aggregation, no RTS/CTS.

use std::time::Duration;

use super::Preset;
use super::power::RadioPower;
use super::profile::{Access, Acknowledgement, CastProfile, Ofdm, Phy, Profile, Spacing};

/// Preamble 16 µs, SIGNAL 4 µs and the 6 µs of silence of the ERP-OFDM signal extension; symbols of 4 µs with
/// 24 data bits at 6 Mbit/s; 16 service and 6 tail bits.
const OFDM: Ofdm = Ofdm {
    fixed: Duration::from_micros(26),
    symbol: Duration::from_micros(4),
    bits_per_symbol: 24,
    extra_bits: 22,
};
/// MAC header of a data frame 24 and frame check sequence 4; LLC and SNAP 8; IPv4 20; UDP 8.
const OVERHEAD: usize = 24 + 4 + 8 + 20 + 8;
/// Rest of 1,500 bytes after the IPv4 and UDP headers.
const CAPACITY: usize = 1472;
/// Each datagram of a larger message names message, datagram and number of datagrams.
const FRAGMENT_OCTETS: usize = 8;
/// ACK frame.
const ACK_OCTETS: usize = 14;
/// `aSIFSTime` of the ERP PHY.
const SIFS: Duration = Duration::from_micros(10);
/// `aSlotTime`, short.
const SLOT: Duration = Duration::from_micros(9);
/// DIFS = SIFS + 2 slots.
const DIFS: Duration = Duration::from_micros(28);
/// `aCWmin` and `aCWmax`.
const WINDOW_MIN: u32 = 15;
const WINDOW_MAX: u32 = 1023;
/// `dot11ShortRetryLimit` is seven transmissions.
const RETRIES: u32 = 6;
/// ACKTimeout = SIFS + slot + `aRxPHYStartDelay` (20 µs for OFDM at 20 MHz).
const ACK_TIMEOUT: Duration = Duration::from_micros(39);

pub(super) fn profile() -> Profile {
    let broadcast = CastProfile {
        capacity: CAPACITY,
        overhead: OVERHEAD,
        fragment_header: FRAGMENT_OCTETS,
        access: Access::Contention {
            space: DIFS,
            slot: SLOT,
            window_min: WINDOW_MIN,
            window_max: WINDOW_MAX,
        },
        acknowledgement: None,
        retries: 0,
        spacing: Spacing::NONE,
        announcement: None,
        duty_cycle: None,
    };
    let unicast = CastProfile {
        acknowledgement: Some(Acknowledgement {
            after: SIFS,
            on_air: OFDM.airtime(ACK_OCTETS),
            octets: ACK_OCTETS,
            timeout: ACK_TIMEOUT,
        }),
        retries: RETRIES,
        ..broadcast.clone()
    };
    let (phy, power) = (Phy::Ofdm(OFDM), RadioPower::ESP32_S2);
    Profile { preset: Preset::Wifi, phy, unicast, broadcast, power, rounds: 1, coded: false }
}
