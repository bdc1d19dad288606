//! Operations on many points of G1 at once, faster than one by one on vector lanes, and some of them elsewhere.

use alloc::vec::Vec;

use crate::backend::{Active, Backend};
use crate::point::same_length;
use crate::{G1, Group as _, PairingError, Scalar};

impl G1 {
    /// scalar · point for each pair of the two slices, in constant time where multiplying a point takes it.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn multiply_each(points: &[Self], scalars: &[Scalar]) -> Result<Vec<Self>, PairingError> {
        same_length(points.len(), scalars.len())?;
        Ok(Active::multiply_each(points, scalars))
    }

    /// scalar · point for each point, in constant time where multiplying a point takes it.
    #[must_use]
    pub fn multiply_points(points: &[Self], scalar: &Scalar) -> Vec<Self> {
        Active::multiply_points(points, scalar)
    }

    /// scalar · generator for each scalar, in constant time where multiplying a point takes it.
    #[must_use]
    pub fn multiply_generator_by_each(scalars: &[Scalar]) -> Vec<Self> {
        Active::multiply_generator_by_each(scalars)
    }

    /// Σ (a + b·z²) · point for weights [a, b], with z the absolute value of the curve's parameter: 2^128
    /// different scalars, with half of the doublings that integers of 128 bits take. Not constant-time.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn msm_weighted(points: &[Self], weights: &[[u64; 2]]) -> Result<Self, PairingError> {
        let sums = Self::sum_weighted(points, weights, 1)?;
        Ok(sums.first().copied().unwrap_or_default())
    }

    /// The sums of [`msm_weighted`](Self::msm_weighted), column by column, of points and weights that are in
    /// rows of so many columns, one row after the other. As many as there are columns. Not constant-time.
    ///
    /// # Errors
    /// [`PairingError::UnequalLengths`] if the slices have different lengths.
    pub fn sum_weighted(
        points: &[Self],
        weights: &[[u64; 2]],
        columns: usize,
    ) -> Result<Vec<Self>, PairingError> {
        same_length(points.len(), weights.len())?;
        match points {
            [] => Ok(alloc::vec![Self::identity(); columns]),
            _ => Ok(Active::sum_weighted(points, weights, columns)),
        }
    }
}
