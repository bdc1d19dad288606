//! `strict-paper`: the keying as published, for experiments that compare with the paper. **Insecure on purpose.**
//!
//! A suite of its own around another one, with its own ID, so that nothing made under it means anything elsewhere. Under
//! it T = l·Y as if E were 0, so a stolen y opens what was recorded; chains are not stepped, so a captured drone opens
//! earlier epochs; and one l serves a whole term. Headers are signed all the same, and one-time points are exchanged and
//! hashed, but add nothing to T.

use alloc::vec::Vec;
use core::marker::PhantomData;

use quiver_crypto::Zeroizing;

use crate::{AgreedSecret, Element, Error, Suite};

const SUFFIX: &str = "-strict-paper";

/// The longest ID there is room for.
const MAX_ID_LEN: usize = 96;

/// The suite `S`, keyed as in the paper. For experiments only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrictPaper<S>(PhantomData<S>);

impl<S: Suite> StrictPaper<S> {
    const ID_BYTES: &'static [u8; MAX_ID_LEN] = &joined(S::ID, SUFFIX);

    const fn id() -> &'static str {
        let (id, _) = Self::ID_BYTES.split_at(S::ID.len() + SUFFIX.len());
        match core::str::from_utf8(id) {
            Ok(id) => id,
            // Two strings one after the other are a string.
            Err(_) => SUFFIX,
        }
    }
}

/// `a ‖ b`, and zeros after them. Runs in the compiler, which reports an ID that is too long.
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn joined(a: &str, b: &str) -> [u8; MAX_ID_LEN] {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut bytes = [0; MAX_ID_LEN];
    let mut i = 0;
    while i < a.len() {
        bytes[i] = a[i];
        i += 1;
    }
    while i < a.len() + b.len() {
        bytes[i] = b[i - a.len()];
        i += 1;
    }
    bytes
}

impl<S: Suite> Suite for StrictPaper<S> {
    const ID: &'static str = Self::id();
    const POINT_LEN: usize = S::POINT_LEN;
    const SCALAR_LEN: usize = S::SCALAR_LEN;
    const SECRET_LEN: usize = S::SECRET_LEN;
    const STRICT_PAPER: bool = true;

    type Scalar = S::Scalar;
    type Point = S::Point;
    type Encoding = S::Encoding;
    type Prepared = S::Prepared;

    fn mul_base(scalar: &S::Scalar) -> S::Point {
        S::mul_base(scalar)
    }

    fn mul(scalar: &S::Scalar, point: &S::Point) -> S::Point {
        S::mul(scalar, point)
    }

    fn encode(point: &S::Point) -> S::Encoding {
        S::encode(point)
    }

    fn decode(bytes: &[u8]) -> Option<S::Point> {
        S::decode(bytes)
    }

    fn is_identity(point: &S::Point) -> bool {
        S::is_identity(point)
    }

    fn prepare(point: &S::Point) -> S::Prepared {
        S::prepare(point)
    }

    fn vartime_mul_prepared(scalar: &S::Scalar, point: &S::Prepared) -> S::Point {
        S::vartime_mul_prepared(scalar, point)
    }

    fn vartime_mul_with_base(a: &S::Scalar, point: &S::Point, b: &S::Scalar) -> S::Point {
        S::vartime_mul_with_base(a, point, b)
    }

    fn vartime_multiscalar(scalars: &[S::Scalar], points: &[S::Point]) -> S::Point {
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
        S::agree(k, &Element::from_parts(*q.point(), *q.encoding()))
    }

    fn agree_many(k: &S::Scalar, qs: &[S::Point]) -> Vec<Result<AgreedSecret, Error>> {
        S::agree_many(k, qs)
    }
}
