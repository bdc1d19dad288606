//! Random numbers: the hardware's noise, tested, seeds a generator that never waits.
//!
//! The nRF52840 draws its random bytes from thermal noise, with a digital correction of bias that its data sheet recommends for
//! cryptography. [`HealthTest`] watches them by the two continuous tests of NIST SP 800-90B, section 4.4; [`Collector`] turns what
//! passed into seeds; [`Random`] is ChaCha20 (as crate `rand_chacha` has it) under such a seed and takes a fresh one when it is offered.

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, Error, RngCore, SeedableRng};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// Length of a seed in bytes.
pub const SEED_LEN: usize = 32;

/// Samples (bytes) that the start-up test takes: SP 800-90B, section 4.3, asks for at least 1,024.
pub const START_UP_SAMPLES: usize = 1024;

/// Samples (bytes) that go into every later seed.
pub const LATER_SAMPLES: usize = 64;

/// Equal samples in a row at which the repetition count test fails: 1 + ⌈20 / H⌉ for a false alarm in 2^20 and H = 4 bits of
/// entropy per byte (half of what the data sheet lets expect), SP 800-90B section 4.4.1.
const REPETITION_CUTOFF: u16 = 6;

/// Samples per window of the adaptive proportion test, SP 800-90B section 4.4.2.
const WINDOW: u16 = 512;

/// Occurrences of a window's first sample at which the adaptive proportion test fails: one more than the critical value of the
/// binomial distribution of 512 trials at 2^-4 (again H = 4) for a false alarm in 2^20.
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

/// The continuous health tests. They go on from seed to seed: an alarm that is raised stays raised.
#[derive(Debug, Default)]
pub struct HealthTest {
    last: Option<u8>,
    repeated: u16,
    window: Option<(u8, u16, u16)>,
    failed: Option<Unhealthy>,
}

impl HealthTest {
    /// Takes one sample.
    ///
    /// # Errors
    /// What is wrong, from the first alarm on.
    pub fn take(&mut self, sample: u8) -> Result<(), Unhealthy> {
        self.repeated = if self.last == Some(sample) { self.repeated.saturating_add(1) } else { 1 };
        self.last = Some(sample);
        if self.repeated >= REPETITION_CUTOFF {
            self.failed.get_or_insert(Unhealthy::Repetition);
        }
        let (first, seen, taken) = match self.window {
            Some((first, seen, taken)) => (first, seen + u16::from(first == sample), taken + 1),
            None => (sample, 1, 1),
        };
        if seen >= PROPORTION_CUTOFF {
            self.failed.get_or_insert(Unhealthy::Proportion);
        }
        self.window = (taken < WINDOW).then_some((first, seen, taken));
        self.failed.map_or(Ok(()), Err)
    }
}

/// Collects noise for one seed.
pub struct Collector<'a> {
    health: &'a mut HealthTest,
    hash: Sha256,
}

impl<'a> Collector<'a> {
    /// Starts a seed. `device` is what sets this device apart from others (not secret).
    #[must_use]
    pub fn new(health: &'a mut HealthTest, device: &[u8]) -> Self {
        let mut hash = Sha256::new_with_prefix(b"quiver nRF52840 seed");
        hash.update([u8::try_from(device.len()).unwrap_or(u8::MAX)]);
        hash.update(device);
        Self { health, hash }
    }

    /// Takes samples.
    ///
    /// # Errors
    /// What the health tests say of them.
    pub fn take(&mut self, samples: &[u8]) -> Result<(), Unhealthy> {
        for &sample in samples {
            self.health.take(sample)?;
        }
        self.hash.update(samples);
        Ok(())
    }

    /// The seed: SHA-256 of everything taken.
    #[must_use]
    pub fn finish(self) -> Zeroizing<[u8; SEED_LEN]> {
        Zeroizing::new(self.hash.finalize().into())
    }
}

/// Where fresh seeds are offered.
pub trait Reseed {
    /// Takes the seed that was offered last, if one was since the last call.
    fn take(&self) -> Option<[u8; SEED_LEN]>;
}

/// The generator that everything on the board draws from.
pub struct Random<R> {
    generator: ChaCha20Rng,
    fresh: R,
}

impl<R: Reseed> Random<R> {
    /// A generator under a seed, which takes further ones from `fresh`.
    pub fn new(seed: &[u8; SEED_LEN], fresh: R) -> Self {
        Self { generator: ChaCha20Rng::from_seed(*seed), fresh }
    }

    /// Mixes a fresh seed in, if one is offered: what comes is at least as good as the better of both.
    fn renew(&mut self) {
        let Some(mut fresh) = self.fresh.take() else { return };
        let mut old = Zeroizing::new([0; SEED_LEN]);
        self.generator.fill_bytes(&mut *old);
        let mixed = Sha256::new_with_prefix(b"quiver nRF52840 reseed").chain_update(*old).chain_update(fresh);
        fresh.zeroize();
        let mixed: Zeroizing<[u8; SEED_LEN]> = Zeroizing::new(mixed.finalize().into());
        self.generator = ChaCha20Rng::from_seed(*mixed);
    }
}

impl<R: Reseed> RngCore for Random<R> {
    fn next_u32(&mut self) -> u32 {
        self.renew();
        self.generator.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.renew();
        self.generator.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.renew();
        self.generator.fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl<R: Reseed> CryptoRng for Random<R> {}

#[cfg(test)]
mod tests;
