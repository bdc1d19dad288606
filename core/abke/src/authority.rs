//! The certification authority: one signing key for each slot, all of them from one seed and for one period.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Reader, Writer};
use quiver_crypto::{Digest, Hasher, Hex, Secret, Zeroizing, hmac_sha512};
use quiver_pairing::{G1, G2, Group, Scalar, scalar_from_wide};
use rand_core::CryptoRngCore;

use crate::credential::Secrets;
use crate::key::KeyPoints;
use crate::scalars::{nonzero, random};
use crate::{Credential, DOMAIN, Error, FIXED_SLOTS, MAX_ATTRIBUTES, PointLabel};

/// The domain of hashing g, h and u to the curve.
const GENERATORS: &str = "QUIVER-ABKE-v1 generators with BLS12381G1_XMD:SHA-256_SSWU_RO_";

/// The authority's signing keys for one period: a scalar for each of the slots g, h, u, and 1 to m.
///
/// They are derived from a seed, the period and m, so that only the seed is stored. Keys of
/// another period are unrelated, which is how credentials end: nobody verifies with those of a period that is
/// over.
#[derive(derive_more::Debug)]
#[debug("Authority({key:?})")]
pub struct Authority {
    scalars: Zeroizing<Vec<Scalar>>,
    key: AuthorityKey,
}

impl Authority {
    /// The keys of a period, for credentials of so many attributes.
    ///
    /// # Errors
    /// [`Error::AttributeCount`].
    pub fn derive(seed: &Secret<32>, period: u64, attributes: usize) -> Result<Self, Error> {
        let slots = slots(attributes)?;
        let count = (attributes as u64).to_be_bytes();
        let mut scalars = Zeroizing::new(Vec::with_capacity(slots));
        for slot in 0..slots as u64 {
            let parts: &[&[u8]] =
                &[DOMAIN.as_bytes(), b" slot key", &period.to_be_bytes(), &count, &slot.to_be_bytes()];
            // §A1.1: sk_j = HMAC(seed, domain ‖ period ‖ m ‖ j): periods are unrelated.
            scalars.push(nonzero(scalar_from_wide(&hmac_sha512(seed.expose(), parts))));
        }
        // pk_j = sk_j·g2
        let points = scalars.iter().map(|scalar| G2::generator() * scalar).collect();
        Ok(Self { scalars, key: AuthorityKey::new(period, points) })
    }

    /// The public half.
    pub fn key(&self) -> &AuthorityKey {
        &self.key
    }

    /// Certifies attributes: Gen of the source. g, h and u are points that nobody knows discrete logarithms
    /// of, and fresh.
    ///
    /// Nothing that this signs is chosen by others: sk·P for a P of an attacker's choice would be a signature
    /// on anything.
    ///
    /// # Errors
    /// [`Error::Attributes`] unless there are as many as the authority has slots for.
    pub fn certify(&self, attributes: &[bool], rng: &mut dyn CryptoRngCore) -> Result<Credential, Error> {
        if attributes.len() != self.key.attributes() {
            return Err(Error::Attributes { wanted: self.key.attributes(), found: attributes.len() });
        }
        // Gen of the source: g, h and u are hashed from a fresh seed, so that their discrete logarithms are
        // unknown.
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *seed);
        let [g, h, u] = [b"g", b"h", b"u"].map(|name| G1::hash(GENERATORS, &[&*seed, name]));
        let mut secrets = Secrets::with_capacity(attributes.len());
        let mut points = KeyPoints::with_capacity(attributes.len());
        points.key.extend([g, h, u]);
        for &attribute in attributes {
            // e_j = r_j·h if the attribute holds, else r_j·g.
            let secret = random(rng);
            points.key.push(G1::select(&g, &h, attribute) * secret);
            secrets.push(attribute, secret);
        }
        // σ_j = sk_j·M_j, where M_j is g, h, u or u + e_j.
        points.signatures =
            self.scalars.iter().zip(points.signed()).map(|(key, point)| point * key).collect();
        Ok(Credential::new(self.key.fingerprint(), secrets, points))
    }
}

/// The authority's public keys for one period: a point of G2 for each slot.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("AuthorityKey({} attributes, period {period}, {})", self.attributes(), Hex(fingerprint))]
pub struct AuthorityKey {
    period: u64,
    pub(crate) points: Vec<G2>,
    fingerprint: Digest,
}

impl AuthorityKey {
    fn new(period: u64, points: Vec<G2>) -> Self {
        let mut key = Self { period, points, fingerprint: [0; 32] };
        key.fingerprint = Hasher::new(DOMAIN).lp(b"authority key").lp(&key.encode()).finish();
        key
    }

    /// Bytes of an encoded key for so many attributes.
    pub const fn encoded_len(attributes: usize) -> usize {
        12 + G2::ENCODED_LEN * (attributes + FIXED_SLOTS)
    }

    /// Decodes the encoding. This does not verify whose key it is: the caller has it signed.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::AttributeCount`], [`Error::InvalidPoint`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let period = reader.u64()?;
        let count = reader.count(MAX_ATTRIBUTES + FIXED_SLOTS, G2::ENCODED_LEN)?;
        slots(count.saturating_sub(FIXED_SLOTS))?;
        let mut points = Vec::with_capacity(count);
        for slot in 0..count {
            let point = G2::decode(reader.take(G2::ENCODED_LEN)?);
            points.push(
                point.map_err(|reason| Error::InvalidPoint { element: PointLabel::Slot(slot), reason })?,
            );
        }
        reader.end()?;
        Ok(Self::new(period, points))
    }

    /// The encoding: period, number of slots, and 96 bytes for each.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::encoded_len(self.attributes()));
        writer.u64(self.period).count(self.points.len());
        for point in G2::encode_all(&self.points) {
            writer.fixed(&point);
        }
        writer.finish()
    }

    /// The period, as the authority counts them.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Number of certified attributes.
    pub fn attributes(&self) -> usize {
        self.points.len().saturating_sub(FIXED_SLOTS)
    }

    /// SHA-256 of the encoding, with a domain.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }
}

/// Slots for so many attributes.
fn slots(attributes: usize) -> Result<usize, Error> {
    match attributes {
        1..=MAX_ATTRIBUTES => Ok(attributes + FIXED_SLOTS),
        _ => Err(Error::AttributeCount(attributes)),
    }
}
