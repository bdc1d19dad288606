//! Multiples of one point, kept: multiplying it takes additions alone, and constant time.
//!
//! The scalar, or its opposite, is written with odd digits to the base 2^w. For each there is a row of 1, 3,
//! 5, … times 2^(w · place) times the point; all of them are read, whatever the digit, and one is added, or
//! its opposite. None is the identity.
//!
//! Formulas for adding points that are not equal do for all rows with 2^(w · (place + 1)) < r: what was added
//! before, of the rows below, is an odd multiple of the point, and an entry of the row is an even one, so
//! that their sum and their difference are not zero; and absolutely they are below r. In the last row or two
//! they may not be, and the formulas know no exceptions.
//!
//! Many products of points of G1 are added up side by side, with an inversion for the additions of each row.

use alloc::vec::Vec;
use std::sync::OnceLock;

use ::blst::{blst_fp, blst_fp2, blst_p1, blst_p1_affine, blst_p2_affine};
use subtle::{Choice, ConstantTimeEq as _};

use super::affine_batch::{AffineBatch, Exceptions, erase, mask, part, to_point};
use super::ffi;
use super::native::Native as _;
use super::odd_digits::OddDigits;
use crate::{Curve, G1, G1Curve, Group, Point, Scalar};

/// Bits of a digit of multiples of the generator of G1: 43 digits, 132,096 bytes.
const GENERATOR_WIDTH: u32 = 6;

/// Bits of a digit where a table is made for one call: 52 digits.
const WIDTH: u32 = 5;

/// So many scalars are worth a table.
pub(super) const MANY: usize = 24;

/// So many choices of one of two points are worth two tables.
pub(super) const MANY_CHOICES: usize = 40;

/// Made when first needed, and for good.
static GENERATOR: OnceLock<Comb<G1Curve>> = OnceLock::new();

fn generator() -> &'static Comb<G1Curve> {
    GENERATOR.get_or_init(|| Comb::new(&G1::generator(), GENERATOR_WIDTH))
}

/// scalar · generator of G1, in constant time.
pub(super) fn multiply_generator(scalar: &Scalar) -> blst_p1 {
    generator().multiply(scalar)
}

/// scalar · generator of G1 for each scalar, in constant time.
pub(super) fn multiply_generator_by_each(scalars: &[Scalar]) -> Vec<G1> {
    let comb = generator();
    match scalars.len() {
        0..MANY => scalars.iter().map(|scalar| G1Curve::to_point(&comb.multiply(scalar))).collect(),
        _ => multiply_side_by_side([comb; 2], &alloc::vec![false; scalars.len()], scalars),
    }
}

/// scalar · point for each scalar, in constant time.
pub(super) fn multiply_all<C: Curve>(point: &Point<C>, scalars: &[Scalar]) -> Vec<Point<C>> {
    let comb = Comb::new(point, WIDTH);
    scalars.iter().map(|scalar| C::to_point(&comb.multiply(scalar))).collect()
}

/// scalar · the base that is chosen, for each scalar, in constant time.
pub(super) fn multiply_either(bases: [&G1; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1> {
    let [zero, one] = bases.map(|base| Comb::new(base, WIDTH));
    multiply_side_by_side([&zero, &one], choices, scalars)
}

/// scalar · the point of the first comb, or of the second if so chosen, for each scalar. If both are the same
/// comb, it is read once. Both have rows of one width.
fn multiply_side_by_side(combs: [&Comb<G1Curve>; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1> {
    let [zero, one] = combs;
    let (width, single) = (zero.width, core::ptr::eq(zero, one));
    let part = part(scalars.len());
    let mut products = Vec::with_capacity(scalars.len());
    for (choices, scalars) in choices.chunks(part).zip(scalars.chunks(part)) {
        let numbers: Vec<OddDigits> = scalars.iter().map(|scalar| OddDigits::new(scalar, width)).collect();
        let mut entries = alloc::vec![blst_p1_affine::default(); numbers.len().min(choices.len())];
        let mut sums = AffineBatch::new(entries.clone());
        for (place, (row, other)) in zero.rows().zip(one.rows()).enumerate() {
            for ((entry, number), choice) in entries.iter_mut().zip(&numbers).zip(choices) {
                let (digit, choice) = (number.digit(place), Choice::from(u8::from(*choice)));
                *entry = blst_p1_affine::default();
                select(entry, row, digit.0, !choice | Choice::from(u8::from(single)));
                if !single {
                    select(entry, other, digit.0, choice);
                }
            }
            for (entry, number) in entries.iter_mut().zip(&numbers) {
                entry.negate_if(number.digit(place).1);
            }
            match place {
                0 => sums.points.copy_from_slice(&entries),
                _ if zero.is_exceptional(place) => sums.add(&entries, Exceptions::Every),
                _ => sums.add(&entries, Exceptions::None),
            }
        }
        erase(&mut entries);
        products.extend(sums.points.iter().map(to_point));
    }
    products
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
        let mut units = Vec::with_capacity(2 * OddDigits::count(width));
        let mut unit = *point;
        for _ in 0..OddDigits::count(width) {
            // The unit of a row, and twice that.
            units.extend([C::to_native(&unit), C::to_native(&unit.double())]);
            // The unit of the next row is 2^w times this one.
            unit = (0..width).fold(unit, |unit, _| unit.double());
        }
        let row = 1_usize << (width - 1);
        let mut multiples = Vec::with_capacity(units.len() / 2 * row);
        for [unit, twice] in C::normalise(&units).as_chunks::<2>().0 {
            let mut multiple = C::add(&C::Jacobian::default(), unit);
            multiples.push(multiple);
            for _ in 1..row {
                multiple = C::add(&multiple, twice);
                multiples.push(multiple);
            }
        }
        Self { width, multiples: C::normalise(&multiples) }
    }

    fn rows(&self) -> impl Iterator<Item = &[C::Normalised]> {
        self.multiples.chunks(1 << (self.width - 1))
    }

    /// Whether equal or opposite points can meet in a row: unless 2^(w · (place + 1)) ≤ 2^254 < r.
    fn is_exceptional(&self, place: usize) -> bool {
        self.width as usize * (place + 1) > 254
    }

    fn multiply(&self, scalar: &Scalar) -> C::Jacobian {
        let digits = OddDigits::new(scalar, self.width);
        self.rows().enumerate().fold(C::Jacobian::default(), |sum, (place, row)| {
            let (digit, negative) = digits.digit(place);
            let mut entry = C::Normalised::default();
            // Every entry of the row is read, whatever the digit.
            select(&mut entry, row, digit, Choice::from(1));
            entry.negate_if(negative);
            if self.is_exceptional(place) { C::add(&sum, &entry) } else { C::add_unequal(&sum, &entry) }
        })
    }
}

/// Takes over the row's entry at a place, if it is to.
fn select<E: Entry>(selected: &mut E, row: &[E], place: u64, take: Choice) {
    for (entry, own) in row.iter().zip(0_u64..) {
        // One mask for the whole entry: all ones, or zeros.
        selected.take(entry, mask(own.ct_eq(&place) & take));
    }
}

/// A normalised point in a row.
pub trait Entry: Copy + Default {
    /// Replaces the value by another, as far as the mask is set.
    fn take(&mut self, from: &Self, mask: u64);
    /// Becomes the opposite if told so, in constant time.
    fn negate_if(&mut self, negative: Choice);
}

impl Entry for blst_p1_affine {
    fn take(&mut self, from: &Self, mask: u64) {
        take(&mut self.x, &from.x, mask);
        take(&mut self.y, &from.y, mask);
    }

    fn negate_if(&mut self, negative: Choice) {
        self.y = ffi::negate_if(&self.y, negative.unwrap_u8() == 1);
    }
}

impl Entry for blst_p2_affine {
    fn take(&mut self, from: &Self, mask: u64) {
        let pairs = self.x.fp.iter_mut().zip(&from.x.fp).chain(self.y.fp.iter_mut().zip(&from.y.fp));
        pairs.for_each(|(to, from)| take(to, from, mask));
    }

    fn negate_if(&mut self, negative: Choice) {
        let negative = negative.unwrap_u8() == 1;
        let [real, imaginary] = &self.y.fp;
        self.y = blst_fp2 { fp: [real, imaginary].map(|element| ffi::negate_if(element, negative)) };
    }
}

fn take(to: &mut blst_fp, from: &blst_fp, mask: u64) {
    to.l.iter_mut().zip(&from.l).for_each(|(to, from)| *to |= from & mask);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Arkworks, Backend as _};

    /// Scalars with one digit at each place alone, and their opposites: sums meet their own summand, its
    /// opposite and the identity in the last rows.
    fn scalars(width: u32) -> Vec<Scalar> {
        let base = Scalar::from(1_u64 << width);
        let powers = core::iter::successors(Some(Scalar::from(1_u64)), |power| Some(*power * base));
        let multiples = powers.take(OddDigits::count(width)).flat_map(|power| {
            (0..1_u64 << width)
                .flat_map(move |digit| [power * Scalar::from(digit), -power * Scalar::from(digit)])
        });
        multiples.collect()
    }

    #[test]
    fn many_multiples_of_the_generator_are_those_of_arkworks() {
        let scalars = scalars(GENERATOR_WIDTH);
        assert_eq!(multiply_generator_by_each(&scalars), Arkworks::multiply_generator_by_each(&scalars));
        for count in [0, 1, MANY - 1, MANY] {
            assert_eq!(multiply_generator_by_each(&scalars[..count]).len(), count);
        }
    }

    #[test]
    fn multiples_of_either_point_are_those_of_arkworks() {
        let scalars = scalars(WIDTH);
        let choices: Vec<bool> = (0..scalars.len()).map(|at| at % 3 == 1).collect();
        let points = [5_u64, 77].map(|scalar| G1::generator() * Scalar::from(scalar));
        for bases in [[&points[0], &points[1]], [&points[1]; 2], [&G1::default(), &points[1]]] {
            let products = multiply_either(bases, &choices, &scalars);
            assert_eq!(products, Arkworks::multiply_either(bases, &choices, &scalars));
        }
    }
}
