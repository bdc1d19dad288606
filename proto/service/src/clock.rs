//! The wall clock, in the seconds the protocol counts, and how people read and write times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quiver_ainq::UnixTime;

/// Seconds since 1970-01-01T00:00:00Z.
pub fn unix_now() -> UnixTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "services are drivers; this is where they read the wall clock"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The day of the last release, 2026-11-23. A clock that is before it is not set: this version did not exist then.
const RELEASED: UnixTime = 1_795_392_000;

/// The time, if the clock is set. One without a battery begins in 1970, or with the time of the last
/// shutdown, which cannot be told.
pub fn set_now() -> Option<UnixTime> {
    Some(unix_now()).filter(|now| is_set(*now))
}

fn is_set(time: UnixTime) -> bool {
    time >= RELEASED
}

/// The last second of the year 9999, in place of any time beyond.
const LAST: UnixTime = 253_402_300_799;

/// A time as people read it, in UTC: `2026-01-31T12:00:00Z`, or `never`.
pub fn format(time: UnixTime) -> String {
    if time >= LAST { "never".into() } else { in_rfc3339(time) }
}

fn in_rfc3339(time: UnixTime) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time.min(LAST))).to_string()
}

/// Writes a time into JSON, for `#[serde(serialize_with = …)]`: by RFC 3339 in UTC; one beyond the year 9999 as
/// that year's last second.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: serde::Serializer>(time: &UnixTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&in_rfc3339(*time))
}

/// A time in JSON that may not be known, for `#[serde(with = …)]`: as [`serialize`] writes it, or null.
pub mod rfc3339 {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::UnixTime;

    /// Writes it.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<UnixTime>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(super::in_rfc3339).serialize(serializer)
    }

    /// Reads it as it was written.
    ///
    /// # Errors
    /// In words, if it is no time.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UnixTime>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| super::parse_time(&text).map_err(D::Error::custom)).transpose()
    }
}

/// Report that `apart` of `heard` others have another time than this machine at `now`, the middle one of them
/// `ahead` seconds ahead.
pub fn disagreement(now: UnixTime, (apart, heard): (usize, usize), ahead: i64) -> String {
    let theirs = format(now.saturating_add_signed(ahead));
    let ours = format(now);
    let span = span(ahead.unsigned_abs());
    let way = if ahead > 0 { "behind" } else { "ahead" };
    format!(
        "{apart} of {heard} clocks heard of say {theirs}, and this machine's clock says {ours}, {span} {way}: set the \
         clocks right"
    )
}

/// A time span as people read it, in two units at most: `1 h 3 min`.
#[must_use]
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let units = UNITS.iter().skip(first).take(2).filter_map(|(unit, name)| {
        let count = rest / unit;
        rest %= unit;
        (count > 0 || seconds == 0).then(|| format!("{count} {name}"))
    });
    units.collect::<Vec<_>>().join(" ")
}

/// A revocation list by its number and when it is stale, as people read it.
pub fn describe_list(number: u64, next_update: Option<UnixTime>) -> String {
    match next_update {
        Some(due) if due < unix_now() => format!("{number}, stale since {}", format(due)),
        Some(due) => format!("{number}, fresh until {}", format(due)),
        None => "none".into(),
    }
}

/// Reads a time: `2026-01-31T12:00:00Z`, or a duration from now such as `90d`, `12h`, `30m`.
///
/// # Errors
/// In words.
pub fn parse_time(text: &str) -> Result<UnixTime, String> {
    if humantime::parse_duration(text).is_ok() {
        return crate::duration::parse(text).map(|length| unix_now().saturating_add(length.as_secs()));
    }
    match humantime::parse_rfc3339_weak(text) {
        Ok(time) => Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()),
        Err(_) => Err(not_a_time(text)),
    }
}

fn not_a_time(text: &str) -> String {
    let forms = "a duration from now (90d, 12h, 30m) or a time (2026-01-31T12:00:00Z)";
    let rest = text.strip_prefix('-').unwrap_or(text);
    match humantime::parse_duration(rest) {
        Ok(_) => format!("{text:?} lies in the past; give {forms}"),
        Err(_) if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{text:?} has no unit; write {rest}d or {rest}h, or a time (2026-01-31T12:00:00Z)")
        }
        Err(_) => format!("neither {}", forms.replace(" or ", " nor ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_the_last_release_is_not_set() {
        let changelog = include_str!("../../../CHANGELOG.md");
        let release = changelog.lines().find_map(|line| line.strip_prefix("## ")?.split_once(" - "));
        let (_, day) = release.expect("a release with its day");
        assert_eq!(format(RELEASED), format!("{day}T00:00:00Z"), "write the day of the release here");
        assert!(!is_set(0) && !is_set(RELEASED - 1));
        assert!(is_set(RELEASED) && set_now().is_some());
    }

    #[test]
    fn times_are_written_and_read_alike() {
        assert_eq!(format(1_769_860_800), "2026-01-31T12:00:00Z");
        assert_eq!(parse_time("2026-01-31T12:00:00Z"), Ok(1_769_860_800));
        assert_eq!(format(u64::MAX), "never");
    }

    #[test]
    fn times_in_json_come_back() {
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Until(#[serde(with = "rfc3339")] Option<UnixTime>);
        for (until, json) in [
            (Until(Some(1_769_860_800)), "\"2026-01-31T12:00:00Z\""),
            (Until(Some(LAST)), "\"9999-12-31T23:59:59Z\""),
            (Until(None), "null"),
        ] {
            assert_eq!(serde_json::to_string(&until).expect("json"), json);
            assert_eq!(serde_json::from_str::<Until>(json).expect("time"), until);
        }
        assert_eq!(serde_json::to_value(Until(Some(UnixTime::MAX))).expect("json"), "9999-12-31T23:59:59Z");
        assert!(serde_json::from_str::<Until>("\"soon\"").is_err());
    }

    #[test]
    fn disagreement_names_both_times_and_the_remedy() {
        let told = disagreement(1_769_860_800, (2, 3), -3600);
        for part in [
            "2 of 3",
            "say 2026-01-31T11:00:00Z",
            "clock says 2026-01-31T12:00:00Z, 1 h ahead",
            "set the clocks",
        ] {
            assert!(told.contains(part), "`{part}` not in: {told}");
        }
    }

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, told) in [
            (0, "0 s"),
            (59, "59 s"),
            (3600, "1 h"),
            (3780, "1 h 3 min"),
            (90_061, "1 d 1 h"),
            (1_795_651_200, "20783 d"),
        ] {
            assert_eq!(span(seconds), told);
        }
    }

    #[test]
    fn durations_count_from_now() {
        let before = unix_now();
        let parsed = parse_time("1h").expect("good");
        assert!((before + 3600..=unix_now() + 3600).contains(&parsed));
        assert!(parse_time("soon").expect_err("refused").starts_with("neither a duration from now"));
        assert!(parse_time("-5m").expect_err("refused").starts_with("\"-5m\" lies in the past; give "));
        assert!(parse_time("5M").expect_err("refused").contains("write m for minutes, or months"));
        assert!(parse_time("11years").expect_err("refused").contains("longer than ten years"));
        assert!(parse_time("10").expect_err("refused").starts_with("\"10\" has no unit; write 10d or 10h"));
    }
}
