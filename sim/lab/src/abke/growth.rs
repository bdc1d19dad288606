//! Measures how both sides' work grows with gates and with attributes.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Observer, Plot, Series, Table, Unit};

use super::exchange_setup::ExchangeSetup;
use super::measured::MeasuredRuns;
use super::plan::{AbkePlan, PolicySize};
use super::published::{ExchangeSide, PublishedAbke};
use super::summary::method;
use crate::Result;

/// The growing parameter, and the fixed one.
struct Growth {
    slug: &'static str,
    title: &'static str,
    about: &'static str,
    parameter: &'static str,
    of: fn(PolicySize) -> u32,
}

pub(super) fn gates(
    plan: &AbkePlan,
    published: &PublishedAbke,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let growth = Growth {
        slug: "gates",
        title: "Larger policies",
        about: "What a gate adds: garbling at the server; evaluating, and garbling again, at the client; 16 bytes on the way.",
        parameter: "gates",
        of: |size| size.gates,
    };
    growth.measure(plan, &plan.gates, published, observer)
}

pub(super) fn attributes(
    plan: &AbkePlan,
    published: &PublishedAbke,
    observer: &mut dyn Observer,
) -> Result<Experiment> {
    let growth = Growth {
        slug: "attributes",
        title: "More attributes",
        about: "What an attribute adds: two points of the client's key, a pairing; two points of the ciphertext, made, read, and made again.",
        parameter: "attributes",
        of: |size| size.attributes,
    };
    growth.measure(plan, &plan.attributes, published, observer)
}

impl Growth {
    fn measure(
        &self,
        plan: &AbkePlan,
        sizes: &[PolicySize],
        published: &PublishedAbke,
        observer: &mut dyn Observer,
    ) -> Result<Experiment> {
        observer.begin(self.title, sizes.len());
        let mut measured = Vec::new();
        for size in sizes {
            measured.push(MeasuredRuns::take(&ExchangeSetup::of(*size, plan.seed)?, plan.effort)?);
            observer.advance(1);
        }
        Ok(Experiment {
            slug: self.slug.into(),
            title: self.title.into(),
            about: vec![self.about.into()],
            published: vec!["The totals of table 10.1, where sizes are the same.".into()],
            method: method(plan),
            plots: vec![self.plot(&measured, published)],
            tables: vec![self.table(&measured, published)],
            ..Experiment::default()
        })
    }

    fn table(&self, measured: &[MeasuredRuns], published: &PublishedAbke) -> Table {
        let columns = vec![
            Column::new(self.parameter, self.parameter, Unit::Count),
            Column::new("published_server_seconds", "published, server", Unit::Seconds),
            Column::new("server_seconds", "server", Unit::Seconds).strong(),
            Column::new("server_batched_seconds", "server, ten keys at once", Unit::Seconds),
            Column::new("published_client_seconds", "published, client", Unit::Seconds),
            Column::new("client_beforehand_seconds", "client, beforehand", Unit::Seconds),
            Column::new("client_online_seconds", "client, online", Unit::Seconds).strong(),
            Column::new("up_bytes", "client sends", Unit::Bytes),
            Column::new("down_bytes", "server sends", Unit::Bytes),
            Column::new("link_seconds", "on a link of 200 Mbps", Unit::Seconds),
        ];
        let mut table = Table::new(self.slug, &self.caption(measured), columns);
        for run in measured {
            let theirs = |side| CellValue::from(published.seconds(run.size, side, "total"));
            table.push(vec![
                (self.of)(run.size).into(),
                theirs(ExchangeSide::Server),
                run.online(ExchangeSide::Server).into(),
                run.server_batched().into(),
                theirs(ExchangeSide::Client),
                run.beforehand(ExchangeSide::Client).into(),
                run.online(ExchangeSide::Client).into(),
                run.up().into(),
                run.down().into(),
                run.transfer().into(),
            ]);
        }
        table
    }

    /// The fixed parameter is in the caption.
    fn caption(&self, measured: &[MeasuredRuns]) -> String {
        let Some(PolicySize { gates, attributes }) = measured.first().map(|run| run.size) else {
            return self.title.into();
        };
        let stays = match self.slug {
            "gates" => format!("{} attributes", Unit::Count.show(attributes.into())),
            _ => format!("{} gates", Unit::Count.show(gates.into())),
        };
        format!("{}: both sides' work, {stays}", self.title)
    }

    fn plot(&self, measured: &[MeasuredRuns], published: &PublishedAbke) -> Plot {
        let points = |of: &dyn Fn(&MeasuredRuns) -> Option<f64>| -> Vec<(f64, f64)> {
            let point = |run: &MeasuredRuns| Some((f64::from((self.of)(run.size)), of(run)?));
            measured.iter().filter_map(point).collect()
        };
        let theirs = |side| points(&|run| published.seconds(run.size, side, "total"));
        let mut series = vec![
            Series::new("server", Ink::Flat, points(&|run| Some(run.online(ExchangeSide::Server)))),
            Series::new("server, ten keys at once", Ink::Flat, points(&|run| Some(run.server_batched())))
                .dashed(),
            Series::new("client, online", Ink::Tree, points(&|run| Some(run.online(ExchangeSide::Client)))),
            Series::new(
                "client, beforehand",
                Ink::Tree,
                points(&|run| Some(run.beforehand(ExchangeSide::Client))),
            )
            .dashed(),
            Series::new("on a link of 200 Mbps", Ink::Extra, points(&|run| Some(run.transfer()))),
        ];
        for (name, side) in
            [("published, server", ExchangeSide::Server), ("published, client", ExchangeSide::Client)]
        {
            let points = theirs(side);
            if !points.is_empty() {
                series.push(Series::new(name, Ink::Published, points));
            }
        }
        let (x, y) = (Axis::log(self.parameter, Unit::Count), Axis::log("time", Unit::Seconds));
        Plot::single(self.slug, &self.caption(measured), x, y, series)
    }
}
