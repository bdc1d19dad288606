//! Messages between a drone that has a token and the KGCs of a quorum, after the request (docs/protocol.md §3.6, §3.7,
//! §3.9).
//!
//! | message | from → to | answers | authenticated by |
//! |---|---|---|---|
//! | [`EnrolCommitment`] | KGC → drone | `EnrolRequest` | – (a wrong one makes a key that does not verify); KGCs' statement `quorum` |
//! | [`EnrolSigning`] | drone → KGC | `EnrolCommitment` | – (what comes of it only the drone can open) |
//! | [`EnrolShare`] | KGC → drone | `EnrolSigning` | sealed to the drone; the key verifies or not |
//! | [`EnrolDone`] | drone → KGC | – | signature `enrolled` |
//!
//! Commitments and shares are bytes here: the drone decodes them with the quorum's public shares, the KGC
//! after it found the round that they are for.

use alloc::vec::Vec;

use prost::bytes::Bytes;
use quiver_ainq::enrolment::MAX_KGCS;
use quiver_ainq::{DronePublicKey, KgcId, MAX_QUORUM_STATEMENT_LEN, Serial, Signature, Suite};
use quiver_message::{Extension, ExtensionMessage, Message, MessageError, canonical, field};

/// The types generated from the `.proto` of `quiver-message`, unvalidated.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated from the .proto, which documents it")]
mod wire {
    include!("wire.rs");
}

/// Numbers of the messages among the bodies of `Message`.
const COMMITMENT: u32 = 32;
/// See [`COMMITMENT`].
const SIGNING: u32 = 33;
/// See [`COMMITMENT`].
const SHARE: u32 = 34;
/// See [`COMMITMENT`].
const DONE: u32 = 35;

/// Room in the bounds of contents for keys and lengths of fields, numbers and a digest, in bytes, so that a field which is
/// too long is named.
const SMALL_FIELDS: usize = 128;
/// Bytes of a part of a signing order besides its commitment: keys and lengths of fields, and the KGC.
const MAX_PART_HEAD: usize = 16;

/// True where a KGC is compiled, which alone takes what drones say: boards carry no code for it.
const AT_KGCS: bool = cfg!(feature = "services");

/// Two points of the longest suite, twice over.
const MAX_COMMITMENT_LEN: usize = 192;
const MAX_SHARE_LEN: usize = 512;

/// A message of enrolment with a quorum.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::From)]
pub enum EnrolmentMessage {
    /// A KGC's commitment.
    #[debug("{_0:?}")]
    Commitment(EnrolCommitment),
    /// A drone's order to sign.
    #[debug("{_0:?}")]
    Signing(EnrolSigning),
    /// A KGC's share.
    #[debug("{_0:?}")]
    Share(EnrolShare),
    /// A drone's proof that it holds a key.
    #[debug("{_0:?}")]
    Done(EnrolDone),
}

/// Returns true if this is the number of a message to drones.
pub(crate) const fn is_to_drones(number: u32) -> bool {
    matches!(number, COMMITMENT | SHARE)
}

impl<S: Suite> Extension<S> for EnrolmentMessage {
    const KINDS: &'static [(u32, usize)] = &[
        (COMMITMENT, MAX_COMMITMENT_LEN + MAX_QUORUM_STATEMENT_LEN + SMALL_FIELDS),
        // One more than may be, so that it is the number of parts that is named.
        (SIGNING, (MAX_KGCS + 1) * (MAX_COMMITMENT_LEN + MAX_PART_HEAD) + SMALL_FIELDS),
        (SHARE, MAX_SHARE_LEN + SMALL_FIELDS),
        (DONE, field::MAX_DRONE_LEN + field::MAX_SIGNATURE_LEN + SMALL_FIELDS),
    ];

    fn read(number: u32, content: &Bytes, _: Option<&DronePublicKey<S>>) -> Result<Self, MessageError> {
        match number {
            COMMITMENT => EnrolCommitment::from_wire(canonical(content)?).map(Self::Commitment),
            SIGNING if AT_KGCS => EnrolSigning::from_wire(canonical(content)?).map(Self::Signing),
            SHARE => EnrolShare::from_wire(canonical(content)?).map(Self::Share),
            DONE if AT_KGCS => EnrolDone::from_wire(canonical(content)?).map(Self::Done),
            _ => Err(MessageError::NoBody),
        }
    }

    fn write(&self) -> ExtensionMessage {
        match self {
            Self::Commitment(message) => ExtensionMessage::new(COMMITMENT, &message.to_wire()),
            Self::Signing(message) => ExtensionMessage::new(SIGNING, &message.to_wire()),
            Self::Share(message) => ExtensionMessage::new(SHARE, &message.to_wire()),
            Self::Done(message) => ExtensionMessage::new(DONE, &message.to_wire()),
        }
    }
}

impl<S: Suite> From<EnrolmentMessage> for Message<S> {
    fn from(message: EnrolmentMessage) -> Self {
        Self::Extension(Extension::<S>::write(&message))
    }
}

/// A KGC's commitment to a nonce with which it will sign, once, if the drone returns with a package that has
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolCommitment {
    /// Digest of the request answered.
    pub request_digest: [u8; 32],
    /// The KGC's FROST identifier.
    pub kgc: KgcId,
    /// Commitment: the hiding and the binding point, encoded, at most 192 bytes.
    pub commitment: Vec<u8>,
    /// An encoded [`quiver_ainq::QuorumStatement`] of at most 8192 bytes.
    pub statement: Vec<u8>,
}

/// The KGCs that shall sign, and with which commitments: the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolSigning {
    /// Digest of the request.
    pub request_digest: [u8; 32],
    /// Commitments of 1 to 64 KGCs, ascending.
    pub parts: Vec<(KgcId, Vec<u8>)>,
}

/// A KGC's share of the partial key, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolShare {
    /// Digest of the signing package: message, version of the shares, commitments.
    pub package_digest: [u8; 32],
    /// An encoded [`quiver_ainq::SealedShare`] of at most 512 bytes.
    pub share: Vec<u8>,
}

/// The drone holds a key: no more shares are made for its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnrolDone {
    /// The drone's public key, encoded; at most 2048 bytes.
    pub drone: Vec<u8>,
    /// Signature `enrolled` over the drone's serial, encoded.
    pub signature: Vec<u8>,
}

fn kgc(number: u32) -> Result<KgcId, MessageError> {
    KgcId::try_from(number).ok().filter(|id| *id != 0).ok_or(MessageError::Invalid("kgc"))
}

fn commitment(bytes: Vec<u8>) -> Result<Vec<u8>, MessageError> {
    field::bounded("commitment", bytes, MAX_COMMITMENT_LEN)
}

impl EnrolCommitment {
    fn from_wire(wire: wire::EnrolCommitment) -> Result<Self, MessageError> {
        Ok(Self {
            request_digest: field::array("request_digest", &wire.request_digest)?,
            kgc: kgc(wire.kgc)?,
            commitment: commitment(wire.commitment)?,
            statement: field::bounded("statement", wire.statement, MAX_QUORUM_STATEMENT_LEN)?,
        })
    }

    fn to_wire(&self) -> wire::EnrolCommitment {
        wire::EnrolCommitment {
            request_digest: self.request_digest.to_vec(),
            kgc: self.kgc.into(),
            commitment: self.commitment.clone(),
            statement: self.statement.clone(),
        }
    }
}

impl EnrolSigning {
    fn from_wire(wire: wire::EnrolSigning) -> Result<Self, MessageError> {
        // §5.1: n ≤ 64.
        if wire.parts.is_empty() || wire.parts.len() > MAX_KGCS {
            return Err(MessageError::Invalid("parts"));
        }
        let parts = wire.parts.into_iter().map(|part| Ok((kgc(part.kgc)?, commitment(part.commitment)?)));
        let parts = parts.collect::<Result<Vec<_>, MessageError>>()?;
        // §3.6: ascending, so that one set of commitments has one digest.
        if !parts.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(MessageError::Invalid("parts"));
        }
        Ok(Self { request_digest: field::array("request_digest", &wire.request_digest)?, parts })
    }

    fn to_wire(&self) -> wire::EnrolSigning {
        let part = |(kgc, commitment): &(KgcId, Vec<u8>)| wire::EnrolPart {
            kgc: (*kgc).into(),
            commitment: commitment.clone(),
        };
        wire::EnrolSigning {
            request_digest: self.request_digest.to_vec(),
            parts: self.parts.iter().map(part).collect(),
        }
    }
}

impl EnrolShare {
    fn from_wire(wire: wire::EnrolShare) -> Result<Self, MessageError> {
        Ok(Self {
            package_digest: field::array("package_digest", &wire.package_digest)?,
            share: field::bounded("share", wire.share, MAX_SHARE_LEN)?,
        })
    }

    fn to_wire(&self) -> wire::EnrolShare {
        wire::EnrolShare { package_digest: self.package_digest.to_vec(), share: self.share.clone() }
    }
}

impl EnrolDone {
    /// The serial that the key claims, without decoding the key: it opens lp(D), and D opens with it.
    #[must_use]
    pub fn serial(&self) -> Option<Serial> {
        self.drone.get(4..)?.first_chunk().copied()
    }

    /// Decodes the drone's key and its signature.
    ///
    /// # Errors
    /// With the name of the malformed field.
    pub fn decode<S: Suite>(&self) -> Result<(DronePublicKey<S>, Signature<S>), MessageError> {
        Ok((field::drone("drone", &self.drone)?, field::signature("signature", &self.signature)?))
    }

    fn from_wire(wire: wire::EnrolDone) -> Result<Self, MessageError> {
        Ok(Self {
            // §3.9: not decoded before the token is known to be open.
            drone: field::undecoded_drone("drone", wire.drone)?,
            signature: field::bounded("signature", wire.signature, field::MAX_SIGNATURE_LEN)?,
        })
    }

    fn to_wire(&self) -> wire::EnrolDone {
        wire::EnrolDone { drone: self.drone.clone(), signature: self.signature.clone() }
    }
}
