//! Wipes the stack below a computation.
//!
//! Libraries erase the values that they hold, seldom the copies and steps that a compiler puts beside them.
//! Below the stack pointer these last until something else happens to be called.

use core::hint::black_box;

use zeroize::Zeroize;

/// Words of the stack that are overwritten.
const WORDS: usize = 768;

/// Computes, then overwrites the 3 KiB of the stack below the caller, where the computation ran.
///
/// The caller erases the result. A computation that went deeper leaves what was there: this covers one
/// multiplication of a point, on a microcontroller and on a host. It is a second line of defence: no property
/// of a protocol rests on it.
#[inline]
pub fn erasing_stack<T>(compute: impl FnOnce() -> T) -> T {
    let result = apart(compute);
    overwrite();
    result
}

/// A frame of its own, which begins where that of [`overwrite`] will.
#[inline(never)]
fn apart<T>(compute: impl FnOnce() -> T) -> T {
    compute()
}

#[inline(never)]
fn overwrite() {
    let mut words = [0_u32; WORDS];
    words.zeroize();
    black_box(&mut words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_that_of_the_computation() {
        let text = alloc::string::String::from("kept");
        assert_eq!(erasing_stack(|| text), "kept");
    }
}
