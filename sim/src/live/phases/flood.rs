//! Measures re-keys of a group, quiet and under each flood.

use std::time::Duration;

use quiver_ainq::{Revoked, Suite};
use quiver_enrolment::KgcCommand;
use quiver_group::LeaderCommand;
use quiver_machine::{Either, Misdeed};
use quiver_net::Misconduct;
use quiver_world::run::{FinishedPart, Percentiles};

use super::membership::{connect, enrol, form};
use super::{Halt, PhaseResults, PhaseRun, StepResult};
use crate::live::flood::{Attack, Flood, FloodCounters, FloodMeasurement, FloodPlan, FloodTarget};
use crate::live::swarm::SwarmRequest;
use crate::live::world::{LiveWorld, POLL_INTERVAL};
use crate::{Result, interrupt, measure};

/// Drones that are revoked before it begins, so that there is a list to ask for.
const REVOKED: u8 = 100;
/// Time that a flood runs before it is measured.
const RISING: Duration = Duration::from_secs(2);

/// Forms the group, measures it quiet, then under each flood.
pub(crate) async fn flood<S: Suite>(
    world: &mut LiveWorld<S>,
    plan: &FloodPlan,
    floods: &[Flood],
) -> Result<(PhaseResults, Vec<FloodMeasurement>)> {
    let mut unwatched = |_: FinishedPart<'_>| {};
    let (mut run, mut lines) = (PhaseRun::new(world, &mut unwatched), Vec::new());
    let ended = tokio::select! {
        ended = self::floods(&mut run, plan, floods, &mut lines) => Some(ended),
        () = interrupt::requested() => None,
    };
    match ended {
        Some(Ok(()) | Err(Halt::Stuck)) => Ok((run.results(), lines)),
        Some(Err(Halt::Error(error))) => Err(error),
        None => Ok((PhaseResults { interrupted: true, ..run.results() }, lines)),
    }
}

async fn floods<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    plan: &FloodPlan,
    floods: &[Flood],
    lines: &mut Vec<FloodMeasurement>,
) -> StepResult {
    enrol(run).await?;
    revoke_some(run).await?;
    connect(run).await?;
    form(run).await?;
    let quiet = measured(run, plan, None).await?;
    let calm = quiet.latencies.map(|spread| spread.p99);
    run.world.progress.note(&format!("{}: measured", quiet.name()));
    lines.push(quiet);
    for flood in floods {
        let mut line = measured(run, plan, Some(*flood)).await?;
        let ratio = |(flooded, calm): (Percentiles, Duration)| {
            flooded.p99.as_secs_f64() / calm.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        line.growth = line.latencies.zip(calm).map(ratio);
        run.world.progress.note(&format!("{}: measured", line.name()));
        lines.push(line);
    }
    Ok(())
}

/// Serials that no drone has: a list like that of an old deployment.
async fn revoke_some<S: Suite>(run: &PhaseRun<'_, S>) -> StepResult {
    let revoked = (0..REVOKED).map(|number| Revoked::unknown([number; 16]));
    for kgc in &run.world.kgcs {
        let command = KgcCommand::RevokeDrones(revoked.clone().collect());
        kgc.command(Either::Left(command)).await?;
    }
    Ok(())
}

/// Measures re-keys, during a flood if there is one.
async fn measured<S: Suite>(
    run: &mut PhaseRun<'_, S>,
    plan: &FloodPlan,
    flood: Option<Flood>,
) -> StepResult<FloodMeasurement> {
    let shown = run.world.setting.features.admission.as_ref().and_then(|admission| admission.shown());
    let target = FloodTarget { plan, counters: FloodCounters::default().into(), shown };
    let penalties_before = penalties(run);
    let attack = match flood {
        Some(flood) => Some(Attack::begin(flood, &target, &run.world.setting, run.world.leader_address())?),
        None => None,
    };
    let newcomers: Vec<u32> = (run.world.plan.drones..run.world.outsider()).collect();
    let inside = joined(run, &newcomers);
    if flood == Some(Flood::Anonymous) {
        run.world.start_drones(run.world.plan.drones..run.world.outsider(), "newcomers").await?;
        run.world.event_log().reset_admission(&newcomers);
        run.world.swarm.ask(&run.world.setting, &newcomers, SwarmRequest::Join).await?;
    } else {
        tokio::time::sleep(RISING).await;
    }
    let (begin, before) = (measure::now(), target.counters.totals());
    let (latencies, missing) = rekeys(run, plan).await?;
    let (seconds, after) = (begin.elapsed().as_secs_f64(), target.counters.totals());
    drop(attack);
    let (penalised, refused) = penalties(run);
    let joined = joined(run, &newcomers) - inside;
    Ok(FloodMeasurement {
        flood,
        anonymous: run.is_anonymous(),
        members: run.members.len(),
        seconds,
        messages: after.0 - before.0,
        bytes: after.1 - before.1,
        answers: after.2 - before.2,
        identities: target.counters.identities(),
        penalised: penalised - penalties_before.0,
        refused: refused - penalties_before.1,
        joined,
        latencies: Percentiles::of(latencies),
        missing,
        growth: None,
    })
}

/// Number of peers that the leader penalised so far, and of connections it refused for that.
fn penalties<S: Suite>(run: &PhaseRun<'_, S>) -> (u64, u64) {
    let metrics = run.world.leader.handle().metrics();
    let of = |misdeed: Misdeed| metrics.penalties.get_or_create(&Misconduct { kind: misdeed.as_str() }).get();
    let penalised = of(Misdeed::Forgery) + of(Misdeed::Garbage);
    (penalised, metrics.connections_refused.get())
}

fn joined<S: Suite>(run: &PhaseRun<'_, S>, newcomers: &[u32]) -> usize {
    let is_in = |log: Option<&crate::live::event_log::DroneLog>| {
        log.and_then(|log| log.admitted).is_some_and(|(admitted, _)| admitted)
    };
    run.world
        .event_log()
        .with_logs(|logs| newcomers.iter().filter(|drone| is_in(logs.drones.get(**drone as usize))).count())
}

/// Times from each command to re-key until every member holds the next key. Members without it in time
/// are counted.
async fn rekeys<S: Suite>(run: &PhaseRun<'_, S>, plan: &FloodPlan) -> StepResult<(Vec<Duration>, usize)> {
    let members = run.member_list();
    let step = run.world.progress.step("re-keys", plan.rekeys as usize);
    let (mut latencies, mut missing) = (Vec::new(), 0);
    for count in 1..=plan.rekeys {
        let epochs = run.world.event_log().with_logs(|logs| logs.leader.epochs.len());
        let begin = measure::now();
        run.world.leader.command(Either::Left(LeaderCommand::Rekey.into())).await?;
        let deadline = begin + plan.timeout;
        loop {
            // The first key of which each member reports that it has it, of those made since.
            let held: Option<Vec<Option<Duration>>> = run.world.event_log().with_logs(|logs| {
                let made = logs.leader.epochs.get(epochs)?.held.epoch;
                let since = |drone: &u32| {
                    let keys = logs.drones.get(*drone as usize)?.keys.iter().rev();
                    let first = keys.take_while(|held| held.epoch >= made).last()?;
                    Some(first.at.saturating_duration_since(begin))
                };
                Some(members.iter().map(since).collect())
            });
            let late = measure::now() >= deadline;
            match held {
                Some(held) if late || held.iter().all(Option::is_some) => {
                    missing += held.iter().filter(|since| since.is_none()).count();
                    latencies.extend(held.into_iter().flatten());
                    break;
                }
                None if late => {
                    missing += members.len();
                    break;
                }
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        step.done(count as usize);
        tokio::time::sleep(plan.pause).await;
    }
    Ok((latencies, missing))
}
