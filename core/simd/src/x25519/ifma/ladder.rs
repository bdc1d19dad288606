//! The Montgomery ladder of RFC 7748, section 5, on eight points at once.
//!
//! | RFC 7748 | here |
//! |---|---|
//! | x_2 : z_2, the point that is doubled next, unless swapped | [`Pair::doubled`] |
//! | x_3 : z_3, which differs from it by the input point | [`Pair::sum`] |
//! | A, B, C, D | sum and difference of the coordinates of either |
//! | swap | one byte of [`Swaps`], the same for all lanes |
//!
//! Only the operand of the doubling is selected. DA and CB swap when the points do; their sum stays the same
//! and their difference changes its sign, which is squared away.

use core::hint::black_box;

use super::field::{Raised, Tight, Wide};
use crate::x25519::swaps::Swaps;

/// (A − 2) / 4 of curve25519.
const A24: i64 = 121_665;

/// A u-coordinate x / z for each lane.
#[derive(Clone, Copy)]
pub(super) struct Fraction {
    pub(super) x: Tight,
    pub(super) z: Tight,
}

/// A point on its way: coordinates as products leave them.
#[derive(Clone, Copy)]
struct IfmaLadderPoint {
    x: Raised,
    z: Wide,
}

/// The two points of the ladder.
#[derive(Clone, Copy)]
struct Pair {
    doubled: IfmaLadderPoint,
    sum: IfmaLadderPoint,
}

/// The u-coordinates of the products of one scalar with the points of the given u-coordinates.
///
/// Kept out of line so that its machine code can be found and checked.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(super) fn ladder(u: Tight, swaps: &Swaps) -> Fraction {
    let (zero, one) = (Tight::small(0), Tight::small(1));
    let doubled = IfmaLadderPoint { x: one.raised(), z: zero.wide() };
    let mut pair = Pair { doubled, sum: IfmaLadderPoint { x: u.raised(), z: one.wide() } };
    for &swap in swaps.steps() {
        pair = step(pair, u, black_box(swap));
    }
    let Pair { doubled, sum } = pair;
    let last = black_box(swaps.last());
    Fraction {
        x: doubled.x.carry().select(sum.x.carry(), last),
        z: doubled.z.carry().select(sum.z.carry(), last),
    }
}

/// A bit of the scalar: twice one of the points, and the points' sum.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn step(pair: Pair, u: Tight, swap: u8) -> Pair {
    let Pair { doubled, sum } = pair;
    let (a, b) = (doubled.x.add(doubled.z), doubled.x.sub(doubled.z));
    let (c, d) = (sum.x.add(sum.z), sum.x.sub(sum.z));
    let (da, cb) = (d.mul_raised(a), c.mul(b));
    let aa = a.select(c, swap).square_raised();
    let difference = da.sub(cb);
    let bb = b.select(d, swap).square();
    // x_3 = (DA + CB)², z_3 = x_1·(DA − CB)²
    let difference = difference.square();
    let x = da.add(cb).square_raised();
    let e = aa.sub(bb);
    let (aa, bb) = (aa.carry(), bb.carry());
    let sum = IfmaLadderPoint { x, z: u.mul(difference.carry()) };
    // x_2 = AA·BB, z_2 = E·(AA + a24·E)
    let multiple = aa.plus_multiple(e, A24).carry();
    Pair { doubled: IfmaLadderPoint { x: aa.mul_raised(bb), z: e.mul(multiple) }, sum }
}
