//! Policies: `(scout and altitude >= 120) or 2 of (thermal, lidar, radar)`.

use alloc::vec::Vec;

use winnow::Parser as _;
use winnow::combinator::{opt, peek, separated};
use winnow::stream::Location as _;

use super::word::{
    bare_name, keyword, next, not_a_keyword, operator, quoted_name, start, symbol, value, word,
};
use super::{Input, Parsed, expected, wrong};
use crate::{AccessTree, AttributeName, Builder, Comparison, Condition, Fault, MAX_DEPTH, Schema};

const OPERAND: &str = "an attribute, a comparison, `(` or `k of (`";

/// A part of a policy that stands in the builder, and the byte it begins at.
#[derive(Clone, Copy)]
struct Part {
    node: usize,
    at: usize,
}

/// What a parse adds to.
struct Parse<'s> {
    schema: &'s Schema,
    builder: Builder,
    /// Parentheses that are open. Parsers call each other only inside of parentheses, so this bounds the stack.
    depth: usize,
}

/// policy = any
pub(super) fn policy(input: &mut Input<'_>, schema: &Schema) -> Parsed<AccessTree> {
    let mut parse = Parse { schema, builder: AccessTree::builder(), depth: 0 };
    start(input)?;
    if next(input)?.is_none() {
        return wrong(input.current_token_start(), Fault::Empty);
    }
    let root = parse.any(input)?;
    match next(input)? {
        None => parse.builder.finish(root.node).or_else(|fault| wrong(root.at, fault)),
        Some(')') => wrong(input.current_token_start(), Fault::Unopened),
        Some(_) => expected(input, "`and`, `or` or the end"),
    }
}

// Every failure behind the first word of an operand is final, so nothing is ever parsed twice.
impl Parse<'_> {
    /// any = all {"or" all}
    fn any(&mut self, input: &mut Input<'_>) -> Parsed<Part> {
        let separator = |input: &mut Input<'_>| keyword(input, "or");
        let parts: Vec<Part> =
            separated(1.., |input: &mut Input<'_>| self.all(input), separator).parse_next(input)?;
        self.joined(1, parts)
    }

    /// all = operand {"and" operand}
    fn all(&mut self, input: &mut Input<'_>) -> Parsed<Part> {
        let separator = |input: &mut Input<'_>| keyword(input, "and");
        let parts: Vec<Part> =
            separated(1.., |input: &mut Input<'_>| self.operand(input), separator).parse_next(input)?;
        self.joined(parts.len(), parts)
    }

    /// operand = "(" any ")" | number "of" "(" any {"," any} ")" | name [operator value]
    fn operand(&mut self, input: &mut Input<'_>) -> Parsed<Part> {
        let at = input.current_token_start();
        not_a_keyword(input, OPERAND)?;
        match next(input)? {
            Some('(') => {
                let [part] = *self.parenthesised(input, false)? else {
                    return wrong(at, Fault::EmptyParentheses);
                };
                Ok(Part { at, ..part })
            }
            Some('"') => {
                let name = quoted_name(input)?;
                self.leaf(input, name, at)
            }
            _ => match opt(word).parse_next(input)? {
                Some(word)
                    if peek(opt(|input: &mut Input<'_>| keyword(input, "of")))
                        .parse_next(input)?
                        .is_some() =>
                {
                    self.threshold(input, word, at)
                }
                Some(word) => self.leaf(input, bare_name(word, at)?, at),
                None => expected(input, OPERAND),
            },
        }
    }

    /// What follows the number of a threshold.
    fn threshold(&mut self, input: &mut Input<'_>, number: &str, at: usize) -> Parsed<Part> {
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return expected(input, "`and`, `or`, an operator or the end (`of` follows a number)");
        }
        keyword(input, "of")?;
        if next(input)? != Some('(') {
            return expected(input, "`(` after `of`");
        }
        let parts = self.parenthesised(input, true)?;
        // A number too large for its type is above the number of children all the same.
        self.gate(number.parse().unwrap_or(usize::MAX), &parts, at)
    }

    /// "(" any {"," any} ")", where commas only separate alternatives of a threshold.
    fn parenthesised(&mut self, input: &mut Input<'_>, list: bool) -> Parsed<Vec<Part>> {
        let open = input.current_token_start();
        symbol(input, '(')?;
        if self.depth >= MAX_DEPTH {
            return wrong(open, Fault::TooDeep);
        }
        if next(input)? == Some(')') {
            return wrong(open, Fault::EmptyParentheses);
        }
        self.depth = self.depth.saturating_add(1);
        let mut parts = Vec::new();
        loop {
            match next(input)? {
                None => return wrong(open, Fault::Unclosed),
                Some(_) => parts.push(self.any(input)?),
            }
            match next(input)? {
                Some(')') => break,
                Some(',') if list => symbol(input, ',')?,
                None => return wrong(open, Fault::Unclosed),
                Some(_) if list => return expected(input, "`and`, `or`, `,` or `)`"),
                Some(_) => return expected(input, "`and`, `or` or `)`"),
            }
        }
        symbol(input, ')')?;
        self.depth = self.depth.saturating_sub(1);
        Ok(parts)
    }

    /// A leaf whose name was read.
    fn leaf(&mut self, input: &mut Input<'_>, name: AttributeName, at: usize) -> Parsed<Part> {
        let condition = match opt(operator).parse_next(input)? {
            None => {
                self.schema.check_plain(name.as_str()).or_else(|fault| wrong(at, fault))?;
                Condition::Plain(name)
            }
            Some(operator) => {
                let kind = self.schema.kind_of(name.as_str()).or_else(|fault| wrong(at, fault))?;
                let (constant, constant_at) = value(input, kind)?;
                let comparison = Comparison::new(name, kind, operator, constant);
                Condition::Compare(comparison.or_else(|fault| wrong(constant_at, fault))?)
            }
        };
        let node = self.builder.leaf(condition).or_else(|fault| wrong(at, fault))?;
        Ok(Part { node, at })
    }

    /// What a keyword joins: a gate, or, where there is no keyword, what stands there.
    fn joined(&mut self, threshold: usize, parts: Vec<Part>) -> Parsed<Part> {
        match *parts.as_slice() {
            [part] => Ok(part),
            [first, ..] => self.gate(threshold, &parts, first.at),
            [] => wrong(0, Fault::Empty),
        }
    }

    fn gate(&mut self, threshold: usize, parts: &[Part], at: usize) -> Parsed<Part> {
        let children: Vec<usize> = parts.iter().map(|part| part.node).collect();
        if let Some(repeated) = self.builder.repeated(&children).and_then(|place| parts.get(place)) {
            return wrong(repeated.at, Fault::RepeatedLeaf);
        }
        let node = self.builder.gate(threshold, children).or_else(|fault| wrong(at, fault))?;
        Ok(Part { node, at })
    }
}
