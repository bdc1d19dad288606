//! Verifying keys, one or many at once.
//!
//! A batch is verified by one equation, with a weight w of 128 bits for each client and slot, drawn after all keys of the batch are in:
//!
//! > e(Σ w·σ, g2) = Σ_slot e(Σ_client w·M, pk_slot)
//!
//! Two sides that differ for one client and slot are equal in the sum for one weight in 2^128. A batch that fails is halved until what is
//! wrong is found.
//!
//! # Signatures outside the subgroup
//! The M are in G1. A σ is known to be on the curve, and that is enough. Let σ = σ' + T, with σ' in G1 and T of an order that divides the cofactor
//! (r does not divide it, so every point is such a sum). What the equation is evaluated on is (1 − x)·Σ w·σ = (1 − x)·Σ w·σ': the T are gone, since
//! 1 − x multiplies every point into the subgroup. So the equation says that the σ' are signatures, whatever the T; and a signature is
//! used for nothing but this equation. Somebody who adds a T marks his own key, once.

use alloc::vec::Vec;
use core::fmt;

use quiver_pairing::{CurvePoint, G1, G2, Prepared};
use rand_core::CryptoRngCore;

use crate::key::Points;
use crate::scalars::weight;
use crate::{AuthorityKey, Error, PublicKey, UnverifiedPublicKey};

/// An authority's key, made ready to verify with.
#[derive(Clone)]
pub struct Verifier {
    authority: AuthorityKey,
    /// −g2 and the points of all slots.
    paired: Prepared,
}

/// What one client has to be verified about.
struct Claim<'a> {
    signed: &'a [G1],
    signatures: &'a [CurvePoint],
}

impl Verifier {
    /// Makes a key ready, which on vector lanes takes as long as verifying a few keys.
    pub fn new(authority: AuthorityKey) -> Self {
        let points = core::iter::once(-G2::generator()).chain(authority.points.iter().copied());
        Self { paired: Prepared::new(points.collect()), authority }
    }

    /// The authority's key.
    pub fn authority(&self) -> &AuthorityKey {
        &self.authority
    }

    /// The key, if the authority signed it.
    ///
    /// # Errors
    /// [`Error::Attributes`], [`Error::InvalidSignature`].
    pub fn verify(&self, key: UnverifiedPublicKey, rng: &mut dyn CryptoRngCore) -> Result<PublicKey, Error> {
        self.verify_batch([key].into(), rng).pop().unwrap_or(Err(Error::InvalidSignature))
    }

    /// The keys that the authority signed, in the places of those that were given; the others are named by the error in theirs.
    ///
    /// Verifying k keys of which f are wrong takes at most 2·f·log2(k) + 1 equations, of 2m + 6 multiplications for each key and m + 4 Miller loops.
    pub fn verify_batch(
        &self,
        keys: Vec<UnverifiedPublicKey>,
        rng: &mut dyn CryptoRngCore,
    ) -> Vec<Result<PublicKey, Error>> {
        let wanted = self.authority.attributes();
        let claims: Vec<Claim<'_>> =
            keys.iter().map(|key| Claim { signed: key.signed(), signatures: &key.signatures }).collect();
        let candidates: Vec<usize> =
            keys.iter().enumerate().filter(|(_, key)| key.attributes() == wanted).map(|(at, _)| at).collect();
        let mut valid = alloc::vec![false; keys.len()];
        self.bisect(&claims, &candidates, &mut valid, rng);
        drop(claims);
        let verdict = |(key, valid): (UnverifiedPublicKey, bool)| match valid {
            true => Ok(key.verified(self.authority.fingerprint())),
            false if key.attributes() != wanted => Err(Error::Attributes { wanted, found: key.attributes() }),
            false => Err(Error::InvalidSignature),
        };
        keys.into_iter().zip(valid).map(verdict).collect()
    }

    /// Marks those of the claims that are true.
    fn bisect(&self, claims: &[Claim<'_>], which: &[usize], valid: &mut [bool], rng: &mut dyn CryptoRngCore) {
        let chosen: Vec<&Claim<'_>> = which.iter().filter_map(|&at| claims.get(at)).collect();
        if self.holds(&chosen, rng) {
            for &at in which {
                if let Some(valid) = valid.get_mut(at) {
                    *valid = true;
                }
            }
        } else if which.len() > 1 {
            // Depth: log2 of the number of keys.
            let (left, right) = which.split_at(which.len() / 2);
            self.bisect(claims, left, valid, rng);
            self.bisect(claims, right, valid, rng);
        }
    }

    /// Whether all claims are true.
    fn holds(&self, claims: &[&Claim<'_>], rng: &mut dyn CryptoRngCore) -> bool {
        let slots = self.authority.points.len();
        if claims.is_empty() {
            return true;
        }
        let weights: Vec<[u64; 2]> = (0..claims.len().saturating_mul(slots)).map(|_| weight(rng)).collect();
        let signatures: Vec<CurvePoint> = claims.iter().flat_map(|claim| claim.signatures).copied().collect();
        let Ok(signatures) = CurvePoint::combine_cleared(&signatures, &weights) else { return false };
        // One row for each client, one column for each slot.
        let signed: Vec<G1> = claims.iter().flat_map(|claim| claim.signed).copied().collect();
        let Ok(sums) = G1::sum_weighted(&signed, &weights, slots) else { return false };
        let points: Vec<G1> = core::iter::once(signatures).chain(sums).collect();
        self.paired.product_is_one(&points)
    }

    /// Verifies points that are known to be in the group.
    pub(crate) fn verify_points(&self, points: &Points, rng: &mut dyn CryptoRngCore) -> Result<(), Error> {
        let encoded = G1::encode_uncompressed(&points.all()).concat();
        let key = UnverifiedPublicKey::decode(&encoded, self.authority.attributes())?;
        self.verify(key, rng).map(drop)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier({:?})", self.authority)
    }
}
