//! Many points of G1 at once on vector lanes. Gives nothing where the processor has none, and for so few
//! points that a vector would be all but empty: then blst computes them one by one.

use alloc::vec::Vec;

use ark_ec::short_weierstrass::Affine;

use crate::parameters::g1;
use crate::{G1, Scalar};

#[cfg(target_arch = "x86_64")]
mod miller;
#[cfg(target_arch = "x86_64")]
mod points;

#[cfg(target_arch = "x86_64")]
pub(super) use miller::{prepare, prepared_product};
#[cfg(target_arch = "x86_64")]
pub(super) use points::{
    all_in_subgroup, clear_cofactors, multiply_each, multiply_generator_by_each, multiply_points,
    sum_weighted,
};
#[cfg(target_arch = "x86_64")]
pub(super) use quiver_simd::bls12_381::Lines;

#[cfg(not(target_arch = "x86_64"))]
pub(super) use nowhere::*;

/// Other processors.
#[cfg(not(target_arch = "x86_64"))]
mod nowhere {
    use super::{Affine, G1, Scalar, Vec, g1};
    use crate::{G2, Gt};

    /// Type without values, because no lines are kept.
    #[derive(Debug)]
    pub enum Lines {}

    pub(in super::super) fn prepare(_: &[G2]) -> Option<Lines> {
        None
    }

    pub(in super::super) fn prepared_product(lines: &Lines, _: &[G1]) -> Option<Gt> {
        match *lines {}
    }

    pub(in super::super) fn multiply_generator_by_each(_: &[Scalar]) -> Option<Vec<G1>> {
        None
    }

    pub(in super::super) fn multiply_each(_: &[G1], _: &[Scalar]) -> Option<Vec<G1>> {
        None
    }

    pub(in super::super) fn multiply_points(_: &[G1], _: &Scalar) -> Option<Vec<G1>> {
        None
    }

    pub(in super::super) fn sum_weighted(_: &[G1], _: &[[u64; 2]], _: usize) -> Option<Vec<G1>> {
        None
    }

    pub(in super::super) fn all_in_subgroup(_: &[Affine<g1::Config>]) -> Option<Vec<bool>> {
        None
    }

    pub(in super::super) fn clear_cofactors(_: &[Affine<g1::Config>]) -> Option<Vec<G1>> {
        None
    }
}
