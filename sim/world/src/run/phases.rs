//! The phases of a run, in order.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cpu_time::ProcessTime;
use quiver_ainq::{Name, Suite};
use quiver_group::EdgeCommand;
use quiver_machine::Either;
use quiver_testbed::{Traffic, nanos};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{
    Arrivals, FinishedPart, Pacing, Pairs, Phase, PhaseCosts, RadioCost, Run, RunPlan, RunProgress,
    RunViolation, RunWatcher,
};
use crate::rng_stream::{self, RngStream, below};
use crate::trace::{Trace, TraceRecorder};
use crate::{Action, Invariant, NodeId, World};

/// Edges that are switched on at once while enrolling, and how often: the KGC and the drones then work side
/// by side.
const STARTS: u32 = 4_096;
const STARTS_EVERY: Duration = Duration::from_millis(5);
/// Time that the world runs between two checks.
const SLICE: Duration = Duration::from_millis(100);
/// Drones of an operation whose latencies are kept one by one; of more, percentiles are.
const MOST_LATENCIES: usize = 50_000;

/// A run under way.
pub(crate) struct Phases<'a, S: Suite> {
    pub(crate) world: World<S>,
    pub(crate) plan: RunPlan,
    pub(crate) pace: Pacing,
    watch: &'a mut RunWatcher<'a>,
    /// True if the watcher ended the run. The operation under way then is not recorded.
    interrupted: bool,
    pub(crate) arrivals: Arrivals<S>,
    rng: ChaCha8Rng,
    pub(crate) operations: Vec<PhaseCosts>,
    pub(crate) violations: Vec<RunViolation>,
    pub(crate) checks: u64,
    /// Members of the group.
    pub(crate) members: Vec<u32>,
    said: u32,
}

/// Counters at the beginning of a phase.
pub(crate) struct Mark {
    at: Duration,
    pub(crate) cpu: ProcessTime,
    leader: Duration,
    traffic: Traffic,
    radio: Option<RadioCost>,
    made: usize,
}

impl Mark {
    /// Time of the mark.
    pub(crate) const fn at(&self) -> Duration {
        self.at
    }
}

impl<'a, S: Suite> Phases<'a, S> {
    pub(crate) fn new(
        world: World<S>,
        plan: RunPlan,
        pace: Pacing,
        watch: &'a mut RunWatcher<'a>,
        recorder: Option<TraceRecorder>,
    ) -> Self {
        Self {
            arrivals: Arrivals::new(world.edge_count(), recorder),
            rng: rng_stream::generator(plan.seed, RngStream::Planner),
            world,
            plan,
            pace,
            watch,
            interrupted: false,
            operations: Vec::new(),
            violations: Vec::new(),
            checks: 0,
            members: Vec::new(),
            said: 0,
        }
    }

    /// Takes the phases in order; if drones got stuck in one, those after it make no sense.
    ///
    /// # Errors
    /// The number of a rank that is lost.
    pub(crate) fn run(mut self) -> Result<(Run, Option<Trace>), u32> {
        // At a depot those that come later join at once, before all change to the radio of the field.
        let members: [fn(&mut Self) -> bool; 3] = match self.plan.depot {
            Some(_) => [Self::join_and_depart, Self::rekey, Self::leave],
            None => [Self::rekey, Self::leave, Self::join],
        };
        let first: [fn(&mut Self) -> bool; 2] = [Self::enrol, Self::form];
        let rest: [fn(&mut Self) -> bool; 7] = [
            Self::talk,
            Self::seal,
            Self::second_phase,
            Self::rejoin_all,
            Self::end_of_period,
            Self::restart,
            Self::check_unlinkability,
        ];
        let _ = first.into_iter().chain(members).chain(rest).all(|phase| phase(&mut self));
        let interrupted = std::mem::take(&mut self.interrupted);
        let [regressions, blamed] =
            self.world.totals([self.arrivals.regressions.into(), self.arrivals.blamed]);
        if let Some(rank) = self.world.lost_rank() {
            return Err(rank);
        }
        if regressions > 0 {
            let detail = format!("{regressions} times an edge went back to an older epoch");
            self.violate(Invariant::NoEpochRegression, &"all phases", detail);
        }
        if blamed > 0 {
            let detail = format!("{blamed} messages of honest nodes were blamed");
            self.violate(Invariant::NoFalseBlame, &"all phases", detail);
        }
        let trace = self.arrivals.recorder.take().map(|mut recorder| {
            for operation in &self.operations {
                recorder.phase(&operation.name(), operation.began, operation.took);
            }
            let failures: Vec<_> = self.violations.iter().map(|it| (None, None, it.to_string())).collect();
            recorder.finish(self.world.time(), &failures)
        });
        let now = self.world.clock(NodeId::Leader(0)).unix;
        let run = Run {
            operations: self.operations,
            violations: self.violations,
            checks: self.checks,
            epoch: self.arrivals.newest,
            pairs: self.world.leader(0).map(|leader| Pairs::of(leader, now)).unwrap_or_default(),
            steps: self.world.steps(),
            interrupted,
            trace: self.world.trace_hash(),
        };
        Ok((run, trace))
    }

    /// Sum of what this process counts over all that play the world.
    pub(crate) fn total(&self, own: u64) -> u64 {
        let [total] = self.world.totals([own]);
        total
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            at: self.world.time(),
            cpu: ProcessTime::now(),
            leader: self.world.leader_cpu(),
            traffic: self.world.traffic(),
            radio: self.radio(),
            made: self.arrivals.made,
        }
    }

    fn radio(&self) -> Option<RadioCost> {
        let total = self.world.air()?.ledger().total();
        Some(RadioCost {
            airtime: total.airtime,
            frames: total.frames,
            retransmissions: total.retransmissions,
            bytes: total.bytes,
            energy: total.energy(),
        })
    }

    /// Records the costs of a phase since the mark.
    pub(crate) fn operate(&mut self, phase: Phase, detail: impl Into<String>, mark: &Mark, drones: &[u32]) {
        if self.interrupted {
            return;
        }
        let traffic = self.world.traffic();
        let radio = self.radio().zip(mark.radio).map(|(now, before)| now.since(&before));
        let operation = PhaseCosts {
            detail: detail.into(),
            leader_cpu: Some(self.world.leader_cpu().saturating_sub(mark.leader)),
            epochs: self.arrivals.made - mark.made,
            began: mark.at,
            messages: Some(traffic.sent - mark.traffic.sent),
            receiver_bytes: Some(traffic.bytes - mark.traffic.bytes),
            air_bytes: radio.map(|radio| radio.bytes),
            radio,
            cpu: Some(Duration::from_nanos(self.total(nanos(mark.cpu.elapsed())))),
            ..PhaseCosts::new(phase, drones.len(), self.world.time().saturating_sub(mark.at))
        };
        let mut operation = operation.with_latencies(self.latencies(drones, mark.at));
        if drones.len() > MOST_LATENCIES {
            operation.latencies = Vec::new();
        }
        self.operations.push(operation);
    }

    /// Time after `start` in which each of these drones arrived, whichever rank has it.
    fn latencies(&self, drones: &[u32], start: Duration) -> Vec<(u32, Duration)> {
        if !self.world.is_split() {
            return self.arrivals.latencies(drones, start);
        }
        let own: Vec<u32> = drones.iter().copied().filter(|drone| self.world.has(*drone)).collect();
        let all = self.world.collect(
            self.arrivals.latencies(&own, start),
            |writer, (drone, latency)| {
                writer.u32(*drone).u64(nanos(*latency));
            },
            |reader| Some((reader.u32()?, Duration::from_nanos(reader.u64()?))),
        );
        let by_drone: BTreeMap<u32, Duration> = all.into_iter().collect();
        drones.iter().filter_map(|drone| Some((*drone, *by_drone.get(drone)?))).collect()
    }

    pub(crate) fn violate(&mut self, invariant: Invariant, step: &dyn fmt::Display, detail: String) {
        // A goal that an interrupted phase has not reached is no fault.
        if self.interrupted {
            return;
        }
        self.violations.push(RunViolation { invariant, step: step.to_string(), drones: Vec::new(), detail });
    }

    /// Lets the world run until `done` gives as many as are wanted. Returns whether that happened: not if the run is
    /// interrupted before.
    pub(crate) fn until(&mut self, phase: Phase, of: u32, done: impl Fn(&Self) -> u32) -> bool {
        let patience = self.pace.patience();
        let end = self.world.time() + patience;
        loop {
            let count = done(self);
            self.show(phase, count, of);
            if self.interrupted {
                return false;
            }
            if count >= of {
                return true;
            }
            if self.world.time() >= end {
                let detail = format!("only {count} of {of} within {} s", patience.as_secs());
                self.violate(Invariant::Convergence, &phase, detail);
                return false;
            }
            self.world.run_for(SLICE, &mut self.arrivals);
        }
    }

    pub(crate) fn show(&mut self, phase: Phase, done: u32, of: u32) {
        let at = self.world.time();
        let (operations, violations, checks) = (&self.operations[..], &self.violations[..], self.checks);
        let finished = FinishedPart { operations, violations, checks };
        let ends = (self.watch)(RunProgress { phase, done, of, at }, finished).is_break();
        self.interrupted |= self.world.anywhere(ends) || self.world.lost_rank().is_some();
    }

    /// The same for numbers of drones.
    fn count(&self, own: u32) -> u32 {
        u32::try_from(self.total(own.into())).unwrap_or(u32::MAX)
    }

    fn all(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Runs until a newer epoch than at the mark has reached every member and every member has acknowledged
    /// it.
    pub(crate) fn synced(&mut self, phase: Phase, mark: &Mark) -> bool {
        let (all, made) = (self.all(), mark.made);
        let there = self.until(phase, all, |phases| {
            if phases.arrivals.made > made { phases.count(phases.arrivals.current) } else { 0 }
        });
        there && self.until(phase, all, |phases| if phases.arrivals.delivered { all } else { 0 })
    }

    fn enrol(&mut self) -> bool {
        let mark = self.mark();
        for kgc in 1..=self.world.kgc_count() {
            self.world.schedule(Duration::ZERO, Action::Start(NodeId::Kgc(kgc)));
        }
        self.world.schedule(Duration::ZERO, Action::Start(NodeId::Leader(0)));
        self.world.run_for(Duration::from_secs(1), &mut self.arrivals);
        let all = self.world.edge_count();
        let (at_once, every) = match self.pace.enrolment {
            Duration::ZERO => (STARTS, STARTS_EVERY),
            pace => (1, pace),
        };
        let mut first = 0;
        while first < all {
            let end = (first + at_once).min(all);
            self.world.start_edges(first..end, &mut self.arrivals);
            self.world.run_for(every, &mut self.arrivals);
            self.show(Phase::Enrol, self.arrivals.enrolled, all);
            if self.interrupted {
                return false;
            }
            first = end;
        }
        let done = self.until(Phase::Enrol, all, |phases| phases.count(phases.arrivals.enrolled));
        let everybody: Vec<u32> = (0..all).collect();
        self.operate(Phase::Enrol, "", &mark, &everybody);
        done
    }

    fn form(&mut self) -> bool {
        let newcomers: Vec<u32> = (0..self.plan.drones).collect();
        self.admit(Phase::Form, &newcomers)
    }

    fn join(&mut self) -> bool {
        let first = self.plan.drones;
        let newcomers: Vec<u32> = (first..first + self.plan.newcomers).collect();
        newcomers.is_empty() || self.admit(Phase::Join, &newcomers)
    }

    /// Newcomers join at the depot too; then all nodes change to the radio of the field.
    fn join_and_depart(&mut self) -> bool {
        let joined = self.join();
        if let Some(air) = self.plan.air.clone() {
            self.world.schedule(self.world.time(), Action::Radio(Box::new(air)));
        }
        joined
    }

    /// Drones want in: in waves as large as a leader lets wait.
    fn admit(&mut self, phase: Phase, newcomers: &[u32]) -> bool {
        if self.is_anonymous() {
            return self.admit_anonymous(phase, newcomers);
        }
        let mark = self.mark();
        let command = Either::Left(EdgeCommand::Join(self.world.fleet().group().clone()));
        let wave = self.world.fleet().wave();
        for wave in newcomers.chunks(wave) {
            let mark = self.mark();
            self.members.extend(wave);
            let at_once = if self.pace.join.is_zero() { wave.len() } else { 1 };
            for edges in wave.chunks(at_once) {
                self.world.command_edges(edges.iter().copied(), &command, &mut self.arrivals);
                self.world.run_for(self.pace.join, &mut self.arrivals);
                self.show(phase, self.arrivals.current, self.all());
                if self.interrupted {
                    return false;
                }
            }
            if !self.synced(phase, &mark) {
                return false;
            }
        }
        let count = if phase == Phase::Join { newcomers.len().to_string() } else { String::new() };
        let members = self.members.clone();
        self.operate(phase, count, &mark, &members);
        self.check_keys(&phase, &[])
    }

    fn rekey(&mut self) -> bool {
        let mark = self.mark();
        self.world.schedule(self.world.time(), Action::Rekey);
        let done = self.synced(Phase::Rekey, &mark);
        let members = self.members.clone();
        self.operate(Phase::Rekey, "", &mark, &members);
        done && self.check_keys(&Phase::Rekey, &[])
    }

    fn leave(&mut self) -> bool {
        let mut leavers = Vec::new();
        let leaving = (self.plan.leavers as usize).min(self.members.len().saturating_sub(1));
        for _ in 0..leaving {
            let place = below(&mut self.rng, self.members.len() as u64);
            leavers.push(self.members.swap_remove(usize::try_from(place).unwrap_or(0)));
        }
        if leavers.is_empty() {
            return true;
        }
        let (mark, before) = (self.mark(), self.count(self.arrivals.left));
        self.world.command_edges(
            leavers.iter().copied(),
            &Either::Left(EdgeCommand::Leave),
            &mut self.arrivals,
        );
        let gone = u32::try_from(leavers.len()).unwrap_or(u32::MAX);
        let done = self
            .until(Phase::Leave, gone, |phases| phases.count(phases.arrivals.left).saturating_sub(before))
            && self.synced(Phase::Leave, &mark);
        let members = self.members.clone();
        self.operate(Phase::Leave, gone.to_string(), &mark, &members);
        done && self.check_keys(&Phase::Leave, &leavers)
    }

    /// The leader and drones send by turns; each has a row of its own.
    fn talk(&mut self) -> bool {
        let by_drones = self.plan.messages / 2;
        self.send("leader", self.plan.messages - by_drones) && self.send("drones", by_drones)
    }

    fn send(&mut self, who: &str, messages: u32) -> bool {
        if messages == 0 {
            return true;
        }
        let by_leader = who == "leader";
        let mark = self.mark();
        let (before, all) = (self.total(self.arrivals.heard), u64::from(self.all()));
        let mut wanted = 0;
        for message in 0..messages {
            let sender = if by_leader {
                NodeId::Leader(0)
            } else {
                let place = usize::try_from(below(&mut self.rng, all)).unwrap_or(0);
                NodeId::Edge(self.members.get(place).copied().unwrap_or_default())
            };
            wanted += if by_leader { all } else { all - 1 };
            self.said += 1;
            let number = self.said;
            // An anonymous member has no key to sign with.
            let signed = message % 2 == 0 && !by_leader && !self.is_anonymous();
            self.world.schedule(self.world.time(), Action::Talk { node: sender, number, signed });
        }
        let share = |heard: u64| u32::try_from(heard * all / wanted.max(1)).unwrap_or(u32::MAX);
        let done = self.until(Phase::Messages, self.all(), |phases| {
            share(phases.total(phases.arrivals.heard).saturating_sub(before))
        });
        let members = self.members.clone();
        self.operate(Phase::Messages, format!("{messages} by {who}"), &mark, &members);
        done
    }

    fn restart(&mut self) -> bool {
        if !self.plan.restart_leader {
            return true;
        }
        let mark = self.mark();
        self.world.schedule(self.world.time(), Action::Stop(NodeId::Leader(0)));
        self.world.schedule(self.world.time() + Duration::from_millis(100), Action::Start(NodeId::Leader(0)));
        let done = self.synced(Phase::RestartLeader, &mark);
        let members = self.members.clone();
        self.operate(Phase::RestartLeader, "", &mark, &members);
        done && self.check_keys(&Phase::RestartLeader, &[])
    }

    /// Every member exports the leader's key; who left exports none.
    pub(crate) fn check_keys(&mut self, step: &dyn fmt::Display, outsiders: &[u32]) -> bool {
        let name = Name::new("run").expect("a plain name");
        let world = &self.world;
        let Some(key) = world.leader(0).and_then(|leader| leader.export(&name)) else {
            self.violate(Invariant::Agreement, step, "the leader has no key".into());
            return false;
        };
        let export = |edge: &u32| world.edge(*edge).and_then(|edge| edge.export(&name));
        let own = |edges: &'_ [u32]| -> Vec<u32> {
            edges.iter().copied().filter(|edge| world.has(*edge)).collect()
        };
        let wrong =
            own(&self.members).par_iter().filter(|edge| export(edge).as_ref() != Some(&key)).count() as u64;
        let known = own(outsiders).par_iter().filter(|edge| export(edge).is_some()).count() as u64;
        let [wrong, known] = world.totals([wrong, known]);
        self.checks += self.members.len() as u64 + outsiders.len() as u64;
        if wrong > 0 {
            self.violate(Invariant::Agreement, step, format!("{wrong} members have another key"));
        }
        if known > 0 {
            let detail = format!("{known} that left have a key");
            self.violate(Invariant::ForwardSecrecyAfterLeave, step, detail);
        }
        wrong == 0 && known == 0
    }
}
