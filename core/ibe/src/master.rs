//! The master public key of a quorum (MPK).

use quiver_crypto::{Digest, Hasher, Hex};
use quiver_pairing::{G1, Group};

use crate::Error;

/// MPK = s·P1: the public key of an authority's conditions. 48 bytes encoded, never the identity.
#[derive(Clone, Copy, PartialEq, Eq, derive_more::Debug)]
#[debug("MasterPublicKey({})", Hex(&self.encode()))]
pub struct MasterPublicKey(G1);

impl MasterPublicKey {
    /// Bytes of an encoded key.
    pub const LEN: usize = G1::ENCODED_LEN;

    /// Takes a point.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] for the identity.
    pub fn new(point: G1) -> Result<Self, Error> {
        // e(identity, Q) would be one, and hide nothing.
        if point.is_identity() { Err(Error::InvalidPoint("G1")) } else { Ok(Self(point)) }
    }

    /// Reads the encoding.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] for bytes that are not the encoding of a point of the subgroup, or that of the
    /// identity.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        G1::decode(bytes).map(Self).map_err(|_| Error::InvalidPoint("G1"))
    }

    /// The encoding, compressed.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        self.0.encode()
    }

    /// Fingerprint by which a file names the authority whose identity key opens it: SHA-256 of the encoding,
    /// with a domain.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Hasher::new("QUIVER-IBE-v1 master public key").fixed(&self.encode()).finish()
    }

    /// The point itself.
    #[must_use]
    pub const fn point(&self) -> &G1 {
        &self.0
    }
}
