//! Errors of sealing and opening envelopes.

use alloc::string::String;

use quiver_crypto::canonical::Malformed;
use thiserror::Error;

use crate::AbeError;

/// Error of sealing or opening an envelope. The variants state the fact; none carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes do not start as an envelope does.
    #[error("not a Quiver envelope")]
    NotAnEnvelope,
    /// The header is not in its canonical form, or a part of it is longer than allowed.
    #[error("the envelope's header is damaged: {0}")]
    Header(#[from] Malformed),
    /// A key's attributes do not fit. Everybody can see that from policy and attributes, so it may be said.
    #[error("policy not satisfied")]
    NotSatisfied,
    /// Parameters and keys are of one scheme, the envelope is of another.
    #[error("the envelope is of scheme `{}`, not of that of these parameters", .0.escape_default())]
    WrongScheme(String),
    /// An error of the scheme.
    #[error(transparent)]
    Scheme(AbeError),
    /// The encapsulated key does not open, or was not made as an honest sender makes it.
    #[error("the envelope does not open: damaged, or not made for this key")]
    DoesNotOpen,
    /// A chunk is not the one that the sender sealed at its place: changed, moved, repeated, or of another
    /// envelope.
    #[error("chunk {0} of the envelope is damaged or out of place")]
    Chunk(u64),
    /// The bytes end before the envelope does.
    #[error("the envelope is truncated")]
    Truncated,
    /// The stream is longer than its counter can number: 2^32 chunks.
    #[error("the envelope is as long as one may be")]
    TooLong,
    /// A chunk to be sealed is empty, or longer than [`CHUNK_LEN`](super::CHUNK_LEN), or follows a short one.
    #[error("chunks are full but for the last")]
    ChunkLength,
    /// The signature is not the sender's, or is missing although a sender is named.
    #[error("the envelope's signature does not verify")]
    WrongSignature,
    /// Another sender than the session's was to sign.
    #[error("not the sender that the envelope names")]
    WrongSigner,
    /// A lifetime is zero or too long, or a sender's key or signature is too long.
    #[error("{0} is not within what an envelope allows")]
    OutOfBounds(&'static str),
    /// A message of this number was taken already.
    #[error("message {0} of this session was read before")]
    Replayed(u32),
    /// A message so far ahead of the last one taken that the keys between them are not derived.
    #[error("message {0} lies too far ahead in its session")]
    TooFarAhead(u32),
    /// The session has carried all its messages, or its time is over.
    #[error("the session is over")]
    SessionOver,
    /// The session was begun too long ago or in the future, by this clock.
    #[error("the envelope was not made within the time in which a session may be followed")]
    Stale,
    /// A message of a session whose opening has not been read.
    #[error("the opening message of this session is not known")]
    UnknownSession,
}

impl From<AbeError> for EnvelopeError {
    fn from(error: AbeError) -> Self {
        match error {
            AbeError::NotSatisfied => Self::NotSatisfied,
            other => Self::Scheme(other),
        }
    }
}
