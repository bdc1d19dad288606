//! Computes what goes over the link, and how long a run takes with it.

use quiver_report::{CellValue, Column, Experiment, Table, Unit};

use super::exchange::{ExchangeTimings, size};
use super::geolocation::Fence;
use super::measured::MeasuredRuns;
use super::plan::AbkePlan;
use super::published::ExchangeSide;
use super::summary::method;

pub(super) fn experiment(plan: &AbkePlan, exchanges: &[ExchangeTimings], fences: &[Fence]) -> Experiment {
    let mut runs: Vec<(String, &MeasuredRuns)> = Vec::new();
    for exchange in exchanges {
        runs.push((size(exchange.measured.size), &exchange.measured));
    }
    for fence in fences {
        runs.push((format!("geolocation, {} bits", fence.bits), &fence.measured));
    }
    Experiment {
        slug: "link".into(),
        title: "Over a link of 200 Mbps".into(),
        about: vec![
            "The publication assumes a link of 200 Mbps. What all messages take over it is computed from their bytes; how long they are on the \
             way (three times to and fro) comes on top."
                .into(),
            "Streamed: the circuit is garbled, sent and evaluated piece by piece, so that of these three only the longest counts. That is \
             how Quiver does it."
                .into(),
        ],
        method: method(plan),
        tables: vec![messages(&runs), times(&runs)],
        ..Experiment::default()
    }
}

/// Bytes of a message, or of several.
type Length = fn(&MeasuredRuns) -> usize;

fn messages(runs: &[(String, &MeasuredRuns)]) -> Table {
    let mut columns = vec![Column::text("message", "message"), Column::text("from", "from")];
    for (at, (name, _)) in runs.iter().enumerate() {
        columns.push(Column::new(&format!("run_{}_bytes", at + 1), name, Unit::Bytes));
    }
    let mut table = Table::new("messages", "Bytes of each message", columns);
    let of =
        |measure: Length| -> Vec<CellValue> { runs.iter().map(|(_, run)| measure(run).into()).collect() };
    let rows: [(&str, &str, Length); 9] = [
        ("hello", "client", |run| run.lengths.hello),
        ("offer", "server", |run| run.lengths.offer),
        ("tables", "server", |run| run.lengths.tables),
        ("commitment", "client", |run| run.lengths.commitment),
        ("seeds", "server", |run| run.lengths.seeds),
        ("opening", "client", |run| run.lengths.opening),
        ("confirmation", "server", |run| run.lengths.confirmation),
        ("all", "client", MeasuredRuns::up),
        ("all", "server", MeasuredRuns::down),
    ];
    for (name, from, measure) in rows {
        let mut row: Vec<CellValue> = vec![name.into(), from.into()];
        row.extend(of(measure));
        table.push(row);
    }
    table.notes.push("Without the frames of whatever carries them.".into());
    table
}

fn times(runs: &[(String, &MeasuredRuns)]) -> Table {
    let columns = vec![
        Column::text("run", "run"),
        Column::new("client_beforehand_seconds", "client, beforehand", Unit::Seconds),
        Column::new("client_online_seconds", "client, online", Unit::Seconds),
        Column::new("server_seconds", "server", Unit::Seconds),
        Column::new("up_seconds", "to the server", Unit::Seconds),
        Column::new("down_seconds", "to the client", Unit::Seconds),
        Column::new("sequence_seconds", "run, one after the other", Unit::Seconds).strong(),
        Column::new("streamed_seconds", "run, streamed", Unit::Seconds).strong(),
    ];
    let mut table = Table::new("link", "A run over a link of 200 Mbps, computed", columns);
    for (name, run) in runs {
        table.push(vec![
            name.as_str().into(),
            run.beforehand(ExchangeSide::Client).into(),
            run.online(ExchangeSide::Client).into(),
            run.online(ExchangeSide::Server).into(),
            super::measured::over_the_link(run.up()).into(),
            super::measured::over_the_link(run.down()).into(),
            run.in_sequence().into(),
            run.streamed().into(),
        ]);
    }
    table
}
