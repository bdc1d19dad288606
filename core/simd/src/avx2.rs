//! Detection of AVX2 and FMA, and the one call into code compiled for them.

/// Proof that this processor has AVX2 and FMA. Only [`detect`](Self::detect) makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Asks the processor, and the operating system that has to save the registers.
    #[cfg(feature = "std")]
    pub(crate) fn detect() -> Option<Self> {
        let has = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        has.then_some(Self(()))
    }

    /// Reads the build's target features: without an operating system there is no detection at run time.
    #[cfg(not(feature = "std"))]
    pub(crate) fn detect() -> Option<Self> {
        cfg!(all(target_feature = "avx2", target_feature = "fma")).then_some(Self(()))
    }

    /// Runs code for vectors.
    #[expect(unsafe_code, reason = "the one step from ordinary code into code for certain processors")]
    pub(crate) fn run<I, O>(self, body: unsafe fn(I) -> O, input: I) -> O {
        // SAFETY: all bodies, which this crate alone can give, are safe functions but for the instructions
        // they were compiled to, those of AVX2 and FMA. `self` exists, so `detect` has found both.
        unsafe { body(input) }
    }
}
