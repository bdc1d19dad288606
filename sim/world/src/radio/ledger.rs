//! Ledger: airtime, frames, bytes and energy per drone and per re-key.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use super::power::{RadioPower, computing};
use super::{Energy, Transmission};

/// Costs in each quantity. Everything adds up exactly, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Time the spender kept the channel.
    pub airtime: Duration,
    /// Data frames sent, without repetitions.
    pub frames: u64,
    /// Data frames sent again.
    pub retransmissions: u64,
    /// Octets the spender put on the air, with all headers.
    pub bytes: u64,
    /// Energy of the transmitter.
    pub transmitting: Energy,
    /// Energy of the receiver.
    pub receiving: Energy,
    /// Energy of the CPU.
    pub computing: Energy,
}

impl Account {
    /// Costs of the sender of a transmission. The airtime of acknowledgements is the sender's too: it caused
    /// them.
    pub fn sending(transmission: &Transmission, power: &RadioPower) -> Self {
        let (transmitting, receiving) = power.sending(transmission);
        Self {
            airtime: transmission.on_air,
            frames: transmission.frames.into(),
            retransmissions: transmission.retransmissions.into(),
            bytes: transmission.bytes_on_air,
            transmitting,
            receiving,
            computing: Energy::ZERO,
        }
    }

    /// Costs of a receiver of a transmission, whether it was received or not.
    pub fn hearing(transmission: &Transmission, power: &RadioPower) -> Self {
        let (transmitting, receiving) = power.hearing(transmission);
        Self { transmitting, receiving, ..Self::default() }
    }

    /// Costs of an nRF52840 that computes for so many cycles.
    pub fn computing(cycles: u64) -> Self {
        Self { computing: computing(cycles), ..Self::default() }
    }

    /// Energy of transmitter and receiver.
    pub fn radio(&self) -> Energy {
        self.transmitting + self.receiving
    }

    /// Energy of transmitter, receiver and CPU.
    pub fn energy(&self) -> Energy {
        self.radio() + self.computing
    }
}

impl AddAssign<&Self> for Account {
    fn add_assign(&mut self, other: &Self) {
        self.airtime = self.airtime.saturating_add(other.airtime);
        self.frames += other.frames;
        self.retransmissions += other.retransmissions;
        self.bytes += other.bytes;
        self.transmitting += other.transmitting;
        self.receiving += other.receiving;
        self.computing += other.computing;
    }
}

/// The account to which costs are booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// The drone of this number. Numbers should be dense: the ledger keeps one account up to the largest.
    Drone(usize),
    /// Leaders, KGC and gateways, together.
    Infrastructure,
}

/// Accounts of a whole world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    drones: Vec<Account>,
    infrastructure: Account,
    rekeys: BTreeMap<u64, Account>,
    datagrams: Account,
    announcements: Account,
}

impl Ledger {
    /// An empty ledger with room for so many drones.
    pub fn new(drones: usize) -> Self {
        Self { drones: vec![Account::default(); drones], ..Self::default() }
    }

    /// Books `spent` to the payer and, if it was spent on a re-key, to that re-key as well; `rekey` is any
    /// number that identifies re-keys and grows with time.
    pub fn book(&mut self, payer: Payer, rekey: Option<u64>, spent: &Account) {
        match payer {
            Payer::Infrastructure => self.infrastructure += spent,
            Payer::Drone(drone) => {
                if drone >= self.drones.len() {
                    self.drones.resize(drone + 1, Account::default());
                }
                self.drones[drone] += spent;
            }
        }
        if let Some(rekey) = rekey {
            *self.rekeys.entry(rekey).or_default() += spent;
        }
    }

    /// Books what was spent on a datagram of the group, beside what its payers are [booked](Self::book).
    pub fn book_datagram(&mut self, announcement: bool, spent: &Account) {
        *if announcement { &mut self.announcements } else { &mut self.datagrams } += spent;
    }

    /// Costs of the group's datagrams for all nodes, without announcements.
    pub fn datagrams(&self) -> &Account {
        &self.datagrams
    }

    /// Costs of the announcements of senders of datagrams for all nodes.
    pub fn announcements(&self) -> &Account {
        &self.announcements
    }

    /// The accounts of the drones, by number.
    pub fn drones(&self) -> &[Account] {
        &self.drones
    }

    /// The common account of leaders, KGC and gateways.
    pub fn infrastructure(&self) -> &Account {
        &self.infrastructure
    }

    /// Costs of each re-key for all nodes, in the order of their numbers.
    pub fn rekeys(&self) -> impl ExactSizeIterator<Item = (u64, &Account)> {
        self.rekeys.iter().map(|(rekey, account)| (*rekey, account))
    }

    /// Total costs of all nodes.
    pub fn total(&self) -> Account {
        let mut total = self.infrastructure;
        for account in &self.drones {
            total += account;
        }
        total
    }

    /// Adds another ledger of the same world.
    pub fn merge(&mut self, other: &Self) {
        self.infrastructure += &other.infrastructure;
        self.datagrams += &other.datagrams;
        self.announcements += &other.announcements;
        if other.drones.len() > self.drones.len() {
            self.drones.resize(other.drones.len(), Account::default());
        }
        for (mine, theirs) in self.drones.iter_mut().zip(&other.drones) {
            *mine += theirs;
        }
        for (rekey, account) in &other.rekeys {
            *self.rekeys.entry(*rekey).or_default() += account;
        }
    }

    /// Costs per drone: mean, 99th percentile and maximum of each quantity over the drones.
    pub fn per_drone(&self) -> Summary {
        Summary::of(&self.drones.iter())
    }

    /// Costs per re-key: mean, 99th percentile and maximum of each quantity over the re-keys.
    pub fn per_rekey(&self) -> Summary {
        Summary::of(&self.rekeys.values())
    }
}

/// Distribution of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread<T> {
    /// Mean, rounded down to the unit.
    pub mean: T,
    /// 99th percentile: the smallest value that at least 99 of 100 do not exceed (nearest rank).
    pub p99: T,
    /// The largest.
    pub max: T,
}

impl Spread<u64> {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        let Some(last) = values.len().checked_sub(1) else { return Self::default() };
        let rank = (values.len() * 99).div_ceil(100) - 1;
        let total: u128 = values.iter().map(|value| u128::from(*value)).sum();
        let mean = (total / values.len() as u128) as u64;
        let p99 = *values.select_nth_unstable(rank).1;
        let max = *values.select_nth_unstable(last).1;
        Self { mean, p99, max }
    }

    fn map<T>(self, unit: impl Fn(u64) -> T) -> Spread<T> {
        Spread { mean: unit(self.mean), p99: unit(self.p99), max: unit(self.max) }
    }
}

/// Distribution of each quantity over drones or re-keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of drones or re-keys.
    pub count: usize,
    /// Time the channel was kept.
    pub airtime: Spread<Duration>,
    /// Data frames, without repetitions.
    pub frames: Spread<u64>,
    /// Repetitions.
    pub retransmissions: Spread<u64>,
    /// Octets on the air.
    pub bytes: Spread<u64>,
    /// Transmitter and receiver.
    pub radio: Spread<Energy>,
    /// CPU.
    pub computing: Spread<Energy>,
    /// All energy.
    pub energy: Spread<Energy>,
}

impl Summary {
    fn of<'a>(accounts: &(impl Iterator<Item = &'a Account> + Clone)) -> Self {
        let spread = |quantity: fn(&Account) -> u64| Spread::of(accounts.clone().map(quantity));
        let energy = |quantity| spread(quantity).map(Energy::from_picojoules);
        Self {
            count: accounts.clone().count(),
            airtime: spread(|a| u64::try_from(a.airtime.as_nanos()).unwrap_or(u64::MAX))
                .map(Duration::from_nanos),
            frames: spread(|a| a.frames),
            retransmissions: spread(|a| a.retransmissions),
            bytes: spread(|a| a.bytes),
            radio: energy(|a| a.radio().picojoules()),
            computing: energy(|a| a.computing.picojoules()),
            energy: energy(|a| a.energy().picojoules()),
        }
    }
}
