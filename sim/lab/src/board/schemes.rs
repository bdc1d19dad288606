//! Tabulates attribute-based encryption by attributes, beside the published figures of a SoC.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Panel, Plot, Series, Table, Unit};

use super::figures::{BoardMeasurements, Figure};
use super::plan::BoardPlan;
use super::tables::{columns, method, values};
use crate::abe::operation::{PublishedPlatform, ReferenceScheme, SchemeAlgorithm};
use crate::abe::published::PublishedAbe;

/// A scheme with its published figures.
struct BoardScheme<'a> {
    /// Name on the shell's command line.
    name: &'static str,
    title: &'static str,
    slug: &'static str,
    scheme: ReferenceScheme,
    published: &'a PublishedAbe,
    measured: &'a BoardMeasurements,
}

pub(super) fn gpsw(plan: &BoardPlan, published: &PublishedAbe, measured: &BoardMeasurements) -> Experiment {
    let (name, title, slug) = ("gpsw06", "GPSW06", "board-gpsw06");
    let pair = BoardScheme { name, title, slug, scheme: ReferenceScheme::Gpsw, published, measured };
    Experiment {
        title: "GPSW06: the policy in the key".into(),
        about: vec![
            "Goyal, Pandey, Sahai and Waters, CCS 2006. Decryption takes a pairing for every leaf.".into(),
        ],
        ..experiment(&pair, plan)
    }
}

pub(super) fn yct(plan: &BoardPlan, published: &PublishedAbe, measured: &BoardMeasurements) -> Experiment {
    let (name, title, slug) = ("yct14", "YCT14 (broken)", "board-yct14");
    let pair = BoardScheme { name, title, slug, scheme: ReferenceScheme::Yct, published, measured };
    Experiment {
        title: "YCT14: without pairings, and broken".into(),
        about: vec![
            "Do not use it: two keys for one conjunction give keys for each of its attributes (Herranz, IEEE Access 8, 2020). It \
             is measured because it was published as the one that a microcontroller can afford. Yao, Chen and Tian, 2015."
                .into(),
        ],
        ..experiment(&pair, plan)
    }
}

fn experiment(pair: &BoardScheme<'_>, plan: &BoardPlan) -> Experiment {
    Experiment {
        slug: pair.slug.into(),
        published: vec![
            "Setup, encryption, key generation and decryption with 1 to 30 attributes on an nRF52840 at 64 MHz; key generation \
             and decryption averaged over ten sets of random access trees."
                .into(),
        ],
        method: method(),
        differences: vec![
            "Ours is for a conjunction of all attributes, where decryption can leave out no leaf: the random trees of the \
             publication need about half of theirs."
                .into(),
            "Ours encapsulates a secret of 32 bytes and derives it by hashing.".into(),
        ],
        plots: vec![plot(pair, plan)],
        tables: SchemeAlgorithm::ALL.into_iter().map(|operation| table(pair, plan, operation)).collect(),
        ..Experiment::default()
    }
}

fn figure(measured: &BoardMeasurements, name: &str, operation: &str, attributes: u32) -> Figure {
    let parameters = format!("{attributes} attributes, conjunction");
    measured.figure(&format!("abe {name} {operation}"), &parameters)
}

impl BoardScheme<'_> {
    fn figure(&self, operation: SchemeAlgorithm, attributes: u32) -> Figure {
        figure(self.measured, self.name, operation.key(), attributes)
    }

    fn soc(&self, operation: SchemeAlgorithm, attributes: u32) -> Option<f64> {
        self.published.time(self.scheme, PublishedPlatform::Soc, operation, attributes as usize)
    }
}

fn plot(pair: &BoardScheme<'_>, plan: &BoardPlan) -> Plot {
    let points = |of: &dyn Fn(u32) -> Option<f64>| {
        plan.attributes.iter().filter_map(|&count| Some((f64::from(count), of(count)?))).collect::<Vec<_>>()
    };
    let panel = |operation: SchemeAlgorithm| Panel {
        title: operation.title().into(),
        series: vec![
            Series::new("published, SoC", Ink::Published, points(&|count| pair.soc(operation, count))),
            Series::new("emulated, high", Ink::Tree, points(&|count| pair.figure(operation, count).high)),
            Series::new("native", Ink::Paper, points(&|count| pair.figure(operation, count).native)),
        ],
    };
    Plot {
        slug: format!("{}-times", pair.slug),
        caption: format!("{}: time by attributes.", pair.title),
        x: Axis::linear("attributes", Unit::Count),
        y: Axis::log("time", Unit::Seconds),
        panels: SchemeAlgorithm::ALL.into_iter().map(panel).collect(),
    }
}

fn table(pair: &BoardScheme<'_>, plan: &BoardPlan, operation: SchemeAlgorithm) -> Table {
    let mut columns = vec![
        Column::new("attributes", "attributes", Unit::Count),
        Column::new("soc_seconds", "published, SoC", Unit::Seconds),
    ];
    columns.extend(self::columns());
    columns.push(Column::new("soc_over_high", "SoC / high", Unit::Times).strong());
    let slug = format!("{}-{}", pair.slug, operation.key());
    let mut table = Table::new(&slug, &format!("{}: {}", pair.title, operation.title()), columns);
    for &attributes in &plan.attributes {
        let (soc, figure) = (pair.soc(operation, attributes), pair.figure(operation, attributes));
        let mut cells: Vec<CellValue> = vec![attributes.into(), soc.into()];
        cells.extend(values(figure));
        cells.push(CellValue::ratio(soc, figure.high));
        table.push(cells);
    }
    table
}

/// FABEO22, of which a drone encrypts.
pub(super) fn fabeo(plan: &BoardPlan, measured: &BoardMeasurements) -> Experiment {
    let table = |name: &str, title: &str| {
        let mut columns = vec![Column::new("attributes", "attributes", Unit::Count)];
        columns.extend(self::columns());
        let mut table = Table::new(&format!("board-{name}"), &format!("{title}: Encrypt"), columns);
        for &attributes in &plan.attributes {
            let mut cells: Vec<CellValue> = vec![attributes.into()];
            cells.extend(values(figure(measured, name, "encrypt", attributes)));
            table.push(cells);
        }
        table
    };
    Experiment {
        slug: "board-fabeo22".into(),
        title: "FABEO22: what a sensor seals with".into(),
        about: vec![
            "Riepel and Wee, CCS 2022, Quiver's default. Any name is an attribute, so encryption hashes each to the curve.".into(),
        ],
        published: vec!["Nothing of FABEO.".into()],
        method: method(),
        tables: vec![
            table("fabeo-kp", "FABEO22, policy in the key"),
            table("fabeo-cp", "FABEO22, policy in the ciphertext"),
        ],
        ..Experiment::default()
    }
}
