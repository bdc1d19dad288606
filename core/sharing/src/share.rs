//! Shares, and the secrets they are made of.

use alloc::vec::Vec;

use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::{Error, Field, MAX_SHARES, Polynomial, lagrange_at_zero};

/// A share of a secret: a polynomial's value at an index of 1 or above. Erased when dropped; `Debug` prints
/// the index.
#[derive(Clone, derive_more::Debug)]
#[debug("SecretShare({index})")]
pub struct SecretShare<F: Field> {
    index: u32,
    value: F,
}

impl<F: Field> SecretShare<F> {
    /// A share that is known to be right, because its holder made it, verified it or stored it. A received
    /// one is an [`UnverifiedShare`].
    ///
    /// # Errors
    /// [`Error::ZeroIndex`].
    pub fn new(index: u32, value: F) -> Result<Self, Error> {
        let share = Self { index, value };
        if index == 0 { Err(Error::ZeroIndex) } else { Ok(share) }
    }

    /// The index, 1 or above. Public.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The value. The caller controls where it goes.
    #[must_use]
    pub const fn expose(&self) -> &F {
        &self.value
    }
}

impl<F: Field> Drop for SecretShare<F> {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}

/// A received share, not verified: a [`PolynomialCommitment`](crate::PolynomialCommitment) verifies it.
#[derive(Clone, Debug, derive_more::From)]
pub struct UnverifiedShare<F: Field>(SecretShare<F>);

impl<F: Field> UnverifiedShare<F> {
    /// Takes what was received.
    ///
    /// # Errors
    /// [`Error::ZeroIndex`].
    pub fn new(index: u32, value: F) -> Result<Self, Error> {
        SecretShare::new(index, value).map(Self)
    }

    /// The index it claims, 1 or above.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.0.index
    }

    pub(crate) const fn claimed(&self) -> &SecretShare<F> {
        &self.0
    }

    pub(crate) fn into_verified(self) -> SecretShare<F> {
        self.0
    }
}

/// Splits a secret into shares with the indices 1 to `count`, of which any `threshold` recover it.
///
/// # Errors
/// [`Error::ThresholdZero`], [`Error::ThresholdAboveCount`], [`Error::TooManyShares`].
pub fn split<F: Field>(
    secret: &F,
    threshold: usize,
    count: usize,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Vec<SecretShare<F>>, Error> {
    if count > MAX_SHARES {
        return Err(Error::TooManyShares);
    }
    if threshold > count {
        return Err(Error::ThresholdAboveCount { threshold, count });
    }
    // Shamir, sharing: q of degree t − 1 with q(0) the secret, share i is q(i).
    let polynomial = Polynomial::random(secret, threshold, rng)?;
    let shares = (1_u32..).take(count).map(|index| SecretShare { index, value: polynomial.evaluate(index) });
    Ok(shares.collect())
}

/// The secret that these shares determine, if they are as many as the threshold or more. Of fewer the result
/// is another value, which looks as random as the secret: the shares alone cannot tell.
///
/// # Errors
/// [`Error::NoShares`], [`Error::TooManyShares`], [`Error::DuplicateIndex`].
pub fn combine<F: Field>(shares: &[SecretShare<F>]) -> Result<Zeroizing<F>, Error> {
    let indices: Vec<u32> = shares.iter().map(SecretShare::index).collect();
    let coefficients = lagrange_at_zero::<F>(&indices)?;
    // Shamir, recovery: q(0) = Σ λ_i·q(i).
    let terms = shares.iter().zip(coefficients);
    Ok(Zeroizing::new(terms.fold(F::ZERO, |sum, (share, coefficient)| sum + share.value * coefficient)))
}
