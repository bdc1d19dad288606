//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quiver_ainq::Name;
use quiver_service::arguments::{FirstStartArgs, Help, MonitoringArgs};
use quiver_service::drone::feature::{ServiceFlags, examples};
use quiver_service::drone::subcommands::DroneCommand;
use quiver_service::drone::watch::interval_argument;
use serde::Serialize;

use crate::config::Config;
use crate::provision::RadioArgument;

/// Help of the program.
pub(crate) const HELP: Help = Help {
    name: "edge",
    about: "Quiver's edge drone: enrols, joins a group, follows its keys, sends and receives messages",
    examples: "\
  edge enrol --deployment deployment.toml --token edge-1.token    # once; `edge run` does it too
  edge run --leader /dns4/leader.example/tcp/7001                 # join and stay; prints messages
  edge health                                                     # ready, or why not
  edge status                                                     # with --watch again and again
  edge send --channel chat 'hello, group'
  edge run --leader /ip4/10.0.0.1/tcp/7001 --group alpha --json
  edge run --leader … --metrics 127.0.0.1:9466                    # /metrics, /healthz, /readyz
  edge provision --deployment deployment.toml --token board-1.token    # to set up a board
",
    feature_examples: examples::<Config>,
    after: "\
Files in the data directory (default ./edge-data): drone.state (keys, encrypted), deployment.toml
(copy of the public file), control.sock and health.sock (for the other subcommands).
Settings: --config FILE (TOML) < QUIVER_EDGE_DATA_DIR, QUIVER_EDGE_LEADER, ... < flags.",
};

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Get this drone's key from the KGC, once
    Enrol(EnrolArgs),
    /// Join the group and stay, until SIGTERM or SIGINT; enrols first if need be; prints group messages
    Run(Box<RunArgs>),
    /// How the running edge is doing
    Status {
        /// Print JSON; with --watch on one line, and another whenever it changes
        #[arg(long)]
        json: bool,
        /// Show it again and again, until Ctrl-C
        #[arg(long)]
        watch: bool,
        /// How often to ask with --watch, such as 500ms
        #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval_argument, requires = "watch")]
        every: Duration,
    },
    /// Send a message to the group, or keep it until a leader is there
    ///
    /// Prints `sent` if the connected leader has answered after the message was handed to it; members do not
    /// acknowledge messages, and who is not connected does not receive them. Prints `queued` (exit code 0 as
    /// well) if no leader is there: the message is kept in the drone's encrypted state, also across `kill
    /// -9`, sent when the leader is back, and dropped after 24 hours; at most 64 messages and 128 KiB are
    /// kept. A message that was queued may arrive twice. Everything else is a refusal with its reason, exit
    /// code 3. An anonymous drone queues nothing and asks for no confirmation.
    Send {
        /// The application's channel
        #[arg(long, default_value = "chat")]
        channel: Name,
        /// Without a signature: receivers then know only that some member sent it
        #[arg(long)]
        unsigned: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The text
        text: String,
    },
    /// Print the line that sets up a board: for its console, and secret until the board has enrolled
    Provision(ProvisionArgs),
    /// Subcommands that leaders have as well
    #[command(flatten)]
    Drone(DroneCommand<Config>),
}

/// Flags of enrolling.
#[derive(Args, Debug, Serialize)]
pub(crate) struct EnrolArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) first: FirstStartArgs,
    /// Directory of tokens, of which the first start takes one that nobody has taken: for containers that are
    /// started from one description
    #[arg(long, value_name = "DIR", conflicts_with = "token", hide_short_help = true)]
    pub(crate) token_dir: Option<PathBuf>,
    /// Address of a KGC, in place of those in the deployment file; may be repeated
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    pub(crate) kgc: Vec<String>,
    /// How long enrolling may take [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = quiver_service::duration::parse, hide_short_help = true)]
    #[serde(with = "humantime_serde::option")]
    pub(crate) enrol_timeout: Option<Duration>,
}

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) enrolling: EnrolArgs,
    /// Where the group's leader listens; may be repeated for its deputies
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) leader: Vec<String>,
    /// The group to join; default: the one joined before, or the only one in the drone's identity
    #[arg(long, value_name = "GROUP", value_parser = name)]
    pub(crate) group: Option<String>,
    /// Fetch the attribute keys and credentials granted to this drone at the start, in the background;
    /// credentials again in each period
    #[arg(long, hide_short_help = true, help_heading = "Keys")]
    pub(crate) attributes: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) features: ServiceFlags<Config>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) monitoring: MonitoringArgs,
    /// Print what happens as JSON, one object per line
    #[arg(long)]
    #[serde(skip)]
    pub(crate) json: bool,
}

/// Checks a name, and keeps its text.
fn name(text: &str) -> Result<String, String> {
    Name::new(text).map(|name| name.to_string()).map_err(|error| error.to_string())
}

/// Flags of what a board is set up with.
#[derive(Args, Debug)]
pub(crate) struct ProvisionArgs {
    /// The public deployment file (from `kgc init`)
    #[arg(long, value_name = "FILE")]
    pub(crate) deployment: PathBuf,
    /// The board's token (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub(crate) token: PathBuf,
    /// The group to join; default: the only one in the token
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<Name>,
    /// Network and address of a board that reaches its gateway by radio, both hexadecimal
    #[arg(long, value_name = "PAN:ADDRESS")]
    pub(crate) radio: Option<RadioArgument>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_service::arguments::{SCREEN, command, short_helps};

    #[test]
    fn command_line_is_consistent() {
        command::<Command>(&HELP).debug_assert();
    }

    #[test]
    fn short_help_of_each_command_is_one_screen() {
        for (command, help) in short_helps(&command::<Command>(&HELP)) {
            assert!(help.lines().count() <= SCREEN, "{command}: {help}");
        }
    }

    #[test]
    fn examples_stand_on_one_line_each() {
        for line in HELP.after.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
