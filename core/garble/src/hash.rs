//! The hash of garbled gates: H(x, i) = π(π(x) ⊕ i) ⊕ π(x).
//!
//! TMMO of Guo, Katz, Wang, Yu (S&P 2020, section 7.4; tweakable circular correlation robust if π is a random
//! permutation). π is AES-128 under a key of the run's own, and changes every [`GATES_PER_KEY`] gates: what
//! an attacker computes about one π helps against that many gates and no others, in this or any other circuit
//! (the multi-instance setting of Guo et al., Crypto 2020). AES is the `aes` crate's: instructions of the
//! processor, or bit-sliced; constant-time either way.

use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
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
            // Guo et al., Crypto 2020: another π after so many gates.
            self.gates = key(&self.run, wanted);
            self.key = wanted;
        }
    }

    /// Hashes all that each gate hashes; the tweak is of the gate, counted from the first, and of the
    /// position.
    pub(crate) fn many<H: AsRef<[u128]> + AsMut<[u128]>>(
        &mut self,
        gates: &mut [H],
        tweak: impl Fn(usize, usize) -> u128,
    ) {
        let count: usize = gates.iter().map(|xs| xs.as_ref().len()).sum();
        // Whole lanes: a few blocks more cost less than one at a time.
        let whole = count.next_multiple_of(LANES).min(self.blocks.len());
        let Some(blocks) = self.blocks.get_mut(..whole) else { return };
        for (block, x) in blocks.iter_mut().zip(gates.iter().flat_map(AsRef::as_ref)) {
            *block = x.to_le_bytes().into();
        }
        // π(x)
        self.gates.encrypt_blocks(blocks);
        let mut rest = blocks.iter_mut();
        for (gate, xs) in gates.iter_mut().enumerate() {
            for (position, (x, block)) in xs.as_mut().iter_mut().zip(&mut rest).enumerate() {
                let once = u128::from_le_bytes((*block).into());
                *x = once;
                // π(x) ⊕ i
                *block = (once ^ tweak(gate, position)).to_le_bytes().into();
            }
        }
        self.gates.encrypt_blocks(blocks);
        for (block, x) in blocks.iter().zip(gates.iter_mut().flat_map(AsMut::as_mut)) {
            // H(x, i) = π(π(x) ⊕ i) ⊕ π(x)
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
    // The key of the n-th π is AES of n under the run's key.
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
        let mut hash = Hash::new(&[7; 16], 80);
        for gate in [0, 4095, 4096, 1 << 40] {
            hash.seek(gate);
            for count in [1, 4, 5, 32, 33, 40] {
                let tweak = |at: usize, position: usize| (at * 10 + position) as u128;
                let mut xs: Vec<[u128; 2]> = (1..=count)
                    .map(|x: u128| [x, !x].map(|x| x.wrapping_mul(0x1234_5678_9abc_def0_1122_3344)))
                    .collect();
                let wanted: Vec<[u128; 2]> = xs
                    .iter()
                    .enumerate()
                    .map(|(at, &[x, y])| {
                        [(x, 0), (y, 1)].map(|(x, position)| defined(&[7; 16], gate, x, tweak(at, position)))
                    })
                    .collect();
                hash.many(&mut xs, tweak);
                assert_eq!(xs, wanted);
            }
        }
    }

    #[test]
    fn hash_depends_on_run_key_number_and_tweak() {
        let one = |run: u8, gate, tweak| {
            let mut hash = Hash::new(&[run; 16], 1);
            hash.seek(gate);
            let mut x = [[99]];
            hash.many(&mut x, |_, _| tweak);
            x[0][0]
        };
        let base = one(1, 0, 0);
        assert_eq!(base, one(1, 4095, 0));
        assert!([one(2, 0, 0), one(1, 4096, 0), one(1, 0, 1)].iter().all(|other| *other != base));
    }
}
