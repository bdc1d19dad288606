//! The phases that change the group key: enrol, connect, form, expire, leave, join.

use std::collections::BTreeSet;
use std::time::Duration;

use quiver_ainq::Suite;
use quiver_group::LeaderCommand;
use quiver_machine::Either;
use quiver_world::Invariant;
use quiver_world::run::{Phase, PhaseCosts};
use rand::seq::IteratorRandom;

use super::{PhaseRun, StepResult};
use crate::live::event_log::{PhaseGoal, Reached};
use crate::live::swarm::SwarmRequest;
use crate::measure;

impl<S: Suite> PhaseRun<'_, S> {
    /// Enrols all drones, newcomers and outsider included.
    pub(super) async fn enrol(&mut self) -> StepResult {
        let all: Vec<u32> = (0..=self.world.outsider()).collect();
        let mark = self.mark();
        self.world.event_log().expect(PhaseGoal::Enrolled, &all);
        self.enrol_showing_progress(all.len()).await?;
        // They had their time.
        let step = self.world.progress.step("enrolled", all.len());
        let reached = self.world.event_log().reached(Duration::ZERO, &step).await;
        let took = mark.at.elapsed();
        self.checker.after(Phase::Enrol.name());
        let operation = PhaseCosts {
            cpu: Some(measure::process_cpu().saturating_sub(mark.cpu)),
            began: self.since_start(mark.at),
            ..PhaseCosts::new(Phase::Enrol, all.len(), took)
        };
        self.add_operation(operation.with_latencies(mark.latencies(&reached.drones)));
        self.expect_all_reached(Invariant::Convergence, "was not enrolled", &reached)
    }

    async fn enrol_showing_progress(&mut self, drones: usize) -> StepResult {
        let step = self.world.progress.step(Phase::Enrol.name(), drones);
        let event_log = self.world.shared_board();
        let watch = async move {
            loop {
                step.done(event_log.progress());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            done = self.world.enrol_all() => Ok(done?),
            () = watch => Ok(()),
        }
    }

    /// Starts the drones of the group in their second life and lets them connect to the leader.
    pub(super) async fn connect(&mut self) -> StepResult {
        let drones = self.world.plan.drones;
        let mark = self.mark();
        let missing = self.world.start_drones(0..drones, Phase::Connect.name()).await?;
        if self.is_anonymous() {
            return Ok(());
        }
        let took = mark.at.elapsed();
        self.checker.after(Phase::Connect.name());
        // Drones do not report their connections.
        let nobody = Reached { drones: Vec::new(), missing: (0..drones).collect() };
        self.record(Phase::Connect, String::new(), &mark, took, &nobody);
        self.checker.that(Invariant::Convergence, missing == 0, || {
            format!("{missing} drones did not connect to the leader")
        });
        if missing == 0 { Ok(()) } else { Err(super::Halt::Stuck) }
    }

    /// All drones ask to join at once.
    pub(super) async fn form(&mut self) -> StepResult {
        if self.is_anonymous() {
            let drones: Vec<u32> = (0..self.world.plan.drones).collect();
            return self.admit_anonymous(Phase::Form, &drones).await;
        }
        self.members = (0..self.world.plan.drones).collect();
        let mark = self.mark();
        self.expect_newer_key();
        self.ask_to_join(0..self.world.plan.drones).await?;
        self.synced(Phase::Form, String::new(), &mark, &BTreeSet::new()).await
    }

    async fn ask_to_join(&self, drones: std::ops::Range<u32>) -> StepResult {
        let drones: Vec<u32> = drones.collect();
        Ok(self.world.swarm.ask(&self.world.setting, &drones, SwarmRequest::Join).await?)
    }

    /// The key expires, or the leader is commanded to re-key.
    pub(super) async fn expire(&mut self) -> StepResult {
        let mut mark = self.mark();
        self.expect_newer_key();
        let phase = if self.world.plan.expiry.is_some() { Phase::Expiry } else { Phase::Rekey };
        if phase == Phase::Rekey {
            self.world.leader.command(Either::Left(LeaderCommand::Rekey.into())).await?;
        } else {
            let before = mark.epochs;
            if self.world.leader_will("key expires", |log| log.epochs.len() > before).await {
                // The time counts from the expiry, not from the beginning of the wait.
                let expired = self
                    .world
                    .event_log()
                    .with_logs(|logs| logs.leader.epochs.get(before).map(|epoch| epoch.held.at));
                mark.at = expired.unwrap_or(mark.at);
            }
        }
        self.synced(phase, String::new(), &mark, &BTreeSet::new()).await
    }

    /// Some drones leave; the others get a key that these do not.
    pub(super) async fn leave(&mut self) -> StepResult {
        // One of those that the policy admits stays as well.
        let most = self.members.len().saturating_sub(1);
        let count = (self.world.plan.leavers() as usize).min(most);
        if count == 0 {
            return Ok(());
        }
        let leavers: BTreeSet<u32> =
            self.members.iter().copied().choose_multiple(&mut self.rng, count).into_iter().collect();
        self.choices.extend(&leavers);
        self.members.retain(|drone| !leavers.contains(drone));
        let mark = self.mark();
        self.expect_newer_key();
        let list: Vec<u32> = leavers.iter().copied().collect();
        self.world.swarm.ask(&self.world.setting, &list, SwarmRequest::Leave).await?;
        self.synced(Phase::Leave, count.to_string(), &mark, &leavers).await?;

        self.world.event_log().expect(PhaseGoal::Left, &list);
        let reached = self.reached("leavers are out", list.len()).await;
        self.expect_all_reached(Invariant::Convergence, "does not know that it left", &reached)?;
        let exports = self.exports(leavers).await?;
        let checker = &mut self.checker;
        self.world.event_log().with_logs(|logs| checker.outsiders(logs, &exports));
        Ok(())
    }

    /// Newcomers join, and an outsider tries to.
    pub(super) async fn join(&mut self) -> StepResult {
        let (first, outsider) = (self.world.plan.drones, self.world.outsider());
        let missing = self.world.start_drones(first..outsider + 1, "connect newcomers").await?;
        self.checker.after("connect newcomers");
        self.checker.that(Invariant::Convergence, missing == 0, || {
            format!("{missing} newcomers did not connect to the leader")
        });
        if missing != 0 {
            return Err(super::Halt::Stuck);
        }
        self.refuse_outsider(outsider).await?;
        let count = outsider - first;
        if count == 0 {
            return Ok(());
        }
        if self.is_anonymous() {
            let newcomers: Vec<u32> = (first..outsider).collect();
            return self.admit_anonymous(Phase::Join, &newcomers).await;
        }
        self.members.extend(first..outsider);
        let mark = self.mark();
        self.expect_newer_key();
        self.ask_to_join(first..outsider).await?;
        self.synced(Phase::Join, count.to_string(), &mark, &BTreeSet::new()).await
    }

    /// A drone whose identity does not list the group asks to join and must be refused.
    async fn refuse_outsider(&mut self, outsider: u32) -> StepResult {
        self.checker.after("refusal of an outsider");
        self.world.event_log().expect(PhaseGoal::Refused, &[outsider]);
        self.ask_to_join(outsider..outsider + 1).await?;
        let reached = self.reached("outsider is refused", 1).await;
        self.expect_all_reached(Invariant::NoUnauthorisedMember, "was not refused", &reached)
    }
}
