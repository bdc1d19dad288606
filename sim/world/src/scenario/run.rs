//! Plays a scenario under all invariants.

use std::time::Duration;

use quiver_ainq::{Epoch, Name, Suite};
use quiver_enrolment::KgcEvent;
use quiver_group::{EdgeEvent, LeaderEvent};
use quiver_testbed::Traffic;

use super::exports::Exporter;
use super::{Exports, Recording, Scenario, Tally};
use crate::invariants::all_violations;
use crate::radio::Ledger;
use crate::suite::over;
use crate::trace::{Trace, TraceRecorder};
use crate::{
    Action, DatagramEvent, Effect, Hop, Invariants, MasterKeySuite, MavlinkReport, NodeEvent, NodeId, Setup,
    Step, StepObserver, TwoHopsReport, Violation, World, WorldError, WorldSuite,
};

/// Interval between checks of convergence.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Result of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    /// Invariants that did not hold.
    pub violations: Vec<Violation>,
    /// Expectations that were not met, one sentence each.
    pub unmet: Vec<String>,
    /// True if the run was ended before its end: its expectations were not looked at.
    pub interrupted: bool,
    /// Counts of the run.
    pub tally: Tally,
    /// Every epoch that a leader made, with its time, in order.
    pub epochs: Vec<(Duration, Epoch)>,
    /// Steps taken.
    pub steps: u64,
    /// Comparisons made.
    pub checks: u64,
    /// Time from the last fault to convergence.
    pub settled: Duration,
    /// Length of the world's time.
    pub lived: Duration,
    /// Traffic of the network.
    pub traffic: Traffic,
    /// Costs of the radio per drone and per re-key.
    pub ledger: Ledger,
    /// Total time that the channel carried a signal.
    pub channel: Duration,
    /// Counts of the telemetry by outcome, if there was any.
    pub mavlink: Option<MavlinkReport>,
    /// Counts of re-keys by outcome, if members were out of the leader's range.
    pub two_hops: Option<TwoHopsReport>,
    /// SHA-256 over every step: the same for the same file and seed.
    pub trace: [u8; 32],
}

impl ScenarioRun {
    /// Returns true if all invariants held, to the end, and all expectations were met.
    pub fn passed(&self) -> bool {
        !self.interrupted && !self.failed()
    }

    /// Returns true if an invariant did not hold or an expectation was not met.
    pub fn failed(&self) -> bool {
        !self.violations.is_empty() || !self.unmet.is_empty()
    }

    /// Shares of the time lived that the air carried datagrams with telemetry, and announcements.
    pub fn datagram_air(&self) -> (f64, f64) {
        let share = |air: Duration| air.as_secs_f64() / self.lived.as_secs_f64().max(f64::MIN_POSITIVE);
        (share(self.ledger.datagrams().airtime), share(self.ledger.announcements().airtime))
    }

    /// Failures, with their time and their node, where they have one.
    fn failures(&self) -> Vec<(Option<Duration>, Option<NodeId>, String)> {
        let violations = self.violations.iter().map(|it| (Some(it.at), it.node, it.to_string()));
        violations.chain(self.unmet.iter().map(|unmet| (None, None, unmet.clone()))).collect()
    }
}

impl Scenario {
    /// Runs the scenario: the script, the end of all faults, and until convergence or its deadline.
    ///
    /// # Errors
    /// If the world cannot be; a scenario that was read from a file can.
    pub fn run(&self, suite: WorldSuite) -> Result<ScenarioRun, WorldError> {
        self.play(suite, Recording::default()).map(|(run, ..)| run)
    }

    /// Runs the scenario, and records it. If it fails, the trace goes until then.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn record(&self, suite: WorldSuite) -> Result<(ScenarioRun, Trace), WorldError> {
        let recording = Recording { trace: true, ..Recording::default() };
        self.play(suite, recording).map(|(run, trace, _)| (run, trace.expect("a recorder was there")))
    }

    /// Runs the scenario, and records what is asked for.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn play(
        &self,
        suite: WorldSuite,
        recording: Recording,
    ) -> Result<(ScenarioRun, Option<Trace>, Exports), WorldError> {
        self.play_until(suite, recording, || false)
    }

    /// Runs the scenario until `ends` returns true, which is asked before each step, and records what is asked for.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn play_until(
        &self,
        suite: WorldSuite,
        recording: Recording,
        ends: fn() -> bool,
    ) -> Result<(ScenarioRun, Option<Trace>, Exports), WorldError> {
        over!(suite, S => self.run_over::<S>(recording, ends))
    }

    fn run_over<S: MasterKeySuite>(
        &self,
        recording: Recording,
        ends: fn() -> bool,
    ) -> Result<(ScenarioRun, Option<Trace>, Exports), WorldError> {
        let hops = recording.trace || recording.capture;
        let mut world = World::<S>::new(Setup { hops, ..self.setup.clone() })?;
        if world.is_split() && (hops || recording.telemetry) {
            return Err(WorldError::Ranks("ranks record nothing: play it in one process"));
        }
        for (at, action) in &self.script {
            world.schedule(*at, action.clone());
        }
        world.schedule(self.duration, Action::Calm);
        let mut counter = Counter {
            invariants: Invariants::new(&world, true),
            tally: Tally::default(),
            epochs: Vec::new(),
            recorder: recording.trace.then(|| TraceRecorder::new(&world, self.places.clone())),
            exporter: Exporter::new(&world, recording),
            ends,
        };
        let (settled, stopped) = self.run_to_convergence(&mut world, &mut counter);
        let interrupted = stopped && !world.anywhere(counter.invariants.stops());
        let recorder = counter.recorder.take();
        let exports = counter.exporter.take().map(Exporter::finish).unwrap_or_default();
        let run = self.evaluate(&world, counter, settled, interrupted);
        if let Some(rank) = world.lost_rank() {
            return Err(WorldError::LostRank(rank));
        }
        let trace = recorder.map(|recorder| recorder.finish(run.lived, &run.failures()));
        Ok((run, trace, exports))
    }

    /// Runs the script, and then until convergence. Returns the time that took, and whether the observer stopped the world
    /// before.
    fn run_to_convergence<S: Suite>(
        &self,
        world: &mut World<S>,
        counter: &mut Counter<S>,
    ) -> (Duration, bool) {
        let end = self.duration + self.settle;
        let mut stopped = world.run_until(self.duration + Duration::from_millis(1), counter);
        let settling = |world: &World<S>, counter: &Counter<S>| {
            world.anywhere(!counter.invariants.stragglers(world).is_empty())
        };
        while !stopped && world.time() < end && settling(world, counter) {
            let next = (world.time() + CHECK_INTERVAL).min(end);
            stopped = world.run_until(next, counter);
        }
        if !stopped {
            counter.invariants.demand_convergence(world);
        }
        (world.time().saturating_sub(self.duration), stopped)
    }

    fn evaluate<S: Suite>(
        &self,
        world: &World<S>,
        counter: Counter<S>,
        settled: Duration,
        interrupted: bool,
    ) -> ScenarioRun {
        let Counter { invariants, mut tally, epochs, .. } = counter;
        let holders = world.collect(
            holders(world),
            |writer, edge| {
                writer.u32(*edge);
            },
            |reader| reader.u32(),
        );
        tally.members = holders.into_iter().collect();
        let liars: Vec<u32> = tally.liars.iter().map(|kgc| u32::from(*kgc)).collect();
        let liars = world.collect(
            liars,
            |writer, kgc| {
                writer.u32(*kgc);
            },
            |reader| reader.u32(),
        );
        tally.liars = liars.into_iter().filter_map(|kgc| kgc.try_into().ok()).collect();
        tally.lost = world.traffic().lost;
        let [enrolled, admitted, opened, crashes, stalls, blamed, checks] = world.totals([
            invariants.enrolled() as u64,
            invariants.admitted() as u64,
            invariants.opened() as u64,
            tally.crashes,
            tally.stalls,
            tally.blamed,
            invariants.checks(),
        ]);
        tally.enrolled = u32::try_from(enrolled).unwrap_or(u32::MAX);
        tally.opened = u32::try_from(opened).unwrap_or(u32::MAX);
        (tally.admitted, tally.crashes, tally.stalls, tally.blamed) = (admitted, crashes, stalls, blamed);
        let violations = all_violations(world, invariants.violations().to_vec());
        // A world that was stopped early cannot have met its expectations.
        let is_whole = violations.is_empty() && !interrupted;
        let unmet = if is_whole { self.expect.unmet(&tally) } else { Vec::new() };
        let mut run = ScenarioRun {
            violations,
            unmet,
            interrupted,
            tally,
            epochs,
            steps: world.steps(),
            checks,
            settled,
            lived: world.time(),
            traffic: world.traffic(),
            ledger: world.air().map(|air| air.ledger().clone()).unwrap_or_default(),
            channel: world.air().map(|air| air.medium().carried()).unwrap_or_default(),
            mavlink: world.mavlink(),
            two_hops: world.two_hops(),
            trace: world.trace_hash().unwrap_or_default(),
        };
        if let (Some(bounds), Some(report), true) = (&self.expect.mavlink, &run.mavlink, run.passed()) {
            let (datagrams, announcements) = run.datagram_air();
            run.unmet = bounds.unmet(report, datagrams + announcements);
        }
        run
    }
}

/// The edges that hold the newest key.
fn holders<S: Suite>(world: &World<S>) -> Vec<u32> {
    let name = Name::new("scenario").expect("a plain name");
    let leaders = (0..world.leader_count()).filter_map(|ordinal| world.leader(ordinal));
    let newest = leaders.max_by_key(|leader| leader.status().epoch).and_then(|leader| leader.export(&name));
    let Some(newest) = newest else { return Vec::new() };
    let holds = |edge: &u32| {
        let key = world.edge(*edge).and_then(|edge| edge.export(&name));
        key.is_some_and(|key| key.expose() == newest.expose())
    };
    (0..world.edge_count()).filter(holds).collect()
}

/// Counts events while the invariants observe.
struct Counter<S: Suite> {
    invariants: Invariants<S>,
    tally: Tally,
    epochs: Vec<(Duration, Epoch)>,
    recorder: Option<TraceRecorder>,
    exporter: Option<Exporter>,
    /// Returns true once the user wants the run to end.
    ends: fn() -> bool,
}

impl<S: Suite> StepObserver<S> for Counter<S> {
    fn on_step(&mut self, world: &World<S>, step: &Step) {
        self.invariants.on_step(world, step);
        if let Some(recorder) = &mut self.recorder {
            recorder.on_step(world, step);
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.on_step(step);
        }
        let counts = world.counts(step.node);
        for effect in &step.effects {
            match effect {
                Effect::Died => self.tally.crashes += u64::from(counts),
                Effect::Stalled => self.tally.stalls += u64::from(counts),
                Effect::Reported(event) => self.heard(step, event, counts),
                Effect::Sent { .. }
                | Effect::Persisted { .. }
                | Effect::Blocked(_)
                | Effect::Penalized(_)
                | Effect::Relayed { .. }
                | Effect::Disconnected(_)
                | Effect::Broken => {}
            }
        }
    }

    fn on_action(&mut self, world: &World<S>, at: Duration, action: &Action) {
        self.invariants.on_action(world, at, action);
        if let Some(recorder) = &mut self.recorder {
            recorder.on_action(world, at, action);
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.on_action(action);
        }
    }

    fn on_datagram(&mut self, world: &World<S>, event: &DatagramEvent) {
        self.invariants.on_datagram(world, event);
        if let Some(exporter) = &mut self.exporter {
            exporter.on_datagram(event);
        }
    }

    fn on_hop(&mut self, hop: &Hop) {
        if let Some(recorder) = &mut self.recorder {
            StepObserver::<S>::on_hop(recorder, hop);
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.on_hop(hop);
        }
    }

    fn stops(&self) -> bool {
        self.invariants.stops() || (self.ends)()
    }
}

impl<S: Suite> Counter<S> {
    fn heard(&mut self, step: &Step, event: &NodeEvent, counts: bool) {
        self.tally.liars.extend(event.culprit());
        match event {
            NodeEvent::Leader(LeaderEvent::EpochActivated { epoch, .. }) => {
                debug_assert!(matches!(step.node, NodeId::Leader(_)), "only leaders make epochs");
                self.tally.epochs += 1;
                self.tally.terms += u64::from(epoch.counter == 1);
                self.epochs.push((step.at, *epoch));
            }
            NodeEvent::Leader(LeaderEvent::Blamed { .. })
            | NodeEvent::Edge(EdgeEvent::Blamed { .. })
            | NodeEvent::Kgc(KgcEvent::Blamed { .. }) => self.tally.blamed += u64::from(counts),
            _ => {}
        }
    }
}
