//! The two curves in blst's types.

use ::blst::{
    BLST_ERROR, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine, min_pk, min_sig, p1_affines, p2_affines,
};
use ark_ec::short_weierstrass::{Affine, Projective};

use super::convert::Coordinate;
use super::ffi;
use crate::curve::sealed::CurveParameters;
use crate::{Curve, G1, G1Curve, G2, G2Curve, Group, Point};

/// Functions of blst on one curve.
pub trait Native {
    /// A point in Jacobian coordinates.
    type Jacobian: Copy + Default;

    fn to_native(point: &Point<Self>) -> Self::Jacobian
    where
        Self: Curve;
    fn to_point(native: &Self::Jacobian) -> Point<Self>
    where
        Self: Curve;

    /// scalar · point, in constant time; the scalar is little-endian and below r.
    fn multiply(point: &Self::Jacobian, scalar: &[u8; 32]) -> Self::Jacobian;
    /// Σ scalar · point: at least one point, scalars of so many bits in whole bytes, little-endian, one after
    /// the other.
    fn combine(points: &[Self::Jacobian], scalars: &[u8], bits: usize) -> Self::Jacobian;
    /// Computes [`Point::hash`].
    fn hash_to_group(domain: &str, parts: &[&[u8]]) -> Point<Self>
    where
        Self: Curve;
    /// The point of the subgroup, or the identity, that the bytes encode.
    fn decode(bytes: &[u8]) -> Result<Point<Self>, BLST_ERROR>
    where
        Self: Curve;
}

macro_rules! native {
    (
        $curve:ty: $point:ty;
        $jacobian:ident, $native_affine:ident, $affines:ident, $keys:ident;
        $multiply:ident, $map:ident
    ) => {
        impl Native for $curve {
            type Jacobian = $jacobian;

            fn to_native(point: &$point) -> $jacobian {
                let Projective { x, y, z } = &point.0;
                $jacobian { x: x.to_native(), y: y.to_native(), z: z.to_native() }
            }

            fn to_point(native: &$jacobian) -> $point {
                let [x, y, z] = [&native.x, &native.y, &native.z].map(Coordinate::from_native);
                Point(Projective { x, y, z })
            }

            fn multiply(point: &$jacobian, scalar: &[u8; 32]) -> $jacobian {
                ffi::$multiply(point, scalar)
            }

            fn combine(points: &[$jacobian], scalars: &[u8], bits: usize) -> $jacobian {
                $affines::from(points).mult(scalars, bits)
            }

            fn hash_to_group(domain: &str, parts: &[&[u8]]) -> $point {
                let [u, v] = Self::hash_to_field(domain, parts).map(|element| element.to_native());
                Self::to_point(&ffi::$map(&u, &v))
            }

            fn decode(bytes: &[u8]) -> Result<$point, BLST_ERROR> {
                // A public key is a point; its validation is the check for the subgroup, and for the identity
                // before.
                let key = $keys::PublicKey::uncompress(bytes)?;
                match key.validate() {
                    Ok(()) => {
                        let native = $native_affine::from(key);
                        let [x, y] = [&native.x, &native.y].map(Coordinate::from_native);
                        Ok(Point(Affine::new_unchecked(x, y).into()))
                    }
                    Err(BLST_ERROR::BLST_PK_IS_INFINITY) => Ok(Point::identity()),
                    Err(error) => Err(error),
                }
            }
        }
    };
}

native! {
    G1Curve: G1;
    blst_p1, blst_p1_affine, p1_affines, min_pk;
    multiply_p1, map_to_g1
}

native! {
    G2Curve: G2;
    blst_p2, blst_p2_affine, p2_affines, min_sig;
    multiply_p2, map_to_g2
}
