//! Begins a report with its origin: the machine, and who made it when with what.

use quiver_report::{Machine, Making, Report};

/// A report of this making that says nothing yet.
pub(crate) fn blank_report(making: Making) -> Report {
    let Making { date, version, command } = making;
    let (slug, title, machine, files) = (String::new(), String::new(), Machine::here(), Vec::new());
    let passed = None;
    let (lead, highlights, experiments, sources) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Report {
        slug,
        title,
        lead,
        highlights,
        experiments,
        sources,
        machine,
        date,
        version,
        command,
        passed,
        files,
    }
}
