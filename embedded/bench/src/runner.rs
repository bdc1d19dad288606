//! One benchmark after another, from the first iteration to the output.

use core::fmt::Write;
use core::hint::black_box;
use core::ops::ControlFlow;
use core::time::Duration;

use crate::error::{BenchError, Result};
use crate::estimate::Mix;
use crate::statistics::{Sample, SampleRange, Statistics};
use crate::{About, BenchTarget, Peaks};

/// Time limit of a benchmark; the iteration under way is finished.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs benchmarks on a target and writes their figures.
pub(crate) struct Runner<'a, 'h, H> {
    pub(crate) about: &'a About<'h>,
    pub(crate) host: &'a mut H,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) iterations: u32,
    /// True if the target asked to end it.
    pub(crate) ended: bool,
}

/// Name and parameters of a benchmark.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) benchmark: &'a str,
    pub(crate) parameters: &'a str,
}

/// Measures operations within an iteration.
pub(crate) struct Probe<'a, H> {
    host: &'a mut H,
    /// Memory peaks of the first operation.
    peaks: Option<Peaks>,
}

impl<H: BenchTarget> Probe<'_, H> {
    /// Executes the operation and measures it. The caller drops its result, unmeasured.
    pub(crate) fn time<T>(&mut self, operation: impl FnOnce() -> T) -> (T, Sample) {
        let first = self.peaks.is_none();
        if first {
            self.host.watch_memory();
        }
        let before = (self.host.now(), self.host.instructions());
        let result = black_box(operation());
        let after = (self.host.now(), self.host.instructions());
        if first {
            self.peaks = Some(self.host.peaks());
        }
        (result, Sample::between(before, after))
    }
}

impl<H: BenchTarget> Runner<'_, '_, H> {
    /// Refuses what takes more heap than there is.
    pub(crate) fn needs(&mut self, needed: usize) -> Result<()> {
        match self.host.free_heap() {
            Some(free) if free < needed => Err(BenchError::TooLittleMemory { needed, free }),
            _ => Ok(()),
        }
    }

    /// Repeats an operation that needs nothing made before it.
    pub(crate) async fn repeat<T>(
        &mut self,
        subject: Subject<'_>,
        mut operation: impl FnMut() -> T,
    ) -> Result<()> {
        self.measure(subject, |probe| Ok(probe.time(&mut operation).1)).await
    }

    /// Repeats an operation that may fail, which ends the benchmark.
    pub(crate) async fn try_repeat<T, E>(
        &mut self,
        subject: Subject<'_>,
        failure: &'static str,
        mut operation: impl FnMut() -> Result<T, E>,
    ) -> Result<()> {
        let iteration = |probe: &mut Probe<'_, H>| {
            let (result, sample) = probe.time(&mut operation);
            result.map(|_| sample).map_err(|_| BenchError::Failed(failure))
        };
        self.measure(subject, iteration).await
    }

    /// Repeats an iteration, which returns the sample that counts, and writes the figures.
    pub(crate) async fn measure(
        &mut self,
        subject: Subject<'_>,
        mut iteration: impl FnMut(&mut Probe<'_, H>) -> Result<Sample>,
    ) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        let start = self.host.now();
        let mut statistics = Statistics::default();
        let mut peaks = None;
        for _ in 0..self.iterations {
            let mut probe = Probe { host: &mut *self.host, peaks };
            statistics.add(iteration(&mut probe)?);
            peaks = probe.peaks;
            let asked = self.host.pause().await;
            self.ended |= asked == ControlFlow::Break(());
            if self.ended || self.host.now().saturating_sub(start) >= LIMIT {
                break;
            }
        }
        self.write(subject, &statistics, peaks.unwrap_or_default())
    }

    fn write(&mut self, subject: Subject<'_>, statistics: &Statistics, peaks: Peaks) -> Result<()> {
        let SampleRange { total, most, .. } = statistics.nanoseconds;
        let (average, least) = (statistics.nanoseconds.average(), statistics.nanoseconds.least());
        let done = statistics.nanoseconds.count();
        writeln!(self.out, "Board: {}", self.about.board)?;
        writeln!(self.out, "MCU: {}", self.about.mcu)?;
        writeln!(self.out, "Benchmark: {}", subject.benchmark)?;
        writeln!(self.out, "Parameters: {}", subject.parameters)?;
        writeln!(self.out, "Iterations: {done}")?;
        for (name, value) in [("Total", total), ("Average", average), ("Minimum", least), ("Maximum", most)] {
            writeln!(self.out, "{name}: {}.{:03} us", value / 1000, value % 1000)?;
        }
        if let Some(counted) = statistics.instructions {
            writeln!(self.out, "Instructions: {}", counted.average())?;
            writeln!(self.out, "Minimum instructions: {}", counted.least())?;
            writeln!(self.out, "Maximum instructions: {}", counted.most)?;
            writeln!(
                self.out,
                "At 64 MHz: {}, estimated",
                Mix::of(subject.benchmark).estimate(counted.average())
            )?;
        }
        for (name, bytes) in [("Heap", peaks.heap), ("Stack", peaks.stack)] {
            if let Some(bytes) = bytes {
                writeln!(self.out, "{name}: {bytes} bytes")?;
            }
        }
        if done < u64::from(self.iterations) {
            let why = if self.ended { "as asked" } else { "after ten minutes" };
            writeln!(self.out, "Ended: {why}, of {} iterations", self.iterations)?;
        }
        Ok(writeln!(self.out)?)
    }
}
