//! Fills the report of a scenario to look at: costs of drones and re-keys, and what came of it.

use quiver_report::{Bar, CellValue, Column, Experiment, Report, Table, Unit};

use super::{ScenarioReport, csv, table};
use crate::report::RunOutcome;

/// The most re-keys that a page lists.
const MOST: usize = 500;

pub(super) fn report(report: &ScenarioReport) -> Report {
    let run = &report.run;
    let outcome = match report.outcome() {
        RunOutcome::Passed => {
            format!("Passed: all {} checks held, and every expectation was met.", run.checks)
        }
        RunOutcome::Failed => format!("FAILED: {}", report.failures()),
        RunOutcome::Interrupted => {
            format!(
                "INTERRUPTED: all {} checks held until then; expectations were not looked at.",
                run.checks
            )
        }
    };
    let facts = Experiment {
        slug: "outcome".into(),
        title: "What came of it".into(),
        about: table::remarks(report),
        ..Experiment::default()
    };
    Report {
        slug: "scenario".into(),
        title: report.scenario.title.clone(),
        lead: [outcome, report.scenario.about.clone(), table::setting(report)]
            .into_iter()
            .filter(|paragraph| !paragraph.is_empty())
            .collect(),
        highlights: Vec::new(),
        experiments: vec![facts, costs(report), rekeys(report)],
        sources: Vec::new(),
        machine: quiver_report::Machine::here(),
        date: report.started,
        version: env!("CARGO_PKG_VERSION").into(),
        command: report.command.clone(),
        passed: report.outcome().passed(),
        files: ["summary.json", "drones.csv", "rekeys.csv"].map(String::from).into(),
    }
}

/// Costs per drone and per re-key.
fn costs(report: &ScenarioReport) -> Experiment {
    let ledger = &report.run.ledger;
    let summaries = [("drone", ledger.per_drone()), ("re-key", ledger.per_rekey())];
    let tables = summaries.into_iter().map(|(of, summary)| {
        let columns = ["mean", "p99", "max"].map(|name| Column::text(name, name));
        let columns = std::iter::once(Column::text("quantity", "quantity")).chain(columns).collect();
        let caption = format!("Costs per {of} ({})", summary.count);
        let mut table = Table::new(&format!("per-{of}"), &caption, columns);
        for (name, figures) in table::rows(&summary) {
            let figures = figures.iter().map(|figure| CellValue::from(figure.as_str()));
            table.push(std::iter::once(CellValue::from(name)).chain(figures).collect());
        }
        table
    });
    Experiment {
        slug: "costs".into(),
        title: "Costs".into(),
        tables: tables.collect(),
        ..Experiment::default()
    }
}

/// Each re-key with its costs for all nodes together.
fn rekeys(report: &ScenarioReport) -> Experiment {
    let columns = vec![
        Column::new("at_seconds", "made at", Unit::Seconds),
        Column::text("key", "key"),
        Column::new("airtime_seconds", "airtime", Unit::Seconds).with_bar(Bar::FromZero),
        Column::new("frames", "frames", Unit::Count).with_bar(Bar::FromZero),
        Column::new("air_bytes", "bytes on air", Unit::Bytes).with_bar(Bar::FromZero),
    ];
    let mut table = Table::new("rekeys", "Costs of each re-key, for all nodes together", columns);
    let run = &report.run;
    let made = csv::times(run);
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let count = |number: u64| CellValue::from(number as f64);
    for (number, account) in run.ledger.rekeys().take(MOST) {
        let at = made.get(&number).map(|(at, _)| at.as_secs_f64());
        let key =
            made.get(&number).map_or_else(String::new, |(_, key)| format!("{}.{}", key.term, key.counter));
        table.push(vec![
            at.into(),
            key.as_str().into(),
            account.airtime.as_secs_f64().into(),
            count(account.frames),
            count(account.bytes),
        ]);
    }
    let left_out = run.ledger.rekeys().len().saturating_sub(MOST);
    if left_out > 0 {
        table.notes.push(format!("{left_out} further ones are in rekeys.csv."));
    }
    Experiment {
        slug: "rekeys".into(),
        title: "Re-keys".into(),
        tables: vec![table],
        ..Experiment::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::tests::sample;

    #[test]
    fn page_has_outcome_costs_and_rekeys_and_fetches_nothing() {
        let page = super::report(&sample()).page().unwrap();
        for shown in
            ["Sample", "Passed", "Costs per drone (5)", "airtime", "by the end of the script", "rekeys.csv"]
        {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        for absent in ["<script", "<link", "src=", "@import", "url("] {
            assert!(!page.contains(absent), "{absent}");
        }
    }

    #[test]
    fn page_of_a_scenario_that_failed_says_why() {
        let mut report = sample();
        report.run.unmet.push("3 drones hold the newest key, not 4".into());
        let page = super::report(&report).page().unwrap();
        assert!(page.contains("FAILED") && page.contains("3 drones hold"), "{page}");
    }
}
