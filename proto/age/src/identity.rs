//! Identities: the keys of conditions.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use age::DecryptError;
use age_core::format::{FileKey, Stanza};
use quiver_crypto::Zeroizing;
use quiver_ibe::{Condition, IdentityKey, IdentityPoint, MasterPublicKey, UnverifiedIdentityKey};

use crate::bech::IDENTITY;
use crate::recipient::Recipient;
use crate::stanza::WrappedKey;
use crate::{Error, Result};

/// The most keys that one identity holds.
pub const KEYS_LIMIT: usize = 64;

/// First byte of an encoded identity.
const VERSION: u8 = 1;

/// Keys of conditions under one master key. Secret: its holder opens files encrypted to these conditions. As
/// text `AGE-PLUGIN-QUIVER-1…`, which decodes to
///
/// | bytes | what |
/// |---|---|
/// | 1 | version: 1 |
/// | 48 | master public key, a compressed point of G1 |
/// | for each key, up to [`KEYS_LIMIT`], ascending by condition: | |
/// | 1, 1 to 255 | length of the condition, the condition |
/// | 96 | the key, a compressed point of G2 |
pub struct Identity {
    master: MasterPublicKey,
    keys: BTreeMap<Condition, IdentityKey>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<_> = self.conditions().map(Condition::as_str).collect();
        f.debug_struct("Identity")
            .field("master", &self.master)
            .field("conditions", &conditions)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// An identity without a key yet.
    #[must_use]
    pub const fn new(master: MasterPublicKey) -> Self {
        Self { master, keys: BTreeMap::new() }
    }

    /// The master public key.
    pub const fn master(&self) -> &MasterPublicKey {
        &self.master
    }

    /// The conditions of the held keys, ascending by their spelling.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.keys.keys()
    }

    /// Recipients whose files this identity opens.
    pub fn recipients(&self) -> impl Iterator<Item = Recipient> {
        self.conditions().map(|condition| Recipient::new(self.master, condition.clone()))
    }

    /// Adds the key of a condition, which was verified under this master key. It replaces an equal one.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    pub fn insert(&mut self, condition: Condition, key: IdentityKey) -> Result<()> {
        if self.keys.len() >= KEYS_LIMIT && !self.keys.contains_key(&condition) {
            return Err(Error::TooManyKeys);
        }
        self.keys.insert(condition, key);
        Ok(())
    }

    /// Verifies the key of a condition and adds it. Takes a hash to G2 and two pairings.
    ///
    /// # Errors
    /// [`Error::WrongKey`] if it is not this condition's key under this master key, [`Error::TooManyKeys`].
    pub fn insert_unverified(&mut self, condition: Condition, key: UnverifiedIdentityKey) -> Result<()> {
        let verified = key.verify(&self.master, &IdentityPoint::of(&condition));
        let key = verified.map_err(|_| Error::WrongKey { condition: condition.to_string() })?;
        self.insert(condition, key)
    }

    /// Reads what an identity's text decodes to, and verifies every key.
    ///
    /// # Errors
    /// [`Error::Text`], [`Error::Ibe`] if a point or a condition is none, [`Error::WrongKey`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Err(IDENTITY.wrong("it is of a version that this program does not know"));
        };
        let short = || IDENTITY.wrong("it is too short");
        let (master, mut rest) = rest.split_first_chunk::<{ MasterPublicKey::LEN }>().ok_or_else(short)?;
        let mut identity = Self::new(MasterPublicKey::decode(master)?);
        while !rest.is_empty() {
            let (&length, after) = rest.split_first().ok_or_else(short)?;
            let (condition, after) = after.split_at_checked(usize::from(length)).ok_or_else(short)?;
            let (key, after) = after.split_first_chunk::<{ IdentityKey::LEN }>().ok_or_else(short)?;
            let spelled =
                std::str::from_utf8(condition).map_err(|_| IDENTITY.wrong("a condition in it is no text"))?;
            let condition: Condition = spelled.parse()?;
            if identity.keys.last_key_value().is_some_and(|(last, _)| *last >= condition) {
                return Err(IDENTITY.wrong("the conditions in it are not in order"));
            }
            identity.insert_unverified(condition, UnverifiedIdentityKey::decode(key)?)?;
            rest = after;
        }
        if identity.keys.is_empty() {
            return Err(IDENTITY.wrong("it has no key"));
        }
        Ok(identity)
    }

    /// The encoding that [`Self::decode`] reads.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Room for all of it from the start: a growing vector would leave copies behind.
        let lengths = self.conditions().map(|condition| 1 + condition.as_str().len() + IdentityKey::LEN);
        let room = 1 + MasterPublicKey::LEN + lengths.sum::<usize>();
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.master.encode());
        for (condition, key) in &self.keys {
            let spelled = condition.as_str().as_bytes();
            // A condition has at most 255 bytes.
            bytes.push(u8::try_from(spelled.len()).unwrap_or(u8::MAX));
            bytes.extend_from_slice(spelled);
            bytes.extend_from_slice(&*key.encode());
        }
        bytes
    }

    /// The text. Secret.
    pub fn to_text(&self) -> Zeroizing<String> {
        IDENTITY.encode(&self.encode())
    }

    /// The file key in a stanza; `None` if it is for no held key.
    ///
    /// # Errors
    /// [`Error::DamagedHeader`] if the stanza is not formed like one, [`Error::AlteredHeader`] if the key does
    /// not open it.
    pub fn unwrap(&self, stanza: &Stanza) -> Option<Result<FileKey>> {
        let wrapped = match WrappedKey::from_stanza(stanza)? {
            Ok(wrapped) => wrapped,
            Err(error) => return Some(Err(error)),
        };
        Some(wrapped.unwrap(self.held(&wrapped)?))
    }

    /// Returns true if the key that this was encrypted for is held.
    pub fn opens(&self, wrapped: &WrappedKey) -> bool {
        self.held(wrapped).is_some()
    }

    fn held(&self, wrapped: &WrappedKey) -> Option<&IdentityKey> {
        let ours = wrapped.master == self.master.fingerprint();
        self.keys
            .iter()
            .find(|(condition, _)| ours && condition.as_str() == wrapped.condition)
            .map(|(_, key)| key)
    }
}

impl FromStr for Identity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::decode(&IDENTITY.decode(text)?)
    }
}

impl age::Identity for Identity {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<std::result::Result<FileKey, DecryptError>> {
        match self.unwrap(stanza)? {
            Ok(key) => Some(Ok(key)),
            // An error would be the end, although another stanza or another identity may open the file.
            Err(Error::AlteredHeader) => None,
            Err(_) => Some(Err(DecryptError::InvalidHeader)),
        }
    }
}
