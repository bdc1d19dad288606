//! A suite that does nothing for quorums but say that it has no ciphersuite of its own.

use quiver_ainq::{AgreedSecret, Element, Error, Ristretto255, Suite};
use quiver_crypto::Zeroizing;
use quiver_quorum::QuorumSuite;
use quiver_quorum::suite::generic::Over;

/// ristretto255 under another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Plain;

type R = Ristretto255;
type Scalar = <R as Suite>::Scalar;
type Point = <R as Suite>::Point;
type Prepared = <R as Suite>::Prepared;

impl QuorumSuite for Plain {
    type Frost = Over<Self>;
}

impl Suite for Plain {
    const ID: &'static str = "QUIVER-TEST-PLAIN-v1";
    const POINT_LEN: usize = 32;
    const SCALAR_LEN: usize = 32;
    const SECRET_LEN: usize = 32;
    type Scalar = Scalar;
    type Point = Point;
    type Encoding = [u8; 32];
    type Prepared = Prepared;

    fn mul_base(scalar: &Scalar) -> Point {
        R::mul_base(scalar)
    }
    fn mul(scalar: &Scalar, point: &Point) -> Point {
        R::mul(scalar, point)
    }
    fn encode(point: &Point) -> [u8; 32] {
        R::encode(point)
    }
    fn decode(bytes: &[u8]) -> Option<Point> {
        R::decode(bytes)
    }
    fn is_identity(point: &Point) -> bool {
        R::is_identity(point)
    }
    fn prepare(point: &Point) -> Prepared {
        R::prepare(point)
    }
    fn vartime_mul_prepared(scalar: &Scalar, point: &Prepared) -> Point {
        R::vartime_mul_prepared(scalar, point)
    }
    fn vartime_mul_with_base(a: &Scalar, point: &Point, b: &Scalar) -> Point {
        R::vartime_mul_with_base(a, point, b)
    }
    fn vartime_multiscalar(scalars: &[Scalar], points: &[Point]) -> Point {
        R::vartime_multiscalar(scalars, points)
    }
    fn scalar_from_wide(bytes: &[u8; 64]) -> Scalar {
        R::scalar_from_wide(bytes)
    }
    fn scalar_from_u128(value: u128) -> Scalar {
        R::scalar_from_u128(value)
    }
    fn scalar_decode(bytes: &[u8]) -> Option<Scalar> {
        R::scalar_decode(bytes)
    }
    fn scalar_encode(scalar: &Scalar) -> Zeroizing<[u8; 32]> {
        R::scalar_encode(scalar)
    }
    fn scalar_is_zero(scalar: &Scalar) -> bool {
        R::scalar_is_zero(scalar)
    }
    fn challenge(parts: &[&[u8]]) -> Scalar {
        R::hash_to_scalar("test challenge", &[&parts.concat()])
    }
    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Scalar {
        R::hash_to_scalar(domain, parts)
    }
    fn secret_scalar_ok(scalar: &Scalar) -> bool {
        R::secret_scalar_ok(scalar)
    }
    fn agree(k: &Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        R::agree(k, &Element::decode(q.as_bytes())?)
    }
    fn agree_many(k: &Scalar, qs: &[Point]) -> Vec<Result<AgreedSecret, Error>> {
        R::agree_many(k, qs)
    }
}
