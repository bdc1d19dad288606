//! Secret polynomials.

use alloc::vec::Vec;

use rand_core::CryptoRngCore;
use zeroize::Zeroize as _;

use crate::{Error, Field, MAX_SHARES};

/// A polynomial whose value at 0 is a secret. Erased when dropped; `Debug` prints only the number of its
/// coefficients.
#[derive(derive_more::Debug)]
#[debug("Polynomial({} coefficients)", self.0.len())]
pub struct Polynomial<F: Field>(Vec<F>);

impl<F: Field> Polynomial<F> {
    /// A polynomial of these coefficients, the constant one first.
    ///
    /// # Errors
    /// [`Error::NoShares`] if there is none, [`Error::TooManyShares`].
    pub fn new(coefficients: Vec<F>) -> Result<Self, Error> {
        // Made first, so that refused values are erased as well.
        let polynomial = Self(coefficients);
        match polynomial.0.len() {
            0 => Err(Error::NoShares),
            len if len > MAX_SHARES => Err(Error::TooManyShares),
            _ => Ok(polynomial),
        }
    }

    /// A random polynomial of `threshold` coefficients, the constant one given.
    ///
    /// # Errors
    /// [`Error::ThresholdZero`], [`Error::TooManyShares`].
    pub fn random(
        constant: &F,
        threshold: usize,
        rng: &mut (impl CryptoRngCore + ?Sized),
    ) -> Result<Self, Error> {
        let others = threshold.checked_sub(1).ok_or(Error::ThresholdZero)?;
        if threshold > MAX_SHARES {
            return Err(Error::TooManyShares);
        }
        // Room for all of them at once: a vector that grows leaves copies behind.
        let mut coefficients = Vec::with_capacity(threshold);
        coefficients.push(*constant);
        coefficients.extend((0..others).map(|_| F::random(rng)));
        Ok(Self(coefficients))
    }

    /// Number of points that determine it.
    #[must_use]
    pub const fn threshold(&self) -> usize {
        self.0.len()
    }

    /// Value of the polynomial at `x`: the secret at 0, shares elsewhere.
    #[must_use]
    pub fn evaluate(&self, x: u32) -> F {
        let x = F::from(u64::from(x));
        // Horner's rule.
        self.0.iter().rev().fold(F::ZERO, |value, coefficient| value * x + *coefficient)
    }

    /// The coefficients, the constant one first. The caller controls where they go.
    #[must_use]
    pub fn expose(&self) -> &[F] {
        &self.0
    }
}

impl<F: Field> Drop for Polynomial<F> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
