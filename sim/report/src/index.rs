//! The runs in a folder of results: `index.html` lists them, `latest` leads to the newest.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;

use crate::page::{STYLE, metadata};
use crate::{ReportError, Result};

/// The most runs that are listed: the newest.
const MOST: usize = 1_000;
/// A larger file than any of ours is not read, in bytes.
const LARGEST: u64 = 64 << 20;
/// Files that say what ran.
const FACTS: [&str; 2] = ["summary.json", "report.json"];
/// Files to look at, the first that is there.
const PAGES: [&str; 3] = ["report.html", "replay.html", "summary.json"];

/// Facts that a run's files state.
#[derive(Debug, Default, Deserialize)]
struct Facts {
    title: Option<String>,
    #[serde(alias = "date")]
    started: Option<String>,
    command: Option<String>,
    passed: Option<bool>,
    interrupted: Option<bool>,
}

#[derive(Debug)]
struct IndexedRun {
    folder: String,
    facts: Facts,
    /// Pages that are there.
    pages: Vec<&'static str>,
}

impl IndexedRun {
    /// `None` for a folder that is no run's.
    fn read(path: &Path) -> Option<Self> {
        let folder = path.file_name()?.to_str()?.to_owned();
        let file = FACTS.iter().find_map(|name| File::open(path.join(name)).ok())?;
        if file.metadata().ok()?.len() > LARGEST {
            return None;
        }
        let facts = serde_json::from_reader(BufReader::new(file)).ok()?;
        let pages = PAGES.into_iter().filter(|page| path.join(page).is_file()).collect();
        Some(Self { folder, facts, pages })
    }
}

/// Lists all runs under `results` in its `index.html`, and lets `latest` lead to `newest`, a folder under it.
///
/// # Errors
/// [`ReportError::File`] if the page cannot be written. A file system without links has no `latest`.
pub(crate) fn update(results: &Path, newest: &Path) -> Result<()> {
    link(results, newest);
    let failed = |source| ReportError::File { path: results.join("index.html"), source };
    let runs = runs(results).map_err(failed)?;
    // Complete at every time, also where several runs end at once.
    let draft = results.join(format!(".index-{}", std::process::id()));
    let written =
        fs::write(&draft, page(&runs)).and_then(|()| fs::rename(&draft, results.join("index.html")));
    written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        failed(error)
    })
}

#[cfg(unix)]
fn link(results: &Path, newest: &Path) {
    let Some(folder) = newest.file_name() else { return };
    let draft = results.join(format!(".latest-{}", std::process::id()));
    let linked = std::os::unix::fs::symlink(folder, &draft);
    if linked.and_then(|()| fs::rename(&draft, results.join("latest"))).is_err() {
        let _ = fs::remove_file(&draft);
    }
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) {}

/// The newest first.
fn runs(results: &Path) -> io::Result<Vec<IndexedRun>> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(results)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort_unstable_by(|a, b| b.cmp(a));
    let mut runs: Vec<IndexedRun> =
        folders.iter().take(MOST).filter_map(|path| IndexedRun::read(path)).collect();
    runs.sort_by(|a, b| b.facts.started.cmp(&a.facts.started));
    Ok(runs)
}

fn page(runs: &[IndexedRun]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (metadata("Results of Quiver's simulator"))
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "Results" } }
                main {
                    div.table { div.scroll tabindex="0" {
                        table.runs {
                            caption { "Runs, the newest first" }
                            thead { tr { @for head in ["ended", "started", "what ran", "command"] { th scope="col" { (head) } } } }
                            tbody { @for run in runs { (row(run)) } }
                        }
                    } }
                }
            }
        }
    };
    page.into_string()
}

/// Word for the end of a run; empty for measurements.
fn ending(facts: &Facts) -> &'static str {
    match (facts.passed, facts.interrupted) {
        (Some(true), _) => "passed",
        (Some(false), _) => "FAILED",
        (None, Some(true)) => "interrupted",
        (None, _) => "",
    }
}

fn row(run: &IndexedRun) -> Markup {
    let facts = &run.facts;
    let title = facts.title.as_deref().unwrap_or(&run.folder);
    let (first, others) = run.pages.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    html! {
        tr {
            td { (ending(facts)) }
            td { (facts.started.as_deref().unwrap_or("").replace('T', " ").replace('Z', " UTC")) }
            td {
                a href={ (run.folder) "/" (first) } { (title) }
                @for page in others { " · " a href={ (run.folder) "/" (page) } { (page) } }
            }
            td { code { (facts.command.as_deref().unwrap_or("")) } }
        }
    }
}
