//! Recipients: a master public key and a condition.

use std::collections::HashSet;
use std::str::FromStr;

use age::EncryptError;
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::ExposeSecret;
use quiver_ibe::{Condition, Encryptor, IdentityPoint, MasterPublicKey};
use rand::rngs::OsRng;

use crate::bech::RECIPIENT;
use crate::stanza::WrappedKey;
use crate::{Error, Result};

/// The most conditions that one file is encrypted to.
pub const RECIPIENTS_LIMIT: usize = 64;

/// First byte of an encoded recipient.
const VERSION: u8 = 1;

/// A recipient: all holders of the key of a condition. As text `age1quiver1…`, which decodes to
///
/// | bytes | what |
/// |---|---|
/// | 1 | version: 1 |
/// | 48 | master public key, a compressed point of G1 |
/// | 1 to 255 | the condition |
#[derive(Clone, Debug, derive_more::Display)]
#[display("{}", RECIPIENT.encode(&self.encode()).as_str())]
pub struct Recipient {
    condition: Condition,
    /// Hash-to-curve and pairing, computed once.
    encryptor: Encryptor,
}

impl Recipient {
    /// The holders of this condition's key. Takes a hash to G2 and a pairing; encrypting takes less
    /// afterwards.
    #[must_use]
    pub fn new(master: MasterPublicKey, condition: Condition) -> Self {
        let encryptor = Encryptor::new(master, IdentityPoint::of(&condition));
        Self { condition, encryptor }
    }

    /// The master public key.
    pub const fn master(&self) -> &MasterPublicKey {
        self.encryptor.master()
    }

    /// The condition.
    pub const fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Decodes the bytes of a recipient's text.
    ///
    /// # Errors
    /// [`Error::Text`], and [`Error::Ibe`] if the point or the condition is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((&VERSION, rest)) = bytes.split_first() else {
            return Err(RECIPIENT.wrong("it is of a version that this program does not know"));
        };
        let Some((master, condition)) = rest.split_first_chunk::<{ MasterPublicKey::LEN }>() else {
            return Err(RECIPIENT.wrong("it is too short"));
        };
        let condition =
            std::str::from_utf8(condition).map_err(|_| RECIPIENT.wrong("its condition is no text"))?;
        Ok(Self::new(MasterPublicKey::decode(master)?, condition.parse()?))
    }

    /// The encoding that [`Self::decode`] reads.
    pub fn encode(&self) -> Vec<u8> {
        [&[VERSION][..], &self.master().encode(), self.condition.as_str().as_bytes()].concat()
    }

    /// Encrypts a file key to this recipient.
    ///
    /// # Errors
    /// The errors of the encryption; none is expected for the 16 bytes of a file key.
    pub fn wrap(&self, file_key: &FileKey) -> Result<Stanza> {
        let ciphertext = self.encryptor.encrypt(file_key.expose_secret(), &mut OsRng)?;
        Ok(WrappedKey::new(self.master(), &self.condition, &ciphertext)?.to_stanza())
    }
}

impl FromStr for Recipient {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::decode(&RECIPIENT.decode(text)?)
    }
}

impl PartialEq for Recipient {
    fn eq(&self, other: &Self) -> bool {
        self.master() == other.master() && self.condition == other.condition
    }
}

impl Eq for Recipient {}

impl age::Recipient for Recipient {
    fn wrap_file_key(
        &self,
        file_key: &FileKey,
    ) -> std::result::Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        let stanza = self.wrap(file_key).map_err(|error| EncryptError::Io(std::io::Error::other(error)))?;
        // No labels: a file for a condition may be for others as well, under a key of whatever kind.
        Ok((vec![stanza], HashSet::new()))
    }
}
