//! A circuit scheduled for garbling: gates in order, wires in as few slots as are live at once.
//!
//! Independent AND gates are adjacent, since the hash works on many blocks at a time; gates that no output
//! needs are left out; NOT is a mark on an operand of an AND or on an output, and costs nothing.

use alloc::vec::Vec;

use crate::circuit::at;
use crate::{Circuit, Gate, Wire};

/// Operand of a step or an output: a slot, perhaps inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand(u32);

impl Operand {
    /// Reads a slot, below 2^31.
    pub fn new(slot: u32, inverted: bool) -> Self {
        Self(slot << 1 | u32::from(inverted))
    }

    /// The slot.
    pub fn slot(self) -> u32 {
        self.0 >> 1
    }

    /// Returns true if the opposite is meant.
    pub fn is_inverted(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same slot, not inverted.
    fn plain(self) -> Self {
        Self(self.0 & !1)
    }
}

/// A gate that sets a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduledGate {
    /// Exclusive or: free.
    Xor {
        /// An operand.
        a: Operand,
        /// The other.
        b: Operand,
        /// The slot that is set.
        to: u32,
    },
    /// And: what garbling costs.
    And {
        /// An operand.
        a: Operand,
        /// The other.
        b: Operand,
        /// The slot that is set.
        to: u32,
    },
}

/// A circuit made ready to be garbled. Both sides make the same of the same circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarblingProgram {
    inputs: usize,
    slots: usize,
    steps: Vec<ScheduledGate>,
    outputs: Vec<Operand>,
}

impl GarblingProgram {
    /// Orders a circuit.
    pub fn new(circuit: &Circuit) -> Self {
        Planner::new(circuit).plan()
    }

    /// Input bits; they start in the first slots.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Slots that garbling needs, 16 bytes each.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The gates in order.
    pub fn steps(&self) -> &[ScheduledGate] {
        &self.steps
    }

    /// Slots of the output bits at the end.
    pub fn outputs(&self) -> &[Operand] {
        &self.outputs
    }

    /// Number of AND gates.
    pub fn ands(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, ScheduledGate::And { .. })).count()
    }
}

/// Never used again.
const UNUSED: u32 = 0;
/// Used to the end.
const KEPT: u32 = u32::MAX;

struct Planner<'c> {
    circuit: &'c Circuit,
    /// Wire, for each wire, whose value or opposite it has (twice its number, plus 1 for the opposite).
    meant: Vec<u32>,
    /// Position, plus one, of the last gate in the new order that reads each wire.
    last: Vec<u32>,
    /// Slot of each wire.
    slot: Vec<u32>,
    free: Vec<u32>,
    slots: u32,
}

impl<'c> Planner<'c> {
    fn new(circuit: &'c Circuit) -> Self {
        let wires = circuit.inputs().saturating_add(circuit.gates().len());
        let mut meant: Vec<u32> = Vec::with_capacity(wires);
        meant.extend((0..circuit.inputs()).map(|wire| number(wire) << 1));
        for gate in circuit.gates() {
            let own = number(meant.len()) << 1;
            let inverted = |wire| at(&meant, wire) & 1;
            meant.push(match *gate {
                // A NOT is a mark on its operand, no step.
                Gate::Not(a) => at(&meant, a) ^ 1,
                // a ⊕ 1 ⊕ b = (a ⊕ b) ⊕ 1: a XOR hands the marks of its operands on.
                Gate::Xor(a, b) => own ^ inverted(a) ^ inverted(b),
                Gate::And(..) => own,
            });
        }
        let slots = number(circuit.inputs());
        let mut slot = alloc::vec![0; wires];
        for (to, input) in slot.iter_mut().zip(0..slots) {
            *to = input;
        }
        Self { circuit, meant, last: alloc::vec![UNUSED; wires], slot, free: Vec::new(), slots }
    }

    fn plan(mut self) -> GarblingProgram {
        let order = self.order();
        self.find_last_uses(&order);
        // In the order of the slots, so that the first to be free is the first.
        for input in (0..self.circuit.inputs()).rev() {
            if self.last.get(input) == Some(&UNUSED) {
                self.free.push(number(input));
            }
        }
        let mut steps = Vec::with_capacity(order.len());
        for (position, &gate) in order.iter().enumerate() {
            steps.extend(self.step(number(position).saturating_add(1), gate));
        }
        let outputs = self.circuit.outputs().iter().map(|&wire| self.operand(wire)).collect();
        GarblingProgram {
            inputs: self.circuit.inputs(),
            slots: usize::try_from(self.slots).unwrap_or(usize::MAX),
            steps,
            outputs,
        }
    }

    /// The gates that are needed: for each depth the ANDs, then the XORs that use them.
    fn order(&self) -> Vec<usize> {
        let (gates, inputs) = (self.circuit.gates(), self.circuit.inputs());
        let mut needed = alloc::vec![false; self.meant.len()];
        for &output in self.circuit.outputs() {
            self.mark(&mut needed, output);
        }
        let mut order = Vec::new();
        for (index, gate) in gates.iter().enumerate().rev() {
            // A NOT is never needed itself: its readers read its operand.
            if is(&needed, inputs.saturating_add(index)) {
                let (a, b) = gate.reads();
                self.mark(&mut needed, a);
                self.mark(&mut needed, b);
                order.push(index);
            }
        }
        order.reverse();
        let depths = self.circuit.depths();
        // ANDs of one depth are independent of each other, and stand together.
        order.sort_by_key(|&index| {
            let depth = depths.get(inputs.saturating_add(index)).copied().unwrap_or(0);
            (depth, matches!(gates.get(index), Some(Gate::Xor(..))))
        });
        order
    }

    fn mark(&self, needed: &mut [bool], wire: Wire) {
        let wire = usize::try_from(at(&self.meant, wire) >> 1).unwrap_or(usize::MAX);
        if let Some(flag) = needed.get_mut(wire) {
            *flag = true;
        }
    }

    fn find_last_uses(&mut self, order: &[usize]) {
        for (position, &index) in order.iter().enumerate() {
            let Some(gate) = self.circuit.gates().get(index) else { continue };
            let (a, b) = gate.reads();
            for wire in [a, b] {
                self.used(wire, number(position).saturating_add(1));
            }
        }
        for &wire in self.circuit.outputs() {
            self.used(wire, KEPT);
        }
    }

    fn used(&mut self, wire: Wire, when: u32) {
        let wire = usize::try_from(at(&self.meant, wire) >> 1).unwrap_or(usize::MAX);
        if let Some(last) = self.last.get_mut(wire) {
            *last = when;
        }
    }

    fn operand(&self, wire: Wire) -> Operand {
        let meant = at(&self.meant, wire);
        Operand::new(at(&self.slot, meant >> 1), meant & 1 == 1)
    }

    fn step(&mut self, now: u32, index: usize) -> Option<ScheduledGate> {
        let gate = *self.circuit.gates().get(index)?;
        let (a_wire, b_wire) = gate.reads();
        let (a, b) = (self.operand(a_wire), self.operand(b_wire));
        // Slots that are read here for the last time are free for the result.
        for operand in [Some(a_wire), (a.slot() != b.slot()).then_some(b_wire)].into_iter().flatten() {
            let wire = at(&self.meant, operand) >> 1;
            if at(&self.last, wire) == now {
                self.free.push(at(&self.slot, wire));
            }
        }
        let to = self.free.pop().unwrap_or_else(|| {
            let fresh = self.slots;
            self.slots = self.slots.saturating_add(1);
            fresh
        });
        let wire = self.circuit.inputs().saturating_add(index);
        if let Some(slot) = self.slot.get_mut(wire) {
            *slot = to;
        }
        match gate {
            Gate::And(..) => Some(ScheduledGate::And { a, b, to }),
            Gate::Xor(..) => Some(ScheduledGate::Xor { a: a.plain(), b: b.plain(), to }),
            Gate::Not(_) => None,
        }
    }
}

fn is(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or(false)
}

/// A circuit has fewer than 2^25 wires.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
