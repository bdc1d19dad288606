//! Flags of a service with MAVLink programs beside it, and of the subcommand `system-id`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quiver_ainq::Name;
use quiver_service::duration;
use serde::{Serialize, Serializer};

/// Flags of a service with MAVLink programs beside it.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub(crate) struct MavlinkArgs {
    /// Where a MAVLink program (autopilot, ground station) is connected. `udpin:HOST:PORT` listens,
    /// udpout:HOST:PORT sends, tcp:HOST:PORT, tcpin:HOST:PORT, serial:/dev/ttyACM0:57600; may be repeated.
    /// Its frames go to the group as encrypted datagrams; without a valid group key nothing passes
    #[arg(long, value_name = "ENDPOINT", help_heading = "MAVLink")]
    pub(crate) mavlink: Vec<String>,
    /// Carrier of these datagrams, such as star:HOST:PORT. `star:HOST:PORT` (the leader's relay),
    /// relay:HOST:PORT (is that relay), udp:LISTEN+PEER+PEER, multicast:GROUP:PORT, broadcast:ADDRESS:PORT,
    /// serial:/dev/ttyUSB0:57600 (a radio modem), tunnel:/dev/ttyUSB0:57600 (one that takes MAVLink alone);
    /// may be repeated
    #[arg(long, value_name = "CARRIER", help_heading = "MAVLink")]
    pub(crate) carrier: Vec<String>,
    /// Endpoints, filters and carriers in mavlink-router's format, with carriers under [QuiverEndpoint NAME]
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "MAVLink")]
    pub(crate) mavlink_config: Option<PathBuf>,
    /// Write logs of flights into this directory, which is this service's alone: what passes as tlogs, and what is
    /// dropped, with the reason, as JSON lines. They are plain MAVLink, for their owner alone (mode 600)
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = "MAVLink")]
    pub(crate) mavlink_log: Option<PathBuf>,
    /// Megabytes of all logs in that directory; the oldest make room for new ones [default: 256]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true, help_heading = "MAVLink")]
    pub(crate) mavlink_log_limit: Option<u32>,
    /// How often programs at this end are told the security state as NAMED_VALUE_INT messages; 0s for never
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = state_interval, hide_short_help = true, help_heading = "MAVLink")]
    #[serde(serialize_with = "write_interval")]
    pub(crate) mavlink_state: Option<Duration>,
}

fn write_interval<S: Serializer>(every: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match every {
        Some(every) => duration::serialize(every, serializer),
        None => serializer.serialize_none(),
    }
}

/// Reads how often the state is told: it takes little of a serial line, and not more often than is of use.
fn state_interval(text: &str) -> Result<Duration, String> {
    let every = duration::parse(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
    if every.is_zero() || allowed.contains(&every) {
        Ok(every)
    } else {
        Err("from 1s to 1h, or 0s for never".into())
    }
}

/// Flags of a leader that grants system ids.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub(crate) struct SystemIdArgs {
    /// The MAVLink system id of a member, or of this leader. From 1 to 255, or to 4294967295 for programs
    /// that know 32-bit ids; may be repeated. Nobody else's frames pass under it, and a member without one
    /// sends none
    #[arg(long, value_name = "NAME=ID", help_heading = "MAVLink")]
    pub(crate) system_id: Vec<String>,
}

/// Subcommands of `system-id`.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemIdCommand {
    /// Let a member, or this leader, speak as this system; kept across restarts
    Grant {
        /// Its name
        name: Name,
        /// The system id, 1 to 255, or to 4294967295 for programs that know 32-bit ids; nobody else's
        #[arg(value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
        id: u32,
    },
    /// Take a member's system id away: its frames pass no longer
    Withdraw {
        /// Its name
        name: Name,
    },
    /// All that are granted, and whether their holders are members
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_told_seldom_or_never() {
        assert_eq!(state_interval("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(state_interval("0s"), Ok(Duration::ZERO));
        for text in ["100ms", "2h", "5"] {
            assert!(state_interval(text).is_err(), "{text}");
        }
    }
}
