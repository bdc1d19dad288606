//! Reads the build's target features, because without an operating system there is no detection at run time.

use crate::allowed::Allowed;

/// Returns true if there are AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn has_avx2() -> bool {
    cfg!(all(target_feature = "avx2", target_feature = "fma"))
}

/// Returns true if there are AVX-512 F and IFMA.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn has_ifma() -> bool {
    cfg!(all(target_feature = "avx512f", target_feature = "avx512ifma"))
}

/// Allows all instructions, as there is no environment.
pub(crate) const fn allowed() -> Allowed {
    Allowed::Avx512
}
