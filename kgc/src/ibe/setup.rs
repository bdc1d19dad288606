//! `kgc ibe setup`: a new master key, held by this KGC alone.

use std::time::Duration;

use quiver_ainq::{Deployment, Name, Purpose, Ristretto255, SignedAuthority};
use quiver_ibe::Dealing;
use quiver_key_release::{Pattern, ReleaseAuthority, ReleaseParameters};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};
use rand::rngs::OsRng;

use super::tables::ReleaseWriter;
use super::{master_share, write_public};
use crate::config::Config;
use crate::control::effect;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;
use crate::signing::RegistrySigner;

/// Patterns that the policies of a fresh master key allow: each kind of condition, by its own rule, to every
/// drone.
const PATTERNS: [&str; 3] = ["mission", "drone", "not-before"];

/// The same.
pub(crate) fn first_patterns() -> Vec<Pattern> {
    // All of them parse.
    PATTERNS.iter().filter_map(|pattern| pattern.parse().ok()).collect()
}

/// Draws the key, has the KGC sign what is public, stores everything.
pub(crate) fn run(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<Ristretto255>,
    writer: &mut RegistryWriter,
    name: &Name,
) -> Result<()> {
    if let Some(row) = writer.master_key().newest()? {
        return Err(Error::MasterKeyExists(row.name));
    }
    let public = config.data_dir.join(format!("{name}.ibe"));
    if public.exists() {
        return Err(quiver_service::Error::Exists { path: public }.into());
    }
    let by = writer.protection(protection)?;
    let dealing = Dealing::deal(1, 1, &mut OsRng).map_err(Error::scheme)?;
    let publics = dealing.public_shares().map_err(Error::scheme)?;
    let [share] = dealing.shares() else {
        return Err(Error::Scheme("a single share was to be dealt".into()));
    };
    let statement = ReleaseParameters { version: 1, publics }.statement(deployment, name.clone())?;
    let signing = RegistrySigner { config, deployment, by: &by, wait: Duration::ZERO };
    let signature = signing.sign(writer, Purpose::Parameters, &statement.body())?;
    let statement = SignedAuthority::new(statement, signature)?.verify(deployment)?;
    let authority = ReleaseAuthority::new(deployment, statement)?;
    let store_share = || master_share::write(&config.data_dir, deployment, &by, &authority, share);
    writer.change(clock::unix_now(), |change| {
        ReleaseWriter::of(change).record_authority(&authority, &first_patterns(), store_share)
    })?;
    // If this fails, `kgc ibe publish` does it.
    write_public(&public, &authority)?;
    terminal::line(&format!(
        "master key {name} set up\nfingerprint {}\n{}  public: encrypt with it anywhere; drones also fetch it\n\
         allowed: {} (see `kgc ibe policy`)\n{}",
        hex::encode(authority.fingerprint()),
        public.display(),
        PATTERNS.join(", "),
        effect(config)
    ))?;
    Ok(())
}
