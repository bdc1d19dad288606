//! Feldman's commitments, against which shares are verified.

use alloc::vec::Vec;

use crate::group::times;
use crate::{Error, MAX_SHARES, Polynomial, PrimeOrderGroup, SecretShare, UnverifiedShare};

/// The coefficients of a polynomial, each times the generator. It binds to the polynomial, and hides it as
/// well as discrete logarithms are hard; its first point is the public key of the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolynomialCommitment<G: PrimeOrderGroup>(Vec<G>);

impl<G: PrimeOrderGroup> PolynomialCommitment<G> {
    /// Commits to a polynomial.
    #[must_use]
    pub fn commit(polynomial: &Polynomial<G::Scalar>) -> Self {
        // Feldman, commitment: C_k = a_k·G for each coefficient a_k.
        Self(polynomial.expose().iter().map(G::multiply_generator).collect())
    }

    /// Takes points that were received and decoded, the constant one first.
    ///
    /// A caller that expects a certain threshold compares it with [`threshold`](Self::threshold): a longer
    /// commitment would make shares that as many as agreed do not recover.
    ///
    /// # Errors
    /// [`Error::NoShares`] if there is none, [`Error::TooManyShares`].
    pub fn new(points: Vec<G>) -> Result<Self, Error> {
        match points.len() {
            0 => Err(Error::NoShares),
            len if len > MAX_SHARES => Err(Error::TooManyShares),
            _ => Ok(Self(points)),
        }
    }

    /// The points, the constant one first. Encoding them is the caller's.
    #[must_use]
    pub fn points(&self) -> &[G] {
        &self.0
    }

    /// Number of shares that recover the secret.
    #[must_use]
    pub const fn threshold(&self) -> usize {
        self.0.len()
    }

    /// The public key of the share at `index`, q(index)·G; that of the secret at 0.
    #[must_use]
    pub fn public(&self, index: u32) -> G {
        // Horner's rule: Σ_k index^k·C_k.
        self.0.iter().rev().fold(G::identity(), |value, &point| times(value, index) + point)
    }

    /// Checks a share: value·G = Σ_k index^k·C_k.
    ///
    /// # Errors
    /// [`Error::InvalidShare`].
    pub fn verify(&self, share: UnverifiedShare<G::Scalar>) -> Result<SecretShare<G::Scalar>, Error> {
        let claimed = share.claimed();
        // Feldman, verification: value·G = Σ_k index^k·C_k.
        if G::multiply_generator(claimed.expose()) == self.public(claimed.index()) {
            Ok(share.into_verified())
        } else {
            Err(Error::InvalidShare(share.index()))
        }
    }
}

impl<G: PrimeOrderGroup> core::ops::Add<&Self> for PolynomialCommitment<G> {
    type Output = Self;

    /// The commitment to the sum of both polynomials, whose shares are the sums of shares.
    fn add(self, other: &Self) -> Self {
        let len = self.0.len().max(other.0.len());
        let point = |points: &[G], place: usize| points.get(place).copied().unwrap_or_else(G::identity);
        // Commitments add up as their polynomials do.
        Self((0..len).map(|place| point(&self.0, place) + point(&other.0, place)).collect())
    }
}
