//! Tabulates GPSW06 and YCT14: published figures beside ours.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Panel, Plot, Series, Table, Unit};

use super::SchemeGrowths;
use super::attribute_growth::{AttributeGrowth, GrowthRow};
use super::operation::{PublishedPlatform, ReferenceScheme, SchemeAlgorithm};
use super::plan::AbePlan;
use super::published::PublishedAbe;

/// A scheme with its published figures.
struct PublishedScheme<'a> {
    slug: &'static str,
    scheme: ReferenceScheme,
    attribute_growth: &'a AttributeGrowth,
    published: &'a PublishedAbe,
}

pub(super) fn gpsw(plan: &AbePlan, published: &PublishedAbe, growths: &SchemeGrowths) -> Experiment {
    let pair = PublishedScheme {
        slug: "gpsw06",
        scheme: ReferenceScheme::Gpsw,
        attribute_growth: &growths.gpsw,
        published,
    };
    Experiment {
        title: "GPSW06: the policy in the key".into(),
        about: vec![
            "Goyal, Pandey, Sahai and Waters, CCS 2006: the scheme that others are measured by. Setup and encryption take a \
             multiplication per attribute, key generation one per leaf in the larger group, decryption a pairing per leaf."
                .into(),
        ],
        differences: vec![
            "The published decryption computes a pairing and a power for every leaf; ours folds the coefficients into points, \
             multiplies all pairings at once with one final exponentiation, and uses no more leaves than it needs. The column of a \
             conjunction, where no leaf can be left out, shows what remains without the last."
                .into(),
            "Ours encapsulates a secret of 32 bytes and derives it by hashing.".into(),
        ],
        ..experiment(&pair, plan)
    }
}

pub(super) fn yct(plan: &AbePlan, published: &PublishedAbe, growths: &SchemeGrowths) -> Experiment {
    let pair = PublishedScheme {
        slug: "yct14",
        scheme: ReferenceScheme::Yct,
        attribute_growth: &growths.yct,
        published,
    };
    Experiment {
        title: "YCT14: without pairings, and broken".into(),
        about: vec![
            "Do not use it: two keys for one conjunction give, by linear algebra, keys for each of its attributes alone, \
             which open every ciphertext that has them (Herranz, IEEE Access 8, 2020). A test of quiver-abe carries the attack out. \
             It is measured because it was published as the one that a microcontroller can afford."
                .into(),
            "Yao, Chen and Tian, 2015: as GPSW06, but shares are plain scalars and no pairing is needed.".into(),
        ],
        differences: vec![
            "Ours runs on ristretto255, since it needs no pairing; the published times are those of G1 of the BN curve. \
             Decryption is one multi-scalar multiplication over no more leaves than it needs."
                .into(),
        ],
        ..experiment(&pair, plan)
    }
}

fn experiment(pair: &PublishedScheme<'_>, plan: &AbePlan) -> Experiment {
    Experiment {
        slug: pair.slug.into(),
        published: vec![
            "Setup, encryption, key generation and decryption with 1 to 30 attributes on an nRF52840 and on a laptop; key \
             generation and decryption averaged over ten sets of random access trees."
                .into(),
        ],
        method: method(plan),
        plots: vec![plot(pair)],
        tables: SchemeAlgorithm::ALL.into_iter().map(|operation| table(pair, operation)).collect(),
        ..Experiment::default()
    }
}

/// Method of measuring schemes, the same for all.
pub(super) fn method(plan: &AbePlan) -> Vec<String> {
    vec![
        format!(
            "Medians in CPU time of one thread, of {} to {} samples. Whatever takes a policy is the mean of such medians over {} \
             random trees ({} to {} samples each): a tree grows leaf by leaf, each leaf at a node drawn from all nodes, each gate \
             with a random threshold, each leaf with an attribute of its own. All attributes are at hand when decrypting.",
            plan.effort.least,
            plan.effort.most,
            plan.sets,
            plan.effort_per_tree.least,
            plan.effort_per_tree.most
        ),
        "Parameters are used as they come out of setup; with tables, a fixed-base table per attribute and base was made \
         beforehand, uncounted, as whoever encrypts or issues more than once does."
            .into(),
    ]
}

/// The four algorithms side by side over attributes.
pub(super) fn panels(series: impl Fn(SchemeAlgorithm) -> Vec<Series>) -> Vec<Panel> {
    let panel =
        |operation: SchemeAlgorithm| Panel { title: operation.title().into(), series: series(operation) };
    SchemeAlgorithm::ALL.into_iter().map(panel).collect()
}

/// Published series over the attributes that we measured.
pub(super) fn published_series(
    name: &str,
    attribute_growth: &AttributeGrowth,
    figure: impl Fn(usize) -> Option<f64>,
) -> Series {
    Series::new(name, Ink::Published, attribute_growth.points(|row| figure(row.attributes)))
}

fn plot(pair: &PublishedScheme<'_>) -> Plot {
    let published = |operation: SchemeAlgorithm, host: PublishedPlatform, name: &str| {
        published_series(name, pair.attribute_growth, |attributes| {
            pair.published.time(pair.scheme, host, operation, attributes)
        })
    };
    let series = |operation: SchemeAlgorithm| {
        let ours = pair.attribute_growth.points(|row| Some(row.time(operation).median));
        let prepared =
            pair.attribute_growth.points(|row| row.prepared(operation).map(|timing| timing.median));
        let mut all = vec![
            published(operation, PublishedPlatform::Soc, "published, SoC").dashed(),
            published(operation, PublishedPlatform::Laptop, "published, laptop"),
            Series::new("here", Ink::Paper, ours),
        ];
        if !prepared.is_empty() {
            all.push(Series::new("here, with tables", Ink::Paper, prepared).dashed());
        }
        all
    };
    Plot {
        slug: format!("{}-times", pair.slug),
        caption: format!("{}: time by attributes.", pair.attribute_growth.name),
        x: Axis::linear("attributes", Unit::Count),
        y: Axis::log("time", Unit::Seconds),
        panels: panels(series),
    }
}

fn table(pair: &PublishedScheme<'_>, operation: SchemeAlgorithm) -> Table {
    let mut columns = vec![
        Column::new("attributes", "attributes", Unit::Count),
        Column::new("soc_seconds", "published, SoC", Unit::Seconds),
        Column::new("laptop_seconds", "published, laptop", Unit::Seconds),
        Column::new("ours_seconds", "here", Unit::Seconds).strong(),
        Column::new("laptop_over_ours", "laptop / here", Unit::Times).strong(),
        Column::new("soc_over_ours", "SoC / here", Unit::Times),
        Column::new("samples", "samples", Unit::Count),
    ];
    columns.extend(further_columns(pair, operation));
    let (slug, title) = (format!("{}-{}", pair.slug, operation.key()), operation.title());
    let mut table = Table::new(&slug, &format!("{}: {title}", pair.attribute_growth.name), columns);
    for row in &pair.attribute_growth.rows {
        let time = |host| pair.published.time(pair.scheme, host, operation, row.attributes);
        let (soc, laptop, ours) =
            (time(PublishedPlatform::Soc), time(PublishedPlatform::Laptop), row.time(operation));
        let mut values = vec![
            row.attributes.into(),
            soc.into(),
            laptop.into(),
            ours.into(),
            CellValue::ratio(laptop, Some(ours.median)),
            CellValue::ratio(soc, Some(ours.median)),
            ours.samples.into(),
        ];
        values.extend(further_values(operation, row, laptop));
        table.push(values);
    }
    table
}

fn has_tables(pair: &PublishedScheme<'_>, operation: SchemeAlgorithm) -> bool {
    pair.attribute_growth.rows.iter().any(|row| row.prepared(operation).is_some())
}

fn further_columns(pair: &PublishedScheme<'_>, operation: SchemeAlgorithm) -> Vec<Column> {
    if operation == SchemeAlgorithm::Decrypt {
        return vec![
            Column::new("leaves_used", "leaves used, on average", Unit::Count),
            Column::new("conjunction_seconds", "here, conjunction of all", Unit::Seconds),
            Column::new("laptop_over_conjunction", "laptop / conjunction", Unit::Times),
        ];
    }
    if has_tables(pair, operation) {
        return vec![
            Column::new("tabled_seconds", "here, with tables", Unit::Seconds),
            Column::new("laptop_over_tabled", "laptop / with tables", Unit::Times),
        ];
    }
    Vec::new()
}

fn further_values(operation: SchemeAlgorithm, row: &GrowthRow, laptop: Option<f64>) -> Vec<CellValue> {
    if operation == SchemeAlgorithm::Decrypt {
        let all = row.decrypt_all;
        return vec![row.leaves_used.into(), all.into(), CellValue::ratio(laptop, Some(all.median))];
    }
    let prepared = row.prepared(operation);
    vec![prepared.into(), CellValue::ratio(laptop, prepared.map(|timing| timing.median))]
}
