//! Highlights and sources of the report on attribute-based encryption.

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06};
use quiver_report::{Experiment, Highlight, Publication, Table, Unit};

use super::measured_scheme::MeasuredScheme;
use super::overview::EVERY_LEAF;

pub(super) fn lead() -> Vec<String> {
    vec![
        "Attribute-based encryption seals a message to whoever fits a policy. A thesis measured how two such schemes do on a \
         microcontroller and on a laptop: GPSW06, which computes pairings, and YCT14, which does without, and was broken. This page \
         measures the same operations again and adds FABEO22, which Quiver uses."
            .into(),
        "The published figures were taken on other machines, another curve and other code, ours on the machine below. A \
         ratio between them says how long you wait, and no more."
            .into(),
    ]
}

/// The figures to remember, of the table of everything.
pub(super) fn highlights(overview: &Experiment) -> Vec<Highlight> {
    let Some(table) = overview.tables.first() else { return Vec::new() };
    let figures = [
        (Gpsw06::NAME, "Encrypt"),
        (Gpsw06::NAME, "KeyGen"),
        (Gpsw06::NAME, EVERY_LEAF),
        (FabeoKp::NAME, EVERY_LEAF),
        (FabeoCp::NAME, "Encrypt"),
        (FabeoCp::NAME, EVERY_LEAF),
    ];
    figures.into_iter().filter_map(|(scheme, operation)| highlight(table, scheme, operation)).collect()
}

fn highlight(table: &Table, scheme: &str, operation: &str) -> Option<Highlight> {
    let row = [scheme.into(), operation.into()];
    let figure = |key| table.figure(&row, key);
    let (ours, laptop) = (figure("ours_seconds")?, figure("laptop_seconds")?);
    let beside = if scheme == Gpsw06::NAME { "published" } else { "published for GPSW06" };
    Some(Highlight {
        what: format!("{scheme}, {operation}"),
        figure: Unit::Seconds.show(ours),
        beside: format!(
            "{} {beside} on a laptop, {} as long",
            Unit::Seconds.show(laptop),
            Unit::Times.show(laptop / ours)
        ),
    })
}

pub(super) fn sources() -> Vec<Publication> {
    vec![
        Publication {
            citation: "Bücheler: Implementation of ABE in Rust on ARM Cortex-M. Technical University of Munich. \
                       Times, RAM and flash on nRF52840 and laptop."
                .into(),
            link: "https://www.tum.de".into(),
        },
        Publication {
            citation: "Goyal, Pandey, Sahai, Waters: Attribute-Based Encryption for Fine-Grained Access Control of Encrypted \
                       Data. CCS 2006."
                .into(),
            link: "https://eprint.iacr.org/2006/309".into(),
        },
        Publication {
            citation: "Riepel, Wee: FABEO: Fast Attribute-Based Encryption with Optimal Security. CCS 2022.".into(),
            link: "https://eprint.iacr.org/2022/1415".into(),
        },
    ]
}
