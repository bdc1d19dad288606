//! Parser of policies: `(scout and altitude >= 120) or 2 of (thermal, lidar, radar)`.
//!
//! ```text
//! any     = all {"or" all}
//! all     = operand {"and" operand}
//! operand = "(" any ")" | number "of" "(" any {"," any} ")" | name [operator value]
//! ```
//!
//! Parentheses nest on a stack of our own: a policy as deep as may be takes no more of the thread's than a
//! flat one.

use alloc::vec::Vec;
use core::mem::take;

use winnow::Parser as _;
use winnow::combinator::{opt, peek};
use winnow::stream::Location as _;

use super::word::{
    bare_name, keyword, next, not_a_keyword, operator, quoted_name, start, symbol, value, word,
};
use super::{Parsed, PolicySource, expected, wrong};
use crate::{AccessTree, AttributeName, Builder, Comparison, Condition, Fault, MAX_DEPTH, Schema};

const OPERAND: &str = "an attribute, a comparison, `(` or `k of (`";

/// A part of a policy in the builder, and its first byte.
#[derive(Clone, Copy)]
struct ParsedPart {
    node: usize,
    at: usize,
}

/// Parts read so far between one pair of parentheses, or outside of all.
#[derive(Default)]
struct Level<'t> {
    /// Position of the opening parenthesis, if there is one.
    open: Option<usize>,
    /// The number of `k of (…)`, and its position.
    threshold: Option<(&'t str, usize)>,
    /// Operands separated by commas.
    list: Vec<ParsedPart>,
    /// Operands separated by `or`.
    any: Vec<ParsedPart>,
    /// Operands separated by `and`.
    all: Vec<ParsedPart>,
}

/// Beginning of an operand.
enum Begun<'t> {
    Leaf(ParsedPart),
    Level(Level<'t>),
}

/// Parses a whole text.
pub(super) fn policy(input: &mut PolicySource<'_>, schema: &Schema) -> Parsed<AccessTree> {
    let mut parse = Parse { schema, builder: AccessTree::builder() };
    let (mut outer, mut level) = (Vec::new(), Level::default());
    start(input)?;
    if next(input)?.is_none() {
        return wrong(input.current_token_start(), Fault::Empty);
    }
    loop {
        let mut operand = match parse.begin(input, outer.len())? {
            Begun::Leaf(leaf) => leaf,
            Begun::Level(inner) => {
                outer.push(core::mem::replace(&mut level, inner));
                continue;
            }
        };
        // An operand ends here, and with it perhaps the parentheses around it, which are operands in turn.
        while let Some(ended) = parse.end(input, &mut level, operand)? {
            match outer.pop() {
                Some(enclosing) => (level, operand) = (enclosing, ended),
                None => return parse.builder.finish(ended.node).or_else(|fault| wrong(ended.at, fault)),
            }
        }
    }
}

/// State of a parse.
struct Parse<'s> {
    schema: &'s Schema,
    builder: Builder,
}

impl Parse<'_> {
    /// Parses the beginning of an operand: a leaf, or a parenthesis that is the `depth`-th around its
    /// content.
    fn begin<'t>(&mut self, input: &mut PolicySource<'t>, depth: usize) -> Parsed<Begun<'t>> {
        let at = input.current_token_start();
        not_a_keyword(input, OPERAND)?;
        match next(input)? {
            Some('(') => return open(input, depth, None).map(Begun::Level),
            Some('"') => {
                let name = quoted_name(input)?;
                return self.leaf(input, name, at).map(Begun::Leaf);
            }
            _ => {}
        }
        let Some(word) = opt(word).parse_next(input)? else { return expected(input, OPERAND) };
        if peek(opt(keyword("of"))).parse_next(input)?.is_none() {
            return self.leaf(input, bare_name(word, at)?, at).map(Begun::Leaf);
        }
        if !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return expected(input, "`and`, `or`, an operator or the end (`of` follows a number)");
        }
        keyword("of").parse_next(input)?;
        if next(input)? != Some('(') {
            return expected(input, "`(` after `of`");
        }
        open(input, depth, Some((word, at))).map(Begun::Level)
    }

    /// Adds an operand to its level and parses the operator after it. `None` if another operand follows; if
    /// the level ends here, its value.
    fn end(
        &mut self,
        input: &mut PolicySource<'_>,
        level: &mut Level<'_>,
        operand: ParsedPart,
    ) -> Parsed<Option<ParsedPart>> {
        level.all.push(operand);
        if opt(keyword("and")).parse_next(input)?.is_some() {
            return Ok(None);
        }
        let all = self.joined(level.all.len(), &take(&mut level.all))?;
        level.any.push(all);
        if opt(keyword("or")).parse_next(input)?.is_some() {
            return Ok(None);
        }
        let any = self.joined(1, &take(&mut level.any))?;
        level.list.push(any);
        match (level.open, level.threshold, next(input)?) {
            (None, _, None) => Ok(Some(any)),
            (None, _, Some(')')) => wrong(input.current_token_start(), Fault::Unopened),
            (None, _, Some(_)) => expected(input, "`and`, `or` or the end"),
            (Some(open), _, None) => wrong(open, Fault::Unclosed),
            (Some(at), None, Some(')')) => symbol(input, ')').map(|()| Some(ParsedPart { at, ..any })),
            (Some(_), None, Some(_)) => expected(input, "`and`, `or` or `)`"),
            (Some(_), Some((number, at)), Some(')')) => {
                symbol(input, ')')?;
                // A number too large for its type is above the number of children all the same.
                self.gate(number.parse().unwrap_or(usize::MAX), &level.list, at).map(Some)
            }
            (Some(open), Some(_), Some(',')) => {
                symbol(input, ',')?;
                if next(input)?.is_none() { wrong(open, Fault::Unclosed) } else { Ok(None) }
            }
            (Some(_), Some(_), Some(_)) => expected(input, "`and`, `or`, `,` or `)`"),
        }
    }

    /// Parses a leaf whose name is read already.
    fn leaf(&mut self, input: &mut PolicySource<'_>, name: AttributeName, at: usize) -> Parsed<ParsedPart> {
        let condition = match opt(operator).parse_next(input)? {
            None => {
                self.schema.check_plain(&name).or_else(|fault| wrong(at, fault))?;
                Condition::Plain(name)
            }
            Some(operator) => {
                let kind = self.schema.kind_of(&name).or_else(|fault| wrong(at, fault))?;
                let (constant, constant_at) = value(input, kind)?;
                let comparison = Comparison::new(name, kind, operator, constant);
                Condition::Compare(comparison.or_else(|fault| wrong(constant_at, fault))?)
            }
        };
        let node = self.builder.leaf(condition).or_else(|fault| wrong(at, fault))?;
        Ok(ParsedPart { node, at })
    }

    /// The gate of a keyword, or the single part without one.
    fn joined(&mut self, threshold: usize, parts: &[ParsedPart]) -> Parsed<ParsedPart> {
        match parts {
            [part] => Ok(*part),
            _ => self.gate(threshold, parts, parts.first().map_or(0, |first| first.at)),
        }
    }

    fn gate(&mut self, threshold: usize, parts: &[ParsedPart], at: usize) -> Parsed<ParsedPart> {
        let children: Vec<usize> = parts.iter().map(|part| part.node).collect();
        if let Some(repeated) = self.builder.repeated(&children).and_then(|place| parts.get(place)) {
            return wrong(repeated.at, Fault::RepeatedLeaf);
        }
        let node = self.builder.gate(threshold, children).or_else(|fault| wrong(at, fault))?;
        Ok(ParsedPart { node, at })
    }
}

/// An opening parenthesis inside of `depth` others, behind which something follows.
fn open<'t>(
    input: &mut PolicySource<'t>,
    depth: usize,
    threshold: Option<(&'t str, usize)>,
) -> Parsed<Level<'t>> {
    let open = input.current_token_start();
    if depth >= MAX_DEPTH {
        return wrong(open, Fault::TooDeep);
    }
    symbol(input, '(')?;
    match next(input)? {
        None => wrong(open, Fault::Unclosed),
        Some(')') => wrong(open, Fault::EmptyParentheses),
        Some(_) => Ok(Level { open: Some(open), threshold, ..Level::default() }),
    }
}
