//! Bytes of parameters, keys and ciphertexts.

use quiver_report::{Axis, Column, Experiment, Ink, Panel, Plot, Series, Table, Unit, Value};

use super::Courses;
use super::course::{Course, Sizes};

/// What is encoded.
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
fn schemes(courses: &Courses) -> [(&'static str, Ink, &Course); 4] {
    [
        ("gpsw06", Ink::Paper, &courses.gpsw),
        ("yct14", Ink::Extra, &courses.yct),
        ("fabeo22_kp", Ink::Flat, &courses.fabeo_kp),
        ("fabeo22_cp", Ink::Tree, &courses.fabeo_cp),
    ]
}

pub(super) fn experiment(courses: &Courses) -> Experiment {
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
        plots: vec![plot(courses)],
        tables: ENCODED.iter().map(|encoded| table(encoded, courses)).collect(),
        ..Experiment::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn plot(courses: &Courses) -> Plot {
    let panel = |encoded: &Encoded| Panel {
        title: encoded.title.into(),
        series: schemes(courses)
            .map(|(_, ink, course)| {
                Series::new(course.name, ink, course.points(|row| Some((encoded.of)(&row.sizes) as f64)))
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

fn table(encoded: &Encoded, courses: &Courses) -> Table {
    let mut columns = vec![Column::new("attributes", "attributes", Unit::Count)];
    columns.extend(
        schemes(courses)
            .map(|(key, _, course)| Column::new(&format!("{key}_bytes"), course.name, Unit::Bytes)),
    );
    let mut table = Table::new(&format!("sizes-{}", encoded.slug), encoded.title, columns);
    for row in &courses.gpsw.rows {
        let mut values: Vec<Value> = vec![row.attributes.into()];
        values.extend(schemes(courses).map(|(_, _, course)| {
            Value::from(course.row(row.attributes).map(|row| (encoded.of)(&row.sizes)))
        }));
        table.push(values);
    }
    table
}
