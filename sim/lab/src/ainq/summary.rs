//! Highlights of the report on AinQ.

use quiver_report::{CellValue, Experiment, Highlight, Table, Unit};

use super::plan::AinqPlan;

pub(super) fn lead() -> Vec<String> {
    vec![
        "AinQ lets a leader give one key to a swarm of drones without certificates. Its authors measured it for up to 2,000 \
         drones. This page runs the same experiments: first the algorithms as published, then Quiver's, which keep the paper's \
         mathematics and add what a protocol needs. Then it goes on, far beyond what was published."
            .into(),
        "The published figures were taken on the authors' machines, ours on the one below. A ratio between them says how long \
         you wait, not whose algorithm is better; where we can, the tables also count in multiplications of the machine \
         itself, which does."
            .into(),
    ]
}

/// The figures to remember, as far as they were measured.
pub(super) fn highlights(experiments: &[Experiment], plan: &AinqPlan) -> Vec<Highlight> {
    let tables: Vec<&Table> = experiments.iter().flat_map(|experiment| &experiment.tables).collect();
    let drones = plan.largest();
    [
        beside_published(
            &tables,
            "leader",
            &["GenGroupKey".into(), 2000_u32.into()],
            "Forming a group of 2,000",
        ),
        beside_published(
            &tables,
            "leader",
            &["Re-Key on expiry".into(), 2000_u32.into()],
            "New key for 2,000 on expiry",
        ),
        beside_published(
            &tables,
            "rekey-join",
            &[1000_u32.into(), 1000_u32.into()],
            "1,000 drones join 1,000",
        ),
        beside_flat(&tables, "growth-leave", drones, "cpu_seconds", Unit::Seconds, "leader CPU"),
        beside_flat(&tables, "growth-leave", drones, "bytes", Unit::Bytes, "bytes sent"),
        beside_flat(
            &tables,
            "growth-leave",
            drones,
            "airtime_seconds",
            Unit::Seconds,
            "airtime on IEEE 802.15.4",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn figure(tables: &[&Table], slug: &str, row: &[CellValue], key: &str) -> Option<f64> {
    tables.iter().find(|table| table.slug == slug)?.figure(row, key)
}

fn beside_published(tables: &[&Table], slug: &str, row: &[CellValue], what: &str) -> Option<Highlight> {
    let published = figure(tables, slug, row, "published_seconds")?;
    let ours = figure(tables, slug, row, "flat_seconds")?;
    Some(Highlight {
        what: what.into(),
        figure: Unit::Seconds.show(ours),
        beside: format!(
            "{} published, {} as long",
            Unit::Seconds.show(published),
            Unit::Times.show(published / ours)
        ),
    })
}

fn beside_flat(
    tables: &[&Table],
    slug: &str,
    drones: u32,
    key: &str,
    unit: Unit,
    what: &str,
) -> Option<Highlight> {
    let row = [drones.into()];
    let flat = figure(tables, slug, &row, &format!("flat_{key}"))?;
    let tree = figure(tables, slug, &row, &format!("tree_{key}"))?;
    Some(Highlight {
        what: format!("One of {} leaves: {what}", Unit::Count.show(f64::from(drones))),
        figure: unit.show(tree),
        beside: format!("along the tree; {} if the key is wrapped for everybody", unit.show(flat)),
    })
}
