//! The Montgomery ladder of RFC 7748, section 5, on four points at once. Steps and names are those of the
//! ladder on AVX-512 IFMA, which says more about them.

use core::arch::x86_64::__m256d;
use core::hint::black_box;

use super::LANES;
use super::field::{Raised, Tight, Wide};
use super::limbs::{Fold, mask};
use crate::x25519::swaps::Swaps;

/// (A − 2) / 4 of curve25519.
const A24: f64 = 121_665.0;

/// A u-coordinate x / z for each lane.
#[derive(Clone, Copy)]
pub(super) struct Fraction {
    pub(super) x: Tight,
    pub(super) z: Tight,
}

/// A point on its way: coordinates as products leave them.
#[derive(Clone, Copy)]
struct Avx2LadderPoint {
    x: Raised,
    z: Wide,
}

/// The two points of the ladder.
#[derive(Clone, Copy)]
struct Pair {
    doubled: Avx2LadderPoint,
    sum: Avx2LadderPoint,
}

/// The u-coordinates of the products of one scalar with the points whose u-coordinates have these 64-bit
/// words.
///
/// Kept out of line so that its machine code can be found and checked.
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(super) fn ladder(words: &[[u64; LANES]; 4], swaps: &Swaps, fold: Fold) -> Fraction {
    let (zero, one, u) = (Wide::small(0), Wide::small(1), Wide::from_words(words));
    let doubled = Avx2LadderPoint { x: one.raised(), z: zero };
    let mut pair = Pair { doubled, sum: Avx2LadderPoint { x: u.raised(), z: one } };
    let u = u.raised().carry();
    for &swap in swaps.steps() {
        pair = step(pair, u, mask(black_box(swap)), fold);
    }
    let Pair { doubled, sum } = pair;
    let last = mask(black_box(swaps.last()));
    Fraction {
        x: doubled.x.carry().select(sum.x.carry(), last),
        z: doubled.z.raised().carry().select(sum.z.raised().carry(), last),
    }
}

/// A bit of the scalar: twice one of the points, and the points' sum.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn step(pair: Pair, u: Tight, swap: __m256d, fold: Fold) -> Pair {
    let Pair { doubled, sum } = pair;
    let (a, b) = (doubled.x.add(doubled.z), doubled.x.sub(doubled.z));
    let (c, d) = (sum.x.add(sum.z), sum.x.sub(sum.z));
    let (da, cb) = (d.mul_raised(a, fold), c.mul(b, fold));
    let aa = a.select(c, swap).square_raised(fold);
    let bb = b.select(d, swap).square_raised(fold).carry();
    // x_3 = (DA + CB)², z_3 = x_1·(DA − CB)²
    let difference = da.sub(cb).square_raised(fold).carry();
    let x = da.add(cb).square_raised(fold);
    let sum = Avx2LadderPoint { x, z: u.mul(difference, fold) };
    // x_2 = AA·BB, z_2 = E·(AA + a24·E)
    let tight = aa.carry();
    let e = tight.minus(bb);
    let multiple = aa.plus_multiple(e, A24, fold).carry();
    Pair { doubled: Avx2LadderPoint { x: tight.mul_raised(bb, fold), z: e.mul(multiple, fold) }, sum }
}
