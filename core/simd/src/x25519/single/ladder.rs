//! The ladder of curve25519-dalek.

use curve25519_dalek::montgomery::MontgomeryPoint;

/// Multiplies a point, by its u-coordinate, with a clamped scalar.
#[inline]
pub(super) fn multiply(clamped: [u8; 32], u: [u8; 32]) -> [u8; 32] {
    MontgomeryPoint(u).mul_clamped(clamped).to_bytes()
}
