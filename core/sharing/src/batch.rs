//! Batch verification of shares against one commitment.
//!
//! With random weights w_j, all shares are right if (Σ_j w_j·value_j)·G = Σ_k (Σ_j w_j·index_j^k)·C_k: one
//! combination of the commitment's points for all of them, where each alone would evaluate the commitment.

use alloc::vec::Vec;

use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::{Field, InvalidShares, PolynomialCommitment, PrimeOrderGroup, SecretShare, UnverifiedShare};

impl<G: PrimeOrderGroup> PolynomialCommitment<G> {
    /// Checks shares, of whatever indices, with random weights of 128 bits. Wrong ones pass with a
    /// probability of 2^−128.
    ///
    /// If they do not pass, halves are checked, and halves of a half that does not pass; each blamed share
    /// was checked alone.
    ///
    /// # Errors
    /// [`InvalidShares`] with the index of every wrong share.
    pub fn verify_batch(
        &self,
        shares: Vec<UnverifiedShare<G::Scalar>>,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Vec<SecretShare<G::Scalar>>, InvalidShares> {
        let weighted: Vec<Weighted<'_, G::Scalar>> =
            // Weights are drawn when the shares are in, so that no share can be chosen after its weight.
            shares.iter().map(|share| Weighted { share: share.claimed(), weight: weight(rng) }).collect();
        let mut culprits = Vec::new();
        self.bisect(&weighted, &mut culprits);
        if culprits.is_empty() {
            Ok(shares.into_iter().map(UnverifiedShare::into_verified).collect())
        } else {
            Err(InvalidShares { culprits })
        }
    }

    fn bisect(&self, shares: &[Weighted<'_, G::Scalar>], culprits: &mut Vec<u32>) {
        if self.all_right(shares) {
            return;
        }
        // A single share was checked alone.
        if let [alone] = shares {
            culprits.push(alone.share.index());
            return;
        }
        let (left, right) = shares.split_at(shares.len() / 2);
        self.bisect(left, culprits);
        self.bisect(right, culprits);
    }

    fn all_right(&self, shares: &[Weighted<'_, G::Scalar>]) -> bool {
        let values = shares.iter().map(|Weighted { share, weight }| *weight * *share.expose());
        let value = Zeroizing::new(values.fold(G::Scalar::ZERO, |sum, term| sum + term));
        // w_j·index_j^k, from one k to the next
        let mut powers: Vec<(G::Scalar, G::Scalar)> = shares
            .iter()
            .map(|Weighted { share, weight }| (*weight, G::Scalar::from(u64::from(share.index()))))
            .collect();
        let sums: Vec<G::Scalar> = self
            .points()
            .iter()
            .map(|_| {
                powers.iter_mut().fold(G::Scalar::ZERO, |sum, (power, index)| {
                    let term = *power;
                    *power = term * *index;
                    sum + term
                })
            })
            .collect();
        // (Σ_j w_j·value_j)·G = Σ_k (Σ_j w_j·index_j^k)·C_k
        G::multiply_generator(&value) == G::combine(self.points(), &sums)
    }
}

struct Weighted<'a, F: Field> {
    share: &'a SecretShare<F>,
    weight: F,
}

/// A random integer of 128 bits, its sign one of them. Not zero, with which a share would not be checked at
/// all.
fn weight<F: Field>(rng: &mut (impl CryptoRngCore + ?Sized)) -> F {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    match i128::from_le_bytes(bytes) {
        0 => F::ONE,
        weight => F::from_integer(weight),
    }
}
