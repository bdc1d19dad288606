//! Additions and doublings of many points of G1 at once, in affine coordinates and constant time: they share
//! one inversion, so that an addition takes six products in the field and a doubling seven.
//!
//! What is secret is which points these are. None of the steps depends on it: where formulas have exceptions,
//! all cases are computed, and masks select.

use alloc::vec::Vec;

use ::blst::{blst_fp, blst_p1_affine};
use ark_ec::AffineRepr as _;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{Field as _, Zero as _};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroize;

use super::convert::Coordinate as _;
use super::ffi;
use crate::parameters::{Fq, g1};
use crate::{G1, Point};

/// Points that are worked on at once: an inversion takes as long as seventy products, and what is kept of
/// each point is to stay in memory close by.
const AT_ONCE: usize = 128;

/// The number of points for each of as few equal parts as hold [`AT_ONCE`] points at most.
pub(super) fn part(points: usize) -> usize {
    points.div_ceil(points.div_ceil(AT_ONCE).max(1)).max(1)
}

/// Which exceptions an addition is to know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceptions {
    /// Points are neither equal nor opposite ones, and none is the identity, unless both are.
    None,
    /// Points are whatever they are; others are not the identity, unless the point is, too.
    Every,
}

/// Points that are added to, or doubled, at once. Erased when dropped.
///
/// All steps are taken for all points one after the other, and values stay where blst writes them: a
/// processor waits if what was just written word by word is read at once.
pub(super) struct AffineBatch {
    pub(super) points: Vec<blst_p1_affine>,
    /// The slope of a point's line, to another point or the tangent, is rise/run.
    rises: Vec<blst_fp>,
    runs: Vec<blst_fp>,
    /// Products of the first runs: of none, of one, and so on.
    products: Vec<blst_fp>,
    /// Masks: a first point is the identity; a sum is.
    identities: Vec<[u64; 2]>,
}

impl AffineBatch {
    pub(super) fn new(points: Vec<blst_p1_affine>) -> Self {
        let count = points.len();
        let elements = |count| alloc::vec![blst_fp::default(); count];
        let mut products = elements(count.saturating_add(1));
        products.iter_mut().take(1).for_each(|product| *product = Fq::ONE.to_native());
        let identities = alloc::vec![[0; 2]; count];
        Self { points, rises: elements(count), runs: elements(count), products, identities }
    }

    /// Adds to each point the other in its place.
    pub(super) fn add(&mut self, others: &[blst_p1_affine], exceptions: Exceptions) {
        let slopes = self.rises.iter_mut().zip(&mut self.runs);
        for ((point, other), (rise, run)) in self.points.iter().zip(others).zip(slopes) {
            ffi::subtract(run, &other.x, &point.x);
            ffi::subtract(rise, &other.y, &point.y);
        }
        if exceptions == Exceptions::Every {
            self.set_exceptions();
        }
        let mut chords = Chords::new(self.invert());
        let slopes = self.rises.iter().zip(&self.runs).zip(&self.products);
        for ((point, other), ((rise, run), product)) in self.points.iter_mut().zip(others).zip(slopes).rev() {
            chords.replace(point, Some(other), rise, run, product);
        }
        if exceptions == Exceptions::Every {
            for ((point, other), [first, sum]) in self.points.iter_mut().zip(others).zip(&self.identities) {
                select(point, other, *first);
                select(point, &blst_p1_affine::default(), *sum);
            }
        }
    }

    /// Doubles each point. The identity stays as it is, and there are no points of order two.
    pub(super) fn double(&mut self) {
        for ((point, rise), run) in self.points.iter().zip(&mut self.rises).zip(&mut self.runs) {
            tangent(point, rise, run);
        }
        let mut chords = Chords::new(self.invert());
        let slopes = self.rises.iter().zip(&self.runs).zip(&self.products);
        for (point, ((rise, run), product)) in self.points.iter_mut().zip(slopes).rev() {
            chords.replace(point, None, rise, run, product);
        }
    }

    /// Takes the tangents for equal points, and finds out which are identities.
    fn set_exceptions(&mut self) {
        let [mut tangent_rise, mut tangent_run] = [blst_fp::default(); 2];
        let slopes = self.rises.iter_mut().zip(&mut self.runs);
        for ((point, (rise, run)), identities) in self.points.iter().zip(slopes).zip(&mut self.identities) {
            let (same_x, same_y) = (is_zero(run), is_zero(rise));
            tangent(point, &mut tangent_rise, &mut tangent_run);
            choose(rise, &tangent_rise, same_x & same_y);
            choose(run, &tangent_run, same_x & same_y);
            *identities = [is_zero(&point.y), same_x & !same_y];
        }
        tangent_rise.l.zeroize();
        tangent_run.l.zeroize();
    }

    /// Sets the products and inverts that of all runs. A run that is zero counts as one: then the sum means
    /// nothing, or both rise and point are zero, and so is the sum.
    fn invert(&mut self) -> blst_fp {
        let one = Fq::ONE.to_native();
        for run in &mut self.runs {
            let vertical = is_zero(run);
            choose(run, &one, vertical);
        }
        for (at, run) in self.runs.iter().enumerate() {
            if let (before, [next, ..]) = self.products.split_at_mut(at + 1)
                && let Some(product) = before.last()
            {
                ffi::multiply(next, product, run);
            }
        }
        self.products.last().map_or(one, ffi::invert)
    }
}

impl Drop for AffineBatch {
    fn drop(&mut self) {
        erase(&mut self.points);
        for element in self.rises.iter_mut().chain(&mut self.runs).chain(&mut self.products) {
            element.l.zeroize();
        }
        self.identities.zeroize();
    }
}

/// What replaces points by the third ones on their lines, from the last point to the first. Erased when dropped.
struct Chords {
    /// Of the product of all runs from here back.
    inverse: blst_fp,
    own: blst_fp,
    next: blst_fp,
    slope: blst_fp,
    rest: blst_fp,
    x: blst_fp,
}

impl Chords {
    fn new(inverse: blst_fp) -> Self {
        let [own, next, slope, rest, x] = [blst_fp::default(); 5];
        Self { inverse, own, next, slope, rest, x }
    }

    /// Puts the sum with the other point in the place of a point, or the double if there is no other.
    #[inline(always)]
    fn replace(
        &mut self,
        point: &mut blst_p1_affine,
        other: Option<&blst_p1_affine>,
        rise: &blst_fp,
        run: &blst_fp,
        product: &blst_fp,
    ) {
        let Self { inverse, own, next, slope, rest, x } = self;
        ffi::multiply(own, inverse, product);
        ffi::multiply(next, inverse, run);
        core::mem::swap(inverse, next);
        ffi::multiply(slope, rise, own);
        // x₃ = λ² − x₁ − x₂
        ffi::square(own, slope);
        ffi::subtract(rest, own, &point.x);
        ffi::subtract(x, rest, other.map_or(&point.x, |other| &other.x));
        // y₃ = λ·(x₁ − x₃) − y₁
        ffi::subtract(rest, &point.x, x);
        ffi::multiply(own, slope, rest);
        point.x = *x;
        let y = point.y;
        ffi::subtract(&mut point.y, own, &y);
    }
}

impl Drop for Chords {
    fn drop(&mut self) {
        let Self { inverse, own, next, slope, rest, x } = self;
        [inverse, own, next, slope, rest, x].iter_mut().for_each(|element| element.l.zeroize());
    }
}

/// The point, of which it shows whether it is the identity.
pub(super) fn to_point(affine: &blst_p1_affine) -> G1 {
    let [x, y] = [&affine.x, &affine.y].map(Fq::from_native);
    // No other point has y = 0.
    match y.is_zero() {
        true => Point::default(),
        false => Point(Affine::<g1::Config>::new_unchecked(x, y).into_group()),
    }
}

/// Erases points.
pub(super) fn erase(points: &mut [blst_p1_affine]) {
    for point in points {
        point.x.l.zeroize();
        point.y.l.zeroize();
    }
}

/// Rise and run of the tangent: 3x² and 2y.
fn tangent(point: &blst_p1_affine, rise: &mut blst_fp, run: &mut blst_fp) {
    let [mut square, mut twice] = [blst_fp::default(); 2];
    ffi::square(&mut square, &point.x);
    ffi::add(&mut twice, &square, &square);
    ffi::add(rise, &twice, &square);
    ffi::add(run, &point.y, &point.y);
}

/// The point becomes the other where the mask is set.
fn select(point: &mut blst_p1_affine, other: &blst_p1_affine, mask: u64) {
    choose(&mut point.x, &other.x, mask);
    choose(&mut point.y, &other.y, mask);
}

fn choose(element: &mut blst_fp, other: &blst_fp, mask: u64) {
    element.l.iter_mut().zip(&other.l).for_each(|(to, from)| *to ^= mask & (*to ^ from));
}

/// All ones for zero, else zero.
fn is_zero(element: &blst_fp) -> u64 {
    mask(element.l.iter().fold(0, |all, limb| all | limb).ct_eq(&0))
}

/// All ones for true, else zero.
pub(super) fn mask(choice: Choice) -> u64 {
    u64::conditional_select(&0, &u64::MAX, choice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blst::native::Native as _;
    use crate::{G1Curve, Group as _, Scalar};

    fn affine(points: &[G1]) -> Vec<blst_p1_affine> {
        G1Curve::normalise(&points.iter().map(G1Curve::to_native).collect::<Vec<_>>())
    }

    #[test]
    fn each_pair_is_added_whatever_the_others_are() {
        let multiple = |scalar: u64| G1::generator() * Scalar::from(scalar);
        let (one, two, identity) = (multiple(1), multiple(2), G1::identity());
        let points = [one, one, one, identity, identity, two, -one, -two];
        let others = [one, two, -one, identity, two, one, -two, two];
        let mut batch = AffineBatch::new(affine(&points));
        batch.add(&affine(&others), Exceptions::Every);
        let sums: Vec<G1> = points.iter().zip(&others).map(|(point, other)| *point + *other).collect();
        assert_eq!(batch.points, affine(&sums));
        batch.double();
        let doubled: Vec<G1> = sums.iter().map(G1::double).collect();
        assert_eq!(batch.points, affine(&doubled));
        // And without exceptions, where there are none but two identities.
        let (points, others) = ([one, identity, two, -one], [two, identity, one, -two]);
        let mut batch = AffineBatch::new(affine(&points));
        batch.add(&affine(&others), Exceptions::None);
        let sums: Vec<G1> = points.iter().zip(&others).map(|(point, other)| *point + *other).collect();
        assert_eq!(batch.points, affine(&sums));
    }

    #[test]
    fn parts_are_of_one_size_and_not_too_large() {
        for (points, size) in [(0, 1), (1, 1), (128, 128), (129, 65), (203, 102), (400, 100)] {
            assert_eq!(part(points), size);
        }
    }
}
