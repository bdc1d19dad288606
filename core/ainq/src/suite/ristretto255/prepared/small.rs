//! A public point with sums of its multiples, where there is no room for a table.

use curve25519_dalek::RistrettoPoint;

use super::comb::Comb;

/// A point that is prepared.
pub(super) type PreparedPoint = Comb;

/// Prepares a point.
pub(super) fn prepare(point: &RistrettoPoint) -> PreparedPoint {
    Comb::new(point)
}
