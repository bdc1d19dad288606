//! The instruction sets that the environment allows: one variable for everything that this crate computes.

pub(crate) use crate::detection::allowed;

/// Instruction sets, by kinds of processors, from the oldest on. Each allows what is before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allowed {
    /// No code of this crate's own: the libraries, which ask the processor themselves.
    Serial,
    /// AVX2 and FMA: Zen 3, Skylake.
    Avx2,
    /// And AVX-512: Zen 4, Ice Lake.
    Avx512,
}
