//! Writes CSV tables of a run.

use std::time::Duration;

use quiver_report::csv;

use super::Report;
use crate::live::drone_name;

/// One line per operation; times in seconds.
pub(super) fn operations(report: &Report) -> String {
    let head = [
        "operation",
        "drones",
        "leader_cpu_s",
        "p50_s",
        "p99_s",
        "max_s",
        "took_s",
        "leader_bytes_sent",
        "epochs",
    ];
    let rows = report.operations.iter().map(|operation| {
        let spread = operation.spread();
        let optional = |time: Option<Duration>| time.map_or_else(String::new, seconds);
        [
            operation.name.clone(),
            operation.drones.to_string(),
            optional(operation.leader_cpu),
            optional(spread.map(|s| s.p50)),
            optional(spread.map(|s| s.p99)),
            optional(spread.map(|s| s.max)),
            seconds(operation.took),
            operation.leader_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
            operation.epochs.to_string(),
        ]
    });
    csv(head.map(String::from), rows)
}

/// One line per drone and operation; times in seconds.
pub(super) fn latencies(report: &Report) -> String {
    let rows = report.operations.iter().flat_map(|operation| {
        operation
            .latencies
            .iter()
            .map(|&(drone, latency)| [operation.name.clone(), drone_name(drone), seconds(latency)])
    });
    csv(["operation", "drone", "seconds"].map(String::from), rows)
}

fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    #[test]
    fn operations_leave_empty_what_does_not_apply() {
        let text = operations(&sample());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "enrol,2,,0.002000,0.004000,0.004000,0.005000,,0");
        assert_eq!(lines[2], "form,2,0.001500,0.020000,1.400000,1.400000,1.500000,12345,1");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn latencies_have_a_line_per_drone_and_operation() {
        let text = latencies(&sample());
        assert_eq!(text.lines().count(), 1 + 4);
        assert!(text.contains(&format!("form,{},1.400000", drone_name(1))), "{text}");
    }
}
