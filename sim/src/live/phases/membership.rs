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
use crate::live::admission::phases::admit_anonymous;
use crate::live::event_log::{PhaseGoal, Reached};
use crate::live::swarm::SwarmRequest;
use crate::measure;

/// Enrols all drones, newcomers and outsider included.
pub(super) async fn enrol<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let all: Vec<u32> = (0..=run.world.outsider()).collect();
    let mark = run.mark();
    run.world.event_log().expect(PhaseGoal::Enrolled, &all);
    enrol_showing_progress(run, all.len()).await?;
    // They had their time.
    let step = run.world.progress.step("enrolled", all.len());
    let reached = run.world.event_log().reached(Duration::ZERO, &step).await;
    let took = mark.at.elapsed();
    run.checker.after(Phase::Enrol.name());
    let operation = PhaseCosts {
        cpu: Some(measure::process_cpu().saturating_sub(mark.cpu)),
        began: run.since_start(mark.at),
        ..PhaseCosts::new(Phase::Enrol, all.len(), took)
    };
    run.add_operation(operation.with_latencies(mark.latencies(&reached.drones)));
    run.expect_all_reached(Invariant::Convergence, "was not enrolled", &reached)
}

async fn enrol_showing_progress<S: Suite>(run: &mut PhaseRun<'_, S>, drones: usize) -> StepResult {
    let step = run.world.progress.step(Phase::Enrol.name(), drones);
    let event_log = run.world.shared_board();
    let watch = async move {
        loop {
            step.done(event_log.progress());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        done = run.world.enrol_all() => Ok(done?),
        () = watch => Ok(()),
    }
}

/// Starts the drones of the group in their second life and lets them connect to the leader.
pub(super) async fn connect<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let drones = run.world.plan.drones;
    let mark = run.mark();
    let missing = run.world.start_drones(0..drones, Phase::Connect.name()).await?;
    if run.is_anonymous() {
        return Ok(());
    }
    let took = mark.at.elapsed();
    run.checker.after(Phase::Connect.name());
    // Drones do not report their connections.
    let nobody = Reached { drones: Vec::new(), missing: (0..drones).collect() };
    run.record(Phase::Connect, String::new(), &mark, took, &nobody);
    run.checker.that(Invariant::Convergence, missing == 0, || {
        format!("{missing} drones did not connect to the leader")
    });
    if missing == 0 { Ok(()) } else { Err(super::Halt::Stuck) }
}

/// All drones ask to join at once.
pub(super) async fn form<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    if run.is_anonymous() {
        let drones: Vec<u32> = (0..run.world.plan.drones).collect();
        return admit_anonymous(run, Phase::Form, &drones).await;
    }
    run.members = (0..run.world.plan.drones).collect();
    let mark = run.mark();
    run.expect_newer_key();
    ask_to_join(run, 0..run.world.plan.drones).await?;
    run.synced(Phase::Form, String::new(), &mark, &BTreeSet::new()).await
}

async fn ask_to_join<S: Suite>(run: &PhaseRun<'_, S>, drones: std::ops::Range<u32>) -> StepResult {
    let drones: Vec<u32> = drones.collect();
    Ok(run.world.swarm.ask(&run.world.setting, &drones, SwarmRequest::Join).await?)
}

/// The key expires, or the leader is commanded to re-key.
pub(super) async fn expire<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let mut mark = run.mark();
    run.expect_newer_key();
    let phase = if run.world.plan.expiry.is_some() { Phase::Expiry } else { Phase::Rekey };
    if phase == Phase::Rekey {
        run.world.leader.command(Either::Left(LeaderCommand::Rekey.into())).await?;
    } else {
        let before = mark.epochs;
        if run.world.leader_will("key expires", |log| log.epochs.len() > before).await {
            // The time counts from the expiry, not from the beginning of the wait.
            let expired = run
                .world
                .event_log()
                .with_logs(|logs| logs.leader.epochs.get(before).map(|epoch| epoch.held.at));
            mark.at = expired.unwrap_or(mark.at);
        }
    }
    run.synced(phase, String::new(), &mark, &BTreeSet::new()).await
}

/// Some drones leave; the others get a key that these do not.
pub(super) async fn leave<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    // One of those that the policy admits stays as well.
    let most = run.members.len().saturating_sub(1);
    let count = (run.world.plan.leavers() as usize).min(most);
    if count == 0 {
        return Ok(());
    }
    let leavers: BTreeSet<u32> =
        run.members.iter().copied().choose_multiple(&mut run.rng, count).into_iter().collect();
    run.choices.extend(&leavers);
    run.members.retain(|drone| !leavers.contains(drone));
    let mark = run.mark();
    run.expect_newer_key();
    let list: Vec<u32> = leavers.iter().copied().collect();
    run.world.swarm.ask(&run.world.setting, &list, SwarmRequest::Leave).await?;
    run.synced(Phase::Leave, count.to_string(), &mark, &leavers).await?;

    run.world.event_log().expect(PhaseGoal::Left, &list);
    let reached = run.reached("leavers are out", list.len()).await;
    run.expect_all_reached(Invariant::Convergence, "does not know that it left", &reached)?;
    let exports = run.exports(leavers).await?;
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| checker.outsiders(logs, &exports));
    Ok(())
}

/// Newcomers join, and an outsider tries to.
pub(super) async fn join<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let (first, outsider) = (run.world.plan.drones, run.world.outsider());
    let missing = run.world.start_drones(first..outsider + 1, "connect newcomers").await?;
    run.checker.after("connect newcomers");
    run.checker.that(Invariant::Convergence, missing == 0, || {
        format!("{missing} newcomers did not connect to the leader")
    });
    if missing != 0 {
        return Err(super::Halt::Stuck);
    }
    refuse_outsider(run, outsider).await?;
    let count = outsider - first;
    if count == 0 {
        return Ok(());
    }
    if run.is_anonymous() {
        let newcomers: Vec<u32> = (first..outsider).collect();
        return admit_anonymous(run, Phase::Join, &newcomers).await;
    }
    run.members.extend(first..outsider);
    let mark = run.mark();
    run.expect_newer_key();
    ask_to_join(run, first..outsider).await?;
    run.synced(Phase::Join, count.to_string(), &mark, &BTreeSet::new()).await
}

/// A drone whose identity does not list the group asks to join and must be refused.
async fn refuse_outsider<S: Suite>(run: &mut PhaseRun<'_, S>, outsider: u32) -> StepResult {
    run.checker.after("refusal of an outsider");
    run.world.event_log().expect(PhaseGoal::Refused, &[outsider]);
    ask_to_join(run, outsider..outsider + 1).await?;
    let reached = run.reached("outsider is refused", 1).await;
    run.expect_all_reached(Invariant::NoUnauthorisedMember, "was not refused", &reached)
}
