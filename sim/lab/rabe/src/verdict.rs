//! Ratios between the medians of one run.

use std::fmt;
use std::fs;
use std::path::Path;

/// Attributes in the large conjunction.
pub const MANY: usize = 30;

/// One median over another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The operation, as criterion's group is called.
    pub operation: &'static str,
    /// The contender in the numerator, with its number of attributes.
    pub whole: (&'static str, usize),
    /// The contender in the denominator.
    pub part: (&'static str, usize),
    /// The goal.
    pub goal: RatioGoal,
}

/// Goal of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioGoal {
    /// A ratio of at least this, in tenths.
    AtLeast(u32),
    /// A ratio of at most this, in tenths.
    AtMost(u32),
    /// Any ratio.
    None,
}

impl RatioGoal {
    fn judge(self, ratio: f64) -> &'static str {
        let met = match self {
            Self::AtLeast(tenths) => ratio * 10.0 >= f64::from(tenths),
            Self::AtMost(tenths) => ratio * 10.0 <= f64::from(tenths),
            Self::None => return "",
        };
        if met { "met" } else { "MISSED" }
    }
}

impl fmt::Display for RatioGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(tenths) => write!(f, ">= {}", f64::from(*tenths) / 10.0),
            Self::AtMost(tenths) => write!(f, "<= {}", f64::from(*tenths) / 10.0),
            Self::None => Ok(()),
        }
    }
}

const fn over(operation: &'static str, theirs: &'static str, ours: &'static str, goal: RatioGoal) -> Ratio {
    Ratio { operation, whole: (theirs, MANY), part: (ours, MANY), goal }
}

const fn flat(ours: &'static str, goal: RatioGoal) -> Ratio {
    Ratio { operation: "decrypt", whole: (ours, MANY), part: (ours, 1), goal }
}

/// The ratios of the bench. Schemes of one kind stand against each other: yct14 and lsw have the policy in
/// the key.
pub const RATIOS: [Ratio; 21] = [
    over("encrypt", "rabe-yct14", "quiver-fabeo22-kp-prepared", RatioGoal::AtLeast(500)),
    over("encrypt", "rabe-yct14", "quiver-gpsw06-prepared", RatioGoal::AtLeast(500)),
    over("encrypt", "rabe-yct14", "quiver-yct14-insecure", RatioGoal::AtLeast(500)),
    over("encrypt", "rabe-lsw", "quiver-fabeo22-kp-prepared", RatioGoal::AtLeast(250)),
    over("encrypt", "rabe-lsw", "quiver-gpsw06-prepared", RatioGoal::AtLeast(250)),
    over("encrypt", "rabe-yct14", "quiver-fabeo22-kp", RatioGoal::None),
    over("encrypt", "rabe-lsw", "quiver-fabeo22-kp", RatioGoal::None),
    over("encrypt", "rabe-lsw", "quiver-gpsw06", RatioGoal::None),
    over("encrypt", "rabe-ac17-kp", "quiver-fabeo22-kp-prepared", RatioGoal::None),
    over("encrypt", "rabe-ac17-cp", "quiver-fabeo22-cp-prepared", RatioGoal::None),
    over("decrypt", "rabe-lsw", "quiver-fabeo22-kp", RatioGoal::AtLeast(1500)),
    over("decrypt", "rabe-lsw", "quiver-gpsw06", RatioGoal::None),
    over("decrypt", "rabe-yct14", "quiver-yct14-insecure", RatioGoal::None),
    over("decrypt", "rabe-ac17-kp", "quiver-fabeo22-kp", RatioGoal::None),
    over("decrypt", "rabe-ac17-cp", "quiver-fabeo22-cp", RatioGoal::None),
    flat("quiver-fabeo22-kp", RatioGoal::AtMost(13)),
    flat("quiver-fabeo22-cp", RatioGoal::AtMost(13)),
    over("generate", "rabe-yct14", "quiver-yct14-insecure", RatioGoal::None),
    over("generate", "rabe-lsw", "quiver-fabeo22-kp-prepared", RatioGoal::None),
    over("generate", "rabe-lsw", "quiver-gpsw06-prepared", RatioGoal::None),
    over("generate", "rabe-ac17-cp", "quiver-fabeo22-cp-prepared", RatioGoal::None),
];

/// A table of all ratios whose medians criterion has left under `folder`; empty if there are none.
#[must_use]
pub fn table(folder: &Path) -> String {
    RATIOS.iter().filter_map(|ratio| line(folder, ratio)).collect()
}

fn line(folder: &Path, ratio: &Ratio) -> Option<String> {
    let (whole, part) =
        (median(folder, ratio.operation, ratio.whole)?, median(folder, ratio.operation, ratio.part)?);
    let (name, goal) =
        (format!("{} {} / {}", ratio.operation, Who(ratio.whole), Who(ratio.part)), ratio.goal);
    let value = whole / part;
    let (whole, part) = (whole / 1e6, part / 1e6);
    Some(format!(
        "{name:<72} {whole:>9.3} ms / {part:>7.3} ms = {value:>7.2} {:<8} {}\n",
        goal.to_string(),
        goal.judge(value)
    ))
}

struct Who((&'static str, usize));

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.0, self.0.1)
    }
}

/// The median in nanoseconds that criterion has left.
fn median(folder: &Path, operation: &str, (name, count): (&str, usize)) -> Option<f64> {
    let path = folder.join(operation).join(name).join(count.to_string()).join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    estimates.get("median")?.get("point_estimate")?.as_f64()
}
