//! Lowers comparisons to formulas over bits.
//!
//! x ≥ c examines the bits of x from the highest down to the lowest 1 of c. A bit where c has 1 must be 1
//! *and* the rest must compare; where c has 0, a 1 suffices *or* the rest must compare; at the lowest 1 of c,
//! a 1 is all it takes, since below it c has only zeros. Each bit that decides anything is looked at once,
//! and a formula needs a leaf for each, so no smaller one exists. x ≤ c is the same over the complements of
//! both. x = c takes every bit, x ≠ c any wrong one.

use alloc::vec::Vec;

use crate::arena::Arena;
use crate::attribute::bit_of;
use crate::{Attribute, Comparison, Condition, Operator, PolicyNode, ThresholdGate};

/// A comparison in the form that is lowered.
enum Form {
    /// Take the complement of both if `bit` is false; then x ≥ c, where c > 0.
    AtLeast { c: u64, bit: bool },
    /// Every bit as in c.
    Equal { c: u64 },
    /// Any bit not as in c.
    Unequal { c: u64 },
}

impl Form {
    /// A [`Comparison`] that is always true or always false does not exist, so that neither sum overflows.
    const fn of(comparison: &Comparison) -> Self {
        let (c, max) = (comparison.constant(), comparison.kind().max());
        match comparison.operator() {
            Operator::AtLeast => Self::AtLeast { c, bit: true },
            Operator::Above => Self::AtLeast { c: c.saturating_add(1), bit: true },
            Operator::AtMost => Self::AtLeast { c: max ^ c, bit: false },
            Operator::Below => Self::AtLeast { c: max ^ c.saturating_sub(1), bit: false },
            Operator::Equal => Self::Equal { c },
            Operator::Unequal => Self::Unequal { c },
        }
    }
}

/// Number of leaves of a condition in a formula.
pub(crate) fn leaves_of(condition: &Condition) -> usize {
    let Condition::Compare(comparison) = condition else { return 1 };
    let width = usize::from(comparison.kind().bits());
    match Form::of(comparison) {
        Form::AtLeast { c, .. } => width.saturating_sub(usize::from(trailing_zeros(c))),
        Form::Equal { .. } | Form::Unequal { .. } => width,
    }
}

/// The tree with its comparisons as formulas; `leaf` makes a leaf of an atom, from left to right. A gate with
/// one child is that child.
pub(super) fn lower<L>(tree: &Arena<Condition>, mut leaf: impl FnMut(Attribute) -> L) -> Arena<L> {
    let mut arena = Arena::new();
    // Of each node of the tree, the node in its place.
    let mut lowered: Vec<usize> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        let node = match node {
            PolicyNode::Leaf(number) => match tree.leaves().get(*number) {
                Some(Condition::Plain(name)) => arena.push_leaf(leaf(Attribute::Plain(name.clone()))),
                Some(Condition::Compare(comparison)) => compare(&mut arena, comparison, &mut leaf),
                None => continue,
            },
            PolicyNode::Gate(gate) => {
                let children: Vec<_> =
                    gate.children().iter().filter_map(|&child| lowered.get(child).copied()).collect();
                match *children.as_slice() {
                    [only] => only,
                    _ => arena.push_gate(gate.over(children)),
                }
            }
        };
        lowered.push(node);
    }
    arena
}

fn compare<L>(arena: &mut Arena<L>, comparison: &Comparison, leaf: &mut impl FnMut(Attribute) -> L) -> usize {
    let (name, kind) = (comparison.name(), comparison.kind());
    // Leaves for the bits as they are in `value`, the highest first, down to `lowest`.
    let mut leaves = |value: u64, lowest: u8| -> Vec<usize> {
        let count = usize::from(kind.bits().saturating_sub(lowest));
        Attribute::bits_of(name, kind, value).take(count).map(|atom| arena.push_leaf(leaf(atom))).collect()
    };
    match Form::of(comparison) {
        Form::Equal { c } => {
            let leaves = leaves(c, 0);
            all_or_any(arena, true, leaves)
        }
        Form::Unequal { c } => {
            let leaves = leaves(!c, 0);
            all_or_any(arena, false, leaves)
        }
        Form::AtLeast { c, bit } => {
            let leaves = leaves(if bit { u64::MAX } else { 0 }, trailing_zeros(c));
            let ones = (0..kind.bits()).rev().map(|index| bit_of(c, index));
            at_least(arena, ones.zip(leaves).collect())
        }
    }
}

/// The formula for x ≥ c over bits from the highest down to the lowest 1 of c, each with whether c has a 1
/// there. Neighbours of one sort share a gate.
fn at_least<L>(arena: &mut Arena<L>, mut bits: Vec<(bool, usize)>) -> usize {
    let mut rest = bits.pop().map_or(0, |(_, lowest)| lowest);
    while let Some(&(one, _)) = bits.last() {
        let start =
            bits.iter().rposition(|&(other, _)| other != one).map_or(0, |last| last.saturating_add(1));
        let run = bits.split_off(start).into_iter().map(|(_, node)| node);
        rest = all_or_any(arena, one, run.chain([rest]).collect());
    }
    rest
}

/// All of `children`, or any; a single child takes the place of the gate.
fn all_or_any<L>(arena: &mut Arena<L>, all: bool, children: Vec<usize>) -> usize {
    match *children.as_slice() {
        [only] => only,
        _ => arena.push_gate(if all { ThresholdGate::all(children) } else { ThresholdGate::any(children) }),
    }
}

/// Number of zeros of c below its lowest 1, which it has.
const fn trailing_zeros(c: u64) -> u8 {
    c.trailing_zeros() as u8
}
