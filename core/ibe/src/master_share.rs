//! A KGC's share of the master key.

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::Reader;
use quiver_pairing::{G1, SCALAR_LEN, Scalar, scalar_decode, scalar_encode};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Error, IdentityPoint, KeyShare};

/// s_j, the master key's share of the KGC with the index j. Erased when dropped; `Debug` prints the index.
///
/// Encoded in 34 bytes: the index in two, big-endian, the scalar in 32, big-endian.
#[derive(Clone, Zeroize, ZeroizeOnDrop, derive_more::Debug)]
#[debug("MasterShare({index})")]
pub struct MasterShare {
    #[zeroize(skip)]
    index: u16,
    scalar: Scalar,
}

impl MasterShare {
    /// Bytes of an encoded share.
    pub const LEN: usize = 2 + SCALAR_LEN;

    /// A share that distributed key generation, a dealing or a refresh gave.
    ///
    /// # Errors
    /// [`Error::ZeroIndex`]; [`Error::InvalidScalar`] for zero.
    pub fn new(index: u16, scalar: Scalar) -> Result<Self, Error> {
        // Made first, so that a refused value is erased as well.
        let share = Self { index, scalar };
        if index == 0 {
            Err(Error::ZeroIndex)
        } else if share.scalar == Scalar::from(0_u64) {
            Err(Error::InvalidScalar)
        } else {
            Ok(share)
        }
    }

    /// The same of a scalar in 32 bytes, big-endian.
    ///
    /// # Errors
    /// [`Error::ZeroIndex`]; [`Error::InvalidScalar`] for zero, for a value not below r, and for another
    /// length.
    pub fn from_scalar_bytes(index: u16, bytes: &[u8]) -> Result<Self, Error> {
        Self::new(index, scalar_decode(bytes).map_err(|_| Error::InvalidScalar)?)
    }

    /// The encoding, 34 bytes, to be stored encrypted.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<[u8; Self::LEN]> {
        let mut bytes = Zeroizing::new([0; Self::LEN]);
        let scalar = scalar_encode(&self.scalar);
        let written = self.index.to_be_bytes().into_iter().chain(scalar.iter().copied());
        bytes.iter_mut().zip(written).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::ZeroIndex`], [`Error::InvalidScalar`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (index, scalar) = (reader.u16()?, reader.take(SCALAR_LEN)?);
        reader.end()?;
        Self::from_scalar_bytes(index, scalar)
    }

    /// The index, 1 or above. Public.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.index
    }

    /// The scalar. The caller controls where it goes.
    #[must_use]
    pub const fn expose(&self) -> &Scalar {
        &self.scalar
    }

    /// S_j = s_j·P1.
    #[must_use]
    pub fn public(&self) -> G1 {
        G1::multiply_generator(&self.scalar)
    }

    /// K_j = s_j·Q, this KGC's share of an identity's key. When to release it is for others to decide.
    #[must_use]
    pub fn extract(&self, point: &IdentityPoint) -> KeyShare {
        // BF01, section 4.2, Extract, with the share s_j in the place of s.
        KeyShare::verified(self.index, *point.point() * self.scalar)
    }
}
