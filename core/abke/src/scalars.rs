//! Scalars that are not zero.

use quiver_pairing::{G1_COFACTOR, Scalar, scalar_random};
use rand_core::CryptoRngCore;

/// The scalar, or 1 for zero, which is drawn once in 2²⁵⁵ times; drawing again would hang on a broken
/// generator.
pub(crate) fn nonzero(scalar: Scalar) -> Scalar {
    if scalar == Scalar::from(0_u64) { Scalar::from(1_u64) } else { scalar }
}

/// A random scalar that is not zero.
pub(crate) fn random(mut rng: &mut dyn CryptoRngCore) -> Scalar {
    nonzero(scalar_random(&mut rng))
}

/// A weight of 128 random bits, for [`G1::msm_weighted`](quiver_pairing::G1::msm_weighted).
pub(crate) fn weight(rng: &mut dyn CryptoRngCore) -> [u64; 2] {
    [(); 2].map(|()| rng.next_u64())
}

/// The scalar of a weight: a + b·z², z the absolute value of the curve's parameter, which is one less than
/// the cofactor.
pub(crate) fn weight_scalar([a, b]: &[u64; 2]) -> Scalar {
    let z = Scalar::from(G1_COFACTOR - 1);
    Scalar::from(*a) + Scalar::from(*b) * z * z
}
