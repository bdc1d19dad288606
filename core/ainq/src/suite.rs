//! The interface of a suite: a prime-order group with its hash functions and encodings.
//!
//! Written additively: the group has prime order q and generator P. The same protocol code runs over every
//! suite; the suite's ID enters every hash, so nothing made under one suite means anything under another.
//!
//! | suite | group | point, scalar, pairwise secret | constant-time |
//! |---|---|---|---|
//! | [`Ristretto255`] | ristretto255 over curve25519-dalek | 32, 32, 32 bytes | yes |
//! | `Bls12381G1` | G1 of BLS12-381 over arkworks | 48, 32, 48 bytes | **no** |
//!
//! Programs run ristretto255. The second one shows in tests that the protocol code is generic, and its group is
//! that of the master key of identity-based encryption that KGCs share.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;
use core::ops::{Add, Mul, Neg, Sub};

use quiver_crypto::Zeroizing;
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::{Element, Error};

#[cfg(feature = "bls12-381")]
mod bls12381;
#[cfg_attr(not(feature = "rayon"), path = "suite/chunks/serial.rs")]
mod chunks;
mod ristretto255;

#[cfg(feature = "bls12-381")]
pub use bls12381::Bls12381G1;
pub use ristretto255::Ristretto255;
#[cfg(feature = "verification-cache")]
pub use ristretto255::verification_cache::CacheScope;

use chunks::in_chunks;

/// ID of the suite over G1 of BLS12-381, reserved: no program runs that suite, and no other may take its ID.
pub const BLS12381G1_ID: &str = "QUIVER-AINQ-BLS12381G1-SHA256-v1";

/// Bytes of an encoded scalar, in every suite.
pub const SCALAR_LEN: usize = 32;

/// A prime-order group with its hash functions and encodings.
///
/// Functions named `vartime` leak their inputs through time and take public data alone; everything else is
/// constant-time in its scalars unless the suite says otherwise.
pub trait Suite: Copy + Debug + Default + Eq + Ord + Hash + Send + Sync + 'static {
    /// Names the suite in every hash.
    const ID: &'static str;
    /// Bytes of an encoded point.
    const POINT_LEN: usize;
    /// Bytes of an encoded scalar.
    const SCALAR_LEN: usize;
    /// Bytes of a pairwise secret T.
    const SECRET_LEN: usize;

    /// An integer modulo q.
    type Scalar: Copy
        + Zeroize
        + Add<Output = Self::Scalar>
        + Sub<Output = Self::Scalar>
        + Mul<Output = Self::Scalar>
        + Neg<Output = Self::Scalar>
        + Send
        + Sync
        + 'static;
    /// An element of the group.
    type Point: Copy + Eq + Add<Output = Self::Point> + Sub<Output = Self::Point> + Send + Sync + 'static;
    /// The canonical encoding of a point, made of a slice of the right length.
    type Encoding: Copy
        + AsRef<[u8]>
        + for<'a> TryFrom<&'a [u8]>
        + Eq
        + Ord
        + Hash
        + Send
        + Sync
        + Debug
        + 'static;
    /// A point that will be multiplied often, with whatever table makes that fast on this machine.
    type Prepared: Clone + Send + Sync + 'static;

    /// scalar · P.
    fn mul_base(scalar: &Self::Scalar) -> Self::Point;
    /// scalar · point.
    fn mul(scalar: &Self::Scalar, point: &Self::Point) -> Self::Point;
    /// The canonical encoding, of [`POINT_LEN`](Self::POINT_LEN) bytes.
    fn encode(point: &Self::Point) -> Self::Encoding;
    /// The point `bytes` encode, if they are the canonical encoding of a point of the prime-order group.
    fn decode(bytes: &[u8]) -> Option<Self::Point>;
    /// Returns true if the point is the identity.
    fn is_identity(point: &Self::Point) -> bool;

    /// Gets ready for a point that will be multiplied often.
    fn prepare(point: &Self::Point) -> Self::Prepared;
    /// scalar · point. Public scalars only.
    fn vartime_mul_prepared(scalar: &Self::Scalar, point: &Self::Prepared) -> Self::Point;
    /// a · point + b · P. Public data only.
    fn vartime_mul_with_base(a: &Self::Scalar, point: &Self::Point, b: &Self::Scalar) -> Self::Point;
    /// Σ scalar · point over pairs of the two slices, which have the same length. Public data only.
    fn vartime_multiscalar(scalars: &[Self::Scalar], points: &[Self::Point]) -> Self::Point;

    /// The 64 bytes as a little-endian integer, reduced modulo q: uniform if they are.
    fn scalar_from_wide(bytes: &[u8; 64]) -> Self::Scalar;
    /// The integer modulo q.
    fn scalar_from_u128(value: u128) -> Self::Scalar;
    /// The scalar `bytes` encode, if the encoding is canonical.
    fn scalar_decode(bytes: &[u8]) -> Option<Self::Scalar>;
    /// The canonical encoding: little-endian, below q.
    fn scalar_encode(scalar: &Self::Scalar) -> Zeroizing<[u8; SCALAR_LEN]>;
    /// Returns true if the scalar is zero.
    fn scalar_is_zero(scalar: &Self::Scalar) -> bool;

    /// −x, as a difference: curve25519-dalek's own negation first reduces again what is reduced, in 2.5 KB of
    /// code.
    #[must_use]
    fn negated(scalar: &Self::Scalar) -> Self::Scalar {
        Self::scalar_from_u128(0) - *scalar
    }

    /// A uniform scalar.
    fn scalar_random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self::Scalar {
        let mut wide = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *wide);
        Self::scalar_from_wide(&wide)
    }

    /// FROST's H2 (RFC 9591) over the parts one after the other: the challenge of everything a KGC signs.
    fn challenge(parts: &[&[u8]]) -> Self::Scalar;
    /// Hq: a scalar out of a domain and parts, each behind its length. Never FROST's H2.
    fn hash_to_scalar(domain: &str, parts: &[&[u8]]) -> Self::Scalar;

    /// Returns true if [`agree`](Self::agree) can use the scalar. Every scalar that may end up in a pairwise
    /// secret is drawn until this holds.
    fn secret_scalar_ok(scalar: &Self::Scalar) -> bool;

    /// The pairwise secret T of scalar k and point q, as bytes.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`] if k is zero or not [`secret_scalar_ok`](Self::secret_scalar_ok).
    fn agree(k: &Self::Scalar, q: &Element<Self>) -> Result<AgreedSecret, Error>;

    /// The pairwise secrets of one scalar with many points, in the order of the points.
    ///
    /// This is the one function behind which many points are multiplied by one secret; with the `rayon`
    /// feature it uses all cores.
    ///
    /// # Errors
    /// Per point: [`Error::IdentityPoint`] if it is the identity, [`Error::InvalidScalar`] as for `agree`.
    fn agree_many(k: &Self::Scalar, qs: &[Self::Point]) -> Vec<Result<AgreedSecret, Error>>;
}

/// A pairwise secret T as bytes: 32 or 48, depending on the suite. Erased when dropped.
#[derive(Clone, derive_more::Debug)]
#[debug("AgreedSecret({len} bytes)")]
pub struct AgreedSecret {
    bytes: Zeroizing<[u8; Self::MAX_LEN]>,
    len: usize,
}

impl AgreedSecret {
    const MAX_LEN: usize = 48;

    /// Takes over the bytes of a suite's secret: for implementations of [`Suite`].
    #[must_use]
    pub fn new<const N: usize>(secret: &[u8; N]) -> Self {
        const { assert!(N <= Self::MAX_LEN, "a pairwise secret has at most 48 bytes") };
        let mut bytes = Zeroizing::new([0; Self::MAX_LEN]);
        bytes.iter_mut().zip(secret).for_each(|(to, from)| *to = *from);
        Self { bytes, len: N }
    }

    /// The bytes, to be hashed into a key at once.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl PartialEq for AgreedSecret {
    fn eq(&self, other: &Self) -> bool {
        quiver_crypto::ct_eq(self.expose(), other.expose())
    }
}

impl Eq for AgreedSecret {}
