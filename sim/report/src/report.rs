//! The model of a report: experiments with their tables and plots, sources, machine; for people and for
//! programs.
//!
//! A program fills the model ([`Report`], [`Experiment`], [`Table`], [`Plot`]) once; every form is made from
//! it:
//!
//! | form | made by |
//! |---|---|
//! | tables on a terminal | [`Report::terminal`] |
//! | one HTML page that needs nothing else | [`Report::page`] |
//! | one JSON object | [`Report::json`] |
//! | a folder with the page, the JSON, a CSV per table and an SVG per plot | [`Report::write_under`] |

use std::time::SystemTime;

use serde::Serialize;

use crate::{Machine, Plot, Result, Table, page, terminal};

/// Experiments that belong together, on one machine at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Names the report in paths: lower-case letters, digits and hyphens.
    pub slug: String,
    /// Title of the report.
    pub title: String,
    /// Introduction of the report, one paragraph each.
    pub lead: Vec<String>,
    /// The figures to remember.
    pub highlights: Vec<Highlight>,
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// Sources of the published figures.
    pub sources: Vec<Publication>,
    /// The machine of our measurements.
    pub machine: Machine,
    /// Date, as the caller gives it.
    #[serde(serialize_with = "rfc3339")]
    pub date: SystemTime,
    /// The version of the program.
    pub version: String,
    /// The command that makes this report.
    pub command: String,
    /// True if the runs that it is about passed; `None` for measurements.
    pub passed: Option<bool>,
    /// Files beside the page; none: those that [`write_under`](Self::write_under) writes.
    #[serde(skip)]
    pub files: Vec<String>,
}

/// A figure to remember.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Highlight {
    /// Name of the figure.
    pub what: String,
    /// The figure, with its unit.
    pub figure: String,
    /// The figure with which it is compared.
    pub beside: String,
}

/// A publication whose figures are compared with ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Publication {
    /// Authors, title, where and when it appeared.
    pub citation: String,
    /// Link to it.
    pub link: String,
}

/// One thing that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Experiment {
    /// Names it in links: lower-case letters, digits and hyphens.
    pub slug: String,
    /// Title of the experiment.
    pub title: String,
    /// Subject and results of the experiment, one paragraph each.
    pub about: Vec<String>,
    /// The published figures, and what is known of their measurement.
    pub published: Vec<String>,
    /// Method of our measurement.
    pub method: Vec<String>,
    /// Differences of our measurement from the published one.
    pub differences: Vec<String>,
    /// Drawings, before the tables.
    pub plots: Vec<Plot>,
    /// Figures.
    pub tables: Vec<Table>,
}

/// Origin of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Making {
    /// Date.
    pub date: SystemTime,
    /// Version of the program.
    pub version: String,
    /// Command line of the run.
    pub command: String,
}

impl Report {
    /// Every table, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.experiments.iter().flat_map(|experiment| &experiment.tables)
    }

    /// Every plot, in order.
    pub fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.experiments.iter().flat_map(|experiment| &experiment.plots)
    }

    /// Names of the files beside the page.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        if !self.files.is_empty() {
            return self.files.clone();
        }
        let tables = self.tables().map(|table| format!("{}.csv", table.slug));
        let plots = self.plots().map(|plot| format!("{}.svg", plot.slug));
        std::iter::once("report.json".into()).chain(tables).chain(plots).collect()
    }

    /// The report as text for a terminal: the highlights and all tables.
    #[must_use]
    pub fn terminal(&self) -> String {
        terminal::render(self)
    }

    /// A JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys: serialising it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// An HTML page that needs nothing beside it: no network, no script.
    ///
    /// # Errors
    /// [`ReportError::Plot`](crate::ReportError::Plot).
    pub fn page(&self) -> Result<String> {
        page::render(self)
    }

    /// The date as people write it, in UTC.
    #[must_use]
    pub fn day_and_time(&self) -> String {
        humantime::format_rfc3339_seconds(self.date).to_string().replace('T', " ").replace('Z', " UTC")
    }
}

fn rfc3339<S: serde::Serializer>(date: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_seconds(*date))
}
