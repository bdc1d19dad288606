//! The phase in which the leader is lost for good and a deputy takes over.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::run::Phase;

use super::messages::{MessageCosts, choose_sender, send_message};
use super::{PhaseRun, StepResult};

/// Kills the leader without warning and does not restart it. A deputy must notice by itself: all the same
/// members, a key of a greater term, and nobody enrols anew. The time counts from the loss, the silence
/// included.
pub(super) async fn lose_leader<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let counts = |run: &PhaseRun<'_, S>| {
        run.world.event_log().with_logs(|logs| (logs.pins.len(), logs.leader.enrolments))
    };
    let before = counts(run);
    let mut mark = run.mark();
    run.expect_newer_key();
    run.world.lose_leader().await;
    // Earlier costs of the deputy are not part of it.
    (mark.leader_cpu, mark.leader_bytes) = (run.world.leader_meter.total(), run.world.leader_sent());
    run.synced(Phase::LoseLeader, "a deputy opens a term".into(), &mark, &BTreeSet::new()).await?;
    let after = counts(run);
    run.checker.that(Invariant::Persistence, before == after, || {
        format!("(drones enrolled, enrolments of leaders) changed from {before:?} to {after:?}")
    });
    run.checker.after("messages under the deputy");
    let sender = choose_sender(run);
    send_message(run, None, &mut MessageCosts::default()).await?;
    send_message(run, sender, &mut MessageCosts::default()).await
}
