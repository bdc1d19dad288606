//! The stanza: a file key, encrypted to one condition.

use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use quiver_crypto::Digest;
use quiver_ibe::condition::MAX_CONDITION_LEN;
use quiver_ibe::{Condition, IbeCiphertext, IdentityKey, MasterPublicKey};

use crate::{Error, Result};

/// The type of the stanza.
pub const TAG: &str = "quiver-ibe";
/// Length of the body in bytes: U, V and W.
const BODY_LENGTH: usize = IbeCiphertext::OVERHEAD + FILE_KEY_BYTES;

/// A file key, encrypted to one condition, as it is in a header. Its point is decoded on opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// Fingerprint of the master public key.
    pub master: Digest,
    /// The condition, as spelled in the header: printable ASCII, at most 255 characters. May be of a kind
    /// unknown here.
    pub condition: String,
    body: [u8; BODY_LENGTH],
}

impl WrappedKey {
    /// Wraps a file key under this condition.
    pub(crate) fn new(
        master: &MasterPublicKey,
        condition: &Condition,
        ciphertext: &IbeCiphertext,
    ) -> Result<Self> {
        let body = ciphertext.encode();
        let body = body.try_into().map_err(|_| Error::Age("a file key of another length".into()))?;
        Ok(Self { master: master.fingerprint(), condition: condition.to_string(), body })
    }

    /// The stanza for the header.
    pub(crate) fn to_stanza(&self) -> Stanza {
        let args = vec![BASE64_STANDARD_NO_PAD.encode(self.master), self.condition.clone()];
        Stanza { tag: TAG.into(), args, body: self.body.to_vec() }
    }

    /// Reads a stanza; `None` if it is of another type.
    ///
    /// # Errors
    /// [`Error::DamagedHeader`] if it is of this type and not formed like it.
    pub fn from_stanza(stanza: &Stanza) -> Option<Result<Self>> {
        (stanza.tag == TAG).then(|| Self::parse(stanza).ok_or(Error::DamagedHeader))
    }

    fn parse(stanza: &Stanza) -> Option<Self> {
        let [fingerprint, condition] = stanza.args.as_slice() else { return None };
        // Base64 of a length that is none of 32 bytes does not decode to 32; other spellings of one value are
        // refused.
        let master: Digest = BASE64_STANDARD_NO_PAD.decode(fingerprint).ok()?.try_into().ok()?;
        let body = stanza.body.as_slice().try_into().ok()?;
        let bounded = condition.len() <= MAX_CONDITION_LEN;
        bounded.then(|| Self { master, condition: condition.clone(), body })
    }

    /// The file key, if this key opens it.
    ///
    /// # Errors
    /// [`Error::AlteredHeader`] if it does not.
    pub(crate) fn unwrap(&self, key: &IdentityKey) -> Result<FileKey> {
        let ciphertext = IbeCiphertext::decode(&self.body).map_err(|_| Error::AlteredHeader)?;
        let opened = key.decrypt(&ciphertext).map_err(|_| Error::AlteredHeader)?;
        let whole: Result<&[u8; FILE_KEY_BYTES]> =
            opened.as_slice().try_into().map_err(|_| Error::AlteredHeader);
        FileKey::try_init_with_mut(|file_key| {
            file_key.copy_from_slice(whole?);
            Ok(())
        })
    }
}
