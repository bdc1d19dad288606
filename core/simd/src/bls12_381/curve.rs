//! Eight points of the curve y² = x³ + 4 at once.
//!
//! Source: Renes, Costello, Batina, *Complete addition formulas for prime order elliptic curves*, eprint
//! 2015/1060, algorithms 7 to 9 for a = 0. They hold for all points of a curve without points of order two,
//! the identity, equal and opposite ones among them. This curve has an odd number of points, so that is every
//! point of it, of whatever order; there are no exceptions, and nothing to decide.
//!
//! | symbol | here |
//! |---|---|
//! | X, Y, Z | homogeneous coordinates: x = X/Z, y = Y/Z; (0 : 1 : 0) is the identity |
//! | b₃ = 3b | 12 |

use crate::bls12_381::Jacobian;
use crate::bls12_381::field::{Addends, Constant, TightElement, dot};
use crate::words::{LANES, Mask};

/// The cube root of one with which (x, y) ↦ (βx, y) multiplies points of order r by −z², z the absolute value
/// of the curve's parameter.
const BETA: Constant = [
    0xd_75aa_ff33_455f,
    0xd_0953_56b7_cbb6,
    0x9_53a2_f6fa_079f,
    0x1_080c_f0a3_d697,
    0x3_f7de_3465_fe7c,
    0x0_1f71_fd68_96ec,
    0xd_9dd9_cc17_2747,
    0x0_0000_0000_7d91,
];

/// A point for each lane.
#[derive(Clone, Copy)]
pub(crate) struct LanePoint {
    pub(crate) x: TightElement,
    pub(crate) y: TightElement,
    pub(crate) z: TightElement,
}

impl LanePoint {
    /// The identity in all lanes.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn identity() -> Self {
        Self { x: TightElement::zero(), y: TightElement::one(), z: TightElement::zero() }
    }

    /// Up to eight points; lanes without one have the identity.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn enter(points: &[Jacobian]) -> Self {
        let mut coordinates = [[[0; 6]; LANES]; 3];
        for (lane, point) in points.iter().enumerate().take(LANES) {
            for (elements, coordinate) in coordinates.iter_mut().zip(point) {
                if let Some(element) = elements.get_mut(lane) {
                    *element = *coordinate;
                }
            }
        }
        let [x, y, z] = &coordinates;
        let (x, y, z) = (TightElement::enter(x), TightElement::enter(y), TightElement::enter(z));
        // X/Z² and Y/Z³ are XZ/Z³ and Y/Z³.
        let cube = z.mul(&z).mul(&z);
        Self { x: x.mul(&z), y: y.select(&TightElement::one(), z.is_zero()), z: cube }
    }

    /// The points, in Jacobian coordinates: z = 0 for the identity.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn leave(&self) -> [Jacobian; LANES] {
        let Self { x, y, z } = self;
        // X/Z and Y/Z are XZ/Z² and YZ²/Z³.
        let square = z.mul(z);
        let (xs, ys, zs) = (x.mul(z).leave(), y.mul(&square).leave(), z.leave());
        let mut points = [[[0; 6]; 3]; LANES];
        let each = points.iter_mut().zip(xs).zip(ys).zip(zs);
        each.for_each(|(((point, x), y), z)| *point = [x, y, z]);
        points
    }

    /// 2·self: algorithm 9.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn double(&self) -> Self {
        let Self { x, y, z } = self;
        let (yy, zz) = (dot([[y, y]]), dot([[z, z]]));
        let (yz, xy) = (y.mul(z), x.mul(y));
        // b₃Z² = 12·Z²
        let b3zz = zz.tripled().shifted::<2>();
        let eight = yy.shifted::<3>().carry();
        let sum = yy.plus(&b3zz).carry();
        // Y² − 3·b₃Z²
        let difference = yy.minus(&b3zz.tripled()).carry();
        let b3zz = b3zz.carry();
        Self {
            x: dot([[&difference, &xy]]).doubled().carry(),
            y: dot([[&difference, &sum], [&b3zz, &eight]]).carry(),
            z: yz.mul(&eight),
        }
    }

    /// self + other: algorithm 7.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline(never)]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let (Self { x: x1, y: y1, z: z1 }, Self { x: x2, y: y2, z: z2 }) = (self, other);
        let (xx, yy, zz) = (dot([[x1, x2]]), dot([[y1, y2]]), dot([[z1, z2]]));
        let xy = dot([[x1, y2], [x2, y1]]).carry();
        let yz = dot([[y1, z2], [y2, z1]]).carry();
        let xz = dot([[x1, z2], [x2, z1]]);
        sum(&xx, &yy, &zz, [&xy, &yz], &xz)
    }

    /// self + (x, y): algorithm 8.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline(never)]
    pub(crate) fn add_affine(&self, [x2, y2]: &[TightElement; 2]) -> Self {
        let Self { x: x1, y: y1, z: z1 } = self;
        let xy = dot([[x1, y2], [x2, y1]]).carry();
        let yz = dot([[y2, z1]]).plus(&y1.wide()).carry();
        let xz = dot([[x2, z1]]).plus(&x1.wide());
        sum(&dot([[x1, x2]]), &dot([[y1, y2]]), &z1.wide(), [&xy, &yz], &xz)
    }

    /// −self in the lanes of the mask, self in the others. Y must be below 2^10·p, as sums, doubles and what
    /// enters are.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn negate_if(&self, mask: Mask) -> Self {
        Self { y: self.y.select(&self.y.neg(), mask), ..*self }
    }

    /// `other` in the lanes of the mask, `self` in the others.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn select(&self, other: &Self, mask: Mask) -> Self {
        Self {
            x: self.x.select(&other.x, mask),
            y: self.y.select(&other.y, mask),
            z: self.z.select(&other.z, mask),
        }
    }

    /// (βx, y): −z² · self in the subgroup of order r, and elsewhere a point of the same order.
    #[target_feature(enable = "avx512f,avx512ifma")]
    #[inline]
    pub(crate) fn endomorphism(&self) -> Self {
        Self { x: self.x.mul(&TightElement::constant(&BETA)), ..*self }
    }

    /// integer · self, in a time that depends on the integer, which is not zero.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn times_public(&self, integer: u64) -> Self {
        (0..integer.ilog2()).rev().fold(*self, |sum, bit| {
            let twice = sum.double();
            if integer >> bit & 1 == 1 { twice.add(self) } else { twice }
        })
    }

    /// The lanes in which both are the same point.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn equals(&self, other: &Self) -> Mask {
        let same = |a: &TightElement, b: &TightElement| {
            a.mul(&other.z).wide().minus(&b.mul(&self.z).wide()).carry().is_zero()
        };
        // Identities are equal to nothing but identities: 0·Y = 1·0 would hold for two with Z = 0 alone,
        // where X is 0 too.
        same(&self.x, &other.x) & same(&self.y, &other.y) & !(self.z.is_zero() ^ other.z.is_zero())
    }
}

/// Common part of algorithms 7 and 8: the sum, from X₁X₂, Y₁Y₂, Z₁Z₂, X₁Y₂ + X₂Y₁, Y₁Z₂ + Y₂Z₁ and X₁Z₂ +
/// X₂Z₁.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn sum(xx: &Addends, yy: &Addends, zz: &Addends, [xy, yz]: [&TightElement; 2], xz: &Addends) -> LanePoint {
    let b3zz = zz.tripled().shifted::<2>();
    let (sum, difference) = (yy.plus(&b3zz).carry(), yy.minus(&b3zz).carry());
    // 3·X₁X₂, and the opposites of it and of b₃(X₁Z₂ + X₂Z₁)
    let three = xx.tripled();
    let zero = TightElement::zero().wide();
    let (minus_three, three) = (zero.minus(&three).carry(), three.carry());
    let minus_b3xz = zero.minus(&xz.tripled().shifted::<2>()).carry();
    LanePoint {
        x: dot([[xy, &difference], [yz, &minus_b3xz]]).carry(),
        y: dot([[&difference, &sum], [&minus_b3xz, &minus_three]]).carry(),
        z: dot([[&sum, yz], [&three, xy]]).carry(),
    }
}
