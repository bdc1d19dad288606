//! A quick run of the experiments with threshold identity-based encryption, as CI makes it.

use quiver_lab::ibe::{IbePlan, reproduce};
use quiver_report::Report;

#[path = "quick_run/watched.rs"]
mod watched;
use watched::{making, quick_run, table};

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    let report = quick_run(|watch| reproduce(&IbePlan::quick(), making(), watch).unwrap());
    every_published_figure_stands_beside_ours(&report);
    insecure_setup_is_called_insecure(&report);
    assert_eq!(report.highlights.len(), 6);
}

fn every_published_figure_stands_beside_ours(report: &Report) {
    assert_eq!(report.tables().count(), 13);
    for table in report.tables() {
        assert!(!table.rows.is_empty(), "{}", table.slug);
        for row in &table.rows {
            for (value, column) in row.iter().zip(&table.columns) {
                assert!(value.number().is_some_and(|number| number > 0.0), "{}: {}", table.slug, column.key);
            }
        }
    }
    let figure = |slug: &str, parameter: u32, key: &str| table(report, slug).figure(&[parameter.into()], key);
    assert_eq!(figure("end-to-end", 8, "published_seconds"), Some(0.019_333_171));
    assert_eq!(figure("extract-and-aggregate", 128, "published_seconds"), Some(0.213_753_903));
    assert_eq!(figure("size-decrypt", 32_768, "published_seconds"), Some(0.000_716_769));
    assert_eq!(figure("size-end-to-end", 32_768, "published_seconds"), None);
    for slug in ["end-to-end", "aggregate", "extract-and-aggregate"] {
        assert!(table(report, slug).columns.iter().any(|column| column.key == "from_bytes_seconds"));
    }
    for slug in ["end-to-end", "extract-and-aggregate"] {
        assert!(table(report, slug).columns.iter().any(|column| column.key == "alone_seconds"));
    }
}

fn insecure_setup_is_called_insecure(report: &Report) {
    let kzg = report.experiments.iter().find(|experiment| experiment.slug == "kzg").unwrap();
    assert!(kzg.title.contains("insecure"));
    assert!(kzg.tables.iter().all(|table| table.caption.contains("insecure")));
    assert!(kzg.plots.iter().all(|plot| plot.caption.contains("insecure")));
}
