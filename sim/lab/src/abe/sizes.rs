//! Measures bytes of parameters, keys and ciphertexts.

use quiver_report::{Axis, CellValue, Column, Experiment, Ink, Panel, Plot, Series, Table, Unit};

use super::SchemeGrowths;
use super::attribute_growth::{AttributeGrowth, Sizes};

/// Encodings whose sizes are measured.
struct Encoded {
    slug: &'static str,
    title: &'static str,
    of: fn(&Sizes) -> usize,
}

const ENCODED: [Encoded; 3] = [
    Encoded { slug: "ciphertext", title: "Ciphertexts", of: |sizes| sizes.ciphertext },
    Encoded { slug: "key", title: "Keys", of: |sizes| sizes.key },
    Encoded { slug: "parameters", title: "Parameters", of: |sizes| sizes.parameters },
];

/// The schemes in the order of the columns, with their names in CSV.
fn schemes(growths: &SchemeGrowths) -> [(&'static str, Ink, &AttributeGrowth); 4] {
    [
        ("gpsw06", Ink::Paper, &growths.gpsw),
        ("yct14", Ink::Extra, &growths.yct),
        ("fabeo22_kp", Ink::Flat, &growths.fabeo_kp),
        ("fabeo22_cp", Ink::Tree, &growths.fabeo_cp),
    ]
}

pub(super) fn experiment(growths: &SchemeGrowths) -> Experiment {
    Experiment {
        slug: "sizes".into(),
        title: "Sizes of ciphertexts and keys".into(),
        about: vec![
            "All of it grows by a fixed number of bytes per attribute: 48 for a compressed point of G1, 96 of G2, 32 of \
             ristretto255, and the attribute's name."
                .into(),
        ],
        method: vec![
            "Bytes of the canonical encodings, with their header, the authority's fingerprint and the names of all attributes \
             (\"attribute-17\"). The policy is a conjunction of all attributes. A ciphertext encapsulates 32 bytes; what is \
             encrypted under them comes on top."
                .into(),
        ],
        plots: vec![plot(growths)],
        tables: ENCODED.iter().map(|encoded| table(encoded, growths)).collect(),
        ..Experiment::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn plot(growths: &SchemeGrowths) -> Plot {
    let panel = |encoded: &Encoded| Panel {
        title: encoded.title.into(),
        series: schemes(growths)
            .map(|(_, ink, attribute_growth)| {
                Series::new(
                    attribute_growth.name,
                    ink,
                    attribute_growth.points(|row| Some((encoded.of)(&row.sizes) as f64)),
                )
            })
            .into(),
    };
    Plot {
        slug: "sizes".into(),
        caption: "Bytes of encodings by attributes.".into(),
        x: Axis::linear("attributes", Unit::Count),
        y: Axis::linear("size", Unit::Bytes),
        panels: ENCODED.iter().map(panel).collect(),
    }
}

fn table(encoded: &Encoded, growths: &SchemeGrowths) -> Table {
    let mut columns = vec![Column::new("attributes", "attributes", Unit::Count)];
    columns.extend(schemes(growths).map(|(key, _, attribute_growth)| {
        Column::new(&format!("{key}_bytes"), attribute_growth.name, Unit::Bytes)
    }));
    let mut table = Table::new(&format!("sizes-{}", encoded.slug), encoded.title, columns);
    for row in &growths.gpsw.rows {
        let mut values: Vec<CellValue> = vec![row.attributes.into()];
        values.extend(schemes(growths).map(|(_, _, attribute_growth)| {
            CellValue::from(attribute_growth.row(row.attributes).map(|row| (encoded.of)(&row.sizes)))
        }));
        table.push(values);
    }
    table
}
