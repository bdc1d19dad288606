//! The outcome of one phase: its costs, and the invariants it violated.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::Phase;
use crate::Invariant;
use crate::radio::Energy;

/// Names of drones that a violation writes out.
const NAMES_SHOWN: usize = 20;

/// A phase and its costs. `None` where the phase has nothing of a quantity, or the world cannot measure it.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseCosts {
    /// The phase.
    pub phase: Phase,
    /// Part of the phase, or its size; empty if the phase says it all.
    pub detail: String,
    /// Drones it concerned.
    pub drones: usize,
    /// CPU time of the leader's machine.
    pub leader_cpu: Option<Duration>,
    /// Payload bytes that the leader sent: in the live world.
    pub leader_bytes: Option<u64>,
    /// Epochs made.
    pub epochs: usize,
    /// Time from the beginning of the run to that of the operation, in the world's time.
    pub began: Duration,
    /// Time from its beginning to its end, in the world's time.
    pub took: Duration,
    /// Times from its beginning until each drone had its result, in the world's time.
    pub to_all: Option<Percentiles>,
    /// The same for each drone; in the live world once per message, in the virtual one for up to 50,000 drones.
    pub latencies: Vec<(u32, Duration)>,
    /// Messages handed to the network, one to the group once for each receiver: in the virtual world.
    pub messages: Option<u64>,
    /// Bytes of these messages at their receivers: a broadcast counts once for each.
    pub receiver_bytes: Option<u64>,
    /// Bytes on air, a broadcast once: of a radio with all headers, parity and repetitions; of a medium without frames
    /// those of the datagrams.
    pub air_bytes: Option<u64>,
    /// Costs of the radio.
    pub radio: Option<RadioCost>,
    /// CPU time of the whole simulation, on all cores.
    pub cpu: Option<Duration>,
}

impl PhaseCosts {
    /// An operation that cost only time.
    #[must_use]
    pub fn new(phase: Phase, drones: usize, took: Duration) -> Self {
        Self {
            phase,
            detail: String::new(),
            drones,
            leader_cpu: None,
            leader_bytes: None,
            epochs: 0,
            began: Duration::ZERO,
            took,
            to_all: None,
            latencies: Vec::new(),
            messages: None,
            receiver_bytes: None,
            air_bytes: None,
            radio: None,
            cpu: None,
        }
    }

    /// The same with these latencies, and their percentiles.
    #[must_use]
    pub fn with_latencies(self, latencies: Vec<(u32, Duration)>) -> Self {
        let to_all = Percentiles::of(latencies.iter().map(|(_, latency)| *latency));
        Self { to_all, latencies, ..self }
    }

    /// The name in tables, CSV and JSON: `leave (10)`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.detail.is_empty() {
            self.phase.name().into()
        } else {
            format!("{} ({})", self.phase, self.detail)
        }
    }
}

/// Median, 99th percentile and maximum over drones, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Half of the drones were as fast.
    pub p50: Duration,
    /// All but one in a hundred were as fast.
    pub p99: Duration,
    /// The slowest.
    pub max: Duration,
}

impl Percentiles {
    /// Percentiles of these times; `None` if there are none.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut sorted: Vec<Duration> = times.into_iter().collect();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(index).copied()
        };
        Some(Self { p50: rank(50)?, p99: rank(99)?, max: rank(100)? })
    }
}

/// Costs of the radio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RadioCost {
    /// Time the channel was taken.
    pub airtime: Duration,
    /// Data frames, without retransmissions.
    pub frames: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Octets on air, with all headers and acknowledgements.
    pub bytes: u64,
    /// Energy of all drones and the leader: radio and CPU.
    pub energy: Energy,
}

impl RadioCost {
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            airtime: self.airtime.saturating_sub(before.airtime),
            frames: self.frames - before.frames,
            retransmissions: self.retransmissions - before.retransmissions,
            bytes: self.bytes - before.bytes,
            energy: self.energy - before.energy,
        }
    }
}

/// An invariant that did not hold in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunViolation {
    /// The invariant.
    pub invariant: Invariant,
    /// The step after which it was checked.
    pub step: String,
    /// The drones at which it did not hold, where the world names them.
    pub drones: Vec<String>,
    /// Description of the failure.
    pub detail: String,
}

impl fmt::Display for RunViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (after {}): {}", self.invariant, self.step, self.detail)?;
        if self.drones.is_empty() {
            return Ok(());
        }
        let shown: Vec<&str> = self.drones.iter().take(NAMES_SHOWN).map(String::as_str).collect();
        write!(f, ": {}", shown.join(", "))?;
        match self.drones.len().saturating_sub(NAMES_SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let ms = Duration::from_millis;
        let percentiles = Percentiles::of((1..=200).rev().map(ms)).unwrap();
        assert_eq!(percentiles, Percentiles { p50: ms(100), p99: ms(198), max: ms(200) });
        assert_eq!(Percentiles::of([ms(3)]), Some(Percentiles { p50: ms(3), p99: ms(3), max: ms(3) }));
        assert_eq!(Percentiles::of([]), None);
    }
}
