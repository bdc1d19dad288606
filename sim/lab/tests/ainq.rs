//! A quick run of the AinQ experiments, as CI makes it.

use quiver_lab::ainq::{AinqPlan, reproduce};
use quiver_report::{CellValue, Report};

#[path = "quick_run/watched.rs"]
mod watched;
use watched::{Watch, making, quick_run, table};

fn quick(watch: &mut Watch) -> Report {
    reproduce(&AinqPlan::quick(), making(), watch).unwrap()
}

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    quick_run(quick);
}

#[test]
fn every_time_is_positive_and_every_published_figure_stands_beside_ours() {
    let report = quick(&mut Watch::default());
    for table in report.tables() {
        for row in &table.rows {
            for (value, column) in row.iter().zip(&table.columns) {
                let positive = value.number().is_none_or(|number| number >= 0.0 && number.is_finite());
                assert!(positive, "{}: {}: {value:?}", table.slug, column.key);
            }
        }
    }
    let leader = table(&report, "leader");
    let row = [CellValue::from("GenGroupKey"), 1_u32.into()];
    assert_eq!(leader.figure(&row, "published_seconds"), Some(0.043));
    for key in ["paper_seconds", "flat_seconds", "tree_seconds"] {
        assert!(leader.figure(&row, key).is_some_and(|seconds| seconds > 0.0), "{key}");
    }
    let join = table(&report, "rekey-join");
    assert_eq!(join.figure(&[1_u32.into(), 1_u32.into()], "published_seconds"), Some(0.044));
    assert_eq!(join.figure(&[10_u32.into(), 1_u32.into()], "published_seconds"), None);
}

#[test]
fn flat_sends_an_entry_to_everybody_and_the_tree_two_wraps_on_expiry() {
    let report = quick(&mut Watch::default());
    let expiry = table(&report, "growth-expiry");
    let bytes = |drones: u32, key: &str| expiry.figure(&[drones.into()], key).unwrap();
    // An entry has 37 bytes; the headers differ in nothing that has a length.
    assert_eq!(bytes(50, "flat_bytes") - bytes(10, "flat_bytes"), 40.0 * 37.0);
    assert_eq!(bytes(50, "tree_bytes"), bytes(10, "tree_bytes"));
    let leave = table(&report, "growth-leave");
    let airtime = |key: &str| leave.figure(&[50_u32.into()], key).unwrap();
    assert!(airtime("tree_airtime_seconds") < airtime("flat_airtime_seconds"));
}

#[test]
fn same_seed_gives_the_same_bytes() {
    let bytes = |report: &Report| table(report, "growth-leave").figure(&[50_u32.into()], "tree_bytes");
    assert_eq!(bytes(&quick(&mut Watch::default())), bytes(&quick(&mut Watch::default())));
}
