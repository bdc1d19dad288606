//! The two curves, as types.

use core::fmt::Debug;
use core::hash::Hash;

use ark_bls12_381::Fr;
use ark_ec::hashing::curve_maps::wb::WBConfig;
use ark_ec::short_weierstrass::SWCurveConfig;
use ark_ff::{Field, PrimeField};
use quiver_crypto::{Zeroizing, expand_message};

use self::sealed::CurveParameters;
use crate::backend::{Active, Backend, Endomorphism, Supported};
use crate::parameters::{Fq, Fq2, g1, g2};
use crate::{G1, G2, Point};

/// Bytes that are reduced to one coefficient of a field element: 381 bits and 128 more (RFC 9380, section
/// 8.8).
const COEFFICIENT: usize = 64;

/// Parameters that the back ends need of a curve; out of reach, so that there are no other curves.
pub(crate) mod sealed {
    use super::{Curve, Endomorphism, Field, Fq, Fr, Point, SWCurveConfig, Supported, WBConfig};

    pub trait CurveParameters: Endomorphism + Supported {
        /// Field of the coordinates.
        type Field: Field<BasePrimeField = Fq>;
        type Config: SWCurveConfig<BaseField = Self::Field, ScalarField = Fr> + WBConfig;
        type Bytes;
        const ZEROS: Self::Bytes;

        /// `hash_to_field(msg, 2)` of RFC 9380, section 5.2, with SHA-256 and m coefficients of 64 bytes
        /// each.
        fn hash_to_field(domain: &str, parts: &[&[u8]]) -> [Self::Field; 2];

        /// 1/element, or 0 of 0, by that of one element of Fp.
        fn invert_by(element: &Self::Field, invert: impl FnOnce(&Fq) -> Fq) -> Self::Field;

        /// Computes [`Point::multiply_generator`].
        fn multiply_generator(scalar: &Fr) -> Point<Self>
        where
            Self: Curve;
    }
}

/// One of the two curves whose subgroups of order r are paired: [`G1Curve`] or [`G2Curve`].
///
/// Code that serves either group is generic over it, as [`Point`](crate::Point) is. Nobody else can implement
/// it.
pub trait Curve:
    CurveParameters<Bytes = Self::Encoding> + Copy + Debug + Eq + Ord + Hash + Send + Sync + 'static
{
    /// Name of the group.
    const NAME: &'static str;
    /// Bytes of an encoded point.
    const ENCODED_LEN: usize;

    /// An encoded point: an array of [`ENCODED_LEN`](Self::ENCODED_LEN) bytes.
    type Encoding: Copy
        + AsRef<[u8]>
        + AsMut<[u8]>
        + for<'a> TryFrom<&'a [u8]>
        + Debug
        + Eq
        + Ord
        + Hash
        + Send
        + Sync
        + 'static;
}

/// y² = x³ + 4 over Fp, whose points have 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum G1Curve {}

/// y² = x³ + 4(u + 1) over Fp², whose points have 96 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum G2Curve {}

impl Curve for G1Curve {
    const NAME: &'static str = "G1";
    const ENCODED_LEN: usize = 48;
    type Encoding = [u8; 48];
}

impl Curve for G2Curve {
    const NAME: &'static str = "G2";
    const ENCODED_LEN: usize = 96;
    type Encoding = [u8; 96];
}

impl CurveParameters for G1Curve {
    type Bytes = [u8; 48];
    type Field = Fq;
    type Config = g1::Config;
    const ZEROS: [u8; 48] = [0; 48];

    fn hash_to_field(domain: &str, parts: &[&[u8]]) -> [Fq; 2] {
        // RFC 9380, section 5.2: two elements of Fp, 64 bytes for each.
        let uniform = Zeroizing::new(expand_message::<{ 2 * COEFFICIENT }>(&[domain.as_bytes()], parts));
        let mut coefficients = uniform.chunks(COEFFICIENT).map(Fq::from_be_bytes_mod_order);
        [(); 2].map(|()| coefficients.next().unwrap_or_default())
    }

    fn invert_by(element: &Fq, invert: impl FnOnce(&Fq) -> Fq) -> Fq {
        invert(element)
    }

    fn multiply_generator(scalar: &Fr) -> G1 {
        Active::multiply_generator(scalar)
    }
}

impl CurveParameters for G2Curve {
    type Bytes = [u8; 96];
    type Field = Fq2;
    type Config = g2::Config;
    const ZEROS: [u8; 96] = [0; 96];

    fn hash_to_field(domain: &str, parts: &[&[u8]]) -> [Fq2; 2] {
        // RFC 9380, section 5.2: two elements of Fp², 64 bytes for each coefficient.
        let uniform = Zeroizing::new(expand_message::<{ 4 * COEFFICIENT }>(&[domain.as_bytes()], parts));
        let mut coefficients = uniform.chunks(COEFFICIENT).map(Fq::from_be_bytes_mod_order);
        let mut next = || coefficients.next().unwrap_or_default();
        [(); 2].map(|()| Fq2::new(next(), next()))
    }

    fn invert_by(Fq2 { c0, c1, .. }: &Fq2, invert: impl FnOnce(&Fq) -> Fq) -> Fq2 {
        // 1/(a + b·u) = (a − b·u)/(a² + b²), for u² = −1.
        let inverse = invert(&(c0.square() + c1.square()));
        Fq2::new(*c0 * inverse, -(*c1 * inverse))
    }

    fn multiply_generator(scalar: &Fr) -> G2 {
        G2::generator() * scalar
    }
}
