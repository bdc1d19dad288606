//! Attachment and files of the keyring: attribute authorities, and keys from them.
//!
//! The [keyring](quiver_delivery::attributes::keyring) is one attachment of the drone's encrypted state file.
//! Single authorities and keys also travel as files, in armour: `NAME.authority` (public) lets anybody seal
//! under an authority, `kgc abe keygen` writes a key with everything that is needed to open.

use std::path::Path;

use quiver_ainq::{Deployment, Error as AinqError, SignedAuthority, Suite, SuiteKind, VerifiedAuthority};
pub use quiver_delivery::attributes::{Entry, HeldKey, Keyring};
use zeroize::Zeroizing;

use crate::armour::{self, Kind};
use crate::{Error, Result};

/// Name of the attachment in a drone's state file.
pub const ATTACHMENT: &str = "attributes";

/// Writes the public file of an authority. Never overwrites.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub fn write_authority<S: Suite>(
    path: &Path,
    suite: SuiteKind,
    authority: &VerifiedAuthority<S>,
) -> Result<()> {
    armour::write_new(path, Kind::AttributeAuthority, suite, &authority.bytes())
}

/// Reads the public file of an authority and checks that the KGC of this deployment vouches for it.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::Io`].
pub fn read_authority<S: Suite>(path: &Path, deployment: &Deployment<S>) -> Result<VerifiedAuthority<S>> {
    let bytes = read_armour::<S>(path, Kind::AttributeAuthority)?;
    SignedAuthority::decode(&bytes)
        .and_then(|statement| statement.verify(deployment))
        .map_err(|error| wrong(path, &error))
}

/// Writes the secret file of an attribute key. Never overwrites.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub fn write_key<S: Suite>(path: &Path, suite: SuiteKind, entry: &Entry<S>) -> Result<()> {
    armour::write_new(path, Kind::AttributeKey, suite, &entry.encode())
}

/// Reads the secret file of an attribute key and checks that the KGC of this deployment vouches for its
/// authority.
///
/// # Errors
/// [`Error::Garbled`] saying what is wrong, [`Error::TooOpen`], [`Error::Io`].
pub fn read_key<S: Suite>(path: &Path, deployment: &Deployment<S>) -> Result<Entry<S>> {
    let bytes = read_armour::<S>(path, Kind::AttributeKey)?;
    Entry::decode(&bytes, deployment).map_err(|error| wrong(path, &error))
}

fn read_armour<S: Suite>(path: &Path, kind: Kind) -> Result<Zeroizing<Vec<u8>>> {
    let (suite, bytes) = armour::read(path, kind)?;
    if suite.id() != S::ID {
        let what = format!("it is of suite {}, the deployment of {}", suite.id(), S::ID);
        return Err(Error::Garbled { path: path.into(), what });
    }
    Ok(bytes)
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
