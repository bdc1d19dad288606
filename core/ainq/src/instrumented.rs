//! A suite that counts the scalar multiplications and the decoded points of the calling thread, with the keys
//! and bytes of the suite inside it. For tests that hold the protocol to the number of multiplications the
//! paper promises.

extern crate std;

use alloc::vec::Vec;
use core::cell::Cell;
use core::marker::PhantomData;

use quiver_crypto::Zeroizing;

use crate::{AgreedSecret, Element, Error, Suite};

std::thread_local! {
    static MULTIPLICATIONS: Cell<u64> = const { Cell::new(0) };
    static DECODINGS: Cell<u64> = const { Cell::new(0) };
}

/// Multiplications of a point by a scalar that this thread asked for since the last [`reset`].
///
/// A fixed or a variable base counts one, a product of n terms n, a pairwise secret one, a batch of them one
/// per point.
#[must_use]
pub fn multiplications() -> u64 {
    MULTIPLICATIONS.get()
}

/// Points that this thread had decoded since the last [`reset`]: a square root each.
#[must_use]
pub fn decodings() -> u64 {
    DECODINGS.get()
}

/// Starts counting from zero, in this thread.
pub fn reset() {
    MULTIPLICATIONS.set(0);
    DECODINGS.set(0);
}

fn count(multiplications: usize) {
    MULTIPLICATIONS.set(MULTIPLICATIONS.get().saturating_add(multiplications as u64));
}

/// The suite `S`, counted. It has the ID of `S`, so its bytes are those of `S`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counting<S>(PhantomData<S>);

impl<S: Suite> Suite for Counting<S> {
    const ID: &'static str = S::ID;
    const POINT_LEN: usize = S::POINT_LEN;
    const SCALAR_LEN: usize = S::SCALAR_LEN;
    const SECRET_LEN: usize = S::SECRET_LEN;

    type Scalar = S::Scalar;
    type Point = S::Point;
    type Encoding = S::Encoding;
    type Prepared = S::Prepared;

    fn mul_base(scalar: &S::Scalar) -> S::Point {
        count(1);
        S::mul_base(scalar)
    }

    fn mul(scalar: &S::Scalar, point: &S::Point) -> S::Point {
        count(1);
        S::mul(scalar, point)
    }

    fn encode(point: &S::Point) -> S::Encoding {
        S::encode(point)
    }

    fn decode(bytes: &[u8]) -> Option<S::Point> {
        DECODINGS.set(DECODINGS.get().saturating_add(1));
        S::decode(bytes)
    }

    fn is_identity(point: &S::Point) -> bool {
        S::is_identity(point)
    }

    fn prepare(point: &S::Point) -> S::Prepared {
        S::prepare(point)
    }

    fn vartime_mul_prepared(scalar: &S::Scalar, point: &S::Prepared) -> S::Point {
        count(1);
        S::vartime_mul_prepared(scalar, point)
    }

    fn vartime_mul_with_base(a: &S::Scalar, point: &S::Point, b: &S::Scalar) -> S::Point {
        count(2);
        S::vartime_mul_with_base(a, point, b)
    }

    fn vartime_multiscalar(scalars: &[S::Scalar], points: &[S::Point]) -> S::Point {
        count(points.len());
        S::vartime_multiscalar(scalars, points)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> S::Scalar {
        S::scalar_from_wide(bytes)
    }

    fn scalar_from_u128(value: u128) -> S::Scalar {
        S::scalar_from_u128(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<S::Scalar> {
        S::scalar_decode(bytes)
    }

    fn scalar_encode(scalar: &S::Scalar) -> Zeroizing<[u8; 32]> {
        S::scalar_encode(scalar)
    }

    fn scalar_is_zero(scalar: &S::Scalar) -> bool {
        S::scalar_is_zero(scalar)
    }

    fn challenge(parts: &[&[u8]]) -> S::Scalar {
        S::challenge(parts)
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> S::Scalar {
        S::hash_to_scalar(domain, parts)
    }

    fn secret_scalar_ok(scalar: &S::Scalar) -> bool {
        S::secret_scalar_ok(scalar)
    }

    fn agree(k: &S::Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        count(1);
        S::agree(k, &Element::from_parts(*q.point(), *q.encoding()))
    }

    fn agree_many(k: &S::Scalar, qs: &[S::Point]) -> Vec<Result<AgreedSecret, Error>> {
        count(qs.len());
        S::agree_many(k, qs)
    }
}
