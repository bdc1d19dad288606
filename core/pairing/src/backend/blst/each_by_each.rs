//! Many points of G1, each by each of a few secret scalars, where there are no vector lanes. Constant-time in
//! the scalars.
//!
//! | symbol | here |
//! |---|---|
//! | k₀ + k₁·z² | a scalar, by odd halves of at most 128 bits and a sign: [`OddHalves`] |
//! | D_t = 2^(26·t) · P, t from 0 to 4 | the teeth of a comb, each 26 bits above the last |
//! | D₄ ± D₃ ± D₂ ± D₁ ± D₀ | the 16 entries of a point's table, all of which are read for each digit |
//!
//! Both halves are written with digits 1 and −1 at 130 places. A column of the comb takes one digit of each
//! tooth: together they are an entry, or its opposite. There are 26 columns, with a doubling between two of
//! them and two additions in each: one for k₀ and one for k₁, through the endomorphism, which takes (x, y) to
//! (βx, y) and multiplies by −z². The table of a point takes 104 doublings and 19 additions and serves all
//! scalars, and each scalar takes 25 doublings and 52 additions (C. Lim, P. Lee, "More flexible
//! exponentiation with precomputation", CRYPTO '94; with signed digits: M. Hamburg, "Fast and compact
//! elliptic-curve cryptography", eprint 2012/309).
//!
//! # Exceptions
//! Two summands are equal or opposite points if their difference or their sum a·P + b·z²·P is the identity: if
//! r divides a + b·λ, with λ = z². Entries are odd multiples of P, and what was doubled is an even one, so that
//! a is odd, or b is. λ² − λ + 1 = r, so that r divides a² + a·b + b², too, which is positive and at most
//! 3·max(|a|, |b|)². So one of both is at least √(r/3) > 2^126.6 absolutely. In column c they are below
//! 2^(130 − c)·(1 + 2^−25): there are no exceptions but in the last four columns, where all are known.

use alloc::vec::Vec;

use ::blst::{blst_fp, blst_p1_affine};
use ark_bls12_381::g1;
use ark_ec::scalar_mul::glv::GLVConfig as _;
use subtle::{Choice, ConstantTimeEq as _};
use zeroize::Zeroize as _;

use super::affine_batch::{AffineBatch, Exceptions, erase, mask, part, to_point};
use super::ffi;
use super::native::Native as _;
use super::odd_digits::{COLUMNS, OddHalves, TEETH};
use crate::{G1, G1Curve, Scalar};

/// With fewer points, too few additions share an inversion.
pub(super) const MANY: usize = 32;

/// Columns, counted from the lowest, in which exceptions are possible.
const EXCEPTIONAL: usize = 4;

/// For each scalar, scalar · point for each point.
pub(super) fn multiply(points: &[G1], scalars: &[Scalar]) -> Vec<Vec<G1>> {
    let mut products: Vec<Vec<G1>> = scalars.iter().map(|_| Vec::with_capacity(points.len())).collect();
    for points in points.chunks(part(points.len())) {
        let table = Table::new(points);
        for (products, scalar) in products.iter_mut().zip(scalars) {
            products.extend(table.multiply(scalar));
        }
    }
    products
}

/// Tables of many points.
struct Table {
    /// Entry by entry, point by point. Erased when dropped.
    entries: Vec<Vec<blst_p1_affine>>,
    /// βx of each entry's point.
    images: Vec<Vec<blst_fp>>,
}

impl Table {
    fn new(points: &[G1]) -> Self {
        let teeth = teeth(points);
        let [highest, lower @ ..] = teeth.each_ref().map(Vec::as_slice);
        // D₄ − D₃ − D₂ − D₁ − D₀
        let mut sums = AffineBatch::new(highest.to_vec());
        for tooth in lower {
            let mut opposites = tooth.to_vec();
            opposites.iter_mut().for_each(|point| point.y = ffi::negate_if(&point.y, true));
            sums.add(&opposites, Exceptions::None);
        }
        let mut entries = alloc::vec![sums.points.clone()];
        // Bit t of an entry's place is one if D_t is added: 2·D_t more than if it is subtracted.
        for tooth in lower.iter().rev() {
            let mut twice = AffineBatch::new(tooth.to_vec());
            twice.double();
            for at in 0..entries.len() {
                if let Some(entry) = entries.get(at) {
                    sums.points.copy_from_slice(entry);
                    sums.add(&twice.points, Exceptions::None);
                    entries.push(sums.points.clone());
                }
            }
        }
        // Of arkworks' own curve, whichever parameters this crate has: the limbs are the same.
        let beta = blst_fp { l: g1::Config::ENDO_COEFFS.first().map_or([0; 6], |beta| beta.0.0) };
        let image = |point: &blst_p1_affine| {
            let mut image = blst_fp::default();
            ffi::multiply(&mut image, &point.x, &beta);
            image
        };
        let images = entries.iter().map(|points| points.iter().map(image).collect()).collect();
        Self { entries, images }
    }

    /// scalar · point for each point.
    fn multiply(&self, scalar: &Scalar) -> Vec<G1> {
        let halves = OddHalves::new(scalar);
        let count = self.entries.first().map_or(0, Vec::len);
        let mut chosen = alloc::vec![blst_p1_affine::default(); count];
        let mut sums = AffineBatch::new(chosen.clone());
        for column in (0..COLUMNS).rev() {
            let exceptions = if column < EXCEPTIONAL { Exceptions::Every } else { Exceptions::None };
            let [(low, low_negative), (high, high_negative)] = halves.digits(column);
            self.choose(&mut chosen, low, low_negative, false);
            if column == COLUMNS - 1 {
                sums.points.copy_from_slice(&chosen);
            } else {
                sums.double();
                sums.add(&chosen, exceptions);
            }
            // z² · (x, y) = (βx, −y)
            self.choose(&mut chosen, high, !high_negative, true);
            sums.add(&chosen, exceptions);
        }
        erase(&mut chosen);
        sums.points.iter().map(to_point).collect()
    }

    /// The entry in a place of each point's table, or its image, or the opposite of either. All entries are
    /// read.
    fn choose(&self, chosen: &mut [blst_p1_affine], place: u64, negative: Choice, image: bool) {
        erase(chosen);
        for ((entries, images), own) in self.entries.iter().zip(&self.images).zip(0_u64..) {
            let mask = mask(own.ct_eq(&place));
            for ((chosen, entry), image_x) in chosen.iter_mut().zip(entries).zip(images) {
                let x = if image { image_x } else { &entry.x };
                chosen.x.l.iter_mut().zip(&x.l).for_each(|(to, from)| *to |= from & mask);
                chosen.y.l.iter_mut().zip(&entry.y.l).for_each(|(to, from)| *to |= from & mask);
            }
        }
        let negative = negative.unwrap_u8() == 1;
        chosen.iter_mut().for_each(|point| point.y = ffi::negate_if(&point.y, negative));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.entries.iter_mut().for_each(|points| erase(points));
        self.images.iter_mut().flatten().for_each(|element| element.l.zeroize());
    }
}

/// The teeth of each point's comb, the highest first.
fn teeth(points: &[G1]) -> [Vec<blst_p1_affine>; TEETH] {
    let mut tooth: Vec<_> = points.iter().map(G1Curve::to_native).collect();
    let mut teeth = [(); TEETH].map(|()| {
        let affine = if tooth.is_empty() { Vec::new() } else { G1Curve::normalise(&tooth) };
        tooth.iter_mut().for_each(|point| *point = ffi::double_p1(point, COLUMNS as u32));
        affine
    });
    teeth.reverse();
    teeth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Arkworks, Backend as _};
    use crate::recoding::Z;

    fn points(count: u64) -> Vec<G1> {
        (1..=count).map(|at| G1::generator() * Scalar::from(at * at + 3)).collect()
    }

    /// Scalars at which a sum meets its own summand, its opposite, or the identity in the last columns, among
    /// those below and above.
    fn awkward() -> Vec<Scalar> {
        let one = Scalar::from(1_u64);
        let power = |exponent: u32| (0..exponent).fold(one, |power, _| power + power);
        let z_squared = Scalar::from(Z) * Scalar::from(Z);
        let mut scalars: Vec<Scalar> = (0..40_u64).map(Scalar::from).collect();
        for tooth in 0..TEETH as u32 {
            for column in 0..5 {
                scalars.push(power(26 * tooth + column));
                scalars.push(power(26 * tooth + column) + one);
                scalars.push(power(26 * tooth + column) * z_squared);
            }
        }
        // Entries of the lowest columns, of either half, and with all of their signs.
        for signs in 0..1_u32 << TEETH {
            let teeth = (0..TEETH as u32)
                .map(|tooth| if signs >> tooth & 1 == 1 { power(26 * tooth) } else { -power(26 * tooth) });
            let entry: Scalar = teeth.sum();
            for entry in [entry, entry * z_squared] {
                scalars.extend([entry, entry + entry, entry + entry + entry, entry + one, entry - z_squared]);
            }
        }
        let opposites: Vec<Scalar> = scalars.iter().map(|scalar| -*scalar).collect();
        scalars.extend(opposites);
        scalars
    }

    #[test]
    fn many_points_are_multiplied_by_awkward_scalars_as_by_arkworks() {
        let points = [points(2), [G1::default()].to_vec()].concat();
        let scalars = awkward();
        assert_eq!(multiply(&points, &scalars), Arkworks::multiply_points_by_each(&points, &scalars));
    }

    #[test]
    fn as_many_points_as_fill_some_batches_are_multiplied() {
        let scalars = [Scalar::from(Z) * Scalar::from(0x1234_5678_9abc_u64), -Scalar::from(5_u64)];
        for count in [0, 1, 24, 128, 129, 300] {
            let points = points(count);
            assert_eq!(multiply(&points, &scalars), Arkworks::multiply_points_by_each(&points, &scalars));
        }
        assert!(multiply(&points(30), &[]).is_empty());
    }
}
