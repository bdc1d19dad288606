//! Multiples of a point of G1, kept: multiplying it takes additions alone, and constant time.
//!
//! The scalar, or its opposite, is written with odd digits to the base 2^w. For each there is a row of 1, 3,
//! 5, … times 2^(w · place) times the point; all of them are read, whatever the digit, and one is added, or
//! its opposite. None is the identity.
//!
//! Formulas for adding points that are not equal do for all rows with 2^(w · (place + 1)) < r: what was added
//! before, of the rows below, is an odd multiple of the point, and an entry of the row is an even one, so
//! that their sum and their difference are not zero; and absolutely they are below r. In the last row or two
//! they may not be, and the formulas know no exceptions.

use alloc::vec::Vec;
extern crate std;

use std::sync::OnceLock;

use ::blst::{blst_fp, blst_p1, blst_p1_affine, p1_affines};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::ffi;
use super::native::Native as _;
use super::odd_digits::OddDigits;
use crate::{G1, G1Curve, Group as _, Scalar};

/// Bits of a digit of multiples of the generator: 43 digits, 132,096 bytes.
const GENERATOR_WIDTH: u32 = 6;

/// Bits of a digit where tables are made for one call: 52 digits.
const WIDTH: u32 = 5;

/// Number of choices of one of two points that is worth two tables.
pub(super) const MANY_CHOICES: usize = 64;

/// Made when first needed, and for good.
static GENERATOR: OnceLock<BlstComb> = OnceLock::new();

/// scalar · generator of G1, in constant time.
pub(super) fn multiply_generator(scalar: &Scalar) -> G1 {
    let comb = GENERATOR.get_or_init(|| BlstComb::new(&G1::generator(), GENERATOR_WIDTH));
    multiply([comb], Choice::from(0), scalar)
}

/// scalar · the base that is chosen, for each scalar, in constant time.
pub(super) fn multiply_either(bases: [&G1; 2], choices: &[bool], scalars: &[Scalar]) -> Vec<G1> {
    let [zero, one] = bases.map(|base| BlstComb::new(base, WIDTH));
    let choices = choices.iter().map(|choice| Choice::from(u8::from(*choice)));
    choices.zip(scalars).map(|(choice, scalar)| multiply([&zero, &one], choice, scalar)).collect()
}

/// The rows of a point.
struct BlstComb {
    /// Width, from 2 to 8.
    width: u32,
    /// Row by row.
    multiples: Vec<blst_p1_affine>,
}

impl BlstComb {
    fn new(point: &G1, width: u32) -> Self {
        let mut units = Vec::with_capacity(2 * OddDigits::count(width));
        let mut unit = *point;
        for _ in 0..OddDigits::count(width) {
            // The unit of a row, and twice that.
            units.extend([G1Curve::to_native(&unit), G1Curve::to_native(&unit.double())]);
            // The unit of the next row is 2^w times this one.
            unit = (0..width).fold(unit, |unit, _| unit.double());
        }
        let row = 1_usize << (width - 1);
        let mut multiples = Vec::with_capacity(units.len() / 2 * row);
        for [unit, twice] in p1_affines::from(&units).as_slice().as_chunks::<2>().0 {
            let mut multiple = ffi::add_p1(&blst_p1::default(), unit);
            multiples.push(multiple);
            for _ in 1..row {
                multiple = ffi::add_p1(&multiple, twice);
                multiples.push(multiple);
            }
        }
        Self { width, multiples: p1_affines::from(&multiples).as_slice().to_vec() }
    }

    /// The row of a digit.
    fn row(&self, place: usize) -> &[blst_p1_affine] {
        self.multiples.chunks(1 << (self.width - 1)).nth(place).unwrap_or_default()
    }

    /// Returns true if equal or opposite points can meet in a row: unless 2^(w · (place + 1)) ≤ 2^254 < r.
    fn is_exceptional(&self, place: usize) -> bool {
        self.width as usize * (place + 1) > 254
    }
}

/// scalar · the point of the comb with the number that is chosen, of one or two combs of one width. All are
/// read.
fn multiply<const N: usize>(combs: [&BlstComb; N], choice: Choice, scalar: &Scalar) -> G1 {
    let Some(first) = combs.first() else { return G1::identity() };
    let digits = OddDigits::new(scalar, first.width);
    let sum = (0..OddDigits::count(first.width)).fold(blst_p1::default(), |sum, place| {
        let (digit, negative) = digits.digit(place);
        let mut entry = blst_p1_affine::default();
        for (comb, own) in combs.iter().zip(0_u8..) {
            select(&mut entry, comb.row(place), digit, own.ct_eq(&choice.unwrap_u8()));
        }
        entry.y = ffi::negate_if(&entry.y, negative.unwrap_u8() == 1);
        match first.is_exceptional(place) {
            true => ffi::add_p1(&sum, &entry),
            false => ffi::add_unequal_p1(&sum, &entry),
        }
    });
    G1Curve::to_point(&sum)
}

/// Takes over the row's entry at a place, if it is to. Every entry is read, whatever the place.
fn select(selected: &mut blst_p1_affine, row: &[blst_p1_affine], place: u64, take: Choice) {
    for (entry, own) in row.iter().zip(0_u64..) {
        // One mask for the whole entry: all ones, or zeros.
        let mask = u64::conditional_select(&0, &u64::MAX, own.ct_eq(&place) & take);
        merge(&mut selected.x, &entry.x, mask);
        merge(&mut selected.y, &entry.y, mask);
    }
}

fn merge(to: &mut blst_fp, from: &blst_fp, mask: u64) {
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
        let products: Vec<G1> = scalars.iter().map(multiply_generator).collect();
        assert_eq!(products, Arkworks::multiply_generator_by_each(&scalars));
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
