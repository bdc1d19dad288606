//! Memory for slots, of which a circuit from elsewhere may ask for many.

use std::alloc::System;

use cap::Cap;
use quiver_garble::{Evaluator, Garbler, HalfGates};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const SLOTS: usize = 1 << 20;

/// The batch: 128 gates of 48 bytes, with four hashes each or two, and what the test itself allocates.
const fn batch(hashes: usize) -> usize {
    128 * (48 + 16 * hashes) + 2048
}

#[test]
fn each_slot_takes_a_label_and_a_byte() {
    let before = ALLOCATOR.allocated();
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let garbler = Garbler::<HalfGates>::with_slots(1, SLOTS, &[3; 16], &mut rng);
    let of_garbler = ALLOCATOR.allocated() - before;
    let evaluator = Evaluator::<HalfGates>::with_slots(SLOTS, &[3; 16], garbler.one(), &[]);
    let of_evaluator = ALLOCATOR.allocated() - before - of_garbler;
    assert!(of_garbler <= 17 * SLOTS + batch(4), "{of_garbler} bytes");
    assert!(of_evaluator <= 17 * SLOTS + batch(2), "{of_evaluator} bytes");
    drop((garbler, evaluator));
}
