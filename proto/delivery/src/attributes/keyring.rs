//! Keyring of a drone: the KGC's statement about each attribute authority, and this drone's keys.
//!
//! ```text
//! entry    = lp(statement) ‖ 0   or   lp(statement) ‖ 1 ‖ mark of the grant u64 ‖ lp(key)
//! keyring  = 1 ‖ count ‖ lp(entry)*, ascending by the authority's name
//! ```
//! Schemes are not known here: keys and parameters are bytes that their crate decodes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quiver_ainq::{Deployment, Error, MAX_AUTHORITY_LEN, Name, SignedAuthority, Suite, VerifiedAuthority};
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

use super::query::MAX_KEY_LEN;

/// First byte of every encoding.
const VERSION: u8 = 1;
/// Bytes of the longest entry.
const MAX_ENTRY_LEN: usize = MAX_AUTHORITY_LEN + MAX_KEY_LEN + 17;
/// Authorities of one deployment that a drone can hold something of.
const MAX_ENTRIES: usize = 64;

/// A drone's key of one authority. Erased when dropped, not printed.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("HeldKey(grant {grant:016x}, {} bytes)", self.key.len())]
pub struct HeldKey {
    /// The mark of the grant that it was made for; 0 for a key that came as a file.
    pub grant: u64,
    /// The key in its scheme's encoding.
    pub key: Zeroizing<Vec<u8>>,
}

/// Entry of one authority: without a key, enough to seal under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyringEntry<S: Suite> {
    /// The KGC's statement about it.
    pub authority: VerifiedAuthority<S>,
    /// Key of this drone.
    pub key: Option<HeldKey>,
}

impl<S: Suite> KeyringEntry<S> {
    /// The encoding; secret if there is a key.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let statement = self.authority.bytes();
        let key = self.key.as_ref();
        // Room for all of it beforehand, so that growing leaves no copy of the key behind.
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
    /// The error of malformed bytes, or [`Error::InvalidSignature`].
    pub fn decode(bytes: &[u8], deployment: &Deployment<S>) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let statement = SignedAuthority::decode(reader.lp(MAX_AUTHORITY_LEN)?)?;
        let key = match reader.u8()? {
            0 => None,
            1 => {
                let grant = reader.u64()?;
                Some(HeldKey { grant, key: Zeroizing::new(reader.lp(MAX_KEY_LEN)?.to_vec()) })
            }
            _ => return Err(Error::Malformed("neither with nor without a key")),
        };
        reader.end()?;
        // §4.2: a statement is genuine for the KGC's signature, from a file too.
        Ok(Self { authority: statement.verify(deployment)?, key })
    }
}

/// All that a drone holds, by the authority's name.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct Keyring<S: Suite> {
    entries: BTreeMap<Name, KeyringEntry<S>>,
}

impl<S: Suite> Keyring<S> {
    /// The entry of an authority.
    pub fn entry(&self, authority: &Name) -> Option<&KeyringEntry<S>> {
        self.entries.get(authority)
    }

    /// All entries, by the authority's name.
    pub fn entries(&self) -> impl Iterator<Item = &KeyringEntry<S>> {
        self.entries.values()
    }

    /// Entries of authorities of one kind.
    pub fn entries_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a KeyringEntry<S>> {
        self.entries().filter(move |entry| entry.authority.kind.as_str() == kind)
    }

    /// Takes an entry in place of what was held of this authority. Returns whether that changes anything.
    ///
    /// # Errors
    /// [`Error::TooLong`] if there are too many authorities.
    pub fn put(&mut self, entry: KeyringEntry<S>) -> Result<bool, Error> {
        let name = entry.authority.name.clone();
        // §4.2: a KGC has 16 authorities; the rest is for those whose keys came as files.
        if self.entries.len() >= MAX_ENTRIES && !self.entries.contains_key(&name) {
            return Err(Error::TooLong { what: "keyring", limit: MAX_ENTRIES });
        }
        let changed = self.entries.get(&name) != Some(&entry);
        self.entries.insert(name, entry);
        Ok(changed)
    }

    /// The encoding; secret.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let entries: Vec<_> = self.entries.values().map(KeyringEntry::encode).collect();
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
    /// Errors of [`KeyringEntry::decode`].
    pub fn decode(bytes: &[u8], deployment: &Deployment<S>) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(Error::Malformed("a keyring of another version"));
        }
        let mut keyring = Self::default();
        for _ in 0..reader.count(MAX_ENTRIES, 4)? {
            let entry = KeyringEntry::decode(reader.lp(MAX_ENTRY_LEN)?, deployment)?;
            let last = keyring.entries.last_key_value().map(|(name, _)| name);
            // One encoding: ascending names, none twice.
            if last.is_some_and(|last| *last >= entry.authority.name) {
                return Err(Error::Malformed("a keyring out of order"));
            }
            keyring.entries.insert(entry.authority.name.clone(), entry);
        }
        reader.end()?;
        Ok(keyring)
    }
}

#[cfg(test)]
mod tests;
