//! A policy compiled to a circuit, prepared for garbling and evaluation.

use quiver_crypto::Digest;
use quiver_garble::label::LABEL_LEN;
use quiver_garble::{Circuit, GarblingProgram, Operand, ScheduledGate};

use crate::{Error, MAX_ATTRIBUTES};

/// A circuit with one output: whether attributes satisfy the policy. Its inputs are the attributes.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("PolicyCircuit({} attributes, {ands} AND gates)", self.attributes())]
pub struct PolicyCircuit {
    program: GarblingProgram,
    output: Operand,
    ands: usize,
    digest: Digest,
}

impl PolicyCircuit {
    /// A policy of this circuit.
    ///
    /// # Errors
    /// [`Error::Outputs`], [`Error::AttributeCount`].
    pub fn new(circuit: &Circuit) -> Result<Self, Error> {
        if !(1..=MAX_ATTRIBUTES).contains(&circuit.inputs()) {
            return Err(Error::AttributeCount(circuit.inputs()));
        }
        let program = GarblingProgram::new(circuit);
        // One output: whether the attributes satisfy the policy.
        match *program.outputs() {
            [output] => Ok(Self { ands: program.ands(), output, digest: circuit.digest(), program }),
            _ => Err(Error::Outputs(circuit.outputs().len())),
        }
    }

    /// Number of its attributes.
    pub fn attributes(&self) -> usize {
        self.program.inputs()
    }

    /// Bytes of the garbled circuit.
    pub fn tables_len(&self) -> usize {
        self.ands.saturating_mul(LABEL_LEN)
    }

    /// A name for exactly this circuit.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn program(&self) -> &GarblingProgram {
        &self.program
    }

    pub(crate) fn output(&self) -> Operand {
        self.output
    }

    /// The steps from a position on that need so many tables, with the free ones behind them; and the
    /// position behind those.
    pub(crate) fn steps(&self, from: usize, tables: usize) -> (&[ScheduledGate], usize) {
        let rest = self.program.steps().get(from..).unwrap_or_default();
        let mut ands = 0_usize;
        let one_more = |step: &ScheduledGate| {
            ands = ands.saturating_add(usize::from(matches!(step, ScheduledGate::And { .. })));
            ands > tables
        };
        let count = rest.iter().position(one_more).unwrap_or(rest.len());
        (rest.get(..count).unwrap_or_default(), from.saturating_add(count))
    }
}
