//! Policies over certified fields: text, compiled to a circuit with one output.
//!
//! ```text
//! any        = all {"or" all}
//! all        = not {"and" not}
//! not        = "not" not | comparison
//! comparison = sum {("<" | "<=" | ">" | ">=" | "=" | "!=") sum}
//! sum        = product {("+" | "-") product}
//! product    = power {"*" power}
//! power      = unary ["^" number]
//! unary      = "-" unary | number | field | "(" any ")"
//! ```
//!
//! Integers are exact: every result is as wide as it has to be, so that nothing wraps around, and what would
//! need more than [`MAX_WIDTH`] bits is refused. Comparisons may be chained: `20 <= battery < 80`. A
//! comparison that is true or false for all values of the fields is refused, since nobody means one. Numbers
//! may have underscores. `#` starts a comment.

mod compile;
mod error;
mod schema;
mod words;

use alloc::string::String;

pub use error::{PolicyFault, PolicyTextError};
pub use schema::{FieldType, Schema, SchemaField};

use crate::{Circuit, GarblingProgram, Statistics};

/// Bytes a policy or a schema may have as text.
pub const MAX_TEXT: usize = 16_384;
/// Bits an intermediate result may have.
pub const MAX_WIDTH: usize = 256;
/// Parentheses, signs and negations around a field.
pub const MAX_DEPTH: usize = 64;
/// Gates a policy may need, free ones included.
pub const MAX_POLICY_GATES: usize = 1 << 22;
/// Fields a schema may have.
pub const MAX_FIELDS: usize = 256;
/// Bits all fields of a schema may have together: the attributes that are certified.
pub const MAX_BITS: usize = 4096;

/// A policy, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    text: String,
    circuit: Circuit,
}

impl Policy {
    /// Compiles a policy over the fields of a schema. The inputs of the circuit are the bits of all fields,
    /// those that the policy does not read included.
    ///
    /// # Errors
    /// [`PolicyTextError`] with line, column and mistake.
    pub fn compile(text: &str, schema: &Schema) -> Result<Self, PolicyTextError> {
        let circuit = compile::compile(text, schema)?;
        Ok(Self { text: text.into(), circuit })
    }

    /// The policy as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The compiled circuit.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// The same, ready to be garbled.
    pub fn program(&self) -> GarblingProgram {
        GarblingProgram::new(&self.circuit)
    }

    /// Size of the circuit.
    pub fn statistics(&self) -> Statistics {
        self.circuit.statistics()
    }
}
