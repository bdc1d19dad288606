//! Highlights and sources of the report on boards.

use quiver_report::{CellValue, Experiment, Highlight, Publication, Unit};

pub(super) fn lead() -> Vec<String> {
    vec![
        "The firmware has a bench shell, which also runs natively. This page sets what it measures beside what others published \
         of theirs: a shell for RIOT, and a thesis that ran attribute-based encryption on the same nRF52840."
            .into(),
        "No board was measured for this page: emulated figures are counted instructions, and times at 64 MHz are estimated from them."
            .into(),
    ]
}

/// Highlights: the table, the beginning of the row, the name.
pub(super) fn highlights(experiments: &[Experiment]) -> Vec<Highlight> {
    let text = |words: &str| CellValue::from(words);
    let rows: [(&str, CellValue, &str); 4] = [
        ("board-groups", text("Exponentiation in G1"), "Multiplication in G1"),
        ("board-groups", text("Pairing"), "Pairing"),
        ("board-yct14-encrypt", 30_u32.into(), "YCT14 (broken), encryption, 30 attributes"),
        ("board-gpsw06-decrypt", 30_u32.into(), "GPSW06, decryption, 30 attributes"),
    ];
    let tables = || experiments.iter().flat_map(|experiment| &experiment.tables);
    let highlight = |(slug, row, what): &(&str, CellValue, &str)| {
        let table = tables().find(|table| table.slug == *slug)?;
        let figure = |key| table.figure(std::slice::from_ref(row), key);
        let (soc, high) = (figure("soc_seconds")?, figure("high_seconds")?);
        Some(Highlight {
            what: (*what).into(),
            figure: Unit::Seconds.show(high),
            beside: format!("at most, estimated; {} published", Unit::Seconds.show(soc)),
        })
    };
    rows.iter().filter_map(highlight).collect()
}

pub(super) fn sources() -> Vec<Publication> {
    vec![
        Publication {
            citation: "A bench shell for RIOT: AES-128 and RSA-1024 on an IoT-LAB M3 node and natively."
                .into(),
            link: "https://www.riot-os.org".into(),
        },
        Publication {
            citation:
                "Bücheler: Implementation of ABE in Rust on ARM Cortex-M. Technical University of Munich. \
                       Times, RAM and flash on nRF52840 and laptop."
                    .into(),
            link: "https://www.tum.de".into(),
        },
    ]
}
