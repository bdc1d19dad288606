//! `kgc abe keygen`: an attribute key into a file.

use std::path::PathBuf;

use quiver_ainq::{Deployment, Ristretto255};
use quiver_delivery::attributes::query::MAX_KEY_LEN;
use quiver_service::keyring::{self, HeldKey, KeyringEntry};
use quiver_service::secrets::ProtectionArgs;
use quiver_service::{clock, terminal};
use rand::rngs::OsRng;

use super::arguments::KeygenArgs;
use super::chosen;
use crate::authorities;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::registry::RegistryWriter;

/// Makes a key and writes it. Needs no running KGC, and does not mind one.
pub(crate) fn run(
    config: &Config,
    protection: &ProtectionArgs,
    deployment: &Deployment<Ristretto255>,
    writer: &mut RegistryWriter,
    args: &KeygenArgs,
) -> Result<()> {
    let (known, granted) = chosen(writer, deployment, &args.what)?;
    let whom = match &args.drone {
        Some(drone) => writer.attributes().grantee(drone.as_str(), clock::unix_now())?.name,
        None => "-".into(),
    };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.key", known.row.name)));
    if out.exists() {
        return Err(quiver_service::Error::Exists { path: out }.into());
    }
    let by = writer.protection(protection)?;
    let mut sealed = authorities::read(&config.data_dir, deployment, &by, std::slice::from_ref(&known.row))?;
    let sealed = sealed.pop().ok_or_else(|| Error::Scheme("the authority's keys are missing".into()))?;
    let mut authority = sealed.serving()?;
    let key = authority.maker.make(&granted.encoded, &mut OsRng).map_err(Error::scheme)?;
    if key.len() > MAX_KEY_LEN {
        return Err(Error::Scheme(format!("the key has {} bytes, more than {MAX_KEY_LEN}", key.len())));
    }
    let length = key.len();
    // Audited first: every key that leaves is in the audit table.
    writer.change(clock::unix_now(), |change| {
        change.attributes().record_key_file(&known.row.name, &whom, &granted.text)
    })?;
    let entry = KeyringEntry { authority: known.statement, key: Some(HeldKey { grant: 0, key }) };
    keyring::write_key(&out, &entry)?;
    terminal::line(&format!(
        "{}  secret: an attribute key of {} ({length} bytes) for: {}",
        out.display(),
        known.row.name,
        granted.text
    ))?;
    Ok(())
}
