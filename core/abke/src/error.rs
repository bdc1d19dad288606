//! Errors of decoding, verification and the exchange. For one's own log: the other side learns [`ExchangeRefused`] at
//! most.

use quiver_crypto::canonical::Malformed;
use quiver_pairing::PairingError;
use thiserror::Error;

use crate::MAX_ATTRIBUTES;

/// Error of the attribute-based key exchange. The variants state the fact; none carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// No attributes, or more than [`MAX_ATTRIBUTES`].
    #[error("{0} attributes; 1 to {MAX_ATTRIBUTES} are possible")]
    AttributeCount(usize),
    /// A credential, a key or a circuit for another number of attributes than the authority's.
    #[error("{found} attributes where there are {wanted}")]
    Attributes {
        /// The required number.
        wanted: usize,
        /// The actual number.
        found: usize,
    },
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Bytes do not encode what they have to, in the place named.
    #[error("{element}: {reason}")]
    InvalidPoint {
        /// The point.
        element: PointLabel,
        /// The mistake.
        reason: PairingError,
    },
    /// Bytes are not the encoding of a scalar from 1 to r − 1.
    #[error("not a scalar other than zero")]
    InvalidScalar,
    /// A key or credential of another authority or another period.
    #[error("of another authority or another period")]
    OtherAuthority,
    /// The authority did not sign this key.
    #[error("the authority did not sign this key, or not in these slots")]
    InvalidSignature,
    /// A credential's secret does not belong to its key.
    #[error("the secret of attribute {0} does not belong to the credential's key")]
    InvalidSecret(usize),
    /// A policy circuit that has not exactly one output.
    #[error("a policy has one output, not {0}")]
    Outputs(usize),
    /// A message of another kind, length or step than the one that comes next.
    #[error("not the message that comes next: {0}")]
    Unexpected(&'static str),
    /// The server's signature on the context does not verify.
    #[error("the server did not sign this context")]
    InvalidContext,
    /// The server's messages do not follow from its seeds.
    #[error("the server cheated: {0}")]
    Cheated(Deviation),
    /// The opened commitment is not the one that was sent.
    #[error("the opening does not belong to the commitment")]
    InvalidOpening,
    /// The client's attributes do not satisfy the policy, or it was not their label that was committed to.
    #[error("the policy is not satisfied")]
    Unsatisfied,
    /// The other side does not have the same key and transcript.
    #[error("the key is not confirmed")]
    Unconfirmed,
    /// Garbling or evaluating failed.
    #[error(transparent)]
    Garble(#[from] quiver_garble::Error),
}

/// A point of a message or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PointLabel {
    /// g, h, u or e_j: the first three places, then one for each attribute.
    #[error("point {0} of the public key")]
    Key(usize),
    /// A signature, in the same order.
    #[error("signature {0} of the public key")]
    Signature(usize),
    /// The sum of u and e_j.
    #[error("what is signed for attribute {0}")]
    Signed(usize),
    /// s·g, t·h, then both halves for each attribute.
    #[error("point {0} of the ciphertext")]
    Ciphertext(usize),
    /// A slot key of the authority.
    #[error("slot key {0} of the authority")]
    Slot(usize),
    /// An ephemeral Diffie-Hellman point.
    #[error("the ephemeral key")]
    Ephemeral,
}

/// A message of the server that does not follow from the seeds it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Deviation {
    /// s·g, t·h, or a half of a slot.
    #[error("the ciphertext does not follow from its seed")]
    Ciphertext,
    /// A masked label.
    #[error("the masked labels do not follow from the seeds")]
    Labels,
    /// The garbled circuit, or the label of 1.
    #[error("the garbled circuit does not follow from its seed")]
    Circuit,
    /// A label of the client's own, which all of the above imply.
    #[error("the client's own labels are not the derived ones")]
    OwnLabels,
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error.0)
    }
}

impl Error {
    /// The reason for the other side of this, or of any other error: nothing.
    #[must_use]
    pub fn refused(&self) -> ExchangeRefused {
        ExchangeRefused
    }
}

/// The exchange failed. There is no key, and no reason that the other side would get to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("refused")]
pub struct ExchangeRefused;
