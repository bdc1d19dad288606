//! Verification of public keys, singly or in batches.
//!
//! A batch is verified by equations of this form, with a weight w of 128 bits for each client and slot, drawn
//! after all keys of the batch are in:
//!
//! > e(Σ w·σ, g2) = Σ_slot e(Σ_client w·M, pk_slot)
//!
//! Two sides that differ for one client and slot are equal in the sum for one weight in 2^128.
//!
//! There are two of them. The first is about the slots of g, h and u: four Miller loops, before anything is
//! computed with the hundreds of other points, detect a client with points of its own making. The second is
//! about the attributes of those who passed: m + 1 loops. A check that fails is repeated for each client
//! alone, so that the cost of k clients grows with k and no faster, whatever they send.
//!
//! # Signatures outside the subgroup
//! The M are in G1. A σ is known to be on the curve, and that is enough. Let σ = σ' + T, with σ' in G1 and T
//! of an order that divides the cofactor (r does not divide it, so every point is such a sum). The equation
//! is evaluated on (1 − x)·Σ w·σ = (1 − x)·Σ w·σ': the T are gone, since 1 − x multiplies every point into
//! the subgroup. So the equation says that the σ' are signatures, whatever the T; and a signature is used for
//! nothing but this equation. A client that adds a T marks its own key, once.

use alloc::vec::Vec;

use quiver_pairing::{CurvePoint, G1, G2, Prepared};
use rand_core::CryptoRngCore;

use crate::key::KeyPoints;
use crate::scalars::weight;
use crate::{AuthorityKey, Error, FIXED_SLOTS, PublicKey, UnverifiedPublicKey};

/// An authority's key, made ready to verify with.
#[derive(Clone, derive_more::Debug)]
#[debug("Verifier({authority:?})")]
pub struct Verifier {
    authority: AuthorityKey,
    /// −g2 and the points of g, h and u.
    fixed: Prepared,
    /// −g2 and the points of the attributes.
    attributes: Prepared,
}

/// Claim of one client: the signed points, slot by slot, and the signatures.
type Claim<'a> = (&'a [G1], &'a [CurvePoint]);

/// Costs of a verification, in its slowest operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Miller loops; each equation has a final exponentiation beside them.
    pub miller_loops: usize,
    /// Points of attributes that were moved into the subgroup.
    pub cleared: usize,
}

impl Verifier {
    /// Makes a key ready, which on vector lanes takes as long as verifying a few keys.
    pub fn new(authority: AuthorityKey) -> Self {
        let prepared = |points: &[G2]| {
            Prepared::new(core::iter::once(-G2::generator()).chain(points.iter().copied()).collect())
        };
        let (fixed, attributes) = authority.points.split_at_checked(FIXED_SLOTS).unwrap_or_default();
        Self { fixed: prepared(fixed), attributes: prepared(attributes), authority }
    }

    /// The authority's key.
    pub fn authority(&self) -> &AuthorityKey {
        &self.authority
    }

    /// The key, if the authority signed it.
    ///
    /// # Errors
    /// [`Error::Attributes`], [`Error::InvalidPoint`], [`Error::InvalidSignature`].
    pub fn verify(&self, key: UnverifiedPublicKey, rng: &mut dyn CryptoRngCore) -> Result<PublicKey, Error> {
        self.verify_batch([key].into(), rng).pop().unwrap_or(Err(Error::InvalidSignature))
    }

    /// The keys that the authority signed, in the order of the input; an error in the place of every other.
    ///
    /// Verifying k keys takes 2m + 6 multiplications for each and m + 5 Miller loops if all are good, and at
    /// most k + 1 times as much.
    pub fn verify_batch(
        &self,
        keys: Vec<UnverifiedPublicKey>,
        rng: &mut dyn CryptoRngCore,
    ) -> Vec<Result<PublicKey, Error>> {
        self.verify_batch_counting(keys, rng).0
    }

    /// The same, with its costs.
    pub fn verify_batch_counting(
        &self,
        keys: Vec<UnverifiedPublicKey>,
        rng: &mut dyn CryptoRngCore,
    ) -> (Vec<Result<PublicKey, Error>>, Effort) {
        let mut effort = Effort::default();
        let wanted = self.authority.attributes();
        let mut verdicts: Vec<Result<PublicKey, Error>> =
            keys.iter().map(|_| Err(Error::InvalidSignature)).collect();
        let mut candidates = Vec::with_capacity(keys.len());
        for ((at, key), verdict) in keys.into_iter().enumerate().zip(&mut verdicts) {
            match key.attributes() {
                found if found == wanted => candidates.push((at, key)),
                found => *verdict = Err(Error::Attributes { wanted, found }),
            }
        }
        // §A8: four Miller loops before hundreds.
        let claims: Vec<Claim<'_>> = candidates.iter().map(|(_, key)| key.fixed()).collect();
        let signed = sift(&self.fixed, &claims, &mut effort, rng);
        drop(claims);
        let mut cleared = Vec::with_capacity(candidates.len());
        for ((at, key), signed) in candidates.into_iter().zip(signed) {
            if !signed {
                continue;
            }
            // Only for keys whose first three slots are signed: hundreds of multiplications.
            effort.cleared = effort.cleared.saturating_add(wanted);
            match key.clear() {
                Ok(key) => cleared.push((at, key)),
                Err(error) => put(&mut verdicts, at, Err(error)),
            }
        }
        // The second equation: m + 1 Miller loops for all of them.
        let claims: Vec<Claim<'_>> = cleared.iter().map(|(_, key)| key.attributes()).collect();
        let signed = sift(&self.attributes, &claims, &mut effort, rng);
        drop(claims);
        for ((at, key), signed) in cleared.into_iter().zip(signed) {
            if signed {
                put(&mut verdicts, at, Ok(key.verified(self.authority.fingerprint())));
            }
        }
        (verdicts, effort)
    }

    /// Verifies points that are known to be in the group.
    pub(crate) fn verify_points(&self, points: &KeyPoints, rng: &mut dyn CryptoRngCore) -> Result<(), Error> {
        let encoded = G1::encode_uncompressed(&points.all()).concat();
        let key = UnverifiedPublicKey::decode(&encoded, self.authority.attributes())?;
        self.verify(key, rng).map(drop)
    }
}

fn put<T>(places: &mut [T], at: usize, value: T) {
    if let Some(place) = places.get_mut(at) {
        *place = value;
    }
}

/// Finds out which claims are true: verifies all at once, and one by one if that fails.
fn sift(
    keys: &Prepared,
    claims: &[Claim<'_>],
    effort: &mut Effort,
    rng: &mut dyn CryptoRngCore,
) -> Vec<bool> {
    if holds(keys, claims, effort, rng) {
        return alloc::vec![true; claims.len()];
    }
    // Each client alone, so that what k clients cost grows with k and no faster.
    match claims {
        [_] => [false].into(),
        _ => claims.iter().map(|claim| holds(keys, &[*claim], effort, rng)).collect(),
    }
}

/// Returns true if all claims are true.
fn holds(keys: &Prepared, claims: &[Claim<'_>], effort: &mut Effort, rng: &mut dyn CryptoRngCore) -> bool {
    let Some((signed, _)) = claims.first() else { return true };
    let slots = signed.len();
    effort.miller_loops = effort.miller_loops.saturating_add(slots.saturating_add(1));
    // A weight of 128 bits for each client and slot, drawn when all keys are in.
    let weights: Vec<[u64; 2]> = (0..claims.len().saturating_mul(slots)).map(|_| weight(rng)).collect();
    let signatures: Vec<CurvePoint> =
        claims.iter().flat_map(|(_, signatures)| *signatures).copied().collect();
    // (1 − x)·Σ w·σ: what is outside the subgroup vanishes.
    let Ok(signatures) = CurvePoint::combine_cleared(&signatures, &weights) else { return false };
    // One row for each client, one column for each slot.
    let signed: Vec<G1> = claims.iter().flat_map(|(signed, _)| *signed).copied().collect();
    let Ok(sums) = G1::sum_weighted(&signed, &weights, slots) else { return false };
    let points: Vec<G1> = core::iter::once(signatures).chain(sums).collect();
    // e(Σ w·σ, g2) = Σ_slot e(Σ_client w·M, pk_slot), with −g2 on the left.
    keys.product_is_one(&points)
}
