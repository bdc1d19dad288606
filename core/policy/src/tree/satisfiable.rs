//! Finds comparisons of one integer that contradict each other: `altitude >= 100 and altitude <= 50`.

use alloc::collections::{BTreeMap, BTreeSet};

use super::AccessTree;
use crate::{AttributeName, Comparison, Condition, Fault, Operator, ThresholdGate};

/// Values that an integer can have where a node is satisfied: a range, without some values.
#[derive(Clone, Debug)]
struct Values {
    least: u64,
    most: u64,
    without: BTreeSet<u64>,
}

impl Values {
    fn of(comparison: &Comparison) -> Self {
        let (constant, max) = (comparison.constant(), comparison.kind().max());
        let (least, most) = match comparison.operator() {
            Operator::AtLeast => (constant, max),
            Operator::Above => (constant.saturating_add(1), max),
            Operator::AtMost => (0, constant),
            Operator::Below => (0, constant.saturating_sub(1)),
            Operator::Equal => (constant, constant),
            Operator::Unequal => (0, max),
        };
        let unequal = comparison.operator() == Operator::Unequal;
        Self { least, most, without: unequal.then_some(constant).into_iter().collect() }
    }

    /// Values of both.
    fn and(&mut self, other: &Self) {
        self.least = self.least.max(other.least);
        self.most = self.most.min(other.most);
        self.without.extend(&other.without);
    }

    /// A range with the values of either.
    fn or(&mut self, other: &Self) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.without.retain(|value| other.without.contains(value));
    }

    fn is_empty(&self) -> bool {
        let mut least = self.least;
        // Each step meets another of the values left out.
        while least <= self.most {
            if !self.without.contains(&least) {
                return false;
            }
            let Some(next) = least.checked_add(1) else { return true };
            least = next;
        }
        true
    }
}

/// Knowledge of integers where a node is satisfied.
type KnownValues<'t> = BTreeMap<&'t AttributeName, Values>;

/// The first integer of which no value can satisfy a gate.
pub(super) fn check(tree: &AccessTree) -> Result<(), Fault> {
    let mut contradiction = None;
    tree.0.fold(
        |_, condition| match condition {
            Condition::Plain(_) => KnownValues::new(),
            Condition::Compare(comparison) => {
                KnownValues::from([(comparison.name(), Values::of(comparison))])
            }
        },
        |gate, children| {
            let known = joined(gate, children);
            let empty = known.iter().find(|(_, values)| values.is_empty()).map(|(name, _)| *name);
            contradiction = contradiction.or(empty);
            known
        },
    );
    contradiction.map_or(Ok(()), |name| Err(Fault::Contradiction { name: name.as_str().into() }))
}

fn joined<'t>(gate: &ThresholdGate, children: &mut dyn Iterator<Item = &KnownValues<'t>>) -> KnownValues<'t> {
    let Some(first) = children.next() else { return KnownValues::new() };
    let mut known = first.clone();
    for child in children {
        if gate.is_and() {
            for (name, values) in child {
                known.entry(*name).and_modify(|kept| kept.and(values)).or_insert_with(|| values.clone());
            }
        } else {
            // Which of the children are satisfied is not known: what all of them say holds.
            known.retain(|name, kept| child.get(name).map(|values| kept.or(values)).is_some());
        }
    }
    known
}
