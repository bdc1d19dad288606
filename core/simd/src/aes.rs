//! AES-128 of many blocks at once, as garbled circuits hash with it: H(x, i) = π(π(x) ⊕ i) ⊕ π(x).
//!
//! A block goes through both encryptions without leaving its register, beside seven other registers: a round
//! takes four cycles, and two may begin in each.
//!
//! | [`Backend`] | where | blocks in a register |
//! |---|---|---|
//! | [`Avx512`](Backend::Avx512) | x86-64 with AVX-512 F and VAES (Zen 4, Ice Lake) | four |
//! | [`Vaes`](Backend::Vaes) | x86-64 with AVX2 and VAES (Zen 3, Alder Lake) | two |
//! | [`AesNi`](Backend::AesNi) | x86-64 with AES-NI | one |
//!
//! Elsewhere there is nothing; `quiver-garble` has the crate `aes`, in whose place this module computes, and
//! with the same results.
//!
//! Constant in time: neither blocks nor keys choose an address or a branch.

use zeroize::Zeroize as _;

#[cfg(target_feature = "sse2")]
pub mod block;
mod hash;
mod units;
mod words;

#[cfg(target_feature = "sse2")]
pub use block::Block;
use units::{AesNi, Avx512, Vaes};
pub use words::Words;

use crate::allowed::{Allowed, allowed};

/// Blocks of the narrowest registers that go through the rounds together.
pub(crate) const TOGETHER: usize = 8;

/// Implementation of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// AVX-512 F and VAES.
    Avx512,
    /// AVX2 and VAES.
    Vaes,
    /// AES-NI.
    AesNi,
}

impl Backend {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Vaes, Self::AesNi];

    /// Whether this machine has the instructions.
    #[must_use]
    pub fn is_there(self) -> bool {
        Unit::detect(self).is_some()
    }

    /// The kind of processor that the environment has to allow.
    fn needs(self) -> Allowed {
        match self {
            Self::Avx512 => Allowed::Avx512,
            Self::Vaes => Allowed::Vaes,
            Self::AesNi => Allowed::Avx2,
        }
    }
}

/// The fastest implementation that this machine has and the environment allows, if any: `QUIVER_SIMD=vaes`
/// forbids AVX-512, `avx2` VAES as well, `serial` all that is here.
#[must_use]
pub fn backend() -> Option<Backend> {
    Backend::ALL.into_iter().find(|backend| backend.needs() <= allowed() && backend.is_there())
}

/// A proof that the processor has what a backend needs.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Avx512(AesNi, Vaes, Avx512),
    Vaes(AesNi, Vaes),
    AesNi(AesNi),
}

impl Unit {
    fn detect(backend: Backend) -> Option<Self> {
        let narrow = AesNi::detect()?;
        match backend {
            Backend::Avx512 => Some(Self::Avx512(narrow, Vaes::detect()?, Avx512::detect()?)),
            Backend::Vaes => Vaes::detect().map(|wide| Self::Vaes(narrow, wide)),
            Backend::AesNi => Some(Self::AesNi(narrow)),
        }
    }

    fn narrow(self) -> AesNi {
        match self {
            Self::Avx512(narrow, ..) | Self::Vaes(narrow, _) | Self::AesNi(narrow) => narrow,
        }
    }
}

/// π: AES-128 under a public key.
#[derive(Clone, Debug)]
pub struct Permutation {
    unit: Unit,
    keys: hash::RoundKeys,
}

impl Permutation {
    /// π under this key, by this implementation; `None` without its instructions.
    #[must_use]
    pub fn new(backend: Backend, key: &[u8; 16]) -> Option<Self> {
        Some(Self::expanded(Unit::detect(backend)?, key))
    }

    /// π under another key.
    #[must_use]
    pub fn with_key(&self, key: &[u8; 16]) -> Self {
        Self::expanded(self.unit, key)
    }

    fn expanded(unit: Unit, key: &[u8; 16]) -> Self {
        Self { unit, keys: unit.narrow().run(hash::expand, u128::from_le_bytes(*key)) }
    }

    /// π(x), of a public x.
    #[must_use]
    pub fn encrypt(&self, x: u128) -> u128 {
        self.unit.narrow().run(hash::encrypt, (&self.keys, x))
    }

    /// How many blocks, from these on, take no longer to hash than so many: those that fill the registers.
    #[must_use]
    pub fn whole(&self, blocks: usize) -> usize {
        let width = match self.unit {
            Unit::Avx512(..) => 4,
            Unit::Vaes(..) => 2,
            Unit::AesNi(_) => 1,
        };
        match blocks % (width * TOGETHER) {
            0 => blocks,
            // What remains goes through narrower registers, if it fills them.
            rest => blocks - rest + rest.next_power_of_two().max(TOGETHER),
        }
    }

    /// Puts H(x, i) in the place of each x, little-endian. The n-th block has i = first + n, or first + n/2
    /// if they come in `pairs`; i is below 2^63.
    pub fn hash<W: Words>(&self, blocks: &mut [W], first: u64, pairs: bool) {
        let tweaks = hash::Tweaks { first, pairs };
        let wide = match self.unit {
            Unit::Avx512(_, _, unit) => unit.run(hash::avx512, (&self.keys, &mut *blocks, tweaks)),
            Unit::Vaes(..) | Unit::AesNi(_) => 0,
        };
        let Some(rest) = blocks.get_mut(wide..) else { return };
        let done = match self.unit {
            Unit::Avx512(_, unit, _) | Unit::Vaes(_, unit) if rest.len() > TOGETHER => {
                unit.run(hash::vaes, (&self.keys, &mut *rest, tweaks.after(wide)))
            }
            _ => 0,
        };
        let done = wide + done;
        // What does not fill the wide registers.
        let Some(rest) = blocks.get_mut(done..) else { return };
        let (narrow, tweaks) = (self.unit.narrow(), tweaks.after(done));
        if rest.is_empty() {
            return;
        }
        let done = narrow.run(hash::aes_ni, (&self.keys, &mut *rest, tweaks));
        let Some(rest) = rest.get_mut(done..).filter(|rest| !rest.is_empty()) else { return };
        let mut padded = [W::from_words([0; 2]); TOGETHER];
        for (to, block) in padded.iter_mut().zip(&*rest) {
            *to = *block;
        }
        narrow.run(hash::aes_ni, (&self.keys, &mut padded, tweaks.after(done)));
        rest.copy_from_slice(padded.get(..rest.len()).unwrap_or_default());
        padded.zeroize();
    }
}
