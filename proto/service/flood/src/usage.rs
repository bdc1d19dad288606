//! Reads what a process uses: memory, descriptors, processor time, log.

use std::fs;
use std::time::Duration;

use quiver_service_testing::Process;

/// Resources that a process uses at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bytes of memory that are resident.
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
    /// Processor time since its start.
    pub(crate) processor: Duration,
    /// Bytes that it has logged.
    pub(crate) log: u64,
}

impl Usage {
    /// Measures a process now.
    pub(crate) fn of(process: &Process) -> Self {
        let id = process.id();
        let read = |file: &str| {
            let path = format!("/proc/{id}/{file}");
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}; {}", process.story()))
        };
        let (statm, stat) = (read("statm"), read("stat"));
        // Pages; the second number is the resident ones.
        let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
        // Behind the name, which may contain anything, user and system time are fields 12 and 13.
        let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        // The kernel counts 100 ticks a second for programs, whatever its own are, and pages of 4 KiB on x86-64.
        Self {
            memory: pages * 4096,
            descriptors: descriptors(id),
            processor: Duration::from_millis(ticks * 10),
            log: fs::metadata(&process.err).map_or(0, |log| log.len()),
        }
    }
}

fn descriptors(id: u32) -> u64 {
    let path = format!("/proc/{id}/fd");
    let entries = fs::read_dir(&path).unwrap_or_else(|error| {
        panic!("{path}: {error}; the services let no other process of their user look into them: run this as root")
    });
    entries.count() as u64
}
