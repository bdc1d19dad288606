//! Calls of twelve functions of blst that its crate offers in no safe form. REVIEW.md has their contract.
#![expect(unsafe_code, reason = "blst's crate has safe methods for everything else, but not for these")]

use ::blst::{
    blst_fp, blst_fp_cneg, blst_fp_inverse, blst_fp_mul, blst_fp_sqr, blst_fp_sub, blst_fp2, blst_map_to_g1,
    blst_map_to_g2, blst_p1, blst_p1_add_affine, blst_p1_add_or_double_affine, blst_p1_affine,
    blst_p1_double, blst_p1_mult, blst_p2, blst_p2_mult,
};

/// Bits of a scalar that are read: ⌈255 / 8⌉ = 32 bytes.
const BITS: usize = 255;

/// scalar · point, in constant time. The scalar is little-endian.
pub(super) fn multiply_p1(point: &blst_p1, scalar: &[u8; 32]) -> blst_p1 {
    let mut product = blst_p1::default();
    // SAFETY: the pointers come from references and are not kept. One point is written; one point and the 32
    // bytes that 255 bits take are read. The written point is none of those that are read.
    unsafe { blst_p1_mult(&mut product, point, scalar.as_ptr(), BITS) };
    product
}

/// scalar · point, in constant time. The scalar is little-endian.
pub(super) fn multiply_p2(point: &blst_p2, scalar: &[u8; 32]) -> blst_p2 {
    let mut product = blst_p2::default();
    // SAFETY: as in `multiply_p1`, for points of the other curve.
    unsafe { blst_p2_mult(&mut product, point, scalar.as_ptr(), BITS) };
    product
}

/// 2^times · the point.
pub(super) fn double_p1(point: &blst_p1, times: u32) -> blst_p1 {
    let mut point = *point;
    let place: *mut blst_p1 = &mut point;
    for _ in 0..times {
        // SAFETY: both pointers are the one of a point that lives here, and are not kept. The written point
        // may be the one that is read.
        unsafe { blst_p1_double(place, place) };
    }
    point
}

/// The sum of what both elements map to, times the effective cofactor.
pub(super) fn map_to_g1(u: &blst_fp, v: &blst_fp) -> blst_p1 {
    let mut point = blst_p1::default();
    // SAFETY: the pointers come from references and are not kept. One point is written, two field elements
    // are read.
    unsafe { blst_map_to_g1(&mut point, u, v) };
    point
}

/// The sum of what both elements map to, times the effective cofactor.
pub(super) fn map_to_g2(u: &blst_fp2, v: &blst_fp2) -> blst_p2 {
    let mut point = blst_p2::default();
    // SAFETY: as in `map_to_g1`, for the other curve and its field.
    unsafe { blst_map_to_g2(&mut point, u, v) };
    point
}

/// The sum of a point and one that is normalised, in constant time: whatever they are, identities too.
pub(super) fn add_p1(point: &blst_p1, other: &blst_p1_affine) -> blst_p1 {
    let mut sum = blst_p1::default();
    // SAFETY: the pointers come from references and are not kept. One point is written, two are read. The
    // written point is none of those that are read.
    unsafe { blst_p1_add_or_double_affine(&mut sum, point, other) };
    sum
}

/// The sum of a point and one that is normalised, in constant time: opposite ones and identities too, but not
/// equal ones.
pub(super) fn add_unequal_p1(point: &blst_p1, other: &blst_p1_affine) -> blst_p1 {
    let mut sum = blst_p1::default();
    // SAFETY: as in `add_p1`.
    unsafe { blst_p1_add_affine(&mut sum, point, other) };
    sum
}

/// The element, or its opposite, in constant time. The opposite of zero is zero.
pub(super) fn negate_if(element: &blst_fp, negative: bool) -> blst_fp {
    let mut result = blst_fp::default();
    // SAFETY: the pointers come from references and are not kept. One element is written, another is read.
    unsafe { blst_fp_cneg(&mut result, element, negative) };
    result
}

/// 1/element, and 0 of 0, in constant time.
pub(super) fn invert(element: &blst_fp) -> blst_fp {
    let mut inverse = blst_fp::default();
    // SAFETY: as in `negate_if`.
    unsafe { blst_fp_inverse(&mut inverse, element) };
    inverse
}

/// The product, in constant time.
pub(super) fn multiply(product: &mut blst_fp, factor: &blst_fp, other: &blst_fp) {
    // SAFETY: the pointers come from references and are not kept. One element is written, two others are
    // read.
    unsafe { blst_fp_mul(product, factor, other) };
}

/// The square, in constant time.
pub(super) fn square(square: &mut blst_fp, element: &blst_fp) {
    // SAFETY: the pointers come from references and are not kept. One element is written, another is read.
    unsafe { blst_fp_sqr(square, element) };
}

/// The difference, in constant time.
pub(super) fn subtract(difference: &mut blst_fp, element: &blst_fp, other: &blst_fp) {
    // SAFETY: as in `multiply`.
    unsafe { blst_fp_sub(difference, element, other) };
}
