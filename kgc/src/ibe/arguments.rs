//! Arguments of `kgc ibe`.

use std::path::PathBuf;

use clap::Subcommand;
use quiver_ainq::Name;
use quiver_ibe::Condition;
use quiver_key_release::Pattern;

/// Examples for the program's help.
pub(crate) const PROGRAM_EXAMPLES: &str = "\
  kgc ibe setup                                      # encryption to conditions
  kgc ibe release mission/alpha/phase-2              # what was encrypted to the phase opens
";

#[derive(Debug, Subcommand)]
pub(crate) enum IbeCommand {
    /// Make the master key. A running `kgc serve` takes it up at once. Not in a quorum, whose KGCs make it
    /// together with their own key
    Setup {
        /// The master key's name
        #[arg(long, value_name = "NAME", default_value = "ibe")]
        name: Name,
    },
    /// Show or change who may have which keys. A new master key, also a quorum's, begins with `mission`, `drone`
    /// and `not-before` allowed to every drone; what no policy allows is denied. A condition's own rule holds
    /// besides: the operator's approval, the drone it names, the time
    Policy {
        #[command(subcommand)]
        change: Option<PolicyCommand>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve a mission's condition: a running `kgc serve` releases its keys from then on
    Release {
        /// The condition: mission/alpha/phase-2
        #[arg(value_name = "CONDITION")]
        condition: Condition,
        /// Withdraw the approval: no more keys are released. A drone keeps the key that it has
        #[arg(long)]
        withdraw: bool,
    },
    /// List the master key, policies, approvals, and key shares released
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the master key's public file again
    Publish {
        /// The file to write; default: NAME.ibe
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Allow drones the keys of conditions that are met
    Allow {
        /// `mission`, `drone`, `not-before`, or the beginning of a path: mission/alpha. The longest that fits
        /// counts
        #[arg(value_name = "PATTERN")]
        pattern: Pattern,
        /// Only members and leaders of this group; may be repeated
        #[arg(long, value_name = "GROUP")]
        group: Vec<Name>,
    },
    /// Deny them to every drone
    Deny {
        /// As for `allow`
        #[arg(value_name = "PATTERN")]
        pattern: Pattern,
    },
}
