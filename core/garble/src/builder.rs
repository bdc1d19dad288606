//! Builds circuits: folds constants, shares equal gates, drops what no output needs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Not;

use crate::circuit::bounded;
use crate::{Circuit, Gate, MAX_GATES, MAX_INPUTS, Result, Wire};

/// A bit of a circuit in the making: a constant, or the value of a node or its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bit(u32);

impl Bit {
    /// The constant 0.
    pub const FALSE: Self = Self(0);
    /// The constant 1.
    pub const TRUE: Self = Self(1);

    /// A constant.
    pub fn constant(value: bool) -> Self {
        Self(u32::from(value))
    }

    /// Value of the bit, if it is a constant.
    pub fn known(self) -> Option<bool> {
        (self.0 < 2).then_some(self.0 == 1)
    }

    fn node(self) -> u32 {
        self.0 >> 1
    }

    fn inverted(self) -> bool {
        self.0 & 1 == 1
    }

    /// The opposite, if asked for.
    fn invert_if(self, condition: bool) -> Self {
        Self(self.0 ^ u32::from(condition))
    }
}

impl Not for Bit {
    type Output = Self;

    fn not(self) -> Self {
        self.invert_if(true)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BuiltGate {
    /// Operands in order, none inverted.
    Xor(Bit, Bit),
    /// Operands in order.
    And(Bit, Bit),
}

/// Makes a circuit gate by gate.
#[derive(Debug)]
pub struct Builder {
    inputs: usize,
    nodes: Vec<BuiltGate>,
    known: BTreeMap<BuiltGate, Bit>,
}

impl Builder {
    /// A circuit with this many input bits.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) above [`MAX_INPUTS`].
    pub fn new(inputs: usize) -> Result<Self> {
        bounded("input bits", inputs, MAX_INPUTS)?;
        Ok(Self { inputs, nodes: Vec::new(), known: BTreeMap::new() })
    }

    /// An input bit, or the constant 0 behind the last.
    pub fn input(&self, at: usize) -> Bit {
        match u32::try_from(at) {
            // Node 0 is the constant.
            Ok(input) if at < self.inputs => Bit((input + 1) << 1),
            _ => Bit::FALSE,
        }
    }

    /// Number of gates so far that are not free, those that no output will need included.
    pub fn gates(&self) -> usize {
        self.nodes.len()
    }

    /// Exclusive or.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        // (a ⊕ 1) ⊕ b = (a ⊕ b) ⊕ 1: inversions move to the result.
        let inverted = a.inverted() ^ b.inverted();
        let (a, b) = (a.invert_if(a.inverted()), b.invert_if(b.inverted()));
        let plain = match (a, b) {
            _ if a == b => Bit::FALSE,
            (Bit::FALSE, other) | (other, Bit::FALSE) => other,
            _ => self.node(BuiltGate::Xor(a.min(b), a.max(b))),
        };
        plain.invert_if(inverted)
    }

    /// And.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        // Constants and equal operands take no gate.
        match (a, b) {
            _ if a == b => a,
            _ if a == !b => Bit::FALSE,
            (Bit::FALSE, _) | (_, Bit::FALSE) => Bit::FALSE,
            (Bit::TRUE, other) | (other, Bit::TRUE) => other,
            _ => self.node(BuiltGate::And(a.min(b), a.max(b))),
        }
    }

    /// Or, at the price of one AND.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        // De Morgan: a ∨ b = ¬(¬a ∧ ¬b).
        !self.and(!a, !b)
    }

    /// `yes` if the condition holds, else `no`, at the price of one AND.
    pub fn choose(&mut self, condition: Bit, yes: Bit, no: Bit) -> Bit {
        // no ⊕ condition·(yes ⊕ no)
        let differ = self.xor(yes, no);
        let change = self.and(condition, differ);
        self.xor(no, change)
    }

    /// The and of all, in a tree.
    pub fn all(&mut self, bits: Vec<Bit>) -> Bit {
        let mut bits = bits;
        while bits.len() > 1 {
            let pairs = bits.chunks(2).map(|pair| match *pair {
                [a, b] => self.and(a, b),
                [a] => a,
                _ => Bit::TRUE,
            });
            bits = pairs.collect();
        }
        bits.first().copied().unwrap_or(Bit::TRUE)
    }

    fn node(&mut self, node: BuiltGate) -> Bit {
        // Equal gates are shared.
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        // A circuit that is refused for its size at the end must not wrap around before.
        let index = self.inputs.saturating_add(self.nodes.len()).saturating_add(1);
        let bit = u32::try_from(index)
            .ok()
            .filter(|index| *index < 1 << 30)
            .map_or(Bit::FALSE, |index| Bit(index << 1));
        self.nodes.push(node);
        self.known.insert(node, bit);
        bit
    }

    /// The circuit of what these outputs need. An output that is a constant is made of the first input.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) if there are too many gates or outputs, or if there is a
    /// constant and no input to make it of.
    pub fn finish(self, outputs: &[Bit]) -> Result<Circuit> {
        bounded("gates", self.nodes.len(), MAX_GATES)?;
        let needed = self.needed(outputs);
        let mut emitter = Emitter { inputs: self.inputs, gates: Vec::new(), wires: BTreeMap::new() };
        for input in 0..self.inputs {
            emitter.set(self.input(input), wire(input));
        }
        for (at, node) in self.nodes.iter().enumerate() {
            // Gates that no output needs are left out.
            if !needed.get(at).copied().unwrap_or(false) {
                continue;
            }
            let gate = match *node {
                BuiltGate::Xor(a, b) => Gate::Xor(emitter.read(a), emitter.read(b)),
                BuiltGate::And(a, b) => Gate::And(emitter.read(a), emitter.read(b)),
            };
            let to = emitter.push(gate);
            emitter.set(Bit(wire(self.inputs.saturating_add(at).saturating_add(1)) << 1), to);
        }
        let outputs = outputs.iter().map(|&output| emitter.read(output)).collect();
        Circuit::new(self.inputs, emitter.gates, outputs)
    }

    /// Nodes that the outputs need.
    fn needed(&self, outputs: &[Bit]) -> Vec<bool> {
        let mut needed = alloc::vec![false; self.nodes.len()];
        let position = |bit: Bit| {
            let node = usize::try_from(bit.node()).unwrap_or(usize::MAX);
            node.checked_sub(self.inputs.saturating_add(1))
        };
        for &output in outputs {
            mark(&mut needed, position(output));
        }
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if needed.get(at).copied().unwrap_or(false) {
                let (BuiltGate::Xor(a, b) | BuiltGate::And(a, b)) = *node;
                mark(&mut needed, position(a));
                mark(&mut needed, position(b));
            }
        }
        needed
    }
}

fn mark(needed: &mut [bool], position: Option<usize>) {
    if let Some(flag) = position.and_then(|at| needed.get_mut(at)) {
        *flag = true;
    }
}

/// Turns nodes into gates: an inverted bit becomes a NOT, once.
struct Emitter {
    inputs: usize,
    gates: Vec<Gate>,
    wires: BTreeMap<Bit, Wire>,
}

impl Emitter {
    fn set(&mut self, bit: Bit, wire: Wire) {
        self.wires.insert(bit, wire);
    }

    fn push(&mut self, gate: Gate) -> Wire {
        self.gates.push(gate);
        wire(self.inputs.saturating_add(self.gates.len()).saturating_sub(1))
    }

    fn read(&mut self, bit: Bit) -> Wire {
        if let Some(&wire) = self.wires.get(&bit) {
            return wire;
        }
        let to = match bit {
            // x ⊕ x.
            Bit::FALSE => self.push(Gate::Xor(0, 0)),
            _ => {
                let plain = self.read(!bit);
                self.push(Gate::Not(plain))
            }
        };
        self.set(bit, to);
        to
    }
}

/// A wire by its number. A number that does not fit is no wire of any circuit, and refused as such.
fn wire(number: usize) -> Wire {
    u32::try_from(number).unwrap_or(Wire::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_cost_no_gate() {
        let mut builder = Builder::new(1).unwrap();
        let x = builder.input(0);
        assert_eq!(builder.and(x, Bit::TRUE), x);
        assert_eq!(builder.and(x, Bit::FALSE), Bit::FALSE);
        assert_eq!(builder.xor(x, Bit::TRUE), !x);
        assert_eq!(builder.xor(x, x), Bit::FALSE);
        assert_eq!(builder.xor(x, !x), Bit::TRUE);
        assert_eq!(builder.and(x, !x), Bit::FALSE);
        assert_eq!(builder.or(x, !x), Bit::TRUE);
        assert_eq!(builder.gates(), 0);
    }

    #[test]
    fn equal_gates_are_shared() {
        let mut builder = Builder::new(2).unwrap();
        let (a, b) = (builder.input(0), builder.input(1));
        assert_eq!(builder.and(a, b), builder.and(b, a));
        assert_eq!(builder.xor(a, !b), !builder.xor(b, a));
        assert_eq!(builder.gates(), 2);
    }

    #[test]
    fn what_no_output_needs_is_left_out() {
        let mut builder = Builder::new(2).unwrap();
        let (a, b) = (builder.input(0), builder.input(1));
        let kept = builder.or(a, b);
        builder.and(a, b);
        let circuit = builder.finish(&[kept]).unwrap();
        assert_eq!(circuit.statistics().and, 1);
    }

    #[test]
    fn constant_outputs_can_be_evaluated() {
        let circuit = Builder::new(1).unwrap().finish(&[Bit::TRUE, Bit::FALSE]).unwrap();
        for input in [false, true] {
            assert_eq!(circuit.evaluate(&[input]).unwrap(), [true, false]);
        }
        assert!(Builder::new(0).unwrap().finish(&[Bit::TRUE]).is_err());
    }

    #[test]
    fn gates_have_the_truth_tables_of_their_names() {
        let mut builder = Builder::new(3).unwrap();
        let (a, b, c) = (builder.input(0), builder.input(1), builder.input(2));
        let bits = [builder.or(a, b), builder.choose(a, b, c), builder.all([a, b, c].into())];
        let circuit = builder.finish(&bits).unwrap();
        for number in 0..8_u8 {
            let [a, b, c] = [number & 1 == 1, number & 2 == 2, number & 4 == 4];
            let wanted = [a | b, if a { b } else { c }, a & b & c];
            assert_eq!(circuit.evaluate(&[a, b, c]).unwrap(), wanted);
        }
    }
}
