//! `sim run --world virtual`: the same phases in virtual time, for very many drones.

use std::time::Duration;

use quiver_ainq::{Bls12381G1, Ristretto255, StrategyKind};
use quiver_quorum::QuorumSuite;
use quiver_report::{Progress, Step, complain, grid, print};
use quiver_world::radio::cycles::Arithmetic;
use quiver_world::radio::{Loss, Preset};
use quiver_world::run::{Pacing, Percentiles, Row, Run, RunPlan};
use quiver_world::{AirSetup, InsecureToy, SharedRistretto255};
use serde_json::json;

use super::RunArgs;
use crate::plan::SuiteKind;
use crate::report::Outcome;
use crate::{Result, SimError, logging, measure};

/// Slots a group has.
const MAX_MEMBERS: u32 = 1 << 20;
/// How many leave at most: every one of a million drones is told who, so the bytes are the product of both.
const MAX_LEAVERS: u32 = 100;
/// Bytes of memory that one drone takes in the virtual world, KGC and leader included: as measured (9.7 KB over ristretto255
/// with 55,000, 5.9 KB in the toy group with a million), with a quarter on top for the peak of a leader's restart.
const ROOM: u64 = 12_000;
const ROOM_OF_TOY: u64 = 7_500;

impl RunArgs {
    fn virtual_plan(&self) -> Result<RunPlan> {
        let plan = self.unchecked_plan()?;
        let refuse = |text: String| Err(SimError::Usage(text));
        if self.drones == 0 || self.drones > MAX_MEMBERS {
            return refuse(format!("{} drones: the virtual world takes 1 to {MAX_MEMBERS}", self.drones));
        }
        if !(0.0..=100.0).contains(&self.leave_percent) || !(0.0..=400.0).contains(&self.join_percent) {
            return refuse("leavers are 0 to 100 percent of the drones, newcomers 0 to 400".into());
        }
        if self.share_verifications && self.suite != SuiteKind::Ristretto255 {
            return refuse("--share-verifications is for --suite ristretto255".into());
        }
        plan.check_quorum().and_then(|()| plan.check_admission()).map_err(SimError::Usage)?;
        if self.admission.is_some() && self.radio.is_some() {
            return refuse("--admission and --radio: no radio carries the exchange here".into());
        }
        if self.expiry.is_some() {
            return refuse("--expiry is for --world live".into());
        }
        let newcomers = plan.newcomers().min(MAX_MEMBERS - self.drones);
        let room = if self.toy { ROOM_OF_TOY } else { ROOM };
        let needed = room * u64::from(self.drones + newcomers);
        if let Some(available) = measure::available_memory().filter(|available| needed > *available) {
            return refuse(format!(
                "{} drones need about {} MB of memory and {} MB are free: give fewer{}",
                self.drones,
                needed >> 20,
                available >> 20,
                if self.toy { "" } else { ", or --toy" }
            ));
        }
        Ok(RunPlan {
            drones: self.drones,
            strategy: StrategyKind::from(self.strategy),
            seed: self.seed,
            leavers: plan.leavers().min(MAX_LEAVERS),
            newcomers,
            messages: self.messages,
            envelopes: self.envelopes,
            kgcs: plan.kgcs,
            threshold: plan.threshold,
            orders: self.orders,
            admission: plan.admission,
            restart_leader: plan.restart_leader,
            air: self.radio.as_deref().map(air).transpose()?,
            depot: self.depot.as_deref().map(air).transpose()?,
        })
    }
}

/// The radio of this name, without losses.
fn air(radio: &str) -> Result<AirSetup> {
    let preset: Preset = radio.parse().map_err(|error| SimError::Usage(format!("{error}")))?;
    let loss = Loss::independent(0.0).map_err(|error| SimError::Usage(error.to_string()))?;
    Ok(AirSetup { profile: preset.profile(), loss, arithmetic: Arithmetic::default() })
}

/// Runs the plan and shows what it came to.
pub(super) fn run(args: &RunArgs) -> Result<Outcome> {
    let plan = args.virtual_plan()?;
    let pace = Pacing::of(&plan).map_err(SimError::Usage)?;
    let progress = args.output.progress();
    logging::start(&progress)?;
    let (outcome, id, wall) = match (args.toy, args.suite) {
        (true, _) => measured::<InsecureToy>(&plan, &progress)?,
        (false, SuiteKind::Ristretto255) if args.share_verifications => {
            measured::<SharedRistretto255>(&plan, &progress)?
        }
        (false, SuiteKind::Ristretto255) => measured::<Ristretto255>(&plan, &progress)?,
        (false, SuiteKind::Bls12381) => measured::<Bls12381G1>(&plan, &progress)?,
    };
    if args.output.json {
        print(&json(&plan, &pace, &outcome, (id, wall, args.share_verifications)));
    } else if !args.output.quiet {
        print(&table(&plan, &outcome, id, wall));
        if let Some(note) = note(&plan, &pace) {
            print(&note);
        }
        if args.share_verifications {
            print(
                "Checks that many drones make of the same bytes were computed once: no figure here is a drone's computing time.",
            );
        }
    }
    if outcome.violations.is_empty() {
        return Ok(Outcome::Passed);
    }
    complain(&format!("{} invariant(s) failed\n{}", outcome.violations.len(), outcome.violations.join("\n")));
    Ok(Outcome::Failed)
}

fn measured<S: QuorumSuite>(plan: &RunPlan, progress: &Progress) -> Result<(Run, &'static str, Duration)> {
    let start = measure::now();
    let mut bar: Option<(&'static str, Step)> = None;
    let mut show = |state: quiver_world::run::Progress| {
        if bar.as_ref().is_none_or(|(operation, _)| *operation != state.operation) {
            bar = Some((state.operation, progress.step(state.operation, state.of as usize)));
        }
        if let Some((_, step)) = &bar {
            step.done(state.done as usize);
        }
    };
    let outcome =
        quiver_world::run::run::<S>(plan, &mut show).map_err(|error| SimError::Usage(error.to_string()))?;
    Ok((outcome, S::ID, start.elapsed()))
}

/// How the radio set the pace of the run.
fn note(plan: &RunPlan, pace: &Pacing) -> Option<String> {
    let air = plan.air.as_ref()?.profile.preset();
    let depot = plan.depot.as_ref().map(|depot| depot.profile.preset());
    let ground = depot.unwrap_or(air);
    let mut note = format!(
        "Over {ground} drones enrolled one every {} and asked to join one every {}, as its channel carries it; times \
         count from the first.",
        seconds(pace.enrolment),
        seconds(pace.join),
    );
    if depot.is_some() {
        note += &format!(" That was at the depot; then all changed to {air}.");
    }
    Some(note)
}

fn seconds(duration: Duration) -> String {
    match duration.as_secs_f64() {
        long if long >= 1.0 => format!("{long:.2} s"),
        middle if middle >= 1e-3 => format!("{:.1} ms", middle * 1e3),
        short => format!("{:.0} µs", short * 1e6),
    }
}

fn table(plan: &RunPlan, outcome: &Run, id: &str, wall: Duration) -> String {
    let mut header = vec![
        "operation",
        "drones",
        "leader CPU",
        "all have it: p50",
        "p99",
        "max",
        "epochs",
        "messages",
        "bytes",
    ];
    if plan.air.is_some() {
        header.extend(["airtime", "frames", "repeated", "energy"]);
    }
    let table = grid(header.into_iter().map(String::from).collect(), outcome.rows.iter().map(cells));
    let quorum =
        if plan.kgcs > 1 { format!(", any {} of {} KGCs", plan.threshold, plan.kgcs) } else { String::new() };
    format!(
        "{} drones in virtual time{quorum}, {id}, seed {}\n{table}\n{} comparisons, {} steps; {:.1} s, peak memory {} MB",
        plan.drones,
        plan.seed,
        outcome.checks,
        outcome.steps,
        wall.as_secs_f64(),
        measure::peak_memory().unwrap_or_default() >> 20,
    )
}

fn cells(row: &Row) -> Vec<String> {
    let time = |pick: fn(&Percentiles) -> Duration| {
        row.to_all.as_ref().map_or_else(|| "–".into(), |all| seconds(pick(all)))
    };
    let mut cells = vec![
        row.operation.clone(),
        row.drones.to_string(),
        seconds(row.leader_cpu),
        time(|all| all.p50),
        time(|all| all.p99),
        time(|all| all.max),
        row.epochs.to_string(),
        row.messages.to_string(),
        row.bytes.to_string(),
    ];
    if let Some(radio) = &row.radio {
        cells.extend([
            seconds(radio.airtime),
            radio.frames.to_string(),
            radio.retransmissions.to_string(),
            format!("{:.3} J", radio.energy.joules()),
        ]);
    }
    cells
}

fn json(plan: &RunPlan, pace: &Pacing, outcome: &Run, (id, wall, shared): (&str, Duration, bool)) -> String {
    let radio = plan.air.as_ref().map(|air| air.profile.preset().to_string());
    let depot = plan.depot.as_ref().map(|air| air.profile.preset().to_string());
    let row = |row: &Row| {
        json!({
            "operation": row.operation,
            "drones": row.drones,
            "leader_cpu_seconds": row.leader_cpu.as_secs_f64(),
            "to_all_seconds": row.to_all.map(|all| json!({
                "p50": all.p50.as_secs_f64(), "p99": all.p99.as_secs_f64(), "max": all.max.as_secs_f64(),
            })),
            "epochs": row.epochs,
            "messages": row.messages,
            "bytes": row.bytes,
            "cpu_seconds": row.cpu.as_secs_f64(),
            "radio": row.radio.map(|radio| json!({
                "airtime_seconds": radio.airtime.as_secs_f64(),
                "frames": radio.frames,
                "retransmissions": radio.retransmissions,
                "energy_joules": radio.energy.joules(),
            })),
        })
    };
    json!({
        "world": "virtual",
        "suite": id,
        "shared_verifications": shared,
        "radio": radio,
        "depot": depot,
        "pace_seconds": { "enrolment": pace.enrolment.as_secs_f64(), "join": pace.join.as_secs_f64() },
        "drones": plan.drones,
        "kgcs": plan.kgcs,
        "threshold": plan.threshold,
        "seed": plan.seed,
        "rows": outcome.rows.iter().map(row).collect::<Vec<_>>(),
        "violations": outcome.violations,
        "comparisons": outcome.checks,
        "steps": outcome.steps,
        "wall_seconds": wall.as_secs_f64(),
        "peak_memory_bytes": measure::peak_memory(),
    })
    .to_string()
}
