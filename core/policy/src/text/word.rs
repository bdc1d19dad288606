//! Lexer of both parsers: white space, words, quoted names, keywords, values.

use alloc::string::String;

use winnow::ascii::multispace0;
use winnow::combinator::{alt, opt, peek, preceded, terminated};
use winnow::stream::Location as _;
use winnow::token::{any, take_while};
use winnow::{ModalParser, Parser as _};

use super::{Failure, Parsed, PolicySource, expected, wrong};
use crate::name::{is_bare, is_keyword};
use crate::{AttributeName, Fault, IntegerType, Operator};

/// Parses `inner` and the white space behind it.
pub(super) fn lexeme<'t, T>(
    inner: impl ModalParser<PolicySource<'t>, T, Failure>,
) -> impl ModalParser<PolicySource<'t>, T, Failure> {
    terminated(inner, multispace0)
}

/// A character that is a token of its own.
pub(super) fn symbol(input: &mut PolicySource<'_>, symbol: char) -> Parsed<()> {
    lexeme(symbol.void()).parse_next(input)
}

/// The next character, left where it is.
pub(super) fn next(input: &mut PolicySource<'_>) -> Parsed<Option<char>> {
    opt(peek(any)).parse_next(input)
}

/// A word of characters that need no quotation marks.
pub(super) fn word<'t>(input: &mut PolicySource<'t>) -> Parsed<&'t str> {
    lexeme(take_while(1.., is_bare)).parse_next(input)
}

/// A keyword, in upper or lower case.
pub(super) fn keyword<'t>(keyword: &'static str) -> impl ModalParser<PolicySource<'t>, (), Failure> {
    word.verify(move |word: &str| word.eq_ignore_ascii_case(keyword)).void()
}

/// A name in quotation marks.
pub(super) fn quoted_name(input: &mut PolicySource<'_>) -> Parsed<AttributeName> {
    let open = input.current_token_start();
    '"'.parse_next(input)?;
    let mut name = String::new();
    loop {
        let at = input.current_token_start();
        match opt(any).parse_next(input)? {
            None => return wrong(open, Fault::UnclosedQuote),
            Some('"') => break,
            Some('\\') => match opt(alt(('"', '\\'))).parse_next(input)? {
                Some(escaped) => name.push(escaped),
                None => return expected(input, "`\"` or `\\` after a backslash"),
            },
            Some(c) if !crate::name::shows(c) => return wrong(at, Fault::NameCharacter(c)),
            Some(c) => name.push(c),
        }
    }
    multispace0.parse_next(input)?;
    AttributeName::new(&name).or_else(|fault| wrong(open, fault))
}

/// A name from a word that is no keyword.
pub(super) fn bare_name(word: &str, at: usize) -> Parsed<AttributeName> {
    AttributeName::new(word).or_else(|fault| wrong(at, fault))
}

/// Refuses a keyword in the place of a name.
pub(super) fn not_a_keyword(input: &mut PolicySource<'_>, otherwise: &'static str) -> Parsed<()> {
    match peek(opt(word)).parse_next(input)? {
        Some(word) if word.eq_ignore_ascii_case("not") => wrong(input.current_token_start(), Fault::Negation),
        Some(word) if is_keyword(word) => expected(input, otherwise),
        _ => Ok(()),
    }
}

/// An operator of comparison.
pub(super) fn operator(input: &mut PolicySource<'_>) -> Parsed<Operator> {
    let mut spelt = Operator::SPELT.map(|(operator, spelling)| spelling.value(operator));
    lexeme(alt(&mut spelt[..])).parse_next(input)
}

/// A value of an integer of this kind, and its position.
pub(super) fn value(input: &mut PolicySource<'_>, kind: IntegerType) -> Parsed<(u64, usize)> {
    let at = input.current_token_start();
    let Some(read) = peek(opt(word)).parse_next(input)?.and_then(|word| kind.read(word)) else {
        return expected(input, kind.expected());
    };
    word.parse_next(input)?;
    read.map_or_else(|fault| wrong(at, fault), |value| Ok((value, at)))
}

/// White space before anything else.
pub(super) fn start(input: &mut PolicySource<'_>) -> Parsed<()> {
    preceded(multispace0, winnow::combinator::empty).parse_next(input)
}
