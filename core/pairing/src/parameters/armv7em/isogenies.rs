//! Hashing to the curves: the isogenous curves and the maps from them, RFC 9380, sections 8.8 and E.

use ark_bls12_381 as curve;
use ark_bls12_381::Fr;
use ark_ec::CurveConfig;
use ark_ec::hashing::curve_maps::swu::SWUConfig;
use ark_ec::hashing::curve_maps::wb::{IsogenyMap, WBConfig};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::curves::{g1, g2};
use super::tower::{Fq, Fq2, fq, fq2, fq2s, fqs};

macro_rules! isogeny {
    (
        $name:ident, $group:ident, $field:ty, $one:ident, $many:ident;
        $x_above:literal / $x_below:literal, $y_above:literal / $y_below:literal
    ) => {
        #[doc = concat!("The curve isogenous to that of ", stringify!($group), ".")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name;

        impl CurveConfig for $name {
            type BaseField = $field;
            type ScalarField = Fr;
            const COFACTOR: &'static [u64] = <Isogenous<curve::$group::Config> as CurveConfig>::COFACTOR;
            const COFACTOR_INV: Fr = <Isogenous<curve::$group::Config> as CurveConfig>::COFACTOR_INV;
        }

        impl SWCurveConfig for $name {
            const COEFF_A: $field = $one(<Isogenous<curve::$group::Config> as SWCurveConfig>::COEFF_A);
            const COEFF_B: $field = $one(<Isogenous<curve::$group::Config> as SWCurveConfig>::COEFF_B);
            const GENERATOR: Affine<Self> = {
                let generator = <Isogenous<curve::$group::Config> as SWCurveConfig>::GENERATOR;
                Affine::new_unchecked($one(generator.x), $one(generator.y))
            };
            type ZeroFlag = ();
        }

        impl SWUConfig for $name {
            const ZETA: $field = $one(<Isogenous<curve::$group::Config> as SWUConfig>::ZETA);
        }

        impl WBConfig for $group::Config {
            type IsogenousCurve = $name;
            const ISOGENY_MAP: IsogenyMap<'static, $name, Self> = {
                IsogenyMap {
                    x_map_numerator: &const {
                        $many::<$x_above>(<curve::$group::Config as WBConfig>::ISOGENY_MAP.x_map_numerator)
                    },
                    x_map_denominator: &const {
                        $many::<$x_below>(<curve::$group::Config as WBConfig>::ISOGENY_MAP.x_map_denominator)
                    },
                    y_map_numerator: &const {
                        $many::<$y_above>(<curve::$group::Config as WBConfig>::ISOGENY_MAP.y_map_numerator)
                    },
                    y_map_denominator: &const {
                        $many::<$y_below>(<curve::$group::Config as WBConfig>::ISOGENY_MAP.y_map_denominator)
                    },
                }
            };
        }
    };
}

type Isogenous<C> = <C as WBConfig>::IsogenousCurve;

isogeny!(FirstIsogenous, g1, Fq, fq, fqs; 12 / 11, 16 / 16);
isogeny!(SecondIsogenous, g2, Fq2, fq2, fq2s; 4 / 3, 4 / 4);
