//! Health tests of the hardware's random bytes: those of NIST SP 800-90B, sections 4.3 and 4.4.
//!
//! The nRF52840 draws its bytes from thermal noise, with a digital correction of bias that its data sheet
//! recommends for cryptography. Bytes that pass here seed the node's generator, which tests and hashes them
//! once more.

/// Samples (bytes) that the start-up test takes: SP 800-90B, section 4.3, asks for at least 1,024.
pub const START_UP_SAMPLES: usize = 1024;

/// Equal samples in a row at which the repetition count test fails: 1 + ⌈20 / H⌉ for a false alarm in 2^20
/// samples and H = 4 bits of entropy per byte, half of what the data sheet lets expect (section 4.4.1).
const REPETITION_CUTOFF: u16 = 6;

/// Samples per window of the adaptive proportion test (section 4.4.2).
const WINDOW: u16 = 512;

/// Occurrences of a window's first sample at which the adaptive proportion test fails: one more than the
/// critical value of the binomial distribution of 512 trials at 2^-4 (again H = 4) for a false alarm in 2^20.
const PROPORTION_CUTOFF: u16 = 62;

/// The hardware's noise is not random enough to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unhealthy {
    /// The same byte came again and again.
    #[error("the same random byte came {REPETITION_CUTOFF} times in a row")]
    Repetition,
    /// One byte came far too often.
    #[error("one random byte came {PROPORTION_CUTOFF} times in {WINDOW}")]
    Proportion,
    /// No byte came.
    #[error("the random number generator delivers nothing")]
    Silent,
}

/// The continuous health tests: they go on from one draw to the next.
#[derive(Debug, Default)]
pub struct HealthTest {
    last: Option<u8>,
    repeated: u16,
    /// A window's first sample, how often it has come in it, and how many samples have.
    window: Option<(u8, u16, u16)>,
}

impl HealthTest {
    /// Takes one sample.
    ///
    /// # Errors
    /// The failed test. A caller that continues after it begins with a new test, and with the start-up
    /// samples.
    pub fn take(&mut self, sample: u8) -> Result<(), Unhealthy> {
        self.repeated = if self.last == Some(sample) { self.repeated.saturating_add(1) } else { 1 };
        self.last = Some(sample);
        if self.repeated >= REPETITION_CUTOFF {
            return Err(Unhealthy::Repetition);
        }
        let (first, seen, taken) = match self.window {
            Some((first, seen, taken)) => (first, seen + u16::from(first == sample), taken + 1),
            None => (sample, 1, 1),
        };
        if seen >= PROPORTION_CUTOFF {
            return Err(Unhealthy::Proportion);
        }
        self.window = (taken < WINDOW).then_some((first, seen, taken));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use sha2::{Digest, Sha256};

    use super::*;

    /// Pseudorandom bytes: SHA-256 of a counter.
    fn noise(len: usize) -> Vec<u8> {
        (0u32..).flat_map(|n| Sha256::digest(n.to_le_bytes())).take(len).collect()
    }

    fn first_failure(samples: impl IntoIterator<Item = u8>) -> Option<(usize, Unhealthy)> {
        let mut health = HealthTest::default();
        let mut results = samples.into_iter().map(|sample| health.take(sample)).enumerate();
        results.find_map(|(at, result)| result.err().map(|why| (at, why)))
    }

    #[test]
    fn good_noise_passes_for_a_mebibyte() {
        assert_eq!(first_failure(noise(1 << 20)), None);
    }

    #[test]
    fn stuck_generator_fails_at_the_cutoff() {
        assert_eq!(first_failure([0xFF; 100]), Some((5, Unhealthy::Repetition)));
    }

    #[test]
    fn five_equal_bytes_may_happen() {
        let mut samples = noise(100);
        samples[50..55].fill(7);
        samples[49] = 1;
        samples[55] = 2;
        assert_eq!(first_failure(samples), None);
    }

    #[test]
    fn byte_that_comes_every_eighth_time_fails_within_a_window() {
        let mut samples = noise(512);
        samples.iter_mut().step_by(8).for_each(|byte| *byte = 0x55);
        // 512 / 8 = 64 occurrences; the 62nd is at 61 * 8, unless chance brought some earlier.
        let (at, why) = first_failure(samples).expect("must be noticed");
        assert_eq!(why, Unhealthy::Proportion);
        assert!((400..=61 * 8).contains(&at), "{at}");
    }

    #[test]
    fn alternating_generator_fails() {
        assert_eq!(first_failure([0xAA, 0x55].repeat(400)), Some((2 * 61, Unhealthy::Proportion)));
    }

    #[test]
    fn failure_in_a_later_window_is_found_too() {
        let mut samples = noise(START_UP_SAMPLES);
        samples.extend([1, 2].repeat(400));
        let (at, why) = first_failure(samples).expect("must be noticed");
        assert_eq!((at, why), (START_UP_SAMPLES + 2 * 61, Unhealthy::Proportion));
    }
}
