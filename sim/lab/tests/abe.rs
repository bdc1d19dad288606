//! A quick run of the experiments with attribute-based encryption, as CI makes it.

use std::alloc::System;

use peakmem_alloc::PeakMemAlloc;
use quiver_lab::abe::{AbePlan, reproduce};
use quiver_report::{CellValue, Report};

#[path = "quick_run/watched.rs"]
mod watched;
use watched::{Watch, making, quick_run, table};

#[global_allocator]
static HEAP: PeakMemAlloc<System> = PeakMemAlloc::system();

fn quick(watch: &mut Watch) -> Report {
    reproduce(&AbePlan::quick(), making(), &HEAP, watch).unwrap()
}

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    let report = quick_run(quick);
    every_published_figure_stands_beside_ours(&report);
    memory_and_sizes_grow_as_they_must(&report);
    broken_scheme_is_called_broken(&report);
    same_seed_gives_the_same_bytes(&report);
}

fn every_published_figure_stands_beside_ours(report: &Report) {
    let groups = table(report, "groups");
    assert_eq!(groups.figure(&["Pairing".into()], "laptop_seconds"), Some(0.006_412));
    for row in groups.rows.iter().take(11) {
        for key in ["soc_seconds", "laptop_seconds", "ours_seconds"] {
            assert!(groups.figure(&row[..1], key).is_some_and(|seconds| seconds > 0.0), "{row:?}: {key}");
        }
    }
    for scheme in ["gpsw06", "yct14"] {
        for operation in ["setup", "encrypt", "keygen", "decrypt"] {
            let table = table(report, &format!("{scheme}-{operation}"));
            for attributes in AbePlan::quick().attributes {
                for key in ["soc_seconds", "laptop_seconds", "ours_seconds", "laptop_over_ours"] {
                    let figure = table.figure(&[attributes.into()], key);
                    assert!(figure.is_some_and(|figure| figure > 0.0), "{}: {key}", table.slug);
                }
            }
        }
    }
    assert_eq!(table(report, "gpsw06-decrypt").figure(&[30_u32.into()], "laptop_seconds"), Some(0.300_613));
    assert_eq!(table(report, "overview").rows.len(), 20);
}

fn memory_and_sizes_grow_as_they_must(report: &Report) {
    let bytes = |slug: &str, row: u32, key: &str| table(report, slug).figure(&[row.into()], key).unwrap();
    assert_eq!(bytes("memory-layers-decrypt", 1, "gpsw06_soc_bytes"), 181_304.0);
    for key in ["gpsw06_bytes", "yct14_bytes", "fabeo22_kp_bytes", "fabeo22_cp_bytes"] {
        assert!(bytes("memory-attributes-encrypt", 1, key) > 0.0, "{key}");
        let (few, many) =
            (bytes("memory-attributes-decrypt", 1, key), bytes("memory-attributes-decrypt", 30, key));
        assert!(few > 0.0 && few < many, "{key}: {few}, {many}");
    }
    // The public terms are the same; the rest is points of 32, 48 and 96 bytes.
    for count in [1_u32, 5, 30] {
        let n = f64::from(count);
        let [ciphertext, key] = ["sizes-ciphertext", "sizes-key"]
            .map(|slug| move |one: &str, other: &str| bytes(slug, count, one) - bytes(slug, count, other));
        assert_eq!(ciphertext("gpsw06_bytes", "yct14_bytes"), 16.0 * n);
        assert_eq!(ciphertext("fabeo22_kp_bytes", "gpsw06_bytes"), 96.0);
        assert_eq!(key("gpsw06_bytes", "yct14_bytes"), 64.0 * n);
        assert_eq!(key("gpsw06_bytes", "fabeo22_kp_bytes"), 48.0 * n - 96.0);
    }
}

fn broken_scheme_is_called_broken(report: &Report) {
    let yct = report.experiments.iter().find(|experiment| experiment.slug == "yct14").unwrap();
    assert!(yct.title.contains("broken") && yct.about[0].contains("Do not use it"));
    for table in report.tables() {
        for row in &table.rows {
            let named =
                |value: &CellValue| matches!(value, CellValue::Text(text) if text.starts_with("YCT14"));
            let text = |value: &CellValue| matches!(value, CellValue::Text(text) if text.contains("broken"));
            assert!(!row.iter().any(named) || row.iter().any(text), "{}: {row:?}", table.slug);
        }
    }
}

/// Compares the bytes of two runs, within the one test of this file: a second one beside it would allocate
/// while the first counts.
fn same_seed_gives_the_same_bytes(report: &Report) {
    let sizes = |report: &Report| {
        let tables = report.tables().filter(|table| table.slug.starts_with("sizes-"));
        tables.map(|table| table.rows.clone()).collect::<Vec<_>>()
    };
    let first = sizes(report);
    assert_eq!((first.len(), &first), (3, &sizes(&quick(&mut Watch::default()))));
}
