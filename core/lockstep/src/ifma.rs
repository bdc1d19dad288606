//! The ladder on AVX-512 IFMA: eight points per vector, sixteen vectors per inversion.

use core::hint::black_box;

use zeroize::Zeroizing;

use self::field::Tight;
use self::ladder::{Fraction, ladder};
use self::lanes::{LANES, gather, scatter};
use crate::scalar::Swaps;

mod field;
mod ladder;
mod lanes;
mod limbs;

/// Vectors that share one inversion.
const GROUPS: usize = 16;

/// Says that this processor has the instructions. Only [`detect`](Self::detect) makes one.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Asks the processor, and the operating system that has to save the registers.
    #[cfg(feature = "std")]
    pub(crate) fn detect() -> Option<Self> {
        let has = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512ifma");
        has.then_some(Self(()))
    }

    /// Without an operating system nobody can be asked; the build says whether the target has them.
    #[cfg(not(feature = "std"))]
    pub(crate) fn detect() -> Option<Self> {
        cfg!(all(target_feature = "avx512f", target_feature = "avx512ifma")).then_some(Self(()))
    }

    /// Puts X25519(scalar, u) in the place of each u.
    #[expect(unsafe_code, reason = "the one step from ordinary code into code for certain processors")]
    pub(crate) fn multiply(self, swaps: &Swaps, us: &mut [[u8; 32]]) {
        for chunk in us.chunks_mut(GROUPS * LANES) {
            // SAFETY: `multiply_chunk` is a safe function but for the instructions it was compiled to, those of
            // AVX-512 F and IFMA. `self` exists, so `detect` has found both.
            unsafe { multiply_chunk(swaps, chunk) }
        }
    }
}

/// As [`Ifma::multiply`], for as many points as share an inversion.
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_chunk(swaps: &Swaps, us: &mut [[u8; 32]]) {
    let (zero, one) = (Tight::small(0), Tight::small(1));
    let mut products = [Fraction { x: zero, z: one }; GROUPS];
    for (product, group) in products.iter_mut().zip(us.chunks(LANES)) {
        *product = ladder(Tight::from_words(&gather(group)), swaps);
    }
    let groups = us.len().div_ceil(LANES);
    divide(products.get_mut(..groups).unwrap_or_default());
    for (product, group) in products.iter().zip(us.chunks_mut(LANES)) {
        scatter(&Zeroizing::new(product.x.to_words()), group);
    }
    products.fill(Fraction { x: zero, z: zero });
    // Somebody might look, for all the compiler knows; so it has to write the zeros.
    black_box(&mut products);
}

/// Makes every x what x / z is, and 0 where z is 0, by one inversion: Montgomery's trick, lane by lane.
#[target_feature(enable = "avx512f,avx512ifma")]
fn divide(fractions: &mut [Fraction]) {
    let (zero, one) = (Tight::small(0), Tight::small(1));
    let mut before = [one; GROUPS];
    let mut product = one;
    for (Fraction { x, z }, before) in fractions.iter_mut().zip(&mut before) {
        let undefined = z.is_zero();
        (*x, *z) = (x.select(zero, undefined), z.select(one, undefined));
        *before = product;
        product = product.mul(*z).carry();
    }
    let mut inverse = product.invert();
    for (Fraction { x, z }, before) in fractions.iter_mut().zip(&before).rev() {
        *x = x.mul(inverse.mul(*before).carry()).carry();
        inverse = inverse.mul(*z).carry();
    }
    before.fill(zero);
    black_box(&mut before);
}

/// Runs a test's code for vectors. On a machine without the instructions there is nothing to run: then this gives nothing
/// and says so where the test harness does not hide it.
#[cfg(test)]
#[expect(
    unsafe_code,
    reason = "tests reach the same kind of code as `Ifma::multiply` does, function by function"
)]
fn on_vectors<I, O>(body: unsafe fn(I) -> O, input: I) -> Option<O> {
    use std::io::Write;

    static SAID: std::sync::Once = std::sync::Once::new();
    if Ifma::detect().is_none() {
        SAID.call_once(|| {
            let message = b"\nNOT TESTED: this machine has no AVX-512 IFMA; no test of quiver-lockstep's vector code ran\n";
            std::io::stderr().write_all(message).unwrap();
        });
        return None;
    }
    // SAFETY: callers pass safe functions compiled for AVX-512 F and IFMA, which `detect` has found.
    Some(unsafe { body(input) })
}
