//! Arguments of `edge relay` and `edge relay-keys`.

use std::path::PathBuf;

use clap::Args;
use quiver_ainq::Name;
use quiver_service::arguments::MonitoringArgs;

/// Purpose of `edge relay`, in a line.
pub(crate) const RELAY: &str =
    "Pass on what drones and their leader say to each other, without any key, until SIGTERM or SIGINT";
/// Description of `edge relay`, which stands below that line.
pub(crate) const RELAY_MORE: &str = "\
Hundreds or thousands of drones name the relay in place of the leader (`edge run --leader`), which then has one \
connection for all of them, sends each broadcast once, and is told the relay's identity (`leader serve --relay`). A \
relay can delay and drop, as any network can, and no more. Drones that name several go to another when theirs is \
silent. Prints its identity and its addresses.";
/// Purpose of `edge relay-keys`, in a line.
pub(crate) const RELAY_KEYS: &str =
    "Make the keys of relays before they run, so that leaders can be told who they are";
/// Description of `edge relay-keys`, which stands below that line.
pub(crate) const RELAY_KEYS_MORE: &str = "\
For each NAME the file NAME.seed, which is the relay's alone (`edge relay --seed`); one that is there is kept. Prints \
the identities, which are public: `leader serve --relay`, or all of them with `--publish` here and `--relay-file` \
there.";

/// Example, which stands below the flags.
pub(crate) const EXAMPLE: &str = "\
Example:
  edge relay --leader /ip4/10.0.0.1/tcp/7001 --listen /ip4/0.0.0.0/tcp/7003 --group alpha";

/// Flags of a relay.
#[derive(Args, Debug)]
pub(crate) struct RelayArgs {
    /// File of its key (mode 0600), as `edge relay-keys` makes it [default: relay.seed in the data directory, made at
    /// the first start]
    #[arg(long, value_name = "FILE")]
    pub(crate) seed: Option<PathBuf>,
    /// Where the group's leader listens; further ones are used when the first is lost
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) leader: Vec<String>,
    /// Where to listen for drones; may be repeated
    #[arg(long, value_name = "ADDRESS", default_value = "/ip4/127.0.0.1/tcp/7003")]
    pub(crate) listen: Vec<String>,
    /// The group whose messages are passed on
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Name,
    /// The most drones at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub(crate) max_drones: u32,
    #[command(flatten)]
    pub(crate) monitoring: MonitoringArgs,
}

/// Flags of making relays' keys.
#[derive(Args, Debug)]
pub(crate) struct RelayKeysArgs {
    /// Directory of the keys; created for its owner alone
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Write the identities to this file as well, one a line, in the order of the names
    #[arg(long, value_name = "FILE")]
    pub(crate) publish: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The relays
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<Name>,
}
