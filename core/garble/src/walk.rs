//! Iteration over a program, shared by garbler and evaluator: wire slots, and gates batched for hashing.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::hash::{GATES_PER_KEY, Hash};
use crate::label::mask;
use crate::scheme::sealed::Hashed;
use crate::{Error, Label, Operand, Result, Step};

/// AND gates that are hashed together at most.
pub(crate) const BATCH: usize = 128;

/// Position of a side in a program. H is its hash inputs of a gate.
pub(crate) struct Walk<H: Hashed> {
    /// Label that NOT adds: on the evaluator's side that of a wire that is always 1, on the garbler's its
    /// label of 0.
    one: Zeroizing<u128>,
    slots: Zeroizing<Vec<u128>>,
    /// For each slot, whether a waiting gate sets it.
    awaited: Vec<bool>,
    waiting: Zeroizing<Vec<Waiting>>,
    /// AND gates that are done.
    done: u64,
    hashes: Zeroizing<Vec<H>>,
    hash: Hash,
}

/// Operands of a gate, and the slot it sets.
#[derive(Clone, Copy, Default, zeroize::Zeroize)]
pub(crate) struct Waiting {
    pub(crate) a: u128,
    pub(crate) b: u128,
    to: u32,
}

/// The garbler's or evaluator's work at a gate.
pub(crate) trait Side {
    /// Its hash inputs.
    type Hashed: Hashed;

    /// Hash inputs of the gate.
    fn to_hash(&self, gate: &Waiting) -> Self::Hashed;
    /// Tweak of the hash input at this position.
    fn tweak(gate: u64, position: usize) -> u128;
    /// Output label of the gate of this number, from its hashes.
    fn set(&mut self, number: u64, gate: &Waiting, hashes: &Self::Hashed) -> Result<u128>;
}

impl<H: Hashed> Walk<H> {
    /// At the beginning, with the inputs in the first of so many slots.
    pub(crate) fn new(run: &[u8; 16], one: u128, slots: Zeroizing<Vec<u128>>) -> Self {
        Self {
            one: Zeroizing::new(one),
            awaited: alloc::vec![false; slots.len()],
            slots,
            waiting: Zeroizing::new(Vec::with_capacity(BATCH)),
            done: 0,
            hashes: Zeroizing::new(Vec::with_capacity(BATCH)),
            hash: Hash::new(run, BATCH * H::COUNT),
        }
    }

    pub(crate) fn one(&self) -> u128 {
        *self.one
    }

    /// Value of an operand now, if no gate waits.
    pub(crate) fn read(&self, operand: Operand) -> Result<Label> {
        match self.slots.get(index(operand.slot())) {
            // NOT is XOR with the wire that is always 1.
            Some(label) => Ok(Label(label ^ *self.one & mask(operand.is_inverted()))),
            None => Err(self.missing(operand.slot())),
        }
    }

    /// Executes the next steps. No gate waits afterwards.
    pub(crate) fn go<S: Side<Hashed = H>>(&mut self, side: &mut S, steps: &[Step]) -> Result<()> {
        for step in steps {
            let (Step::Xor { a, b, to } | Step::And { a, b, to }) = *step;
            // A slot that a waiting gate is to set is neither read nor set before.
            if self.awaits(a.slot()) | self.awaits(b.slot()) | self.awaits(to) {
                self.flush(side)?;
            }
            let (Label(first), Label(second)) = (self.read(a)?, self.read(b)?);
            if let Step::Xor { .. } = step {
                // Free XOR: W = A ⊕ B.
                self.put(to, first ^ second)?;
                continue;
            }
            let number = self.done.saturating_add(self.waiting.len() as u64);
            // All gates of a batch are hashed under one π.
            if self.waiting.len() >= BATCH || number.is_multiple_of(GATES_PER_KEY) {
                self.flush(side)?;
            }
            match self.awaited.get_mut(index(to)) {
                Some(awaited) => *awaited = true,
                None => return Err(self.missing(to)),
            }
            self.waiting.push(Waiting { a: first, b: second, to });
        }
        self.flush(side)
    }

    /// Executes the waiting gates.
    fn flush<S: Side<Hashed = H>>(&mut self, side: &mut S) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let first = self.done;
        self.done = first.saturating_add(self.waiting.len() as u64);
        self.hashes.clear();
        self.hashes.extend(self.waiting.iter().map(|gate| side.to_hash(gate)));
        self.hash.seek(first);
        // One pass of AES for all gates that wait.
        self.hash.many(&mut self.hashes, |at, position| S::tweak(first.saturating_add(at as u64), position));
        for ((number, gate), hashes) in (first..).zip(self.waiting.iter()).zip(self.hashes.iter()) {
            let label = side.set(number, gate, hashes)?;
            let slot = index(gate.to);
            if let (Some(to), Some(awaited)) = (self.slots.get_mut(slot), self.awaited.get_mut(slot)) {
                (*to, *awaited) = (label, false);
            }
        }
        self.waiting.clear();
        Ok(())
    }

    fn awaits(&self, slot: u32) -> bool {
        self.awaited.get(index(slot)).copied().unwrap_or(false)
    }

    fn put(&mut self, slot: u32, label: u128) -> Result<()> {
        match self.slots.get_mut(index(slot)) {
            Some(to) => {
                *to = label;
                Ok(())
            }
            None => Err(self.missing(slot)),
        }
    }

    #[cold]
    fn missing(&self, slot: u32) -> Error {
        Error::Slot { slot, slots: self.slots.len() }
    }
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}
