//! The membership events of a group, and their costs.

use serde::Serialize;

use crate::measure::Timing;

/// An event of a group of N drones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MembershipEvent {
    /// N drones come into an empty group at once.
    Form,
    /// All members stay and get a fresh key.
    Expiry,
    /// One drone leaves.
    LeaveOne,
    /// One drone joins.
    JoinOne,
    /// N / 10 drones, spread over the group, leave at once.
    LeaveTenth,
    /// N / 10 drones join at once.
    JoinTenth,
}

impl MembershipEvent {
    /// All, in the order they are measured.
    pub const ALL: [Self; 6] =
        [Self::Form, Self::Expiry, Self::LeaveOne, Self::JoinOne, Self::LeaveTenth, Self::JoinTenth];

    /// Name of the event in paths.
    #[must_use]
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Expiry => "expiry",
            Self::LeaveOne => "leave-one",
            Self::JoinOne => "join-one",
            Self::LeaveTenth => "leave-tenth",
            Self::JoinTenth => "join-tenth",
        }
    }

    /// Name of the event for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Form => "The group forms",
            Self::Expiry => "The key expires",
            Self::LeaveOne => "One drone leaves",
            Self::JoinOne => "One drone joins",
            Self::LeaveTenth => "10 % of the drones leave",
            Self::JoinTenth => "10 % more drones join",
        }
    }

    /// Number of drones that come or go in a group of so many.
    pub(super) const fn movers(self, drones: u32) -> u32 {
        match self {
            Self::Form => drones,
            Self::Expiry => 0,
            Self::LeaveOne | Self::JoinOne => 1,
            Self::LeaveTenth | Self::JoinTenth => drones.div_ceil(10),
        }
    }
}

/// Measurements of one run of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Seconds of CPU time at the leader.
    pub(super) leader: f64,
    /// Seconds at one ordinary member; `None` if there was none before.
    pub(super) member: Option<f64>,
    /// Seconds at one newcomer; `None` if there is none.
    pub(super) newcomer: Option<f64>,
    /// Bytes that several receivers need alike, counted once.
    pub(super) broadcast: usize,
    /// Bytes for one receiver each, all together.
    pub(super) unicast: usize,
}

/// Costs of an event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// CPU time at the leader.
    pub leader: Timing,
    /// CPU time at one ordinary member; `None` if there was none before.
    pub member: Option<Timing>,
    /// CPU time at one newcomer; `None` if there is none.
    pub newcomer: Option<Timing>,
    /// Bytes that several receivers need alike, counted once.
    pub broadcast: usize,
    /// Bytes for one receiver each, all together.
    pub unicast: usize,
}

impl Cost {
    /// Medians of the times, bytes of the last run; `None` without samples.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let last = samples.last()?;
        let optional = |pick: fn(&Sample) -> Option<f64>| {
            let times: Vec<f64> = samples.iter().filter_map(pick).collect();
            (!times.is_empty()).then(|| Timing::of(times))
        };
        Some(Self {
            leader: Timing::of(samples.iter().map(|sample| sample.leader).collect()),
            member: optional(|sample| sample.member),
            newcomer: optional(|sample| sample.newcomer),
            broadcast: last.broadcast,
            unicast: last.unicast,
        })
    }

    /// All bytes the leader sends.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.broadcast + self.unicast
    }
}
