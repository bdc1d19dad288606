//! The command line.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use quiver_ainq::{Name, StrategyKind};
use quiver_service::arguments::{FirstStartArgs, Help, MonitoringArgs};
use quiver_service::drone::feature::{AliasFlags, DRONE, ServiceFlags, examples};
use quiver_service::drone::subcommands::DroneCommand;
use quiver_service::drone::watch::interval_argument;
use serde::Serialize;

use crate::config::{Config, LeaderSettings};

/// Help of the program.
pub(crate) const HELP: Help = Help {
    name: "leader",
    about: "Quiver's team leader: forms a group of drones and keeps its key fresh",
    examples: "\
  leader serve --deployment deployment.toml --token leader-1.token  # first start: enrols
  leader serve                                                      # every other start
  leader serve --listen /ip4/0.0.0.0/tcp/7001            # for drones on other machines
  leader status
  leader rekey
  leader evict edge-7
  leader send --channel orders 'return to base'
  leader serve --peer /ip4/10.0.0.2/tcp/7001 --silence 10s          # one of several leaders
  leader serve --strategy tree                           # a group of many thousands
  leader serve --metrics 127.0.0.1:9465                  # /metrics, /healthz, /readyz
  leader health                                          # ready, or why not
  leader status --watch                                  # live: the re-key wave, who is behind
  leader kem renew edge-7                                # its second factor; of all without a name
",
    feature_examples: examples::<Config>,
    after: "\
Files in the data directory (default ./leader-data): drone.state (keys and roster, encrypted; no
group secret), deployment.toml (copy of the public file), control.sock and health.sock (for the
other subcommands).
Settings: --config FILE (TOML) < QUIVER_LEADER_DATA_DIR, QUIVER_LEADER_LISTEN, ... < flags.",
};

/// Arguments of `evict`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new(DRONE).required(true).multiple(false))]
pub(crate) struct EvictArgs {
    /// The drone's name
    #[arg(group = DRONE)]
    pub(crate) name: Option<Name>,
    #[command(flatten)]
    pub(crate) alias: AliasFlags<Config>,
    /// Its slot: for an anonymous member, which may come back as long as its credential is valid
    #[arg(long, group = DRONE)]
    pub(crate) slot: Option<u32>,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lead the group until SIGTERM or SIGINT; enrols first if need be
    Serve(Box<ServeArgs>),
    /// How the running leader and its group are doing
    Status(StatusArgs),
    /// Evict a drone from the group, at once and for good
    Evict(EvictArgs),
    /// Make a new group key now
    Rekey,
    /// The second factor of pairwise secrets, against quantum computers
    #[command(subcommand)]
    Kem(KemCommand),
    /// Send a message to the group, signed
    ///
    /// Says to how many connections it was handed; without a connected member it is refused (exit code 3).
    /// Members do not acknowledge messages, and nothing is queued: who is away does not receive it.
    Send {
        /// The application's channel
        #[arg(long, default_value = "chat")]
        channel: Name,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The text
        text: String,
    },
    /// Subcommands that edges have as well
    #[command(flatten)]
    Drone(DroneCommand<Config>),
}

/// Subcommands of `kem`.
#[derive(Debug, Subcommand)]
pub(crate) enum KemCommand {
    /// Forget what is shared with a member, or with all drones, and open a term: they join again, and share
    /// anew
    ///
    /// A copy of the leader's disk that was made before is then of no use against what follows. Each drone
    /// costs 2.3 kB (3.1 kB with ml-kem-1024), and has no key until it has joined again.
    Renew {
        /// One member's name [default: all drones]
        name: Option<Name>,
    },
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON; with --watch on one line, and another whenever it changes
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it on this terminal, again and again, until `q` is pressed
    #[arg(long)]
    pub(crate) watch: bool,
    /// How many of the members that have not acknowledged the newest epoch to name, the worst first; as many
    /// as fit with --watch
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) laggards: u16,
    /// How often to ask with --watch, such as 500ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval_argument, requires = "watch")]
    pub(crate) every: Duration,
}

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) first: FirstStartArgs,
    /// Address of a KGC, in place of those in the deployment file; may be repeated
    #[arg(long, value_name = "ADDRESS", help_heading = "Network", hide_short_help = true)]
    pub(crate) kgc: Vec<String>,
    /// Where to listen. With /ip4/0.0.0.0/tcp/7001 others reach it; port 0 lets the system choose; may be
    /// repeated [default: /ip4/127.0.0.1/tcp/7001, this machine alone]
    #[arg(short, long, value_name = "ADDRESS", help_heading = "Network")]
    pub(crate) listen: Vec<String>,
    /// A drone that may join although its identity does not list the group, by its serial as `kgc drone list`
    /// shows it; may be repeated
    #[arg(long, value_name = "SERIAL", help_heading = "Members", hide_short_help = true)]
    pub(crate) allow: Vec<String>,
    /// The most members [default: 4096]
    #[arg(long, value_name = "N", help_heading = "Members", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(LeaderSettings::MOST_MEMBERS)))]
    pub(crate) max_members: Option<u32>,
    /// How group keys travel: `flat` or `tree`. `flat` sends every member its own entry in each epoch, as in
    /// the paper; `tree` keeps a tree of keys, so that an epoch costs no more than the logarithm of the
    /// members [default: flat]
    #[arg(long, value_name = "STRATEGY", help_heading = "Keys")]
    pub(crate) strategy: Option<StrategyKind>,
    /// With --strategy tree: most members hear one radio, so what all need goes out once for all, however
    /// long it is: a term opens, and drones that join together follow, by one broadcast. Without, each is
    /// sent its own part
    #[arg(long, help_heading = "Keys", hide_short_help = true)]
    pub(crate) shared_medium: bool,
    /// How long a group key is valid, such as 10m. A new one comes when four fifths have passed [default:
    /// 10m]
    #[arg(long, value_name = "TIME", value_parser = quiver_service::duration::parse, help_heading = "Keys")]
    #[serde(with = "humantime_serde::option")]
    pub(crate) validity: Option<Duration>,
    /// How old the second factor of a pair may be until the drone's next join renews it, such as 1d; at most
    /// 30d [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = quiver_service::duration::parse, help_heading = "Keys", hide_short_help = true)]
    #[serde(with = "humantime_serde::option")]
    pub(crate) kem_lifetime: Option<Duration>,
    /// Address of another leader of the group. It takes over if this one is lost and the other way round;
    /// may be repeated. Without one this leader is alone
    #[arg(long, value_name = "ADDRESS", help_heading = "Network")]
    pub(crate) peer: Vec<String>,
    /// How long the leader may be silent before another opens a term. Each does so half of that later for
    /// every ordinal up to its own: with 10s, ordinal 1 after 15 s and ordinal 2 after 20 s [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quiver_service::duration::parse, help_heading = "Network")]
    #[serde(with = "humantime_serde::option")]
    pub(crate) silence: Option<Duration>,
    /// Fetch the attribute keys granted to this leader, and the authorities, at the start, in the background
    #[arg(long, help_heading = "Keys", hide_short_help = true)]
    pub(crate) attributes: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) features: ServiceFlags<Config>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) monitoring: MonitoringArgs,
    /// Print the group's messages as JSON, one object per line
    #[arg(long)]
    #[serde(skip)]
    pub(crate) json: bool,
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
