//! Memory while garbling is that of the slots and one batch, however many gates there are.

use std::alloc::System;

use cap::Cap;
use quiver_garble::{Evaluator, Garbler, Operand, PrivacyFree, ScheduledGate};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const SLOTS: usize = 512;
const PIECE: u32 = 1024;

fn piece(number: u32) -> Vec<ScheduledGate> {
    let operand = |slot: u32| Operand::new(slot % SLOTS as u32, slot.is_multiple_of(7));
    (0..PIECE)
        .map(|at| {
            let (a, b) = (operand(number + at * 3), operand(number + at * 5 + 1));
            let to = at % SLOTS as u32;
            if at.is_multiple_of(4) {
                ScheduledGate::Xor { a, b, to }
            } else {
                ScheduledGate::And { a, b, to }
            }
        })
        .collect()
}

/// Garbles and evaluates piece by piece, as over a connection; the most bytes that were in use.
fn peak(pieces: u32) -> usize {
    let run = [3; 16];
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let mut garbler = Garbler::<PrivacyFree>::with_slots(SLOTS, SLOTS, &run, &mut rng);
    let labels: Vec<_> = (0..SLOTS).map(|at| garbler.input(at).unwrap().of(at.is_multiple_of(2))).collect();
    let mut evaluator = Evaluator::<PrivacyFree>::with_slots(SLOTS, &run, garbler.one(), &labels);
    let mut most = 0;
    let mut tables = Vec::with_capacity(PIECE as usize);
    for number in 0..pieces {
        let steps = piece(number);
        tables.clear();
        garbler.garble(&steps, |table| tables.push(table)).unwrap();
        evaluator.evaluate(&steps, &mut tables.iter().copied()).unwrap();
        most = most.max(ALLOCATOR.allocated());
    }
    let last = Operand::new(1, false);
    assert!(garbler.output(last).unwrap().decode(evaluator.output(last).unwrap()).is_some());
    most
}

#[test]
fn memory_does_not_grow_with_the_number_of_gates() {
    let before = ALLOCATOR.allocated();
    let (few, many) = (peak(2) - before, peak(400) - before);
    assert!(few < 256 * 1024, "{few} bytes");
    assert!(many <= few + 1024, "{many} bytes for 400 pieces, {few} for 2");
}
