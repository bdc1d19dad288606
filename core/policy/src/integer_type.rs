//! Types of integer attributes: width, value syntax, dates.

use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt;
use core::str::FromStr;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::Fault;

/// Bits of a date: days since 1970-01-01, up to 2149-06-06.
const DATE_BITS: u8 = 16;

/// Type of an integer attribute, which determines its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum IntegerType {
    /// Unsigned integers of so many bits.
    #[non_exhaustive]
    Unsigned {
        /// 1 to 64.
        bits: u8,
    },
    /// Days since 1970-01-01 in 16 bits, written as `2026-11-20` (proleptic Gregorian, up to 2149-06-06).
    Date,
}

impl IntegerType {
    /// Unsigned integers of 1 to 64 bits.
    ///
    /// # Errors
    /// [`Fault::InvalidWidth`].
    pub const fn unsigned(bits: u8) -> Result<Self, Fault> {
        if matches!(bits, 1..=64) { Ok(Self::Unsigned { bits }) } else { Err(Fault::InvalidWidth) }
    }

    /// Bits of a value, 1 to 64.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Unsigned { bits } => bits,
            Self::Date => DATE_BITS,
        }
    }

    /// The largest value.
    #[must_use]
    pub const fn max(self) -> u64 {
        u64::MAX >> 64_u32.saturating_sub(self.bits() as u32)
    }

    /// A value as it is written.
    #[must_use]
    pub fn shown(self, value: u64) -> String {
        match self {
            Self::Unsigned { .. } => value.to_string(),
            Self::Date => {
                let (year, month, day) = date(value);
                format!("{year:04}-{month:02}-{day:02}")
            }
        }
    }

    /// Description of a value, for an error message.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Unsigned { .. } => "a number",
            Self::Date => "a date such as 2026-11-20",
        }
    }

    /// Parses a value. `None` if the word is nothing like one, `Some(Err)` if it is out of range.
    pub(crate) fn read(self, word: &str) -> Option<Result<u64, Fault>> {
        let value = match self {
            Self::Unsigned { .. } => number(word)?,
            Self::Date => days(word)?,
        };
        let in_range = value.filter(|&value| value <= self.max());
        Some(in_range.ok_or(Fault::OutOfRange { kind: self }))
    }

    pub(crate) fn encode(self, writer: &mut Writer) {
        match self {
            Self::Unsigned { bits } => writer.u8(1).u8(bits),
            Self::Date => writer.u8(2),
        };
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.u8()? {
            1 => Self::unsigned(reader.u8()?).map_err(|_| Malformed("an integer of impossible width")),
            2 => Ok(Self::Date),
            _ => Err(Malformed("not a type of integer")),
        }
    }
}

impl fmt::Display for IntegerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned { bits: 1 } => f.write_str("1 bit"),
            Self::Unsigned { bits } => write!(f, "{bits} bits"),
            Self::Date => f.write_str("date"),
        }
    }
}

impl FromStr for IntegerType {
    type Err = Fault;

    /// Reads `date`, `1 bit` or `16 bits`.
    fn from_str(text: &str) -> Result<Self, Fault> {
        if text == "date" {
            return Ok(Self::Date);
        }
        let (bits, unit) = text.split_once(' ').unwrap_or((text, ""));
        match bits.parse() {
            Ok(bits) if matches!(unit, "bit" | "bits") => Self::unsigned(bits),
            _ => Err(Fault::Expected {
                expected: "`date` or a width such as `16 bits`",
                found: crate::text::quoted(text),
            }),
        }
    }
}

/// A decimal number: `None` if there are other characters than digits, `Some(None)` beyond 64 bits.
fn number(word: &str) -> Option<Option<u64>> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok())
}

/// The days from 1970-01-01 to a date written as `2026-11-20`: `None` if it is not written so or is no date,
/// `Some(None)` before 1970.
fn days(word: &str) -> Option<Option<u64>> {
    let mut parts = word.splitn(3, '-');
    let mut part = |len: usize| parts.next().filter(|part| part.len() == len).and_then(|part| number(part)?);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if !(1..=12).contains(&month) || !(1..=month_len(year, month)).contains(&day) {
        return None;
    }
    // Each term is small: no sum of these comes near the end of 64 bits.
    let years: u64 = (1970..year).map(year_len).sum();
    let months: u64 = (1..month).map(|month| month_len(year, month)).sum();
    Some((year >= 1970).then(|| years.saturating_add(months).saturating_add(day).saturating_sub(1)))
}

/// The year, month and day so many days after 1970-01-01; years stop at 9999, where no date of 16 bits comes.
fn date(days: u64) -> (u64, u64, u64) {
    let (mut year, mut month, mut left) = (1970, 1, days);
    while left >= year_len(year) && year < 9999 {
        left = left.saturating_sub(year_len(year));
        year = year.saturating_add(1);
    }
    while left >= month_len(year, month) && month < 12 {
        left = left.saturating_sub(month_len(year, month));
        month = month.saturating_add(1);
    }
    (year, month, left.saturating_add(1))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn year_len(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn month_len(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_have_their_days() {
        // `date -ud DATE +%s` / 86400
        for (written, value) in [
            ("1970-01-01", 0),
            ("1972-02-29", 789),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-20", 20_777),
            ("2100-03-01", 47_541),
            ("2149-06-06", 65_535),
        ] {
            assert_eq!(IntegerType::Date.read(written), Some(Ok(value)), "{written}");
            assert_eq!(IntegerType::Date.shown(value), written);
        }
    }

    #[test]
    fn every_date_is_read_back() {
        for value in 0..=IntegerType::Date.max() {
            assert_eq!(IntegerType::Date.read(&IntegerType::Date.shown(value)), Some(Ok(value)));
        }
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for written in
            ["2026-02-29", "2100-02-29", "2026-13-01", "2026-00-01", "2026-04-31", "2026-1-1", "20", ""]
        {
            assert_eq!(IntegerType::Date.read(written), None, "{written}");
        }
        for written in ["1969-12-31", "2149-06-07", "9999-12-31"] {
            assert_eq!(
                IntegerType::Date.read(written),
                Some(Err(Fault::OutOfRange { kind: IntegerType::Date })),
                "{written}"
            );
        }
    }

    #[test]
    fn types_are_written_as_they_are_read() {
        for kind in (1..=64).map(|bits| IntegerType::unsigned(bits).unwrap()).chain([IntegerType::Date]) {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for text in ["", "16", "0 bits", "65 bits", "256 bits", "dates", "16 bytes", "-1 bits"] {
            assert!(text.parse::<IntegerType>().is_err(), "{text}");
        }
        assert_eq!(IntegerType::unsigned(64).unwrap().max(), u64::MAX);
        assert_eq!(IntegerType::unsigned(1).unwrap().max(), 1);
    }
}
