//! Energy of time on air and of CPU cycles.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use super::Transmission;

/// Energy, counted in whole picojoules so that sums do not depend on their order; ends at 18 MJ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Energy(u64);

impl Energy {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Makes an energy of picojoules.
    pub const fn from_picojoules(picojoules: u64) -> Self {
        Self(picojoules)
    }

    /// Energy in picojoules.
    pub const fn picojoules(self) -> u64 {
        self.0
    }

    /// Energy in joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Add for Energy {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Energy {
    type Output = Self;

    /// Never below zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(energies: I) -> Self {
        energies.fold(Self::ZERO, Add::add)
    }
}

/// Writes the energy with the unit that leaves one to three digits ahead of the point: `1.23 mJ`.
impl fmt::Display for Energy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ")];
        let picojoules = self.0 as f64;
        let text = match units.iter().find(|(size, _)| picojoules >= *size) {
            Some((size, unit)) => format!("{:.2} {unit}", picojoules / size),
            None => format!("{} pJ", self.0),
        };
        f.pad(&text)
    }
}

/// Power in microwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(u64);

impl Power {
    /// A current of so many microamperes at so many millivolts.
    pub const fn of(microamperes: u64, millivolts: u64) -> Self {
        Self(microamperes * millivolts / 1000)
    }

    /// Energy over this time.
    pub fn over(self, time: Duration) -> Energy {
        // A microwatt for a nanosecond is a femtojoule.
        let femtojoules = u128::from(self.0) * time.as_nanos();
        Energy(u64::try_from(femtojoules / 1000).unwrap_or(u64::MAX))
    }
}

/// The nRF52840's supply in its product specification's tables.
const MILLIVOLTS: u64 = 3000;

/// The Arm Cortex-M4 of an nRF52840 at 64 MHz running CoreMark from flash, DC/DC regulator, 3 V: `ICPU0`, 3.3
/// mA (nRF52840 Product Specification, current consumption, *CPU running*).
const CPU: Power = Power::of(3_300, MILLIVOLTS);

/// The nRF52840's clock in cycles per microsecond.
const CYCLES_PER_MICROSECOND: u64 = 64;

/// Energy of so many CPU cycles on an nRF52840: about 155 pJ each. See [`cycles`](super::cycles) for those of
/// each operation.
pub fn computing(cycles: u64) -> Energy {
    Energy(
        (u128::from(cycles) * u128::from(CPU.0) / u128::from(CYCLES_PER_MICROSECOND))
            .try_into()
            .unwrap_or(u64::MAX),
    )
}

/// Time of so many CPU cycles on an nRF52840.
pub fn computing_time(cycles: u64) -> Duration {
    Duration::from_nanos(cycles.saturating_mul(1000) / CYCLES_PER_MICROSECOND)
}

/// Power of a transceiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioPower {
    transmitting: Power,
    receiving: Power,
}

impl RadioPower {
    /// nRF52840 in IEEE 802.15.4 mode at 0 dBm, DC/DC regulator, 3 V, CPU asleep: `IRADIO_TX5`, 6.40 mA, and
    /// `IRADIO_RX2`,
    /// 6.53 mA (nRF52840 Product Specification, docs.nordicsemi.com edition, current consumption, *Radio
    /// transmitting/receiving*).
    pub const NRF52840_802154: Self = Self::new(Power::of(6_400, MILLIVOLTS), Power::of(6_530, MILLIVOLTS));

    /// nRF52840 in Bluetooth Low Energy mode at 1 Mbit/s and 0 dBm: `IRADIO_TX1`, 6.40 mA, and `IRADIO_RX0`,
    /// 6.26 mA (same table).
    pub const NRF52840_BLE: Self = Self::new(Power::of(6_400, MILLIVOLTS), Power::of(6_260, MILLIVOLTS));

    /// Semtech SX1276 at +13 dBm on its RFO pin, 3.3 V: `IDDT`, 29 mA (data sheet, table *Power Consumption
    /// Specification*); receiving 9.9 mA (data sheet, key product features).
    pub const SX1276: Self = Self::new(Power::of(29_000, 3300), Power::of(9_900, 3300));

    /// Espressif ESP32-S2 with 802.11g at +15 dBm, 3.3 V: 220 mA while transmitting (the table's peak; its
    /// average is at half duty) and 63 mA while receiving (ESP32-S2-WROOM Datasheet 1.1, table 7).
    pub const ESP32_S2: Self = Self::new(Power::of(220_000, 3300), Power::of(63_000, 3300));

    /// No power at all.
    pub const NOTHING: Self = Self::new(Power(0), Power(0));

    /// A transceiver that draws so much.
    pub const fn new(transmitting: Power, receiving: Power) -> Self {
        Self { transmitting, receiving }
    }

    /// The nRF52840 at +8 dBm instead of 0 dBm: `IRADIO_TX0`, 16.40 mA (same table, given for Bluetooth Low
    /// Energy; taken for 802.15.4 as well, since the power amplifier is the same). Other transceivers stay as
    /// they are.
    #[must_use]
    pub fn at_8_dbm(self) -> Self {
        if self == Self::NRF52840_802154 || self == Self::NRF52840_BLE {
            return Self { transmitting: Power::of(16_400, MILLIVOLTS), ..self };
        }
        self
    }

    /// Power while transmitting.
    pub fn transmitting(&self) -> Power {
        self.transmitting
    }

    /// Power while receiving.
    pub fn receiving(&self) -> Power {
        self.receiving
    }

    /// Energy of listening for so long, whether something is received or not.
    pub fn listening(&self, time: Duration) -> Energy {
        self.receiving.over(time)
    }

    /// Energy of a transmission for its sender: transmitting, and receiving the acknowledgements.
    pub fn sending(&self, transmission: &Transmission) -> (Energy, Energy) {
        (self.transmitting.over(transmission.sent()), self.receiving.over(transmission.acknowledgements))
    }

    /// Energy of a transmission for a receiver: transmitting the acknowledgements, and receiving the rest,
    /// lost frames included.
    pub fn hearing(&self, transmission: &Transmission) -> (Energy, Energy) {
        (self.transmitting.over(transmission.acknowledgements), self.receiving.over(transmission.sent()))
    }
}
