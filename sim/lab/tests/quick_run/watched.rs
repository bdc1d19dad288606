//! Requirements of every quick run. Each experiment has a test binary of its own, because the one about
//! attributes counts the whole process's heap.

use std::fs;
use std::time::{Duration, SystemTime};

use quiver_report::{Making, Observer, Report, Table};

/// Counts its calls.
#[derive(Default)]
pub(crate) struct Watch {
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

/// Origin of the report: always the same.
pub(crate) fn making() -> Making {
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    Making { date, version: "0.0.0".into(), command: "a test".into() }
}

pub(crate) fn table<'a>(report: &'a Report, slug: &str) -> &'a Table {
    report.tables().find(|table| table.slug == slug).unwrap_or_else(|| panic!("no table {slug}"))
}

/// Makes a report: all that was announced was done, and every file of the report can be read.
pub(crate) fn quick_run(reproduce: impl FnOnce(&mut Watch) -> Report) -> Report {
    let mut watch = Watch::default();
    let report = reproduce(&mut watch);
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
    report
}
