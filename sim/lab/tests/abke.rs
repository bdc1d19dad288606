//! A quick run of the experiments with attribute-based key exchange, as CI makes it.

use quiver_lab::abke::{AbkePlan, reproduce};
use quiver_report::{CellValue, Report};

#[path = "quick_run/watched.rs"]
mod watched;
use watched::{making, quick_run, table};

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    let report = quick_run(|watch| reproduce(&AbkePlan::quick(), making(), watch).unwrap());
    every_published_step_stands_beside_ours(&report);
    growth_has_every_size_and_bytes_follow_from_it(&report);
    rates_are_gates_over_seconds(&report);
    streaming_is_never_slower_and_sums_are_sums(&report);
    geolocation_is_counted(&report);
    assert_eq!(report.highlights.len(), 7);
}

fn figure(report: &Report, slug: &str, row: &[CellValue], key: &str) -> f64 {
    let figure = table(report, slug).figure(row, key);
    figure.unwrap_or_else(|| panic!("{slug}: no {key} in {row:?}"))
}

fn every_published_step_stands_beside_ours(report: &Report) {
    let steps = table(report, "steps-100000-200");
    for (step, side, published) in [
        ("unlink", "client", 0.078),
        ("decode, verify", "server", 0.857),
        ("encrypt, mask labels, sign", "server", 0.082),
        ("garble", "server", 0.005),
        ("authenticate, decode, decrypt", "client", 0.028),
        ("evaluate", "client", 0.003),
        ("commit", "client", 0.0005),
        ("open seeds", "server", 0.0005),
        ("check: encrypt and garble again", "client", 0.05),
        ("of it: encrypt again", "client", 0.042),
        ("of it: garble again, and all else", "client", 0.008),
        ("total", "server", 0.957),
        ("total", "client", 0.176),
    ] {
        let row = [step.into(), side.into()];
        let theirs = figure(report, &steps.slug, &row, "published_seconds");
        assert!((theirs - published).abs() < 1e-9, "{step}: {theirs}");
        assert!(figure(report, &steps.slug, &row, "ours_seconds") > 0.0, "{step}");
    }
    let verify = ["decode, verify".into()];
    assert_eq!(steps.figure(&verify, "published_batched_seconds"), Some(0.159));
    assert!(
        steps.figure(&verify, "ours_batched_seconds").unwrap()
            < steps.figure(&verify, "ours_seconds").unwrap()
    );
    let total =
        |side: &str| figure(report, "steps-1000-10", &["total".into(), side.into()], "published_seconds");
    assert_eq!((total("server"), total("client")), (0.067, 0.011));
    for slug in ["beforehand-100000-200", "beforehand-1000-10"] {
        assert_eq!(table(report, slug).rows.len(), 6);
    }
}

fn growth_has_every_size_and_bytes_follow_from_it(report: &Report) {
    let plan = AbkePlan::quick();
    for (slug, sizes) in [("gates", &plan.gates), ("attributes", &plan.attributes)] {
        assert_eq!(table(report, slug).rows.len(), sizes.len());
        for size in sizes {
            let row = [if slug == "gates" { size.gates } else { size.attributes }.into()];
            let m = f64::from(size.attributes);
            // Messages 1, 3 and 5; and 2, the tables, 4 and 6.
            let up = 33.0 + 96.0 * (2.0 * m + 6.0) + 33.0 + 81.0;
            let offer = 69.0 + 64.0 + 96.0 * (2.0 * m + 2.0) + 16.0 + 32.0 * m;
            let down = offer + 16.0 * f64::from(size.gates) + 65.0 + 33.0;
            assert_eq!(figure(report, slug, &row, "up_bytes"), up);
            assert_eq!(figure(report, slug, &row, "down_bytes"), down);
            let link = figure(report, slug, &row, "link_seconds");
            assert!((link - 8.0 * (up + down) / 200e6).abs() < 1e-12);
        }
    }
    for slug in ["batches-200", "batches-10"] {
        assert_eq!(table(report, slug).rows.len(), plan.batches.len());
    }
    assert_eq!(figure(report, "batches-200", &[1_u32.into()], "published_seconds"), 0.857);
    assert!(figure(report, "batches-200", &[10_u32.into()], "ours_faster") > 1.0);
}

fn rates_are_gates_over_seconds(report: &Report) {
    for scheme in ["privacy-free", "half gates"] {
        for gates in AbkePlan::quick().garbled {
            let row = [scheme.into(), gates.into()];
            for (seconds, rate) in [
                ("garble_seconds", "garble_gates_per_second"),
                ("evaluate_seconds", "evaluate_gates_per_second"),
            ] {
                let (seconds, rate) =
                    (figure(report, "garbling", &row, seconds), figure(report, "garbling", &row, rate));
                assert!((seconds * rate / f64::from(gates) - 1.0).abs() < 1e-9);
            }
        }
    }
    let row = ["privacy-free".into(), 100_000_u32.into()];
    assert_eq!(figure(report, "garbling", &row, "published_garble_seconds"), 0.005);
    assert_eq!(figure(report, "garbling", &row, "published_evaluate_seconds"), 0.003);
}

fn streaming_is_never_slower_and_sums_are_sums(report: &Report) {
    let link = table(report, "link");
    assert_eq!(link.rows.len(), 4);
    for row in &link.rows {
        let of = |key| figure(report, "link", &row[..1], key);
        let parts = ["client_online_seconds", "server_seconds", "up_seconds", "down_seconds"];
        let sequence = of("sequence_seconds");
        assert!((parts.map(of).iter().sum::<f64>() - sequence).abs() < 1e-9);
        assert!(of("streamed_seconds") <= sequence);
    }
}

fn geolocation_is_counted(report: &Report) {
    let row = [64_u32.into()];
    assert_eq!(figure(report, "geolocation", &row, "attributes"), 192.0);
    assert_eq!(figure(report, "geolocation", &row, "published_gates"), 20_000.0);
    let ands = figure(report, "geolocation", &row, "ands");
    assert!(ands < figure(report, "geolocation", &row, "gates"));
    // 16 bytes of the tables for each.
    let tables = figure(report, "messages", &["tables".into()], "run_3_bytes");
    assert_eq!(tables, 16.0 * ands);
    assert!(figure(report, "geolocation-runs", &row, "server_seconds") > 0.0);
}
