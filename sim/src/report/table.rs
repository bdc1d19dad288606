//! The table for people.

use std::fmt::Write as _;
use std::time::Duration;

use quiver_report::{Unit, grid};

use super::{Operation, Outcome, Report};

const NOTHING: &str = "–";

pub(super) fn render(report: &Report) -> String {
    let head = ["operation", "drones", "leader CPU", "all have it: p50", "p99", "max", "sent by leader"];
    let rows = report.operations.iter().map(row);
    format!("{}\n{}\n{}", title(report), grid(head.map(String::from).to_vec(), rows), footer(report))
}

fn row(operation: &Operation) -> Vec<String> {
    let spread = operation.spread();
    let latency = |pick: fn(&crate::measure::Spread) -> Duration| {
        spread.as_ref().map(pick).map_or_else(|| NOTHING.into(), Unit::duration)
    };
    vec![
        operation.name.clone(),
        operation.drones.to_string(),
        operation.leader_cpu.map_or_else(|| NOTHING.into(), Unit::duration),
        latency(|s| s.p50),
        latency(|s| s.p99),
        Unit::duration(spread.map_or(operation.took, |s| s.max)),
        operation.leader_bytes.map_or_else(|| NOTHING.into(), Unit::bytes),
    ]
}

fn title(report: &Report) -> String {
    let plan = &report.plan;
    let mut title = format!(
        "{} drones over {}, suite {}, strategy {}, seed {}",
        plan.drones,
        value_name(&plan.transport),
        value_name(&plan.suite),
        value_name(&plan.strategy),
        plan.seed
    );
    if plan.kgcs > 1 {
        let _ = write!(title, ", any {} of {} KGCs", plan.threshold, plan.kgcs);
    }
    title
}

fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |name| name.get_name().to_string())
}

fn footer(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "{} in {}; KGC CPU {}; peak memory {}\n{}, {} cores, {}{}",
        match report.outcome() {
            Outcome::Passed => format!("All {} checks passed", report.checks),
            Outcome::Failed if report.violations.is_empty() => "FAILED: a worker is lost".into(),
            Outcome::Failed => format!("{} of the invariants FAILED", report.violations.len()),
        },
        Unit::duration(report.wall),
        Unit::duration(report.kgc_cpu),
        report.peak_memory.map_or_else(|| "unknown".into(), Unit::bytes),
        machine.cpu,
        machine.cores,
        machine.system,
        if machine.optimised { "" } else { " (built without optimisation: times mean nothing)" },
    );
    for (offence, count) in &report.offences {
        let _ = write!(text, "\n{count} × {offence}");
    }
    for worker in &report.workers {
        let _ = write!(text, "\n{}: {} drones", worker.who, worker.drones);
        match (&worker.crashed, worker.cpu) {
            (Some(why), _) => {
                let _ = write!(text, ", CRASHED: {why}");
            }
            (None, cpu) => {
                let cpu = cpu.map_or_else(|| NOTHING.into(), Unit::duration);
                let memory = worker.peak_memory.map_or_else(|| "unknown".into(), Unit::bytes);
                let _ = write!(text, ", CPU {cpu}, peak memory {memory}");
            }
        }
    }
    let _ = write!(text, "\nKeys of this seed: {}", hex::encode(&report.keys_digest[..8]));
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
