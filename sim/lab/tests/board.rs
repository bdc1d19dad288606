//! A quick run of the bench shell's experiments, as CI makes it.

use quiver_lab::board::{BoardPlan, reproduce};
use quiver_report::Report;

#[path = "quick_run/watched.rs"]
mod watched;
use watched::{making, quick_run, table};

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    let report = quick_run(|watch| reproduce(&BoardPlan::quick(), making(), watch).unwrap());
    every_published_figure_of_a_board_stands_beside_a_native_one(&report);
    emulated_figures_have_estimates_of_the_right_size(&report);
    broken_scheme_is_called_broken(&report);
}

fn every_published_figure_of_a_board_stands_beside_a_native_one(report: &Report) {
    let ciphers = table(report, "board-ciphers");
    assert_eq!(ciphers.rows.len(), 4);
    assert_eq!(ciphers.figure(&["iotlab-m3".into()], "published_min_seconds"), Some(0.000_188));
    for row in &ciphers.rows {
        assert!(ciphers.figure(&row[..3], "native_seconds").is_some_and(|seconds| seconds > 0.0), "{row:?}");
    }
    let groups = table(report, "board-groups");
    assert_eq!(groups.figure(&["Pairing".into()], "soc_seconds"), Some(1.641_741));
    for row in &groups.rows {
        assert!(groups.figure(&row[..1], "native_seconds").is_some(), "{row:?}");
    }
    assert!(groups.rows.iter().take(11).all(|row| groups.figure(&row[..1], "soc_seconds").is_some()));
    for scheme in ["gpsw06", "yct14"] {
        for operation in ["setup", "encrypt", "keygen", "decrypt"] {
            let table = table(report, &format!("board-{scheme}-{operation}"));
            for attributes in BoardPlan::quick().attributes {
                for key in ["soc_seconds", "native_seconds"] {
                    let figure = table.figure(&[attributes.into()], key);
                    assert!(figure.is_some_and(|figure| figure > 0.0), "{}: {key}", table.slug);
                }
            }
        }
    }
    assert_eq!(table(report, "board-edge").rows.len(), 17);
}

/// Emulated figures have a time at 64 MHz wherever instructions are recorded: one to two cycles for each.
fn emulated_figures_have_estimates_of_the_right_size(report: &Report) {
    for table in
        report.tables().filter(|table| table.columns.iter().any(|column| column.key == "instructions"))
    {
        for row in &table.rows {
            let figure = |key| {
                let place = table.columns.iter().position(|column| column.key == key)?;
                row[place].number()
            };
            let Some(instructions) = figure("instructions") else {
                assert_eq!(figure("low_seconds"), None, "{row:?}");
                continue;
            };
            let (low, high) = (figure("low_seconds").unwrap(), figure("high_seconds").unwrap());
            let once = instructions / 64e6;
            assert!(
                once * 0.99 - 1e-6 <= low && low <= high && high <= 2.0 * once,
                "{}: {row:?}",
                table.slug
            );
        }
    }
}

fn broken_scheme_is_called_broken(report: &Report) {
    let yct = report.experiments.iter().find(|experiment| experiment.slug == "board-yct14").unwrap();
    assert!(yct.title.contains("broken") && yct.about[0].contains("Do not use it"));
    for table in report.tables().filter(|table| table.slug.starts_with("board-yct14")) {
        assert!(table.caption.contains("broken"), "{}", table.slug);
    }
}
