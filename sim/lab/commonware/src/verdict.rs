//! Ratios between the medians of one run.

use std::fs;
use std::path::Path;

/// One median over another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The operation, as criterion's group is called.
    pub operation: &'static str,
    /// The contender in the numerator.
    pub whole: &'static str,
    /// The contender in the denominator.
    pub part: &'static str,
    /// The least ratio, in hundredths, if there is one.
    pub at_least: Option<u32>,
}

const fn over(operation: &'static str, theirs: &'static str, ours: &'static str, goal: Option<u32>) -> Ratio {
    Ratio { operation, whole: theirs, part: ours, at_least: goal }
}

/// The ratios of the bench: not to be slower, and to gain from precomputing one identity.
pub const RATIOS: [Ratio; 7] = [
    over("encrypt", "commonware-minpk", "quiver", Some(100)),
    over("decrypt", "commonware-minpk", "quiver", Some(100)),
    over("combine", "commonware-minpk", "quiver", Some(100)),
    over("encrypt", "commonware-minpk", "quiver-kept", Some(140)),
    over("encrypt", "commonware-minsig", "quiver", None),
    over("decrypt", "commonware-minsig", "quiver", None),
    over("combine", "commonware-minsig", "quiver", None),
];

/// A table of all ratios whose medians criterion has left under `folder`; empty if there are none.
#[must_use]
pub fn table(folder: &Path) -> String {
    RATIOS.iter().filter_map(|ratio| line(folder, ratio)).collect()
}

fn line(folder: &Path, ratio: &Ratio) -> Option<String> {
    let whole = median(folder, ratio.operation, ratio.whole)?;
    let part = median(folder, ratio.operation, ratio.part)?;
    let value = whole / part;
    let goal = ratio
        .at_least
        .map(|hundredths| f64::from(hundredths) / 100.0)
        .map_or(String::new(), |goal| format!(">= {goal} {}", if value >= goal { "met" } else { "MISSED" }));
    let name = format!("{} {} / {}", ratio.operation, ratio.whole, ratio.part);
    let (whole, part) = (whole / 1e6, part / 1e6);
    Some(format!("{name:<44} {whole:>8.3} ms / {part:>8.3} ms = {value:>5.2} {goal}\n"))
}

/// The median in nanoseconds that criterion has left.
fn median(folder: &Path, operation: &str, name: &str) -> Option<f64> {
    let path = folder.join(operation).join(name).join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    estimates.get("median")?.get("point_estimate")?.as_f64()
}
