//! Powers in the target group, by a split in four.
//!
//! In Gt the Frobenius map f ↦ f^p is the power x, the curve's parameter, because p = x modulo r. x is
//! negative, so its absolute value z is the Frobenius map's inverse, the conjugate.

use ark_ec::bls12::Bls12Config;
use ark_ff::{CyclotomicMultSubgroup, Field};

use super::Gt;
use crate::parameters::{Config, Fq12};
use crate::recoding::split;
use crate::{Scalar, interleaved};

/// f^x for an element of the cyclotomic subgroup.
pub(super) fn to_the_x(f: &Fq12) -> Fq12 {
    let mut power = f.cyclotomic_exp(Config::X);
    // x is negative, and the conjugate is the inverse.
    power.conjugate_in_place();
    power
}

/// scalar · element. Not constant-time.
pub(super) fn multiply(element: &Gt, scalar: &Scalar) -> Gt {
    interleaved::multiply(*element, split(scalar).map(u128::from), |Gt(mut image)| {
        // f^p = f^x, and its inverse is f^z.
        image.frobenius_map_in_place(1);
        -Gt(image)
    })
}
