//! Compares running times for a fixed secret with those for random ones, after Reparaz, Balasch and Verbauwhede,
//! *Dude, is my code constant time?*, DATE 2017, eprint 2016/1123.
//!
//! The two classes are measured in random order in one run, through the same memory. Welch's t tells whether
//! their means differ by more than chance allows: of all measurements, and of those below several percentiles
//! of both classes together, because what an operating system adds to the longest of them hides small
//! differences.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

/// Value of t that the paper's program takes as proof of a difference; 4.5 would be suspicious.
pub(crate) const DIFFERENT: f64 = 10.0;

/// Measurements of both classes together, unless the environment says how many.
const MEASUREMENTS: usize = 40_000;

/// Percentiles of all measurements below which t is computed, in thousandths.
const CROPS: [usize; 8] = [1_000, 990, 950, 900, 800, 700, 500, 300];

/// Mean and variance of a class, by Welford's method.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }

    fn variance_of_mean(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// Welch's t of the two samples; 0 if either has fewer than two values or none of them varies.
pub(crate) fn welch(first: &[f64], second: &[f64]) -> f64 {
    let [a, b] = [first, second].map(|values| {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    });
    if a.count < 2.0 || b.count < 2.0 {
        return 0.0;
    }
    let deviation = (a.variance_of_mean() + b.variance_of_mean()).sqrt();
    if deviation == 0.0 && a.mean == b.mean { 0.0 } else { (a.mean - b.mean) / deviation }
}

/// The t of the largest absolute value among those below each percentile.
pub(crate) fn largest(first: &[f64], second: &[f64]) -> f64 {
    let mut all = [first, second].concat();
    all.sort_by(f64::total_cmp);
    let below = |crop: usize| {
        let limit = all[(all.len() * crop / 1_000).clamp(1, all.len()) - 1];
        let [first, second] = [first, second]
            .map(|values| values.iter().copied().filter(|value| *value <= limit).collect::<Vec<_>>());
        welch(&first, &second)
    };
    CROPS.map(below).into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default()
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The largest t.
    pub(crate) t: f64,
    /// The medians of either class.
    pub(crate) medians: [Duration; 2],
}

/// Measures a function of a secret, with secrets of two classes, which are made of random bytes.
pub(crate) fn measure<T: Copy>(
    first: impl Fn([u8; 32]) -> T,
    second: impl Fn([u8; 32]) -> T,
    mut function: impl FnMut(&T),
) -> Verdict {
    let count = std::env::var("QUIVER_TIMING_MEASUREMENTS").ok().and_then(|count| count.parse().ok());
    let count = count.unwrap_or(MEASUREMENTS);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut secret = first([0; 32]);
    let mut times = [Vec::with_capacity(count), Vec::with_capacity(count)];
    for at in 0..count + count / 20 {
        // Both classes take the same way to the same place, whichever it is now, each from bytes of its own.
        let mut bytes = [[0; 32]; 2];
        bytes.iter_mut().for_each(|bytes| rng.fill_bytes(bytes));
        let candidates = [first(bytes[0]), second(bytes[1])];
        let class = (rng.next_u32() & 1) as usize;
        secret.clone_from(black_box(&candidates[class]));
        let start = now();
        function(black_box(&secret));
        let time = start.elapsed();
        // The first ones warm up.
        if at >= count / 20 {
            times[class].push(time.as_nanos() as f64);
        }
    }
    let medians = times.each_ref().map(|times| {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        Duration::from_nanos(sorted[sorted.len() / 2] as u64)
    });
    Verdict { t: largest(&times[0], &times[1]), medians }
}

#[expect(clippy::disallowed_methods, reason = "time is what is measured")]
fn now() -> Instant {
    Instant::now()
}

/// Measures secrets of two classes, and prints.
pub(crate) fn compare<T: Copy>(
    name: &str,
    first: impl Fn([u8; 32]) -> T,
    second: impl Fn([u8; 32]) -> T,
    function: impl FnMut(&T),
) -> Verdict {
    let verdict = measure(first, second, function);
    let [first, second] = verdict.medians.map(|median| median.as_secs_f64() * 1e6);
    tell(&format!("{name:<58} t = {:>8.2}   {first:>7.2} and {second:>7.2} µs", verdict.t));
    verdict
}

/// Prints a line, which the harness would keep to itself if `println!` did.
pub(crate) fn tell(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}
