//! The phase in which the leader is killed and rebuilt from its records.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::run::Phase;

use super::messages::{MessageCosts, choose_sender, send_message};
use super::{PhaseRun, StepResult};

/// Kills the leader without warning and restarts it. The group must be served again: all the same
/// members, a greater epoch, and no new enrolment.
pub(super) async fn restart_leader<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let counts = |run: &PhaseRun<'_, S>| {
        run.world.event_log().with_logs(|logs| (logs.pins.len(), logs.leader.enrolments))
    };
    let before = counts(run);
    let mark = run.mark();
    run.expect_newer_key();
    run.world.restart_leader_node().await?;
    run.synced(Phase::RestartLeader, String::new(), &mark, &BTreeSet::new()).await?;
    let after = counts(run);
    run.checker.that(Invariant::Persistence, before == after, || {
        format!("(drones enrolled, enrolments of the leader) changed from {before:?} to {after:?}")
    });
    run.checker.after("messages after the restart");
    let sender = choose_sender(run);
    send_message(run, None, &mut MessageCosts::default()).await?;
    send_message(run, sender, &mut MessageCosts::default()).await
}
