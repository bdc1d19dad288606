//! Measures thread time in benchmarks, so that others on the machine count for little.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::Bencher;
use criterion::measurement::WallTime;

/// Measures the thread's own time of an operation whose input is made anew for each.
pub(crate) fn timed<I, T>(
    b: &mut Bencher<'_, WallTime>,
    mut make: impl FnMut() -> I,
    mut operation: impl FnMut(I) -> T,
) {
    b.iter_custom(|iterations| {
        let mut total = Duration::ZERO;
        for _ in 0..iterations {
            let input = make();
            let start = ThreadTime::now();
            let output = black_box(operation(black_box(input)));
            total += start.elapsed();
            drop(output);
        }
        total
    });
}
