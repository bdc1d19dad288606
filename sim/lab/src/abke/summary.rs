//! Highlights and sources of the report on attribute-based key exchange.

use quiver_report::{CellValue, Experiment, Highlight, Publication, Table, Unit};

use super::plan::AbkePlan;

pub(super) fn lead() -> Vec<String> {
    vec![
        "A leader admits whoever satisfies a policy over certified fields: who is inside a circle, has enough battery. It learns that \
         one bit, and neither who it is nor where. Both sides end up with a key exactly if the policy is satisfied."
            .into(),
        "The published figures are of another machine and another curve, ours CPU times of the machine below. A ratio between them says how long you \
         wait, not whose algorithm is better. Each section says what either number counts."
            .into(),
    ]
}

/// Method of measuring, the same for all.
pub(super) fn method(plan: &AbkePlan) -> Vec<String> {
    vec![format!(
        "Medians in CPU time of one thread, of {} to {} samples. A sample of a step is a whole run of both sides, out of which each step is timed; runs \
         whose two sides hold different keys end the measurement.",
        plan.effort.least, plan.effort.most
    )]
}

/// Highlights: the table, the beginning of the row, published and ours, the name.
pub(super) fn highlights(experiments: &[Experiment]) -> Vec<Highlight> {
    let text = |words: &str| CellValue::from(words);
    let total = |side: &str| vec![text("total"), text(side)];
    let large = "100,000 gates, 200 attributes";
    let rows: [(&str, Vec<CellValue>, &str, &str, String); 7] = [
        (
            "steps-100000-200",
            total("server"),
            "published_seconds",
            "ours_seconds",
            format!("Server, {large}"),
        ),
        (
            "steps-100000-200",
            total("client"),
            "published_seconds",
            "ours_seconds",
            format!("Client, {large}"),
        ),
        (
            "steps-1000-10",
            total("server"),
            "published_seconds",
            "ours_seconds",
            "Server, 1,000 gates, 10 attributes".into(),
        ),
        (
            "steps-1000-10",
            total("client"),
            "published_seconds",
            "ours_seconds",
            "Client, 1,000 gates, 10 attributes".into(),
        ),
        (
            "batches-200",
            vec![10_u32.into()],
            "published_seconds",
            "ours_seconds",
            "Verify a key, one of ten at once".into(),
        ),
        (
            "garbling",
            vec![text("privacy-free"), 100_000_u32.into()],
            "published_garble_seconds",
            "garble_seconds",
            "Garble 100,000 gates".into(),
        ),
        (
            "garbling",
            vec![text("privacy-free"), 100_000_u32.into()],
            "published_evaluate_seconds",
            "evaluate_seconds",
            "Evaluate 100,000 gates".into(),
        ),
    ];
    let tables: Vec<&Table> = experiments.iter().flat_map(|experiment| &experiment.tables).collect();
    let highlight = |(slug, row, theirs, ours, what): &(&str, Vec<CellValue>, &str, &str, String)| {
        let table = tables.iter().find(|table| table.slug == *slug)?;
        let (theirs, ours) = (table.figure(row, theirs)?, table.figure(row, ours)?);
        Some(Highlight {
            what: what.clone(),
            figure: Unit::Seconds.show(ours),
            beside: format!(
                "{} published, {} as long",
                Unit::Seconds.show(theirs),
                Unit::Times.show(theirs / ours)
            ),
        })
    };
    rows.iter().filter_map(highlight).collect()
}

pub(super) fn sources() -> Vec<Publication> {
    vec![Publication {
        citation: "Kolesnikov, Krawczyk, Lindell, Malozemoff, Rabin: Attribute-based Key Exchange with General Policies. CCS 2016. \
                   Table 10.1."
            .into(),
        link: "https://eprint.iacr.org/2016/518".into(),
    }]
}
