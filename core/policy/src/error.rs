//! Errors of policies, attribute sets and schemas, with their position in the text.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;

use quiver_crypto::canonical::Malformed;
use thiserror::Error;

use crate::{
    AttributeName, IntegerType, MAX_ATOMS, MAX_DECLARED, MAX_DEPTH, MAX_LEAVES, MAX_NODES, MAX_TEXT,
};

/// Characters of a line that [`PolicyError::pointing_at`] prints on either side of the column.
const SHOWN: usize = 60;

/// A place in a text. Both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Lines end with a line feed.
    pub line: usize,
    /// Column in characters, not bytes.
    pub column: usize,
}

impl TextPosition {
    /// The place of the byte `offset` of `text`; past the end, the place after the last character.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let start = before.rfind('\n').map_or(0, |feed| feed.saturating_add(1));
        let column = before.get(start..).map_or(0, |part| part.chars().count()).saturating_add(1);
        Self { line, column }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}", self.column)
    }
}

/// A kind of mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Text exceeds [`MAX_TEXT`].
    #[error("the text is longer than {MAX_TEXT} bytes")]
    TextTooLong,
    /// An empty policy.
    #[error("the policy is empty")]
    Empty,
    /// A parenthesis opens and closes at once.
    #[error("nothing stands between these parentheses")]
    EmptyParentheses,
    /// Something else is expected here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// The expected token.
        expected: &'static str,
        /// The token found: a word, a character, or the end.
        found: Box<str>,
    },
    /// An opening parenthesis without a closing one.
    #[error("this parenthesis is never closed")]
    Unclosed,
    /// A closing parenthesis without an opening one.
    #[error("this parenthesis was never opened")]
    Unopened,
    /// A quotation mark without its other half.
    #[error("this quotation mark is never closed")]
    UnclosedQuote,
    /// `not`, which policies do not have.
    #[error("a policy cannot ask that an attribute be missing: a key proves only what its holder has")]
    Negation,
    /// A name is empty or exceeds [`AttributeName::MAX_LEN`].
    #[error("a name has 1 to {} bytes", AttributeName::MAX_LEN)]
    NameLength,
    /// A character that is not printable, or that hides or reorders others, in a name.
    #[error("the character U+{:04X} may not be part of a name", u32::from(*.0))]
    NameCharacter(char),
    /// The schema lists its plain attributes, and this is none of them.
    #[error("unknown attribute `{name}`{}", suggest(.nearest.as_deref()))]
    UnknownAttribute {
        /// The name.
        name: Box<str>,
        /// The most similar declared name.
        nearest: Option<Box<str>>,
    },
    /// Something is compared or given a value that the schema does not declare as an integer.
    #[error("{}", not_an_integer(.name, .nearest.as_deref()))]
    NotAnInteger {
        /// The name.
        name: Box<str>,
        /// The most similar declared integer.
        nearest: Option<Box<str>>,
    },
    /// An integer in the place of a plain attribute.
    #[error("`{name}` is an integer ({kind}): it needs a value")]
    NeedsValue {
        /// The name.
        name: Box<str>,
        /// The kind.
        kind: IntegerType,
    },
    /// A value that the attribute cannot have.
    #[error("out of range: the smallest value is {}, the largest {}", .kind.shown(0), .kind.shown(IntegerType::max(*.kind)))]
    OutOfRange {
        /// The attribute's kind.
        kind: IntegerType,
    },
    /// A comparison that holds whatever the value.
    #[error("this is true of every value: leave it out")]
    AlwaysTrue,
    /// A comparison that holds for no value.
    #[error("this is true of no value")]
    AlwaysFalse,
    /// Comparisons of one integer that all must hold, and that no value fulfils together.
    #[error("no value of `{name}` fulfils all that the policy demands of it")]
    Contradiction {
        /// The integer.
        name: Box<str>,
    },
    /// A threshold of 0.
    #[error("a threshold is at least 1")]
    ThresholdZero,
    /// A threshold that cannot be met.
    #[error("the threshold is above the number of alternatives, {children}")]
    ThresholdAboveChildren {
        /// Children the gate has.
        children: usize,
    },
    /// A gate that lists the same leaf twice, so that it would count twice.
    #[error("listed twice here: it would count twice")]
    RepeatedLeaf,
    /// More leaves than [`MAX_LEAVES`], comparisons counted by the bits they come down to.
    #[error(
        "a policy has at most {MAX_LEAVES} leaves, a comparison counting as many as the bits it looks at"
    )]
    TooManyLeaves,
    /// More nodes than [`MAX_NODES`].
    #[error("a policy has at most {MAX_NODES} nodes")]
    TooManyNodes,
    /// Deeper than [`MAX_DEPTH`].
    #[error("nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// An attribute set that has something twice.
    #[error("`{name}` is given twice")]
    Duplicate {
        /// The name.
        name: Box<str>,
    },
    /// More atoms than [`MAX_ATOMS`].
    #[error("a set has at most {MAX_ATOMS} attributes, an integer counting as many as it has bits")]
    TooManyAtoms,
    /// One name used as plain attribute and integer, or as integers of different kinds.
    #[error("`{name}` is used as attributes of different kinds")]
    ConflictingKinds {
        /// The name.
        name: Box<str>,
    },
    /// A schema that declares something twice.
    #[error("`{name}` is declared twice")]
    DeclaredTwice {
        /// The name.
        name: Box<str>,
    },
    /// Integers have 1 to 64 bits.
    #[error("an integer attribute has 1 to 64 bits")]
    InvalidWidth,
    /// More declarations than [`MAX_DECLARED`].
    #[error("a schema declares at most {MAX_DECLARED} attributes")]
    TooManyDeclared,
    /// A builder was given the number of no node, or of one that is under a gate already, or finished with
    /// nodes to spare.
    #[error("{0}")]
    Builder(&'static str),
    /// Bytes are not the canonical encoding of what was expected.
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

/// Tells a value in the place of a name from a name that is not declared.
fn not_an_integer(name: &str, nearest: Option<&str>) -> String {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!(
            "`{name}` is a number where a name is expected: the name comes first, as in `x >= {name}`"
        );
    }
    format!("`{name}` is not declared as an integer{}", suggest(nearest))
}

fn suggest(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

/// A mistake, and its position if it is in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    fault: Fault,
    place: Option<TextPosition>,
}

impl PolicyError {
    pub(crate) fn at(text: &str, offset: usize, fault: Fault) -> Self {
        Self { fault, place: Some(TextPosition::of(text, offset)) }
    }

    /// The mistake.
    #[must_use]
    pub const fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Position of the error, if it is in a text.
    #[must_use]
    pub const fn place(&self) -> Option<TextPosition> {
        self.place
    }

    /// The line of `text` that the error is in, with a caret under the column and the error below: three
    /// lines for a terminal, the last without a line feed. Of a long line only the part around the column is
    /// printed, and characters unfit for a terminal are replaced.
    #[must_use]
    pub fn pointing_at(&self, text: &str) -> String {
        let Some(TextPosition { line, column }) = self.place else { return format!("{}", self.fault) };
        let full = text.split('\n').nth(line.saturating_sub(1)).unwrap_or("");
        let skipped = column.saturating_sub(SHOWN);
        let shown: String = full
            .chars()
            .skip(skipped)
            .take(2 * SHOWN)
            .map(|c| if crate::name::shows(c) { c } else { '\u{fffd}' })
            .collect();
        let indent = column.saturating_sub(skipped).saturating_sub(1);
        format!("{shown}\n{:indent$}^\n{self}", "")
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        self.fault.fmt(f)
    }
}

impl core::error::Error for PolicyError {}

impl From<Fault> for PolicyError {
    fn from(fault: Fault) -> Self {
        Self { fault, place: None }
    }
}

impl From<Malformed> for Fault {
    fn from(Malformed(what): Malformed) -> Self {
        Self::Malformed(what)
    }
}

impl From<Malformed> for PolicyError {
    fn from(malformed: Malformed) -> Self {
        Fault::from(malformed).into()
    }
}
