//! Fills the report of a run to look at: time line, latencies, costs of the leader, memory.

use std::time::Duration;

use quiver_report::{
    Axis, Bar, CellValue, Column, Experiment, Highlight, Ink, Panel, Plot, Report, Series, Table, Unit,
};
use quiver_world::run::{Phase, PhaseCosts};

use super::{RunOutcome, RunReport, table};
use crate::plan::WorldKind;

/// Points of a curve.
const POINTS: usize = 40;

pub(super) fn report(run: &RunReport) -> Report {
    let mut files: Vec<String> = ["summary.json", "operations.csv", "memory.csv"].map(String::from).into();
    if run.operations.iter().any(|operation| !operation.latencies.is_empty()) {
        files.push("latencies.csv".into());
    }
    let experiments = [timeline(run), latencies(run), costs(run), memory(run)];
    Report {
        slug: "run".into(),
        title: table::title(run),
        lead: [outcome(run)]
            .into_iter()
            .chain(run.pairs.map(|pairs| table::pairs_text(&pairs, run.plan.kem)))
            .collect(),
        highlights: highlights(run),
        experiments: experiments.into_iter().flatten().collect(),
        sources: Vec::new(),
        machine: run.machine.clone(),
        date: run.started,
        version: env!("CARGO_PKG_VERSION").into(),
        command: run.command.clone(),
        passed: run.outcome().passed(),
        files,
    }
}

fn outcome(run: &RunReport) -> String {
    match run.outcome() {
        RunOutcome::Passed => {
            format!(
                "Passed: after every operation the key of every drone was compared; all {} checks passed.",
                run.checks
            )
        }
        RunOutcome::Failed => format!("FAILED: {}", run.failures()),
        RunOutcome::Interrupted => format!(
            "Interrupted: the figures are of the operations that were finished; all {} checks until then passed.",
            run.checks
        ),
    }
}

fn highlights(run: &RunReport) -> Vec<Highlight> {
    let slowest = |operation: &PhaseCosts| operation.to_all.map(|all| all.max);
    let of_phase = |phase| run.operations.iter().find(move |operation| operation.phase == phase);
    let reached = [Phase::Form, Phase::Rekey, Phase::Expiry].map(of_phase);
    let reached = reached.into_iter().flatten().filter_map(|operation| {
        Some(Highlight {
            what: format!("{}: the last drone has the key after", operation.name()),
            figure: Unit::duration(slowest(operation)?),
            beside: operation
                .leader_cpu
                .map_or_else(String::new, |cpu| format!("{} CPU time of the leader", Unit::duration(cpu))),
        })
    });
    let peak = run.peak_memory.map(|bytes| Highlight {
        what: "Peak memory".into(),
        figure: Unit::bytes(bytes),
        beside: format!("of the whole process, which took {}", Unit::duration(run.wall)),
    });
    reached.chain(peak).collect()
}

/// Operations as spans of time.
fn timeline(run: &RunReport) -> Option<Experiment> {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("drones", "drones", Unit::Count),
        Column::new("began_seconds", "began", Unit::Seconds),
        Column::new("took_seconds", "took", Unit::Seconds).with_bar(Bar::From("began_seconds".into())),
    ];
    let mut table = Table::new("timeline", "Operations, from the beginning of the run", columns);
    for operation in &run.operations {
        let (began, took) = (operation.began.as_secs_f64(), operation.took.as_secs_f64());
        table.push(vec![
            operation.name().as_str().into(),
            operation.drones.into(),
            began.into(),
            took.into(),
        ]);
    }
    let clock = match run.plan.world {
        WorldKind::Live => "Times are of a wall clock; checks between operations take time, too.",
        WorldKind::Virtual => "Times are of the virtual world.",
    };
    table.notes.push(clock.into());
    table.notes.extend(run.notes.iter().cloned());
    (!run.operations.is_empty()).then(|| Experiment {
        slug: "timeline".into(),
        title: "Time line".into(),
        tables: vec![table],
        ..Experiment::default()
    })
}

/// Shares of the drones that had the result of an operation, over time.
fn latencies(run: &RunReport) -> Option<Experiment> {
    let panels: Vec<Panel> = run
        .operations
        .iter()
        .filter(|operation| !operation.latencies.is_empty())
        .map(|operation| Panel {
            title: operation.name(),
            series: vec![Series::new("drones that have it", Ink::Flat, distribution(&operation.latencies))],
        })
        .collect();
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("p50_seconds", "half of the drones", Unit::Seconds).with_bar(Bar::FromZero),
        Column::new("p99_seconds", "99 %", Unit::Seconds).with_bar(Bar::FromZero),
        Column::new("max_seconds", "all", Unit::Seconds).with_bar(Bar::FromZero),
    ];
    let mut table = Table::new("latencies", "Time until so many drones had the result", columns);
    for operation in &run.operations {
        if let Some(all) = operation.to_all {
            let times = [all.p50, all.p99, all.max].map(|time| CellValue::from(time.as_secs_f64()));
            table.push([operation.name().as_str().into()].into_iter().chain(times).collect());
        }
    }
    let plot = Plot {
        slug: "distribution".into(),
        caption: "Share of the drones that had the result of each operation, over the time since it began."
            .into(),
        x: Axis::log("time", Unit::Seconds),
        y: Axis::linear("drones, in percent", Unit::Count),
        panels,
    };
    (!table.rows.is_empty()).then(|| Experiment {
        slug: "latencies".into(),
        title: "Latencies".into(),
        plots: (!plot.panels.is_empty()).then_some(plot).into_iter().collect(),
        tables: vec![table],
        ..Experiment::default()
    })
}

/// Distribution in at most [`POINTS`] points: time, percent of the drones that had the result by then.
fn distribution(latencies: &[(u32, Duration)]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = latencies.iter().map(|(_, latency)| latency.as_secs_f64()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let steps = POINTS.min(sorted.len());
    (1..=steps)
        .filter_map(|step| {
            let rank = (sorted.len() * step).div_ceil(steps);
            #[expect(clippy::cast_precision_loss, reason = "numbers of drones are far below 2^52")]
            let percent = 100.0 * rank as f64 / sorted.len() as f64;
            Some((*sorted.get(rank - 1)?, percent))
        })
        .collect()
}

/// CPU time and bytes of the leader; messages, frames and energy where the world measures them.
fn costs(run: &RunReport) -> Option<Experiment> {
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("leader_cpu_seconds", "CPU time of the leader", Unit::Seconds).with_bar(Bar::FromZero),
        Column::new("leader_bytes", "sent by the leader", Unit::Bytes).with_bar(Bar::FromZero),
        Column::new("messages", "messages of all", Unit::Count).with_bar(Bar::FromZero),
        Column::new("receiver_bytes", "bytes at receivers", Unit::Bytes).with_bar(Bar::FromZero),
        Column::new("air_bytes", "bytes on air", Unit::Bytes).with_bar(Bar::FromZero),
        Column::new("airtime_seconds", "airtime", Unit::Seconds).with_bar(Bar::FromZero),
    ];
    let mut table = Table::new("costs", "Costs by operation", columns);
    if run.operations.iter().any(|operation| operation.receiver_bytes.is_some()) {
        table.notes.push(
            "At receivers a broadcast counts once for each of them; on air it counts once, with headers, parity and \
             repetitions."
                .into(),
        );
    }
    for operation in &run.operations {
        table.push(vec![
            operation.name().as_str().into(),
            operation.leader_cpu.map(|cpu| cpu.as_secs_f64()).into(),
            count(operation.leader_bytes),
            count(operation.messages),
            count(operation.receiver_bytes),
            count(operation.air_bytes),
            operation.radio.map(|radio| radio.airtime.as_secs_f64()).into(),
        ]);
    }
    // A quantity that the world does not measure has no column.
    let missing = |column: usize| table.rows.iter().all(|row| row[column] == CellValue::Missing);
    let kept: Vec<bool> = (0..table.columns.len()).map(|column| !missing(column)).collect();
    let mut keep = kept.iter();
    table.columns.retain(|_| keep.next() == Some(&true));
    for row in &mut table.rows {
        let mut keep = kept.iter();
        row.retain(|_| keep.next() == Some(&true));
    }
    (table.columns.len() > 1).then(|| Experiment {
        slug: "costs".into(),
        title: "Costs".into(),
        tables: vec![table],
        ..Experiment::default()
    })
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn count(number: Option<u64>) -> CellValue {
    number.map(|number| number as f64).into()
}

fn memory(run: &RunReport) -> Option<Experiment> {
    #[expect(clippy::cast_precision_loss, reason = "a drawing is not that exact")]
    let point = |(at, bytes): &(Duration, u64)| (at.as_secs_f64(), *bytes as f64);
    // As many points as can be told apart.
    let step = run.memory.len().div_ceil(POINTS).max(1);
    let points: Vec<(f64, f64)> = run.memory.iter().step_by(step).map(point).collect();
    let series = vec![Series::new("resident memory", Ink::Tree, points)];
    let axes = (Axis::linear("time since the start", Unit::Seconds), Axis::linear("memory", Unit::Bytes));
    (!run.memory.is_empty()).then(|| Experiment {
        slug: "memory".into(),
        title: "Memory".into(),
        plots: vec![Plot::single("memory", "Resident memory of the process.", axes.0, axes.1, series)],
        ..Experiment::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PAGE;
    use crate::report::tests::sample;

    #[test]
    fn page_shows_each_operation_with_its_figures_and_its_bar() {
        let page = report(&sample()).page().unwrap();
        for shown in
            ["enrol", "form group", "1.40 s", "12.3 kB", "1.50 ms", "class=\"bar\"", "<svg", "Passed"]
        {
            assert!(page.contains(shown), "{shown}");
        }
        // Nothing is fetched, nothing is executed.
        for absent in ["<script", "<link", "src=", "@import", "url("] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert!(!page.contains(PAGE), "a page does not name itself among the files beside it");
    }

    #[test]
    fn page_of_a_failed_run_says_so() {
        let mut run = sample();
        run.violations.push(quiver_world::run::RunViolation {
            invariant: quiver_world::Invariant::Agreement,
            step: "form".into(),
            drones: vec!["drone-00001".into()],
            detail: "holds another key than the leader".into(),
        });
        let page = report(&run).page().unwrap();
        assert!(page.contains("FAILED") && page.contains("drone-00001"), "{page}");
    }

    #[test]
    fn run_without_operations_has_a_page_too() {
        let run = RunReport { operations: Vec::new(), memory: Vec::new(), ..sample() };
        report(&run).page().unwrap();
    }

    #[test]
    fn distribution_ends_with_all_drones_at_the_slowest() {
        let latencies: Vec<(u32, Duration)> =
            (0..1000).map(|drone| (drone, Duration::from_millis(u64::from(1000 - drone)))).collect();
        let points = distribution(&latencies);
        assert_eq!(points.len(), POINTS);
        assert_eq!((points[0], points[POINTS - 1]), ((0.025, 2.5), (1.0, 100.0)));
        assert_eq!(distribution(&latencies[..1]), [(1.0, 100.0)]);
        assert!(distribution(&[]).is_empty());
    }
}
