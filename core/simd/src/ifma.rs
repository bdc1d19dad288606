//! Detection of AVX-512 IFMA, and the one call into code compiled for it.

use crate::detection;

/// Proof that this processor has AVX-512 F and IFMA. Only [`detect`](Self::detect) makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Detects them, at run time where there is an operating system.
    pub(crate) fn detect() -> Option<Self> {
        detection::has_ifma().then_some(Self(()))
    }

    /// Runs code for vectors.
    #[expect(unsafe_code, reason = "the one step from ordinary code into code for certain processors")]
    pub(crate) fn run<I, O>(self, body: unsafe fn(I) -> O, input: I) -> O {
        // SAFETY: all bodies, which this crate alone can give, are safe functions but for the instructions
        // they were compiled to, those of AVX-512 F and IFMA. `self` exists, so `detect` has found both.
        unsafe { body(input) }
    }
}

/// Runs a test's code for vectors. On a machine without the instructions it returns `None` and prints so
/// where the test harness does not hide it.
#[cfg(test)]
pub(crate) fn on_vectors<I, O>(body: unsafe fn(I) -> O, input: I) -> Option<O> {
    use std::io::Write;

    static WARNED: std::sync::Once = std::sync::Once::new();
    let Some(ifma) = Ifma::detect() else {
        WARNED.call_once(|| {
            let message =
                b"\nNOT TESTED: this machine has no AVX-512 IFMA; no test of quiver-simd's vector code ran\n";
            std::io::stderr().write_all(message).unwrap();
        });
        return None;
    };
    Some(ifma.run(body, input))
}
