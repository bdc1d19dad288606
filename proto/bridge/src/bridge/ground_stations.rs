//! Members that are ground stations: each of their heartbeats is signed.
//!
//! A vehicle's failsafe waits for the absence of its ground station's heartbeats. PX4 looks at what a
//! heartbeat says that it comes from, ArduPilot at its system id alone. So it is not enough that heartbeats
//! which say that they are of a ground station are signed: once a member has signed one, whatever beats under
//! its system id is taken with its signature only.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;

/// Time for which a member that beat as a ground station is held to be one. It ends, because the member's own
/// end forgets it at a restart, and then signs no heartbeats of a vehicle under the same system id.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// Time for which a heartbeat shows that a ground station is there.
const BEATS: Duration = Duration::from_secs(10);

/// Systems that beat as ground stations, each signed, and when they did last.
#[derive(Debug, Default)]
pub(super) struct GroundStations(BTreeMap<u32, Instant>);

impl GroundStations {
    /// Notes a heartbeat of a ground station, signed by the member that has this system id, or is this end's own.
    pub(super) fn note(&mut self, now: Instant, system: u32) {
        self.0.insert(system, now);
    }

    /// Forgets a system id that was granted to another member, or to none.
    pub(super) fn forget(&mut self, system: u32) {
        self.0.remove(&system);
    }

    /// A ground station that beats, if none of these numbers does.
    pub(super) fn other_than(&self, now: Instant, systems: &RangeInclusive<u32>) -> Option<u32> {
        let beats = |at: &Instant| now.duration_since(*at) < BEATS;
        let present = self.0.iter().filter(|(_, at)| beats(at)).map(|(system, _)| *system);
        // The lowest, because each other number would be told as a problem of its own.
        if present.clone().any(|present| systems.contains(&present)) { None } else { present.min() }
    }

    /// Tells whether all heartbeats of this system are signed.
    pub(super) fn contains(&self, now: Instant, system: u32) -> bool {
        self.0.get(&system).is_some_and(|at| now.duration_since(*at) < REMEMBERED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_station_is_one_until_its_number_is_anothers_or_it_was_silent_for_an_hour() {
        let (now, mut grounds) = (Instant::now(), GroundStations::default());
        grounds.note(now, 255);
        grounds.note(now, 254);
        assert!(!grounds.contains(now, 1));
        assert_eq!(
            (grounds.other_than(now, &(255..=255)), grounds.other_than(now, &(2..=254))),
            (None, None)
        );
        assert_eq!(grounds.other_than(now, &(253..=253)), Some(254));
        assert_eq!(grounds.other_than(now + BEATS, &(253..=253)), None);
        grounds.forget(254);
        assert!(!grounds.contains(now, 254));
        assert!(grounds.contains(now + REMEMBERED - Duration::from_secs(1), 255));
        assert!(!grounds.contains(now + REMEMBERED, 255));
        grounds.note(now + REMEMBERED, 255);
        assert!(grounds.contains(now + REMEMBERED, 255));
    }
}
