//! Multiples of the generator of G1, kept for good: multiplying it takes additions alone, and constant time.
//!
//! The scalar is written with 52 signed digits to the base 32. For each there is a row of 1 to 16 times 32^place times the
//! generator; all sixteen are read, whatever the digit, and one is added by formulas that know no exceptions.

use alloc::vec::Vec;
use std::sync::OnceLock;

use ::blst::{blst_fp, blst_p1, blst_p1_affine, p1_affines};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::foreign;
use super::native::Native;
use crate::recoding::signed_windows;
use crate::{G1, G1Curve, Group, Scalar};

/// Bits of a digit.
const WIDTH: u32 = 5;

/// Entries of a row: as far as a digit goes from zero.
const ROW: usize = 1 << (WIDTH - 1);

/// 79,872 bytes, made when first needed.
static TABLE: OnceLock<Vec<blst_p1_affine>> = OnceLock::new();

fn table() -> Vec<blst_p1_affine> {
    let mut multiples = Vec::with_capacity((255 / WIDTH as usize + 1) * ROW);
    let mut unit = G1::generator();
    for _ in 0..=255 / WIDTH {
        let mut multiple = G1::identity();
        for _ in 0..ROW {
            multiple += unit;
            multiples.push(G1Curve::to_native(&multiple));
        }
        unit = multiple.double();
    }
    p1_affines::from(&multiples).as_slice().to_vec()
}

/// scalar · generator, in constant time.
pub(super) fn multiply(scalar: &Scalar) -> blst_p1 {
    let table = TABLE.get_or_init(table);
    table.chunks(ROW).zip(signed_windows(scalar, WIDTH)).fold(blst_p1::default(), |sum, (row, digit)| {
        let mut entry = select(row, digit.unsigned_abs());
        entry.y = foreign::negate_if(&entry.y, digit < 0);
        foreign::add_p1(&sum, &entry)
    })
}

/// The row's entry at a place counted from one, or zeros, which mean the identity, at zero.
fn select(row: &[blst_p1_affine], place: u16) -> blst_p1_affine {
    let mut selected = blst_p1_affine::default();
    for (entry, own) in row.iter().zip(1_u16..) {
        let chosen = own.ct_eq(&place);
        assign(&mut selected.x, &entry.x, chosen);
        assign(&mut selected.y, &entry.y, chosen);
    }
    selected
}

fn assign(to: &mut blst_fp, from: &blst_fp, chosen: Choice) {
    to.l.iter_mut().zip(&from.l).for_each(|(to, from)| to.conditional_assign(from, chosen));
}
