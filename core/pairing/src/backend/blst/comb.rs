//! Multiples of one point, kept: multiplying it takes additions alone, and constant time.
//!
//! The scalar is written with signed digits to the base 2^w. For each there is a row of 1 to 2^(w − 1) times
//! 2^(w · place) times the point; all of them are read, whatever the digit, and one is added.
//!
//! Formulas for adding points that are not equal do for all rows but the last: what was added before, of the
//! rows below, is as a multiple of the point absolutely below 0.52 · 2^(w · place), so it is neither an entry
//! of the row nor its opposite, and all these numbers are below r. In the last row they may not be, and the
//! formulas know no exceptions.

use alloc::vec::Vec;
use std::sync::OnceLock;

use ::blst::{blst_fp, blst_fp2, blst_p1, blst_p1_affine, blst_p2_affine};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::ffi;
use crate::recoding::signed_windows;
use crate::{Curve, G1, G1Curve, Group, Point, Scalar};

/// Bits of a digit of multiples of the generator of G1: 43 digits, 132,096 bytes.
const GENERATOR_WIDTH: u32 = 6;

/// Bits of a digit where a table is made for one call: 52 digits.
const WIDTH: u32 = 5;

/// So many scalars are worth a table.
pub(super) const MANY: usize = 24;

/// Made when first needed, and for good.
static GENERATOR: OnceLock<Comb<G1Curve>> = OnceLock::new();

/// scalar · generator of G1, in constant time.
pub(super) fn multiply_generator(scalar: &Scalar) -> blst_p1 {
    GENERATOR.get_or_init(|| Comb::new(&G1::generator(), GENERATOR_WIDTH)).multiply(scalar)
}

/// scalar · point for each scalar, in constant time.
pub(super) fn multiply_all<C: Curve>(point: &Point<C>, scalars: &[Scalar]) -> Vec<Point<C>> {
    let comb = Comb::new(point, WIDTH);
    scalars.iter().map(|scalar| C::to_point(&comb.multiply(scalar))).collect()
}

/// scalar · the base that is chosen, for each scalar, in constant time.
pub(super) fn multiply_either<C: Curve>(
    bases: [&Point<C>; 2],
    choices: &[bool],
    scalars: &[Scalar],
) -> Vec<Point<C>> {
    let [zero, one] = bases.map(|base| Comb::new(base, WIDTH));
    let multiply = |(choice, scalar): (&bool, &Scalar)| C::to_point(&zero.multiply_or(&one, *choice, scalar));
    choices.iter().zip(scalars).map(multiply).collect()
}

/// The rows of a point.
struct Comb<C: Curve> {
    /// From 2 to 8.
    width: u32,
    /// Row by row.
    multiples: Vec<C::Normalised>,
}

impl<C: Curve> Comb<C> {
    fn new(point: &Point<C>, width: u32) -> Self {
        let mut units = Vec::with_capacity(255 / width as usize + 1);
        let mut unit = *point;
        for _ in 0..=255 / width {
            units.push(C::to_native(&unit));
            // The unit of the next row is 2^w times this one.
            unit = (0..width).fold(unit, |unit, _| unit.double());
        }
        let row = 1_usize << (width - 1);
        let mut multiples = Vec::with_capacity(units.len() * row);
        for unit in C::normalise(&units) {
            let mut multiple = C::Jacobian::default();
            for _ in 0..row {
                multiple = C::add(&multiple, &unit);
                multiples.push(multiple);
            }
        }
        Self { width, multiples: C::normalise(&multiples) }
    }

    fn rows(&self) -> impl Iterator<Item = &[C::Normalised]> {
        self.multiples.chunks(1 << (self.width - 1))
    }

    fn multiply(&self, scalar: &Scalar) -> C::Jacobian {
        let entries = self.rows().zip(signed_windows(scalar, self.width)).map(|(row, digit)| {
            let mut entry = C::Normalised::default();
            // Every entry of the row is read, whatever the digit.
            select(&mut entry, row, digit.unsigned_abs(), true);
            entry.negate_if(digit < 0);
            entry
        });
        self.sum(entries)
    }

    /// scalar times the other's point if so chosen, in constant time.
    fn multiply_or(&self, other: &Self, choice: bool, scalar: &Scalar) -> C::Jacobian {
        let rows = self.rows().zip(other.rows()).zip(signed_windows(scalar, self.width));
        let entries = rows.map(|((own, others), digit)| {
            let mut entry = C::Normalised::default();
            select(&mut entry, own, digit.unsigned_abs(), !choice);
            select(&mut entry, others, digit.unsigned_abs(), choice);
            entry.negate_if(digit < 0);
            entry
        });
        self.sum(entries)
    }

    /// The sum of one entry of each row.
    fn sum(&self, entries: impl Iterator<Item = C::Normalised>) -> C::Jacobian {
        let last = 255 / self.width;
        entries.zip(0..).fold(C::Jacobian::default(), |sum, (entry, place)| {
            // In the last row equal points can meet, and the addition must know exceptions.
            if place < last { C::add_unequal(&sum, &entry) } else { C::add(&sum, &entry) }
        })
    }
}

/// Takes over the row's entry at a place counted from one, if it is to. Zeros, which mean the identity, stay
/// as they are at zero.
fn select<E: Entry>(selected: &mut E, row: &[E], place: u16, take: bool) {
    for (entry, own) in row.iter().zip(1_u16..) {
        // One mask for the whole entry: all ones, or zeros.
        let mask = u64::conditional_select(&0, &u64::MAX, own.ct_eq(&place) & Choice::from(u8::from(take)));
        selected.take(entry, mask);
    }
}

/// A normalised point in a row.
pub trait Entry: Copy + Default {
    /// Replaces the value by another, as far as the mask is set.
    fn take(&mut self, from: &Self, mask: u64);
    /// Becomes the opposite if told so, in constant time.
    fn negate_if(&mut self, negative: bool);
}

impl Entry for blst_p1_affine {
    fn take(&mut self, from: &Self, mask: u64) {
        take(&mut self.x, &from.x, mask);
        take(&mut self.y, &from.y, mask);
    }

    fn negate_if(&mut self, negative: bool) {
        self.y = ffi::negate_if(&self.y, negative);
    }
}

impl Entry for blst_p2_affine {
    fn take(&mut self, from: &Self, mask: u64) {
        let pairs = self.x.fp.iter_mut().zip(&from.x.fp).chain(self.y.fp.iter_mut().zip(&from.y.fp));
        pairs.for_each(|(to, from)| take(to, from, mask));
    }

    fn negate_if(&mut self, negative: bool) {
        let [real, imaginary] = &self.y.fp;
        self.y = blst_fp2 { fp: [real, imaginary].map(|element| ffi::negate_if(element, negative)) };
    }
}

fn take(to: &mut blst_fp, from: &blst_fp, mask: u64) {
    to.l.iter_mut().zip(&from.l).for_each(|(to, from)| *to |= from & mask);
}
