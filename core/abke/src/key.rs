//! Public keys of clients, before and after verification.
//!
//! A key is known up to a factor: all its points times one scalar are a key with the same secrets. So the
//! receiver of a key multiplies it once more, by the cofactor (`1 − x`, 64 bits), and works with the result,
//! which lies in the subgroup whatever was sent. This is done for each point of its own and takes half the
//! time of a check. A point whose order divides the cofactor becomes the identity, and is refused with it. g,
//! h and u are moved when a key is read; the e_j, which are hundreds, when it is known that the authority
//! signed those three: a sender of random points causes no other computation.

use alloc::vec::Vec;

use quiver_crypto::canonical::Reader;
use quiver_crypto::{Digest, Hasher};
use quiver_pairing::{CurvePoint, G1, Group, PairingError, UNCOMPRESSED_LEN};

use crate::{DOMAIN, Error, FIXED_SLOTS, PointLabel};

/// All points of a key: 2m + 6.
#[derive(Clone)]
pub(crate) struct KeyPoints {
    /// g, h, u, e_1, …, e_m.
    pub(crate) key: Vec<G1>,
    /// Signatures on g, h, u, u + e_1, …, u + e_m.
    pub(crate) signatures: Vec<G1>,
}

impl KeyPoints {
    pub(crate) fn with_capacity(attributes: usize) -> Self {
        Self { key: Vec::with_capacity(attributes + FIXED_SLOTS), signatures: Vec::new() }
    }

    /// The signed points, slot by slot.
    pub(crate) fn signed(&self) -> Vec<G1> {
        signed(&self.key)
    }

    /// All points, keys first.
    pub(crate) fn all(&self) -> Vec<G1> {
        self.key.iter().chain(&self.signatures).copied().collect()
    }
}

/// g, h, u, u + e_1, …, u + e_m.
fn signed(key: &[G1]) -> Vec<G1> {
    let u = key.get(FIXED_SLOTS - 1).copied().unwrap_or_default();
    let attribute = |(at, point): (usize, &G1)| if at < FIXED_SLOTS { *point } else { u + *point };
    key.iter().enumerate().map(attribute).collect()
}

/// A received key: its points are points of the group and not the identity, but their signatures are not
/// verified.
#[derive(Clone, derive_more::Debug)]
#[debug("UnverifiedPublicKey({} attributes)", self.attributes())]
pub struct UnverifiedPublicKey {
    /// g, h and u, in the subgroup.
    fixed: Vec<G1>,
    /// e_1, …, e_m, on the curve.
    raw: Vec<CurvePoint>,
    /// Signatures, on the curve. That is enough: see [`Verifier`](crate::Verifier).
    signatures: Vec<CurvePoint>,
    digest: Digest,
}

impl UnverifiedPublicKey {
    /// Bytes of an encoded key for so many attributes.
    pub const fn encoded_len(attributes: usize) -> usize {
        UNCOMPRESSED_LEN * 2 * (attributes + FIXED_SLOTS)
    }

    /// Reads 2m + 6 uncompressed points and clears the cofactors of g, h and u.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless there are as many bytes as m attributes take, before anything is computed.
    /// [`Error::InvalidPoint`] for what is not on the curve, the identity, and those of g, h and u that
    /// become the identity. Of the others [`Verifier`](crate::Verifier) says so.
    pub fn decode(bytes: &[u8], attributes: usize) -> Result<Self, Error> {
        if bytes.len() != Self::encoded_len(attributes) {
            return Err(Error::Malformed("a key of another length"));
        }
        let slots = attributes.saturating_add(FIXED_SLOTS);
        let mut reader = Reader::new(bytes);
        let mut read = |element: fn(usize) -> PointLabel| {
            let one = |at| {
                let point = CurvePoint::decode(reader.take(UNCOMPRESSED_LEN)?);
                point.map_err(|reason| Error::InvalidPoint { element: element(at), reason })
            };
            (0..slots).map(one).collect::<Result<Vec<_>, _>>()
        };
        // All that is cheap first.
        let (raw, signatures) = (read(PointLabel::Key)?, read(PointLabel::Signature)?);
        let (fixed, raw) = raw.split_at_checked(FIXED_SLOTS).unwrap_or_default();
        // g, h and u are moved into the subgroup now, the e_j when these three are known to be signed.
        let fixed = cleared(fixed, 0)?;
        Ok(Self { fixed, raw: raw.to_vec(), signatures, digest: digest(bytes) })
    }

    /// Number of attributes.
    pub fn attributes(&self) -> usize {
        self.raw.len()
    }

    /// SHA-256 of the encoding, with a domain.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// g, h and u, which are signed, and the signatures on them.
    pub(crate) fn fixed(&self) -> (&[G1], &[CurvePoint]) {
        (&self.fixed, self.signatures.get(..FIXED_SLOTS).unwrap_or_default())
    }

    /// Moves the e_j into the subgroup, too.
    ///
    /// # Errors
    /// [`Error::InvalidPoint`] for a point that becomes the identity, and for e_j = −u.
    pub(crate) fn clear(self) -> Result<ClearedKey, Error> {
        let Self { fixed: mut key, raw, signatures, digest } = self;
        // (1 − x)·e_j lies in the subgroup, whatever was sent.
        key.extend(cleared(&raw, FIXED_SLOTS)?);
        let signed = signed(&key).split_off(FIXED_SLOTS.min(key.len()));
        // For e_j = −u the identity would be signed.
        if let Some(attribute) = signed.iter().position(Group::is_identity) {
            return Err(Error::InvalidPoint {
                element: PointLabel::Signed(attribute),
                reason: PairingError::Identity,
            });
        }
        Ok(ClearedKey { key, signed, signatures, digest })
    }
}

/// Points moved into the subgroup, the first of which has this place in its key.
fn cleared(points: &[CurvePoint], first: usize) -> Result<Vec<G1>, Error> {
    let cleared = CurvePoint::clear_cofactors(points);
    match cleared.iter().position(Group::is_identity) {
        None => Ok(cleared),
        // A point whose order divides the cofactor becomes the identity.
        Some(at) => {
            let element = PointLabel::Key(first.saturating_add(at));
            Err(Error::InvalidPoint { element, reason: PairingError::WrongSubgroup })
        }
    }
}

/// A key whose points are all in the subgroup; the signatures of the e_j are not verified.
pub(crate) struct ClearedKey {
    key: Vec<G1>,
    /// u + e_1, …, u + e_m.
    signed: Vec<G1>,
    signatures: Vec<CurvePoint>,
    digest: Digest,
}

impl ClearedKey {
    /// u + e_1, …, u + e_m, and the signatures on them.
    pub(crate) fn attributes(&self) -> (&[G1], &[CurvePoint]) {
        (&self.signed, self.signatures.get(FIXED_SLOTS..).unwrap_or_default())
    }

    /// The key, once its signatures are verified.
    pub(crate) fn verified(self, authority: Digest) -> PublicKey {
        PublicKey { key: self.key, digest: self.digest, authority }
    }
}

/// A key that the authority signed.
#[derive(Clone, derive_more::Debug)]
#[debug("PublicKey({} attributes)", self.attributes())]
pub struct PublicKey {
    key: Vec<G1>,
    digest: Digest,
    authority: Digest,
}

impl PublicKey {
    /// Number of attributes.
    pub fn attributes(&self) -> usize {
        self.key.len().saturating_sub(FIXED_SLOTS)
    }

    /// SHA-256 of the encoding it came in, with a domain.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The fingerprint of the authority's key that it was verified with.
    pub fn authority(&self) -> Digest {
        self.authority
    }

    pub(crate) fn g(&self) -> G1 {
        self.key.first().copied().unwrap_or_default()
    }

    pub(crate) fn h(&self) -> G1 {
        self.key.get(1).copied().unwrap_or_default()
    }

    /// e_1, …, e_m.
    pub(crate) fn attribute_points(&self) -> &[G1] {
        self.key.get(FIXED_SLOTS..).unwrap_or_default()
    }
}

/// The digest of an encoded key.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Hasher::new(DOMAIN).lp(b"public key").lp(bytes).finish()
}
