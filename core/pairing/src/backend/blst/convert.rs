//! Conversion of field elements to and from blst: the same limbs in the same order.

use ::blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};
use ark_ff::BigInt;

use crate::Gt;
use crate::parameters::{Fq, Fq2, Fq6, Fq12};

/// A coordinate of a point.
pub(super) trait Coordinate {
    type Native;

    fn to_native(&self) -> Self::Native;
    fn from_native(native: &Self::Native) -> Self;
}

impl Coordinate for Fq {
    type Native = blst_fp;

    fn to_native(&self) -> blst_fp {
        blst_fp { l: self.0.0 }
    }

    fn from_native(native: &blst_fp) -> Self {
        // In Montgomery form, as in arkworks.
        Self::new_unchecked(BigInt(native.l))
    }
}

impl Coordinate for Fq2 {
    type Native = blst_fp2;

    fn to_native(&self) -> blst_fp2 {
        blst_fp2 { fp: [self.c0.to_native(), self.c1.to_native()] }
    }

    fn from_native(native: &blst_fp2) -> Self {
        let [c0, c1] = &native.fp;
        Self::new(Fq::from_native(c0), Fq::from_native(c1))
    }
}

/// The result of a final exponentiation.
pub(super) fn to_gt(native: &blst_fp12) -> Gt {
    let [c0, c1] = &native.fp6;
    Gt(Fq12::new(to_fq6(c0), to_fq6(c1)))
}

fn to_fq6(native: &blst_fp6) -> Fq6 {
    let [c0, c1, c2] = &native.fp2;
    Fq6::new(Fq2::from_native(c0), Fq2::from_native(c1), Fq2::from_native(c2))
}
