//! Deterministic randomness: this machine has no source of it, and emulations are to be repeatable. Never for
//! a board.

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, Error, RngCore, SeedableRng, impls};

use super::options::EmulationOptions;

/// A stream that the command line determines, and that is different after each reset, as a real source's
/// would be.
pub(crate) struct Random {
    stream: ChaCha20Rng,
    /// True if the source has failed and repeats one value.
    stuck: bool,
}

impl Random {
    pub(crate) fn new(options: &EmulationOptions, boots: u32) -> Self {
        let mut stream = ChaCha20Rng::seed_from_u64(options.seed);
        stream.set_stream(boots.into());
        Self { stream, stuck: options.stuck }
    }
}

impl RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        if self.stuck { bytes.fill(0) } else { self.stream.fill_bytes(bytes) }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

// Not true, but what the application asks for: see the module's documentation.
impl CryptoRng for Random {}
