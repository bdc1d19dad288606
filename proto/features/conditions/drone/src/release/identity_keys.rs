//! Stores what a drone has of encryption to conditions: the newest statement about the master key, and the
//! keys of conditions.
//!
//! One attachment of the drone's encrypted state file:
//!
//! ```text
//! 1 ‖ lp(statement) ‖ count ‖ (lp(condition) ‖ key, 96 bytes)*, the oldest first
//! ```

use std::sync::Arc;

use quiver_ainq::{Deployment, Error as AinqError, Ristretto255};
use quiver_crypto::canonical::{Reader, Writer};
use quiver_ibe::condition::MAX_CONDITION_LEN;
use quiver_ibe::{Condition, IdentityKey, UnverifiedIdentityKey};
use quiver_key_release::ReleaseAuthority;
use quiver_message::MAX_RELEASE_STATEMENT_LEN;
use quiver_service::drone::keys::{Keys, SharedState, locked};
use zeroize::Zeroizing;

use crate::{Error, Result};

/// Name of the attachment in a drone's state file.
pub const ATTACHMENT: &str = "identity-keys";
/// Keys that are kept; the oldest go first.
pub const MAX_KEPT: usize = 512;
const VERSION: u8 = 1;

type EncodedIdentityKey = Zeroizing<[u8; IdentityKey::LEN]>;

/// The keys of conditions that a drone holds. Clones are of the same ones.
#[derive(Clone, Debug)]
pub struct IdentityKeys {
    state: SharedState,
    deployment: Deployment<Ristretto255>,
}

/// The attachment, decoded.
struct Kept {
    authority: Option<ReleaseAuthority<Ristretto255>>,
    keys: Vec<(Condition, EncodedIdentityKey)>,
}

impl Kept {
    fn decode(bytes: &[u8], deployment: &Deployment<Ristretto255>) -> std::result::Result<Self, AinqError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(AinqError::Malformed("keys of conditions of another version"));
        }
        let authority = match reader.lp(MAX_RELEASE_STATEMENT_LEN)? {
            [] => None,
            statement => Some(ReleaseAuthority::decode(deployment, statement)?),
        };
        let count = reader.count(MAX_KEPT, 4 + IdentityKey::LEN)?;
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            let text = std::str::from_utf8(reader.lp(MAX_CONDITION_LEN)?);
            let condition = text.ok().and_then(|text| text.parse().ok());
            let condition = condition.ok_or(AinqError::Malformed("condition"))?;
            keys.push((condition, Zeroizing::new(reader.array()?)));
        }
        reader.end()?;
        Ok(Self { authority, keys })
    }

    fn encode(&self) -> Zeroizing<Vec<u8>> {
        let statement =
            self.authority.as_ref().map_or_else(Vec::new, |authority| authority.statement().bytes());
        let entry = |(condition, _): &(Condition, EncodedIdentityKey)| {
            4 + condition.as_str().len() + IdentityKey::LEN
        };
        let length = 9 + statement.len() + self.keys.iter().map(entry).sum::<usize>();
        // Room for all of it from the start: a growing vector would leave copies behind.
        let mut writer = Writer::with_capacity(length);
        writer.u8(VERSION).lp(&statement).count(self.keys.len());
        for (condition, key) in &self.keys {
            writer.lp(condition.as_str().as_bytes()).fixed(key.as_slice());
        }
        Zeroizing::new(writer.finish())
    }
}

impl IdentityKeys {
    /// The keys of conditions in the state file of this keyring.
    pub fn of(keys: &Keys) -> Self {
        Self { state: Arc::clone(keys.state()), deployment: keys.deployment().clone() }
    }

    /// The deployment.
    pub fn deployment(&self) -> &Deployment<Ristretto255> {
        &self.deployment
    }

    fn read(&self) -> Result<Kept> {
        match locked(&self.state).attachment(ATTACHMENT) {
            Some(bytes) => Kept::decode(bytes, &self.deployment).map_err(Error::keyring),
            None => Ok(Kept { authority: None, keys: Vec::new() }),
        }
    }

    fn write(&self, kept: &Kept) -> Result<()> {
        Ok(locked(&self.state).attach(ATTACHMENT, &kept.encode())?)
    }

    /// The newest statement about the master key, verified; `None` if none was ever fetched.
    ///
    /// # Errors
    /// [`quiver_service::drone::Error::Keyring`].
    pub fn authority(&self) -> Result<Option<ReleaseAuthority<Ristretto255>>> {
        Ok(self.read()?.authority)
    }

    /// The key of a condition, if it is kept.
    ///
    /// # Errors
    /// [`quiver_service::drone::Error::Keyring`].
    pub fn key(&self, wanted: &Condition) -> Result<Option<UnverifiedIdentityKey>> {
        let kept = self.read()?;
        let found = kept.keys.iter().find(|(condition, _)| condition == wanted);
        let decoded = found.map(|(_, key)| UnverifiedIdentityKey::decode(key.as_slice())).transpose();
        decoded.map_err(|_| Error::keyring(AinqError::Malformed("key of a condition")))
    }

    /// The conditions whose keys are kept, the oldest first.
    ///
    /// # Errors
    /// [`quiver_service::drone::Error::Keyring`].
    pub fn conditions(&self) -> Result<Vec<Condition>> {
        Ok(self.read()?.keys.iter().map(|(condition, _)| condition.clone()).collect())
    }

    /// Keeps a statement, durably, in place of an older one of the same master key.
    ///
    /// # Errors
    /// [`quiver_service::drone::Error::Keyring`] if it does not hold, and those of writing the file.
    pub fn keep_statement(&self, statement: &[u8]) -> Result<()> {
        let authority = ReleaseAuthority::decode(&self.deployment, statement).map_err(Error::keyring)?;
        let mut kept = self.read()?;
        kept.authority = Some(authority);
        self.write(&kept)
    }

    /// Keeps a key, durably. Of too many the oldest goes.
    ///
    /// # Errors
    /// [`quiver_service::drone::Error::Keyring`], and those of writing the file.
    pub fn keep_key(&self, condition: &Condition, key: &IdentityKey) -> Result<()> {
        let mut kept = self.read()?;
        kept.keys.retain(|(known, _)| known != condition);
        kept.keys.push((condition.clone(), key.encode()));
        let surplus = kept.keys.len().saturating_sub(MAX_KEPT);
        kept.keys.drain(..surplus);
        self.write(&kept)
    }
}
