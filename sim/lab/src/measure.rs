//! Medians of repeated measurements, in CPU time of the measuring thread.
//!
//! CPU time, because a machine that has other things to do stretches wall time and hardly CPU time. Work that
//! an operation leaves to other threads is not counted: operations that leave something to others are
//! measured in wall time, by [`repeat_wall`].

use std::hint::black_box;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use quiver_report::CellValue;
use serde::Serialize;

/// Least time of one sample, so that reading the clock does not count.
const SAMPLE: Duration = Duration::from_micros(200);

/// Effort spent on one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Samples are taken until this much time has gone into them, …
    pub budget: Duration,
    /// … but at least so many, …
    pub least: usize,
    /// … and at most so many.
    pub most: usize,
}

impl Effort {
    /// Effort for figures that are recorded.
    pub const CAREFUL: Self = Self { budget: Duration::from_millis(300), least: 5, most: 51 };
    /// Effort for a quick run, and for tests.
    pub const QUICK: Self = Self { budget: Duration::from_millis(5), least: 3, most: 15 };

    fn goes_on(&self, samples: usize, spent: Duration) -> bool {
        samples < self.least || (samples < self.most && spent < self.budget)
    }
}

/// Median of repeated measurements of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The median in seconds.
    pub median: f64,
    /// Number of samples.
    pub samples: usize,
}

impl Timing {
    /// The median of samples in seconds; zero of none.
    #[must_use]
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        let middle = samples.len() / 2;
        let median = match samples.as_slice() {
            [] => 0.0,
            all if all.len().is_multiple_of(2) => f64::midpoint(all[middle - 1], all[middle]),
            all => all[middle],
        };
        Self { median, samples: samples.len() }
    }
}

impl From<Timing> for CellValue {
    fn from(timing: Timing) -> Self {
        Self::Number(timing.median)
    }
}

/// Measures what needs no preparation. A sample repeats short operations until it is long enough for the
/// clock.
pub fn repeat<R>(effort: Effort, mut operation: impl FnMut() -> R) -> Timing {
    let once = clocked(|| black_box(operation())).1;
    let inner = (SAMPLE.as_secs_f64() / once.max(1e-9)).ceil().clamp(1.0, 1e6);
    let mut sample = || {
        let (_, taken) = clocked(|| {
            let mut left = inner;
            while left > 0.0 {
                black_box(operation());
                left -= 1.0;
            }
        });
        taken / inner
    };
    sample();
    let (mut samples, mut spent) = (Vec::new(), Duration::ZERO);
    while effort.goes_on(samples.len(), spent) {
        let taken = sample();
        spent += Duration::from_secs_f64(taken * inner);
        samples.push(taken);
    }
    Timing::of(samples)
}

/// Measures what changes a state: `prepare` makes ready, uncounted, and `operation` is what counts; the first
/// round warms up and is forgotten, unless it alone has used up the budget. Stops at the first error.
///
/// # Errors
/// The error of either of the two.
pub fn repeat_on<S, T, R, E>(
    effort: Effort,
    state: &mut S,
    mut prepare: impl FnMut(&mut S) -> Result<T, E>,
    mut operation: impl FnMut(&mut S, T) -> Result<R, E>,
) -> Result<Timing, E> {
    let (mut samples, mut spent, mut warm) = (Vec::new(), Duration::ZERO, false);
    while effort.goes_on(samples.len(), spent) {
        let input = prepare(state)?;
        let (output, taken) = clocked(|| operation(state, input));
        drop(black_box(output?));
        let taken_time = Duration::from_secs_f64(taken);
        if std::mem::replace(&mut warm, true) || taken_time >= effort.budget {
            spent += taken_time;
            samples.push(taken);
        }
    }
    Ok(Timing::of(samples))
}

/// Measures in wall time what runs on many threads. Short operations are not repeated within a sample.
pub fn repeat_wall<R>(effort: Effort, mut operation: impl FnMut() -> R) -> Timing {
    #[expect(clippy::disallowed_methods, reason = "measures the time that others wait for it")]
    let mut sample = || {
        let since = Instant::now();
        black_box(operation());
        since.elapsed()
    };
    sample();
    let (mut samples, mut spent) = (Vec::new(), Duration::ZERO);
    while effort.goes_on(samples.len(), spent) {
        let taken = sample();
        spent += taken;
        samples.push(taken.as_secs_f64());
    }
    Timing::of(samples)
}

/// Result of the operation, and the seconds of CPU time that it took this thread.
pub fn clocked<R>(operation: impl FnOnce() -> R) -> (R, f64) {
    let since = ThreadTime::now();
    let output = operation();
    (output, since.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_or_between_the_middles() {
        assert_eq!(Timing::of(vec![3.0, 1.0, 2.0]), Timing { median: 2.0, samples: 3 });
        assert_eq!(Timing::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Timing::of(vec![]), Timing { median: 0.0, samples: 0 });
    }

    #[test]
    fn effort_is_bounded_from_both_sides() {
        let effort = Effort { budget: Duration::from_secs(1), least: 3, most: 5 };
        assert!(effort.goes_on(2, Duration::from_secs(9)));
        assert!(!effort.goes_on(3, Duration::from_secs(9)));
        assert!(effort.goes_on(4, Duration::ZERO));
        assert!(!effort.goes_on(5, Duration::ZERO));
    }

    #[test]
    fn preparation_happens_before_every_round_and_the_first_is_forgotten() {
        let effort = Effort { budget: Duration::from_secs(60), least: 4, most: 4 };
        let mut state = (0, 0);
        let prepare = |state: &mut (u32, u32)| {
            state.0 += 1;
            Ok::<_, ()>(state.0)
        };
        let operation = |state: &mut (u32, u32), prepared: u32| {
            state.1 += 1;
            assert_eq!(state.1, prepared);
            Ok(())
        };
        let timing = repeat_on(effort, &mut state, prepare, operation).unwrap();
        assert_eq!((timing.samples, state), (4, (5, 5)));
    }

    #[test]
    fn a_first_round_that_uses_up_the_budget_counts() {
        let effort = Effort { budget: Duration::ZERO, least: 1, most: 9 };
        let timing = repeat_on(effort, &mut (), |()| Ok::<_, ()>(()), |(), ()| Ok(())).unwrap();
        assert_eq!(timing.samples, 1);
    }

    #[test]
    fn an_error_ends_the_measurement() {
        let outcome = repeat_on(Effort::QUICK, &mut (), |()| Err::<(), _>("no"), |(), ()| Ok(()));
        assert_eq!(outcome, Err("no"));
    }
}
