//! Statements of the KGC: tagged, and signed under x.
//!
//! ```text
//! message   = lp(suite) ‖ lp(deployment) ‖ lp(purpose) ‖ body
//! challenge = H2(R ‖ P_pub ‖ message)                          FROST's, RFC 9591
//! signature = (R, z) with z·P = R + challenge·P_pub
//! ```
//!
//! With FROST's challenge a quorum of KGCs produces the same signatures as a single one. A partial key is
//! such a signature too, with purpose `identity` over `lp(D) ‖ P_i`: R is its commitment, s its scalar and H0
//! its challenge. That scalar is a secret, so partial keys are made and checked in [`keys`](crate::keys).

use alloc::vec::Vec;

use rand_core::CryptoRngCore;

use crate::schnorr::SchnorrNonce;
use crate::{Deployment, Error, MasterSecret, SchnorrSignature, Suite};

/// Purpose of a statement of the KGC. No statement of one purpose passes for one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A partial key. Never signed as a public statement: its scalar is a drone's secret.
    Identity,
    /// A revocation list.
    Revocation,
    /// The public parameters of other schemes in the deployment.
    Parameters,
    /// An attribute-based key exchange policy.
    AbkePolicy,
    /// The holders of shares of x, and the public parts of these shares.
    Quorum,
}

impl Purpose {
    /// The tag in the signed bytes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Revocation => "revocation",
            Self::Parameters => "parameters",
            Self::AbkePolicy => "abke-policy",
            Self::Quorum => "quorum",
        }
    }

    /// `lp(suite) ‖ lp(deployment) ‖ lp(purpose) ‖ body`, the bytes a KGC, or a quorum of them, signs.
    #[must_use]
    pub fn message<S: Suite>(self, deployment: &Deployment<S>, body: &[u8]) -> Vec<u8> {
        deployment.statement(self.as_str(), body)
    }
}

/// H2(R ‖ P_pub ‖ message).
pub(crate) fn challenge<S: Suite>(
    deployment: &Deployment<S>,
    commitment: &[u8],
    message: &[u8],
) -> S::Scalar {
    // §2.3: computed as FROST(ristretto255) computes it, so that a quorum's signatures look the same.
    S::challenge(&[commitment, deployment.master().as_bytes(), message])
}

/// The KGC's signature on a statement: `S::POINT_LEN + S::SCALAR_LEN` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementSignature<S: Suite>(SchnorrSignature<S>);

impl<S: Suite> MasterSecret<S> {
    /// Signs a statement. `deployment` must be the one of this secret, or the signature is invalid for
    /// everybody.
    pub fn sign(
        &self,
        deployment: &Deployment<S>,
        purpose: Purpose,
        body: &[u8],
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> StatementSignature<S> {
        // §2.3: the KGC builds the tagged bytes itself.
        let message = purpose.message(deployment, body);
        let nonce = SchnorrNonce::hedged(self.scalar(), "statement", &message, rng);
        StatementSignature(nonce.sign(self.scalar(), |r| challenge(deployment, r.as_bytes(), &message)))
    }
}

impl<S: Suite> StatementSignature<S> {
    /// Bytes of the encoding.
    pub const LEN: usize = SchnorrSignature::<S>::LEN;

    /// Takes a signature that was made elsewhere, for instance by a quorum.
    pub const fn new(signature: SchnorrSignature<S>) -> Self {
        Self(signature)
    }

    /// Checks that the KGC of `deployment` made this statement.
    ///
    /// # Errors
    /// [`Error::InvalidSignature`].
    pub fn verify(&self, deployment: &Deployment<S>, purpose: Purpose, body: &[u8]) -> Result<(), Error> {
        let message = purpose.message(deployment, body);
        let challenge = challenge(deployment, self.0.commitment().as_bytes(), &message);
        // z·P = R + challenge·P_pub.
        let expected = *self.0.commitment().point() + deployment.vartime_mul_master(&challenge);
        if S::mul_base(self.0.response()) != expected {
            return Err(Error::InvalidSignature);
        }
        Ok(())
    }

    /// The encoding: R, then z.
    pub fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    /// Reads [`LEN`](Self::LEN) bytes.
    ///
    /// # Errors
    /// As [`SchnorrSignature::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        SchnorrSignature::decode(bytes).map(Self)
    }
}
