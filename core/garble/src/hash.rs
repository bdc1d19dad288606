//! The hash of garbled gates: H(x, i) = π(π(x) ⊕ i) ⊕ π(x).
//!
//! TMMO of Guo, Katz, Wang, Yu (S&P 2020, section 7.4; tweakable circular correlation robust if π is a random permutation). π is AES-128
//! under a key of the run's own, and changes every [`GATES_PER_KEY`] gates: what an attacker computes about one π helps against that many gates and
//! no others, in this or any other circuit (the multi-instance setting of Guo et al., Crypto 2020). AES is the `aes` crate's: instructions of the
//! processor, or bit-sliced; constant-time either way.

use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use aes::{Aes128Enc, Block};
use alloc::boxed::Box;
use alloc::vec::Vec;
use zeroize::Zeroize as _;

/// AND gates for which π stays the same.
pub(crate) const GATES_PER_KEY: u64 = 4096;
/// Blocks that the `aes` crate encrypts at a time.
const LANES: usize = 8;

/// The hash, at some gate of a run.
pub(crate) struct Hash {
    run: Aes128Enc,
    gates: Aes128Enc,
    key: u64,
    blocks: Box<[Block]>,
}

impl Hash {
    /// The hash of a run, for up to `most` blocks at once.
    pub(crate) fn new(run: &[u8; 16], most: usize) -> Self {
        let run = Aes128Enc::new(run.into());
        let gates = key(&run, 0);
        let blocks: Vec<Block> = alloc::vec![Block::default(); most.next_multiple_of(LANES)];
        Self { run, gates, key: 0, blocks: blocks.into_boxed_slice() }
    }

    /// Takes the π of a gate. All blocks that are hashed at once must be of gates with one π.
    pub(crate) fn seek(&mut self, gate: u64) {
        let wanted = gate / GATES_PER_KEY;
        if wanted != self.key {
            self.gates = key(&self.run, wanted);
            self.key = wanted;
        }
    }

    /// Hashes each x, with the tweak that belongs to its position.
    pub(crate) fn many(&mut self, xs: &mut [u128], tweak: impl Fn(usize) -> u128) {
        // Whole lanes: a few blocks more cost less than one at a time.
        let whole = xs.len().next_multiple_of(LANES).min(self.blocks.len());
        let Some(blocks) = self.blocks.get_mut(..whole) else { return };
        for (block, x) in blocks.iter_mut().zip(xs.iter()) {
            *block = x.to_le_bytes().into();
        }
        self.gates.encrypt_blocks(blocks);
        for (at, (block, x)) in blocks.iter_mut().zip(xs.iter_mut()).enumerate() {
            let once = u128::from_le_bytes((*block).into());
            *x = once;
            *block = (once ^ tweak(at)).to_le_bytes().into();
        }
        self.gates.encrypt_blocks(blocks);
        for (block, x) in blocks.iter().zip(xs.iter_mut()) {
            *x ^= u128::from_le_bytes((*block).into());
        }
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            block.as_mut_slice().zeroize();
        }
    }
}

/// The key of the n-th π of a run.
fn key(run: &Aes128Enc, number: u64) -> Aes128Enc {
    let counter = u128::from(number).to_le_bytes();
    let mut block = Block::from(counter);
    run.encrypt_block(&mut block);
    Aes128Enc::new(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition, one block at a time.
    fn defined(run: &[u8; 16], gate: u64, x: u128, tweak: u128) -> u128 {
        let pi = key(&Aes128Enc::new(run.into()), gate / GATES_PER_KEY);
        let encrypt = |x: u128| {
            let mut block = Block::from(x.to_le_bytes());
            pi.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        encrypt(encrypt(x) ^ tweak) ^ encrypt(x)
    }

    #[test]
    fn many_blocks_hash_as_one_at_a_time() {
        let mut hash = Hash::new(&[7; 16], 20);
        for gate in [0, 4095, 4096, 1 << 40] {
            hash.seek(gate);
            for count in [1, 7, 8, 9, 20] {
                let mut xs: Vec<u128> = (0..count).map(|x| x * 0x1234_5678_9abc_def0_1122_3344).collect();
                let wanted: Vec<u128> = xs
                    .iter()
                    .enumerate()
                    .map(|(at, &x)| defined(&[7; 16], gate, x, at as u128 + 5))
                    .collect();
                hash.many(&mut xs, |at| at as u128 + 5);
                assert_eq!(xs, wanted);
            }
        }
    }

    #[test]
    fn hash_depends_on_run_key_number_and_tweak() {
        let one = |run: u8, gate, tweak| {
            let mut hash = Hash::new(&[run; 16], 1);
            hash.seek(gate);
            let mut x = [99];
            hash.many(&mut x, |_| tweak);
            x[0]
        };
        let base = one(1, 0, 0);
        assert_eq!(base, one(1, 4095, 0));
        assert!([one(2, 0, 0), one(1, 4096, 0), one(1, 0, 1)].iter().all(|other| *other != base));
    }
}
