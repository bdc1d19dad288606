//! The evaluating side.

use alloc::vec::Vec;
use core::marker::PhantomData;

use zeroize::Zeroizing;

use crate::garbler::{BATCH_HASHES, Batch, slot, slot_mut};
use crate::hash::{GATES_PER_KEY, Hash};
use crate::label::{LABEL_LEN, mask};
use crate::{Error, Label, Operand, Program, Result, Scheme, Step};

/// Evaluates a garbled circuit step by step, with one label for each input. What it takes in time does not depend on the labels.
pub struct Evaluator<S> {
    one: Zeroizing<u128>,
    slots: Zeroizing<Vec<u128>>,
    gates: u64,
    batch: Batch,
    hash: Hash,
    scheme: PhantomData<S>,
}

impl<S: Scheme> Evaluator<S> {
    /// An evaluation with the garbler's `run`, its label [`one`](crate::Garbler::one), and a label for each input.
    ///
    /// # Errors
    /// [`Error::InputCount`].
    pub fn new(program: &Program, run: &[u8; 16], one: Label, inputs: &[Label]) -> Result<Self> {
        if inputs.len() != program.inputs() {
            return Err(Error::InputCount { wanted: program.inputs(), found: inputs.len() });
        }
        Ok(Self::with_slots(program.slots(), run, one, inputs))
    }

    /// The same for steps that come from elsewhere.
    pub fn with_slots(slots: usize, run: &[u8; 16], one: Label, inputs: &[Label]) -> Self {
        let slots = slots.max(inputs.len());
        let mut labels = Zeroizing::new(Vec::with_capacity(slots));
        labels.extend(inputs.iter().map(|label| label.0));
        labels.resize(slots, 0);
        let (batch, hash) = (Batch::new(slots), Hash::new(run, BATCH_HASHES));
        Self { one: Zeroizing::new(one.0), slots: labels, gates: 0, batch, hash, scheme: PhantomData }
    }

    /// Evaluates the next steps with the next ciphertexts.
    ///
    /// # Errors
    /// [`Error::TablesEnd`] if there are too few ciphertexts; [`Error::Slot`] if a step names a slot that is not there. After either
    /// nothing is left to go on with.
    pub fn evaluate(
        &mut self,
        steps: &[Step],
        tables: &mut impl Iterator<Item = [u8; LABEL_LEN]>,
    ) -> Result<()> {
        for step in steps {
            match *step {
                Step::Xor { a, b, to } => {
                    let label = self.read(a, tables)? ^ self.read(b, tables)?;
                    if self.batch.sets(to) {
                        self.flush(tables)?;
                    }
                    *slot_mut(&mut self.slots, to)? = label;
                }
                Step::And { a, b, to } => {
                    let (a, b) = (self.read(a, tables)?, self.read(b, tables)?);
                    slot_mut(&mut self.slots, to)?;
                    let gate = self.gates.saturating_add(self.batch.len() as u64);
                    if self.batch.is_full() || self.batch.sets(to) || gate.is_multiple_of(GATES_PER_KEY) {
                        self.flush(tables)?;
                    }
                    self.batch.push(a, b, to);
                }
            }
        }
        self.flush(tables)
    }

    /// The label of what an operand reads now.
    ///
    /// # Errors
    /// [`Error::Slot`] if there is no such slot.
    pub fn output(&self, operand: Operand) -> Result<Label> {
        Ok(Label(slot(&self.slots, operand.slot())? ^ *self.one & mask(operand.is_inverted())))
    }

    fn read(&mut self, operand: Operand, tables: &mut impl Iterator<Item = [u8; LABEL_LEN]>) -> Result<u128> {
        if self.batch.sets(operand.slot()) {
            self.flush(tables)?;
        }
        Ok(self.output(operand)?.0)
    }

    fn flush(&mut self, tables: &mut impl Iterator<Item = [u8; LABEL_LEN]>) -> Result<()> {
        if self.batch.len() == 0 {
            return Ok(());
        }
        let first = self.gates;
        self.gates = first.saturating_add(self.batch.len() as u64);
        let (gates, hashes) = self.batch.take();
        hashes.clear();
        for gate in gates {
            hashes.extend_from_slice(S::to_evaluate(gate.a, gate.b).as_ref());
        }
        let each = S::Evaluated::default().as_ref().len();
        self.hash.seek(first);
        self.hash.many(hashes, |at| S::evaluating_tweak(first.saturating_add((at / each) as u64), at % each));
        for (number, (gate, hashes)) in gates.iter().zip(hashes.chunks_exact(each)).enumerate() {
            let mut table = S::Table::default();
            for ciphertext in table.as_mut() {
                let ended = || Error::TablesEnd { gate: first.saturating_add(number as u64) };
                *ciphertext = u128::from_le_bytes(tables.next().ok_or_else(ended)?);
            }
            let label = S::evaluate(gate.a, gate.b, &table, hashes);
            if let Ok(slot) = slot_mut(&mut self.slots, gate.to) {
                *slot = label;
            }
        }
        self.batch.clear();
        Ok(())
    }
}
