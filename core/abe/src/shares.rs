//! Linear secret sharing over a formula, and the coefficients that put a secret together again.
//!
//! The secret is the root's value. A gate hands its value v down:
//!
//! | gate | children's values | coefficients |
//! |---|---|---|
//! | 1 of n | v, v, … | 1 |
//! | n of n | random, but adding up to v | 1 |
//! | k of n | f(1), f(2), … of a random polynomial f of degree k − 1 with f(0) = v (Shamir) | Lagrange's at 0 |
//!
//! This is the monotone span program of the formula (Lewko and Waters, eprint 2010/351, appendix G, with
//! Shamir's rows for thresholds), one row per leaf. Conjunctions and disjunctions multiply nothing, neither
//! here nor where points are put together. Lagrange's coefficients are fractions of small integers; they stay
//! integers with one common denominator, by which only the sum is divided, as long as they fit 127 bits, and
//! become field elements beyond.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_pairing::{G1, Scalar};
use quiver_policy::{Formula, PolicyNode, SelectedGate, Selection, ThresholdGate};
use quiver_sharing::{Field, MAX_SHARES, Polynomial, Rational, lagrange_at_zero, rational_lagrange};
use rand_core::CryptoRngCore;

use crate::{AbeError, IS_SMALL};

/// Shares `secret` over `formula`: a value per leaf, from left to right.
///
/// # Errors
/// [`AbeError::TooLong`] for a threshold above [`MAX_SHARES`].
pub fn share<F: Field>(
    formula: &Formula,
    secret: F,
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<Zeroizing<Vec<F>>, AbeError> {
    let nodes = formula.nodes();
    let mut values = Zeroizing::new(alloc::vec![F::ZERO; nodes.len()]);
    let mut shares = Zeroizing::new(alloc::vec![F::ZERO; formula.leaves().len()]);
    if let Some(root) = values.last_mut() {
        *root = secret;
    }
    // From the back: every gate before its children.
    for (number, node) in nodes.iter().enumerate().rev() {
        let value = values.get(number).copied().unwrap_or(F::ZERO);
        match node {
            PolicyNode::Leaf(leaf) => {
                if let Some(share) = shares.get_mut(*leaf) {
                    *share = value;
                }
            }
            PolicyNode::Gate(gate) => hand_down(gate, value, &mut values, rng)?,
        }
    }
    Ok(shares)
}

fn hand_down<F: Field>(
    gate: &ThresholdGate,
    value: F,
    values: &mut [F],
    rng: &mut (impl CryptoRngCore + ?Sized),
) -> Result<(), AbeError> {
    let mut give = |child: usize, share: F| {
        if let Some(place) = values.get_mut(child) {
            *place = share;
        }
    };
    if gate.is_or() {
        // 1 of n: each child has the value itself.
        gate.children().iter().for_each(|&child| give(child, value));
    } else if let (true, Some((&last, others))) = (gate.is_and(), gate.children().split_last()) {
        // n of n: random values that add up to it.
        let mut rest = value;
        for &child in others {
            let share = F::random(rng);
            give(child, share);
            rest = rest - share;
        }
        give(last, rest);
    } else {
        // k of n: Shamir's f(1), f(2), …, where f(0) is the value.
        let too_many = |_| AbeError::TooLong { what: "a threshold", limit: MAX_SHARES };
        let polynomial = Polynomial::random(&value, gate.threshold(), rng).map_err(too_many)?;
        for (x, &child) in (1..).zip(gate.children()) {
            give(child, polynomial.evaluate(x));
        }
    }
    Ok(())
}

/// Coefficients for the leaves of a selection: secret = Σ factor · share / denominator.
#[derive(Debug)]
pub(crate) enum Weights<F> {
    /// Integers, with a common denominator above zero.
    Small {
        /// One per leaf of the selection, in its order.
        factors: Vec<i128>,
        /// 1 unless a threshold is involved.
        denominator: i128,
    },
    /// Field elements, with the denominator 1.
    Full(Vec<F>),
}

impl<F: Field> Weights<F> {
    /// The coefficients of the leaves that `selection` chose of `formula`.
    pub(crate) fn of(formula: &Formula, selection: &Selection) -> Self {
        Self::small(formula, selection).unwrap_or_else(|| Self::Full(coefficients(formula, selection)))
    }

    fn small(formula: &Formula, selection: &Selection) -> Option<Self> {
        // A board opens few thresholds, and has no flash for fractions.
        if IS_SMALL {
            let plain = |gate: &SelectedGate| match formula.nodes().get(gate.node()) {
                Some(PolicyNode::Gate(gate)) => gate.is_or() || gate.is_and(),
                _ => false,
            };
            let factors = alloc::vec![1; selection.leaves().len()];
            return selection.gates().iter().all(plain).then_some(Self::Small { factors, denominator: 1 });
        }
        let fractions = propagate(formula, selection, ReducedFraction::ONE, |above, gate, places| {
            if gate.is_or() || gate.is_and() {
                // All coefficients of a sum are 1: the weight passes down.
                return Some(alloc::vec![*above; places.len()]);
            }
            // k of n: Lagrange's coefficients at 0, as fractions of small integers.
            let Rational { numerators, denominator } = rational_lagrange(places).ok()??;
            numerators.iter().map(|&numerator| above.times(numerator, denominator)).collect()
        })?;
        // One denominator for all leaves: only the sum is divided by it.
        let denominator =
            fractions.iter().try_fold(1, |common, fraction| lcm(common, fraction.denominator))?;
        let factors = fractions.iter().map(|fraction| fraction.over(denominator)).collect::<Option<_>>()?;
        Some(Self::Small { factors, denominator })
    }

    /// Number of leaves.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Small { factors, .. } => factors.len(),
            Self::Full(factors) => factors.len(),
        }
    }

    /// 1 / denominator, or nothing if that is 1.
    pub(crate) fn divisor(&self) -> Option<F> {
        match self {
            Self::Small { denominator, .. } if !IS_SMALL && *denominator != 1 => {
                F::from_integer(*denominator).invert()
            }
            _ => None,
        }
    }
}

/// The coefficients as field elements, one per leaf of the selection, in its order.
#[must_use]
pub fn coefficients<F: Field>(formula: &Formula, selection: &Selection) -> Vec<F> {
    let factors = propagate(formula, selection, F::ONE, |above, gate, places| {
        if gate.is_or() || gate.is_and() {
            return Some(alloc::vec![*above; places.len()]);
        }
        // k of n: Lagrange's coefficients at 0, in the field.
        Some(lagrange_at_zero::<F>(places).ok()?.into_iter().map(|factor| *above * factor).collect())
    });
    factors.unwrap_or_default()
}

impl Weights<Scalar> {
    /// Σ factor · point over those leaves of the selection, by their place in it, for which `point` has one.
    /// Not divided.
    pub(crate) fn combine(&self, point: impl Fn(usize) -> Option<G1>) -> Result<G1, AbeError> {
        let (mut points, mut places) = (Zeroizing::new(Vec::with_capacity(self.len())), Vec::new());
        for place in 0..self.len() {
            if let Some(point) = point(place) {
                points.push(point);
                places.push(place);
            }
        }
        let sum = match self {
            Self::Small { factors, .. } => {
                let factors: Vec<i128> =
                    places.iter().filter_map(|&place| factors.get(place).copied()).collect();
                if IS_SMALL || factors.iter().all(|&factor| factor == 1) {
                    return Ok(points.iter().sum());
                }
                G1::msm_small(&points, &factors)
            }
            Self::Full(factors) => {
                let factors: Vec<Scalar> =
                    places.iter().filter_map(|&place| factors.get(place).copied()).collect();
                G1::msm(&points, &factors)
            }
        };
        sum.map_err(|_| UNEQUAL)
    }

    /// factor · point for one leaf of the selection, by its place in it. Not divided.
    pub(crate) fn weigh(&self, place: usize, point: &G1) -> Result<G1, AbeError> {
        match self {
            Self::Small { factors, .. } => match factors.get(place) {
                Some(1) => Ok(*point),
                Some(_) if IS_SMALL => Ok(*point),
                Some(&factor) => G1::msm_small(&[*point], &[factor]).map_err(|_| UNEQUAL),
                None => Err(UNEQUAL),
            },
            Self::Full(factors) => factors.get(place).map(|factor| *point * factor).ok_or(UNEQUAL),
        }
    }
}

/// Weights are made for the leaves of a selection, one each; nothing leads here.
const UNEQUAL: AbeError = AbeError::Malformed("as many weights as leaves");

/// Propagates a weight from the root to the leaves of a selection; `step` computes from the weight of a gate
/// those of its chosen children. Gates come before those below them.
fn propagate<W: Clone>(
    formula: &Formula,
    selection: &Selection,
    root: W,
    step: impl Fn(&W, &ThresholdGate, &[u32]) -> Option<Vec<W>>,
) -> Option<Vec<W>> {
    let mut weights = alloc::vec![None; formula.nodes().len()];
    *weights.last_mut()? = Some(root);
    for chosen in selection.gates() {
        let above = weights.get_mut(chosen.node())?.take()?;
        let Some(PolicyNode::Gate(gate)) = formula.nodes().get(chosen.node()) else { return None };
        for (&place, weight) in chosen.places().iter().zip(step(&above, gate, chosen.places())?) {
            let index = usize::try_from(place).ok()?.checked_sub(1)?;
            *weights.get_mut(*gate.children().get(index)?)? = Some(weight);
        }
    }
    // The rest are the leaves, in post-order and so from left to right, as the selection lists them.
    Some(weights.into_iter().flatten().collect())
}

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug)]
struct ReducedFraction {
    numerator: i128,
    /// Denominator, above zero.
    denominator: i128,
}

impl ReducedFraction {
    const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// Multiplies by `numerator / denominator`, if the product fits.
    fn times(&self, numerator: i128, denominator: i128) -> Option<Self> {
        let numerator = self.numerator.checked_mul(numerator)?;
        let denominator = self.denominator.checked_mul(denominator)?;
        let common = gcd(numerator, denominator);
        Some(Self {
            numerator: numerator.checked_div(common)?,
            denominator: denominator.checked_div(common)?,
        })
    }

    /// The numerator over a multiple of the denominator.
    fn over(&self, denominator: i128) -> Option<i128> {
        self.numerator.checked_mul(denominator.checked_div(self.denominator)?)
    }
}

/// The greatest common divisor, above zero if `b` is.
fn gcd(mut a: i128, mut b: i128) -> i128 {
    while let Some(rest) = a.checked_rem_euclid(b) {
        (a, b) = (b, rest);
    }
    a
}

/// The least common multiple of integers above zero.
fn lcm(a: i128, b: i128) -> Option<i128> {
    a.checked_div(gcd(a, b))?.checked_mul(b)
}
