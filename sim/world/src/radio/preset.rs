//! The radios one can ask for by name.

use std::fmt;
use std::str::FromStr;

use super::{Profile, RadioError, ble, ieee802154, lora, wifi};

/// LoRa's spreading factor: each step up doubles the symbol time for about 2.5 dB of sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpreadingFactor(u8);

impl SpreadingFactor {
    /// The spreading factors of LoRaWAN's data rates 5 (SF7) to 0 (SF12).
    pub const ALL: [Self; 6] = [Self(7), Self(8), Self(9), Self(10), Self(11), Self(12)];

    /// A spreading factor from 7 to 12.
    pub const fn new(given: u8) -> Result<Self, RadioError> {
        match given {
            7..=12 => Ok(Self(given)),
            _ => Err(RadioError::SpreadingFactor { given }),
        }
    }

    /// Spreading factor as a number from 7 to 12: bits per symbol.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }
}

/// A radio, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Preset {
    /// IEEE 802.15.4 at 2.4 GHz, 250 kbit/s, unslotted CSMA/CA: `802.15.4`.
    Ieee802154,
    /// Bluetooth Low Energy, LE 1M: connections for one receiver, extended advertising for all: `ble`.
    Ble,
    /// LoRaWAN in Europe, 125 kHz: `lora-sf7` to `lora-sf12`.
    LoRa(SpreadingFactor),
    /// Wi-Fi at 2.4 GHz and its lowest OFDM rate of 6 Mbit/s, which every station in range can decode:
    /// `wifi`.
    Wifi,
    /// A radio that takes neither time nor energy and has frames of any size: `ideal`.
    #[default]
    Ideal,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 10] = {
        let [sf7, sf8, sf9, sf10, sf11, sf12] = SpreadingFactor::ALL;
        [
            Self::Ieee802154,
            Self::Ble,
            Self::LoRa(sf7),
            Self::LoRa(sf8),
            Self::LoRa(sf9),
            Self::LoRa(sf10),
            Self::LoRa(sf11),
            Self::LoRa(sf12),
            Self::Wifi,
            Self::Ideal,
        ]
    };

    /// The constants of this radio.
    pub fn profile(self) -> Profile {
        match self {
            Self::Ieee802154 => ieee802154::profile(),
            Self::Ble => ble::profile(),
            Self::LoRa(factor) => lora::profile(factor),
            Self::Wifi => wifi::profile(),
            Self::Ideal => Profile::ideal(),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ieee802154 => f.pad("802.15.4"),
            Self::Ble => f.pad("ble"),
            Self::LoRa(factor) => f.pad(&format!("lora-sf{}", factor.bits())),
            Self::Wifi => f.pad("wifi"),
            Self::Ideal => f.pad("ideal"),
        }
    }
}

impl FromStr for Preset {
    type Err = RadioError;

    fn from_str(name: &str) -> Result<Self, RadioError> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.to_string() == name)
            .ok_or_else(|| RadioError::UnknownPreset { given: name.to_owned() })
    }
}
