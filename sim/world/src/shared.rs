//! ristretto255 for simulations in which thousands of drones check the very same bytes.
//!
//! When a leader signs a header, every drone of the group checks the same signature by the same key; in one
//! process that is the same computation over and over. [`SharedRistretto255`] remembers the last results of
//! operations on **public** data (decoding points, the two products of a signature check) and looks them up
//! if exactly the same inputs come again. Nothing else changes: same ID, same encodings, same outcomes, so
//! one seed gives the same trace with and without. Figures of a drone's own computing time do not come out of
//! such a run, and reports say so.

use std::cell::RefCell;

use quiver_ainq::{AgreedSecret, Element, Error, Ristretto255, Suite};
use quiver_quorum::QuorumSuite;
use zeroize::Zeroizing;

type Point = <Ristretto255 as Suite>::Point;
type Scalar = <Ristretto255 as Suite>::Scalar;

/// Results remembered per thread and operation.
const PLACES: usize = 1 << 10;

/// The suite of [`Ristretto255`] with a cache of recent computations on public data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedRistretto255;

/// A point with the table that makes multiplying it fast.
#[derive(Clone)]
pub struct Prepared {
    point: Point,
    table: <Ristretto255 as Suite>::Prepared,
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

thread_local! {
    static DECODED: RefCell<Memo<[u8; 32], Option<Point>>> = const { RefCell::new(Memo::new()) };
    static PRODUCTS: RefCell<Memo<(Scalar, Point), Point>> = const { RefCell::new(Memo::new()) };
    static SUMS: RefCell<Memo<(Scalar, Point, Scalar), Point>> = const { RefCell::new(Memo::new()) };
}

/// Scalars of signature checks are hashes already.
fn hash(bytes: &[u8; 32]) -> u64 {
    let (head, _) = bytes.split_first_chunk::<8>().expect("32 bytes");
    u64::from_le_bytes(*head)
}

impl QuorumSuite for SharedRistretto255 {
    type Frost = <Ristretto255 as QuorumSuite>::Frost;
}

impl Suite for SharedRistretto255 {
    const ID: &'static str = Ristretto255::ID;
    const POINT_LEN: usize = Ristretto255::POINT_LEN;
    const SCALAR_LEN: usize = Ristretto255::SCALAR_LEN;
    const SECRET_LEN: usize = Ristretto255::SECRET_LEN;

    type Scalar = Scalar;
    type Point = Point;
    type Encoding = [u8; 32];
    type Prepared = Prepared;

    fn mul_base(scalar: &Scalar) -> Point {
        Ristretto255::mul_base(scalar)
    }

    fn mul(scalar: &Scalar, point: &Point) -> Point {
        Ristretto255::mul(scalar, point)
    }

    fn encode(point: &Point) -> [u8; 32] {
        Ristretto255::encode(point)
    }

    fn decode(bytes: &[u8]) -> Option<Point> {
        let bytes: [u8; 32] = bytes.try_into().ok()?;
        DECODED.with_borrow_mut(|memo| memo.recall(hash(&bytes), bytes, |bytes| Ristretto255::decode(bytes)))
    }

    fn is_identity(point: &Point) -> bool {
        Ristretto255::is_identity(point)
    }

    fn prepare(point: &Point) -> Prepared {
        Prepared { point: *point, table: Ristretto255::prepare(point) }
    }

    fn vartime_mul_prepared(scalar: &Scalar, point: &Prepared) -> Point {
        let bytes = Ristretto255::scalar_encode(scalar);
        PRODUCTS.with_borrow_mut(|memo| {
            memo.recall(hash(&bytes), (*scalar, point.point), |(scalar, _)| {
                Ristretto255::vartime_mul_prepared(scalar, &point.table)
            })
        })
    }

    fn vartime_mul_with_base(a: &Scalar, point: &Point, b: &Scalar) -> Point {
        let bytes = Ristretto255::scalar_encode(a);
        SUMS.with_borrow_mut(|memo| {
            memo.recall(hash(&bytes), (*a, *point, *b), |(a, point, b)| {
                Ristretto255::vartime_mul_with_base(a, point, b)
            })
        })
    }

    fn vartime_multiscalar(scalars: &[Scalar], points: &[Point]) -> Point {
        Ristretto255::vartime_multiscalar(scalars, points)
    }

    fn scalar_from_wide(bytes: &[u8; 64]) -> Scalar {
        Ristretto255::scalar_from_wide(bytes)
    }

    fn scalar_from_u128(value: u128) -> Scalar {
        Ristretto255::scalar_from_u128(value)
    }

    fn scalar_decode(bytes: &[u8]) -> Option<Scalar> {
        Ristretto255::scalar_decode(bytes)
    }

    fn scalar_encode(scalar: &Scalar) -> Zeroizing<[u8; 32]> {
        Ristretto255::scalar_encode(scalar)
    }

    fn scalar_is_zero(scalar: &Scalar) -> bool {
        Ristretto255::scalar_is_zero(scalar)
    }

    fn challenge(parts: &[&[u8]]) -> Scalar {
        Ristretto255::challenge(parts)
    }

    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Scalar {
        Ristretto255::hash_to_scalar(domain, parts)
    }

    fn secret_scalar_ok(scalar: &Scalar) -> bool {
        Ristretto255::secret_scalar_ok(scalar)
    }

    fn agree(k: &Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error> {
        Ristretto255::agree(k, &Element::decode(q.as_bytes())?)
    }

    fn agree_many(k: &Scalar, qs: &[Point]) -> Vec<Result<AgreedSecret, Error>> {
        Ristretto255::agree_many(k, qs)
    }
}
