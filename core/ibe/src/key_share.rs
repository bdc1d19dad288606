//! Shares of an identity's secret key.

use alloc::vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::Reader;
use quiver_pairing::{G2, Group};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Culprit, Error, ShareFault};

/// K_j = s_j·Q: made by its KGC, or checked. Erased when dropped; `Debug` prints the index.
///
/// Encoded in 98 bytes: the index in two, big-endian, the point in 96.
#[derive(Clone, Zeroize, ZeroizeOnDrop, derive_more::Debug)]
#[debug("KeyShare({index})")]
pub struct KeyShare {
    #[zeroize(skip)]
    index: u16,
    point: G2,
}

impl KeyShare {
    /// Bytes of an encoded share.
    pub const LEN: usize = 2 + G2::ENCODED_LEN;

    pub(crate) const fn verified(index: u16, point: G2) -> Self {
        Self { index, point }
    }

    /// The KGC's index.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.index
    }

    /// The encoding, 98 bytes. Its receiver has an [`UnverifiedKeyShare`].
    #[must_use]
    pub fn encode(&self) -> Zeroizing<[u8; Self::LEN]> {
        let mut bytes = Zeroizing::new([0; Self::LEN]);
        let written = self.index.to_be_bytes().into_iter().chain(self.point.encode());
        bytes.iter_mut().zip(written).for_each(|(to, from)| *to = from);
        bytes
    }

    pub(crate) const fn point(&self) -> &G2 {
        &self.point
    }
}

/// A KGC's received share of an identity's key, not verified: a point of the subgroup of G2, and not the
/// identity. [`combine`](crate::combine) and [`verify_batch`](crate::verify_batch) tell.
#[derive(Clone, Debug, derive_more::From)]
pub struct UnverifiedKeyShare(KeyShare);

impl UnverifiedKeyShare {
    /// Takes a point.
    ///
    /// # Errors
    /// [`Error::InvalidKeyShares`] for the identity.
    pub fn new(index: u16, point: G2) -> Result<Self, Error> {
        let share = KeyShare { index, point };
        if point.is_identity() { Err(refused(index, ShareFault::NoPoint)) } else { Ok(Self(share)) }
    }

    /// Decodes the encoding, 98 bytes, from any sender.
    ///
    /// # Errors
    /// [`Error::Malformed`] for another length; [`Error::InvalidKeyShares`] for a point outside the subgroup,
    /// or the identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (index, point) = (reader.u16()?, reader.take(G2::ENCODED_LEN)?);
        reader.end()?;
        G2::decode(point)
            .map(|point| Self(KeyShare { index, point }))
            .map_err(|_| refused(index, ShareFault::NoPoint))
    }

    /// Decodes the encoding of the KGC with the index `sender`, which is blamed for any mistake.
    ///
    /// # Errors
    /// [`Error::InvalidKeyShares`] with the sender.
    pub fn decode_from(sender: u16, bytes: &[u8]) -> Result<Self, Error> {
        let share = Self::decode(bytes).map_err(|_| refused(sender, ShareFault::NoPoint))?;
        // The index must be the sender's own: nobody is blamed for what another sent.
        if share.index() == sender { Ok(share) } else { Err(refused(sender, ShareFault::OtherIndex)) }
    }

    /// The index it claims.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.0.index
    }

    /// The encoding, 98 bytes.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<[u8; KeyShare::LEN]> {
        self.0.encode()
    }

    pub(crate) const fn claimed(&self) -> &KeyShare {
        &self.0
    }
}

fn refused(index: u16, fault: ShareFault) -> Error {
    Error::InvalidKeyShares { culprits: vec![Culprit { index, fault }] }
}
