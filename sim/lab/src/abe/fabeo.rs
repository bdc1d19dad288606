//! Compares FABEO22, of which the publication has no figures, with GPSW06.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Plot, Series, Table, Unit};

use super::SchemeGrowths;
use super::attribute_growth::{AttributeGrowth, GrowthRow};
use super::operation::{PublishedPlatform, ReferenceScheme, SchemeAlgorithm};
use super::plan::AbePlan;
use super::published::PublishedAbe;
use super::reference::{method, panels, published_series};
use crate::measure::Timing;

pub(super) fn experiment(plan: &AbePlan, published: &PublishedAbe, growths: &SchemeGrowths) -> Experiment {
    Experiment {
        slug: "fabeo22".into(),
        title: "FABEO22: decryption that does not grow".into(),
        about: vec![
            "Riepel and Wee, CCS 2022: adaptively secure, any name is an attribute, and decryption takes two pairings (policy \
             in the key) or three (policy in the ciphertext) whatever the policy. Quiver's default: KP for data that a sensor seals, \
             CP for orders that are sealed to a role."
                .into(),
        ],
        published: vec![
            "Nothing of FABEO. The laptop's GPSW06 stands beside it, which is for the same purpose as KP.".into(),
        ],
        method: method(plan),
        differences: Vec::new(),
        plots: vec![plot(published, growths)],
        tables: SchemeAlgorithm::ALL.into_iter().map(|operation| table(published, growths, operation)).collect(),
    }
}

fn laptop(published: &PublishedAbe, operation: SchemeAlgorithm, attributes: usize) -> Option<f64> {
    published.time(ReferenceScheme::Gpsw, PublishedPlatform::Laptop, operation, attributes)
}

fn plot(published: &PublishedAbe, growths: &SchemeGrowths) -> Plot {
    let ours = |name: &str, ink: Ink, attribute_growth: &AttributeGrowth, operation: SchemeAlgorithm| {
        Series::new(name, ink, attribute_growth.points(|row| Some(row.time(operation).median)))
    };
    let series = |operation: SchemeAlgorithm| {
        vec![
            published_series("GPSW06 published, laptop", &growths.gpsw, |attributes| {
                laptop(published, operation, attributes)
            }),
            ours("GPSW06", Ink::Paper, &growths.gpsw, operation),
            ours("FABEO22 KP", Ink::Flat, &growths.fabeo_kp, operation),
            ours("FABEO22 CP", Ink::Tree, &growths.fabeo_cp, operation),
        ]
    };
    Plot {
        slug: "fabeo22-times".into(),
        caption: "FABEO22 and GPSW06: time by attributes.".into(),
        x: Axis::linear("attributes", Unit::Count),
        y: Axis::log("time", Unit::Seconds),
        panels: panels(series),
    }
}

/// A further figure of a row: with tables, or of the conjunction.
fn further(operation: SchemeAlgorithm, row: Option<&GrowthRow>) -> Option<Timing> {
    match operation {
        SchemeAlgorithm::Decrypt => row.map(|row| row.decrypt_all),
        _ => row?.prepared(operation),
    }
}

fn table(published: &PublishedAbe, growths: &SchemeGrowths, operation: SchemeAlgorithm) -> Table {
    let further_title =
        if operation == SchemeAlgorithm::Decrypt { "conjunction of all" } else { "with tables" };
    let mut columns = vec![
        Column::new("attributes", "attributes", Unit::Count),
        Column::new("gpsw_laptop_seconds", "GPSW06 published, laptop", Unit::Seconds),
        Column::new("gpsw_seconds", "GPSW06", Unit::Seconds),
        Column::new("kp_seconds", "KP", Unit::Seconds).strong(),
        Column::new("cp_seconds", "CP", Unit::Seconds).strong(),
        Column::new("laptop_over_kp", "laptop / KP", Unit::Times),
        Column::new("laptop_over_cp", "laptop / CP", Unit::Times),
    ];
    if operation != SchemeAlgorithm::Setup {
        columns.push(Column::new("kp_further_seconds", &format!("KP, {further_title}"), Unit::Seconds));
        columns.push(Column::new("cp_further_seconds", &format!("CP, {further_title}"), Unit::Seconds));
    }
    let slug = format!("fabeo22-{}", operation.key());
    let mut table = Table::new(&slug, &format!("FABEO22: {}", operation.title()), columns);
    for gpsw in &growths.gpsw.rows {
        let attributes = gpsw.attributes;
        let (kp, cp) = (growths.fabeo_kp.row(attributes), growths.fabeo_cp.row(attributes));
        let time = |row: Option<&GrowthRow>| row.map(|row| row.time(operation).median);
        let laptop = laptop(published, operation, attributes);
        table.push(vec![
            attributes.into(),
            laptop.into(),
            gpsw.time(operation).into(),
            time(kp).into(),
            time(cp).into(),
            CellValue::ratio(laptop, time(kp)),
            CellValue::ratio(laptop, time(cp)),
            further(operation, kp).into(),
            further(operation, cp).into(),
        ]);
    }
    table
}
