//! Combines key shares into the key of an identity.
//!
//! Combines first and checks the result once; looks for wrong shares only if there is one. Nobody gets a key
//! that was not checked, and nobody is blamed but for a share that fails on its own.
//!
//! | what | pairings | beside that |
//! |---|---|---|
//! | [`combine`], all shares right | 2 | one combination of t points of G2 |
//! | [`verify_batch`] of n, all right | 2 | one combination of n points in each group, with integers of 128 bits |
//! | either, k of n wrong | about 2·k·log₂(n) more | two such combinations for every half that is looked at |

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_pairing::{G1, G2, PairingError, product_is_one};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::identity_key::equation;
use crate::public_shares::coefficients;
use crate::{
    Culprit, Error, IdentityKey, IdentityPoint, KeyShare, PublicShares, ShareFault, UnverifiedKeyShare,
};

/// Check that pairings cancel out: [`product_is_one`], or a function that counts them as well.
type Check<'a> = &'a dyn Fn(&[(G1, G2)]) -> bool;

/// The key of an identity out of shares of any t KGCs: K = Σ λ_j·K_j, checked by e(P1, K) = e(MPK, Q).
///
/// Of more than t shares the first t are taken. If those do not make the key, all are checked.
///
/// # Errors
/// [`Error::InvalidKeyShares`] with every KGC whose share is foreign, came twice or, if the key is not right,
/// is wrong; [`Error::TooFewShares`].
pub fn combine(
    publics: &PublicShares,
    point: &IdentityPoint,
    shares: &[UnverifiedKeyShare],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<IdentityKey, Error> {
    combine_checked(publics, point, shares, rng, &product_is_one)
}

/// Checks any number of shares of one identity's key at once: with random weights w_j of 128 bits,
/// e(P1, Σ w_j·K_j) = e(Σ w_j·S_j, Q). Wrong ones pass with a probability of 2^−128.
///
/// # Errors
/// [`Error::InvalidKeyShares`] with every KGC whose share is foreign, came twice or is wrong.
pub fn verify_batch(
    publics: &PublicShares,
    point: &IdentityPoint,
    shares: &[UnverifiedKeyShare],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Vec<KeyShare>, Error> {
    let claims = claims(publics, shares)?;
    let culprits = WeightedShares::new(&claims, point, rng, &product_is_one).wrong()?;
    if culprits.is_empty() {
        Ok(shares.iter().map(|share| share.claimed().clone()).collect())
    } else {
        Err(Error::InvalidKeyShares { culprits })
    }
}

fn combine_checked(
    publics: &PublicShares,
    point: &IdentityPoint,
    shares: &[UnverifiedKeyShare],
    rng: &mut (impl CryptoRngCore + ?Sized),
    check: Check<'_>,
) -> Result<IdentityKey, Error> {
    let claims = claims(publics, shares)?;
    let needed = usize::from(publics.threshold());
    // §4.3: the first t shares are combined and checked once.
    let Some(taken) = claims.get(..needed) else {
        return Err(Error::TooFewShares { needed, given: claims.len() });
    };
    // K = Σ λ_j·K_j
    let lambdas = coefficients(taken.iter().map(|claim| claim.index))?;
    let keys: Zeroizing<Vec<G2>> = Zeroizing::new(taken.iter().map(|claim| claim.key).collect());
    let key = Zeroizing::new(G2::msm(&keys, &lambdas)?);
    if check(&equation(*key, *publics.master().point(), point)) {
        return Ok(IdentityKey::verified(*key));
    }
    // §4.3: only if the key is wrong, the wrong shares are looked for.
    let culprits = WeightedShares::new(&claims, point, rng, check).wrong()?;
    // Right shares of a consistent quorum would have made the key.
    if culprits.is_empty() {
        Err(Error::InconsistentShares)
    } else {
        Err(Error::InvalidKeyShares { culprits })
    }
}

/// The claim that K_j belongs to S_j, to be checked.
#[derive(Clone, Copy)]
struct Claim {
    index: u16,
    key: G2,
    public: G1,
}

impl Zeroize for Claim {
    fn zeroize(&mut self) {
        self.key.zeroize();
    }
}

/// Puts shares beside the public shares of their indices.
fn claims(publics: &PublicShares, shares: &[UnverifiedKeyShare]) -> Result<Zeroizing<Vec<Claim>>, Error> {
    let (mut seen, mut culprits) = (BTreeSet::new(), BTreeSet::new());
    let mut claims = Zeroizing::new(Vec::with_capacity(shares.len().min(publics.shares().len())));
    for share in shares {
        // A share that is foreign or comes twice is blamed without arithmetic.
        let index = share.index();
        match publics.share(index) {
            None => _ = culprits.insert(Culprit { index, fault: ShareFault::Foreign }),
            Some(_) if !seen.insert(index) => {
                _ = culprits.insert(Culprit { index, fault: ShareFault::Duplicate });
            }
            Some(public) => claims.push(Claim { index, key: *share.claimed().point(), public: *public }),
        }
    }
    if culprits.is_empty() {
        Ok(claims)
    } else {
        Err(Error::InvalidKeyShares { culprits: culprits.into_iter().collect() })
    }
}

/// Shares with their weights.
struct WeightedShares<'a> {
    claims: &'a [Claim],
    weights: Vec<i128>,
    point: &'a IdentityPoint,
    check: Check<'a>,
}

impl<'a> WeightedShares<'a> {
    fn new(
        claims: &'a [Claim],
        point: &'a IdentityPoint,
        rng: &mut (impl CryptoRngCore + ?Sized),
        check: Check<'a>,
    ) -> Self {
        // A weight of 128 bits for each share, drawn when all are in.
        Self { claims, weights: claims.iter().map(|_| weight(rng)).collect(), point, check }
    }

    /// Every KGC whose share is wrong, ascending.
    fn wrong(&self) -> Result<Vec<Culprit>, PairingError> {
        let mut culprits = Vec::new();
        if !self.right(self.claims, &self.weights)? {
            self.bisect(self.claims, &self.weights, &mut culprits)?;
        }
        culprits.sort_unstable();
        Ok(culprits)
    }

    /// Searches for wrong shares in two halves. A single one is to blame: that share was checked by itself.
    fn bisect(
        &self,
        claims: &[Claim],
        weights: &[i128],
        culprits: &mut Vec<Culprit>,
    ) -> Result<(), PairingError> {
        if let [claim] = claims {
            culprits.push(Culprit { index: claim.index, fault: ShareFault::Wrong });
            return Ok(());
        }
        let middle = claims.len() / 2;
        let ((left, right), (left_weights, right_weights)) =
            (claims.split_at(middle), weights.split_at(middle));
        for (half, weights) in [(left, left_weights), (right, right_weights)] {
            if !self.right(half, weights)? {
                self.bisect(half, weights, culprits)?;
            }
        }
        Ok(())
    }

    /// e(P1, Σ w_j·K_j) = e(Σ w_j·S_j, Q)
    fn right(&self, claims: &[Claim], weights: &[i128]) -> Result<bool, PairingError> {
        if let [claim] = claims {
            return Ok((self.check)(&equation(claim.key, claim.public, self.point)));
        }
        // e(P1, Σ w_j·K_j) = e(Σ w_j·S_j, Q)
        let keys: Zeroizing<Vec<G2>> = Zeroizing::new(claims.iter().map(|claim| claim.key).collect());
        let publics: Vec<G1> = claims.iter().map(|claim| claim.public).collect();
        let (key, public) = (G2::msm_small(&keys, weights)?, G1::msm_small(&publics, weights)?);
        Ok((self.check)(&equation(key, public, self.point)))
    }
}

/// A random integer of 128 bits, its sign one of them. Not zero, with which a share would not be checked at
/// all.
fn weight(rng: &mut (impl CryptoRngCore + ?Sized)) -> i128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    match i128::from_le_bytes(bytes) {
        0 => 1,
        weight => weight,
    }
}

#[cfg(test)]
mod tests;
