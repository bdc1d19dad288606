//! Tables and plots of the leader's measurements.

use quiver_report::{Axis, CellValue, Column, Ink, Panel, Plot, Series, Table, Unit};

use super::{LeaderOperation, OperationComparison};
use crate::ainq::group::Strategy;
use crate::ainq::published::PublishedAinq;
use crate::ainq::strategies::{STRATEGIES, ink, name};

pub(super) fn time_table(published: &PublishedAinq, points: &[OperationComparison]) -> Table {
    let seconds = |key: &str, title: &str| Column::new(key, title, Unit::Seconds);
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("drones", "drones", Unit::Count),
        seconds("published_seconds", "published"),
        seconds("paper_seconds", "same algorithm here"),
        Column::new("published_over_paper", "published / same", Unit::Times),
        seconds("flat_seconds", "flat"),
        seconds("tree_seconds", "tree"),
        Column::new("published_over_flat", "published / flat", Unit::Times).strong(),
        Column::new("samples", "samples", Unit::Count),
    ];
    let mut table = Table::new("leader", "CPU time at the leader", columns);
    for point in points {
        let theirs = published.leader(point.operation.key(), point.drones);
        let quiver = point.quiver.seconds();
        table.push(vec![
            point.operation.title().into(),
            point.drones.into(),
            theirs.into(),
            point.paper.into(),
            CellValue::ratio(theirs, Some(point.paper.median)),
            quiver.of(Strategy::Flat).into(),
            quiver.of(Strategy::Tree).into(),
            CellValue::ratio(theirs, quiver.of(Strategy::Flat)),
            point.paper.samples.into(),
        ]);
    }
    table.notes.push(
        "For one drone nearly all of Quiver's time is the signature over the header, which the paper does not have. \
         Samples: of the published algorithm; the other columns differ by a few."
            .into(),
    );
    table
}

pub(super) fn multiplications_table(
    published: &PublishedAinq,
    points: &[OperationComparison],
    unit: f64,
) -> Table {
    let times = |key: &str, title: &str| Column::new(key, title, Unit::Times);
    let columns = vec![
        Column::text("operation", "operation"),
        Column::new("drones", "drones", Unit::Count),
        times("published_multiplications_per_drone", "published"),
        times("paper_multiplications_per_drone", "same algorithm here"),
        times("flat_multiplications_per_drone", "flat"),
        times("tree_multiplications_per_drone", "tree"),
    ];
    let caption = "The same per drone, in elliptic curve multiplications of the machine it was measured on";
    let mut table = Table::new("leader-multiplications", caption, columns);
    let their_unit = published.edge("ec_multiplication");
    for point in points {
        let drones = f64::from(point.drones);
        let share = |seconds: Option<f64>, unit: Option<f64>| {
            CellValue::ratio(seconds.map(|seconds| seconds / drones), unit)
        };
        let ours = |seconds: Option<f64>| share(seconds, Some(unit));
        let quiver = point.quiver.seconds();
        table.push(vec![
            point.operation.title().into(),
            point.drones.into(),
            share(published.leader(point.operation.key(), point.drones), their_unit),
            ours(Some(point.paper.median)),
            ours(quiver.of(Strategy::Flat)),
            ours(quiver.of(Strategy::Tree)),
        ]);
    }
    table.notes.push(
        "The published multiplication is the one of the table of edge operations. If the leader's machine was another one \
         than the drone's, the published column is off by their ratio."
            .into(),
    );
    table
}

pub(super) fn time_plot(published: &PublishedAinq, points: &[OperationComparison]) -> Plot {
    let panel = |operation: LeaderOperation| {
        let theirs = published.leader_points(operation.key());
        let mut series = vec![Series::new("published", Ink::Published, theirs).dashed()];
        series.extend(ours(points, operation, 1.0));
        Panel { title: operation.title().into(), series }
    };
    Plot {
        slug: "leader".into(),
        caption: "CPU time at the leader by number of drones. Both axes are logarithmic: a line that climbs one decade per \
                  decade is proportional to the number of drones."
            .into(),
        x: Axis::log("drones", Unit::Count),
        y: Axis::log("CPU time", Unit::Seconds),
        panels: LeaderOperation::ALL.map(panel).into(),
    }
}

pub(super) fn multiplications_plot(
    published: &PublishedAinq,
    points: &[OperationComparison],
    unit: f64,
) -> Plot {
    let theirs = published.leader_points(LeaderOperation::GenGroupKey.key());
    let their_unit = published.edge("ec_multiplication").unwrap_or(1.0);
    let theirs = theirs.into_iter().map(|(drones, seconds)| (drones, seconds / their_unit)).collect();
    let mut series = vec![Series::new("published", Ink::Published, theirs).dashed()];
    series.extend(ours(points, LeaderOperation::GenGroupKey, unit));
    let caption = "GenGroupKey in elliptic curve multiplications of the machine it was measured on. What is left between the \
                   lines is not the machine, but how much work is done and how.";
    let axes = (Axis::linear("drones", Unit::Count), Axis::linear("EC multiplications", Unit::Count));
    Plot::single("leader-multiplications", caption, axes.0, axes.1, series)
}

/// Measurements of an operation here, divided by `unit`.
fn ours(points: &[OperationComparison], operation: LeaderOperation, unit: f64) -> Vec<Series> {
    let points = || points.iter().filter(move |point| point.operation == operation);
    let paper = points().map(|point| (f64::from(point.drones), point.paper.median / unit)).collect();
    let mut series = vec![Series::new("same algorithm here", Ink::Paper, paper)];
    for strategy in STRATEGIES {
        let figure = |point: &OperationComparison| {
            Some((f64::from(point.drones), point.quiver.seconds().of(strategy)? / unit))
        };
        series.push(Series::new(name(strategy), ink(strategy), points().filter_map(figure).collect()));
    }
    series
}
