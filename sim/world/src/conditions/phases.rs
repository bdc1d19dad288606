//! The phase of IBE orders: no drone opens one before enough operators have approved its condition, then all
//! do.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_key_release::CollectTiming;

use crate::run::Phase;
use crate::run::phases::Phases;
use crate::{Action, Invariant};

impl<S: Suite> Phases<'_, S> {
    /// Time after the release within which every drone has opened the order, over links that lose nothing: a
    /// drone that was told to wait asks again after a quarter more than this at the latest.
    fn bound() -> Duration {
        CollectTiming::default().retry * 2
    }

    pub(crate) fn second_phase(&mut self) -> bool {
        if !self.plan.orders {
            return true;
        }
        let (mark, all) = (self.mark(), u32::try_from(self.members.len()).unwrap_or(u32::MAX));
        self.world.schedule(self.world.time(), Action::Order(0));
        if !self.until(Phase::Order, all, |phases| phases.arrivals.orders_heard) {
            return false;
        }
        let members = self.members.clone();
        self.operate(Phase::Order, "", &mark, &members);
        // One operator too few: drones ask, and must wait.
        let mark = self.mark();
        for kgc in 1..self.plan.threshold {
            self.world.schedule(self.world.time(), Action::Approve(kgc));
        }
        self.world.run_for(Self::bound() * 2, &mut self.arrivals);
        let refused = all.saturating_sub(self.arrivals.openings);
        self.operate(Phase::EarlyRequest, format!("{refused} refused"), &mark, &[]);
        if let Some(early) = self.operations.last_mut() {
            early.drones = members.len();
        }
        self.checks += u64::from(all);
        if self.arrivals.openings > 0 {
            let early = self.arrivals.openings;
            let detail = format!("{early} read the order before its release");
            self.violate(Invariant::OpensWhenReleased, &Phase::Order, detail);
            return false;
        }
        let mark = self.mark();
        self.world.schedule(self.world.time(), Action::Approve(self.plan.threshold));
        let done = self.until(Phase::Release, all, |phases| phases.arrivals.openings);
        let operators = format!("{} of {}", self.plan.threshold, self.plan.kgcs);
        self.operate(Phase::Release, operators, &mark, &members);
        done && self.check_readers(&members.into_iter().collect(), mark.at())
    }

    fn check_readers(&mut self, members: &BTreeSet<u32>, since: Duration) -> bool {
        let readers = &self.arrivals.orders_opened;
        let (missing, others) = (members.difference(readers).count(), readers.difference(members).count());
        let members: Vec<u32> = members.iter().copied().collect();
        let slowest = self.arrivals.latencies(&members, since).into_iter().map(|(_, latency)| latency).max();
        self.checks += 2 * members.len() as u64;
        let mut wrong = Vec::new();
        if missing > 0 {
            wrong.push(format!("{missing} members did not read the order"));
        }
        if others > 0 {
            wrong.push(format!("{others} who are not members read the order"));
        }
        // A radio takes its own time.
        let late = slowest.filter(|slowest| self.plan.air.is_none() && *slowest > Self::bound());
        if let Some(slowest) = late {
            let (slowest, bound) = (slowest.as_secs_f64(), Self::bound().as_secs());
            wrong.push(format!("the last read it after {slowest:.1} s, not within {bound} s"));
        }
        let held = wrong.is_empty();
        wrong
            .into_iter()
            .for_each(|detail| self.violate(Invariant::OpensWhenReleased, &Phase::Release, detail));
        held
    }
}
