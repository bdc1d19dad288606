//! Draws the table of a run for people.

use std::fmt::Write as _;
use std::time::Duration;

use quiver_kem::KemSetting;
use quiver_report::{Unit, counted, grid};
use quiver_world::WorldSuite;
use quiver_world::run::{KeptFactors, Pairs, PhaseCosts};

use super::{RunOutcome, RunReport};
use crate::plan::WorldKind;

const NOTHING: &str = "–";

const HEAD: [&str; 14] = [
    "operation",
    "drones",
    "leader CPU",
    "all have it: p50",
    "p99",
    "max",
    "sent by leader",
    "messages",
    "bytes at receivers",
    "bytes on air",
    "airtime",
    "frames",
    "repeated",
    "energy",
];
/// Columns of [`HEAD`] that every table has.
const ALWAYS: usize = 6;

pub(super) fn render(report: &RunReport) -> String {
    let rows: Vec<Vec<String>> = report.operations.iter().map(row).collect();
    // A quantity that the world does not measure has no column.
    let shown = |column: &usize| column < &ALWAYS || rows.iter().any(|row| row[*column] != NOTHING);
    let columns: Vec<usize> = (0..HEAD.len()).filter(shown).collect();
    let head: Vec<String> = columns.iter().map(|column| HEAD[*column].to_string()).collect();
    let rows = rows.iter().map(|row| columns.iter().map(|column| row[*column].clone()).collect());
    format!("{}\n{}\n{}", title(report), grid(head, rows), footer(report))
}

fn row(operation: &PhaseCosts) -> Vec<String> {
    let (to_all, radio) = (operation.to_all, operation.radio);
    let time = |time: Option<Duration>| time.map_or_else(|| NOTHING.into(), Unit::duration);
    let size = |count: Option<u64>| count.map_or_else(|| NOTHING.into(), Unit::bytes);
    let count = |count: Option<u64>| count.map_or_else(|| NOTHING.into(), |count| count.to_string());
    vec![
        operation.name(),
        operation.drones.to_string(),
        time(operation.leader_cpu),
        time(to_all.map(|all| all.p50)),
        time(to_all.map(|all| all.p99)),
        Unit::duration(to_all.map_or(operation.took, |all| all.max)),
        size(operation.leader_bytes),
        count(operation.messages),
        size(operation.receiver_bytes),
        size(operation.air_bytes),
        time(radio.map(|radio| radio.airtime)),
        count(radio.map(|radio| radio.frames)),
        count(radio.map(|radio| radio.retransmissions)),
        radio.map_or_else(|| NOTHING.into(), |radio| format!("{:.3} J", radio.energy.joules())),
    ]
}

pub(super) fn title(report: &RunReport) -> String {
    let plan = &report.plan;
    let mut title = counted(plan.drones, "drone") + " ";
    let _ = match (plan.world, &plan.radio, &plan.depot) {
        (WorldKind::Live, _, _) => write!(title, "over {}", plan.transport.name()),
        (WorldKind::Virtual, None, _) => write!(title, "in virtual time"),
        (WorldKind::Virtual, Some(radio), None) => write!(title, "in virtual time over {radio}"),
        (WorldKind::Virtual, Some(radio), Some(depot)) => {
            write!(title, "in virtual time over {radio}, from a depot with {depot}")
        }
    };
    let suite = if plan.toy { WorldSuite::Toy } else { WorldSuite::Ristretto255 };
    let _ = write!(title, ", suite {suite}, strategy {}, seed {}", plan.strategy, plan.seed);
    if let Some(set) = plan.kem.set() {
        let _ = write!(title, ", {set}");
    }
    if plan.kgcs > 1 {
        let _ = write!(title, ", any {} of {} KGCs", plan.threshold, plan.kgcs);
    }
    title
}

/// Says how many members share a second factor with the leader, and which and how old it is.
pub(super) fn pairs_text(pairs: &Pairs, kem: KemSetting) -> String {
    let Pairs { hybrid, classical, kept } = pairs;
    let kept = kept.map(|KeptFactors { terms, youngest_s, oldest_s }| {
        let age = if youngest_s == oldest_s {
            format!("{oldest_s} s old")
        } else {
            format!("{youngest_s} to {oldest_s} s old")
        };
        format!(" ({kem}, term {terms}, {age})")
    });
    let kept = kept.unwrap_or_default();
    format!("Members that share a second factor with the leader: {hybrid}{kept}; that do not: {classical}")
}

fn footer(report: &RunReport) -> String {
    let machine = &report.machine;
    let mut text = match report.outcome() {
        RunOutcome::Passed => format!("All {} checks passed", report.checks),
        RunOutcome::Failed => format!("FAILED: {}", report.failed()),
        RunOutcome::Interrupted => {
            let finished = counted(report.operations.len() as u64, "operation");
            format!("INTERRUPTED after {finished}; all {} checks until then passed", report.checks)
        }
    };
    let _ = write!(text, " in {}", Unit::duration(report.wall));
    if let Some(steps) = report.steps {
        let _ = write!(text, " and {}", counted(steps, "step"));
    }
    if let Some(cpu) = report.kgc_cpu {
        let _ = write!(text, "; KGC CPU {}", Unit::duration(cpu));
    }
    let _ = write!(
        text,
        "; peak memory {}\n{}, {}, {}{}",
        report.peak_memory.map_or_else(|| "unknown".into(), Unit::bytes),
        machine.cpu,
        counted(machine.cores as u64, "core"),
        machine.system,
        if machine.optimised { "" } else { " (built without optimisation: times mean nothing)" },
    );
    if let Some(pairs) = &report.pairs {
        let _ = write!(text, "\n{}", pairs_text(pairs, report.plan.kem));
    }
    for (offence, count) in &report.offences {
        let _ = write!(text, "\n{count} × {offence}");
    }
    for worker in &report.workers {
        let _ = write!(text, "\n{}: {}", worker.who, counted(worker.drones as u64, "drone"));
        match (&worker.lost, worker.cpu) {
            (Some(why), _) => {
                let _ = write!(text, ", LOST: {why}");
            }
            (None, cpu) => {
                let cpu = cpu.map_or_else(|| NOTHING.into(), Unit::duration);
                let memory = worker.peak_memory.map_or_else(|| "unknown".into(), Unit::bytes);
                let _ = write!(text, ", CPU {cpu}, peak memory {memory}");
            }
        }
    }
    if let Some(digest) = &report.keys_digest {
        let _ = write!(text, "\nKeys of this seed: {}", hex::encode(&digest[..8]));
    }
    for note in &report.notes {
        let _ = write!(text, "\n{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn table_has_a_row_per_operation_and_marks_what_does_not_apply() {
        let text = render(&sample());
        let enrol = text.lines().find(|line| line.contains("enrol")).unwrap();
        assert!(enrol.contains(NOTHING) && enrol.contains("4.00 ms"), "{enrol}");
        let form = text.lines().find(|line| line.contains("form")).unwrap();
        assert!(form.contains("1.50 ms") && form.contains("12.3 kB") && form.contains("1.40 s"), "{form}");
        assert!(text.contains("All 7 checks passed in 3.00 s"), "{text}");
        assert!(text.contains("Test CPU, 2 cores"), "{text}");
    }
}
