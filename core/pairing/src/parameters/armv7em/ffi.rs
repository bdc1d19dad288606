//! The call of the multiplication in assembly. REVIEW.md has its contract.
#![expect(unsafe_code, reason = "the compiler does not make UMAAL of what Rust can say")]

use core::arch::global_asm;

use ark_ff::{BigInt, MontConfig};

use super::tower::FqConfig;

global_asm!(include_str!("multiply.s"), options(raw));

unsafe extern "C" {
    fn quiver_fp_multiply(product: *mut u64, a: *const u64, b: *const u64, modulus: *const u64);
}

static MODULUS: BigInt<6> = <FqConfig as MontConfig<6>>::MODULUS;

/// a · b / 2^384 modulo p, in constant time, for a and b below p.
#[inline]
pub(super) fn multiply(a: &BigInt<6>, b: &BigInt<6>) -> BigInt<6> {
    let mut product = BigInt([0; 6]);
    // SAFETY: the pointers come from arrays of six words of 64 bits, little-endian as the target is, which
    // the assembly takes for twelve of 32; it writes the first, reads the others and keeps none. The written
    // array is none of those that are read.
    unsafe {
        quiver_fp_multiply(product.0.as_mut_ptr(), a.0.as_ptr(), b.0.as_ptr(), MODULUS.0.as_ptr());
    }
    product
}
