//! Recorded figures of images, and their comparison with new measurements.
//!
//! `embedded/figures.csv` has one figure per row: `image,benchmark,parameters,quantity,value`. An image is a
//! board with a way to run it; of a benchmark there are instructions and bytes of heap and stack, of the
//! image itself (no benchmark) bytes of flash and of static RAM. No field has a comma or a quotation mark but
//! the parameters, which are quoted where they have.
//!
//! Instructions are the same whenever the same image runs, so a change of more than [`TOLERANCE`] percent
//! means that code or compiler changed: [`compare`] reports it, and the figures are recorded again where that
//! is meant.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::transcript::BenchmarkOutcome;

/// Percent by which a figure may be above the recorded one.
pub const TOLERANCE: u64 = 3;

/// The first line.
const HEADER: &str = "image,benchmark,parameters,quantity,value";

/// Lines that CI measures in emulation: whatever fits into the memory of a board.
pub const LINES: [&str; 35] = [
    "bench aes-ecb 3 1",
    "bench aes-ecb 1 1000",
    "bench aes-cbc 3 4",
    "bench aes-cbc 1 1000",
    "bench rsa 1 100",
    "bench sha 3 256",
    "bench aead 3 256",
    "bench ainq 7",
    "bench datagram 5",
    "bench kem 3",
    "bench kem 3 ml-kem-1024",
    "bench group 1",
    "bench pairing 1",
    "bench pairing 1 3",
    "bench abe 1 yct14 all 1",
    "bench abe 1 yct14 all 5",
    "bench abe 1 yct14 all 10",
    "bench abe 1 yct14 all 20",
    "bench abe 1 yct14 all 30",
    "bench abe 1 gpsw06 all 1",
    "bench abe 1 gpsw06 setup 5",
    "bench abe 1 gpsw06 encrypt 5",
    "bench abe 1 gpsw06 keygen 5",
    "bench abe 1 gpsw06 setup 30",
    "bench abe 1 gpsw06 encrypt 30",
    "bench abe 1 gpsw06 keygen 30",
    "bench abe 1 gpsw06 decrypt 5",
    "bench abe 1 gpsw06 decrypt 30",
    "bench abe 1 gpsw06 decrypt 30 10",
    "bench abe 1 fabeo-kp encrypt 1",
    "bench abe 1 fabeo-kp encrypt 5",
    "bench abe 1 fabeo-kp encrypt 30",
    "bench abe 1 fabeo-cp encrypt 1",
    "bench abe 1 fabeo-cp encrypt 5",
    "bench abe 1 fabeo-cp encrypt 30",
];

/// Quantity of an image or of a benchmark in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Instructions of one iteration.
    Instructions,
    /// Bytes of heap at most, beside what was there before.
    Heap,
    /// Bytes of stack at most.
    Stack,
    /// Bytes of the image in flash.
    Flash,
    /// Bytes of RAM that are taken before anything runs.
    StaticRam,
}

const QUANTITIES: [(Quantity, &str); 5] = [
    (Quantity::Instructions, "instructions"),
    (Quantity::Heap, "heap bytes"),
    (Quantity::Stack, "stack bytes"),
    (Quantity::Flash, "flash bytes"),
    (Quantity::StaticRam, "static RAM bytes"),
];

impl Quantity {
    /// Name of the quantity in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        QUANTITIES.iter().find(|(quantity, _)| *quantity == self).map_or("", |(_, name)| name)
    }
}

/// Subject of a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The image, `mps2-an386` for one.
    pub image: String,
    /// The benchmark as in [`BenchmarkOutcome::benchmark`]; empty for the image itself.
    pub benchmark: String,
    /// Parameters as in [`BenchmarkOutcome::parameters`].
    pub parameters: String,
    /// The quantity.
    pub quantity: Quantity,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { image, benchmark, parameters, quantity } = self;
        let of = [benchmark, parameters].map(|word| if word.is_empty() { "" } else { ", " });
        write!(f, "{image}{}{benchmark}{}{parameters}, {}", of[0], of[1], quantity.name())
    }
}

/// Figures by what they are of: one each.
pub type Figures = BTreeMap<Subject, u64>;

/// Recorded figures cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("figures, line {line}: {what}")]
pub struct FiguresError {
    /// The line, from 1 on.
    pub line: usize,
    /// Description of the mistake.
    pub what: &'static str,
}

/// Reads recorded figures. Lines that are empty or begin with `#` are passed over.
///
/// # Errors
/// [`FiguresError`].
pub fn read(text: &str) -> Result<Figures, FiguresError> {
    let mut figures = Figures::new();
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    if lines.next().map(|(line, _)| line) != Some(HEADER) {
        return Err(FiguresError { line: 1, what: "another header" });
    }
    for (text, line) in lines {
        let wrong = |what| FiguresError { line, what };
        let fields = fields(text).ok_or(wrong("a quotation mark that nothing closes"))?;
        let [image, benchmark, parameters, quantity, value] =
            <[String; 5]>::try_from(fields).map_err(|_| wrong("other than five fields"))?;
        let known = QUANTITIES.iter().find(|(_, name)| *name == quantity);
        let quantity = known.ok_or(wrong("an unknown quantity"))?.0;
        let value = value.parse().map_err(|_| wrong("no number"))?;
        if figures.insert(Subject { image, benchmark, parameters, quantity }, value).is_some() {
            return Err(wrong("recorded twice"));
        }
    }
    Ok(figures)
}

/// Fields between commas; in quotation marks a comma is one of the field's.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut quoted) = (Vec::from([String::new()]), false);
    for character in line.chars() {
        match (character, quoted) {
            ('"', _) => quoted = !quoted,
            (',', false) => fields.push(String::new()),
            (other, _) => fields.last_mut()?.push(other),
        }
    }
    (!quoted).then_some(fields)
}

/// Formats figures as [`read`] reads them, in the order of the subjects.
#[must_use]
pub fn write(figures: &Figures) -> String {
    let mut text = format!("{HEADER}\n");
    for (Subject { image, benchmark, parameters, quantity }, value) in figures {
        let mark = if parameters.contains(',') { "\"" } else { "" };
        let quantity = quantity.name();
        text += &format!("{image},{benchmark},{mark}{parameters}{mark},{quantity},{value}\n");
    }
    text
}

/// Figures of outcomes on an image.
#[must_use]
pub fn of(image: &str, outcomes: &[BenchmarkOutcome]) -> Figures {
    let mut figures = Figures::new();
    for outcome in outcomes {
        let quantities = [
            (Quantity::Instructions, outcome.instructions),
            (Quantity::Heap, outcome.heap),
            (Quantity::Stack, outcome.stack),
        ];
        for (quantity, value) in quantities {
            let (benchmark, parameters) = (outcome.benchmark.clone(), outcome.parameters.clone());
            let subject = Subject { image: image.into(), benchmark, parameters, quantity };
            figures.extend(value.map(|value| (subject, value)));
        }
    }
    figures
}

/// A difference worth reporting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FigureChange {
    /// More than the tolerance above what is recorded.
    Worse {
        /// The figure.
        subject: Subject,
        /// The recorded value.
        recorded: u64,
        /// Now.
        measured: u64,
    },
    /// More than the tolerance below: worth recording, and no failure.
    Better {
        /// The figure.
        subject: Subject,
        /// The recorded value.
        recorded: u64,
        /// Now.
        measured: u64,
    },
    /// Measured, and not recorded.
    Unrecorded {
        /// The figure.
        subject: Subject,
        /// Now.
        measured: u64,
    },
}

impl FigureChange {
    /// Returns true if a check fails by it.
    #[must_use]
    pub const fn fails(&self) -> bool {
        matches!(self, Self::Worse { .. } | Self::Unrecorded { .. })
    }
}

impl fmt::Display for FigureChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, recorded, measured, verdict) = match self {
            Self::Worse { subject, recorded, measured } => (subject, recorded, measured, "above"),
            Self::Better { subject, recorded, measured } => (subject, recorded, measured, "below"),
            Self::Unrecorded { subject, measured } => {
                return write!(f, "{subject}: {measured}, of which nothing is recorded");
            }
        };
        write!(f, "{subject}: {measured}, more than {TOLERANCE} % {verdict} the recorded {recorded}")
    }
}

/// Compares measured figures with recorded ones. Recorded figures that were not measured this time are left
/// alone: a check measures a part.
#[must_use]
pub fn compare(recorded: &Figures, measured: &Figures) -> Vec<FigureChange> {
    let difference = |(subject, &measured): (&Subject, &u64)| {
        let subject = subject.clone();
        let Some(&recorded) = recorded.get(&subject) else {
            return Some(FigureChange::Unrecorded { subject, measured });
        };
        let hundredfold = u128::from(measured) * 100;
        let bound = |percent: u64| u128::from(recorded) * u128::from(percent);
        if hundredfold > bound(100 + TOLERANCE) {
            Some(FigureChange::Worse { subject, recorded, measured })
        } else if hundredfold < bound(100 - TOLERANCE) {
            Some(FigureChange::Better { subject, recorded, measured })
        } else {
            None
        }
    };
    measured.iter().filter_map(difference).collect()
}
