//! Writes CSV tables of a run.

use quiver_report::{csv, csv_of_records};

use super::RunReport;
use super::record::OperationRecord;
use crate::live::drone_name;

/// A line per operation.
pub(super) fn operations(report: &RunReport) -> String {
    csv_of_records(report.operations.iter().map(OperationRecord::from))
}

/// A line per drone and operation; times in seconds.
pub(super) fn latencies(report: &RunReport) -> String {
    let rows = report.operations.iter().flat_map(|operation| {
        let row = |(drone, latency): &(u32, std::time::Duration)| {
            [operation.name(), drone_name(*drone), format!("{:.6}", latency.as_secs_f64())]
        };
        operation.latencies.iter().map(row)
    });
    csv(["operation", "drone", "seconds"].map(String::from), rows)
}

/// A line per sample of the resident memory.
pub(super) fn memory(report: &RunReport) -> String {
    let rows = report.memory.iter();
    let rows = rows.map(|(at, bytes)| [format!("{:.3}", at.as_secs_f64()), bytes.to_string()]);
    csv(["seconds", "bytes"].map(String::from), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn operations_leave_empty_what_does_not_apply() {
        let text = operations(&sample());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "enrol,enrol,2,,0.002,0.004,0.004,0.0,0.005,,0,,,,,,,,");
        assert_eq!(lines[2], "form group,form group,2,0.0015,0.02,1.4,1.4,0.0,1.5,12345,1,,,,,,,,");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn latencies_have_a_line_per_drone_and_operation() {
        let text = latencies(&sample());
        assert_eq!(text.lines().count(), 1 + 4);
        assert!(text.contains(&format!("form group,{},1.400000", drone_name(1))), "{text}");
    }
}
