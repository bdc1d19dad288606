//! A quick run of the experiments with threshold identity-based encryption, as CI makes it.

use std::fs;
use std::time::{Duration, SystemTime};

use quiver_experiments::ibe::{Plan, reproduce};
use quiver_experiments::observer::Observer;
use quiver_experiments::report::{Making, Report, Table};

/// Counts what it is told.
#[derive(Default)]
struct Watch {
    tasks: Vec<(String, usize, usize)>,
}

impl Observer for Watch {
    fn begin(&mut self, task: &str, steps: usize) {
        self.tasks.push((task.into(), steps, 0));
    }

    fn advance(&mut self, steps: usize) {
        self.tasks.last_mut().expect("a task has begun").2 += steps;
    }
}

fn table<'a>(report: &'a Report, slug: &str) -> &'a Table {
    report.tables().find(|table| table.slug == slug).unwrap_or_else(|| panic!("no table {slug}"))
}

#[test]
fn quick_run_measures_everything_and_writes_a_readable_report() {
    let mut watch = Watch::default();
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let making = Making { date, version: "0.0.0".into(), command: "a test".into() };
    let report = reproduce(&Plan::quick(), making, &mut watch).unwrap();
    for (task, steps, done) in &watch.tasks {
        assert_eq!(steps, done, "{task}");
    }
    let results = tempfile::tempdir().unwrap();
    let folder = report.write_under(results.path()).unwrap();
    for table in report.tables() {
        let text = fs::read_to_string(folder.join(format!("{}.csv", table.slug))).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), table.rows.len(), "{}", table.slug);
    }
    for plot in report.plots() {
        let text = fs::read_to_string(folder.join(format!("{}.svg", plot.slug))).unwrap();
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", plot.slug));
    }
    assert!(fs::read_to_string(folder.join("report.html")).unwrap().contains("</html>"));
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
}

fn insecure_setup_is_called_insecure(report: &Report) {
    let kzg = report.experiments.iter().find(|experiment| experiment.slug == "kzg").unwrap();
    assert!(kzg.title.contains("insecure"));
    assert!(kzg.tables.iter().all(|table| table.caption.contains("insecure")));
    assert!(kzg.plots.iter().all(|plot| plot.caption.contains("insecure")));
}
