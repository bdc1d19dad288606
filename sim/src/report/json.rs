//! The summary as one JSON object.

use std::collections::BTreeMap;

use quiver_report::Machine;
use serde::Serialize;

use super::{Operation, Outcome, Report, WorkerReport};
use crate::live::checks::Violation;
use crate::plan::Plan;

#[derive(Serialize)]
struct Summary<'a> {
    version: &'static str,
    started: String,
    plan: &'a Plan,
    machine: &'a Machine,
    passed: bool,
    checks: u64,
    violations: &'a [Violation],
    offences: &'a BTreeMap<String, u64>,
    operations: Vec<Line<'a>>,
    workers: &'a [WorkerReport],
    kgc_cpu_s: f64,
    wall_s: f64,
    peak_memory_bytes: Option<u64>,
    keys_digest: String,
    choices_digest: String,
}

#[derive(Serialize)]
struct Line<'a> {
    operation: &'a str,
    drones: usize,
    leader_cpu_s: Option<f64>,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
    took_s: f64,
    leader_bytes_sent: Option<u64>,
    epochs: usize,
}

impl<'a> From<&'a Operation> for Line<'a> {
    fn from(operation: &'a Operation) -> Self {
        let spread = operation.spread();
        Self {
            operation: &operation.name,
            drones: operation.drones,
            leader_cpu_s: operation.leader_cpu.map(|time| time.as_secs_f64()),
            p50_s: spread.map(|s| s.p50.as_secs_f64()),
            p99_s: spread.map(|s| s.p99.as_secs_f64()),
            max_s: spread.map(|s| s.max.as_secs_f64()),
            took_s: operation.took.as_secs_f64(),
            leader_bytes_sent: operation.leader_bytes,
            epochs: operation.epochs,
        }
    }
}

pub(super) fn render(report: &Report) -> String {
    let summary = Summary {
        version: env!("CARGO_PKG_VERSION"),
        started: humantime::format_rfc3339_seconds(report.started).to_string(),
        plan: &report.plan,
        machine: &report.machine,
        passed: report.outcome() == Outcome::Passed,
        checks: report.checks,
        violations: &report.violations,
        offences: &report.offences,
        operations: report.operations.iter().map(Line::from).collect(),
        workers: &report.workers,
        kgc_cpu_s: report.kgc_cpu.as_secs_f64(),
        wall_s: report.wall.as_secs_f64(),
        peak_memory_bytes: report.peak_memory,
        keys_digest: hex::encode(report.keys_digest),
        choices_digest: hex::encode(report.choices_digest),
    };
    // Plain data with string keys: serialising it cannot fail.
    serde_json::to_string_pretty(&summary).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn summary_parses_and_says_what_happened() {
        let value: serde_json::Value = serde_json::from_str(&render(&sample())).unwrap();
        assert_eq!(value["passed"], true);
        assert_eq!(value["plan"]["drones"], 2);
        assert_eq!(value["plan"]["transport"], "memory");
        assert_eq!(value["operations"][1]["leader_bytes_sent"], 12_345);
        assert_eq!(value["operations"][0]["leader_cpu_s"], serde_json::Value::Null);
        assert_eq!(value["peak_memory_bytes"], 73 << 20);
    }
}
