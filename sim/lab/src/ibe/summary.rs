//! Highlights and sources of the report on identity-based encryption.

use quiver_report::{Experiment, Highlight, Publication, Table, Unit};

use super::plan::IbePlan;

pub(super) fn lead() -> Vec<String> {
    vec![
        "A file is encrypted to a condition, and a quorum of validators (here: KGCs) makes the key to it once the condition is \
         met. A library in Go published how long each step takes it. Quiver's core/ibe writes and reads the same ciphertexts, so \
         the same steps can stand side by side."
            .into(),
        "The published figures are wall times of another machine, ours CPU times of the machine below. A ratio between them says how \
         long you wait, not whose algorithm is better. Each section says what either number counts."
            .into(),
    ]
}

/// Method of measuring, the same for all.
pub(super) fn method(plan: &IbePlan) -> Vec<String> {
    vec![format!(
        "Medians in CPU time of one thread, of {} to {} samples, unless a note says otherwise. Before anything is timed it was \
         done once, and what came out was checked.",
        plan.effort.least, plan.effort.most
    )]
}

/// The figures to remember, each at its largest parameter.
pub(super) fn highlights(experiments: &[Experiment]) -> Vec<Highlight> {
    let tables: Vec<&Table> = experiments.iter().flat_map(|experiment| &experiment.tables).collect();
    [
        ("end-to-end", "ours", "End to end"),
        ("aggregate", "ours", "Combine and verify a key's shares"),
        ("aggregate", "from_bytes", "The same from bytes"),
        ("extract-and-aggregate", "ours", "Extract and combine"),
        ("vss-verify", "at_once", "Verify Feldman shares at once"),
        ("kzg-verify", "at_once", "Verify KZG shares at once"),
    ]
    .into_iter()
    .filter_map(|(slug, way, what)| highlight(tables.iter().find(|table| table.slug == slug)?, way, what))
    .collect()
}

fn highlight(table: &Table, way: &str, what: &str) -> Option<Highlight> {
    let parameter = table.rows.last()?.first()?;
    let figure = |key: &str| table.figure(std::slice::from_ref(parameter), key);
    let (published, ours) = (figure("published_seconds")?, figure(&format!("{way}_seconds"))?);
    Some(Highlight {
        what: format!("{what}, {} validators", parameter.show(Unit::Count)),
        figure: Unit::Seconds.show(ours),
        beside: format!(
            "{} published, {} as long",
            Unit::Seconds.show(published),
            Unit::Times.show(published / ours)
        ),
    })
}

pub(super) fn sources() -> Vec<Publication> {
    vec![
        Publication {
            citation: "Fairblock: DistributedIBE, a library in Go, and its benchmarks.".into(),
            link: "https://github.com/Fairblock/DistributedIBE".into(),
        },
        Publication {
            citation: "Boneh, Franklin: Identity-Based Encryption from the Weil Pairing. CRYPTO 2001.".into(),
            link: "https://eprint.iacr.org/2001/090".into(),
        },
        Publication {
            citation:
                "Kate, Zaverucha, Goldberg: Constant-Size Commitments to Polynomials and Their Applications. \
                       ASIACRYPT 2010."
                    .into(),
            link: "https://cacr.uwaterloo.ca/techreports/2010/cacr2010-10.pdf".into(),
        },
    ]
}
