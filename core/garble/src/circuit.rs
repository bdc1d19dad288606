//! Boolean circuits: gates in topological order, each setting one wire.

use alloc::vec::Vec;
use core::iter::zip;

use sha2::{Digest as _, Sha256};

use crate::{Error, MAX_GATES, MAX_INPUTS, MAX_OUTPUTS, Result};

/// A wire: inputs come first, then one for each gate, in order.
pub type Wire = u32;

/// A gate and the wires it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Exclusive or. Free to garble.
    Xor(Wire, Wire),
    /// And.
    And(Wire, Wire),
    /// Not. Free to garble.
    Not(Wire),
}

/// A circuit in which every gate reads inputs and earlier gates alone.
///
/// It has no constants: [`Builder`](crate::Builder) folds them away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    inputs: usize,
    gates: Vec<Gate>,
    outputs: Vec<Wire>,
}

/// Size of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Input bits.
    pub inputs: usize,
    /// Output bits.
    pub outputs: usize,
    /// AND gates: what garbling costs.
    pub and: usize,
    /// XOR gates.
    pub xor: usize,
    /// NOT gates.
    pub not: usize,
    /// The most AND gates on a way from an input to an output.
    pub depth: u32,
}

impl Statistics {
    /// All gates.
    pub fn gates(&self) -> usize {
        self.and.saturating_add(self.xor).saturating_add(self.not)
    }
}

impl Circuit {
    /// A circuit of these gates.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`MAX_INPUTS`], [`MAX_GATES`] or [`MAX_OUTPUTS`]; [`Error::Unset`] if a gate
    /// or an output reads a wire that nothing before it sets.
    pub fn new(inputs: usize, gates: Vec<Gate>, outputs: Vec<Wire>) -> Result<Self> {
        bounded("input bits", inputs, MAX_INPUTS)?;
        bounded("gates", gates.len(), MAX_GATES)?;
        bounded("output bits", outputs.len(), MAX_OUTPUTS)?;
        for (at, gate) in gates.iter().enumerate() {
            let (a, b) = gate.reads();
            for wire in [a, b] {
                if !before(wire, inputs, at) {
                    return Err(Error::Unset { gate: at, wire });
                }
            }
        }
        match outputs.iter().find(|&&wire| !before(wire, inputs, gates.len())) {
            Some(&wire) => Err(Error::Unset { gate: gates.len(), wire }),
            None => Ok(Self { inputs, gates, outputs }),
        }
    }

    /// Number of input bits.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The gates. The wire of gate k is `inputs() + k`.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The wires of the output bits.
    pub fn outputs(&self) -> &[Wire] {
        &self.outputs
    }

    /// Output for these input bits. Not constant-time.
    ///
    /// # Errors
    /// [`Error::InputCount`].
    pub fn evaluate(&self, inputs: &[bool]) -> Result<Vec<bool>> {
        if inputs.len() != self.inputs {
            return Err(Error::InputCount { wanted: self.inputs, found: inputs.len() });
        }
        let mut wires = Vec::with_capacity(self.inputs.saturating_add(self.gates.len()));
        wires.extend_from_slice(inputs);
        for gate in &self.gates {
            let value = match *gate {
                Gate::Xor(a, b) => value(&wires, a) ^ value(&wires, b),
                Gate::And(a, b) => value(&wires, a) & value(&wires, b),
                Gate::Not(a) => !value(&wires, a),
            };
            wires.push(value);
        }
        Ok(self.outputs.iter().map(|&wire| value(&wires, wire)).collect())
    }

    /// Size of the circuit.
    pub fn statistics(&self) -> Statistics {
        let mut statistics =
            Statistics { inputs: self.inputs, outputs: self.outputs.len(), and: 0, xor: 0, not: 0, depth: 0 };
        let depths = self.depths();
        for gate in &self.gates {
            let count = match gate {
                Gate::Xor(..) => &mut statistics.xor,
                Gate::And(..) => &mut statistics.and,
                Gate::Not(_) => &mut statistics.not,
            };
            *count = count.saturating_add(1);
        }
        statistics.depth = self.outputs.iter().map(|&wire| at(&depths, wire)).max().unwrap_or(0);
        statistics
    }

    /// Depth of each wire: the most AND gates on a path to it.
    pub(crate) fn depths(&self) -> Vec<u32> {
        let mut depths = Vec::with_capacity(self.inputs.saturating_add(self.gates.len()));
        depths.resize(self.inputs, 0_u32);
        for gate in &self.gates {
            let (a, b) = gate.reads();
            let deepest = at(&depths, a).max(at(&depths, b));
            depths.push(deepest.saturating_add(u32::from(matches!(gate, Gate::And(..)))));
        }
        depths
    }

    /// A name for exactly this circuit: SHA-256 over the number of inputs, the gates and the outputs.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(b"quiver-garble circuit v1");
        let counts = [self.inputs, self.gates.len(), self.outputs.len()];
        for count in counts {
            hash.update((count as u64).to_le_bytes());
        }
        for gate in &self.gates {
            let (kind, (a, b)) = (gate.kind(), gate.reads());
            let mut bytes = [kind; 9];
            for (to, from) in
                zip(bytes.iter_mut().skip(1), a.to_le_bytes().into_iter().chain(b.to_le_bytes()))
            {
                *to = from;
            }
            hash.update(bytes);
        }
        for wire in &self.outputs {
            hash.update(wire.to_le_bytes());
        }
        hash.finalize().into()
    }
}

impl Gate {
    /// The wires it reads; a NOT reads one, given twice.
    pub fn reads(self) -> (Wire, Wire) {
        match self {
            Self::Xor(a, b) | Self::And(a, b) => (a, b),
            Self::Not(a) => (a, a),
        }
    }

    fn kind(self) -> u8 {
        match self {
            Self::Xor(..) => 0,
            Self::And(..) => 1,
            Self::Not(_) => 2,
        }
    }
}

/// Returns true if a wire is set when the gate at a position is reached.
fn before(wire: Wire, inputs: usize, gate: usize) -> bool {
    usize::try_from(wire).is_ok_and(|wire| wire < inputs.saturating_add(gate))
}

/// Value of a wire. All wires that a valid circuit reads are set.
fn value(wires: &[bool], wire: Wire) -> bool {
    at(wires, wire)
}

/// An entry by wire.
pub(crate) fn at<T: Copy + Default>(entries: &[T], wire: Wire) -> T {
    usize::try_from(wire).ok().and_then(|wire| entries.get(wire)).copied().unwrap_or_default()
}

/// Refuses more than is allowed.
pub(crate) fn bounded(what: &'static str, found: usize, most: usize) -> Result<()> {
    if found > most { Err(Error::TooLarge { what, found, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn gate_that_reads_itself_or_a_later_gate_is_refused() {
        for wire in [2, 3, 9] {
            let refused = Circuit::new(2, vec![Gate::Xor(0, wire), Gate::Not(0)], vec![2]);
            assert_eq!(refused, Err(Error::Unset { gate: 0, wire }));
        }
    }

    #[test]
    fn output_that_nothing_sets_is_refused() {
        assert_eq!(Circuit::new(2, vec![Gate::And(0, 1)], vec![3]), Err(Error::Unset { gate: 1, wire: 3 }));
    }

    #[test]
    fn too_many_inputs_and_outputs_are_refused() {
        assert!(matches!(Circuit::new(MAX_INPUTS + 1, vec![], vec![]), Err(Error::TooLarge { .. })));
        assert!(matches!(Circuit::new(1, vec![], vec![0; MAX_OUTPUTS + 1]), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn statistics_count_gates_and_the_depth_of_outputs() {
        let gates = vec![Gate::And(0, 1), Gate::Xor(2, 0), Gate::Not(3), Gate::And(4, 1), Gate::And(5, 5)];
        let statistics = Circuit::new(2, gates, vec![5]).unwrap().statistics();
        let wanted = Statistics { inputs: 2, outputs: 1, and: 3, xor: 1, not: 1, depth: 2 };
        assert_eq!(statistics, wanted);
        assert_eq!(statistics.gates(), 5);
    }

    #[test]
    fn digest_names_every_part_of_a_circuit() {
        let circuit = |inputs, gate, output| Circuit::new(inputs, vec![gate], vec![output]).unwrap().digest();
        let one = circuit(2, Gate::And(0, 1), 2);
        assert_eq!(one, circuit(2, Gate::And(0, 1), 2));
        let others = [
            circuit(3, Gate::And(0, 1), 2),
            circuit(2, Gate::And(1, 0), 2),
            circuit(2, Gate::Xor(0, 1), 2),
            circuit(2, Gate::And(0, 1), 1),
        ];
        assert!(others.iter().all(|other| *other != one));
    }

    #[test]
    fn evaluation_wants_every_input_bit() {
        let circuit = Circuit::new(2, vec![Gate::And(0, 1)], vec![2]).unwrap();
        assert_eq!(circuit.evaluate(&[true]), Err(Error::InputCount { wanted: 2, found: 1 }));
        assert_eq!(circuit.evaluate(&[true, true]), Ok(vec![true]));
    }
}
