//! IEEE 802.15.4 at 2.4 GHz: O-QPSK, 250 kbit/s, unslotted CSMA/CA, no beacons.
//!
//! Constants are those of IEEE Std 802.15.4-2015 under the names used there; one octet is two symbols of 16
//! µs.

use std::time::Duration;

use super::power::RadioPower;
use super::profile::{Access, Acknowledgement, CastProfile, Csma, Phy, Profile, Spacing};
use super::{Preset, on_air};

/// O-QPSK PHY at 2.4 GHz: 62.5 ksymbol/s of four bits.
const BIT_RATE: u32 = 250_000;
const SYMBOL: Duration = Duration::from_micros(16);
/// Synchronisation header of five octets (preamble four, start-of-frame delimiter one) and PHY header of one.
const PHY_OCTETS: usize = 6;
/// `aMaxPhyPacketSize`.
const MAX_FRAME: usize = 127;
/// Frame control 2, sequence number 1, one PAN identifier 2, short addresses 2 + 2, frame check sequence 2.
const MAC_OCTETS: usize = 11;
/// Each frame of a larger message: as the header of a subsequent 6LoWPAN fragment (RFC 4944, section 5.3), 5
/// octets, and three more because its 11-bit size ends at 2,047 bytes and re-keys do not.
const FRAGMENT_OCTETS: usize = 8;
/// Immediate acknowledgement: frame control 2, sequence number 1, frame check sequence 2.
const ACK_OCTETS: usize = 5;
/// `aUnitBackoffPeriod`: 20 symbols.
const UNIT_BACKOFF: Duration = SYMBOL.saturating_mul(20);
/// `aTurnaroundTime`: 12 symbols.
const TURNAROUND: Duration = SYMBOL.saturating_mul(12);
/// Clear channel assessment: 8 symbols.
const SENSING: Duration = SYMBOL.saturating_mul(8);
/// `macAckWaitDuration`: `aUnitBackoffPeriod` + `aTurnaroundTime` + synchronisation header (10 symbols) + six
/// octets (12 symbols).
const ACK_WAIT: Duration = SYMBOL.saturating_mul(54);
/// `macMinBe`, `macMaxBe`, `macMaxCsmaBackoffs` and `macMaxFrameRetries`: the standard's defaults.
const MIN_EXPONENT: u32 = 3;
const MAX_EXPONENT: u32 = 5;
const MAX_BACKOFFS: u32 = 4;
const MAX_RETRIES: u32 = 3;
/// `macSifsPeriod` after frames up to `aMaxSifsFrameSize`, `macLifsPeriod` after longer ones.
const SPACING: Spacing =
    Spacing { short_up_to: 18, short: SYMBOL.saturating_mul(12), long: SYMBOL.saturating_mul(40) };

pub(super) fn profile() -> Profile {
    let broadcast = CastProfile {
        capacity: MAX_FRAME - MAC_OCTETS,
        overhead: MAC_OCTETS,
        fragment_header: FRAGMENT_OCTETS,
        access: Access::Csma(Csma {
            unit: UNIT_BACKOFF,
            min_exponent: MIN_EXPONENT,
            max_exponent: MAX_EXPONENT,
            max_backoffs: MAX_BACKOFFS,
            sense: SENSING + TURNAROUND,
        }),
        acknowledgement: None,
        retries: 0,
        spacing: SPACING,
        announcement: None,
        duty_cycle: None,
    };
    let unicast = CastProfile {
        acknowledgement: Some(Acknowledgement {
            after: TURNAROUND,
            on_air: on_air(PHY_OCTETS + ACK_OCTETS, BIT_RATE),
            octets: PHY_OCTETS + ACK_OCTETS,
            timeout: ACK_WAIT,
        }),
        retries: MAX_RETRIES,
        ..broadcast.clone()
    };
    let phy = Phy::Bits { bit_rate: BIT_RATE, octets: PHY_OCTETS };
    Profile {
        preset: Preset::Ieee802154,
        phy,
        unicast,
        broadcast,
        power: RadioPower::NRF52840_802154,
        rounds: 1,
        coded: false,
    }
}
