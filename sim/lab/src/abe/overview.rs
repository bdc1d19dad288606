//! Tabulates every algorithm of every scheme at the published number of attributes.

use quiver_report::{CellValue, Column, Experiment, Table, Unit};

use super::SchemeGrowths;
use super::attribute_growth::AttributeGrowth;
use super::operation::{PublishedPlatform, ReferenceScheme, SchemeAlgorithm};
use super::published::PublishedAbe;
use crate::measure::Timing;

/// Decryption of a conjunction of all attributes, where no leaf can be left out.
pub(super) const EVERY_LEAF: &str = "Decrypt, every leaf";

pub(super) fn experiment(published: &PublishedAbe, growths: &SchemeGrowths) -> Experiment {
    let measured = growths.gpsw.rows.last().map_or(0, |row| row.attributes);
    let attributes = published.most_attributes(measured).unwrap_or(measured);
    Experiment {
        slug: "overview".into(),
        title: format!("All schemes at {attributes} attributes"),
        about: vec![
            format!(
                "Every algorithm with {attributes} attributes, without tables made beforehand. Where the publication has the same \
                 scheme, its figures stand beside ours; FABEO22 stands beside its GPSW06, which is for the same purpose."
            ),
            "Decryption leaves out what a random tree does not need. Every leaf: a conjunction, where nothing can be left out, which \
             is closer to what was published, since the published times grow by a pairing and a power per leaf."
                .into(),
        ],
        method: vec!["As in the sections of the schemes.".into()],
        tables: vec![table(published, growths, attributes)],
        ..Experiment::default()
    }
}

fn table(published: &PublishedAbe, growths: &SchemeGrowths, attributes: usize) -> Table {
    let columns = vec![
        Column::text("scheme", "scheme"),
        Column::text("operation", "operation"),
        Column::new("soc_seconds", "published, SoC", Unit::Seconds),
        Column::new("laptop_seconds", "published, laptop", Unit::Seconds),
        Column::new("ours_seconds", "here", Unit::Seconds).strong(),
        Column::new("laptop_over_ours", "laptop / here", Unit::Times).strong(),
        Column::new("soc_over_ours", "SoC / here", Unit::Times),
        Column::new("tabled_seconds", "here, with tables", Unit::Seconds),
    ];
    let caption = format!("Every algorithm at {attributes} attributes");
    let mut table = Table::new("overview", &caption, columns);
    let subjects: [(&AttributeGrowth, ReferenceScheme); 4] = [
        (&growths.gpsw, ReferenceScheme::Gpsw),
        (&growths.yct, ReferenceScheme::Yct),
        (&growths.fabeo_kp, ReferenceScheme::Gpsw),
        (&growths.fabeo_cp, ReferenceScheme::Gpsw),
    ];
    for (attribute_growth, beside) in subjects {
        let Some(row) = attribute_growth.row(attributes) else { continue };
        let time = |host, operation| published.time(beside, host, operation, attributes);
        let both =
            |operation| (time(PublishedPlatform::Soc, operation), time(PublishedPlatform::Laptop, operation));
        for operation in SchemeAlgorithm::ALL {
            let figures = (row.time(operation), row.prepared(operation));
            table.push(values(attribute_growth.name, operation.title(), both(operation), figures));
        }
        table.push(values(
            attribute_growth.name,
            EVERY_LEAF,
            both(SchemeAlgorithm::Decrypt),
            (row.decrypt_all, None),
        ));
    }
    table
}

fn values(
    scheme: &str,
    operation: &str,
    (soc, laptop): (Option<f64>, Option<f64>),
    (ours, prepared): (Timing, Option<Timing>),
) -> Vec<CellValue> {
    vec![
        scheme.into(),
        operation.into(),
        soc.into(),
        laptop.into(),
        ours.into(),
        CellValue::ratio(laptop, Some(ours.median)),
        CellValue::ratio(soc, Some(ours.median)),
        prepared.into(),
    ]
}
