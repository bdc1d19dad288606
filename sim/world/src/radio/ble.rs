//! Bluetooth Low Energy on LE 1M: a connection for one receiver, extended advertising for all.
//!
//! Constants are those of the Bluetooth Core Specification 5.x, volume 6 (Low Energy Controller), part B
//! (Link Layer), under the names used there. Two figures are the application's choice and marked so.

use std::time::Duration;

use super::power::RadioPower;
use super::profile::{Access, Acknowledgement, Announcement, CastProfile, Phy, Profile, Spacing};
use super::{Preset, on_air};

/// LE 1M: one megasymbol per second of one bit.
const BIT_RATE: u32 = 1_000_000;
/// Preamble 1, access address 4, CRC 3.
const PHY_OCTETS: usize = 8;
/// Every PDU's header.
const PDU_HEADER: usize = 2;
/// Data channel payload with data length extension (`connMaxTxOctets`).
const MAX_DATA: usize = 251;
/// L2CAP basic header 4 and SDU length 2 of a credit-based channel.
const L2CAP_OCTETS: usize = 6;
/// Each frame of a larger message names message, frame and number of frames.
const FRAGMENT_OCTETS: usize = 8;
/// `T_IFS`, between the packets of a connection event.
const IFS: Duration = Duration::from_micros(150);
/// Application's choice within `connInterval`'s 7.5 ms to 4 s.
const CONNECTION_INTERVAL: Duration = Duration::from_millis(30);
/// The Link Layer repeats until `connSupervisionTimeout` ends the connection; application's choice within 100
/// ms to 32 s: one second, so as many appointments as fit.
const RETRIES: u32 = 33;

/// Payload of an advertising PDU.
const MAX_ADVERTISING: usize = 255;
/// Extended header of an AUX PDU with everything this use needs: length and mode 1, flags 1, `AdvA` 6, `ADI`
/// 2, `AuxPtr` 3. `AUX_CHAIN_IND` could leave out `AdvA`.
const EXTENDED_HEADER: usize = 13;
/// Length and type of one advertising structure and the company identifier of manufacturer specific data
/// (Core Specification Supplement, part A, section 1.4).
const STRUCTURE_OCTETS: usize = 4;
/// `ADV_EXT_IND`: length and mode 1, flags 1, `ADI` 2, `AuxPtr` 3; sent on the three primary channels.
const INDICATION_OCTETS: usize = PHY_OCTETS + PDU_HEADER + 7;
const PRIMARY_CHANNELS: usize = 3;
/// Advertising data of one event end at 1,650 octets, here six chained PDUs of at most 238.
const CHAINED: u32 = 6;
/// `T_MAFS`, the least space between an advertising packet and the auxiliary packet it points to.
const MAFS: Duration = Duration::from_micros(300);
/// Least advertising interval, and `advDelay`'s upper end.
const ADVERTISING_INTERVAL: Duration = Duration::from_millis(20);
const ADVERTISING_DELAY: Duration = Duration::from_millis(10);

pub(super) fn profile() -> Profile {
    let phy = Phy::Bits { bit_rate: BIT_RATE, octets: PHY_OCTETS };
    let power = RadioPower::NRF52840_BLE;
    Profile {
        preset: Preset::Ble,
        phy,
        unicast: connection(),
        broadcast: advertising(),
        power,
        rounds: 1,
        coded: false,
    }
}

fn connection() -> CastProfile {
    // The peer answers each packet in the same connection event, with an empty one if it has nothing to say.
    let empty = on_air(PHY_OCTETS + PDU_HEADER, BIT_RATE);
    CastProfile {
        capacity: MAX_DATA - L2CAP_OCTETS,
        overhead: PDU_HEADER + L2CAP_OCTETS,
        fragment_header: FRAGMENT_OCTETS,
        access: Access::Appointment { interval: CONNECTION_INTERVAL },
        acknowledgement: Some(Acknowledgement {
            after: IFS,
            on_air: empty,
            octets: PHY_OCTETS + PDU_HEADER,
            timeout: IFS + empty,
        }),
        retries: RETRIES,
        spacing: Spacing::always(IFS),
        announcement: None,
        duty_cycle: None,
    }
}

fn advertising() -> CastProfile {
    let indications = on_air(INDICATION_OCTETS * PRIMARY_CHANNELS, BIT_RATE);
    CastProfile {
        capacity: MAX_ADVERTISING - EXTENDED_HEADER - STRUCTURE_OCTETS,
        overhead: PDU_HEADER + EXTENDED_HEADER + STRUCTURE_OCTETS,
        fragment_header: FRAGMENT_OCTETS,
        access: Access::Free,
        acknowledgement: None,
        retries: 0,
        spacing: Spacing::always(MAFS),
        announcement: Some(Announcement {
            every: CHAINED,
            on_air: indications,
            octets: INDICATION_OCTETS * PRIMARY_CHANNELS,
            lead: indications + MAFS,
            pause: ADVERTISING_INTERVAL,
            jitter: ADVERTISING_DELAY,
        }),
        duty_cycle: None,
    }
}
