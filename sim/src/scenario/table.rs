//! The table for people.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};
use quiver_world::radio::{Spread, Summary};

use super::ScenarioReport;
use crate::report::Outcome;
use crate::report::table::{bytes, duration};

pub(super) fn render(report: &ScenarioReport) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    let ledger = &report.played.ledger;
    let (drones, rekeys) = (ledger.per_drone(), ledger.per_rekey());
    table.set_header([
        String::new(),
        format!("per drone ({}): mean", drones.count),
        "p99".into(),
        "max".into(),
        format!("per re-key ({}): mean", rekeys.count),
        "p99".into(),
        "max".into(),
    ]);
    for (name, cells) in rows(&drones).into_iter().zip(rows(&rekeys)).map(|(a, b)| (a.0, [a.1, b.1].concat()))
    {
        let mut row = vec![Cell::new(name)];
        row.extend(cells.into_iter().map(Cell::new));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{table}\n{}", head(report), foot(report))
}

/// Name and mean, 99th percentile and maximum of each quantity.
fn rows(summary: &Summary) -> [(&'static str, Vec<String>); 7] {
    [
        ("airtime", shown(&summary.airtime, |time| duration(*time))),
        ("frames", shown(&summary.frames, u64::to_string)),
        ("retransmissions", shown(&summary.retransmissions, u64::to_string)),
        ("bytes on air", shown(&summary.bytes, |count| bytes(*count))),
        ("radio energy", shown(&summary.radio, ToString::to_string)),
        ("CPU energy", shown(&summary.computing, ToString::to_string)),
        ("energy", shown(&summary.energy, ToString::to_string)),
    ]
}

fn shown<T>(spread: &Spread<T>, show: impl Fn(&T) -> String) -> Vec<String> {
    [&spread.mean, &spread.p99, &spread.max].map(show).to_vec()
}

fn head(report: &ScenarioReport) -> String {
    let scenario = &report.scenario;
    let strategy = match scenario.strategy {
        quiver_ainq::StrategyKind::Flat => "flat",
        quiver_ainq::StrategyKind::Tree => "tree",
    };
    format!(
        "{}\n{}\n{} drones and {} leader{} over {}, strategy {strategy}, suite {}, seed {}",
        scenario.title,
        scenario.about,
        scenario.edges(),
        scenario.leaders,
        if scenario.leaders == 1 { "" } else { "s" },
        scenario.radio.preset,
        report.suite,
        scenario.seed
    )
}

fn foot(report: &ScenarioReport) -> String {
    let played = &report.played;
    let (tally, infrastructure) = (&played.tally, played.ledger.infrastructure());
    let mut text = match report.outcome() {
        Outcome::Passed => format!("All {} checks passed", played.checks),
        Outcome::Failed => format!("{} FAILED", played.violations.len() + played.unmet.len()),
    };
    let _ = write!(
        text,
        "; {} steps, {} of virtual time in {} of CPU time; of one mind {} after the last fault\n\
         {} terms, {} epochs, {} members; {} messages, {} lost; {} crashes, {} refused writes, {} complaints\n\
         Channel in use {}; leaders and KGC sent {} frames and {} retransmissions in {}\n\
         Trace of this seed: {}",
        played.steps,
        duration(played.lived),
        duration(report.cpu),
        duration(played.settled),
        tally.terms,
        tally.epochs,
        tally.members.len(),
        played.traffic.sent,
        tally.lost,
        tally.crashes,
        tally.stalls,
        tally.blamed,
        duration(played.channel),
        infrastructure.frames,
        infrastructure.retransmissions,
        duration(infrastructure.airtime),
        hex::encode(&played.trace[..8]),
    );
    text
}
