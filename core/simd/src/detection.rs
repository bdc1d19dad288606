//! Detects instruction sets at run time: asks the processor, and the operating system that has to save the registers.

extern crate std;

use std::env;
use std::sync::OnceLock;

use crate::allowed::Allowed;

/// Returns true if there are AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

/// Returns true if there are AVX-512 F and IFMA.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_ifma() -> bool {
    std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512ifma")
}

/// The most that `QUIVER_SIMD` allows: `serial` or `avx2`; all if it has neither value. It is read once.
pub(crate) fn allowed() -> Allowed {
    static ALLOWED: OnceLock<Allowed> = OnceLock::new();
    *ALLOWED.get_or_init(|| match env::var_os("QUIVER_SIMD").as_ref().and_then(|name| name.to_str()) {
        Some("serial") => Allowed::Serial,
        Some("avx2") => Allowed::Avx2,
        _ => Allowed::Avx512,
    })
}
