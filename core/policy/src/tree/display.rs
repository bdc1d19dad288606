//! Display of access trees as policy text.

use alloc::vec;
use core::fmt;

use crate::{AccessTree, PolicyNode, ThresholdGate};

/// A part that is still to be written.
enum PendingPart<'a> {
    Node { number: usize, root: bool },
    Text(&'a str),
}

impl fmt::Display for AccessTree {
    /// Writes the tree in the policy language, on one line. Nested gates are always in parentheses, so that
    /// readers need no precedence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![PendingPart::Node { number: self.nodes().len().saturating_sub(1), root: true }];
        while let Some(part) = parts.pop() {
            match part {
                PendingPart::Text(text) => f.write_str(text)?,
                PendingPart::Node { number, root } => match self.nodes().get(number) {
                    Some(PolicyNode::Leaf(leaf)) => {
                        self.leaves().get(*leaf).map_or(Ok(()), |condition| condition.fmt(f))?;
                    }
                    Some(PolicyNode::Gate(gate)) => {
                        let (open, between, close) = punctuation(gate, root);
                        if between == ", " {
                            write!(f, "{} of ", gate.threshold())?;
                        }
                        f.write_str(open)?;
                        parts.push(PendingPart::Text(close));
                        for (place, &child) in gate.children().iter().enumerate().rev() {
                            parts.push(PendingPart::Node { number: child, root: false });
                            if place > 0 {
                                parts.push(PendingPart::Text(between));
                            }
                        }
                    }
                    None => {}
                },
            }
        }
        Ok(())
    }
}

/// Text before, between and behind the children of a gate.
const fn punctuation(gate: &ThresholdGate, root: bool) -> (&'static str, &'static str, &'static str) {
    let word = match gate.children() {
        [_] => None,
        _ if gate.is_and() => Some(" and "),
        _ if gate.is_or() => Some(" or "),
        _ => None,
    };
    match word {
        Some(word) if root => ("", word, ""),
        Some(word) => ("(", word, ")"),
        None => ("(", ", ", ")"),
    }
}
