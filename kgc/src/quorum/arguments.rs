//! The command line of `kgc quorum`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quiver_ainq::Name;

use super::file::MAX_MEMBERS;

/// Examples for the program's help.
pub(super) const PROGRAM_EXAMPLES: &str = "\
  kgc quorum --help                                  # several KGCs, any t of which issue keys
";

/// Steps from no quorum to one, for the help.
pub(super) const QUORUM_STEPS: &str = "\
A quorum, from nothing (here 3 of 5), at each of the five machines:
  1. kgc quorum key --id 1 --address /dns4/kgc-1.example/tcp/7000
     prints this KGC's part of the init file
  2. put the five parts into one file, the same everywhere, under the two lines
       deployment = \"alps\"
       threshold = 3
  3. kgc quorum init --file alps.toml --operator operator.pub
     prints a fingerprint: compare all five
  4. kgc serve --listen /ip4/0.0.0.0/tcp/7000
     the five make the key; nobody ever has all of it
  5. kgc quorum status
     until it says: serving drones
Then deployment.toml is in every data directory: give it to leaders, edges and operators. Tokens
are issued as with a single KGC.

Later:
  kgc quorum refresh         at one of them, all five running: new shares of the same key, the old
                             ones useless
  kgc drone revoke SERIAL    at t of them: the quorum signs a new revocation list
  A data directory is lost: restore transport.state from its backup (it never changes), `kgc quorum
  init` and `kgc serve` as before, `kgc quorum repair` there, `kgc quorum approve --repair ID` at t
  of the others.";

/// `kgc quorum`.
#[derive(Debug, Subcommand)]
pub(crate) enum QuorumCommand {
    /// Make this KGC's transport key, if there is none yet, and print its part of the init file
    Key(QuorumKeyArgs),
    /// Join a quorum: pin its init file. `kgc serve` then makes the key together with the others
    Init(QuorumInitArgs),
    /// Make the key and pin the init file at once, through a directory that all KGCs share: for containers and
    /// for trying it out. Continues where it was interrupted; does nothing if it is done
    Found(FoundArgs),
    /// Show the state of this KGC, and of the others as it sees them
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make new shares of the same key, with all KGCs of the quorum: older, stolen shares become useless
    Refresh(WaitArgs),
    /// Get this KGC's lost shares back, with the help of t others
    Repair(WaitArgs),
    /// Approve, as this KGC's operator, a signature or a repair that needs the approval of t operators
    Approve(ApproveArgs),
    /// Abandon a key generation or refresh that does not end. This KGC keeps the shares it has
    Abandon,
    /// Put refreshed shares in force although not all KGCs have confirmed theirs. Only if you know that the
    /// others have
    Adopt,
}

#[derive(Debug, Args)]
pub(crate) struct QuorumKeyArgs {
    /// Number of this KGC: 1, 2, …
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_MEMBERS)))]
    pub(crate) id: u16,
    /// Where drones and the other KGCs reach it, as a multiaddress; may be repeated
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub(crate) address: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct QuorumInitArgs {
    /// The init file, the same at all KGCs
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Public key of an operator whose tokens count here (from `kgc operator new`); may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) operator: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FoundArgs {
    /// The directory that all KGCs have in common, and nobody else can write to: each puts its part there as
    /// kgc-ID.toml, and takes the others' and operator.pub from there. A user who writes to it before all
    /// have pinned it decides who the KGCs are
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) key: QuorumKeyArgs,
    /// Name of the deployment
    #[arg(long, value_name = "NAME")]
    pub(crate) deployment: Name,
    /// How many KGCs there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=i64::from(MAX_MEMBERS)))]
    pub(crate) members: u16,
    /// How many it takes; more than half
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(2..=i64::from(MAX_MEMBERS)))]
    pub(crate) threshold: u16,
    /// How long to wait for the other KGCs' parts
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = quiver_service::duration::parse)]
    pub(crate) wait: Duration,
    /// Then serve, as `kgc serve` does, and put deployment.toml into the directory once there is a key
    #[arg(long)]
    pub(crate) serve: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// How long to wait for the other KGCs; it continues afterwards
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quiver_service::duration::parse)]
    pub(crate) wait: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["digest", "repair"]))]
pub(crate) struct ApproveArgs {
    /// Digest of a statement to be signed by the quorum (64 hex digits), from whoever proposes it
    #[arg(value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
    /// Help this KGC, which lost its shares, to get them back, if it asks within an hour. Make sure that it
    /// is the right one
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_MEMBERS)))]
    pub(crate) repair: Option<u16>,
    /// Withdraw the approval of DIGEST
    #[arg(long, requires = "digest")]
    pub(crate) withdraw: bool,
}
