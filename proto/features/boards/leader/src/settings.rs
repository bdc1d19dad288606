//! The settings: which lines boards are on, and how fast those are that are devices.

use clap::Args;
use quiver_gateway::LineAddress;
use quiver_service::config::parse_all;
use quiver_service::drone::{Error, Result};
use serde::{Deserialize, Serialize};

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
pub(crate) struct BoardFlags {
    /// Be a gateway for the boards on this line: a device such as /dev/ttyACM0, or tcp:HOST:PORT; may be
    /// repeated. A line that is not there yet, or goes away, is opened as soon as it is there
    #[arg(long, value_name = "LINE", help_heading = "Boards")]
    serial: Vec<String>,
    /// Bits per second on devices of --serial; USB ignores it [default: 115200]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1200..=4_000_000), help_heading = "Boards", hide_short_help = true)]
    baud: Option<u32>,
}

/// Settings of a gateway, as they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoardSettings {
    /// Serial lines with boards.
    #[serde(deserialize_with = "quiver_service::config::list")]
    serial: Vec<String>,
    /// Bits per second on those that are devices.
    #[serde(deserialize_with = "quiver_service::config::whole::<_, 1200, 4_000_000>")]
    baud: u32,
}

impl Default for BoardSettings {
    fn default() -> Self {
        Self { serial: Vec::new(), baud: 115_200 }
    }
}

/// Serial lines with boards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoardLines {
    /// The lines, each once.
    pub(crate) lines: Vec<LineAddress>,
    /// Bits per second on those that are devices.
    pub(crate) baud: u32,
}

impl BoardSettings {
    /// Reads the lines.
    pub(crate) fn check(&self) -> Result<BoardLines> {
        if !(1200..=4_000_000).contains(&self.baud) {
            return Err(Error::config("`baud` must lie between 1200 and 4000000"));
        }
        let mut lines = Vec::new();
        for line in parse_all::<LineAddress>("serial", &self.serial)? {
            line.check().map_err(|reason| Error::config(format!("`serial`: {line}: {reason}")))?;
            if lines.contains(&line) {
                return Err(Error::config(format!("`serial`: {line} is given twice")));
            }
            lines.push(line);
        }
        Ok(BoardLines { lines, baud: self.baud })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(serial: &[&str], baud: u32) -> BoardSettings {
        BoardSettings { serial: serial.iter().map(ToString::to_string).collect(), baud }
    }

    #[test]
    fn each_line_is_served_once_and_at_a_speed_that_devices_have() {
        assert_eq!(BoardSettings::default().check().expect("the defaults").lines, []);
        let read = settings(&["/dev/ttyACM0", "tcp:127.0.0.1:5555"], 9600).check().expect("two lines");
        assert_eq!((read.lines.len(), read.baud), (2, 9600));
        for (serial, baud, told) in [
            (&["/dev/ttyACM0", "/dev/ttyACM0"][..], 9600, "given twice"),
            (&["ttyACM0"], 9600, "tcp:HOST:PORT"),
            (&[], 9, "`baud`"),
        ] {
            let error = settings(serial, baud).check().expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
