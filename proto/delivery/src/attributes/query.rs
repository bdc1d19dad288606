//! Query and response of the delivery of attribute keys (docs/protocol.md §4.2): what travels signed and
//! sealed.

use alloc::vec::Vec;

use quiver_ainq::Error;
use quiver_ainq::delivery::MAX_SECRET_LEN;
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};

use crate::encoding::{QUERY_VERSION, read_flag, read_version};

/// Bytes that a key may have: the rest of the longest answer.
pub const MAX_KEY_LEN: usize = MAX_SECRET_LEN - 32;

const NOTHING: u8 = 0;
const HELD: u8 = 1;
const KEY: u8 = 2;
const WITHDRAWN: u8 = 3;

/// A drone's query to one authority. 3 or 11 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyQuery {
    /// True if the KGC's statement about the authority is wanted as well.
    pub statement: bool,
    /// The mark of the grant whose key the drone holds.
    pub held: Option<u64>,
}

impl KeyQuery {
    /// The encoding: version ‖ statement wanted ‖ key held ‖ mark of its grant.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(QUERY_VERSION).u8(u8::from(self.statement)).u8(u8::from(self.held.is_some()));
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
        read_version(&mut reader)?;
        let statement = read_flag(&mut reader)?;
        // §4.2: the mark says for which grant the drone holds a key, so that it is sent once.
        let held = if read_flag(&mut reader)? { Some(reader.u64()?) } else { None };
        reader.end()?;
        Ok(Self { statement, held })
    }
}

/// An authority's response. The key is erased when this is dropped, and not printed.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub enum KeyResponse {
    /// The authority knows of no grant to this drone. No reason to erase a key: a registry restored from a
    /// backup has lost the grants made since.
    Nothing,
    /// The grant is withdrawn: a held key must be erased.
    Withdrawn,
    /// The drone holds the key of the grant in force.
    #[debug("Held({grant:016x})")]
    Held {
        /// The grant's mark: equal as long as the grant is the same.
        grant: u64,
    },
    /// The drone's key.
    #[debug("Key({grant:016x}, {} bytes)", key.len())]
    Key {
        /// The grant's mark: equal as long as the grant is the same.
        grant: u64,
        /// The key in its scheme's encoding; at most [`MAX_KEY_LEN`] bytes.
        key: Zeroizing<Vec<u8>>,
    },
}

impl KeyResponse {
    /// The encoding: version ‖ kind ‖ mark ‖ lp(key), as far as the kind has them. Secret.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Room for the key beforehand, so that growing leaves no copy of it behind.
        let mut writer = match self {
            Self::Key { key, .. } => Writer::with_capacity(2 + 8 + 4 + key.len()),
            _ => Writer::with_capacity(2 + 8),
        };
        writer.u8(QUERY_VERSION);
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
        read_version(&mut reader)?;
        let answer = match reader.u8()? {
            // §4.2: the answer is one of four, and each says what becomes of a key held.
            NOTHING => Self::Nothing,
            WITHDRAWN => Self::Withdrawn,
            HELD => Self::Held { grant: reader.u64()? },
            KEY => {
                let grant = reader.u64()?;
                Self::Key { grant, key: Zeroizing::new(reader.lp(MAX_KEY_LEN)?.to_vec()) }
            }
            _ => return Err(Error::Malformed("unknown kind of response")),
        };
        reader.end()?;
        Ok(answer)
    }
}
