//! The subcommands `ibe key`, `ibe list` and `ibe authority`, the same for edges and leaders.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use quiver_ainq::{Deployment, Ristretto255};
use quiver_ibe::Condition;
use quiver_key_release::ReleaseAuthority;
use quiver_service::arguments::KgcArgs;
use quiver_service::armour::{self, ArmourKind};
use quiver_service::terminal;
use serde_json::json;

use super::key_call::{KeyCall, KeyReport};
use crate::ibe::IbeArgs;
use crate::{Error, Result};

/// Encryption to conditions: the subcommand `ibe`.
#[derive(Clone, Debug, Args)]
pub struct IbeOptions {
    /// The KGCs.
    #[command(flatten)]
    pub kgcs: KgcArgs,
    /// The master key's public file (from `kgc ibe setup`), in place of asking for it
    #[arg(long, value_name = "FILE", global = true)]
    pub authority: Option<PathBuf>,
    /// Subcommands.
    #[command(subcommand)]
    pub command: IbeCommand,
}

/// Subcommands about files that open when a condition is met, and about the keys that open them.
#[derive(Clone, Debug, Subcommand)]
pub enum IbeCommand {
    /// Files.
    #[command(flatten)]
    Files(IbeArgs),
    /// Keys.
    #[command(flatten)]
    Keys(KeyArgs),
}

/// Subcommands about keys of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum KeyArgs {
    /// Collect the key of a condition that is met from the KGCs, and keep it
    Key {
        /// The condition
        #[arg(long, value_name = "CONDITION")]
        condition: Condition,
        /// For how long to wait for the condition to be met
        #[arg(long, value_name = "TIME", value_parser = quiver_service::duration::parse, default_value = "0s")]
        wait: Duration,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the conditions whose keys are kept
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the statement about the master key into a public file: enough to encrypt with
    Authority {
        /// The file to write; default: NAME.ibe
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

impl KeyArgs {
    /// The request.
    #[must_use]
    pub fn call(&self) -> KeyCall {
        match self {
            Self::Key { condition, wait, .. } => {
                KeyCall::Key { condition: condition.to_string(), wait: wait.as_secs() }
            }
            Self::List { .. } => KeyCall::List,
            Self::Authority { .. } => KeyCall::Authority,
        }
    }

    /// Tells what came of it. Keys are not printed.
    ///
    /// # Errors
    /// Those of [`KeyReport::check`], of files and of standard output.
    pub fn print(&self, deployment: &Deployment<Ristretto255>, report: &KeyReport) -> Result<()> {
        report.check()?;
        let conditions: Vec<_> = report.keys.iter().map(|line| line.condition.as_str()).collect();
        match self {
            Self::Key { json: true, .. } | Self::List { json: true } => {
                let master = match &report.statement {
                    Some(_) => Some(hex::encode(report.authority(deployment)?.fingerprint())),
                    None => None,
                };
                Ok(terminal::line(&json!({ "master": master, "conditions": conditions }).to_string())?)
            }
            Self::Key { .. } => Ok(terminal::line(&format!("{}: key held", conditions.join(", ")))?),
            Self::List { .. } if conditions.is_empty() => Ok(terminal::line("no keys of conditions yet")?),
            Self::List { .. } => Ok(terminal::line(&conditions.join("\n"))?),
            Self::Authority { out } => {
                let authority = report.authority(deployment)?;
                let out = out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.ibe", authority.name())));
                armour::write_new(&out, ArmourKind::IbeAuthority, &authority.statement().bytes())?;
                let fingerprint = hex::encode(authority.fingerprint());
                Ok(terminal::line(&format!("{}  public, fingerprint {fingerprint}", out.display()))?)
            }
        }
    }
}

/// Reads the public file of a master key.
///
/// # Errors
/// Errors of reading the file; [`DroneError::Keyring`](quiver_service::drone::Error::Keyring) if it belongs to another
/// deployment, or does not hold.
pub fn read_authority(
    path: &Path,
    deployment: &Deployment<Ristretto255>,
) -> Result<ReleaseAuthority<Ristretto255>> {
    let bytes = armour::read(path, ArmourKind::IbeAuthority)?;
    let garbled = |what: String| quiver_service::Error::Garbled { path: path.into(), what };
    let decoded = ReleaseAuthority::decode(deployment, &bytes);
    decoded.map_err(|error| Error::from(garbled(error.to_string())))
}
