//! Evaluates a garbled circuit.

use alloc::vec::Vec;
use core::marker::PhantomData;

use zeroize::Zeroizing;

use crate::block::Block;
use crate::label::LABEL_LEN;
use crate::walk::{Side, Walk};
use crate::{Error, GarblingProgram, GarblingScheme, Label, Operand, Result, ScheduledGate};

/// Evaluates a garbled circuit step by step, with one label for each input. Its time does not depend on the
/// labels.
pub struct Evaluator<S: GarblingScheme> {
    walk: Walk<S::Evaluated>,
    scheme: PhantomData<S>,
}

impl<S: GarblingScheme> Evaluator<S> {
    /// An evaluation with the garbler's `run`, its label [`one`](crate::Garbler::one), and a label for each
    /// input.
    ///
    /// # Errors
    /// [`Error::InputCount`].
    pub fn new(program: &GarblingProgram, run: &[u8; 16], one: Label, inputs: &[Label]) -> Result<Self> {
        if inputs.len() != program.inputs() {
            return Err(Error::InputCount { wanted: program.inputs(), found: inputs.len() });
        }
        Ok(Self::with_slots(program.slots(), run, one, inputs))
    }

    /// The same for steps that come from elsewhere.
    pub fn with_slots(slots: usize, run: &[u8; 16], one: Label, inputs: &[Label]) -> Self {
        let slots = slots.max(inputs.len());
        let mut labels = Zeroizing::new(Vec::with_capacity(slots));
        labels.extend(inputs.iter().map(|label| Block::from(label.0)));
        labels.resize(slots, Block::default());
        Self { walk: Walk::new(run, one.0.into(), labels), scheme: PhantomData }
    }

    /// Evaluates the next steps with the next ciphertexts.
    ///
    /// # Errors
    /// [`Error::TablesEnd`] if there are too few ciphertexts; [`Error::Slot`] if a step names a slot that is
    /// not there. After either nothing is left to go on with.
    pub fn evaluate(
        &mut self,
        steps: &[ScheduledGate],
        tables: &mut impl Iterator<Item = [u8; LABEL_LEN]>,
    ) -> Result<()> {
        self.walk.go(&mut Evaluating::<S, _> { tables, scheme: PhantomData }, steps)
    }

    /// The label of what an operand reads now.
    ///
    /// # Errors
    /// [`Error::Slot`] if there is no such slot.
    pub fn output(&self, operand: Operand) -> Result<Label> {
        self.walk.read(operand)
    }
}

/// Evaluation of a gate.
struct Evaluating<'t, S, T> {
    tables: &'t mut T,
    scheme: PhantomData<S>,
}

impl<S: GarblingScheme, T: Iterator<Item = [u8; LABEL_LEN]>> Side for Evaluating<'_, S, T> {
    type Hashed = S::Evaluated;

    const TWEAKS: u64 = S::TWEAKS;
    const PAIRS: bool = false;

    #[inline(always)]
    fn to_hash(&self, a: Block, b: Block) -> S::Evaluated {
        S::to_evaluate(a, b)
    }

    #[inline(always)]
    fn set(&mut self, number: u64, a: Block, b: Block, hashes: &S::Evaluated) -> Result<Block> {
        let mut table = S::Table::default();
        // Ciphertexts come in the order of the AND gates.
        for ciphertext in table.as_mut() {
            let next = self.tables.next().ok_or(Error::TablesEnd { gate: number })?;
            *ciphertext = u128::from_le_bytes(next).into();
        }
        Ok(S::evaluate(a, b, &table, hashes))
    }
}
