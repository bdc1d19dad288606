//! Query and response of the release of key shares (docs/protocol.md §4.3): what travels signed and sealed.

use alloc::vec::Vec;

use quiver_ainq::{Error, KgcId, UnixTime};
use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_delivery::encoding::{QUERY_VERSION, read_flag, read_version};
use quiver_ibe::condition::MAX_CONDITION_LEN;
use quiver_ibe::{Condition, KeyShare};

const STATEMENT: u8 = 0;
const SHARE: u8 = 1;
const NOT_YET: u8 = 2;
const NOT_APPROVED: u8 = 3;
const NOT_ITS_DRONE: u8 = 4;
const NO_POLICY: u8 = 5;

/// A drone's query to one KGC. At most 263 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareQuery {
    /// The KGC that is asked.
    pub kgc: KgcId,
    /// True if the statement about the master key is wanted as well.
    pub statement: bool,
    /// The condition whose key share is wanted; `None` for the statement only.
    pub condition: Option<Condition>,
}

impl ShareQuery {
    /// The encoding: version ‖ KGC u16 ‖ statement wanted ‖ lp(condition).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(QUERY_VERSION).u16(self.kgc).u8(u8::from(self.statement));
        writer.lp(self.condition.as_ref().map_or(b"", |condition| condition.as_str().as_bytes()));
        writer.finish()
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`], also for a condition of an unknown kind or in another than its one spelling.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        read_version(&mut reader)?;
        // §4.3: the query names the KGC, so that a signed query is good for no other.
        let kgc = reader.u16()?;
        let statement = read_flag(&mut reader)?;
        let text = reader.lp(MAX_CONDITION_LEN)?;
        reader.end()?;
        let condition = match text {
            [] => None,
            text => Some(read_condition(text)?),
        };
        Ok(Self { kgc, statement, condition })
    }
}

fn read_condition(text: &[u8]) -> Result<Condition, Error> {
    let text = core::str::from_utf8(text).map_err(|_| Error::Malformed("condition"))?;
    // §4.3: a condition in its one spelling, so that no two texts name one key.
    text.parse().map_err(|_| Error::Malformed("condition"))
}

/// A KGC's response. A share is erased when this is dropped, and not printed.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub enum ShareResponse {
    /// The statement was asked for and nothing else.
    Statement,
    /// Share that this KGC has of the condition's key.
    #[debug("Share(version {version})")]
    Share {
        /// The version of the master shares it is made with.
        version: u32,
        /// The encoded share, 98 bytes: the index, and a point of G2 that is not decoded.
        share: Zeroizing<[u8; KeyShare::LEN]>,
    },
    /// The time has not come.
    #[debug("NotYet({at}, now {now})")]
    NotYet {
        /// Time at which it will be met.
        at: UnixTime,
        /// Clock of this KGC.
        now: UnixTime,
    },
    /// No operator has approved it here.
    NotApproved,
    /// The drone that asks is not the one that the condition names.
    NotItsDrone,
    /// No policy of this KGC lets this drone have such keys.
    NoPolicy,
}

impl ShareResponse {
    /// The encoding: version ‖ kind, and for a share its version u32 and 98 bytes, for a condition not met
    /// yet two times u64.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Room for a share beforehand, so that growing leaves no copy of it behind.
        let mut writer = Writer::with_capacity(2 + 4 + KeyShare::LEN);
        writer.u8(QUERY_VERSION);
        match self {
            Self::Statement => writer.u8(STATEMENT),
            Self::Share { version, share } => writer.u8(SHARE).u32(*version).fixed(share.as_slice()),
            Self::NotYet { at, now } => writer.u8(NOT_YET).u64(*at).u64(*now),
            Self::NotApproved => writer.u8(NOT_APPROVED),
            Self::NotItsDrone => writer.u8(NOT_ITS_DRONE),
            Self::NoPolicy => writer.u8(NO_POLICY),
        };
        Zeroizing::new(writer.finish())
    }

    /// Reads the encoding. The share's point is not decoded.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        read_version(&mut reader)?;
        let answer = match reader.u8()? {
            STATEMENT => Self::Statement,
            // §4.3: the point stays encoded: decoding costs, and a share is verified only if the key is
            // wrong.
            SHARE => Self::Share { version: reader.u32()?, share: Zeroizing::new(reader.array()?) },
            NOT_YET => Self::NotYet { at: reader.u64()?, now: reader.u64()? },
            NOT_APPROVED => Self::NotApproved,
            NOT_ITS_DRONE => Self::NotItsDrone,
            NO_POLICY => Self::NoPolicy,
            _ => return Err(Error::Malformed("unknown kind of response")),
        };
        reader.end()?;
        Ok(answer)
    }
}
