//! The phases of anonymous admission: exactly those whom the policy admits are members, and nothing links two
//! memberships.

use std::collections::BTreeSet;

use quiver_ainq::Suite;
use quiver_world::Invariant;
use quiver_world::admission::{AT_ONCE, EVERYBODY, linked};
use quiver_world::run::Phase;

use crate::Result;
use crate::live::admission::refused;
use crate::live::event_log::PhaseGoal;
use crate::live::phases::{PhaseRun, StepResult};
use crate::live::swarm::SwarmRequest;

/// Splits drones into those that satisfy the policy and those that do not.
fn partition_by_policy<S: Suite>(
    run: &PhaseRun<'_, S>,
    drones: &[u32],
) -> Result<(BTreeSet<u32>, BTreeSet<u32>)> {
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for drone in drones {
        let Some(admission) = &run.world.setting.features.admission else { break };
        let checkpoint = &admission.checkpoint;
        let admitted = checkpoint.admits(&checkpoint.fields(*drone)).map_err(refused)?;
        if admitted {
            inside.insert(*drone)
        } else {
            outside.insert(*drone)
        };
    }
    Ok((inside, outside))
}

/// Drones join anonymously, in waves as large as the leader has room for.
pub(in crate::live) async fn admit_anonymous<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    phase: Phase,
    drones: &[u32],
) -> StepResult {
    let (inside, outside) = partition_by_policy(run, drones)?;
    let (mark, after) = (run.mark(), run.world.event_log().newest());
    run.members.extend(&inside);
    for wave in drones.chunks(AT_ONCE) {
        run.world.event_log().reset_admission(wave);
        run.world.event_log().expect(PhaseGoal::Decided, wave);
        run.world.swarm.ask(&run.world.setting, wave, SwarmRequest::Join).await?;
        let reached = run.reached("admitted or denied", wave.len()).await;
        run.checker.after(phase.name());
        run.expect_all_reached(Invariant::Admission, "was neither admitted nor denied", &reached)?;
    }
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| {
        let admitted =
            |drone: &u32| logs.drones[*drone as usize].admitted.is_some_and(|(admitted, _)| admitted);
        let intruders = outside.iter().map(|drone| (*drone, admitted(drone)));
        checker.none(Invariant::Admission, "was admitted although it does not satisfy the policy", intruders);
        let shut_out = inside.iter().map(|drone| (*drone, !admitted(drone)));
        checker.none(Invariant::Admission, "was not admitted although it satisfies the policy", shut_out);
    });
    let exports = run.exports(outside).await?;
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| checker.outsiders(logs, &exports));
    if inside.is_empty() {
        return Ok(());
    }
    run.world.event_log().expect(PhaseGoal::Synced { after }, &run.member_list());
    let detail = format!("{} of {} admitted", inside.len(), drones.len());
    run.synced(phase, detail, &mark, &BTreeSet::new()).await
}

/// All members leave, and all drones that ever asked join again: with the same credentials, under other
/// pseudonyms.
pub(in crate::live) async fn rejoin_anonymously<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let (mark, members) = (run.mark(), run.member_list());
    run.members.clear();
    run.checker.after(Phase::LeaveAll.name());
    run.world.event_log().expect(PhaseGoal::Left, &members);
    run.world.swarm.ask(&run.world.setting, &members, SwarmRequest::Leave).await?;
    let reached = run.reached(Phase::LeaveAll.name(), members.len()).await;
    let took = mark.at.elapsed();
    run.record(Phase::LeaveAll, members.len().to_string(), &mark, took, &reached);
    run.expect_all_reached(Invariant::Convergence, "does not know that it left", &reached)?;
    run.check_keys(&members.iter().copied().collect());
    let exports = run.exports(members.iter().copied()).await?;
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| checker.outsiders(logs, &exports));
    // A drone that left before stays out.
    let gone = |drone: &u32| {
        let left = run.world.event_log().with_logs(|logs| logs.drones[*drone as usize].left.is_some());
        left && !members.contains(drone)
    };
    let drones: Vec<u32> = (0..run.world.outsider()).filter(|drone| !gone(drone)).collect();
    admit_anonymous(run, Phase::ComeAgain, &drones).await
}

/// Checks that nothing that leaders received or sent links two memberships of a drone.
pub(in crate::live) fn check_unlinkability<S: Suite>(run: &mut PhaseRun<'_, S>) {
    let Some(admission) = run.world.setting.features.admission.clone() else { return };
    let lives = admission.watch.lives();
    let drones: BTreeSet<u32> =
        lives.iter().map(|life| life.drone).filter(|drone| *drone != EVERYBODY).collect();
    let linked = linked(&lives);
    let checker = &mut run.checker;
    checker.after("all");
    checker.none(
        Invariant::Unlinkability,
        "has two memberships that the leader can link",
        drones.iter().map(|drone| (*drone, linked.contains_key(drone))),
    );
    for (drone, stretch) in &linked {
        tracing::warn!(drone, stretch = hex::encode(stretch), "seen in two memberships of this drone alone");
    }
    run.world.event_log().with_logs(|logs| {
        let nobodys = logs.leader.epochs.iter().map(|epoch| epoch.anonymous.len()).sum::<usize>();
        checker.that(Invariant::Admission, nobodys == 0, || {
            format!("the leader's epochs have {nobodys} anonymous members that are none of the drones")
        });
    });
}
