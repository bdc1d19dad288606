//! The ladder on AVX2 and FMA: four points per vector, 32 vectors per inversion.

use core::hint::black_box;

use zeroize::Zeroizing;

use self::field::Tight;
use self::ladder::{Fraction, ladder};
use self::limbs::Fold;
use super::bytes::{gather, scatter};
use super::swaps::Swaps;
use crate::avx2::Avx2;

mod field;
mod ladder;
mod limbs;

/// Numbers that are worked on at once.
const LANES: usize = 4;

/// Vectors that share one inversion.
const GROUPS: usize = 32;

/// Puts X25519(scalar, u) in the place of each u.
pub(super) fn multiply(avx2: Avx2, scalar: &[u8; 32], us: &mut [[u8; 32]]) {
    let swaps = Swaps::new(scalar);
    for chunk in us.chunks_mut(GROUPS * LANES) {
        avx2.run(multiply_chunk, (&swaps, chunk));
    }
}

/// Multiplies as [`multiply`] does, as many points as share an inversion.
#[target_feature(enable = "avx2,fma")]
fn multiply_chunk((swaps, us): (&Swaps, &mut [[u8; 32]])) {
    let (zero, one) = (Tight::small(0.0), Tight::small(1.0));
    let fold = Fold::new();
    let mut products = [Fraction { x: zero, z: one }; GROUPS];
    for (product, group) in products.iter_mut().zip(us.chunks(LANES)) {
        *product = ladder(&gather(group), swaps, fold);
    }
    let groups = us.len().div_ceil(LANES);
    divide(products.get_mut(..groups).unwrap_or_default(), fold);
    for (product, group) in products.iter().zip(us.chunks_mut(LANES)) {
        scatter(&Zeroizing::new(product.x.to_words()), group);
    }
    products.fill(Fraction { x: zero, z: zero });
    // The compiler must assume a read, and so has to write the zeros.
    black_box(&mut products);
}

/// Makes every x what x / z is, and 0 where z is 0, by one inversion: Montgomery's trick, lane by lane.
#[target_feature(enable = "avx2,fma")]
fn divide(fractions: &mut [Fraction], fold: Fold) {
    let (zero, one) = (Tight::small(0.0), Tight::small(1.0));
    let mut before = [one; GROUPS];
    let mut product = one;
    for (Fraction { x, z }, before) in fractions.iter_mut().zip(&mut before) {
        let undefined = z.is_zero();
        (*x, *z) = (x.select(zero, undefined), z.select(one, undefined));
        *before = product;
        product = product.mul_raised(*z, fold).carry();
    }
    let mut inverse = product.invert(fold);
    for (Fraction { x, z }, before) in fractions.iter_mut().zip(&before).rev() {
        *x = x.mul_raised(inverse.mul_raised(*before, fold).carry(), fold).carry();
        inverse = inverse.mul_raised(*z, fold).carry();
    }
    before.fill(zero);
    black_box(&mut before);
}
