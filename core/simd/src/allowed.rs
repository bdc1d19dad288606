//! The instruction sets that the environment allows: one variable for everything that this crate computes.

/// Instruction sets, by kinds of processors, from the oldest on. Each allows what is before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(
    dead_code,
    reason = "without an environment nothing is forbidden, and not every feature needs every kind"
)]
pub(crate) enum Allowed {
    /// No code of this crate's own: the libraries, which ask the processor themselves.
    Serial,
    /// AVX2 and FMA: Zen 3, Skylake.
    Avx2,
    /// And AVX-512: Zen 4, Ice Lake.
    Avx512,
}

/// The most that `QUIVER_SIMD` allows: `serial` or `avx2`; all if it has neither value. It is read once.
#[cfg(feature = "std")]
pub(crate) fn allowed() -> Allowed {
    static ALLOWED: std::sync::OnceLock<Allowed> = std::sync::OnceLock::new();
    *ALLOWED.get_or_init(|| match std::env::var_os("QUIVER_SIMD").as_ref().and_then(|name| name.to_str()) {
        Some("serial") => Allowed::Serial,
        Some("avx2") => Allowed::Avx2,
        _ => Allowed::Avx512,
    })
}

/// Allows all instructions, as there is no environment.
#[cfg(not(feature = "std"))]
pub(crate) fn allowed() -> Allowed {
    Allowed::Avx512
}
