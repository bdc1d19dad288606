//! A public point with a table of its multiples, made when it pays off.

extern crate std;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::ristretto::RistrettoBasepointTable;
use curve25519_dalek::scalar::Scalar;

/// Multiplications after which the table, which costs 1 ms and 30 KiB, begins to pay: it saves some 20 µs on
/// each.
const WORTH_A_TABLE: usize = 50;

/// A point, and its table once it has been multiplied often: a leader checks thousands of keys against the
/// master public key, a drone a handful.
pub struct TabledPoint {
    point: RistrettoPoint,
    uses: AtomicUsize,
    table: OnceLock<RistrettoBasepointTable>,
}

/// A point that is prepared, for all who hold it.
pub(super) type PreparedPoint = Arc<TabledPoint>;

/// Prepares a point.
pub(super) fn prepare(point: &RistrettoPoint) -> PreparedPoint {
    Arc::new(TabledPoint::new(*point))
}

impl TabledPoint {
    const fn new(point: RistrettoPoint) -> Self {
        Self { point, uses: AtomicUsize::new(0), table: OnceLock::new() }
    }

    pub(super) const fn point(&self) -> &RistrettoPoint {
        &self.point
    }

    pub(super) fn vartime_mul(&self, scalar: &Scalar) -> RistrettoPoint {
        if let Some(table) = self.table.get() {
            return scalar * table;
        }
        if self.uses.fetch_add(1, Ordering::Relaxed) < WORTH_A_TABLE {
            return RistrettoPoint::vartime_double_scalar_mul_basepoint(scalar, self.point(), &Scalar::ZERO);
        }
        scalar * self.table.get_or_init(|| RistrettoBasepointTable::create(&self.point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_the_same_before_and_after_the_table() {
        let point = RistrettoPoint::mul_base(&Scalar::from(7_u8));
        let prepared = TabledPoint::new(point);
        for scalar in 0..2 * WORTH_A_TABLE as u64 {
            let scalar = Scalar::from(scalar * 0x0123_4567_89ab);
            assert_eq!(prepared.vartime_mul(&scalar), scalar * point);
        }
        assert!(prepared.table.get().is_some());
    }
}
