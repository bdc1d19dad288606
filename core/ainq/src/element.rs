//! Validated points and secret scalars.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

use quiver_crypto::canonical::Reader;
use quiver_crypto::{Hex, Zeroizing};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::{Error, Suite};

/// A point of the group other than the identity, together with its canonical encoding.
///
/// There is no other way to one than [`decode`](Self::decode) and [`from_point`](Self::from_point), so what
/// has this type is in the prime-order group. Compared, ordered and hashed by its bytes. Holds `S::POINT_LEN`
/// bytes and the decoded point.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Element({})", Hex(self.as_bytes()))]
pub struct Element<S: Suite> {
    point: S::Point,
    encoding: S::Encoding,
}

impl<S: Suite> Element<S> {
    /// Reads `S::POINT_LEN` bytes.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] unless they are the canonical encoding of a point in the prime-order group,
    /// [`Error::IdentityPoint`] if that is the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        // §1.3: canonical, in the prime-order subgroup, and never the identity.
        let point = S::decode(bytes).ok_or(Error::InvalidPoint)?;
        if S::is_identity(&point) {
            return Err(Error::IdentityPoint);
        }
        // Only the canonical encoding decodes, so these bytes are what encoding the point again would give.
        let encoding = S::Encoding::try_from(bytes).map_err(|_| Error::InvalidPoint)?;
        Ok(Self { point, encoding })
    }

    /// Reads `S::POINT_LEN` bytes off the front of `reader`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and [`Error::Malformed`] if there are too few.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Self::decode(reader.take(S::POINT_LEN)?)
    }

    /// Takes a computed point.
    ///
    /// # Errors
    /// [`Error::IdentityPoint`].
    pub fn from_point(point: S::Point) -> Result<Self, Error> {
        // §1.3: a computed point, such as Y, is checked for the identity as well.
        if S::is_identity(&point) {
            return Err(Error::IdentityPoint);
        }
        Ok(Self::from_parts(point, S::encode(&point)))
    }

    /// Takes a point and its encoding, which the caller vouches for.
    pub(crate) const fn from_parts(point: S::Point, encoding: S::Encoding) -> Self {
        Self { point, encoding }
    }

    /// The canonical encoding, `S::POINT_LEN` bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.encoding.as_ref()
    }

    /// The point.
    pub const fn point(&self) -> &S::Point {
        &self.point
    }

    /// The canonical encoding as the suite's own type.
    pub const fn encoding(&self) -> &S::Encoding {
        &self.encoding
    }
}

impl<S: Suite> PartialEq for Element<S> {
    fn eq(&self, other: &Self) -> bool {
        self.encoding == other.encoding
    }
}

impl<S: Suite> Eq for Element<S> {}

impl<S: Suite> PartialOrd for Element<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S: Suite> Ord for Element<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.encoding.cmp(&other.encoding)
    }
}

impl<S: Suite> Hash for Element<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encoding.hash(state);
    }
}

/// A secret scalar that may become part of a pairwise secret: not zero, and one [`Suite::agree`] can use.
///
/// Erased when dropped, redacted in `Debug`.
#[derive(Clone, derive_more::Debug)]
#[debug("SecretScalar(redacted)")]
pub struct SecretScalar<S: Suite>(S::Scalar);

impl<S: Suite> SecretScalar<S> {
    /// Draws one.
    #[must_use]
    pub fn generate(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        loop {
            // All but one in 2^126 scalars will do, so this ends at the first draw unless the generator is
            // broken.
            if let Ok(secret) = Self::new(S::scalar_random(rng)) {
                return secret;
            }
        }
    }

    /// Takes a computed scalar.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`] if it is zero or [`Suite::agree`] cannot use it.
    pub fn new(scalar: S::Scalar) -> Result<Self, Error> {
        // Wrapped first, so that a refused scalar is erased as well.
        let secret = Self(scalar);
        if S::scalar_is_zero(&secret.0) || !S::secret_scalar_ok(&secret.0) {
            return Err(Error::InvalidScalar);
        }
        Ok(secret)
    }

    /// Reads the `S::SCALAR_LEN` bytes that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::InvalidScalar`] unless they are the canonical encoding of a scalar that may be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Self::new(S::scalar_decode(bytes).ok_or(Error::InvalidScalar)?)
    }

    /// The canonical encoding, `S::SCALAR_LEN` bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(S::scalar_encode(&self.0).to_vec())
    }

    /// The public point: this scalar times the generator.
    #[must_use]
    pub fn public(&self) -> Element<S> {
        let point = S::mul_base(&self.0);
        // The scalar is not zero modulo the prime order, so the point is not the identity and needs no check.
        Element { encoding: S::encode(&point), point }
    }

    /// The scalar itself. The caller erases copies.
    #[must_use]
    pub const fn expose(&self) -> &S::Scalar {
        &self.0
    }
}

impl<S: Suite> Drop for SecretScalar<S> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
