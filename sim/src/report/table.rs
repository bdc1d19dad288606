//! The table for people.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

use super::{Operation, Outcome, Report};

const NOTHING: &str = "–";

pub(super) fn render(report: &Report) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header([
        "operation",
        "drones",
        "leader CPU",
        "all have it: p50",
        "p99",
        "max",
        "sent by leader",
    ]);
    for operation in &report.operations {
        table.add_row(row(operation));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{table}\n{}", title(report), footer(report))
}

fn row(operation: &Operation) -> Vec<Cell> {
    let spread = operation.spread();
    let latency = |pick: fn(&crate::measure::Spread) -> Duration| {
        spread.as_ref().map(pick).map_or_else(|| NOTHING.into(), duration)
    };
    vec![
        Cell::new(&operation.name),
        Cell::new(operation.drones),
        Cell::new(operation.leader_cpu.map_or_else(|| NOTHING.into(), duration)),
        Cell::new(latency(|s| s.p50)),
        Cell::new(latency(|s| s.p99)),
        Cell::new(duration(spread.map_or(operation.took, |s| s.max))),
        Cell::new(operation.leader_bytes.map_or_else(|| NOTHING.into(), bytes)),
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
    if plan.strict_paper {
        title.push_str(", algorithms as published");
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
        duration(report.wall),
        duration(report.kgc_cpu),
        report.peak_memory.map_or_else(|| "unknown".into(), bytes),
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
                let cpu = cpu.map_or_else(|| NOTHING.into(), duration);
                let memory = worker.peak_memory.map_or_else(|| "unknown".into(), bytes);
                let _ = write!(text, ", CPU {cpu}, peak memory {memory}");
            }
        }
    }
    let _ = write!(text, "\nKeys of this seed: {}", hex::encode(&report.keys_digest[..8]));
    text
}

/// With three significant digits and a unit.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 1.0 {
        significant(seconds, "s")
    } else if seconds >= 1e-3 {
        significant(seconds * 1e3, "ms")
    } else {
        significant(seconds * 1e6, "µs")
    }
}

/// Decimal multiples of a byte.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => significant(count as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => significant(count as f64 / 1e6, "MB"),
        _ => significant(count as f64 / 1e9, "GB"),
    }
}

fn significant(value: f64, unit: &str) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0} {unit}"),
        v if v >= 10.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn durations_and_sizes_have_units() {
        assert_eq!(duration(Duration::from_millis(1_234)), "1.23 s");
        assert_eq!(duration(Duration::from_secs(123)), "123 s");
        assert_eq!(duration(Duration::from_micros(12_340)), "12.3 ms");
        assert_eq!(duration(Duration::from_nanos(1_500)), "1.50 µs");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(12_345), "12.3 kB");
        assert_eq!(bytes(3_000_000_000), "3.00 GB");
    }

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
