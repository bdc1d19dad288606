//! Measures the policy that the publication compiled: inside a circle, within a time window.

use quiver_garble::Statistics;
use quiver_garble::policy::{Policy, Schema};
use quiver_report::{CellValue, Column, Experiment, Observer, Table, Unit};

use super::exchange_setup::ExchangeSetup;
use super::measured::MeasuredRuns;
use super::plan::AbkePlan;
use super::published::{ExchangeSide, PublishedAbke};
use super::summary::method;
use crate::Result;
use crate::measure::{Timing, repeat};

/// (xU − xS)² + (yU − yS)² < d², and a timestamp within an hour.
const TEXT: &str = "(x - 512_340)^2 + (y + 88_210)^2 < 2_500^2 and 1_790_000_000 <= time < 1_790_003_600";
/// A drone at this place and time.
const INSIDE: [(&str, i128); 3] = [("x", 512_000), ("y", -88_000), ("time", 1_790_000_100)];
/// Bits of the coordinates, and the certified fields.
const SCHEMAS: [(u32, &str); 2] = [(64, "x: i64, y: i64, time: u64"), (32, "x: i32, y: i32, time: u40")];

/// Times for coordinates of so many bits.
pub(super) struct Fence {
    pub(super) bits: u32,
    schema: &'static str,
    statistics: Statistics,
    compile: Timing,
    pub(super) measured: MeasuredRuns,
}

pub(super) fn measure(plan: &AbkePlan, observer: &mut dyn Observer) -> Result<Vec<Fence>> {
    observer.begin("geolocation", SCHEMAS.len());
    let mut fences = Vec::new();
    for (bits, text) in SCHEMAS {
        let schema = Schema::parse(text).map_err(quiver_garble::Error::from)?;
        let policy = Policy::compile(TEXT, &schema).map_err(quiver_garble::Error::from)?;
        let compile = repeat(plan.effort, || Policy::compile(TEXT, &schema).is_ok());
        let inside = schema.encode(&INSIDE).map_err(quiver_garble::Error::from)?;
        let exchange_setup = ExchangeSetup::new(policy.circuit(), &inside, plan.seed)?;
        let measured = MeasuredRuns::take(&exchange_setup, plan.effort)?;
        fences.push(Fence { bits, schema: text, statistics: policy.statistics(), compile, measured });
        observer.advance(1);
    }
    Ok(fences)
}

pub(super) fn experiment(plan: &AbkePlan, published: &PublishedAbke, fences: &[Fence]) -> Experiment {
    Experiment {
        slug: "geolocation".into(),
        title: "Inside a circle, within an hour".into(),
        about: vec![
            format!("The policy `{TEXT}`, whose integers are exact: nothing wraps around."),
            "All bits of all fields are attributes, because the server must not learn which of them count for a client.".into(),
        ],
        published: vec!["About 20,000 gates on coordinates of 64 bits, with a check of a timestamp.".into()],
        method: method(plan),
        differences: vec![
            "Ours knows the circle's centre when it compiles, and squares cost half of what products do. The publication does not say which of its gates \
             are free."
                .into(),
        ],
        tables: vec![circuits(published, fences), computation(fences)],
        ..Experiment::default()
    }
}

fn circuits(published: &PublishedAbke, fences: &[Fence]) -> Table {
    let columns = vec![
        Column::new("coordinate_bits", "bits of a coordinate", Unit::Count),
        Column::text("fields", "certified fields"),
        Column::new("attributes", "attributes", Unit::Count),
        Column::new("published_gates", "published, gates", Unit::Count),
        Column::new("ands", "AND gates", Unit::Count).strong(),
        Column::new("gates", "all gates", Unit::Count),
        Column::new("depth", "depth in ANDs", Unit::Count),
        Column::new("published_over_ands", "published / ANDs", Unit::Times).strong(),
        Column::new("compile_seconds", "to compile", Unit::Seconds),
    ];
    let mut table = Table::new("geolocation", "The geolocation policy as a circuit", columns);
    for Fence { bits, schema, statistics, compile, .. } in fences {
        let theirs = published.fence(*bits).map(f64::from);
        table.push(vec![
            (*bits).into(),
            (*schema).into(),
            statistics.inputs.into(),
            theirs.into(),
            statistics.and.into(),
            statistics.gates().into(),
            statistics.depth.into(),
            CellValue::ratio(theirs, CellValue::from(statistics.and).number()),
            (*compile).into(),
        ]);
    }
    table
}

fn computation(fences: &[Fence]) -> Table {
    let columns = vec![
        Column::new("coordinate_bits", "bits of a coordinate", Unit::Count),
        Column::new("server_seconds", "server", Unit::Seconds).strong(),
        Column::new("server_batched_seconds", "server, ten keys at once", Unit::Seconds).strong(),
        Column::new("client_beforehand_seconds", "client, beforehand", Unit::Seconds),
        Column::new("client_online_seconds", "client, online", Unit::Seconds).strong(),
        Column::new("up_bytes", "client sends", Unit::Bytes),
        Column::new("down_bytes", "server sends", Unit::Bytes),
    ];
    let mut table = Table::new("geolocation-runs", "Runs with the geolocation policy", columns);
    for Fence { bits, measured, .. } in fences {
        table.push(vec![
            (*bits).into(),
            measured.online(ExchangeSide::Server).into(),
            measured.server_batched().into(),
            measured.beforehand(ExchangeSide::Client).into(),
            measured.online(ExchangeSide::Client).into(),
            measured.up().into(),
            measured.down().into(),
        ]);
    }
    table
}
