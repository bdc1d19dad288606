//! `kgc abke …`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use quiver_ainq::{Name, UnixTime};
use quiver_service::clock::{parse_time, unix_now};

use crate::authorities::AuthorityChoice;
use crate::signing::ApprovalArgs;

/// Examples, which stand below the subcommands.
pub(super) const EXAMPLES: &str = "\
Examples:
  kgc abke setup --schema 'x: i32, y: i32, time: u40' --period 1h
  kgc abke certify edge-1 x=5200 y=-310 time=now     # what the leader will not learn";

#[derive(Debug, Subcommand)]
pub(crate) enum AbkeCommand {
    /// Set up an authority that certifies drones' fields. A running `kgc serve` takes it up at once; in a
    /// quorum it must run, and enough others must approve
    Setup(AbkeSetupArgs),
    /// Certify a drone's fields, all of them: it fetches its credential over its own connection, anew in
    /// every period
    Certify(CertifyArgs),
    /// Withdraw a drone's certification. Its credential stays valid until its period ends, as `kgc abke list`
    /// shows
    Revoke {
        /// The drone
        #[arg(value_name = "DRONE")]
        drone: Name,
        #[command(flatten)]
        choice: AuthorityChoice,
    },
    /// Sign a policy that leaders of a group may demand for joining. In a quorum `kgc serve` must run, and
    /// enough others must approve
    Policy(PolicyArgs),
    /// List authorities, what is certified to whom, credentials issued, policies
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AbkeSetupArgs {
    /// The fields, or a file with them: 'x: i32, y: i32, time: u40, battery: u7, medic: bool'
    #[arg(long, value_name = "FIELDS|FILE")]
    pub(crate) schema: String,
    /// How long a credential lasts at most. Periods are counted from 1970, so that one of a day begins at
    /// midnight, UTC
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = quiver_service::duration::parse)]
    pub(crate) period: Duration,
    /// The authority's name
    #[arg(long, value_name = "NAME", default_value = "abke")]
    pub(crate) name: Name,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertifyArgs {
    /// The drone: enrolled, or with an open token recorded here
    #[arg(value_name = "DRONE")]
    pub(crate) drone: Name,
    /// A value for each field: an integer, true or false, `now`, or a time as seconds since 1970: now+2h
    #[arg(value_name = "FIELD=VALUE", required = true, allow_hyphen_values = true)]
    pub(crate) values: Vec<FieldValue>,
    #[command(flatten)]
    pub(crate) choice: AuthorityChoice,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The file with the policy's text: (x - 5000)^2 + (y + 300)^2 < 250_000 and time >= 1_800_000_000
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Group whose leaders may demand it
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Name,
    /// The policy's name; default: that of the file, without its ending
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<Name>,
    /// The authority whose fields it is about; may be left out if there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) authority: Option<String>,
    /// When it ends: from now (30d) or at a time (2026-12-31T00:00:00Z)
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_time)]
    pub(crate) not_after: UnixTime,
    /// The file to write, for leaders; default: NAME.policy
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
}

/// A field and what is certified of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldValue {
    pub(crate) field: String,
    pub(crate) value: i128,
}

impl FromStr for FieldValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text.split_once('=').ok_or("expected FIELD=VALUE, without spaces")?;
        Ok(Self { field: field.trim().into(), value: read(value.trim())? })
    }
}

fn read(text: &str) -> Result<i128, String> {
    let digits = || text.replace('_', "");
    match text {
        "true" => Ok(1),
        "false" => Ok(0),
        _ if text.starts_with("now") => moment(text),
        _ => digits().parse().map_err(|_| {
            format!("`{text}` is not a valid value; expected an integer, true, false, now or now+2h")
        }),
    }
}

/// `now`, `now+2h` or `now-5m`, as seconds since 1970.
fn moment(text: &str) -> Result<i128, String> {
    let now = i128::from(unix_now());
    let rest = text.strip_prefix("now").unwrap_or_default();
    let away = |duration: &str| {
        let duration = humantime::parse_duration(duration.trim());
        duration.map(|duration| i128::from(duration.as_secs())).map_err(|error| format!("{text}: {error}"))
    };
    match rest.split_at_checked(1) {
        None => Ok(now),
        Some(("+", later)) => Ok(now + away(later)?),
        Some(("-", earlier)) => Ok(now - away(earlier)?),
        Some(_) => Err(format!("{text}: now, now+2h or now-5m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i128, String> {
        text.parse::<FieldValue>().map(|value| value.value)
    }

    #[test]
    fn values_are_integers_truth_and_times() {
        assert_eq!("x=-1_000".parse(), Ok(FieldValue { field: "x".into(), value: -1000 }));
        assert_eq!((value("m=true"), value("m = false")), (Ok(1), Ok(0)));
        let now = i128::from(unix_now());
        let near =
            |text, offset: i128| (now + offset..=now + offset + 60).contains(&value(text).expect(text));
        assert!(near("t=now", 0) && near("t=now+2h", 7200) && near("t=now-5m", -300));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in ["x", "x=", "x=five", "x=1.5", "t=now+", "t=now+soon", "t=nowhere", "x=0x10"] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
