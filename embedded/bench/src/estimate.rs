//! Milliseconds on a Cortex-M4 at 64 MHz, estimated from counted instructions.
//!
//! An emulator counts instructions exactly and knows nothing of cycles. Of each kind of code the cycles per instruction were
//! taken from the processor's published instruction timings (ARM DDI 0439: an ALU or multiply-accumulate instruction takes one cycle,
//! a single load or store two unless pipelined, a load or store of n words n + 1, a taken branch two to four): that is the
//! lower figure, with every load pipelined that can be and no wait states. The upper figure is 1.11 times as much: flash
//! at 64 MHz has wait states, and its cache does not hold everything. Only a board tells the truth.

use core::fmt;

/// Which instructions the code is made of, and so how many cycles they take on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mix {
    /// Hashing and ciphers on words in registers.
    Words,
    /// Arithmetic of curve25519 and ristretto255, whichever implementation.
    Curve25519,
    /// Arithmetic of BLS12-381, and of RSA: long integers in memory.
    LongIntegers,
}

/// Cycles in a millisecond at 64 MHz.
const CYCLES_PER_MS: u64 = 64_000;

impl Mix {
    /// Of a benchmark, by its name as the output has it.
    #[must_use]
    pub fn of(benchmark: &str) -> Self {
        match benchmark.split(' ').next() {
            Some("aes-ecb" | "aes-cbc" | "sha" | "aead") => Self::Words,
            Some("ainq") => Self::Curve25519,
            _ if benchmark.starts_with("abe yct14") => Self::Curve25519,
            _ => Self::LongIntegers,
        }
    }

    /// Hundredths of a cycle per instruction: by the instruction timings alone.
    #[must_use]
    pub const fn low(self) -> u64 {
        match self {
            Self::Words => 115,
            Self::Curve25519 => 130,
            Self::LongIntegers => 122,
        }
    }

    /// Hundredths of a cycle per instruction: with waiting for flash.
    #[must_use]
    pub const fn high(self) -> u64 {
        self.low() * 111 / 100
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
        assert_eq!(Mix::of("abe yct14 encrypt"), Mix::Curve25519);
        assert_eq!(Mix::of("abe gpsw06 encrypt"), Mix::LongIntegers);
        assert_eq!(Mix::of("pairing"), Mix::LongIntegers);
    }

    #[test]
    fn estimate_is_instructions_by_cycles_at_64_mhz() {
        // 6.4 million instructions of 1.22 cycles are 7.808 million cycles.
        let estimate = Mix::LongIntegers.estimate(6_400_000);
        assert_eq!(estimate, Estimate { low: 122_000, high: 135_000 });
        assert_eq!(estimate.to_string(), "122.000 to 135.000 ms");
        assert_eq!(Mix::Words.estimate(640).to_string(), "0.011 to 0.012 ms");
        assert_eq!(Mix::Words.estimate(u64::MAX).low, u64::MAX / 6400);
    }
}
