//! Garbles a circuit.

use alloc::vec::Vec;
use core::marker::PhantomData;

use rand_core::CryptoRngCore;
use zeroize::{Zeroize as _, Zeroizing};

use crate::block::Block;
use crate::label::LABEL_LEN;
use crate::walk::{Side, Walk};
use crate::{GarblingProgram, GarblingScheme, Label, LabelPair, Operand, Result, ScheduledGate};

/// Garbles a circuit step by step, in memory for its slots and one batch.
///
/// ```
/// use quiver_garble::{Circuit, Evaluator, Gate, Garbler, GarblingProgram, PrivacyFree};
/// # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
/// # let mut rng = ChaCha20Rng::from_seed([1; 32]);
/// let program = GarblingProgram::new(&Circuit::new(2, vec![Gate::And(0, 1)], vec![2])?);
/// let run = [5; 16];
///
/// let mut garbler = Garbler::<PrivacyFree>::new(&program, &run, &mut rng);
/// let labels = [garbler.input(0)?.of(true), garbler.input(1)?.of(true)];
/// let (one, mut tables) = (garbler.one(), Vec::new());
/// garbler.garble(program.steps(), |table| tables.push(table))?;
///
/// let mut evaluator = Evaluator::<PrivacyFree>::new(&program, &run, one, &labels)?;
/// evaluator.evaluate(program.steps(), &mut tables.into_iter())?;
/// let came_out = evaluator.output(program.outputs()[0])?;
/// assert_eq!(garbler.output(program.outputs()[0])?.decode(came_out), Some(true));
/// # Ok::<(), quiver_garble::Error>(())
/// ```
pub struct Garbler<S: GarblingScheme> {
    delta: Zeroizing<u128>,
    walk: Walk<S::Garbled>,
    scheme: PhantomData<S>,
}

impl<S: GarblingScheme> Garbler<S> {
    /// Draws Δ and the labels of the inputs, in this order; all that follows is computed from them. `run` is
    /// public, and no two runs have the same.
    pub fn new(program: &GarblingProgram, run: &[u8; 16], rng: &mut dyn CryptoRngCore) -> Self {
        Self::with_slots(program.inputs(), program.slots(), run, rng)
    }

    /// The same for steps that come from elsewhere.
    pub fn with_slots(inputs: usize, slots: usize, run: &[u8; 16], rng: &mut dyn CryptoRngCore) -> Self {
        let mut draw = |lowest: Option<bool>| {
            let mut bytes = Zeroizing::new([0; LABEL_LEN]);
            rng.fill_bytes(&mut *bytes);
            let drawn = u128::from_le_bytes(*bytes);
            match lowest {
                Some(bit) => drawn & !1 | u128::from(bit),
                None => drawn,
            }
        };
        // Without privacy the lowest bit of a label is its value: labels of 0 end in 0.
        let lowest = S::TRANSPARENT.then_some(false);
        // Δ ends in 1, so that the two labels of a wire differ in the lowest bit (point and permute).
        let delta = Zeroizing::new(draw(Some(true)));
        // The label of 0 of a wire that is always 1: NOT is XOR with it.
        let one = draw(lowest);
        let mut labels = Zeroizing::new(Vec::with_capacity(slots.max(inputs)));
        labels.extend((0..inputs).map(|_| Block::from(draw(lowest))));
        labels.resize(slots.max(inputs), Block::default());
        Self { delta, walk: Walk::new(run, one.into(), labels), scheme: PhantomData }
    }

    /// Pair of labels of an input, before the first step.
    ///
    /// # Errors
    /// [`Error::Slot`](crate::Error::Slot) if there is no such input.
    pub fn input(&self, input: usize) -> Result<LabelPair> {
        self.output(Operand::new(u32::try_from(input).unwrap_or(u32::MAX), false))
    }

    /// The label of the wire that is always 1, which the evaluator is given.
    pub fn one(&self) -> Label {
        // Free XOR: A₁ = A₀ ⊕ Δ.
        Label(u128::from(self.walk.one()) ^ *self.delta)
    }

    /// Garbles the next steps; ciphertexts go to `sink` in order.
    ///
    /// # Errors
    /// [`Error::Slot`](crate::Error::Slot) if a step names a slot that is not there.
    pub fn garble(&mut self, steps: &[ScheduledGate], sink: impl FnMut([u8; LABEL_LEN])) -> Result<()> {
        self.walk.go(&mut Garbling::<S, _> { delta: *self.delta, sink, scheme: PhantomData }, steps)
    }

    /// Pair of labels of the value that an operand reads now.
    ///
    /// # Errors
    /// [`Error::Slot`](crate::Error::Slot) if there is no such slot.
    pub fn output(&self, operand: Operand) -> Result<LabelPair> {
        let Label(zero) = self.walk.read(operand)?;
        Ok(LabelPair { zero: Label(zero), one: Label(zero ^ *self.delta) })
    }
}

/// Garbling of a gate.
struct Garbling<S, F> {
    delta: u128,
    sink: F,
    scheme: PhantomData<S>,
}

impl<S: GarblingScheme, F: FnMut([u8; LABEL_LEN])> Side for Garbling<S, F> {
    type Hashed = S::Garbled;

    const TWEAKS: u64 = S::TWEAKS;
    // Both labels of a wire.
    const PAIRS: bool = true;

    #[inline]
    fn to_hash(&self, a: Block, b: Block) -> S::Garbled {
        S::to_garble(a, b, self.delta.into())
    }

    #[inline]
    fn set(&mut self, _: u64, a: Block, b: Block, hashes: &S::Garbled) -> Result<Block> {
        let (table, zero) = S::garble(a, b, self.delta.into(), hashes);
        for ciphertext in table.as_ref() {
            (self.sink)(u128::from(*ciphertext).to_le_bytes());
        }
        Ok(zero)
    }
}

impl<S, F> Drop for Garbling<S, F> {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}
