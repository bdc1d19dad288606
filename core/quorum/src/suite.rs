//! The suites of a quorum: AinQ's groups as FROST's ciphersuites.
//!
//! | suite | ciphersuite |
//! |---|---|
//! | [`Ristretto255`] | FROST(ristretto255, SHA-512) of RFC 9591, by the crate `frost-ristretto255` |
//! | `Bls12381G1` | [`bls12381::Bls12381G1Sha256`], over `quiver-pairing`; the master key of identity-based encryption |
//! | any other | [`generic::Over`], which costs an implementor one line |

use quiver_ainq::{Element, Ristretto255, Suite};

use crate::Error;

#[cfg(feature = "bls12-381")]
pub mod bls12381;
pub mod generic;

/// Bytes of an encoded scalar, in every suite.
pub const SCALAR_LEN: usize = quiver_ainq::suite::SCALAR_LEN;

/// A suite of AinQ with the FROST ciphersuite over the same group.
///
/// The two must agree: scalars and points have the same encodings in both, and FROST's challenge is
/// [`Suite::challenge`]. Everything crosses between them as bytes. A suite for simulations is done with
/// `type Frost = generic::Over<Self>`.
pub trait QuorumSuite: Suite {
    /// FROST's view of the group.
    type Frost: frost_core::Ciphersuite;
}

impl QuorumSuite for Ristretto255 {
    type Frost = frost_ristretto255::Ristretto255Sha512;
}

/// A KGC's identifier as FROST's, the scalar of the same value.
pub(crate) fn identifier<S: QuorumSuite>(
    kgc: quiver_ainq::KgcId,
) -> Result<frost_core::Identifier<S::Frost>, Error> {
    frost_core::Identifier::try_from(kgc).map_err(|_| Error::UnknownKgc(kgc))
}

/// A point that FROST gave as bytes.
pub(crate) fn element<S: Suite>(bytes: &[u8]) -> Result<Element<S>, Error> {
    Element::decode(bytes).map_err(|_| Error::InvalidPoint)
}

/// Returns true if bytes are the canonical encoding of a scalar.
pub(crate) fn is_scalar<S: Suite>(bytes: &[u8]) -> bool {
    S::scalar_decode(bytes).map(quiver_crypto::Zeroizing::new).is_some()
}
