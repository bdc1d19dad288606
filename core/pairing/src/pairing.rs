//! The optimal ate pairing e: G1 × G2 → Gt.

use crate::backend::{Active, Backend};
use crate::{G1, G2, Group, Gt};

/// e(p, q). The identity if either is.
#[must_use]
pub fn pairing(p: &G1, q: &G2) -> Gt {
    pairing_product(&[(*p, *q)])
}

/// Σ e(p, q), the sum (in the literature the product) of the pairings of all pairs: one Miller loop for all
/// of them, one final exponentiation, and two inversions to normalise all points.
///
/// Nothing paired gives the identity, and so does a pair with an identity in it.
#[must_use]
pub fn pairing_product(pairs: &[(G1, G2)]) -> Gt {
    Active::pairing_product(pairs)
}

/// Returns true if the pairings of all pairs cancel out: Σ e(p, q) is the identity (in the literature, the
/// product is one).
#[must_use]
pub fn product_is_one(pairs: &[(G1, G2)]) -> bool {
    pairing_product(pairs).is_identity()
}
