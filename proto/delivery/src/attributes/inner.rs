//! What a drone asks of an attribute authority, and what it is told: the parts that travel signed and sealed.

use alloc::vec::Vec;
use core::fmt;

use quiver_ainq::Error;
use quiver_ainq::delivery::MAX_SECRET_LEN;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

/// First byte of every question and answer.
const VERSION: u8 = 1;
/// Bytes a key may have: what is left of the longest answer.
pub const MAX_KEY_LEN: usize = MAX_SECRET_LEN - 32;

const NOTHING: u8 = 0;
const HELD: u8 = 1;
const KEY: u8 = 2;
const WITHDRAWN: u8 = 3;

/// What a drone asks of one authority. 3 or 11 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Whether the KGC's statement about the authority is wanted as well.
    pub statement: bool,
    /// The mark of the grant whose key the drone holds.
    pub held: Option<u64>,
}

impl Question {
    /// The encoding: version ‖ statement wanted ‖ key held ‖ mark of its grant.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION).u8(u8::from(self.statement)).u8(u8::from(self.held.is_some()));
        if let Some(grant) = self.held {
            writer.u64(grant);
        }
        writer.finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        version(&mut reader)?;
        let statement = flag(&mut reader)?;
        let held = if flag(&mut reader)? { Some(reader.u64()?) } else { None };
        reader.end()?;
        Ok(Self { statement, held })
    }
}

/// What the authority answers. The key is erased when this is dropped, and not printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// The authority knows of no grant to this drone. No reason to erase a key: a registry that was put back from a backup
    /// has forgotten the grants made since.
    Nothing,
    /// What was granted is withdrawn: a key that is held is to be erased.
    Withdrawn,
    /// The drone holds the key of the grant in force.
    Held {
        /// The grant's mark: equal as long as the grant is the same.
        grant: u64,
    },
    /// Its key.
    Key {
        /// The grant's mark: equal as long as the grant is the same.
        grant: u64,
        /// The key in its scheme's encoding; at most [`MAX_KEY_LEN`] bytes.
        key: Zeroizing<Vec<u8>>,
    },
}

impl Answer {
    /// The encoding: version ‖ kind ‖ mark ‖ lp(key), as far as the kind has them. Secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = match self {
            Self::Key { key, .. } => Writer::with_capacity(2 + 8 + 4 + key.len()),
            _ => Writer::with_capacity(2 + 8),
        };
        writer.u8(VERSION);
        match self {
            Self::Nothing => writer.u8(NOTHING),
            Self::Withdrawn => writer.u8(WITHDRAWN),
            Self::Held { grant } => writer.u8(HELD).u64(*grant),
            Self::Key { grant, key } => writer.u8(KEY).u64(*grant).lp(key),
        };
        Zeroizing::new(writer.finish())
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        version(&mut reader)?;
        let answer = match reader.u8()? {
            NOTHING => Self::Nothing,
            WITHDRAWN => Self::Withdrawn,
            HELD => Self::Held { grant: reader.u64()? },
            KEY => {
                let grant = reader.u64()?;
                Self::Key { grant, key: Zeroizing::new(reader.lp(MAX_KEY_LEN)?.to_vec()) }
            }
            _ => return Err(Error::Malformed("unknown kind of answer")),
        };
        reader.end()?;
        Ok(answer)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Withdrawn => f.write_str("Withdrawn"),
            Self::Held { grant } => write!(f, "Held({grant:016x})"),
            Self::Key { grant, key } => write!(f, "Key({grant:016x}, {} bytes)", key.len()),
        }
    }
}

/// What is signed besides the request: the drone's nonce and the office's cookie.
pub(super) fn challenge(nonce: &[u8; 16], cookie: &[u8]) -> Vec<u8> {
    [nonce.as_slice(), cookie].concat()
}

fn version(reader: &mut Reader<'_>) -> Result<(), Error> {
    if reader.u8()? == VERSION { Ok(()) } else { Err(Error::Malformed("of another version")) }
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Error> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Malformed("neither yes nor no")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_names_the_nonce_and_the_cookie() {
        let signed = challenge(&[1; 16], &[2; 40]);
        assert_eq!(signed, [&[1; 16][..], &[2; 40]].concat());
        assert_ne!(signed, challenge(&[3; 16], &[2; 40]));
        assert_ne!(signed, challenge(&[1; 16], &[3; 40]));
    }
}
