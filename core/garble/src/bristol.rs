//! Circuits as text in Bristol Fashion.
//!
//! The format of <https://nigelsmart.github.io/MPC-Circuits/>: the numbers of gates and wires; the number of
//! input values and the bits of each; the same for outputs; then a line for each gate, `2 1 a b c XOR`, `2 1
//! a b c AND`, `1 1 a b INV`, and, of the extended form, `1 1 a b EQW` (a copy), `1 1 k b EQ` (the constant
//! k) and `2n n a… b… c… MAND` (n ANDs at once). Inputs are the first wires, outputs the last.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::circuit::bounded;
use crate::{Circuit, Error, Gate, MAX_GATES, MAX_INPUTS, MAX_OUTPUTS, Result, Wire};

/// Values a file may say that it takes or gives.
const MAX_VALUES: usize = 4096;
/// Wires that are believed to come before they do.
const TRUSTED: usize = 1 << 16;

/// A circuit, and how its file groups inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BristolCircuit {
    /// The circuit.
    pub circuit: Circuit,
    /// Bits of each input value, in order.
    pub inputs: Vec<usize>,
    /// Bits of each output value, in order.
    pub outputs: Vec<usize>,
}

impl BristolCircuit {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Bristol`] with the line and its mistake; [`Error::TooLarge`] before anything is allocated for
    /// too large a circuit.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = CircuitLines { lines: text.lines(), line: 0 };
        let [gates, wires] = lines.pair()?;
        bounded("gates", gates, MAX_GATES)?;
        bounded("wires", wires, MAX_GATES.saturating_add(MAX_INPUTS))?;
        let inputs = lines.widths("input bits", MAX_INPUTS)?;
        let outputs = lines.widths("output bits", MAX_OUTPUTS)?;
        let mut reading = CircuitReader::new(sum(&inputs), wires);
        for _ in 0..gates {
            let words = lines.need("a gate")?;
            reading.gate(&words).map_err(|reason| lines.wrong(reason))?;
        }
        if let Some(words) = lines.next() {
            return Err(lines.wrong(format!("`{}` behind the last of {gates} gates", shown(words.first()))));
        }
        let circuit = reading.finish(sum(&outputs)).map_err(|reason| lines.wrong(reason))??;
        Ok(Self { circuit, inputs, outputs })
    }

    /// Writes a file that [`parse`](Self::parse) reads.
    pub fn to_text(&self) -> String {
        let circuit = &self.circuit;
        let copies = circuit.outputs().len();
        let gates = circuit.gates().len().saturating_add(copies);
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{gates} {}", circuit.inputs().saturating_add(gates));
        for widths in [&self.inputs, &self.outputs] {
            let _ = write!(text, "{}", widths.len());
            for width in widths {
                let _ = write!(text, " {width}");
            }
            text.push('\n');
        }
        text.push('\n');
        let mut to = circuit.inputs();
        for gate in circuit.gates() {
            let _ = match gate {
                Gate::Xor(a, b) => writeln!(text, "2 1 {a} {b} {to} XOR"),
                Gate::And(a, b) => writeln!(text, "2 1 {a} {b} {to} AND"),
                Gate::Not(a) => writeln!(text, "1 1 {a} {to} INV"),
            };
            to = to.saturating_add(1);
        }
        // Outputs are the last wires, whatever gates set them.
        for output in circuit.outputs() {
            let _ = writeln!(text, "1 1 {output} {to} EQW");
            to = to.saturating_add(1);
        }
        text
    }
}

/// The lines that have words, counted.
struct CircuitLines<'t> {
    lines: core::str::Lines<'t>,
    line: usize,
}

impl<'t> CircuitLines<'t> {
    fn next(&mut self) -> Option<Vec<&'t str>> {
        for text in self.lines.by_ref() {
            self.line = self.line.saturating_add(1);
            let words: Vec<_> = text.split_ascii_whitespace().collect();
            if !words.is_empty() {
                return Some(words);
            }
        }
        None
    }

    fn need(&mut self, what: &str) -> Result<Vec<&'t str>> {
        self.next().ok_or_else(|| self.wrong(format!("the file ends where {what} should stand")))
    }

    fn wrong(&self, reason: impl Into<Box<str>>) -> Error {
        Error::Bristol { line: self.line, reason: reason.into() }
    }

    fn pair(&mut self) -> Result<[usize; 2]> {
        let words = self.need("the numbers of gates and wires")?;
        match *words.as_slice() {
            [gates, wires] => match (number(gates), number(wires)) {
                (Ok(gates), Ok(wires)) => Ok([gates, wires]),
                (Err(reason), _) | (_, Err(reason)) => Err(self.wrong(reason)),
            },
            _ => Err(self.wrong("the numbers of gates and wires should stand here, and nothing else")),
        }
    }

    /// Number of values, and the bits of each.
    fn widths(&mut self, what: &'static str, most: usize) -> Result<Vec<usize>> {
        let words = self.need("a number of values and the bits of each")?;
        let numbers: core::result::Result<Vec<usize>, _> = words.iter().map(|word| number(word)).collect();
        let numbers = numbers.map_err(|reason| self.wrong(reason))?;
        let Some((&count, widths)) = numbers.split_first() else {
            return Err(self.wrong("a number of values should stand here"));
        };
        if count != widths.len() || count > MAX_VALUES {
            return Err(self.wrong(format!("{count} values, and the bits of {}", widths.len())));
        }
        bounded(what, sum(widths), most)?;
        Ok(widths.to_vec())
    }
}

/// A circuit while its gates are read.
struct CircuitReader {
    inputs: usize,
    wires: usize,
    gates: Vec<Gate>,
    /// The wire of ours for each wire of the file that is set.
    set: Vec<Option<Wire>>,
}

type BristolError = String;

impl CircuitReader {
    fn new(inputs: usize, wires: usize) -> Self {
        let mut set = Vec::with_capacity(wires.min(TRUSTED));
        set.extend((0..inputs.min(wires)).map(|input| u32::try_from(input).ok()));
        Self { inputs, wires, gates: Vec::new(), set }
    }

    fn gate(&mut self, words: &[&str]) -> core::result::Result<(), BristolError> {
        let [ins, outs, wires @ .., kind] = words else {
            return Err(format!("`{}` is no gate", shown(words.first())));
        };
        let (ins, outs) = (number(ins)?, number(outs)?);
        let wires: Vec<usize> =
            wires.iter().map(|word| number(word)).collect::<core::result::Result<_, _>>()?;
        if ins.checked_add(outs) != Some(wires.len()) {
            return Err(format!("{ins} inputs and {outs} outputs, and {} wires", wires.len()));
        }
        match (*kind, wires.as_slice()) {
            ("XOR", &[a, b, to]) => self.push(Gate::Xor, a, b, to),
            ("AND", &[a, b, to]) => self.push(Gate::And, a, b, to),
            ("INV" | "NOT", &[a, to]) => self.push(|a, _| Gate::Not(a), a, a, to),
            ("EQW", &[a, to]) => {
                let wire = self.read(a)?;
                self.bind(to, wire)
            }
            ("EQ", &[constant @ (0 | 1), to]) => self.constant(constant == 1, to),
            ("EQ", &[other, _]) => Err(format!("{other} is no constant; 0 and 1 are")),
            ("MAND", wires) if ins == outs.saturating_mul(2) => {
                let (a, rest) = wires.split_at_checked(outs).unwrap_or_default();
                let (b, to) = rest.split_at_checked(outs).unwrap_or_default();
                a.iter().zip(b).zip(to).try_for_each(|((&a, &b), &to)| self.push(Gate::And, a, b, to))
            }
            (kind @ ("XOR" | "AND" | "INV" | "NOT" | "EQW" | "EQ" | "MAND"), _) => {
                Err(format!("{kind} with {ins} inputs and {outs} outputs"))
            }
            (other, _) => Err(format!("`{}` is no gate that is known", shown(Some(&other)))),
        }
    }

    fn read(&self, wire: usize) -> core::result::Result<Wire, BristolError> {
        self.set.get(wire).copied().flatten().ok_or_else(|| format!("wire {wire} is read before it is set"))
    }

    fn push(
        &mut self,
        gate: impl FnOnce(Wire, Wire) -> Gate,
        a: usize,
        b: usize,
        to: usize,
    ) -> core::result::Result<(), BristolError> {
        let gate = gate(self.read(a)?, self.read(b)?);
        let wire = self.emit(gate)?;
        self.bind(to, wire)
    }

    fn emit(&mut self, gate: Gate) -> core::result::Result<Wire, BristolError> {
        if self.gates.len() >= MAX_GATES {
            return Err(format!("more than {MAX_GATES} gates"));
        }
        let wire = self.inputs.saturating_add(self.gates.len());
        self.gates.push(gate);
        u32::try_from(wire).map_err(|_| format!("more than {MAX_GATES} gates"))
    }

    /// x ⊕ x, or its opposite.
    fn constant(&mut self, one: bool, to: usize) -> core::result::Result<(), BristolError> {
        if self.inputs == 0 {
            return Err("a constant in a circuit without inputs".into());
        }
        let mut wire = self.emit(Gate::Xor(0, 0))?;
        if one {
            wire = self.emit(Gate::Not(wire))?;
        }
        self.bind(to, wire)
    }

    fn bind(&mut self, to: usize, wire: Wire) -> core::result::Result<(), BristolError> {
        if to >= self.wires {
            return Err(format!("wire {to} of a circuit of {} wires", self.wires));
        }
        if self.set.len() <= to {
            self.set.resize(to.saturating_add(1), None);
        }
        match self.set.get_mut(to) {
            Some(slot @ None) => {
                *slot = Some(wire);
                Ok(())
            }
            _ => Err(format!("wire {to} is set twice")),
        }
    }

    fn finish(self, outputs: usize) -> core::result::Result<Result<Circuit>, BristolError> {
        let Some(first) = self.wires.checked_sub(outputs).filter(|_| self.inputs <= self.wires) else {
            return Err(format!("{} wires for {} input and {outputs} output bits", self.wires, self.inputs));
        };
        let outputs =
            (first..self.wires).map(|wire| self.read(wire)).collect::<core::result::Result<_, _>>()?;
        Ok(Circuit::new(self.inputs, self.gates, outputs))
    }
}

fn sum(widths: &[usize]) -> usize {
    widths.iter().fold(0, |sum, &width| sum.saturating_add(width))
}

fn number(word: &str) -> core::result::Result<usize, BristolError> {
    word.parse().map_err(|_| format!("`{}` is no number that can be", shown(Some(&word))))
}

/// A word of the file, shortened and fit to print.
fn shown(word: Option<&&str>) -> String {
    word.map_or_else(String::new, |word| word.chars().take(24).flat_map(char::escape_default).collect())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    const ADDER: &str = "3 5\n1 2\n2 1 1\n\n2 1 0 1 2 AND\n2 1 0 1 3 XOR\n1 1 2 4 EQW\n";

    fn refused(text: &str) -> String {
        BristolCircuit::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn half_adder_is_read_and_written() {
        let read = BristolCircuit::parse(ADDER).unwrap();
        assert_eq!((read.inputs.as_slice(), read.outputs.as_slice()), (&[2][..], &[1, 1][..]));
        assert_eq!(read.circuit.evaluate(&[true, true]).unwrap(), [false, true]);
        let again = BristolCircuit::parse(&read.to_text()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn extended_gates_are_read() {
        let text = "4 10\n2 2 2\n1 4\n\n4 2 0 1 2 3 6 7 MAND\n1 1 1 8 EQ\n1 1 0 9 EQ\n1 1 0 4 INV\n";
        // Wires 4 and 5 are no outputs: 4 is set, 5 never.
        let read = BristolCircuit::parse(text).unwrap();
        assert_eq!(read.circuit.evaluate(&[true, false, true, true]).unwrap(), [true, false, true, false]);
    }

    #[test]
    fn cycle_is_a_wire_read_before_it_is_set() {
        assert_eq!(
            refused("2 4\n1 2\n1 1\n2 1 0 3 2 AND\n2 1 1 2 3 XOR\n"),
            "line 4: wire 3 is read before it is set"
        );
    }

    #[test]
    fn missing_and_doubled_wires_are_refused() {
        assert_eq!(refused("1 4\n1 2\n1 1\n2 1 0 1 2 AND\n"), "line 4: wire 3 is read before it is set");
        assert_eq!(refused("1 3\n1 2\n1 1\n2 1 0 1 1 AND\n"), "line 4: wire 1 is set twice");
        assert_eq!(refused("1 3\n1 2\n1 1\n2 1 0 1 7 AND\n"), "line 4: wire 7 of a circuit of 3 wires");
    }

    #[test]
    fn thousand_million_gates_are_refused_before_a_gate_is_read() {
        assert_eq!(
            refused("1000000000 1000000002\n1 2\n1 1\n"),
            format!("a circuit of 1000000000 gates; at most {MAX_GATES} are allowed")
        );
        assert!(refused("3 4\n1 99999999\n1 1\n").contains("input bits"));
    }

    #[test]
    fn what_is_no_file_is_refused_with_line_and_reason() {
        assert_eq!(refused(""), "line 0: the file ends where the numbers of gates and wires should stand");
        assert_eq!(refused("x 2\n"), "line 1: `x` is no number that can be");
        assert_eq!(refused("1 3\n2 2\n1 1\n"), "line 2: 2 values, and the bits of 1");
        assert_eq!(refused("1 3\n1 2\n1 1\n2 1 0 1 2 NAND\n"), "line 4: `NAND` is no gate that is known");
        assert_eq!(refused("1 3\n1 2\n1 1\n2 2 0 1 2 AND\n"), "line 4: 2 inputs and 2 outputs, and 3 wires");
        assert_eq!(refused("1 3\n1 2\n1 1\n1 1 0 2 AND\n"), "line 4: AND with 1 inputs and 1 outputs");
        assert_eq!(
            refused("2 3\n1 2\n1 1\n2 1 0 1 2 AND\n"),
            "line 4: the file ends where a gate should stand"
        );
        assert!(refused("1 3\n1 2\n1 1\n2 1 0 1 2 AND\nmore\n").contains("behind the last of 1 gates"));
        assert!(refused("1 1\n1 2\n1 1\n2 1 0 1 0 AND\n").contains("wire 1 is read before"));
    }
}
