//! Randomness that is tested before anything depends on it.

use core::time::Duration;

use quiver_crypto::{Hasher, Zeroizing};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, RngCore, SeedableRng};

/// Bytes drawn from the source at once.
const DRAW: usize = 64;
/// Number of equal bytes in a row that is a fault: for a source with at least 4 bits of entropy in a byte
/// this happens by chance once in 2^28 bytes (repetition count test of NIST SP 800-90B, 4.4.1).
const REPEATED: u32 = 8;
/// Time for which one seed is used.
const FRESH: Duration = Duration::from_secs(10);
/// Delay after a fault.
const PAUSE: Duration = Duration::from_secs(1);

/// A generator that is reseeded from a source, if the source's output passes a test.
///
/// ChaCha20 makes one draw into as much as is needed. A new seed hashes the draw with the former generator's
/// output, so that one weak draw does not undo a good one.
pub(crate) struct Randomness<R> {
    source: R,
    generator: Option<ChaCha20Rng>,
    last: Zeroizing<[u8; DRAW]>,
    next_draw: Duration,
    faults: u32,
    faulty: bool,
}

impl<R: CryptoRngCore> Randomness<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            generator: None,
            last: Zeroizing::new([0; DRAW]),
            next_draw: Duration::ZERO,
            faults: 0,
            faulty: false,
        }
    }

    /// The generator, if the source was well when it was last looked at, which is at most 10 s ago.
    pub(crate) fn generator(&mut self, now: Duration) -> Option<&mut ChaCha20Rng> {
        if self.next_draw <= now {
            self.draw(now);
        }
        self.generator.as_mut().filter(|_| !self.faulty)
    }

    /// Times that the source was found faulty.
    pub(crate) const fn faults(&self) -> u32 {
        self.faults
    }

    /// Returns true if the source was faulty when last looked at.
    pub(crate) const fn is_faulty(&self) -> bool {
        self.faulty
    }

    /// A random number that distinguishes starts. Not for secrets.
    pub(crate) fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        // A source that fails here fails its test later.
        let _ = self.source.try_fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn draw(&mut self, now: Duration) {
        let mut drawn = Zeroizing::new([0; DRAW]);
        let given = self.source.try_fill_bytes(&mut *drawn).is_ok();
        if !given || repeats(&*drawn) || *drawn == *self.last {
            self.faults = self.faults.saturating_add(1);
            self.faulty = true;
            self.next_draw = now.saturating_add(PAUSE);
            return;
        }
        let mut former = Zeroizing::new([0; 32]);
        if let Some(generator) = &mut self.generator {
            generator.fill_bytes(&mut *former);
        }
        let seed = Hasher::new("quiver/1 board randomness").fixed(&*former).fixed(&*drawn).finish();
        self.generator = Some(ChaCha20Rng::from_seed(*Zeroizing::new(seed)));
        self.last = drawn;
        self.faulty = false;
        self.next_draw = now.saturating_add(FRESH);
    }
}

/// Returns true if one byte is repeated too often in a row.
fn repeats(bytes: &[u8]) -> bool {
    let mut run = 0;
    let mut before = None;
    bytes.iter().any(|byte| {
        run = if before == Some(byte) { run + 1 } else { 1 };
        before = Some(byte);
        run >= REPEATED
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that yields these bytes one by one, then fails.
    struct Script(alloc::vec::Vec<u8>);

    impl RngCore for Script {
        fn next_u32(&mut self) -> u32 {
            0
        }
        fn next_u64(&mut self) -> u64 {
            0
        }
        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            self.try_fill_bytes(bytes).unwrap();
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
            if self.0.len() < bytes.len() {
                return Err(core::num::NonZeroU32::MIN.into());
            }
            bytes.copy_from_slice(&self.0.split_off(self.0.len() - bytes.len()));
            Ok(())
        }
    }

    impl rand_core::CryptoRng for Script {}

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn draw(seed: u64) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec![0; DRAW];
        ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
        bytes
    }

    #[test]
    fn stuck_source_gives_no_generator_until_it_has_recovered() {
        let mut script = draw(1);
        script.extend([0x55; DRAW]);
        script.extend([0; DRAW]);
        let mut random = Randomness::new(Script(script));
        assert!(random.generator(at(0)).is_none());
        assert!(random.generator(at(0)).is_none(), "it waits before it looks again");
        assert_eq!(random.faults(), 1);
        assert!(random.generator(at(1)).is_none());
        assert!(random.generator(at(2)).is_some());
        assert_eq!((random.faults(), random.is_faulty()), (2, false));
        assert!(random.generator(at(20)).is_none(), "the source is empty");
        assert_eq!(random.faults(), 3);
    }

    #[test]
    fn same_draw_twice_is_a_fault() {
        let mut script = draw(1);
        script.extend(draw(1));
        let mut random = Randomness::new(Script(script));
        assert!(random.generator(at(0)).is_some());
        assert!(random.generator(at(10)).is_none());
    }

    #[test]
    fn eight_equal_bytes_in_a_row_are_a_fault_and_seven_are_not() {
        let mut bytes = draw(2);
        bytes[20..27].fill(9);
        bytes[27] = 8;
        assert!(!repeats(&bytes));
        bytes[27] = 9;
        assert!(repeats(&bytes));
    }

    #[test]
    fn seed_depends_on_what_was_before() {
        let stream = |first: u64| {
            let mut script = draw(9);
            script.extend(draw(first));
            let mut random = Randomness::new(Script(script));
            let _ = random.generator(at(0));
            random.generator(at(10)).map(RngCore::next_u64).unwrap()
        };
        assert_ne!(stream(1), stream(2));
    }
}
