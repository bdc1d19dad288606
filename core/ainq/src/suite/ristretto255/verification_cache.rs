//! A cache of verifications, for simulations in which thousands of drones check the very same bytes.
//!
//! When a leader signs a header, every drone of the group checks the same signature by the same key; in one
//! process that is the same computation over and over. While a [`CacheScope`] is on, its thread remembers the
//! last results of operations on **public** data (decoding points, the two products of a signature check) and
//! looks them up if exactly the same inputs come again. Nothing else changes: same ID, same encodings, same
//! outcomes, so one seed gives the same trace with and without. Figures of a drone's own computing time do
//! not come out of such a run.

extern crate std;

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::marker::PhantomData;

use curve25519_dalek::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;

use super::prepared::TabledPoint;

/// Results remembered per thread and operation.
const PLACES: usize = 1 << 10;

std::thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(false) };
    static DECODED: RefCell<Memo<[u8; 32], Option<RistrettoPoint>>> = const { RefCell::new(Memo::new()) };
    static PRODUCTS: RefCell<Memo<(Scalar, RistrettoPoint), RistrettoPoint>> =
        const { RefCell::new(Memo::new()) };
    static SUMS: RefCell<Memo<(Scalar, RistrettoPoint, Scalar), RistrettoPoint>> =
        const { RefCell::new(Memo::new()) };
}

/// Switches the cache of this thread on or off for as long as it lives, then back to what it was.
///
/// Only this thread is concerned: computations of others, and of this one after the scope, are unaffected.
#[derive(Debug)]
#[must_use = "the switch goes back when this is dropped"]
pub struct CacheScope {
    before: bool,
    /// Must be dropped where it was made.
    on_this_thread: PhantomData<*const ()>,
}

impl CacheScope {
    /// Switches the cache of this thread on or off.
    pub fn new(enabled: bool) -> Self {
        Self { before: ENABLED.replace(enabled), on_this_thread: PhantomData }
    }
}

impl Drop for CacheScope {
    fn drop(&mut self) {
        ENABLED.set(self.before);
    }
}

/// The last results of one operation, by a hash of its inputs.
struct Memo<K, V>(Vec<Option<(K, V)>>);

impl<K: PartialEq, V: Copy> Memo<K, V> {
    const fn new() -> Self {
        Self(Vec::new())
    }

    /// The cached result for `key`, or a new one.
    fn recall(&mut self, hash: u64, key: K, compute: impl FnOnce(&K) -> V) -> V {
        if self.0.is_empty() {
            self.0.resize_with(PLACES, || None);
        }
        let place = usize::try_from(hash).unwrap_or(usize::MAX) % PLACES;
        let Some(place) = self.0.get_mut(place) else { return compute(&key) };
        match place {
            Some((known, value)) if *known == key => *value,
            _ => {
                let value = compute(&key);
                *place = Some((key, value));
                value
            }
        }
    }
}

/// Encodings, and scalars of signature checks, are as good as hashes already.
fn hash(bytes: &[u8; 32]) -> u64 {
    bytes.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The point that these bytes encode.
pub(super) fn decode(
    bytes: &[u8; 32],
    compute: impl FnOnce(&[u8; 32]) -> Option<RistrettoPoint>,
) -> Option<RistrettoPoint> {
    if !ENABLED.get() {
        return compute(bytes);
    }
    DECODED.with_borrow_mut(|memo| memo.recall(hash(bytes), *bytes, compute))
}

/// scalar · point.
pub(super) fn product(
    scalar: &Scalar,
    prepared: &TabledPoint,
    compute: impl FnOnce() -> RistrettoPoint,
) -> RistrettoPoint {
    if !ENABLED.get() {
        return compute();
    }
    let point = prepared.point();
    PRODUCTS.with_borrow_mut(|memo| memo.recall(hash(&scalar.to_bytes()), (*scalar, *point), |_| compute()))
}

/// a · point + b · P.
pub(super) fn sum(
    (a, point, b): (&Scalar, &RistrettoPoint, &Scalar),
    compute: impl FnOnce() -> RistrettoPoint,
) -> RistrettoPoint {
    if !ENABLED.get() {
        return compute();
    }
    SUMS.with_borrow_mut(|memo| memo.recall(hash(&a.to_bytes()), (*a, *point, *b), |_| compute()))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::suite::ristretto255::prepared::prepare;

    /// Returns true if the second of two equal products was computed.
    fn computed_twice(scalar: u64) -> bool {
        let (scalar, point) = (Scalar::from(scalar), RistrettoPoint::mul_base(&Scalar::from(3_u8)));
        let prepared = prepare(&point);
        let first = product(&scalar, &prepared, || scalar * point);
        let mut again = false;
        let second = product(&scalar, &prepared, || {
            again = true;
            scalar * point
        });
        assert_eq!((first, second), (scalar * point, scalar * point));
        again
    }

    #[test]
    fn results_are_remembered_within_a_scope_alone_and_on_its_thread_alone() {
        assert!(computed_twice(1 << 40), "nothing is switched on");
        let on = CacheScope::new(true);
        assert!(!computed_twice(1 << 41));
        assert!(thread::spawn(|| computed_twice(1 << 42)).join().expect("no panic"));
        {
            let _off = CacheScope::new(false);
            assert!(computed_twice(1 << 43), "a scope within a scope");
        }
        assert!(!computed_twice(1 << 44), "back to what it was");
        drop(on);
        assert!(computed_twice(1 << 45));
    }

    #[test]
    fn inputs_that_share_a_place_are_told_apart() {
        let _on = CacheScope::new(true);
        let point = RistrettoPoint::mul_base(&Scalar::from(5_u8));
        let (one, other) = (Scalar::from(7_u64), Scalar::from(7 + PLACES as u64));
        for scalar in [one, other, one] {
            assert_eq!(product(&scalar, &prepare(&point), || scalar * point), scalar * point);
            let sum_of = |b: Scalar| scalar * point + RistrettoPoint::mul_base(&b);
            for b in [one, other] {
                assert_eq!(sum((&scalar, &point, &b), || sum_of(b)), sum_of(b));
            }
        }
        let mut wrong = point.compress().to_bytes();
        wrong[31] ^= 0x80;
        for bytes in [point.compress().to_bytes(), wrong, point.compress().to_bytes()] {
            let decompress =
                |bytes: &[u8; 32]| curve25519_dalek::ristretto::CompressedRistretto(*bytes).decompress();
            assert_eq!(decode(&bytes, decompress), decompress(&bytes));
        }
    }
}
