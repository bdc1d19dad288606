//! Writes the summary of a run as one JSON object.

use std::collections::BTreeMap;

use quiver_report::Machine;
use quiver_world::run::{Pairs, RunViolation};
use serde::Serialize;

use super::record::OperationRecord;
use super::{RunReport, WorkerReport};
use crate::plan::Plan;

#[derive(Serialize)]
struct Summary<'a> {
    version: &'static str,
    title: String,
    command: &'a str,
    started: String,
    plan: &'a Plan,
    machine: &'a Machine,
    passed: Option<bool>,
    interrupted: bool,
    pairs: Option<Pairs>,
    checks: u64,
    steps: Option<u64>,
    violations: &'a [RunViolation],
    offences: &'a BTreeMap<String, u64>,
    operations: Vec<OperationRecord>,
    workers: &'a [WorkerReport],
    notes: &'a [String],
    kgc_cpu_s: Option<f64>,
    wall_s: f64,
    peak_memory_bytes: Option<u64>,
    keys_digest: Option<String>,
    choices_digest: Option<String>,
}

pub(super) fn render(report: &RunReport) -> String {
    let summary = Summary {
        version: env!("CARGO_PKG_VERSION"),
        title: report.title(),
        command: &report.command,
        started: humantime::format_rfc3339_seconds(report.started).to_string(),
        plan: &report.plan,
        machine: &report.machine,
        passed: report.outcome().passed(),
        interrupted: report.interrupted,
        pairs: report.pairs,
        checks: report.checks,
        steps: report.steps,
        violations: &report.violations,
        offences: &report.offences,
        operations: report.operations.iter().map(OperationRecord::from).collect(),
        workers: &report.workers,
        notes: &report.notes,
        kgc_cpu_s: report.kgc_cpu.map(|cpu| cpu.as_secs_f64()),
        wall_s: report.wall.as_secs_f64(),
        peak_memory_bytes: report.peak_memory,
        keys_digest: report.keys_digest.map(hex::encode),
        choices_digest: report.choices_digest.map(hex::encode),
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
        assert_eq!(value["machine"]["commit"], "0123456789abcdef");
        assert_eq!(value["plan"]["drones"], 2);
        assert_eq!(value["plan"]["kem"], "none");
        assert_eq!(value["pairs"]["hybrid"], 2);
        assert_eq!(value["pairs"]["kept"]["oldest_s"], 65);
        assert_eq!(value["plan"]["transport"], "memory");
        assert_eq!(value["operations"][1]["leader_bytes_sent"], 12_345);
        assert_eq!(value["operations"][0]["leader_cpu_s"], serde_json::Value::Null);
        assert_eq!(value["peak_memory_bytes"], 73 << 20);
    }
}
