//! The two curves and their pairing over fields with assembly multiplication.

use ark_bls12_381 as curve;
use ark_ec::bls12::{Bls12, Bls12Config, TwistType};

use super::tower::{Fq, Fq2Config, Fq6Config, Fq12Config};

/// The pairing.
pub(crate) type Bls12_381 = Bls12<Config>;

/// Parameters of the pairing of both curves.
pub(crate) struct Config;

impl Bls12Config for Config {
    const X: &'static [u64] = <curve::Config as Bls12Config>::X;
    const X_IS_NEGATIVE: bool = <curve::Config as Bls12Config>::X_IS_NEGATIVE;
    const TWIST_TYPE: TwistType = TwistType::M;
    type Fp = Fq;
    type Fp2Config = Fq2Config;
    type Fp6Config = Fq6Config;
    type Fp12Config = Fq12Config;
    type G1Config = g1::Config;
    type G2Config = g2::Config;
}

/// z · point with z = |x|, the parameter of the curves.
macro_rules! times_z {
    ($point:expr) => {
        $point.mul_bigint(<ark_bls12_381::Config as ark_ec::bls12::Bls12Config>::X)
    };
}

/// y² = x³ + 4 over Fp.
pub(crate) mod g1 {
    use ark_bls12_381::{Fr, g1 as curve};
    use ark_ec::scalar_mul::glv::GLVConfig;
    use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
    use ark_ec::{AffineRepr, CurveConfig, CurveGroup, PrimeGroup};

    use crate::parameters::armv7em::tower::{Fq, fq};

    /// The curve.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Config;

    /// A cube root of one: (x, y) ↦ (βx, y) multiplies points of the subgroup by −z².
    const BETA: Fq = {
        let [beta] = crate::parameters::armv7em::tower::fqs(curve::Config::ENDO_COEFFS);
        beta
    };

    impl Config {
        /// −z² · point, for points of the subgroup.
        pub(crate) fn endomorphism(point: &Projective<Self>) -> Projective<Self> {
            let mut image = *point;
            image.x *= BETA;
            image
        }
    }

    impl CurveConfig for Config {
        type BaseField = Fq;
        type ScalarField = Fr;
        const COFACTOR: &'static [u64] = <curve::Config as CurveConfig>::COFACTOR;
        const COFACTOR_INV: Fr = <curve::Config as CurveConfig>::COFACTOR_INV;
    }

    impl SWCurveConfig for Config {
        const COEFF_A: Fq = fq(<curve::Config as SWCurveConfig>::COEFF_A);
        const COEFF_B: Fq = fq(<curve::Config as SWCurveConfig>::COEFF_B);
        const GENERATOR: Affine<Self> =
            Affine::new_unchecked(fq(curve::G1_GENERATOR_X), fq(curve::G1_GENERATOR_Y));
        type ZeroFlag = ();

        fn mul_by_a(_: Fq) -> Fq {
            Self::COEFF_A
        }

        fn is_in_correct_subgroup_assuming_on_curve(point: &Affine<Self>) -> bool {
            // M. Scott, eprint 2021/1130, section 6: φ(P) = −z²·P, and z·P ≠ −P unless P is the identity.
            let once = times_z!(point);
            let outside = -once == *point && !point.is_zero();
            !outside && -times_z!(once) == Self::endomorphism(&point.into_group())
        }

        fn clear_cofactor(point: &Affine<Self>) -> Affine<Self> {
            // (1 + z)·P: R. S. Wahby, D. Boneh, eprint 2019/403, section 5.
            (times_z!(point) + point).into_affine()
        }
    }
}

/// y² = x³ + 4(u + 1) over Fp².
pub(crate) mod g2 {
    use ark_bls12_381::{Fr, g2 as curve};
    use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
    use ark_ec::{AdditiveGroup as _, AffineRepr, CurveConfig, CurveGroup, PrimeGroup};

    use crate::backend::arkworks::endomorphism::psi;
    use crate::parameters::armv7em::tower::{Fq2, fq2};

    /// The curve.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Config;

    impl CurveConfig for Config {
        type BaseField = Fq2;
        type ScalarField = Fr;
        const COFACTOR: &'static [u64] = <curve::Config as CurveConfig>::COFACTOR;
        const COFACTOR_INV: Fr = <curve::Config as CurveConfig>::COFACTOR_INV;
    }

    impl SWCurveConfig for Config {
        const COEFF_A: Fq2 = fq2(<curve::Config as SWCurveConfig>::COEFF_A);
        const COEFF_B: Fq2 = fq2(<curve::Config as SWCurveConfig>::COEFF_B);
        const GENERATOR: Affine<Self> =
            Affine::new_unchecked(fq2(curve::G2_GENERATOR_X), fq2(curve::G2_GENERATOR_Y));
        type ZeroFlag = ();

        fn mul_by_a(_: Fq2) -> Fq2 {
            Self::COEFF_A
        }

        fn is_in_correct_subgroup_assuming_on_curve(point: &Affine<Self>) -> bool {
            // M. Scott, eprint 2021/1130, section 4: ψ(P) = −z·P.
            -times_z!(point) == psi(point.into_group())
        }

        fn clear_cofactor(point: &Affine<Self>) -> Affine<Self> {
            // A. Budroni, F. Pintore, eprint 2017/419, section 4.1, with x = −z:
            // (x² − x − 1)·P + (x − 1)·ψ(P) + ψ²(2P) = x·(x·P + ψ(P)) − x·P − P − ψ(P) + ψ²(2P)
            let point = point.into_group();
            let (once, image): (Projective<Self>, _) = (-times_z!(point), psi(point));
            let twice = -times_z!((once + image));
            (twice - once - point - image + psi(psi(point.double()))).into_affine()
        }
    }
}
