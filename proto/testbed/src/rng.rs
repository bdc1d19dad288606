//! Random numbers: a generator that is small at rest, and draws from ranges.

use rand_chacha::ChaCha8Rng;
use rand_core::{CryptoRng, Error, RngCore, SeedableRng};

/// A ChaCha8 generator that takes 40 bytes while nobody draws: a million nodes have one each.
#[derive(Clone, Debug)]
pub struct CompactRng {
    key: [u8; 32],
    position: u64,
}

impl CompactRng {
    /// A generator at its beginning.
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key, position: 0 }
    }

    /// A generator that goes on where the last one stopped.
    pub fn wake(&mut self) -> ActiveRng<'_> {
        ActiveRng { compact: self, rng: None }
    }
}

/// A [`CompactRng`] generator in use.
pub struct ActiveRng<'a> {
    compact: &'a mut CompactRng,
    rng: Option<ChaCha8Rng>,
}

impl ActiveRng<'_> {
    fn rng(&mut self) -> &mut ChaCha8Rng {
        let compact = &*self.compact;
        self.rng.get_or_insert_with(|| {
            let mut rng = ChaCha8Rng::from_seed(compact.key);
            rng.set_word_pos(u128::from(compact.position));
            rng
        })
    }
}

impl Drop for ActiveRng<'_> {
    fn drop(&mut self) {
        if let Some(rng) = &self.rng {
            // 2^64 words are never drawn.
            self.compact.position = u64::try_from(rng.get_word_pos()).unwrap_or(u64::MAX);
        }
    }
}

impl RngCore for ActiveRng<'_> {
    fn next_u32(&mut self) -> u32 {
        self.rng().next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.rng().next_u64()
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        self.rng().fill_bytes(dest);
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.rng().try_fill_bytes(dest)
    }
}

impl CryptoRng for ActiveRng<'_> {}

/// A number from 0 up to and not including 1.
pub fn unit(rng: &mut impl RngCore) -> f64 {
    f64::from(rng.next_u32()) / (f64::from(u32::MAX) + 1.0)
}

/// A number below `bound`; 0 for 0.
pub fn below(rng: &mut impl RngCore, bound: u64) -> u64 {
    // The bias of this product is below bound / 2^64.
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_generator_goes_on_where_it_stopped() {
        let mut whole = ChaCha8Rng::from_seed([7; 32]);
        let mut compact = CompactRng::new([7; 32]);
        for length in [1, 4, 32, 300, 7] {
            let (mut expected, mut drawn) = (vec![0; length], vec![0; length]);
            // Compact positions are whole words: what is left of one is skipped, as `fill_bytes` does itself.
            whole.fill_bytes(&mut expected);
            compact.wake().fill_bytes(&mut drawn);
            assert_eq!(drawn, expected);
            drop(compact.wake());
        }
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut rng = ChaCha8Rng::from_seed([1; 32]);
        assert!((0..1000).all(|_| below(&mut rng, 10) < 10));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&unit(&mut rng))));
        assert_eq!(below(&mut rng, 0), 0);
    }
}
