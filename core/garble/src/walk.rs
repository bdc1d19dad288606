//! Iteration over a program, shared by garbler and evaluator: wire slots, and gates batched for hashing.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::block::Block;
use crate::hash::{GATES_PER_KEY, Hash};
use crate::scheme::sealed::Hashed;
use crate::{Error, Label, Operand, Result, ScheduledGate};

/// AND gates that are hashed together at most.
pub(crate) const BATCH: usize = 128;

/// Position of a side in a program. H is its hash inputs of a gate.
pub(crate) struct Walk<H: Hashed> {
    /// Values to add to an operand's label: nothing, and if it is inverted, on the evaluator's side the label
    /// of a wire that is always 1, on the garbler's that wire's label of 0.
    added: Zeroizing<[Block; 2]>,
    slots: Zeroizing<Vec<Block>>,
    /// True for each slot that a gate of the batch sets.
    awaited: Vec<bool>,
    /// Gates of the batch, and behind them what is left of earlier ones.
    gates: Zeroizing<Vec<AndGate>>,
    hashes: Zeroizing<Vec<H>>,
    /// AND gates that are done.
    done: u64,
    hash: Hash,
}

/// Labels of an AND gate's operands, and the slot it sets.
#[derive(Clone, Copy, Default, zeroize::Zeroize)]
struct AndGate {
    a: Block,
    b: Block,
    to: u32,
}

/// The garbler's or evaluator's work at a gate.
pub(crate) trait Side {
    /// Hash inputs of a gate on this side.
    type Hashed: Hashed;

    /// Hash inputs of the gate with these operands.
    fn to_hash(&self, a: Block, b: Block) -> Self::Hashed;
    /// Tweaks of each gate.
    const TWEAKS: u64;
    /// True if two hash inputs in a row have the same tweak.
    const PAIRS: bool;

    /// Output label of the gate of this number, from its operands and hashes.
    fn set(&mut self, number: u64, a: Block, b: Block, hashes: &Self::Hashed) -> Result<Block>;
}

impl<H: Hashed> Walk<H> {
    /// Begins a walk, with the inputs in the first slots.
    pub(crate) fn new(run: &[u8; 16], one: Block, slots: Zeroizing<Vec<Block>>) -> Self {
        Self {
            added: Zeroizing::new([Block::default(), one]),
            awaited: alloc::vec![false; slots.len()],
            slots,
            gates: Zeroizing::new(alloc::vec![AndGate::default(); BATCH]),
            hashes: Zeroizing::new(alloc::vec![H::none(); BATCH]),
            done: 0,
            hash: Hash::new(run),
        }
    }

    pub(crate) fn one(&self) -> Block {
        let [_, one] = *self.added;
        one
    }

    /// Value of an operand now.
    pub(crate) fn read(&self, operand: Operand) -> Result<Label> {
        match read(&self.slots, &self.added, operand) {
            Some(label) => Ok(Label(label.into())),
            None => Err(self.missing([operand.slot(); 3])),
        }
    }

    /// Executes the next steps.
    pub(crate) fn go<S: Side<Hashed = H>>(
        &mut self,
        side: &mut S,
        mut steps: &[ScheduledGate],
    ) -> Result<()> {
        // A program has the ANDs of one depth together, then XORs, the first of which reads one of them.
        while !steps.is_empty() {
            steps = self.xors(steps)?;
            let batch = self.collect(side, steps).and_then(|gates| {
                self.execute(side, gates)?;
                Ok(gates)
            });
            // No batch is under way any more.
            let gates = batch.inspect_err(|_| self.awaited.fill(false))?;
            steps = steps.get(gates..).unwrap_or_default();
        }
        Ok(())
    }

    /// Executes the XORs that the steps begin with; gives the other steps.
    fn xors<'s>(&mut self, steps: &'s [ScheduledGate]) -> Result<&'s [ScheduledGate]> {
        let (added, slots) = (*self.added, self.slots.as_mut_slice());
        // The last sum and its slot. The next XOR of a longer sum reads it, and would wait for memory.
        let (mut last, mut last_slot) = (Block::default(), u32::MAX);
        let mut add = |a: Operand, b: Operand, to: u32| {
            // Free XOR: W = A ⊕ B. Of two NOTs nothing is left.
            let second = label(slots, b.slot())? ^ of(&added, a.is_inverted() ^ b.is_inverted());
            let first = if a.slot() == last_slot { last } else { label(slots, a.slot())? };
            (last, last_slot) = (first ^ second, to);
            *slots.get_mut(index(to))? = last;
            Some(())
        };
        let mut rest = steps.iter();
        loop {
            let left = rest.as_slice();
            let Some(&ScheduledGate::Xor { a, b, to }) = rest.next() else { return Ok(left) };
            if add(a, b, to).is_none() {
                return Err(self.missing([a.slot(), b.slot(), to]));
            }
        }
    }

    /// Makes a batch of ANDs that the steps begin with, up to one that reads what another sets; gives their
    /// number, which is positive if the first step is an AND.
    fn collect<S: Side<Hashed = H>>(&mut self, side: &S, steps: &[ScheduledGate]) -> Result<usize> {
        // All gates of a batch are hashed under one π.
        let room = GATES_PER_KEY.saturating_sub(self.done % GATES_PER_KEY);
        let room = usize::try_from(room).unwrap_or(BATCH).min(BATCH).min(steps.len());
        let (added, slots) = (*self.added, self.slots.as_slice());
        let (Some(steps), Some(gates), Some(hashes), Some(awaited)) = (
            steps.get(..room),
            self.gates.get_mut(..room),
            self.hashes.get_mut(..room),
            self.awaited.get_mut(..slots.len()),
        ) else {
            return Err(self.missing([u32::MAX; 3]));
        };
        for (number, ((step, gate), hashes)) in steps.iter().zip(gates).zip(hashes).enumerate() {
            let &ScheduledGate::And { a, b, to } = step else { return Ok(number) };
            let awaits = |operand: Operand| awaited.get(index(operand.slot())).copied();
            let labels = read(slots, &added, a).zip(read(slots, &added, b));
            let (Some((a_label, b_label)), Some((a_awaits, b_awaits))) = (labels, awaits(a).zip(awaits(b)))
            else {
                return Err(self.missing([a.slot(), b.slot(), to]));
            };
            if a_awaits | b_awaits {
                return Ok(number);
            }
            // Two gates of a batch may set the same slot: they are executed in order.
            let Some(awaited) = awaited.get_mut(index(to)) else {
                return Err(self.missing([a.slot(), b.slot(), to]));
            };
            *awaited = true;
            *hashes = side.to_hash(a_label, b_label);
            *gate = AndGate { a: a_label, b: b_label, to };
        }
        Ok(room)
    }

    /// Executes the batch, of so many gates.
    fn execute<S: Side<Hashed = H>>(&mut self, side: &mut S, gates: usize) -> Result<()> {
        let first = self.done;
        self.done = first.saturating_add(gates as u64);
        self.hash.seek(first);
        let slots = self.slots.as_mut_slice();
        let (Some(gates), Some(hashes), Some(awaited)) = (
            self.gates.get(..gates),
            self.hashes.get_mut(..gates.min(BATCH)),
            self.awaited.get_mut(..slots.len()),
        ) else {
            return Err(self.missing([u32::MAX; 3]));
        };
        // One pass of AES for all gates.
        self.hash.many(H::flatten(hashes), first.saturating_mul(S::TWEAKS), S::PAIRS);
        for (number, (gate, hashes)) in gates.iter().zip(&*hashes).enumerate() {
            let label = side.set(first.saturating_add(number as u64), gate.a, gate.b, hashes)?;
            let slot = index(gate.to);
            if let (Some(to), Some(awaited)) = (slots.get_mut(slot), awaited.get_mut(slot)) {
                (*to, *awaited) = (label, false);
            }
        }
        Ok(())
    }

    /// The first of these slots that is not there.
    #[cold]
    fn missing(&self, slots: [u32; 3]) -> Error {
        let missing = slots.into_iter().find(|slot| index(*slot) >= self.slots.len());
        Error::Slot { slot: missing.unwrap_or(u32::MAX), slots: self.slots.len() }
    }
}

/// Value to add to a label for a NOT, or for none.
fn of(added: &[Block; 2], inverted: bool) -> Block {
    added.get(usize::from(inverted)).copied().unwrap_or_default()
}

fn label(slots: &[Block], slot: u32) -> Option<Block> {
    slots.get(index(slot)).copied()
}

fn read(slots: &[Block], added: &[Block; 2], operand: Operand) -> Option<Block> {
    // NOT is XOR with the wire that is always 1.
    Some(label(slots, operand.slot())? ^ of(added, operand.is_inverted()))
}

fn index(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}
