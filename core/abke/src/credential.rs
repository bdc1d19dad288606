//! A client's credential: attributes, a secret for each, and the key that the authority signed.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Zeroizing};
use quiver_pairing::{
    CurvePoint, G1, G1_COFACTOR, SCALAR_LEN, Scalar, UNCOMPRESSED_LEN, scalar_decode, scalar_encode,
};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::key::{KeyPoints, digest};
use crate::scalars::random;
use crate::{AuthorityKey, Error, FIXED_SLOTS, MAX_ATTRIBUTES, PointLabel, Verifier};

/// χ and r_1, …, r_m. Erased when dropped.
pub(crate) struct Secrets {
    attributes: Zeroizing<Vec<bool>>,
    scalars: Zeroizing<Vec<Scalar>>,
}

impl Secrets {
    pub(crate) fn with_capacity(attributes: usize) -> Self {
        let (bits, scalars) = (Vec::with_capacity(attributes), Vec::with_capacity(attributes));
        Self { attributes: Zeroizing::new(bits), scalars: Zeroizing::new(scalars) }
    }

    pub(crate) fn push(&mut self, attribute: bool, secret: Scalar) {
        self.attributes.push(attribute);
        self.scalars.push(secret);
    }

    pub(crate) fn attributes(&self) -> &[bool] {
        &self.attributes
    }

    pub(crate) fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }
}

/// Certified attributes. Kept secret: its holder can prove these attributes.
///
/// No two runs reveal anything of it that could be linked, except to the authority, which could recognise its
/// own signature.
#[derive(Clone, derive_more::Debug)]
#[debug("Credential({} attributes)", self.attributes().len())]
pub struct Credential {
    authority: Digest,
    secrets: Arc<Secrets>,
    points: KeyPoints,
}

impl Credential {
    pub(crate) fn new(authority: Digest, secrets: Secrets, points: KeyPoints) -> Self {
        Self { authority, secrets: Arc::new(secrets), points }
    }

    /// Bytes of an encoded credential of so many attributes.
    pub const fn encoded_len(attributes: usize) -> usize {
        36 + attributes.div_ceil(8)
            + SCALAR_LEN * attributes
            + UNCOMPRESSED_LEN * 2 * (attributes + FIXED_SLOTS)
    }

    /// The encoding, secrets and all: the authority's fingerprint, m, the attributes as bits (lowest first),
    /// the secrets, 2m + 6 uncompressed points.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let attributes = self.attributes();
        let mut writer = Writer::with_capacity(Self::encoded_len(attributes.len()));
        writer.fixed(&self.authority).count(attributes.len());
        for bits in attributes.chunks(8) {
            writer.u8(bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit)));
        }
        for secret in self.secrets.scalars() {
            writer.fixed(&*scalar_encode(secret));
        }
        for point in G1::encode_uncompressed(&self.points.all()) {
            writer.fixed(&point);
        }
        Zeroizing::new(writer.finish())
    }

    /// The attributes.
    pub fn attributes(&self) -> &[bool] {
        self.secrets.attributes()
    }

    /// The fingerprint of the authority's key of the period.
    pub fn authority(&self) -> Digest {
        self.authority
    }

    /// A fresh key of the same attributes, for one run: Unlink of the source.
    pub fn unlink(&self, rng: &mut dyn CryptoRngCore) -> Presentation {
        // Unlink of the source: all points times one fresh scalar: no two presentations can be linked.
        let factor = Zeroizing::new(random(rng));
        let bases = self.points.key.iter().take(FIXED_SLOTS).chain(&self.points.signatures);
        let products = G1::multiply_points(&bases.copied().collect::<Vec<_>>(), &factor);
        let (bases, signatures) = products.split_at(FIXED_SLOTS.min(products.len()));
        let mut points = bases.to_vec();
        // r·e_j = r_j·(r·g) or r_j·(r·h), for which tables do where there are no vector lanes.
        if let [g, h, ..] = bases {
            let (choices, secrets) = (self.secrets.attributes(), self.secrets.scalars());
            points.extend(G1::multiply_either([g, h], choices, secrets).unwrap_or_default());
        }
        points.extend(signatures);
        let encoded: Vec<u8> = G1::encode_uncompressed(&points).concat();
        // The server works with the cofactor times the sent points.
        let cofactor = Scalar::from(G1_COFACTOR);
        points.truncate(self.attributes().len().saturating_add(FIXED_SLOTS));
        Presentation {
            authority: self.authority,
            secrets: Arc::clone(&self.secrets),
            sent: points,
            cofactor,
            digest: digest(&encoded),
            encoded,
        }
    }
}

/// A received credential that is not verified yet.
#[derive(derive_more::Debug)]
#[debug("Unverified{_0:?}")]
pub struct UnverifiedCredential(Credential);

impl UnverifiedCredential {
    /// Reads the encoding. All points are checked to be of the group.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::AttributeCount`], [`Error::InvalidScalar`], [`Error::InvalidPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let authority = reader.array()?;
        let attributes = reader.count(MAX_ATTRIBUTES, SCALAR_LEN)?;
        if attributes == 0 {
            return Err(Error::AttributeCount(0));
        }
        if bytes.len() != Credential::encoded_len(attributes) {
            return Err(Error::Malformed("a credential of another length"));
        }
        let bits = read_bits(reader.take(attributes.div_ceil(8))?, attributes)?;
        let mut secrets = Secrets::with_capacity(attributes);
        for &bit in bits.iter() {
            match scalar_decode(reader.take(SCALAR_LEN)?) {
                // A secret of zero would make e_j the identity.
                Ok(secret) if secret != Scalar::from(0_u64) => secrets.push(bit, secret),
                _ => return Err(Error::InvalidScalar),
            }
        }
        let slots = attributes.saturating_add(FIXED_SLOTS);
        let mut read = |element: fn(usize) -> PointLabel| {
            let refused = |at, reason| Error::InvalidPoint { element: element(at), reason };
            let mut points = Vec::with_capacity(slots);
            for at in 0..slots {
                let point = CurvePoint::decode(reader.take(UNCOMPRESSED_LEN)?);
                points.push(point.map_err(|reason| refused(at, reason))?);
            }
            // §A2: every point is checked to be in the subgroup.
            let points = CurvePoint::all_in_subgroup(&points).into_iter().enumerate();
            points
                .map(|(at, point)| point.map_err(|reason| refused(at, reason)))
                .collect::<Result<Vec<_>, Error>>()
        };
        let points = KeyPoints { key: read(PointLabel::Key)?, signatures: read(PointLabel::Signature)? };
        Ok(Self(Credential::new(authority, secrets, points)))
    }

    /// The credential, if the authority signed it and its secrets belong to it.
    ///
    /// # Errors
    /// [`Error::OtherAuthority`], [`Error::Attributes`], [`Error::InvalidSecret`],
    /// [`Error::InvalidSignature`].
    pub fn verify(self, verifier: &Verifier, rng: &mut dyn CryptoRngCore) -> Result<Credential, Error> {
        let Self(credential) = self;
        let key: &AuthorityKey = verifier.authority();
        if credential.authority != key.fingerprint() {
            return Err(Error::OtherAuthority);
        }
        if credential.attributes().len() != key.attributes() {
            return Err(Error::Attributes { wanted: key.attributes(), found: credential.attributes().len() });
        }
        // §A2: the secrets must be those of the points: e_j = r_j·h if the attribute holds, else r_j·g.
        let (g, h) = match credential.points.key.as_slice() {
            [g, h, ..] => (*g, *h),
            _ => return Err(Error::Malformed("no points")),
        };
        let secrets = credential.secrets.attributes().iter().zip(credential.secrets.scalars());
        let points = credential.points.key.iter().skip(FIXED_SLOTS);
        for (at, ((&attribute, secret), point)) in secrets.zip(points).enumerate() {
            if G1::select(&g, &h, attribute) * secret != *point {
                return Err(Error::InvalidSecret(at));
            }
        }
        // §A2: all m + 3 signatures.
        verifier.verify_points(&credential.points, rng)?;
        Ok(credential)
    }
}

/// Reads `count` bits out of bytes, lowest first. The bits left over must be zero.
fn read_bits(bytes: &[u8], count: usize) -> Result<Zeroizing<Vec<bool>>, Error> {
    let mut bits = Zeroizing::new(Vec::with_capacity(bytes.len().saturating_mul(8)));
    bits.extend(bytes.iter().flat_map(|byte| (0..8).map(move |at| byte >> at & 1 == 1)));
    if bits.iter().skip(count).any(|&bit| bit) {
        return Err(Error::Malformed("bits beyond the last attribute"));
    }
    bits.truncate(count);
    Ok(bits)
}

/// An unlinked key with its secrets, for one run.
#[derive(derive_more::Debug)]
#[debug("Presentation({} attributes)", self.attributes())]
pub struct Presentation {
    authority: Digest,
    secrets: Arc<Secrets>,
    /// g, h, u, e_1, …, e_m as they are sent.
    sent: Vec<G1>,
    /// The server multiplies them by it.
    cofactor: Scalar,
    encoded: Vec<u8>,
    digest: Digest,
}

impl Presentation {
    /// The encoding that is sent: 2m + 6 uncompressed points.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// SHA-256 of the encoding, with a domain.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Number of attributes.
    pub fn attributes(&self) -> usize {
        self.secrets.attributes().len()
    }

    /// The fingerprint of the authority's key.
    pub fn authority(&self) -> Digest {
        self.authority
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// scalar · g as the server knows g.
    pub(crate) fn g_times(&self, scalar: &Scalar) -> G1 {
        self.times(0, scalar)
    }

    /// scalar · h as the server knows h.
    pub(crate) fn h_times(&self, scalar: &Scalar) -> G1 {
        self.times(1, scalar)
    }

    fn times(&self, at: usize, scalar: &Scalar) -> G1 {
        let point = self.sent.get(at).copied().unwrap_or_default();
        point * *Zeroizing::new(self.cofactor * scalar)
    }

    /// Σ weight · e_j as the server knows e_j. Not constant-time in the weights.
    pub(crate) fn combine(&self, weights: &[[u64; 2]]) -> Result<G1, Error> {
        let points = self.sent.get(FIXED_SLOTS..).unwrap_or_default();
        let sum = G1::msm_weighted(points, weights)
            .map_err(|_| Error::Malformed("as many weights as attributes"))?;
        // The server knows the points times the cofactor.
        Ok(sum * self.cofactor)
    }
}

impl Drop for KeyPoints {
    fn drop(&mut self) {
        self.key.zeroize();
        self.signatures.zeroize();
    }
}
