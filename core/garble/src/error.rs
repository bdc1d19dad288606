//! Errors of circuits, their files and policies.

use alloc::boxed::Box;

use crate::policy::PolicyTextError;

/// A result of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A circuit larger than this crate works on.
    #[error("a circuit of {found} {what}; at most {most} are allowed")]
    TooLarge {
        /// Name of the quantity that is too large.
        what: &'static str,
        /// The value.
        found: usize,
        /// The most that is allowed.
        most: usize,
    },
    /// A gate, or an output, that reads a wire which nothing before it sets: a missing wire, or a cycle.
    #[error("gate {gate} reads wire {wire}, which no input and no earlier gate sets")]
    Unset {
        /// The position of the gate; behind the last gate, an output.
        gate: usize,
        /// The wire.
        wire: u32,
    },
    /// A line of a Bristol Fashion file that cannot be.
    #[error("line {line}: {reason}")]
    Bristol {
        /// The line, from 1.
        line: usize,
        /// The mistake.
        reason: Box<str>,
    },
    /// The number of input bits is wrong.
    #[error("{found} input bits for a circuit that has {wanted}")]
    InputCount {
        /// Number of inputs of the circuit.
        wanted: usize,
        /// Number of given bits.
        found: usize,
    },
    /// A garbled circuit that ends before the circuit does.
    #[error("the garbled circuit ends before gate {gate}")]
    TablesEnd {
        /// The AND gate, from 0, whose ciphertexts are missing.
        gate: u64,
    },
    /// A step names a slot that the program does not have.
    #[error("a step names slot {slot}, of {slots}")]
    Slot {
        /// The slot.
        slot: u32,
        /// Number of slots.
        slots: usize,
    },
    /// A policy or schema that cannot be, or a value that does not fit its field.
    #[error(transparent)]
    Policy(#[from] PolicyTextError),
}
