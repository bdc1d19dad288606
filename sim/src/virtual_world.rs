//! `sim run --world virtual`: runs a plan in virtual time, for very many drones.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use quiver_report::{Machine, Progress, ProgressStep, Unit, counted};
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Loss, Preset};
use quiver_world::run::{self, FinishedPart, Pacing, Phase, Run, RunPlan};
use quiver_world::trace::Trace;
use quiver_world::{AirSetup, WorldSuite};

use crate::measure::{self, MemorySampler};
use crate::plan::{Plan, TransportKind};
use crate::report::RunReport;
use crate::{Result, SimError, interrupt, ranks};

/// The note of a run with `--share-verifications`.
const SHARED: &str = "Checks that many drones make of the same bytes were computed once: no figure here is a drone's computing time.";
/// Slots a group has.
const MAX_MEMBERS: u32 = 1 << 20;
/// Most leavers: every drone learns of each of them, so the bytes are the product of both.
const MAX_LEAVERS: u32 = 100;
/// Most group messages, and most of their deliveries: each delivery is a step of a machine.
const MAX_MESSAGES: u32 = 1_000_000;
const MAX_DELIVERIES: u64 = 1_000_000_000;
/// Bytes of memory that one drone takes in the virtual world, KGC and leader included: as measured (9.7 KB
/// over ristretto255 with 55,000, 5.9 KB in the toy group with a million), with a quarter on top for the peak
/// of a leader's restart.
const ROOM: u64 = 12_000;
const ROOM_OF_TOY: u64 = 7_500;
/// Bytes of memory that every rank takes for each drone, whoever has its machine.
const ROOM_OF_RANK: u64 = 4_000;

/// The plan as the virtual world takes it.
///
/// # Errors
/// If it cannot be carried out, with the reason.
pub(crate) fn run_plan(plan: &Plan) -> Result<RunPlan> {
    let refuse = |text: String| Err(SimError::Usage(text));
    if plan.drones == 0 || plan.drones > MAX_MEMBERS {
        return refuse(format!("{} drones: the virtual world takes 1 to {MAX_MEMBERS}", plan.drones));
    }
    if !(0.0..=100.0).contains(&plan.leave_percent) || !(0.0..=400.0).contains(&plan.join_percent) {
        return refuse("--leave-percent takes 0 to 100, --join-percent 0 to 400".into());
    }
    plan.check_quorum().and_then(|()| plan.check_admission()).map_err(SimError::Usage)?;
    if plan.admission.is_some() && plan.radio.is_some() {
        return refuse("--admission cannot be combined with --radio".into());
    }
    if let Some(flag) = live_only(plan) {
        return refuse(format!("{flag} is for --world live"));
    }
    if plan.depot.is_some() && plan.radio.is_none() {
        return refuse("--depot is where drones enrol before they change to a --radio: give both".into());
    }
    let deliveries = u64::from(plan.messages) * (u64::from(plan.drones) + u64::from(plan.newcomers()));
    if plan.messages > MAX_MESSAGES || deliveries > MAX_DELIVERIES {
        return refuse(format!(
            "--messages {}: with {} they are {deliveries} deliveries; at most {MAX_MESSAGES} messages and {MAX_DELIVERIES} \
             deliveries",
            plan.messages,
            counted(plan.drones, "drone")
        ));
    }
    let newcomers = plan.newcomers().min(MAX_MEMBERS - plan.drones);
    let room = if plan.toy { ROOM_OF_TOY } else { ROOM };
    // Ranks share the machines of drones; the schedule, the links and the leader's roster each of them has.
    let room = if ranks::count() > 1 { room / u64::from(ranks::count()) + ROOM_OF_RANK } else { room };
    let needed = room * u64::from(plan.drones + newcomers);
    if let Some(available) = measure::available_memory().filter(|available| needed > *available) {
        return refuse(format!(
            "{} drones need about {} MB of memory and {} MB are free: give fewer{}",
            plan.drones,
            needed >> 20,
            available >> 20,
            if plan.toy { "" } else { ", or --toy" }
        ));
    }
    Ok(RunPlan {
        drones: plan.drones,
        strategy: plan.strategy,
        kem: plan.kem,
        seed: plan.seed,
        leavers: plan.leavers().min(MAX_LEAVERS),
        newcomers,
        messages: plan.messages,
        envelopes: plan.envelopes,
        kgcs: plan.kgcs,
        threshold: plan.threshold,
        orders: plan.orders,
        admission: plan.admission.clone(),
        share_verifications: plan.share_verifications,
        restart_leader: plan.restart_leader,
        air: plan.radio.as_deref().map(air).transpose()?,
        depot: plan.depot.as_deref().map(air).transpose()?,
        traced: plan.digest || ranks::current().is_some(),
        ranks: ranks::current().cloned(),
    })
}

/// A flag of the plan that the virtual world would have to ignore.
fn live_only(plan: &Plan) -> Option<&'static str> {
    let flags = [
        ("--transport", plan.transport != TransportKind::Memory),
        ("--expiry", plan.expiry.is_some()),
        ("--mavlink", plan.mavlink),
        ("--deputies", plan.deputies > 0),
        ("--relays", plan.relays > 0),
    ];
    flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
}

/// Refuses what cannot be done, saying why: also a radio that cannot carry the group.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    Pacing::of(&run_plan(plan)?).map(drop).map_err(SimError::Usage)
}

/// The radio of this name, without losses.
fn air(radio: &str) -> Result<AirSetup> {
    let preset: Preset = radio.parse().map_err(|error| SimError::Usage(format!("{error}")))?;
    let loss = Loss::independent(0.0).map_err(|error| SimError::Usage(error.to_string()))?;
    Ok(AirSetup { profile: preset.profile().with_coding(), loss, arithmetic: Arithmetic::default() })
}

/// Runs a plan in the virtual world, and records it if it is to be played again. Reports to the watcher what is finished,
/// after each operation.
///
/// # Errors
/// If the plan is refused. A run in which an invariant failed is a [`RunReport`] of it.
pub fn run(
    plan: &Plan,
    progress: &Progress,
    record: bool,
    finished: &mut dyn FnMut(RunReport),
) -> Result<(RunReport, Option<Trace>)> {
    let run_plan = run_plan(plan)?;
    let pacing = Pacing::of(&run_plan).map_err(SimError::Usage)?;
    let (started, begin) = (measure::wall_clock(), measure::now());
    let memory = MemorySampler::start();
    let suite = if plan.toy { WorldSuite::Toy } else { WorldSuite::Ristretto255 };
    let mut notes: Vec<String> = pacing_note(plan, &pacing).into_iter().collect();
    if plan.share_verifications {
        notes.push(SHARED.into());
    }
    let begun = RunReport {
        plan: plan.clone(),
        machine: Machine::here(),
        started,
        operations: Vec::new(),
        workers: Vec::new(),
        violations: Vec::new(),
        interrupted: true,
        pairs: None,
        checks: 0,
        steps: None,
        notes,
        offences: BTreeMap::new(),
        kgc_cpu: None,
        wall: Duration::ZERO,
        peak_memory: None,
        memory: Vec::new(),
        command: measure::command_line(),
        keys_digest: None,
        choices_digest: None,
        capture: None,
    };
    let mut keep = |part: FinishedPart<'_>| {
        finished(RunReport {
            operations: part.operations.to_vec(),
            violations: part.violations.to_vec(),
            checks: part.checks,
            wall: begin.elapsed(),
            peak_memory: measure::peak_memory(),
            ..begun.clone()
        });
    };
    let (run, trace) = run_over(suite, &run_plan, progress, record, &mut keep)?;
    if run.interrupted && run.operations.is_empty() {
        return Err(SimError::Interrupted);
    }
    let mut notes = begun.notes.clone();
    notes.extend(run.trace.as_ref().map(ranks::digest));
    notes.extend(ranks::costs());
    let report = RunReport {
        operations: run.operations,
        violations: run.violations,
        interrupted: run.interrupted,
        pairs: Some(run.pairs),
        checks: run.checks,
        steps: Some(run.steps),
        notes,
        wall: begin.elapsed(),
        peak_memory: measure::peak_memory(),
        memory: memory.finish(),
        ..begun
    };
    Ok((report, trace))
}

fn run_over(
    suite: WorldSuite,
    plan: &RunPlan,
    progress: &Progress,
    record: bool,
    finished: &mut dyn FnMut(FinishedPart<'_>),
) -> Result<(Run, Option<Trace>)> {
    let mut bar: Option<(Phase, u32, ProgressStep)> = None;
    let mut told = 0;
    let mut watch = |state: run::RunProgress, part: FinishedPart<'_>| {
        if part.operations.len() > told {
            told = part.operations.len();
            finished(part);
        }
        // More are waited for with each wave of drones that join.
        if bar.as_ref().is_none_or(|(phase, of, _)| (*phase, *of) != (state.phase, state.of)) {
            bar = Some((state.phase, state.of, progress.step(state.phase.name(), state.of as usize)));
        }
        if let Some((_, _, step)) = &bar {
            step.done(state.done as usize);
        }
        if interrupt::is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    run::run_while(suite, plan, record, &mut watch).map_err(SimError::from)
}

/// Says how the radio set the pace of the run.
fn pacing_note(plan: &Plan, pacing: &Pacing) -> Option<String> {
    let radio = plan.radio.as_ref()?;
    let mut note = format!(
        "Over {} drones enrolled one every {} and asked to join one every {}, as its channel carries it; times \
         count from the first.",
        plan.depot.as_ref().unwrap_or(radio),
        Unit::duration(pacing.enrolment),
        Unit::duration(pacing.join),
    );
    if plan.depot.is_some() {
        note += &format!(" That was at the depot; then all changed to {radio}.");
    }
    Some(note)
}
