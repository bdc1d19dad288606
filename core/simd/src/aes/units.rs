//! Detection of AES-NI and VAES, and the one call for each into code compiled for it.

/// A proof that this processor has some features, and the step into code that is compiled for them.
macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $($feature:tt),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name(());

        impl $name {
            /// Asks the processor, and the operating system that has to save the registers.
            #[cfg(feature = "std")]
            pub(super) fn detect() -> Option<Self> {
                let has = $(std::arch::is_x86_feature_detected!($feature))&&+;
                has.then_some(Self(()))
            }

            /// Reads the build's target features: without an operating system there is no detection at run
            /// time.
            #[cfg(not(feature = "std"))]
            pub(super) fn detect() -> Option<Self> {
                cfg!(all($(target_feature = $feature),+)).then_some(Self(()))
            }

            /// Runs code compiled for these features.
            #[expect(unsafe_code, reason = "the one step from ordinary code into code for certain processors")]
            #[inline]
            pub(super) fn run<I, O>(self, body: unsafe fn(I) -> O, input: I) -> O {
                // SAFETY: all bodies, which `aes` alone can give, are safe functions but for the instructions
                // they were compiled to, those of this type's features. `self` exists, so `detect` has found
                // them.
                unsafe { body(input) }
            }
        }
    };
}

unit!(
    /// AES-NI, and SSE2, which every x86-64 has.
    AesNi,
    "aes"
);
unit!(
    /// AVX2, AES-NI, and VAES on vectors of 256 bits.
    Vaes,
    "avx2",
    "aes",
    "vaes"
);
unit!(
    /// AVX-512 F, AVX2, AES-NI, and VAES on vectors of 512 bits.
    Avx512,
    "avx512f",
    "avx2",
    "aes",
    "vaes"
);
