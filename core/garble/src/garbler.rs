//! The garbling side.

use alloc::vec::Vec;

use rand_core::CryptoRngCore;
use zeroize::Zeroizing;

use crate::hash::{GATES_PER_KEY, Hash};
use crate::label::{LABEL_LEN, mask};
use crate::{Error, Label, LabelPair, Operand, Program, Result, Scheme, Step};

/// AND gates that are hashed together at most.
pub(crate) const BATCH: usize = 64;
/// Hashes of a batch at most.
pub(crate) const BATCH_HASHES: usize = 4 * BATCH;

/// Garbles a circuit step by step, in memory for its slots and one batch.
///
/// ```
/// use quiver_garble::{Circuit, Evaluator, Gate, Garbler, PrivacyFree, Program};
/// # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng as _};
/// # let mut rng = ChaCha20Rng::from_seed([1; 32]);
/// let program = Program::new(&Circuit::new(2, vec![Gate::And(0, 1)], vec![2])?);
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
pub struct Garbler<S> {
    delta: Zeroizing<u128>,
    /// The label of 0 of a wire that is always 1: NOT is XOR with it.
    one: Zeroizing<u128>,
    /// The label of 0 of each slot.
    slots: Zeroizing<Vec<u128>>,
    gates: u64,
    batch: Batch,
    hash: Hash,
    scheme: core::marker::PhantomData<S>,
}

impl<S: Scheme> Garbler<S> {
    /// Draws Δ and the labels of the inputs, in this order; all that follows is computed from them. `run` is public, and no two runs have the same.
    pub fn new(program: &Program, run: &[u8; 16], rng: &mut dyn CryptoRngCore) -> Self {
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
        let lowest = S::TRANSPARENT.then_some(false);
        let delta = Zeroizing::new(draw(Some(true)));
        let one = Zeroizing::new(draw(lowest));
        let mut labels = Zeroizing::new(Vec::with_capacity(slots.max(inputs)));
        labels.extend((0..inputs).map(|_| draw(lowest)));
        labels.resize(slots.max(inputs), 0);
        let (batch, hash) = (Batch::new(labels.len()), Hash::new(run, BATCH_HASHES));
        Self { delta, one, slots: labels, gates: 0, batch, hash, scheme: core::marker::PhantomData }
    }

    /// Both labels of an input, before the first step.
    ///
    /// # Errors
    /// [`Error::Slot`] if there is no such input.
    pub fn input(&self, input: usize) -> Result<LabelPair> {
        self.output(Operand::new(u32::try_from(input).unwrap_or(u32::MAX), false))
    }

    /// The label of the wire that is always 1, which the evaluator is given.
    pub fn one(&self) -> Label {
        Label(*self.one ^ *self.delta)
    }

    /// Garbles the next steps; ciphertexts go to `sink` in order.
    ///
    /// # Errors
    /// [`Error::Slot`] if a step names a slot that is not there.
    pub fn garble(&mut self, steps: &[Step], mut sink: impl FnMut([u8; LABEL_LEN])) -> Result<()> {
        for step in steps {
            match *step {
                Step::Xor { a, b, to } => {
                    let label = self.read(a, &mut sink)? ^ self.read(b, &mut sink)?;
                    if self.batch.sets(to) {
                        self.flush(&mut sink);
                    }
                    *slot_mut(&mut self.slots, to)? = label;
                }
                Step::And { a, b, to } => {
                    let (a, b) = (self.read(a, &mut sink)?, self.read(b, &mut sink)?);
                    slot_mut(&mut self.slots, to)?;
                    let gate = self.gates.saturating_add(self.batch.len() as u64);
                    if self.batch.is_full() || self.batch.sets(to) || gate.is_multiple_of(GATES_PER_KEY) {
                        self.flush(&mut sink);
                    }
                    self.batch.push(a, b, to);
                }
            }
        }
        self.flush(&mut sink);
        Ok(())
    }

    /// Both labels of what an operand reads now.
    ///
    /// # Errors
    /// [`Error::Slot`] if there is no such slot.
    pub fn output(&self, operand: Operand) -> Result<LabelPair> {
        let zero = slot(&self.slots, operand.slot())? ^ *self.one & mask(operand.is_inverted());
        Ok(LabelPair { zero: Label(zero), one: Label(zero ^ *self.delta) })
    }

    fn read(&mut self, operand: Operand, sink: &mut impl FnMut([u8; LABEL_LEN])) -> Result<u128> {
        if self.batch.sets(operand.slot()) {
            self.flush(sink);
        }
        Ok(slot(&self.slots, operand.slot())? ^ *self.one & mask(operand.is_inverted()))
    }

    fn flush(&mut self, sink: &mut impl FnMut([u8; LABEL_LEN])) {
        if self.batch.len() == 0 {
            return;
        }
        let (first, delta) = (self.gates, *self.delta);
        self.gates = first.saturating_add(self.batch.len() as u64);
        let (gates, hashes) = self.batch.take();
        hashes.clear();
        for gate in gates {
            hashes.extend_from_slice(S::to_garble(gate.a, gate.b, delta).as_ref());
        }
        let each = S::Garbled::default().as_ref().len();
        self.hash.seek(first);
        self.hash.many(hashes, |at| S::garbling_tweak(first.saturating_add((at / each) as u64), at % each));
        for (gate, hashes) in gates.iter().zip(hashes.chunks_exact(each)) {
            let (table, zero) = S::garble(gate.a, gate.b, delta, hashes);
            for ciphertext in table.as_ref() {
                sink(ciphertext.to_le_bytes());
            }
            if let Ok(slot) = slot_mut(&mut self.slots, gate.to) {
                *slot = zero;
            }
        }
        self.batch.clear();
    }
}

/// AND gates that wait to be hashed together.
pub(crate) struct Batch {
    gates: Zeroizing<Vec<Waiting>>,
    hashes: Zeroizing<Vec<u128>>,
    /// Whether a gate that waits sets the slot.
    sets: Vec<bool>,
}

/// What a gate reads, and the slot it sets.
#[derive(Clone, Copy, Default, zeroize::Zeroize)]
pub(crate) struct Waiting {
    pub(crate) a: u128,
    pub(crate) b: u128,
    pub(crate) to: u32,
}

impl Batch {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            gates: Zeroizing::new(Vec::with_capacity(BATCH)),
            hashes: Zeroizing::new(Vec::with_capacity(BATCH_HASHES)),
            sets: alloc::vec![false; slots],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.gates.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.gates.len() >= BATCH
    }

    /// Whether a gate that waits sets this slot.
    pub(crate) fn sets(&self, slot: u32) -> bool {
        usize::try_from(slot).ok().and_then(|slot| self.sets.get(slot)).copied().unwrap_or(false)
    }

    pub(crate) fn push(&mut self, a: u128, b: u128, to: u32) {
        self.gates.push(Waiting { a, b, to });
        self.mark(to, true);
    }

    /// The gates, and room for their hashes.
    pub(crate) fn take(&mut self) -> (&[Waiting], &mut Vec<u128>) {
        (&self.gates, &mut self.hashes)
    }

    pub(crate) fn clear(&mut self) {
        while let Some(gate) = self.gates.pop() {
            self.mark(gate.to, false);
        }
    }

    fn mark(&mut self, slot: u32, sets: bool) {
        if let Some(flag) = usize::try_from(slot).ok().and_then(|slot| self.sets.get_mut(slot)) {
            *flag = sets;
        }
    }
}

pub(crate) fn slot(slots: &[u128], slot: u32) -> Result<u128> {
    let found = usize::try_from(slot).ok().and_then(|slot| slots.get(slot)).copied();
    found.ok_or(Error::Slot { slot, slots: slots.len() })
}

pub(crate) fn slot_mut(slots: &mut [u128], slot: u32) -> Result<&mut u128> {
    let count = slots.len();
    let found = usize::try_from(slot).ok().and_then(|slot| slots.get_mut(slot));
    found.ok_or(Error::Slot { slot, slots: count })
}
