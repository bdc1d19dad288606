//! Units of numbers, and their text for people: three significant digits and a fitting unit.

use std::time::Duration;

use serde::Serialize;

/// Unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// No number, but words.
    Text,
    /// Things.
    Count,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Ratio.
    Times,
    /// A number that need not be whole.
    Number,
}

/// A number of things, in the singular for one: `1 drone`, `20 drones`.
#[must_use]
pub fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

impl Unit {
    /// Formats a value for people: `59.4 s`, `1.20 ms`, `33.6 MB`, `100,000`, `1,150 ×`.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Text | Self::Count => count(value),
            Self::Number => digits(value),
            Self::Times => format!("{} ×", digits(value)),
            Self::Seconds | Self::Bytes => {
                let (factor, name) = self.scale_of(value);
                let number = if name == "B" { count(value) } else { digits(value / factor) };
                format!("{number} {name}")
            }
        }
    }

    /// Formats seconds: [`show`](Self::show) of a length of time.
    #[must_use]
    pub fn duration(duration: Duration) -> String {
        Self::Seconds.show(duration.as_secs_f64())
    }

    /// Formats bytes: [`show`](Self::show) of a whole number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    pub fn bytes(count: u64) -> String {
        Self::Bytes.show(count as f64)
    }

    /// Formats a round value for the axis of a plot: `10 ms`, `100 k`.
    #[must_use]
    pub fn tick(self, value: f64) -> String {
        if value == 0.0 {
            return "0".into();
        }
        let (factor, name) = self.scale_of(value);
        let space = if self == Self::Times { "" } else { " " };
        format!("{}{space}{name}", trimmed(value / factor)).trim_end().into()
    }

    /// The largest multiple of the unit that is not above the value.
    fn scale_of(self, value: f64) -> (f64, &'static str) {
        let scales: &[(f64, &str)] = match self {
            Self::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Self::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Self::Times => &[(1.0, "×")],
            Self::Text | Self::Count | Self::Number => &[(1e6, "M"), (1e3, "k"), (1.0, "")],
        };
        let smallest = scales[scales.len() - 1];
        // A value that rounds to 1000 takes the next unit.
        *scales.iter().find(|(factor, _)| value.abs() >= 0.9995 * factor).unwrap_or(&smallest)
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 99.95 => {
            let last = 10_f64.powf((size.log10() - 2.0).floor());
            count((value / last).round() * last)
        }
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.09995 => format!("{value:.3}"),
        size if size >= 0.000_95 => format!("{value:.4}"),
        size => format!("{value:.*}", decimals(size)),
    }
}

/// Number of decimals that show two significant digits of a small number.
fn decimals(size: f64) -> usize {
    (1..12).find(|decimals| size * 10_f64.powi(*decimals) >= 9.5).map_or(12, i32::unsigned_abs) as usize
}

/// Writes at most three significant digits, without zeros that say nothing.
fn trimmed(value: f64) -> String {
    let text = digits(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A whole number in groups of three digits.
fn count(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("−{grouped}") } else { grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_have_units() {
        assert_eq!(Unit::duration(Duration::from_millis(1_234)), "1.23 s");
        assert_eq!(Unit::duration(Duration::from_secs(123)), "123 s");
        assert_eq!(Unit::duration(Duration::from_micros(12_340)), "12.3 ms");
        assert_eq!(Unit::duration(Duration::from_nanos(1_500)), "1.50 µs");
        assert_eq!(Unit::bytes(999), "999 B");
        assert_eq!(Unit::bytes(12_345), "12.3 kB");
        assert_eq!(Unit::bytes(3_000_000_000), "3.00 GB");
    }

    #[test]
    fn numbers_for_people_have_three_digits_and_a_fitting_unit() {
        assert_eq!(Unit::Seconds.show(59.386), "59.4 s");
        assert_eq!(Unit::Seconds.show(0.000_999_9), "1.00 ms");
        assert_eq!(Unit::Seconds.show(0.000_06), "60.0 µs");
        assert_eq!(Unit::Seconds.show(3e-8), "30.0 ns");
        assert_eq!(Unit::Bytes.show(36_123_456.0), "36.1 MB");
        assert_eq!(Unit::Bytes.show(999.0), "999 B");
        assert_eq!(Unit::Count.show(1_000_000.0), "1,000,000");
        assert_eq!(Unit::Count.show(12.0), "12");
        assert_eq!(Unit::Number.show(0.974), "0.974");
        assert_eq!(Unit::Times.show(1154.4), "1,150 ×");
        assert_eq!(Unit::Times.show(999.9), "1,000 ×");
        assert_eq!(Unit::Times.show(0.5), "0.500 ×");
        assert_eq!(Unit::Times.show(0.000_734), "0.00073 ×");
        assert_eq!(Unit::Times.show(0.000_037), "0.000037 ×");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(Unit::Seconds.tick(0.01), "10 ms");
        assert_eq!(Unit::Seconds.tick(0.0), "0");
        assert_eq!(Unit::Count.tick(100_000.0), "100 k");
        assert_eq!(Unit::Count.tick(1500.0), "1.5 k");
        assert_eq!(Unit::Bytes.tick(1000.0), "1 kB");
        assert_eq!(Unit::Count.tick(10.0), "10");
        assert_eq!(Unit::Times.tick(10.0), "10×");
    }
}
