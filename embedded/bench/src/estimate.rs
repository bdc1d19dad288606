//! Milliseconds on a Cortex-M4 at 64 MHz, estimated from counted instructions.
//!
//! An emulator counts instructions exactly and knows nothing of cycles. How many cycles the instructions of a
//! benchmark take on average was computed from what QEMU executed and the processor's instruction timings
//! (ARM DDI 0439, section 3.3), by `embedded/bench/cycles.py`:
//!
//! | | least | most |
//! |---|---|---|
//! | data processing, multiplication, branch not taken | 1 | 1 |
//! | load of a word | 2, after a load or store 1 | 2 |
//! | store of a word | 1 | 2 |
//! | load or store of n words | n + 1 | n + 1 |
//! | branch taken | 2 | 4 |
//! | division | 2 | 12 |
//!
//! A [`Mix`] has the least and the most of its benchmarks. Flash has wait states at 64 MHz, which a cache
//! hides as long as it holds the code: they are not in it. Only a board tells the truth.

use core::fmt;

/// Class of the code by its instructions, which sets the average cycles of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mix {
    /// Hashing and ciphers: words in registers.
    Words,
    /// Arithmetic of curve25519 and ristretto255.
    Curve25519,
    /// Arithmetic of BLS12-381, over a multiplication of field elements in assembly.
    Bls12381,
    /// Permutations of Keccak, and polynomials of small numbers.
    MlKem,
    /// Arithmetic of long integers whose length the compiler does not know.
    Rsa,
}

/// Cycles in a millisecond at 64 MHz.
const CYCLES_PER_MS: u64 = 64_000;

impl Mix {
    /// The mix of a benchmark, by its name in the output.
    #[must_use]
    pub fn of(benchmark: &str) -> Self {
        match benchmark.split(' ').next() {
            Some("aes-ecb" | "aes-cbc" | "sha" | "aead") => Self::Words,
            Some("ainq") => Self::Curve25519,
            Some("datagram") if benchmark.ends_with("-signed") => Self::Curve25519,
            Some("datagram") => Self::Words,
            Some("kem") => Self::MlKem,
            Some("rsa") => Self::Rsa,
            _ if benchmark.starts_with("abe yct14") => Self::Curve25519,
            _ => Self::Bls12381,
        }
    }

    /// Hundredths of a cycle per instruction, at least.
    #[must_use]
    pub const fn low(self) -> u64 {
        match self {
            Self::Words => 129,
            Self::Curve25519 => 138,
            Self::Bls12381 => 143,
            Self::MlKem => 121,
            Self::Rsa => 143,
        }
    }

    /// Hundredths of a cycle per instruction, at most.
    #[must_use]
    pub const fn high(self) -> u64 {
        match self {
            Self::Words => 175,
            Self::Curve25519 => 165,
            Self::Bls12381 => 171,
            Self::MlKem => 143,
            Self::Rsa => 183,
        }
    }

    /// The time that so many instructions take.
    #[must_use]
    pub const fn estimate(self, instructions: u64) -> Estimate {
        Estimate { low: thousandths(instructions, self.low()), high: thousandths(instructions, self.high()) }
    }
}

/// Microseconds for instructions at hundredths of a cycle each.
const fn thousandths(instructions: u64, hundredths: u64) -> u64 {
    instructions.saturating_mul(hundredths) / (CYCLES_PER_MS / 10)
}

/// A time at 64 MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Microseconds at least.
    pub low: u64,
    /// Microseconds at most.
    pub high: u64,
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |micros: u64| (micros / 1000, micros % 1000);
        let ((low, low_rest), (high, high_rest)) = (ms(self.low), ms(self.high));
        write!(f, "{low}.{low_rest:03} to {high}.{high_rest:03} ms")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_kind_of_benchmark_has_its_mix() {
        assert_eq!(Mix::of("aes-cbc"), Mix::Words);
        assert_eq!(Mix::of("ainq rekey-flat"), Mix::Curve25519);
        assert_eq!(Mix::of("datagram open"), Mix::Words);
        assert_eq!(Mix::of("datagram open-signed"), Mix::Curve25519);
        assert_eq!(Mix::of("abe yct14 encrypt"), Mix::Curve25519);
        assert_eq!(Mix::of("abe gpsw06 encrypt"), Mix::Bls12381);
        assert_eq!(Mix::of("pairing"), Mix::Bls12381);
        assert_eq!(Mix::of("kem pair"), Mix::MlKem);
        assert_eq!(Mix::of("rsa decrypt"), Mix::Rsa);
        for mix in [Mix::Words, Mix::Curve25519, Mix::Bls12381, Mix::MlKem, Mix::Rsa] {
            assert!(100 <= mix.low() && mix.low() < mix.high() && mix.high() <= 200, "{mix:?}");
        }
    }

    #[test]
    fn estimate_is_instructions_by_cycles_at_64_mhz() {
        // 6.4 million instructions of 1.43 cycles are 9.152 million cycles.
        let estimate = Mix::Bls12381.estimate(6_400_000);
        assert_eq!(estimate, Estimate { low: 143_000, high: 171_000 });
        assert_eq!(estimate.to_string(), "143.000 to 171.000 ms");
        assert_eq!(Mix::Words.estimate(640).to_string(), "0.012 to 0.017 ms");
        assert_eq!(Mix::Words.estimate(u64::MAX).low, u64::MAX / 6400);
    }
}
