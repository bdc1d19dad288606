//! The hash of garbled gates: H(x, i) = π(π(x) ⊕ i) ⊕ π(x).
//!
//! TMMO of Guo, Katz, Wang, Yu (S&P 2020, section 7.4; tweakable circular correlation robust if π is a random
//! permutation). π is AES-128 under a key of the run's own, and changes every [`GATES_PER_KEY`] gates: what
//! an attacker computes about one π helps against that many gates and no others, in this or any other circuit
//! (the multi-instance setting of Guo et al., Crypto 2020).
//!
//! AES is the `aes` crate's, by instructions of the processor or bit-sliced, in constant time either way.

use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use zeroize::Zeroize as _;

use crate::block::Block;

/// Blocks that go through at once: what the crate's widest code takes.
const TOGETHER: usize = 64;
/// Blocks that its narrowest code takes.
const LANES: usize = 8;

/// AND gates for which π stays the same.
pub(crate) const GATES_PER_KEY: u64 = 4096;

/// The hash, at some gate of a run.
pub(crate) struct Hash {
    /// π of the run, by which the keys of gates are made.
    run: Aes128Enc,
    gates: Aes128Enc,
    key: u64,
}

impl Hash {
    /// The hash of a run.
    pub(crate) fn new(run: &[u8; 16]) -> Self {
        let run = Aes128Enc::new(run.into());
        Self { gates: nth(&run, 0), run, key: 0 }
    }

    /// Takes the π of a gate. All blocks that are hashed at once must be of gates with one π.
    pub(crate) fn seek(&mut self, gate: u64) {
        let wanted = gate / GATES_PER_KEY;
        if wanted != self.key {
            // Guo et al., Crypto 2020: another π after so many gates.
            self.gates = nth(&self.run, wanted);
            self.key = wanted;
        }
    }

    /// Hashes the blocks in their places. The n-th has the tweak `first` + n, or `first` + n/2 in `pairs`.
    pub(crate) fn many(&self, blocks: &mut [Block], first: u64, pairs: bool) {
        let mut scratch = [aes::Block::default(); TOGETHER];
        for (number, chunk) in blocks.chunks_mut(TOGETHER).enumerate() {
            // Whole lanes: a few blocks more cost less than one at a time.
            let whole = chunk.len().next_multiple_of(LANES).min(TOGETHER);
            let Some(states) = scratch.get_mut(..whole) else { return };
            for (state, x) in states.iter_mut().zip(&*chunk) {
                *state = u128::from(*x).to_le_bytes().into();
            }
            // π(x)
            self.gates.encrypt_blocks(states);
            for (at, (x, state)) in chunk.iter_mut().zip(states.iter_mut()).enumerate() {
                let above = (number.saturating_mul(TOGETHER).saturating_add(at)) >> u32::from(pairs);
                *x = u128::from_le_bytes((*state).into()).into();
                // π(x) ⊕ i
                *state = (u128::from(*x) ^ u128::from(first.wrapping_add(above as u64))).to_le_bytes().into();
            }
            self.gates.encrypt_blocks(states);
            for (x, state) in chunk.iter_mut().zip(&*states) {
                // H(x, i) = π(π(x) ⊕ i) ⊕ π(x)
                *x = *x ^ u128::from_le_bytes((*state).into()).into();
            }
        }
        scratch.iter_mut().for_each(|state| state.as_mut_slice().zeroize());
    }
}

fn encrypt(key: &Aes128Enc, x: u128) -> u128 {
    let mut block = aes::Block::from(x.to_le_bytes());
    key.encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

/// The n-th π of a run: its key is AES of n under the run's key.
fn nth(run: &Aes128Enc, number: u64) -> Aes128Enc {
    Aes128Enc::new(&encrypt(run, u128::from(number)).to_le_bytes().into())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Hash by the definition, one block at a time.
    fn defined(run: &[u8; 16], gate: u64, x: u128, tweak: u64) -> u128 {
        let run = Aes128Enc::new(run.into());
        let pi = Aes128Enc::new(&encrypt(&run, u128::from(gate / GATES_PER_KEY)).to_le_bytes().into());
        let once = encrypt(&pi, x);
        encrypt(&pi, once ^ u128::from(tweak)) ^ once
    }

    #[test]
    fn many_blocks_hash_as_one_at_a_time() {
        let mut hash = Hash::new(&[7; 16]);
        for gate in [0, 4095, 4096, 1 << 40] {
            hash.seek(gate);
            for (count, pairs) in
                [1, 4, 5, 32, 33, 40, 64, 65, 200].into_iter().zip([true, false].into_iter().cycle())
            {
                let xs: Vec<u128> = (1..=count)
                    .map(|x: u128| x.wrapping_mul(0x1234_5678_9abc_def0_1122_3344_5566_7789))
                    .collect();
                let tweak = |at: usize| gate + (at >> u32::from(pairs)) as u64;
                let wanted: Vec<u128> =
                    xs.iter().enumerate().map(|(at, &x)| defined(&[7; 16], gate, x, tweak(at))).collect();
                let mut found: Vec<Block> = xs.iter().map(|&x| x.into()).collect();
                hash.many(&mut found, gate, pairs);
                let found: Vec<u128> = found.into_iter().map(u128::from).collect();
                assert_eq!(found, wanted);
            }
        }
    }

    #[test]
    fn hash_depends_on_run_key_number_and_tweak() {
        let one = |run: u8, gate, tweak| {
            let mut hash = Hash::new(&[run; 16]);
            hash.seek(gate);
            let mut x = [99.into()];
            hash.many(&mut x, tweak, false);
            u128::from(x[0])
        };
        let base = one(1, 0, 0);
        assert_eq!(base, one(1, 4095, 0));
        assert!([one(2, 0, 0), one(1, 4096, 0), one(1, 0, 1)].iter().all(|other| *other != base));
    }
}
