//! Measures time, CPU time and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use cpu_time::{ProcessTime, ThreadTime};
use quiver_report::quoted;

/// Interval of the first memory samples.
const FIRST_INTERVAL: Duration = Duration::from_millis(5);
/// Samples that are kept: beyond, every second is dropped and the interval doubled.
const MAX_SAMPLES: usize = 512;

/// The time, for latencies.
#[expect(clippy::disallowed_methods, reason = "the simulator measures real latencies")]
pub fn now() -> Instant {
    Instant::now()
}

/// The time of day, for names of results.
#[expect(clippy::disallowed_methods, reason = "results are named by the time of the run")]
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// CPU time that one machine took, summed over the threads it ran on.
///
/// Its driver runs its whole `handle_input` and drain on one thread, so the difference
/// of that thread's CPU time is the machine's own; that of the transport is not in it.
#[derive(Clone, Debug, Default)]
pub struct CpuMeter {
    nanos: Arc<AtomicU64>,
}

impl CpuMeter {
    /// The time so far.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn add(&self, taken: Duration) {
        let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Feeds a [`CpuMeter`] from the driver's hooks.
#[derive(Debug)]
pub struct CpuProbe {
    meter: CpuMeter,
    since: Option<Duration>,
}

impl CpuProbe {
    /// A probe that adds to `meter`.
    pub fn new(meter: CpuMeter) -> Self {
        Self { meter, since: None }
    }

    /// The machine is about to run on this thread.
    pub fn start(&mut self) {
        self.since = thread_time();
    }

    /// The machine has run.
    pub fn stop(&mut self) {
        if let (Some(since), Some(now)) = (self.since.take(), thread_time()) {
            self.meter.add(now.saturating_sub(since));
        }
    }
}

fn thread_time() -> Option<Duration> {
    ThreadTime::try_now().ok().map(|time| time.as_duration())
}

/// The command line of this process, for a shell.
pub fn command_line() -> String {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_name().unwrap_or_default().to_owned();
    std::iter::once(program).chain(words).map(quoted).collect::<Vec<_>>().join(" ")
}

/// CPU time that this process took, all threads together.
pub fn process_cpu() -> Duration {
    ProcessTime::try_now().map_or(Duration::ZERO, |time| time.as_duration())
}

/// Peak resident memory of this process, in bytes; `None` where the system does not report it.
pub fn peak_memory() -> Option<u64> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Samples the resident memory of this process: often at first, and ever less often the longer it runs.
#[derive(Debug)]
pub struct MemorySampler {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<(Duration, u64)>>,
}

impl MemorySampler {
    /// Begins to sample, on a thread of its own.
    pub fn start() -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (begin, mut interval, mut samples) = (now(), FIRST_INTERVAL, Vec::new());
            loop {
                samples.extend(resident_memory().map(|bytes| (begin.elapsed(), bytes)));
                if samples.len() >= MAX_SAMPLES {
                    samples = samples.into_iter().step_by(2).collect();
                    interval *= 2;
                }
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return samples;
                }
            }
        });
        Self { stop, thread }
    }

    /// The samples: time since the start, bytes. At most 512, none where the system does not report them.
    pub fn finish(self) -> Vec<(Duration, u64)> {
        // A thread that has ended hears nothing and has its result.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

/// Free memory of this machine, in bytes; `None` where the system does not report it.
pub fn available_memory() -> Option<u64> {
    parse_available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn resident_memory() -> Option<u64> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

fn parse_status(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_is_read_from_the_status_file() {
        let status = "Name:\tsim\nVmPeak:\t  999 kB\nVmHWM:\t   12345 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(parse_status(status, "VmHWM:"), Some(12345 * 1024));
        assert_eq!(parse_status(status, "VmRSS:"), Some(1024));
        assert_eq!(parse_status("Name:\tsim\n", "VmHWM:"), None);
        assert_eq!(parse_status("VmHWM:\tmany kB\n", "VmHWM:"), None);
    }

    #[test]
    fn memory_is_sampled_from_start_to_finish() {
        let sampler = MemorySampler::start();
        let room = std::hint::black_box(vec![1_u8; 64 << 20]);
        std::thread::sleep(20 * FIRST_INTERVAL);
        let samples = sampler.finish();
        drop(room);
        assert!(samples.len() >= 2 && samples.is_sorted(), "{samples:?}");
        let (first, most) = (samples[0].1, samples.iter().map(|(_, bytes)| *bytes).max().unwrap());
        assert!(most > first && most >= 64 << 20, "{samples:?}");
    }

    #[test]
    fn available_memory_is_read_from_the_memory_file() {
        let meminfo = "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   12345678 kB\n";
        assert_eq!(parse_available(meminfo), Some(12_345_678 * 1024));
        assert_eq!(parse_available("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn probe_counts_only_between_start_and_stop() {
        let meter = CpuMeter::default();
        let mut probe = CpuProbe::new(meter.clone());
        probe.stop();
        assert_eq!(meter.total(), Duration::ZERO);
        probe.start();
        let mut x = 1_u64;
        for i in 0..3_000_000_u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        probe.stop();
        let taken = meter.total();
        assert!(taken > Duration::ZERO);
        probe.stop();
        assert_eq!(meter.total(), taken);
    }
}
