//! Attachment and files of the keyring: attribute authorities, and keys from them.
//!
//! The [keyring](quiver_delivery::attributes::keyring) is one attachment of the drone's encrypted state file.
//! Single authorities and keys also travel as files, in armour: `NAME.authority` (public) lets anybody seal
//! under an authority, `kgc abe keygen` writes a key with everything that is needed to open.

use std::path::Path;

use quiver_ainq::{Deployment, Error as AinqError, Ristretto255, SignedAuthority, VerifiedAuthority};
pub use quiver_delivery::attributes::{HeldKey, Keyring, KeyringEntry};

use crate::armour::{self, ArmourKind};
use crate::{Error, Result};

/// Name of the attachment in a drone's state file.
pub const ATTACHMENT: &str = "attributes";

/// Writes the public file of an authority. Never overwrites.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub fn write_authority(path: &Path, authority: &VerifiedAuthority<Ristretto255>) -> Result<()> {
    armour::write_new(path, ArmourKind::AttributeAuthority, &authority.bytes())
}

/// Reads the public file of an authority and checks that the KGC of this deployment vouches for it.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::Io`].
pub fn read_authority(
    path: &Path,
    deployment: &Deployment<Ristretto255>,
) -> Result<VerifiedAuthority<Ristretto255>> {
    let bytes = armour::read(path, ArmourKind::AttributeAuthority)?;
    SignedAuthority::decode(&bytes)
        .and_then(|statement| statement.verify(deployment))
        .map_err(|error| wrong(path, &error))
}

/// Writes the secret file of an attribute key. Never overwrites.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub fn write_key(path: &Path, entry: &KeyringEntry<Ristretto255>) -> Result<()> {
    armour::write_new(path, ArmourKind::AttributeKey, &entry.encode())
}

/// Reads the secret file of an attribute key and checks that the KGC of this deployment vouches for its
/// authority.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::TooOpen`], [`Error::Io`].
pub fn read_key(path: &Path, deployment: &Deployment<Ristretto255>) -> Result<KeyringEntry<Ristretto255>> {
    let bytes = armour::read(path, ArmourKind::AttributeKey)?;
    KeyringEntry::decode(&bytes, deployment).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, error: &AinqError) -> Error {
    let what = match error {
        AinqError::InvalidSignature => "the KGC of this deployment does not vouch for it".into(),
        error => format!("it was cut or changed: {error}"),
    };
    Error::Garbled { path: path.into(), what }
}

#[cfg(test)]
mod tests;
