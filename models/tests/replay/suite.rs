//! A suite that keeps what two ends agreed on, so that a test can derive the keys that follow.

use std::cell::RefCell;
use std::collections::BTreeSet;

use quiver_ainq::{AgreedSecret, Element, Error, Ristretto255, Suite};
use quiver_crypto::Zeroizing;

std::thread_local! {
    static SECRETS: RefCell<BTreeSet<Vec<u8>>> = const { RefCell::new(BTreeSet::new()) };
    static PRODUCTS: RefCell<Vec<[u8; 32]>> = const { RefCell::new(Vec::new()) };
}

/// All products of a scalar and a point that this thread computed since the last call, in their order.
pub(crate) fn take_products() -> Vec<[u8; 32]> {
    PRODUCTS.take()
}

/// All pairwise secrets T that this thread computed since the last call.
pub(crate) fn take_secrets() -> BTreeSet<Vec<u8>> {
    SECRETS.take()
}

fn keep(secret: Result<AgreedSecret, Error>) -> Result<AgreedSecret, Error> {
    if let Ok(secret) = &secret {
        SECRETS.with_borrow_mut(|secrets| secrets.insert(secret.expose().to_vec()));
    }
    secret
}

/// Ristretto255, overheard. It has its ID, so its bytes are those of ristretto255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Overheard;

type Inner = Ristretto255;

impl Suite for Overheard {
    const ID: &'static str = Inner::ID;
    const POINT_LEN: usize = Inner::POINT_LEN;
    const SCALAR_LEN: usize = Inner::SCALAR_LEN;
    const SECRET_LEN: usize = Inner::SECRET_LEN;

    type Scalar = <Inner as Suite>::Scalar;
    type Point = <Inner as Suite>::Point;
    type Encoding = <Inner as Suite>::Encoding;
    type Prepared = <Inner as Suite>::Prepared;

    fn mul_base(scalar: &Self::Scalar) -> Self::Point {
        Inner::mul_base(scalar)
    }

    fn mul(scalar: &Self::Scalar, point: &Self::Point) -> Self::Point {
        let product = Inner::mul(scalar, point);
        let encoded = Inner::encode(&product);
        let bytes: &[u8] = encoded.as_ref();
        PRODUCTS.with_borrow_mut(|products| products.extend(bytes.as_chunks().0));
        product
    }

    fn encode(point: &Self::Point) -> Self::Encoding {
        Inner::encode(point)
    }

    fn decode(bytes: &[u8]) -> Option<Self::Point> {
        Inner::decode(bytes)
    }

    fn is_identity(point: &Self::Point) -> bool {
        Inner::is_identity(point)
    }

    fn prepare(point: &Self::Point) -> Self::Prepared {
        Inner::prepare(point)
    }

    fn vartime_mul_prepared(scalar: &Self::Scalar, point: &Self::Prepared) -> Self::Point {
        Inner::vartime_mul_prepared(scalar, point)
    }

    fn vartime_mul_with_base(a: &Self::Scalar, point: &Self::Point, b: &Self::Scalar) -> Self::Point {
        Inner::vartime_mul_with_base(a, point, b)
    }

    fn vartime_multiscalar(scalars: &[Self::Scalar], points: &[Self::Point]) -> Self::Point {
        Inner::vartime_multiscalar(scalars, points)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> Self::Scalar {
        Inner::scalar_from_wide(bytes)
    }

    fn scalar_from_u128(value: u128) -> Self::Scalar {
        Inner::scalar_from_u128(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<Self::Scalar> {
        Inner::scalar_decode(bytes)
    }

    fn scalar_encode(scalar: &Self::Scalar) -> Zeroizing<[u8; 32]> {
        Inner::scalar_encode(scalar)
    }

    fn scalar_is_zero(scalar: &Self::Scalar) -> bool {
        Inner::scalar_is_zero(scalar)
    }

    fn challenge(parts: &[&[u8]]) -> Self::Scalar {
        Inner::challenge(parts)
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Self::Scalar {
        Inner::hash_to_scalar(domain, parts)
    }

    fn secret_scalar_ok(scalar: &Self::Scalar) -> bool {
        Inner::secret_scalar_ok(scalar)
    }

    fn agree(k: &Self::Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        keep(Inner::agree_many(k, &[*q.point()]).pop().unwrap_or(Err(Error::InvalidScalar)))
    }

    fn agree_many(k: &Self::Scalar, qs: &[Self::Point]) -> Vec<Result<AgreedSecret, Error>> {
        Inner::agree_many(k, qs).into_iter().map(keep).collect()
    }
}
