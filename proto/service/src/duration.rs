//! Lengths of time as people write them, such as `90s`, `12h` or `30d`: in configurations (`#[serde(with =
//! …)]`) and as flags.
//!
//! They are added to times and multiplied later, where one that is beyond all use would overflow: none is
//! longer than ten years.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// The longest.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Reads a length of time.
///
/// # Errors
/// In words.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text.ends_with('M') || text.contains("M ") {
        // A user who writes 5M means minutes, and would get months.
        return Err(format!("{text:?}: write m for minutes, or months"));
    }
    match humantime::parse_duration(text) {
        Ok(length) if length > LONGEST => Err(format!("{text} is longer than ten years")),
        Ok(length) => Ok(length),
        Err(error) => Err(explain(text, &error)),
    }
}

/// Explains why a length of time does not parse.
fn explain(text: &str, error: &humantime::DurationError) -> String {
    if let Some(positive) = text.strip_prefix('-') {
        return format!("{text:?} is negative; write {positive}");
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{text:?} has no unit; write {text}s or {text}m");
    }
    format!("{text:?} is not a length of time such as 250ms or \"1m 30s\": {error}")
}

/// Writes it as [`deserialize`] reads it.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*length))
}

/// Reads it.
///
/// # Errors
/// As [`parse`].
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_not_spelt_as_minutes() {
        for text in ["5M", "1h 5M 3s"] {
            assert!(parse(text).expect_err(text).contains("m for minutes, or months"), "{text}");
        }
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert!(parse("1month").is_ok());
    }

    #[test]
    fn what_is_beyond_all_use_is_refused() {
        assert_eq!(parse("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse(&humantime::format_duration(LONGEST).to_string()), Ok(LONGEST));
        assert_eq!(parse("11y").unwrap_err(), "11y is longer than ten years");
        for text in ["", "soon", "5 apples", "999999999999999999999y"] {
            assert!(parse(text).unwrap_err().contains("is not a length of time"), "{text}");
        }
        assert_eq!(parse("10").unwrap_err(), "\"10\" has no unit; write 10s or 10m");
        assert_eq!(parse("-3s").unwrap_err(), "\"-3s\" is negative; write 3s");
    }
}
