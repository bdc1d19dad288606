//! Lagrange coefficients at 0: λ_i = Π_(j≠i) x_j / (x_j − x_i), so that Σ λ_i·q(x_i) = q(0) for every
//! polynomial q of a degree below the number of points.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::field::invert_all;
use crate::{Error, Field, MAX_SHARES};

/// The coefficients of the shares with these indices, in their order. Costs n² multiplications of
/// integers, at most half as many in the field, and one inversion.
///
/// # Errors
/// [`Error::NoShares`], [`Error::TooManyShares`], [`Error::ZeroIndex`], [`Error::DuplicateIndex`].
pub fn lagrange_at_zero<F: Field>(indices: &[u32]) -> Result<Vec<F>, Error> {
    check(indices)?;
    let product = indices.iter().fold(F::ONE, |product, &x| product * F::from(u64::from(x)));
    // λ_i = Π_j x_j / (x_i · Π_(j≠i) (x_j − x_i))
    let mut coefficients: Vec<F> = indices.iter().map(|&own| denominator(indices, own)).collect();
    // Different small numbers differ in a field that large: none of these is 0.
    invert_all(&mut coefficients).ok_or(Error::ZeroIndex)?;
    for coefficient in &mut coefficients {
        *coefficient = *coefficient * product;
    }
    Ok(coefficients)
}

/// x_i · Π_(j≠i) (x_j − x_i). Factors are small, so several of them make one integer before the field
/// multiplies.
fn denominator<F: Field>(indices: &[u32], own: u32) -> F {
    let (mut product, mut integer, mut negative) = (F::ONE, u64::from(own), false);
    for &x in indices.iter().filter(|&&x| x != own) {
        let factor = u64::from(x.abs_diff(own));
        negative ^= x < own;
        integer = integer.checked_mul(factor).unwrap_or_else(|| {
            product = product * F::from(integer);
            factor
        });
    }
    product = product * F::from(integer);
    if negative { -product } else { product }
}

/// Lagrange coefficients as fractions with one denominator: λ_i = numerators\[i\] / denominator, in lowest
/// terms.
///
/// Multiplying points by the small numerators and only their sum by the inverse of the denominator is cheaper
/// than multiplying each by a coefficient as long as the field. The denominator of indices 1 to n is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rational {
    /// Numerators in the order of the indices; may be negative.
    pub numerators: Vec<i128>,
    /// Denominator, above 0.
    pub denominator: i128,
}

/// The coefficients of the shares with these indices as fractions, or `None` if they do not fit 128 bits.
/// They do fit for up to three indices of any size, and did for every set of indices up to 64 that was tried;
/// those of 1 to n fit up to n = 130. Far-flung indices soon do not.
///
/// # Errors
/// [`Error::NoShares`], [`Error::TooManyShares`], [`Error::ZeroIndex`], [`Error::DuplicateIndex`].
pub fn rational_lagrange(indices: &[u32]) -> Result<Option<Rational>, Error> {
    check(indices)?;
    Ok(rational(indices))
}

fn rational(indices: &[u32]) -> Option<Rational> {
    let fractions: Vec<(i128, i128)> =
        indices.iter().map(|&own| fraction(indices, own)).collect::<Option<_>>()?;
    // The least common multiple of all denominators.
    let denominator = fractions
        .iter()
        .try_fold(1_i128, |common, &(_, own)| common.checked_mul(own.checked_div(gcd(common, own))?))?;
    let numerators = fractions
        .iter()
        .map(|&(numerator, own)| numerator.checked_mul(denominator.checked_div(own)?))
        .collect::<Option<_>>()?;
    Some(Rational { numerators, denominator })
}

/// A coefficient in lowest terms, its denominator above 0; factors are cancelled as they come, so that
/// numbers stay small.
fn fraction(indices: &[u32], own: u32) -> Option<(i128, i128)> {
    let (mut numerator, mut denominator) = (1_i128, 1_i128);
    for &x in indices.iter().filter(|&&x| x != own) {
        let (mut above, mut below) = (i128::from(x), difference(x, own));
        cancel(&mut above, &mut below)?;
        cancel(&mut above, &mut denominator)?;
        cancel(&mut numerator, &mut below)?;
        numerator = numerator.checked_mul(above)?;
        denominator = denominator.checked_mul(below)?;
    }
    if denominator < 0 {
        Some((numerator.checked_neg()?, denominator.checked_neg()?))
    } else {
        Some((numerator, denominator))
    }
}

/// Divides both by what divides both.
fn cancel(above: &mut i128, below: &mut i128) -> Option<()> {
    let common = gcd(*above, *below);
    *above = above.checked_div(common)?;
    *below = below.checked_div(common)?;
    Some(())
}

/// The greatest common divisor of two numbers that are not both 0, above 0.
fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    i128::try_from(a).unwrap_or(1).max(1)
}

fn difference(x: u32, own: u32) -> i128 {
    i128::from(x).saturating_sub(i128::from(own))
}

/// Checks indices: at least one, not too many, none 0, none twice.
fn check(indices: &[u32]) -> Result<(), Error> {
    if indices.is_empty() {
        return Err(Error::NoShares);
    }
    if indices.len() > MAX_SHARES {
        return Err(Error::TooManyShares);
    }
    let mut seen = BTreeSet::new();
    for &index in indices {
        // At 0 is the secret itself.
        if index == 0 {
            return Err(Error::ZeroIndex);
        }
        // Two equal x would make a difference of zero in a denominator.
        if !seen.insert(index) {
            return Err(Error::DuplicateIndex(index));
        }
    }
    Ok(())
}
