//! What a drone holds of the attribute authorities: what the KGC says about each, and this drone's keys.
//!
//! Kept as one attachment of the drone's encrypted state file. Single authorities and keys also travel as files, in armour:
//! `NAME.authority` (public) lets anybody seal under an authority, `kgc abe keygen` writes a key with everything that is
//! needed to open.
//!
//! ```text
//! entry    = lp(statement) ‖ 0   or   lp(statement) ‖ 1 ‖ mark of the grant u64 ‖ lp(key)
//! keyring  = 1 ‖ count ‖ lp(entry)*, ascending by the authority's name
//! ```
//! Schemes are not known here: keys and parameters are bytes that their crate decodes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use quiver_ainq::{
    Deployment, Error as AinqError, MAX_AUTHORITY_LEN, Name, SignedAuthority, Suite, VerifiedAuthority,
};
use quiver_crypto::canonical::{Reader, Writer};
use zeroize::Zeroizing;

use crate::armour::{self, Kind};
use crate::deployment_file::SuiteChoice;
use crate::{Error, Result};

/// Name of the attachment in a drone's state file.
pub const ATTACHMENT: &str = "attributes";
/// First byte of every encoding.
const VERSION: u8 = 1;
/// Bytes of the longest key.
const MAX_KEY_LEN: usize = 256 * 1024;
/// Bytes of the longest entry.
const MAX_ENTRY_LEN: usize = MAX_AUTHORITY_LEN + MAX_KEY_LEN + 17;
/// Authorities of one deployment that a drone can hold something of.
const MAX_ENTRIES: usize = 64;

/// A drone's key of one authority. Erased when dropped, not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldKey {
    /// The mark of the grant that it was made for; 0 for a key that came as a file.
    pub grant: u64,
    /// The key in its scheme's encoding.
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for HeldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldKey(grant {:016x}, {} bytes)", self.grant, self.key.len())
    }
}

/// What is held of one authority: without a key, enough to seal under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<S: Suite> {
    /// What the KGC says about it.
    pub authority: VerifiedAuthority<S>,
    /// This drone's key.
    pub key: Option<HeldKey>,
}

impl<S: Suite> Entry<S> {
    /// The encoding; secret if there is a key.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let statement = self.authority.bytes();
        let key = self.key.as_ref();
        let mut writer =
            Writer::with_capacity(4 + statement.len() + 1 + key.map_or(0, |held| 12 + held.key.len()));
        writer.lp(&statement).u8(u8::from(key.is_some()));
        if let Some(held) = key {
            writer.u64(held.grant).lp(&held.key);
        }
        Zeroizing::new(writer.finish())
    }

    /// Reads the encoding and checks that the KGC of this deployment made the statement.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes, or [`AinqError::InvalidSignature`].
    pub fn decode(bytes: &[u8], deployment: &Deployment<S>) -> std::result::Result<Self, AinqError> {
        let mut reader = Reader::new(bytes);
        let statement = SignedAuthority::decode(reader.lp(MAX_AUTHORITY_LEN)?)?;
        let key = match reader.u8()? {
            0 => None,
            1 => {
                let grant = reader.u64()?;
                Some(HeldKey { grant, key: Zeroizing::new(reader.lp(MAX_KEY_LEN)?.to_vec()) })
            }
            _ => return Err(AinqError::Malformed("neither with nor without a key")),
        };
        reader.end()?;
        Ok(Self { authority: statement.verify(deployment)?, key })
    }
}

/// All that a drone holds, by the authority's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring<S: Suite> {
    entries: BTreeMap<Name, Entry<S>>,
}

impl<S: Suite> Default for Keyring<S> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<S: Suite> Keyring<S> {
    /// The entry of an authority.
    pub fn entry(&self, authority: &Name) -> Option<&Entry<S>> {
        self.entries.get(authority)
    }

    /// All entries, by the authority's name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<S>> {
        self.entries.values()
    }

    /// Those of authorities of one kind.
    pub fn entries_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Entry<S>> {
        self.entries().filter(move |entry| entry.authority.kind.as_str() == kind)
    }

    /// Takes an entry in place of what was held of this authority. Returns whether that changes anything.
    ///
    /// # Errors
    /// [`AinqError::TooLong`] if there are too many authorities.
    pub fn put(&mut self, entry: Entry<S>) -> std::result::Result<bool, AinqError> {
        let name = entry.authority.name.clone();
        if self.entries.len() >= MAX_ENTRIES && !self.entries.contains_key(&name) {
            return Err(AinqError::TooLong { what: "keyring", limit: MAX_ENTRIES });
        }
        let changed = self.entries.get(&name) != Some(&entry);
        self.entries.insert(name, entry);
        Ok(changed)
    }

    /// The encoding; secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let entries: Vec<_> = self.entries.values().map(Entry::encode).collect();
        let length = entries.iter().map(|entry| 4 + entry.len()).sum::<usize>();
        let mut writer = Writer::with_capacity(5 + length);
        writer.u8(VERSION).count(entries.len());
        for entry in &entries {
            writer.lp(entry);
        }
        Zeroizing::new(writer.finish())
    }

    /// Reads the encoding and checks every statement.
    ///
    /// # Errors
    /// As [`Entry::decode`].
    pub fn decode(bytes: &[u8], deployment: &Deployment<S>) -> std::result::Result<Self, AinqError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(AinqError::Malformed("a keyring of another version"));
        }
        let mut keyring = Self::default();
        for _ in 0..reader.count(MAX_ENTRIES, 4)? {
            let entry = Entry::decode(reader.lp(MAX_ENTRY_LEN)?, deployment)?;
            let last = keyring.entries.last_key_value().map(|(name, _)| name);
            if last.is_some_and(|last| *last >= entry.authority.name) {
                return Err(AinqError::Malformed("a keyring out of order"));
            }
            keyring.entries.insert(entry.authority.name.clone(), entry);
        }
        reader.end()?;
        Ok(keyring)
    }
}

/// Writes the public file of an authority. Never overwrites.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub fn write_authority<S: Suite>(
    path: &Path,
    suite: SuiteChoice,
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
pub fn write_key<S: Suite>(path: &Path, suite: SuiteChoice, entry: &Entry<S>) -> Result<()> {
    armour::write_new(path, Kind::AttributeKey, suite, &entry.encode())
}

/// Reads the secret file of an attribute key and checks that the KGC of this deployment vouches for its authority.
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
