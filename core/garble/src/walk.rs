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

    /// Hash inputs of the gate with these operands.
    fn to_hash(&self, a: u128, b: u128) -> Self::Hashed;
    /// Tweaks of each gate.
    const TWEAKS: u64;
    /// Whether two hash inputs in a row have the same tweak.
    const PAIRS: bool;

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
            hash: Hash::new(run),
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
    pub(crate) fn go<S: Side<Hashed = H>>(&mut self, side: &mut S, mut steps: &[Step]) -> Result<()> {
        // A program has the ANDs of one depth together, then XORs, the first of which reads one of them.
        while !steps.is_empty() {
            steps = self.xors(steps)?;
            steps = self.ands(side, steps)?;
            self.flush(side)?;
        }
        Ok(())
    }

    /// Executes the XORs that the steps begin with, while no gate waits; gives the other steps.
    fn xors<'s>(&mut self, steps: &'s [Step]) -> Result<&'s [Step]> {
        let (one, slots) = (*self.one, self.slots.as_mut_slice());
        let mut rest = steps.iter();
        loop {
            let left = rest.as_slice();
            let Some(&Step::Xor { a, b, to }) = rest.next() else { return Ok(left) };
            let read = |operand: Operand| slots.get(index(operand.slot())).copied();
            // Free XOR: W = A ⊕ B. NOT is XOR with the wire that is always 1; twice, it is nothing.
            let inverted = mask(a.is_inverted() ^ b.is_inverted());
            let sum = read(a).zip(read(b)).map(|(a, b)| a ^ b ^ one & inverted);
            match (sum, slots.get_mut(index(to))) {
                (Some(sum), Some(to)) => *to = sum,
                _ => return Err(self.missing_of([a.slot(), b.slot(), to])),
            }
        }
    }

    /// Collects the ANDs that the steps begin with, and executes those whose batch is full or whose output is
    /// needed; gives the other steps.
    fn ands<'s, S: Side<Hashed = H>>(&mut self, side: &mut S, steps: &'s [Step]) -> Result<&'s [Step]> {
        let mut rest = steps.iter();
        loop {
            let left = rest.as_slice();
            let Some(&Step::And { a, b, to }) = rest.next() else { return Ok(left) };
            let number = self.done.saturating_add(self.waiting.len() as u64);
            // A slot that a waiting gate is to set is neither read nor set before. All gates of a batch are
            // hashed under one π.
            let needed = self.awaits(a.slot()) | self.awaits(b.slot()) | self.awaits(to);
            if needed | (self.waiting.len() >= BATCH) | number.is_multiple_of(GATES_PER_KEY) {
                self.flush(side)?;
            }
            let (Label(first), Label(second)) = (self.read(a)?, self.read(b)?);
            match self.awaited.get_mut(index(to)) {
                Some(awaited) => *awaited = true,
                None => return Err(self.missing(to)),
            }
            self.hashes.push(side.to_hash(first, second));
            self.waiting.push(Waiting { a: first, b: second, to });
        }
    }

    /// Executes the waiting gates.
    fn flush<S: Side<Hashed = H>>(&mut self, side: &mut S) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let first = self.done;
        self.done = first.saturating_add(self.waiting.len() as u64);
        self.hash.seek(first);
        // One pass of AES for all gates that wait.
        let tweak = first.saturating_mul(S::TWEAKS);
        self.hash.many(H::flatten(&mut self.hashes), tweak, S::PAIRS);
        for ((number, gate), hashes) in (first..).zip(self.waiting.iter()).zip(self.hashes.iter()) {
            let label = side.set(number, gate, hashes)?;
            let slot = index(gate.to);
            if let (Some(to), Some(awaited)) = (self.slots.get_mut(slot), self.awaited.get_mut(slot)) {
                (*to, *awaited) = (label, false);
            }
        }
        self.waiting.clear();
        self.hashes.clear();
        Ok(())
    }

    fn awaits(&self, slot: u32) -> bool {
        self.awaited.get(index(slot)).copied().unwrap_or(false)
    }

    /// The first of these slots that is not there.
    #[cold]
    fn missing_of(&self, slots: [u32; 3]) -> Error {
        let missing = slots.into_iter().find(|slot| index(*slot) >= self.slots.len());
        self.missing(missing.unwrap_or(u32::MAX))
    }

    #[cold]
    fn missing(&self, slot: u32) -> Error {
        Error::Slot { slot, slots: self.slots.len() }
    }
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}
