//! Parsers of policies and attribute sets.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use winnow::LocatingSlice;
use winnow::error::{ErrMode, ParserError};
use winnow::stream::Location as _;

use crate::name::is_bare;
use crate::{AccessTree, AttributeSet, Fault, MAX_TEXT, PolicyError, Schema};

mod attributes;
mod policy;
mod word;

/// Characters of what was found that an error repeats.
const FOUND: usize = 32;

type PolicySource<'t> = LocatingSlice<&'t str>;
type Parsed<T> = Result<T, ErrMode<Failure>>;

/// Error of a parser, and its byte.
#[derive(Clone, Debug)]
struct Failure {
    at: usize,
    reason: FailureReason,
}

#[derive(Clone, Debug)]
enum FailureReason {
    /// Expected here, and missing.
    Expected(&'static str),
    /// A fault of what can be read.
    Fault(Fault),
}

impl<'t> ParserError<PolicySource<'t>> for Failure {
    type Inner = Self;

    fn from_input(input: &PolicySource<'t>) -> Self {
        Self { at: input.current_token_start(), reason: FailureReason::Expected("something else") }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// No other reading will do.
fn wrong<T>(at: usize, fault: Fault) -> Parsed<T> {
    Err(ErrMode::Cut(Failure { at, reason: FailureReason::Fault(fault) }))
}

/// The error that something else is expected at the next byte.
fn expected<T>(input: &PolicySource<'_>, what: &'static str) -> Parsed<T> {
    Err(ErrMode::Cut(Failure { at: input.current_token_start(), reason: FailureReason::Expected(what) }))
}

/// Parses a policy.
pub(crate) fn policy(text: &str, schema: &Schema) -> Result<AccessTree, PolicyError> {
    whole(text, |input| policy::policy(input, schema))
}

/// Parses a list of attributes.
pub(crate) fn attributes(text: &str, schema: &Schema) -> Result<AttributeSet, PolicyError> {
    whole(text, |input| attributes::attributes(input, schema))
}

/// Runs a parser over a text of bounded length.
fn whole<'t, T>(
    text: &'t str,
    parser: impl FnOnce(&mut PolicySource<'t>) -> Parsed<T>,
) -> Result<T, PolicyError> {
    if text.len() > MAX_TEXT {
        let start = (0..=MAX_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        return Err(PolicyError::at(text, start, Fault::TextTooLong));
    }
    parser(&mut LocatingSlice::new(text)).map_err(|failure| match failure {
        ErrMode::Backtrack(Failure { at, reason }) | ErrMode::Cut(Failure { at, reason }) => {
            let fault = match reason {
                FailureReason::Fault(fault) => fault,
                FailureReason::Expected(expected) => Fault::Expected { expected, found: found(text, at) },
            };
            PolicyError::at(text, at, fault)
        }
        // The whole text is there: nothing is ever awaited.
        ErrMode::Incomplete(_) => {
            PolicyError::at(text, text.len(), Fault::Expected { expected: "more", found: found("", 0) })
        }
    })
}

/// The token at a byte: a word, a character, or the end.
fn found(text: &str, at: usize) -> Box<str> {
    let rest = text.get(at..).unwrap_or("");
    let word = rest.find(|c| !is_bare(c)).map_or(rest, |end| rest.get(..end).unwrap_or(rest));
    match rest.chars().next() {
        None => "the end".into(),
        Some('\n' | '\r') => "the end of the line".into(),
        Some(c) if word.is_empty() => quoted(c.encode_utf8(&mut [0; 4])),
        Some(_) => quoted(word),
    }
}

/// A piece of the text, shortened and made fit to print.
pub(crate) fn quoted(text: &str) -> Box<str> {
    let shown: String = text.chars().take(FOUND).flat_map(printable).collect();
    format!("`{shown}{}`", if text.chars().nth(FOUND).is_some() { "…" } else { "" }).into()
}

fn printable(c: char) -> impl Iterator<Item = char> {
    let (plain, escaped) =
        if crate::name::shows(c) { (Some(c), None) } else { (None, Some(c.escape_unicode())) };
    plain.into_iter().chain(escaped.into_iter().flatten())
}
