//! Command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Most drones of a folder: each is a process, and has a MAVLink system id of its own.
pub(crate) const MOST_DRONES: u16 = 200;

/// Sets up a deployment on this machine and runs it: a KGC, a leader, drones, and on request a deputy and MAVLink
/// endpoints. Everything listens on 127.0.0.1.
#[derive(Debug, Parser)]
#[command(name = "quiver-local", version, about, long_about = None, after_help = AFTER)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Examples:
  quiver-local up demo                        # a KGC, a leader, three drones; Ctrl-C ends them
  quiver-local up demo --drones 5 --deputy    # the same folder: two more drones, and a second leader
  quiver-local up other --port any            # beside it, on ports that are free
  quiver-local down demo                      # from another terminal

Exit codes:
  0 done, or ended by a signal or `down`      4 nothing runs in this folder
  1 failed                                    5 a port is busy, or the folder runs already
  2 wrong usage, or a folder of others        6 a folder that others may write
  3 refused by another service                7 the folder is damaged
  8 not heard in time                         130, 143 a signal came before everything ran";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the deployment up, unless the folder has it, and run it until Ctrl-C
    Up(Up),
    /// End what runs in a folder
    Down(FolderOptions),
    /// Print what runs in a folder
    Status(FolderOptions),
    /// Become a service that ends with the process that started it
    #[command(hide = true)]
    Launch(Launch),
}

/// Flags of `up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// The folder; made if it is not there
    pub(crate) folder: PathBuf,

    /// How many drones run [default: what the folder had last, or 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_DRONES)))]
    pub(crate) drones: Option<u16>,

    /// Run a second leader, which takes over if the first is lost [default: what the folder had last]
    #[arg(long)]
    pub(crate) deputy: bool,

    /// Give each drone and the leader a MAVLink endpoint on UDP [default: what the folder had last]
    #[arg(long)]
    pub(crate) mavlink: bool,

    /// Port of the KGC; the leaders have the next two. `any` takes ports that are free [default: what the folder had
    /// last, or 7000]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<PortChoice>,

    /// Port to which the leader sends the group's MAVLink; drone N listens on this port plus N. `any` takes ports that
    /// are free [default: what the folder had last, or 14550]
    #[arg(long, value_name = "PORT")]
    pub(crate) mavlink_port: Option<PortChoice>,

    /// How long to wait until all drones are members
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = quiver_service::duration::parse)]
    pub(crate) wait: Duration,

    /// Directory of the programs `kgc`, `leader` and `edge` [default: that of this program, then PATH]
    #[arg(long, value_name = "DIR", env = "QUIVER_PROGRAMS")]
    pub(crate) programs: Option<PathBuf>,

    /// Print what happens as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `down` and `status`.
#[derive(Debug, Args)]
pub(crate) struct FolderOptions {
    /// The folder
    pub(crate) folder: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `launch`.
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// Process with which the service ends
    #[arg(long)]
    pub(crate) with: i32,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) words: Vec<OsString>,
}

/// A port, or any that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortChoice {
    /// A certain port.
    Exactly(u16),
    /// Any that is free.
    Any,
}

impl FromStr for PortChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("any", _) => Ok(Self::Any),
            (_, Ok(port @ 1024..=65000)) => Ok(Self::Exactly(port)),
            _ => Err("a port is a number from 1024 to 65000, or `any`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use quiver_arguments::{SCREEN, complete, short_helps};

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn short_help_of_each_command_is_one_screen() {
        for (command, help) in short_helps(&complete(Cli::command())) {
            assert!(help.lines().count() <= SCREEN, "{command}: {help}");
        }
    }

    #[test]
    fn port_is_a_number_that_leaves_room_or_any() {
        assert_eq!("7000".parse(), Ok(PortChoice::Exactly(7000)));
        assert_eq!("any".parse(), Ok(PortChoice::Any));
        for wrong in ["0", "80", "65001", "70000", "-1", "", "ANY"] {
            assert!(wrong.parse::<PortChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn waiting_is_bounded() {
        // A time beyond all use would overflow where it is added to another.
        for (wrong, why) in
            [("400000000000years", "longer than ten years"), ("-1s", "negative"), ("5", "no unit")]
        {
            let refused = Cli::try_parse_from(["quiver-local", "up", "demo", &format!("--wait={wrong}")]);
            let said = refused.expect_err(wrong).to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn drones_are_bounded() {
        for wrong in ["0", "201", "x"] {
            assert!(
                Cli::try_parse_from(["quiver-local", "up", "demo", "--drones", wrong]).is_err(),
                "{wrong}"
            );
        }
    }
}
