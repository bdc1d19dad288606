//! The subcommands `abe fetch` and `abe list`: attribute keys as shown.

use clap::Subcommand;
use quiver_ainq::Ristretto255;
use quiver_service::arguments::KgcArgs;
use quiver_service::drone::Result;
use quiver_service::keyring::{Keyring, KeyringEntry};
use quiver_service::terminal;
use serde::{Deserialize, Serialize};

/// Subcommands about attribute keys.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AbeCommand {
    /// Fetch the attribute keys that the operator granted (`kgc abe grant`), and what is needed to seal
    Fetch {
        /// The KGCs.
        #[command(flatten)]
        kgcs: KgcArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show which attribute authorities are known and of which a key is held
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// An attribute authority and the key held of it, as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityLine {
    /// The authority's name.
    pub authority: String,
    /// Scheme of the authority.
    pub scheme: String,
    /// Fingerprint of the authority, hex.
    pub fingerprint: String,
    /// The mark of the grant whose key is held; hex.
    pub grant: Option<String>,
    /// Bytes of that key.
    pub key_length: Option<usize>,
}

/// The authorities of a keyring, as shown.
pub fn authority_lines(keyring: &Keyring<Ristretto255>) -> Vec<AuthorityLine> {
    let line = |entry: &KeyringEntry<Ristretto255>| AuthorityLine {
        authority: entry.authority.name.to_string(),
        scheme: entry.authority.scheme.to_string(),
        fingerprint: hex::encode(entry.authority.fingerprint()),
        grant: entry.key.as_ref().map(|key| format!("{:016x}", key.grant)),
        key_length: entry.key.as_ref().map(|key| key.key.len()),
    };
    keyring.entries().map(line).collect()
}

/// Prints what is held.
///
/// # Errors
/// Those of standard output.
pub fn print_lines(lines: &[AuthorityLine], json: bool) -> Result<()> {
    if json {
        return Ok(terminal::json(&lines)?);
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            let held = line.key_length.map_or_else(|| "none".into(), |length| format!("{length} bytes"));
            let short = line.fingerprint.get(..16).unwrap_or_default().to_string();
            [line.authority.clone(), line.scheme.clone(), held, short]
        })
        .collect();
    Ok(terminal::line(&terminal::table(["AUTHORITY", "SCHEME", "KEY", "FINGERPRINT"], &rows))?)
}
