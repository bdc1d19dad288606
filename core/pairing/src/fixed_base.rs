//! Fixed-base tables: multiples of an element that is multiplied often.

use alloc::vec::Vec;
use core::mem::size_of;

use crate::recoding::signed_windows;
use crate::{Group, Scalar};

/// Multiples of one element of a group, so that multiplying it takes additions alone.
///
/// With windows of w bits there are ⌊255 / w⌋ + 1 windows of 2^(w − 1) multiples, and a multiplication has at
/// most as many additions as there are windows:
///
/// | w | additions | multiples | bytes for [`G1`](crate::G1) | [`G2`](crate::G2) | [`Gt`](crate::Gt) |
/// |---|---|---|---|---|---|
/// | 2 | 128 | 256 | 24,576 | 49,152 | 147,456 |
/// | 4 | 64 | 512 | 49,152 | 98,304 | 294,912 |
/// | 6 (default) | 43 | 1,376 | 132,096 | 264,192 | 792,576 |
/// | 8 | 32 | 4,096 | 393,216 | 786,432 | 2,359,296 |
///
/// To make one takes an addition per multiple. **Not constant-time**: the time and the addresses depend on
/// the scalar.
#[derive(derive_more::Debug)]
#[debug("FixedBase({} windows of {width} bits)", 255 / self.width + 1)]
pub struct FixedBase<G: Group> {
    width: u32,
    /// Window by window: 1, 2, …, 2^(w − 1) times 2^(w · window) times the element.
    entries: Vec<G::Entry>,
}

impl<G: Group> FixedBase<G> {
    /// Bits of a window unless told otherwise.
    pub const DEFAULT_WINDOW: u32 = 6;

    /// A table with windows of six bits.
    #[must_use]
    pub fn new(base: &G) -> Self {
        Self::with_window(base, Self::DEFAULT_WINDOW)
    }

    /// A table with windows of so many bits, at least 2 and at most 8: a value outside is taken as the nearer
    /// of these.
    #[must_use]
    pub fn with_window(base: &G, bits: u32) -> Self {
        let width = bits.clamp(2, 8);
        let half = 1_usize << (width - 1);
        let windows = 255 / width as usize + 1;
        let mut multiples = Vec::with_capacity(windows * half);
        let mut unit = *base;
        for _ in 0..windows {
            let mut multiple = unit;
            for _ in 1..half {
                multiples.push(multiple);
                multiple += unit;
            }
            multiples.push(multiple);
            unit = multiple.double();
        }
        Self { width, entries: G::entries(&multiples) }
    }

    /// scalar · element. Not constant-time.
    #[must_use]
    pub fn multiply(&self, scalar: &Scalar) -> G {
        let mut sum = G::identity();
        let windows = self.entries.chunks(1 << (self.width - 1));
        // Signed digits: half the multiples, and subtraction for the others.
        for (window, digit) in windows.zip(signed_windows(scalar, self.width)) {
            let Some(index) = usize::from(digit.unsigned_abs()).checked_sub(1) else { continue };
            if let Some(entry) = window.get(index) {
                if digit < 0 { sum.subtract_entry(entry) } else { sum.add_entry(entry) }
            }
        }
        sum
    }

    /// Bytes that the table takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.entries.len() * size_of::<G::Entry>()
    }
}
