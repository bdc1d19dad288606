//! Parser of attribute lists: `scout, sector:7, altitude = 150`.

use winnow::Parser as _;
use winnow::combinator::{eof, opt};
use winnow::stream::Location as _;

use super::word::{bare_name, next, not_a_keyword, quoted_name, start, symbol, value, word};
use super::{Parsed, PolicySource, expected, wrong};
use crate::{AttributeName, AttributeSet, Schema, Value};

const ATTRIBUTE: &str = "an attribute";

/// list = [entry {"," entry}]
pub(super) fn attributes(input: &mut PolicySource<'_>, schema: &Schema) -> Parsed<AttributeSet> {
    let mut set = AttributeSet::new();
    start(input)?;
    if opt(eof).parse_next(input)?.is_some() {
        return Ok(set);
    }
    loop {
        entry(input, schema, &mut set)?;
        if opt(eof).parse_next(input)?.is_some() {
            return Ok(set);
        }
        if opt(|input: &mut PolicySource<'_>| symbol(input, ',')).parse_next(input)?.is_none() {
            return expected(input, "`,` or the end");
        }
    }
}

/// entry = name ["=" value]
fn entry(input: &mut PolicySource<'_>, schema: &Schema, set: &mut AttributeSet) -> Parsed<()> {
    let at = input.current_token_start();
    let name = name(input)?;
    let value = if opt(|input: &mut PolicySource<'_>| symbol(input, '=')).parse_next(input)?.is_some() {
        let kind = schema.kind_of(&name).or_else(|fault| wrong(at, fault))?;
        let (value, at) = value(input, kind)?;
        Some(Value::new(kind, value).or_else(|fault| wrong(at, fault))?)
    } else {
        schema.check_plain(&name).or_else(|fault| wrong(at, fault))?;
        None
    };
    set.insert(name, value).or_else(|fault| wrong(at, fault))
}

/// name = word | quoted
fn name(input: &mut PolicySource<'_>) -> Parsed<AttributeName> {
    let at = input.current_token_start();
    not_a_keyword(input, "an attribute (a keyword stands in quotation marks)")?;
    match next(input)? {
        Some('"') => quoted_name(input),
        _ => match opt(word).parse_next(input)? {
            Some(word) => bare_name(word, at),
            None => expected(input, ATTRIBUTE),
        },
    }
}
