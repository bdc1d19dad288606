//! Reads the system's and the monotonic clock, and detects that they jumped apart.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quiver_machine::Now;
use tokio::time::Instant;

/// Reads the clocks. The monotonic one starts when the driver is made.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    jumps: JumpDetector,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), jumps: JumpDetector::default() }
    }

    /// Readings of both clocks. A system clock before 1970 reads as 1970.
    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.start.elapsed(), unix: wall().as_secs() }
    }

    /// Returns true if the two clocks have jumped apart since they were compared last. See [`JumpDetector`].
    pub(crate) fn jumped(&mut self) -> bool {
        self.jumps.compare(self.start.elapsed(), wall(), uptime)
    }

    /// The instant at which the monotonic clock reads `at`; `None` if it is further away than the clock can
    /// count.
    pub(crate) fn instant(&self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the driver: the only place that reads the system clock"
)]
fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Time since the system's start, including suspension; `None` where it cannot be read.
fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Change of the wall clock at once that counts as a jump (§13.9). Daemons that keep the time slew smaller
/// ones.
const JUMP: Duration = Duration::from_secs(10);
/// Minimum time between two jumps that count: setting the clock again and again has no further effect.
const PAUSE: Duration = Duration::from_secs(60);

/// Notices that the machine may have been brought back with its memory, from a snapshot of it or as another
/// copy: its monotonic clock goes on where it was, and the wall clock is put right.
///
/// A suspended computer is distinguished by the time since its start, which includes suspension. A wall clock
/// that is set by more than [`JUMP`] looks the same and is taken for a jump too. A copy that is brought back
/// within that time, or whose wall clock is not corrected, goes unnoticed.
#[derive(Debug, Default)]
struct JumpDetector {
    last: Option<ClockReading>,
    /// True while a jump has not been reported yet.
    pending: bool,
    reported: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct ClockReading {
    monotonic: Duration,
    wall: Duration,
    /// Time that the system was suspended so far, if known.
    suspended: Option<Duration>,
}

impl JumpDetector {
    /// Returns true if there was a jump that is to be acted upon now.
    fn compare(
        &mut self,
        monotonic: Duration,
        wall: Duration,
        uptime: impl Fn() -> Option<Duration>,
    ) -> bool {
        let suspended = || Some(uptime()?.saturating_sub(monotonic));
        let Some(last) = self.last else {
            self.last = Some(ClockReading { monotonic, wall, suspended: suspended() });
            return false;
        };
        let run = monotonic.saturating_sub(last.monotonic);
        let mut reading = ClockReading { monotonic, wall, ..last };
        // §13.9: the wall clock has moved by more than 10 s at once.
        if wall.abs_diff(last.wall.saturating_add(run)) > JUMP {
            reading.suspended = suspended();
            // §13.9: the time since the system's start goes on while a computer is suspended: that is no
            // jump.
            let slept = match (last.suspended, reading.suspended) {
                (Some(before), Some(now)) => now.saturating_sub(before),
                _ => Duration::ZERO,
            };
            self.pending |= wall.abs_diff(last.wall.saturating_add(run).saturating_add(slept)) > JUMP;
        }
        self.last = Some(reading);
        // §13.9: at most once a minute.
        let acts =
            self.pending && self.reported.is_none_or(|reported| monotonic.saturating_sub(reported) >= PAUSE);
        if acts {
            (self.pending, self.reported) = (false, Some(monotonic));
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Compares once more: so long after the start, with this wall clock, after having been suspended for so
    /// long.
    fn compare(detector: &mut JumpDetector, monotonic: u64, wall: u64, suspended: u64) -> bool {
        detector.compare(seconds(monotonic), seconds(wall), || Some(seconds(5000 + monotonic + suspended)))
    }

    #[test]
    fn a_machine_brought_back_with_its_memory_is_noticed_once_its_wall_clock_is_right() {
        let mut detector = JumpDetector::default();
        assert!(!compare(&mut detector, 0, 1_000_000, 0));
        assert!(!compare(&mut detector, 100, 1_000_100, 0));
        // An hour later.
        assert!(compare(&mut detector, 101, 1_003_700, 0));
        assert!(!compare(&mut detector, 102, 1_003_701, 0));
    }

    #[test]
    fn a_suspended_computer_and_a_clock_that_is_slewed_have_not_jumped() {
        let mut detector = JumpDetector::default();
        assert!(!compare(&mut detector, 0, 1_000_000, 0));
        assert!(!compare(&mut detector, 10, 1_003_610, 3600));
        // Nor a second time, nor in its turn.
        assert!(!compare(&mut detector, 20, 1_005_620, 5600));
        for second in 1..100 {
            assert!(!compare(&mut detector, 20 + second, 1_005_620 + 10 * second, 5600));
        }
        // An ambiguous change is taken for a jump: harmless, as a start is.
        assert!(detector.compare(seconds(130), seconds(1_010_000), || None));
    }

    #[test]
    fn a_clock_that_is_set_again_and_again_counts_once_a_minute() {
        let mut detector = JumpDetector::default();
        assert!(!compare(&mut detector, 0, 1_000_000, 0));
        let steps = (1..=300).filter(|second| compare(&mut detector, *second, 1_000_000 + 1000 * second, 0));
        assert_eq!(steps.count(), 5);
        let mut backwards = JumpDetector::default();
        assert!(!compare(&mut backwards, 0, 1_000_000, 0));
        assert!(compare(&mut backwards, 1, 900_000, 0));
    }
}
