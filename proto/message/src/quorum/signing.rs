//! Signing of statements by a quorum.

use alloc::string::String;
use alloc::vec::Vec;

use quiver_ainq::{KgcId, Name};

use super::{MAX_MEMBERS, kgc};
use crate::{MAX_MESSAGE_LEN, MessageError, field, wire};

/// Bytes the body of a statement may have, so that every message about it fits.
pub const MAX_BODY_LEN: usize = MAX_MESSAGE_LEN - 4096;
/// Bytes a statement's signature may have: 80 with BLS12-381.
pub const MAX_STATEMENT_SIGNATURE_LEN: usize = 128;
/// Bytes a signer's commitment, or its share of a signature, may have: two points of 48 bytes, with room for
/// framing.
const MAX_PART_LEN: usize = 128;

/// Names one attempt to sign one statement.
pub type SigningSession = [u8; 16];

/// Coordinator to all: who would sign this?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignProposal {
    /// Fresh for every attempt.
    pub session: SigningSession,
    /// Version of the shares to sign with.
    pub version: u32,
    /// The purpose's tag, as [`Purpose::as_str`](quiver_ainq::Purpose::as_str) has it.
    pub purpose: Name,
    /// Body of at most [`MAX_BODY_LEN`] bytes.
    pub body: Vec<u8>,
}

/// A signer would sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignCommitment {
    /// The attempt.
    pub session: SigningSession,
    /// Commitment to nonces that are used for nothing else; at most 128 bytes.
    pub commitment: Vec<u8>,
}

/// Package of the coordinator to the signers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignPackage {
    /// The attempt.
    pub session: SigningSession,
    /// Commitments of all signers; ascending, none twice, at least two.
    pub commitments: Vec<SignerCommitment>,
}

/// A signer's commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignerCommitment {
    /// The signer.
    pub kgc: KgcId,
    /// Commitment of at most 128 bytes.
    pub commitment: Vec<u8>,
}

/// A signer's share of the signature. Statements are public, so it need not be kept secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignShare {
    /// The attempt.
    pub session: SigningSession,
    /// Share of at most 128 bytes.
    pub share: Vec<u8>,
}

/// Reason why a signer does not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum SignRefusalReason {
    /// It holds shares of another version.
    #[error("it holds shares of another version")]
    Version,
    /// Its operator has not asked for this.
    #[error("its operator has not asked for this")]
    NotApproved,
    /// It has signed a list of this number or a higher one, or the list lacks an entry that it signed before.
    #[error("it has signed another list of this number or a later one")]
    Superseded,
    /// Not due, or with times that its clock does not confirm.
    #[error("it is not due, or its times differ from the signer's clock")]
    Times,
    /// Content that its own state does not confirm.
    #[error("it is not what the signer's own state says")]
    Content,
    /// It does not know the session, for instance since a restart.
    #[error("the signer does not know the session")]
    UnknownSession,
    /// It takes part in as many sessions as it may.
    #[error("the signer is busy")]
    Busy,
}

/// The reasons beside their numbers on the wire: one list for both directions.
const REASONS: [(SignRefusalReason, wire::sign_refusal::Reason); 7] = [
    (SignRefusalReason::Version, wire::sign_refusal::Reason::Version),
    (SignRefusalReason::NotApproved, wire::sign_refusal::Reason::NotApproved),
    (SignRefusalReason::Superseded, wire::sign_refusal::Reason::Superseded),
    (SignRefusalReason::Times, wire::sign_refusal::Reason::Times),
    (SignRefusalReason::Content, wire::sign_refusal::Reason::Content),
    (SignRefusalReason::UnknownSession, wire::sign_refusal::Reason::UnknownSession),
    (SignRefusalReason::Busy, wire::sign_refusal::Reason::Busy),
];

/// A signer does not sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignRefusal {
    /// The attempt.
    pub session: SigningSession,
    /// Reason.
    pub reason: SignRefusalReason,
    /// Highest number signed for, with [`SignRefusalReason::Superseded`]. Otherwise 0.
    pub number: u64,
}

/// Statement that the quorum has signed, to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedStatement {
    /// The purpose's tag.
    pub purpose: Name,
    /// Body of at most [`MAX_BODY_LEN`] bytes.
    pub body: Vec<u8>,
    /// An encoded [`StatementSignature`](quiver_ainq::StatementSignature) of at most
    /// [`MAX_STATEMENT_SIGNATURE_LEN`] bytes.
    pub signature: Vec<u8>,
}

/// Proof to all that a drone signed two headers for one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumProof {
    /// An encoded [`Message::EquivocationProof`](crate::Message::EquivocationProof) of at most
    /// [`MAX_BODY_LEN`] bytes.
    pub proof: Vec<u8>,
}

impl SignProposal {
    pub(super) fn from_wire(wire: wire::SignProposal) -> Result<Self, MessageError> {
        Ok(Self {
            session: field::array("session", &wire.session)?,
            version: wire.version,
            purpose: field::name("purpose", &wire.purpose)?,
            body: field::at_most("body", wire.body, MAX_BODY_LEN)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::SignProposal {
        wire::SignProposal {
            session: self.session.to_vec(),
            version: self.version,
            purpose: String::from(self.purpose.as_str()),
            body: self.body.clone(),
        }
    }
}

impl SignCommitment {
    pub(super) fn from_wire(wire: wire::SignCommitment) -> Result<Self, MessageError> {
        Ok(Self {
            session: field::array("session", &wire.session)?,
            commitment: field::bounded("commitment", wire.commitment, MAX_PART_LEN)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::SignCommitment {
        wire::SignCommitment { session: self.session.to_vec(), commitment: self.commitment.clone() }
    }
}

impl SignPackage {
    pub(super) fn from_wire(wire: wire::SignPackage) -> Result<Self, MessageError> {
        // §5.1: 2 ≤ t ≤ n ≤ 64.
        if !(2..=MAX_MEMBERS).contains(&wire.commitments.len()) {
            return Err(MessageError::Invalid("commitments"));
        }
        let one = |wire: wire::SignerCommitment| {
            let commitment = field::bounded("commitments", wire.commitment, MAX_PART_LEN)?;
            Ok(SignerCommitment { kgc: kgc("commitments", wire.kgc)?, commitment })
        };
        let commitments = wire.commitments.into_iter().map(one).collect::<Result<Vec<_>, MessageError>>()?;
        if !commitments.is_sorted_by(|a, b| a.kgc < b.kgc) {
            return Err(MessageError::Invalid("commitments"));
        }
        Ok(Self { session: field::array("session", &wire.session)?, commitments })
    }

    pub(super) fn to_wire(&self) -> wire::SignPackage {
        let one = |one: &SignerCommitment| wire::SignerCommitment {
            kgc: one.kgc.into(),
            commitment: one.commitment.clone(),
        };
        wire::SignPackage {
            session: self.session.to_vec(),
            commitments: self.commitments.iter().map(one).collect(),
        }
    }
}

impl SignShare {
    pub(super) fn from_wire(wire: wire::SignShare) -> Result<Self, MessageError> {
        Ok(Self {
            session: field::array("session", &wire.session)?,
            share: field::bounded("share", wire.share, MAX_PART_LEN)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::SignShare {
        wire::SignShare { session: self.session.to_vec(), share: self.share.clone() }
    }
}

impl SignRefusal {
    pub(super) fn from_wire(wire: &wire::SignRefusal) -> Result<Self, MessageError> {
        let reason = REASONS.iter().find(|(_, number)| *number as i32 == wire.reason);
        let reason = reason.map(|(reason, _)| *reason).ok_or(MessageError::Invalid("reason"))?;
        if wire.number > 0 && reason != SignRefusalReason::Superseded {
            return Err(MessageError::Invalid("number"));
        }
        Ok(Self { session: field::array("session", &wire.session)?, reason, number: wire.number })
    }

    pub(super) fn to_wire(&self) -> wire::SignRefusal {
        let number = REASONS.iter().find(|(reason, _)| *reason == self.reason).map_or(0, |(_, n)| *n as i32);
        wire::SignRefusal { session: self.session.to_vec(), reason: number, number: self.number }
    }
}

impl SignedStatement {
    pub(super) fn from_wire(wire: wire::SignedStatement) -> Result<Self, MessageError> {
        Ok(Self {
            purpose: field::name("purpose", &wire.purpose)?,
            body: field::at_most("body", wire.body, MAX_BODY_LEN)?,
            signature: field::bounded("signature", wire.signature, MAX_STATEMENT_SIGNATURE_LEN)?,
        })
    }

    pub(super) fn to_wire(&self) -> wire::SignedStatement {
        wire::SignedStatement {
            purpose: String::from(self.purpose.as_str()),
            body: self.body.clone(),
            signature: self.signature.clone(),
        }
    }
}

impl QuorumProof {
    pub(super) fn from_wire(wire: wire::QuorumProof) -> Result<Self, MessageError> {
        Ok(Self { proof: field::bounded("proof", wire.proof, MAX_BODY_LEN)? })
    }

    pub(super) fn to_wire(&self) -> wire::QuorumProof {
        wire::QuorumProof { proof: self.proof.clone() }
    }
}
