//! The tower of fields of BLS12-381 over multiplication in assembly: arkworks' parameters, limb for limb.

use ark_bls12_381 as curve;
use ark_ff::{
    AdditiveGroup, BigInt, Field, Fp2, Fp2Config, Fp6, Fp6Config, Fp12, Fp12Config, Fp384, MontBackend,
    MontConfig,
};

/// Fp.
pub(crate) type Fq = Fp384<MontBackend<FqConfig, 6>>;
/// Fp².
pub(crate) type Fq2 = Fp2<Fq2Config>;
/// Fp⁶.
pub(crate) type Fq6 = Fp6<Fq6Config>;
/// Fp¹².
pub(crate) type Fq12 = Fp12<Fq12Config>;

/// The prime field.
pub struct FqConfig;

impl MontConfig<6> for FqConfig {
    const MODULUS: BigInt<6> = <curve::FqConfig as MontConfig<6>>::MODULUS;
    const GENERATOR: Fq = fq(<curve::FqConfig as MontConfig<6>>::GENERATOR);
    const TWO_ADIC_ROOT_OF_UNITY: Fq = fq(<curve::FqConfig as MontConfig<6>>::TWO_ADIC_ROOT_OF_UNITY);

    #[cfg(target_arch = "arm")]
    #[inline]
    fn mul_assign(a: &mut Fq, b: &Fq) {
        a.0 = super::ffi::multiply(&a.0, &b.0);
    }

    #[cfg(target_arch = "arm")]
    #[inline]
    fn square_in_place(a: &mut Fq) {
        a.0 = super::ffi::multiply(&a.0, &a.0);
    }

    /// Montgomery's reduction alone: the product with the number 1.
    #[cfg(target_arch = "arm")]
    #[inline]
    fn into_bigint(a: Fq) -> BigInt<6> {
        super::ffi::multiply(&a.0, &BigInt::one())
    }

    #[cfg(target_arch = "arm")]
    #[inline]
    fn sum_of_products<const M: usize>(a: &[Fq; M], b: &[Fq; M]) -> Fq {
        a.iter().zip(b).map(|(a, b)| *a * b).sum()
    }
}

/// Fp(u), u² = −1.
pub struct Fq2Config;

impl Fp2Config for Fq2Config {
    type Fp = Fq;
    const NONRESIDUE: Fq = fq(curve::Fq2Config::NONRESIDUE);
    const FROBENIUS_COEFF_FP2_C1: &'static [Fq] = &fqs::<2>(curve::Fq2Config::FROBENIUS_COEFF_FP2_C1);

    #[inline]
    fn mul_fp_by_nonresidue_in_place(element: &mut Fq) -> &mut Fq {
        element.neg_in_place()
    }

    #[inline]
    fn mul_fp_by_nonresidue_and_add(y: &mut Fq, x: &Fq) {
        *y = *x - *y;
    }

    #[inline]
    fn mul_fp_by_nonresidue_plus_one_and_add(y: &mut Fq, x: &Fq) {
        *y = *x;
    }

    #[inline]
    fn sub_and_mul_fp_by_nonresidue(y: &mut Fq, x: &Fq) {
        *y += x;
    }
}

/// Fp²(v), v³ = u + 1.
#[derive(Clone, Copy)]
pub(crate) struct Fq6Config;

impl Fp6Config for Fq6Config {
    type Fp2Config = Fq2Config;
    const NONRESIDUE: Fq2 = fq2(curve::Fq6Config::NONRESIDUE);
    const FROBENIUS_COEFF_FP6_C1: &'static [Fq2] = &fq2s::<6>(curve::Fq6Config::FROBENIUS_COEFF_FP6_C1);
    const FROBENIUS_COEFF_FP6_C2: &'static [Fq2] = &fq2s::<6>(curve::Fq6Config::FROBENIUS_COEFF_FP6_C2);

    #[inline]
    fn mul_fp2_by_nonresidue_in_place(element: &mut Fq2) -> &mut Fq2 {
        // (c0 + c1·u)·(1 + u)
        let c0 = element.c0;
        element.c0 -= element.c1;
        element.c1 += c0;
        element
    }
}

/// Fp⁶(w), w² = v.
#[derive(Clone, Copy)]
pub(crate) struct Fq12Config;

impl Fp12Config for Fq12Config {
    type Fp6Config = Fq6Config;
    const NONRESIDUE: Fq6 = Fq6::new(Fq2::ZERO, fq2(curve::Fq2::ONE), Fq2::ZERO);
    const FROBENIUS_COEFF_FP12_C1: &'static [Fq2] = &fq2s::<12>(curve::Fq12Config::FROBENIUS_COEFF_FP12_C1);
}

/// The same number: both are kept as products with 2^384.
pub(super) const fn fq(from: curve::Fq) -> Fq {
    Fq::new_unchecked(from.0)
}

/// The same number.
pub(super) const fn fq2(from: curve::Fq2) -> Fq2 {
    Fq2::new(fq(from.c0), fq(from.c1))
}

/// The same numbers.
pub(super) const fn fqs<const N: usize>(mut from: &[curve::Fq]) -> [Fq; N] {
    assert!(from.len() == N, "as many as there are");
    let mut to = [Fq::ZERO; N];
    let mut rest = to.as_mut_slice();
    while let (Some((first, others)), Some((place, places))) = (from.split_first(), rest.split_first_mut()) {
        *place = fq(*first);
        (from, rest) = (others, places);
    }
    to
}

/// The same numbers.
pub(super) const fn fq2s<const N: usize>(mut from: &[curve::Fq2]) -> [Fq2; N] {
    assert!(from.len() == N, "as many as there are");
    let mut to = [Fq2::ZERO; N];
    let mut rest = to.as_mut_slice();
    while let (Some((first, others)), Some((place, places))) = (from.split_first(), rest.split_first_mut()) {
        *place = fq2(*first);
        (from, rest) = (others, places);
    }
    to
}
