//! Conditions, which are the identities: their syntax and canonical form.
//!
//! | kind | spelling |
//! |---|---|
//! | [`ConditionKind::Mission`] | `mission/` and a path: segments of `a`–`z`, `0`–`9`, `-`, `_` and `.` with `/` between |
//! | [`ConditionKind::Drone`] | `drone/` and the serial in 32 hexadecimal digits, lower case |
//! | [`ConditionKind::NotBefore`] | `not-before/` and a time of RFC 3339 in UTC with seconds: `2026-12-01T06:00:00Z` |
//!
//! Two spellings of one condition would be two identities with two keys, so there is one. Another spelling is
//! refused, and so is an unknown kind, whose time of release would be undefined.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;

use jiff::Timestamp;
use quiver_crypto::Hex;

use crate::Error;

/// Seconds since 1970-01-01T00:00:00Z.
pub type UnixTime = u64;

/// Bytes of a condition at most.
pub const MAX_CONDITION_LEN: usize = 255;

/// Bytes of a drone's serial.
pub const SERIAL_LEN: usize = 16;

const MISSION: &str = "mission";
const DRONE: &str = "drone";
const NOT_BEFORE: &str = "not-before";

/// A condition in its canonical spelling, at most 255 bytes of ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{text}")]
pub struct Condition {
    text: String,
    meaning: Meaning,
}

/// Requirement of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind<'a> {
    /// An operator has let a mission come to this point: the path, without `mission/`.
    Mission(&'a str),
    /// The reader is the drone with this serial.
    Drone([u8; SERIAL_LEN]),
    /// The given time has come.
    NotBefore(UnixTime),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Meaning {
    Mission,
    Drone([u8; SERIAL_LEN]),
    NotBefore(UnixTime),
}

impl Condition {
    /// `mission/` and this path.
    ///
    /// # Errors
    /// [`Error::InvalidCondition`] for a path that is not spelled as it must be.
    pub fn mission(path: &str) -> Result<Self, Error> {
        format!("{MISSION}/{path}").parse()
    }

    /// The drone with this serial.
    #[must_use]
    pub fn drone(serial: &[u8; SERIAL_LEN]) -> Self {
        Self { text: format!("{DRONE}/{}", Hex(serial)), meaning: Meaning::Drone(*serial) }
    }

    /// Not before this time.
    ///
    /// # Errors
    /// [`Error::InvalidCondition`] for a time after the year 9999.
    pub fn not_before(time: UnixTime) -> Result<Self, Error> {
        Ok(Self { text: format!("{NOT_BEFORE}/{}", spell_time(time)?), meaning: Meaning::NotBefore(time) })
    }

    /// The canonical spelling: the bytes that are hashed to the identity's point.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Requirement of the condition.
    #[must_use]
    pub fn kind(&self) -> ConditionKind<'_> {
        match self.meaning {
            Meaning::Mission => {
                ConditionKind::Mission(self.text.split_once('/').map_or("", |(_, path)| path))
            }
            Meaning::Drone(serial) => ConditionKind::Drone(serial),
            Meaning::NotBefore(time) => ConditionKind::NotBefore(time),
        }
    }
}

impl FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_CONDITION_LEN {
            return Err(Error::InvalidCondition("longer than 255 bytes"));
        }
        let (kind, rest) = text.split_once('/').ok_or(Error::UnknownKind)?;
        let meaning = match kind {
            MISSION => check_path(rest).map(|()| Meaning::Mission),
            DRONE => read_serial(rest).map(Meaning::Drone),
            NOT_BEFORE => read_time(rest).map(Meaning::NotBefore),
            _ => return Err(Error::UnknownKind),
        }?;
        Ok(Self { text: text.to_string(), meaning })
    }
}

fn check_path(path: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    for segment in path.split('/') {
        if segment.is_empty() || !segment.bytes().all(plain) {
            return Err(Error::InvalidCondition(
                "segments of a path have a-z, 0-9, `-`, `_` and `.`, at least one",
            ));
        }
        // A path with an empty or upward segment would be another spelling of another path.
        if [".", ".."].contains(&segment) {
            return Err(Error::InvalidCondition("no segment of a path is `.` or `..`"));
        }
    }
    Ok(())
}

fn read_serial(digits: &str) -> Result<[u8; SERIAL_LEN], Error> {
    const WRONG: Error = Error::InvalidCondition("a serial has 32 hexadecimal digits in lower case");
    // Exactly the lower-case digits of 128 bits pass: no sign, no upper case, no other length.
    let serial = u128::from_str_radix(digits, 16).map_err(|_| WRONG)?.to_be_bytes();
    if Hex(&serial).to_string() == digits { Ok(serial) } else { Err(WRONG) }
}

fn read_time(text: &str) -> Result<UnixTime, Error> {
    const WRONG: Error = Error::InvalidCondition("a time is spelled like 2026-12-01T06:00:00Z, from 1970 on");
    let timestamp: Timestamp = text.parse().map_err(|_| WRONG)?;
    let time = UnixTime::try_from(timestamp.as_second()).map_err(|_| WRONG)?;
    // Fractions, other offsets, lower case and seconds that no minute has are spelled otherwise, or are other
    // times.
    if spell_time(time)? == text { Ok(time) } else { Err(WRONG) }
}

fn spell_time(time: UnixTime) -> Result<String, Error> {
    const LATE: Error = Error::InvalidCondition("a time is before the year 10000");
    let seconds = i64::try_from(time).map_err(|_| LATE)?;
    Timestamp::from_second(seconds).map(|timestamp| timestamp.to_string()).map_err(|_| LATE)
}
