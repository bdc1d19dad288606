//! The phases of IBE orders: no drone opens one before enough operators have approved its condition, then all
//! do.

use std::time::Duration;

use quiver_ainq::{KgcId, Suite};
use quiver_delivery::kgc::DeliveryCommand;
use quiver_group::LeaderCommand;
use quiver_ibe::Condition;
use quiver_key_release::{Approval, ReleaseCommand};
use quiver_machine::Either;
use quiver_world::Invariant;
use quiver_world::conditions::{CHANNEL, SealedOrder, phase_two};
use quiver_world::run::Phase;

use crate::live::conditions::{OrderTerms, refused};
use crate::live::deployment::name;
use crate::live::event_log::{PhaseGoal, Reached};
use crate::live::phases::{PhaseRun, StepResult};
use crate::live::world::ENROLLING_AT_ONCE;
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// The text of the order.
const TEXT: &[u8] = b"phase 2: everybody north";
/// Time for which a drone asks before the release: long enough for every KGC to refuse.
const FIRST_TRY: Duration = Duration::from_secs(20);
/// Time between two looks at how many have read it.
const TICK: Duration = Duration::from_millis(100);

/// Sends an order, lets every drone try to open it, releases its key, and lets every drone try again.
pub(in crate::live) async fn ibe_order<S: Suite>(run: &mut PhaseRun<'_, S>) -> StepResult {
    let condition = phase_two(&run.world.setting.group).map_err(refused)?;
    send_order(run, &condition).await?;
    // One operator too few.
    for kgc in 1..run.world.plan.threshold {
        approve(run, kgc, &condition).await?;
    }
    let mark = run.mark();
    let patience = FIRST_TRY.min(run.world.plan.timeout);
    let early = collect_and_open(run, &condition, (patience, false)).await?;
    let (took, everybody) = (mark.at.elapsed(), run.member_list());
    run.checker.after(Phase::Order.name());
    run.checker.none(
        Invariant::OpensWhenReleased,
        "read an order before its key was released",
        everybody.iter().map(|drone| (*drone, early.contains(drone))),
    );
    let nobody = Reached { drones: Vec::new(), missing: everybody.clone() };
    let refused = everybody.len() - early.len();
    run.record(Phase::EarlyRequest, format!("{refused} refused"), &mark, took, &nobody);
    release(run, &condition).await
}

/// The leader seals the order and sends it to the group.
async fn send_order<S: Suite>(run: &mut PhaseRun<'_, S>, condition: &Condition) -> StepResult {
    let mut rng = rng_stream::generator(run.world.plan.seed, RngStream::IbeAuthority, 2, 0);
    let Some(ibe_authority) = &run.world.feature_keys.conditions else { return Ok(()) };
    let order = SealedOrder::seal(ibe_authority.authority().master(), condition.clone(), TEXT, &mut rng);
    let data = order.map_err(refused)?.encode();
    let (mark, everybody) = (run.mark(), run.member_list());
    run.world.event_log().expect(PhaseGoal::HasOrder, &everybody);
    let channel = name(CHANNEL)?;
    run.world.leader.command(Either::Left(LeaderCommand::Send { channel, data }.into())).await?;
    let reached = run.reached(Phase::Order.name(), everybody.len()).await;
    let took = mark.at.elapsed();
    run.checker.after(Phase::Order.name());
    run.record(Phase::Order, String::new(), &mark, took, &reached);
    run.expect_all_reached(Invariant::Delivery, "does not have the order", &reached)
}

/// The last operator that it takes approves; from then on the time counts.
async fn release<S: Suite>(run: &mut PhaseRun<'_, S>, condition: &Condition) -> StepResult {
    let mark = run.mark();
    let everybody = run.member_list();
    run.world.event_log().expect(PhaseGoal::ReadOrder, &everybody);
    approve(run, run.world.plan.threshold, condition).await?;
    let patience = run.world.plan.timeout;
    collect_showing_progress(run, condition, (patience, true), everybody.len()).await?;
    let reached = run.reached(Phase::Release.name(), everybody.len()).await;
    let took = mark.at.elapsed();
    let (threshold, kgcs) = (run.world.plan.threshold, run.world.plan.kgcs);
    run.checker.after(Phase::Release.name());
    run.record(Phase::Release, format!("{threshold} of {kgcs}"), &mark, took, &reached);
    let checker = &mut run.checker;
    run.world.event_log().with_logs(|logs| {
        checker.none(
            Invariant::OpensWhenReleased,
            "read another text than the order has",
            everybody.iter().map(|drone| {
                let read = logs.drones[*drone as usize].read.as_ref();
                (*drone, read.is_some_and(|(text, _)| text != TEXT))
            }),
        );
    });
    run.expect_all_reached(Invariant::OpensWhenReleased, "did not read the order", &reached)
}

async fn approve<S: Suite>(run: &PhaseRun<'_, S>, kgc: KgcId, condition: &Condition) -> Result<()> {
    let approval = Approval { revision: 1, condition: condition.clone(), approved: true };
    let command = Either::Right(DeliveryCommand::Shares(ReleaseCommand::Approval(approval)));
    match run.world.kgcs.get(usize::from(kgc) - 1) {
        Some(node) => node.command(command).await,
        None => Err(SimError::Stopped { who: format!("KGC {kgc}") }),
    }
}

async fn collect_showing_progress<S: Suite>(
    run: &PhaseRun<'_, S>,
    condition: &Condition,
    terms: (Duration, bool),
    drones: usize,
) -> Result<Vec<u32>> {
    let mut wait = run.world.progress.wait("read the order", drones);
    let collecting = collect_and_open(run, condition, terms);
    tokio::pin!(collecting);
    loop {
        tokio::select! {
            read = &mut collecting => return read,
            () = tokio::time::sleep(TICK) => wait.done(run.world.event_log().progress()),
        }
    }
}

/// Lets every member ask for the key, some hundred at a time, and open the order with it. Returns the
/// drones that opened it.
async fn collect_and_open<S: Suite>(
    run: &PhaseRun<'_, S>,
    condition: &Condition,
    (patience, wait): (Duration, bool),
) -> Result<Vec<u32>> {
    let world = &*run.world;
    let condition = condition.as_str().to_string();
    let terms = OrderTerms { condition, patience, wait, at_once: ENROLLING_AT_ONCE };
    world.swarm.read_orders(&world.setting, world.kgc_addresses(), &run.member_list(), &terms).await
}
