//! Detection of AVX2 and FMA, and the one call into code compiled for them.

use crate::detection;

/// Proof that this processor has AVX2 and FMA. Only [`detect`](Self::detect) makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Detects them, at run time where there is an operating system.
    pub(crate) fn detect() -> Option<Self> {
        detection::has_avx2().then_some(Self(()))
    }

    /// Runs code for vectors.
    #[expect(unsafe_code, reason = "the one step from ordinary code into code for certain processors")]
    pub(crate) fn run<I, O>(self, body: unsafe fn(I) -> O, input: I) -> O {
        // SAFETY: all bodies, which this crate alone can give, are safe functions but for the instructions
        // they were compiled to, those of AVX2 and FMA. `self` exists, so `detect` has found both.
        unsafe { body(input) }
    }
}
