//! Errors of policies, schemas and values, with their position in the text.

use alloc::boxed::Box;
use alloc::string::String;

use super::{MAX_BITS, MAX_DEPTH, MAX_FIELDS, MAX_POLICY_GATES, MAX_TEXT, MAX_WIDTH};

/// A mistake in a text, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct PolicyTextError {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    /// The mistake.
    pub fault: PolicyFault,
}

/// A kind of mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFault {
    /// Something else is expected here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The expected token.
        expected: &'static str,
        /// The token found.
        found: Box<str>,
    },
    /// A text longer than [`MAX_TEXT`].
    #[error("a text of more than {MAX_TEXT} bytes")]
    TextTooLong,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// A field that the schema does not have.
    #[error("no field is named `{0}`")]
    UnknownField(Box<str>),
    /// A number where something true or false is wanted, or the other way round.
    #[error("{wanted} is wanted here, and this is {found}")]
    WrongKind {
        /// The required kind.
        wanted: &'static str,
        /// The kind found.
        found: &'static str,
    },
    /// A result wider than [`MAX_WIDTH`].
    #[error("this may need {0} bits; at most {MAX_WIDTH} are allowed")]
    TooWide(usize),
    /// A number that is too large to write.
    #[error("a number of more than 127 bits")]
    NumberTooLarge,
    /// An exponent that is not from 1 to 16.
    #[error("the exponent {0} is not from 1 to 16")]
    Exponent(u128),
    /// More gates than [`MAX_POLICY_GATES`].
    #[error("this needs more than {MAX_POLICY_GATES} gates")]
    TooManyGates,
    /// The policy holds, or does not, whatever the fields are.
    #[error("this is always {0}, whatever the fields say")]
    Constant(bool),
    /// A name that is no name.
    #[error("`{0}` is no name: letters, digits, `_` and `.`, a letter first, at most 64")]
    Name(Box<str>),
    /// A keyword of policies.
    #[error("`{0}` is a word of the language and names no field")]
    Keyword(Box<str>),
    /// A field that is there already.
    #[error("field `{0}` is there twice")]
    FieldTwice(Box<str>),
    /// A kind that is none.
    #[error("`{0}` is no kind of field: `bool`, `u1` to `u64`, `i1` to `i64`")]
    Kind(Box<str>),
    /// More fields than [`MAX_FIELDS`], or more bits than [`MAX_BITS`].
    #[error("more than {MAX_FIELDS} fields or {MAX_BITS} bits")]
    SchemaTooLarge,
    /// A value that its field cannot have.
    #[error("{value} does not fit `{field}`, which is {kind}")]
    Value {
        /// The value.
        value: i128,
        /// The field.
        field: Box<str>,
        /// The kind.
        kind: super::FieldType,
    },
    /// A field without a value.
    #[error("field `{0}` has no value")]
    NoValue(Box<str>),
}

impl PolicyTextError {
    /// Makes the error at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, fault: PolicyFault) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        let column = before.get(start..).unwrap_or("").chars().count().saturating_add(1);
        Self { line, column, fault }
    }

    /// Makes the error without a text: at its first character.
    pub(super) fn whole(fault: PolicyFault) -> Self {
        Self { line: 1, column: 1, fault }
    }
}

/// A piece of the text, shortened and fit to print.
pub(super) fn shown(text: &str) -> Box<str> {
    let shown: String = text.chars().take(32).flat_map(char::escape_debug).collect();
    shown.into()
}
