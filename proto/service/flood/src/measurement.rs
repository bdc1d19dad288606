//! Measures an attack: what it costs the service, and what drones notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use quiver_service_testing::timeout::Deadline;
use quiver_service_testing::{Process, now};

use crate::attack::{AttackRun, AttackedService, Attackers};
use crate::budget::{RETURN, kept};
use crate::site::{FloodSite, Rekeys};
use crate::usage::Usage;

/// Time that an attack has before anything is measured, and how long it lasts at least.
const RISE: Duration = Duration::from_secs(2);
const LEAST: Duration = Duration::from_secs(20);
/// Pause between two looks at what a process uses.
const SAMPLE: Duration = Duration::from_millis(50);

/// A service that nobody attacks.
pub(crate) struct Quiet {
    usage: Usage,
    /// Processor time for each second.
    processor: Duration,
    /// Number of re-keys that are measured.
    count: u32,
    pub(crate) rekeys: Rekeys,
}

impl Quiet {
    pub(crate) fn measure(site: &FloodSite, target: AttackedService, count: u32) -> Self {
        // The first ones are slower: caches, pages that are touched for the first time.
        let _ = site.rekeys(target, 3);
        let (start, before) = (now(), Usage::of(site.process(target)));
        let rekeys = site.rekeys(target, count);
        let (time, usage) = (start.elapsed(), Usage::of(site.process(target)));
        let processor = (usage.processor - before.processor).div_f64(time.as_secs_f64());
        Self { usage, processor, count, rekeys }
    }
}

/// Costs of an attack, beyond those of the service before it.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    pub(crate) run: AttackRun,
    /// Bytes that the strangers sent, and connections that they made.
    pub(crate) sent: u64,
    pub(crate) connections: u64,
    /// Strangers that were connected at the end.
    pub(crate) connected: usize,
    pub(crate) time: Duration,
    /// Maximum while the attack lasted.
    pub(crate) memory: u64,
    pub(crate) descriptors: u64,
    /// Memory still in use in the end.
    pub(crate) memory_kept: u64,
    pub(crate) log: u64,
    pub(crate) processor: Duration,
    pub(crate) rekeys: Rekeys,
    /// Time until a member was out, and until a drone was back.
    pub(crate) evicted: Option<Duration>,
    pub(crate) returned: Option<Duration>,
    pub(crate) is_whole: bool,
}

impl Measurement {
    /// Attacks a service of the site.
    pub(crate) fn take(site: &mut FloodSite, run: AttackRun, quiet: &Quiet) -> Self {
        let target = run.target;
        let process = site.process(target).clone();
        let before = Usage::of(&process);
        let (start, peak) = (now(), Peak::of(process.clone()));
        let attackers = Attackers::begin(run, &site.address(target));
        sleep(RISE);
        let rekeys = site.rekeys(target, quiet.count);
        let evicted = site.evict();
        let returned = site.return_of_a_drone(target);
        sleep(LEAST.saturating_sub(start.elapsed()));
        let (time, after, connected) = (start.elapsed(), Usage::of(&process), attackers.connected());
        let (sent, connections) = (attackers.sent(), attackers.connections());
        drop(attackers);
        let peak = peak.end();
        let own = quiet.processor.mul_f64(time.as_secs_f64());
        Self {
            run,
            sent,
            connections,
            connected,
            time,
            memory: peak.memory.saturating_sub(before.memory),
            descriptors: peak.descriptors.saturating_sub(before.descriptors),
            memory_kept: memory_kept(&process, quiet, kept(target)),
            log: after.log - before.log,
            processor: (after.processor - before.processor).saturating_sub(own),
            rekeys,
            evicted,
            returned,
            is_whole: site.is_whole(),
        }
    }
}

/// Memory beyond that of the quiet service, once it is back within the budget or the time for that is over.
fn memory_kept(process: &Process, quiet: &Quiet, most: u64) -> u64 {
    let deadline = Deadline::after(RETURN);
    loop {
        let kept = Usage::of(process).memory.saturating_sub(quiet.usage.memory);
        if kept <= most || deadline.left().is_zero() {
            return kept;
        }
        sleep(SAMPLE);
    }
}

/// The most that a process uses while it is watched.
struct Peak {
    over: Arc<AtomicBool>,
    watch: thread::JoinHandle<Usage>,
}

impl Peak {
    fn of(process: Process) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let watch = thread::spawn(move || {
            let mut peak = Usage::default();
            while !ends.load(Ordering::Relaxed) {
                let usage = Usage::of(&process);
                peak.memory = peak.memory.max(usage.memory);
                peak.descriptors = peak.descriptors.max(usage.descriptors);
                sleep(SAMPLE);
            }
            peak
        });
        Self { over, watch }
    }

    fn end(self) -> Usage {
        self.over.store(true, Ordering::Relaxed);
        self.watch.join().expect("the service can be looked at, since it runs")
    }
}
