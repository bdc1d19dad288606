//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use quiver_ainq::{Name, UnixTime};
use quiver_service::arguments::{HealthArgs, Help, MonitoringArgs};
use quiver_service::clock::parse_time;
use quiver_service::deployment_file::{DeploymentFile, KemSetting};
use serde::Serialize;

use crate::features::{FeatureSubcommand, examples};

/// Help of the program.
pub(crate) const HELP: Help = Help {
    name: "kgc",
    about: "Quiver's Key Generation Centre: issues drones their keys and revokes them",
    examples: "\
  kgc operator new --out operator          # once: operator.key (keep it safe), operator.pub
  kgc init --deployment alps --operator operator.pub --address /dns4/kgc.example/tcp/7000
  kgc token issue --operator operator.key --name leader-1 --leads alpha --out leader-1.token
  kgc token issue --operator operator.key --name edge-1 --group alpha --out edge-1.token
  kgc serve --listen /ip4/0.0.0.0/tcp/7000           # for drones on other machines
  kgc health                                         # ready, or why not
  kgc drone revoke edge-1                            # a running `kgc serve` picks it up
  kgc serve --metrics 127.0.0.1:9464                 # /metrics, /healthz, /readyz
",
    feature_examples: examples,
    after: "\
Files in the data directory (default ./kgc-data): master.state (master secret, encrypted),
authorities.state (attribute authorities' master keys, encrypted), ibe.state (share of the master
key of encryption to conditions, encrypted), registry.sqlite, deployment.toml (public: give it to
leaders, edges and operators), NAME.authority (public: an attribute authority's parameters),
NAME.ibe (public: encrypt to conditions with it), health.sock (for `kgc health`).
In a quorum: transport.state (keep a copy elsewhere), quorum.state (shares), both encrypted,
quorum.toml (public), control.sock.
Settings: --config FILE (TOML) < QUIVER_KGC_DATA_DIR, QUIVER_KGC_LISTEN, ... < flags.",
};

/// Subcommands of the KGC.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a deployment: master secret, registry, public deployment file
    Init(InitArgs),
    /// Answer drones that enrol, until SIGTERM or SIGINT
    Serve(ServeArgs),
    /// Print the public deployment file, which leaders, edges and operators take
    Deployment,
    /// Whether the running `kgc serve` does its work; exits with 1 and says why if it does not
    Health(HealthArgs),
    /// Check the registry, and print its audit table
    Audit(AuditArgs),
    /// Operators: who may issue tokens
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Tokens: each lets one drone enrol once
    #[command(subcommand)]
    Token(TokenCommand),
    /// Drones that have enrolled
    #[command(subcommand)]
    Drone(KgcDroneCommand),
    /// Subcommands of features
    #[command(flatten)]
    Feature(FeatureSubcommand),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Name of the deployment: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(long, value_name = "NAME")]
    pub(crate) deployment: Name,
    /// Public key of an operator whose tokens count (from `kgc operator new`); may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) operator: Vec<PathBuf>,
    /// Where drones reach this KGC, as a multiaddress (written into the deployment file); may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Vec<String>,
    /// Second factor of pairwise secrets, against quantum computers: ml-kem-768, ml-kem-1024, or none
    #[arg(long, value_name = "SETTING", default_value_t = DeploymentFile::NEW_KEM)]
    pub(crate) kem: KemSetting,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of the service.
#[derive(Args, Debug, Serialize)]
pub(crate) struct ServeArgs {
    /// Where to listen: /ip4/0.0.0.0/tcp/7000 for others to reach it; port 0 lets the system choose; may be
    /// repeated [default: /ip4/127.0.0.1/tcp/7000, this machine alone]
    #[arg(short, long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) monitoring: MonitoringArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Also require that the chain contains this hash, noted at an earlier time: shows that nothing before it
    /// was changed and that it was not cut off
    #[arg(long, value_name = "HASH")]
    pub(crate) contains: Option<String>,
    /// Take the table as it is although its end is missing, because an older registry was put back on purpose;
    /// that is recorded. `kgc serve` must not run
    #[arg(long)]
    pub(crate) accept: bool,
    /// Take all rows as they are although some are not what the KGC wrote; that is recorded. Look at them first, and
    /// take out what is foreign. `kgc serve` must not run
    #[arg(long)]
    pub(crate) accept_rows: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Make an operator's key pair: PREFIX.key (secret, encrypted, mode 0600) and PREFIX.pub
    New(OperatorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// If there is a key pair already, leave it and go on
    #[arg(long)]
    pub(crate) keep: bool,
    /// Put a copy of the public key here, too
    #[arg(long, value_name = "FILE")]
    pub(crate) publish: Option<PathBuf>,
    /// Prefix of the two files
    #[arg(short, long, value_name = "PREFIX", default_value = "operator")]
    pub(crate) out: PathBuf,
    /// Do not encrypt PREFIX.key: whoever reads it can issue tokens
    #[arg(long)]
    pub(crate) no_passphrase: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token. Needs the operator's secret key and the public deployment file, not the KGC; to record it in a
    /// registry that is here, the running KGC or the passphrase as well
    Issue(IssueArgs),
    /// List the tokens this registry knows: recorded when issued here, used, or revoked
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse a token that was not used yet
    Revoke {
        /// The token's id (32 hex digits), or its drone's name if it was recorded here
        #[arg(value_name = "ID|NAME")]
        which: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    /// The operator's secret key (from `kgc operator new`), which --passphrase-file or --key-file opens. The same opens
    /// the state of a KGC that is here and does not run
    #[arg(long, value_name = "FILE")]
    pub(crate) operator: PathBuf,
    /// File with the operator's passphrase, where another secret opens the KGC's state: give that one by
    /// --passphrase-file or --key-file
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with = "operator_key_file")]
    pub(crate) operator_passphrase_file: Option<PathBuf>,
    /// File with the key of 64 hex digits that opens the operator's key, in place of a passphrase
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) operator_key_file: Option<PathBuf>,
    /// The public deployment file; default: the one in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) deployment: Option<PathBuf>,
    /// The drone's name: 1 to 64 of A-Z a-z 0-9 . _ -
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Name,
    /// A group the drone may join; may be repeated, up to 16
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Vec<Name>,
    /// Make it a leader of this group
    #[arg(long, value_name = "GROUP")]
    pub(crate) leads: Option<Name>,
    /// Number of the leader, different for each leader of a group. Default: the lowest that is free by the
    /// registry of the data directory, or 1 without it
    #[arg(long, value_name = "N", requires = "leads")]
    pub(crate) ordinal: Option<u16>,
    /// Issue tokens for NAME-1 to NAME-N, into the directory --out; names whose token is or was there are
    /// skipped. Ordinals of leaders count up from --ordinal
    #[arg(long, value_name = "N", requires = "out", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) count: Option<u16>,
    /// How long to wait for the deployment file if it is not there yet
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = quiver_service::duration::parse)]
    pub(crate) wait: Duration,
    /// When the drone's identity ends: from now (365d) or at a time (2026-12-31T00:00:00Z)
    #[arg(long, value_name = "TIME", default_value = "365d", value_parser = parse_time)]
    pub(crate) not_after: UnixTime,
    /// When the token can no longer be used
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_time)]
    pub(crate) expires: UnixTime,
    /// The file to write (mode 0600); give it to that drone alone. Default: NAME.token
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Whether to record the token in the registry of the data directory, so that names cannot clash and it
    /// can be revoked by name
    #[arg(long, value_enum, default_value_t)]
    pub(crate) record: TokenRecording,
    /// Print JSON, one object per token and line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether a token is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenRecording {
    /// If the registry of this deployment is here
    #[default]
    Auto,
    /// Never: the KGC is elsewhere
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KgcDroneCommand {
    /// List enrolled drones
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a drone for good: a running `kgc serve` signs a new revocation list, which drones pass on
    Revoke {
        /// The drone's name or serial
        #[arg(value_name = "NAME|SERIAL")]
        which: String,
        /// In a quorum, for a drone that this KGC does not know: when its identity ends, as another KGC's `kgc
        /// drone list` says; without this it stays in revocation lists for ever
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        not_after: Option<UnixTime>,
        /// In a quorum, for a drone that this KGC does not know: it is an edge; without this it counts as a
        /// leader in the lists for boards
        #[arg(long, requires = "not_after")]
        edge: bool,
    },
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
