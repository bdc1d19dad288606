//! Measures the batch verification of many clients' keys.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Observer, Plot, Series, Table, Unit};

use super::exchange::size;
use super::exchange_setup::ExchangeSetup;
use super::measured::BATCH;
use super::plan::AbkePlan;
use super::published::{ExchangeSide, PublishedAbke};
use super::summary::method;
use crate::Result;
use crate::measure::repeat;

pub(super) fn experiment(
    plan: &AbkePlan,
    published: &PublishedAbke,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    observer.begin("batches", plan.exchanges.len() * plan.batches.len());
    let (mut tables, mut series) = (Vec::new(), Vec::new());
    for (exchange, ink) in plan.exchanges.iter().zip([Ink::Flat, Ink::Tree].into_iter().cycle()) {
        // Keys have as many points, whatever is garbled.
        let exchange_setup = ExchangeSetup::of(super::PolicySize { gates: 1000, ..*exchange }, plan.seed)?;
        let hellos = exchange_setup.hellos(plan.batches.iter().copied().max().unwrap_or(0))?;
        let decode = hellos.first().map(|hello| repeat(plan.effort, || exchange_setup.decode(hello).is_ok()));
        let (mut rows, mut alone) = (Vec::new(), None);
        for &count in &plan.batches {
            let timing = exchange_setup.verify(&hellos[..count], plan.effort)?;
            let each = timing.median / clients(count);
            rows.push((count, each, each / *alone.get_or_insert(each), timing.samples));
            observer.advance(1);
        }
        let mut table =
            Table::new(&format!("batches-{}", exchange.attributes), &caption(exchange.attributes), columns());
        for (count, each, _, samples) in &rows {
            let theirs = match *count {
                1 => published.seconds(*exchange, ExchangeSide::Server, "verify"),
                BATCH => published.optimized(*exchange, ExchangeSide::Server, "verify"),
                _ => None,
            };
            let (first, one) =
                (rows.first().map(|row| row.1), published.seconds(*exchange, ExchangeSide::Server, "verify"));
            table.push(vec![
                (*count).into(),
                theirs.into(),
                (*each).into(),
                CellValue::ratio(theirs, Some(*each)),
                decode.into(),
                CellValue::ratio(one, theirs),
                CellValue::ratio(first, Some(*each)),
                (*samples).into(),
            ]);
        }
        let points = rows.iter().map(|(count, each, ..)| (clients(*count), *each)).collect();
        series.push(Series::new(&format!("{} attributes", exchange.attributes), ink, points));
        tables.push(table);
    }
    Ok(of(plan, published, tables, series))
}

fn caption(attributes: u32) -> String {
    format!("Decode and verify a key of {attributes} attributes, by clients at once")
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("clients", "clients", Unit::Count),
        Column::new("published_seconds", "published, each", Unit::Seconds),
        Column::new("ours_seconds", "here, each", Unit::Seconds).strong(),
        Column::new("published_over_ours", "published / here", Unit::Times).strong(),
        Column::new("decode_seconds", "of it to decode", Unit::Seconds),
        Column::new("published_faster", "published, faster than alone", Unit::Times),
        Column::new("ours_faster", "here, faster than alone", Unit::Times),
        Column::new("samples", "samples", Unit::Count),
    ]
}

fn of(plan: &AbkePlan, published: &PublishedAbke, tables: Vec<Table>, mut series: Vec<Series>) -> Experiment {
    for exchange in &plan.exchanges {
        let one = published.seconds(*exchange, ExchangeSide::Server, "verify");
        let ten = published.optimized(*exchange, ExchangeSide::Server, "verify");
        if let (Some(one), Some(ten)) = (one, ten) {
            let points = vec![(1.0, one), (clients(BATCH), ten)];
            series.push(Series::new(&format!("published, {}", size(*exchange)), Ink::Published, points));
        }
    }
    Experiment {
        slug: "batches".into(),
        title: "Verifying keys".into(),
        about: vec![
            "Verification is what a server spends most of its time on. Equations of many clients are added up under random weights, so \
             that the number of pairings depends on the number of attributes alone."
                .into(),
        ],
        published: vec!["857 ms for a key of 200 attributes, which has 400 pairings; 5.4 times as fast in a batch of ten.".into()],
        method: method(plan),
        differences: vec![
            "Ours counts decoding: that every point is on the curve, and that it is in the subgroup. That is done for each key by itself, and \
             what remains of it in large batches is mostly that."
                .into(),
        ],
        plots: vec![Plot::single(
            "batches",
            "Decode and verify a key",
            Axis::log("clients at once", Unit::Count),
            Axis::log("time for each", Unit::Seconds),
            series,
        )],
        tables,
    }
}

#[expect(clippy::cast_precision_loss, reason = "few")]
const fn clients(count: usize) -> f64 {
    count as f64
}
