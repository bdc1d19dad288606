//! Lexer of policies and schemas: words, numbers, symbols, white space.

use alloc::format;

use winnow::LocatingSlice;
use winnow::Parser as _;
use winnow::ascii::{multispace1, till_line_ending};
use winnow::combinator::{alt, opt, peek, repeat};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::Location as _;
use winnow::token::{any, literal, take_while};

use super::error::shown;
use super::{MAX_TEXT, PolicyFault, PolicyTextError};

pub(super) type ParserInput<'t> = LocatingSlice<&'t str>;
pub(super) type Parsed<T> = Result<T, ErrMode<ParseFailure>>;

/// Characters a name may have.
pub(super) const MAX_NAME: usize = 64;
const KEYWORDS: [&str; 3] = ["and", "or", "not"];

/// Error of a parser, and its byte.
#[derive(Clone, Debug)]
pub(super) struct ParseFailure {
    at: usize,
    fault: Option<PolicyFault>,
}

impl<'t> ParserError<ParserInput<'t>> for ParseFailure {
    type Inner = Self;

    fn from_input(input: &ParserInput<'t>) -> Self {
        Self { at: input.current_token_start(), fault: None }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// Stops at a byte.
pub(super) fn wrong<T>(at: usize, fault: PolicyFault) -> Parsed<T> {
    Err(ErrMode::Cut(ParseFailure { at, fault: Some(fault) }))
}

/// The error that something else is expected here.
pub(super) fn expected<T>(input: &ParserInput<'_>, what: &'static str) -> Parsed<T> {
    let rest = input.as_ref();
    let end = rest.find(|c: char| !is_word(c)).filter(|&end| end > 0);
    let found = match (rest.chars().next(), end) {
        (None, _) => "the end".into(),
        (Some('\n' | '\r'), _) => "the end of the line".into(),
        (Some(c), None) if !is_word(c) => format!("`{}`", c.escape_debug()).into(),
        (_, end) => format!("`{}`", shown(rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest))).into(),
    };
    wrong(input.current_token_start(), PolicyFault::Expected { expected: what, found })
}

/// Runs a parser over a whole text.
pub(super) fn whole<'t, T>(
    text: &'t str,
    parser: impl FnOnce(&mut ParserInput<'t>) -> Parsed<T>,
) -> Result<T, PolicyTextError> {
    if text.len() > MAX_TEXT {
        return Err(PolicyTextError::whole(PolicyFault::TextTooLong));
    }
    let mut input = LocatingSlice::new(text);
    space(&mut input).and_then(|()| parser(&mut input)).map_err(|error| {
        let (ErrMode::Backtrack(failure) | ErrMode::Cut(failure)) = error else {
            // The whole text is there: nothing is ever awaited.
            return PolicyTextError::at(text, text.len(), PolicyFault::TextTooLong);
        };
        let end = || PolicyFault::Expected { expected: "something else", found: "the end".into() };
        PolicyTextError::at(text, failure.at, failure.fault.unwrap_or_else(end))
    })
}

/// White space and comments.
fn space(input: &mut ParserInput<'_>) -> Parsed<()> {
    repeat(0.., alt((multispace1.void(), ('#', till_line_ending).void()))).parse_next(input)
}

/// First byte of the next word.
pub(super) fn place(input: &ParserInput<'_>) -> usize {
    input.current_token_start()
}

/// The next character, left where it is.
pub(super) fn next(input: &mut ParserInput<'_>) -> Option<char> {
    opt(peek(any::<_, ErrMode<ParseFailure>>)).parse_next(input).ok().flatten()
}

/// The first of the symbols that is next, if any.
pub(super) fn symbol(input: &mut ParserInput<'_>, symbols: &[&'static str]) -> Parsed<Option<&'static str>> {
    for &symbol in symbols {
        if opt(literal(symbol)).parse_next(input)?.is_some() {
            space(input)?;
            return Ok(Some(symbol));
        }
    }
    Ok(None)
}

/// Takes this keyword if it is next, and returns true then.
pub(super) fn keyword(input: &mut ParserInput<'_>, wanted: &str) -> Parsed<bool> {
    let ahead = opt(peek(word)).parse_next(input)?;
    let here = ahead.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    if here {
        word(input)?;
        space(input)?;
    }
    Ok(here)
}

/// A name or a number, unparsed.
pub(super) fn lexeme<'t>(input: &mut ParserInput<'t>) -> Parsed<Option<&'t str>> {
    let found = opt(word).parse_next(input)?;
    space(input)?;
    Ok(found)
}

fn word<'t>(input: &mut ParserInput<'t>) -> Parsed<&'t str> {
    take_while(1.., is_word).parse_next(input)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Checks that a word can name a field.
pub(super) fn name(word: &str) -> Result<(), PolicyFault> {
    if KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) {
        return Err(PolicyFault::Keyword(word.into()));
    }
    let starts = word.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts || word.len() > MAX_NAME || !word.chars().all(is_word) {
        return Err(PolicyFault::Name(shown(word)));
    }
    Ok(())
}

/// A number without sign; underscores separate digits.
pub(super) fn number(word: &str) -> Result<u128, PolicyFault> {
    let mut value = 0_u128;
    for c in word.chars().filter(|&c| c != '_') {
        let digit = c.to_digit(10).ok_or_else(|| PolicyFault::Expected {
            expected: "a number in decimal digits",
            found: format!("`{}`", shown(word)).into(),
        })?;
        let next = value.checked_mul(10).and_then(|value| value.checked_add(u128::from(digit)));
        value = next.filter(|value| value >> 127 == 0).ok_or(PolicyFault::NumberTooLarge)?;
    }
    Ok(value)
}
