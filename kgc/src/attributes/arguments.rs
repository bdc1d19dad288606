//! `kgc abe …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use quiver_ainq::Name;
use quiver_attribute_schemes::SchemeKind;

use crate::authorities::AuthorityChoice;
use crate::signing::ApprovalArgs;

/// Examples, which stand below the subcommands.
pub(super) const EXAMPLES: &str = "\
Examples:
  kgc abe setup --name orders --schema schema.toml   # an attribute authority
  kgc abe grant --drone edge-1 --attributes 'scout, sector:7'";

#[derive(Debug, Subcommand)]
pub(crate) enum AbeCommand {
    /// Set up an attribute authority. A running `kgc serve` takes it up at once; in a quorum it must run, and
    /// enough others must approve
    Setup(SetupArgs),
    /// Grant a drone attributes or a policy: it fetches its key over its own connection
    Grant(GrantArgs),
    /// Withdraw a grant: no more keys for it
    Revoke(RevokeArgs),
    /// Make an attribute key and write it to a file
    Keygen(KeygenArgs),
    /// List authorities, grants, and keys issued
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write an authority's public file again
    Publish {
        /// The authority
        #[arg(value_name = "NAME")]
        name: Name,
        /// The file to write; default: NAME.authority
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The scheme: fabeo22-cp (keys have attributes, messages a policy: for orders to a role), fabeo22-kp
    /// (keys have a policy, messages attributes: for data that a sensor seals), or gpsw06 (the same out of a
    /// closed list: the reference)
    #[arg(long, value_name = "SCHEME", default_value_t)]
    pub(crate) scheme: SchemeKind,
    /// The authority's name; default: the scheme's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<Name>,
    /// TOML: which integer attributes there are (`integers = { altitude = "16 bits", valid-until = "date"
    /// }`), and, if the list is to be closed, the plain ones (`plain = ["scout", "thermal"]`); default: any
    /// plain attribute, no integers
    #[arg(long, visible_alias = "universe", value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
}

/// Grant, and the authority that makes it.
#[derive(Debug, Args)]
pub(crate) struct WhatArgs {
    /// The authority; may be left out if only one fits
    #[arg(long, value_name = "NAME")]
    pub(crate) authority: Option<String>,
    #[command(flatten)]
    pub(crate) terms: TermsArgs,
}

/// A policy or attributes.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TermsArgs {
    /// A policy, for keys that open by their policy: '(scout and sector:7) or 2 of (thermal, lidar, radar)'
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Attributes, for keys that open what they satisfy the policy of: 'scout, sector:7, altitude = 150'
    #[arg(long, value_name = "LIST")]
    pub(crate) attributes: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// The drone: enrolled, or with an open token recorded here
    #[arg(long, value_name = "NAME")]
    pub(crate) drone: Name,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The drone
    #[arg(long, value_name = "NAME")]
    pub(crate) drone: Name,
    #[command(flatten)]
    pub(crate) choice: AuthorityChoice,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The drone that it is for, for the audit table
    #[arg(long, value_name = "NAME")]
    pub(crate) drone: Option<Name>,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
    /// The file to write (mode 0600); it holds the key. Default: AUTHORITY.key
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
