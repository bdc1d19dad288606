//! Symbols for keys, the algebra over them, and their derivation rules.

use std::collections::BTreeMap;

use super::super::algebra::{Algebra, Chain, Place, Rules};
use super::super::node::Node;

/// A key: which one, and how often it was stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Symbol {
    pub(super) name: u32,
    pub(super) steps: u32,
}

impl Symbol {
    pub(super) const fn stepped(self) -> Self {
        Self { steps: self.steps + 1, ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) struct SymbolChain(pub(super) Symbol);

impl Chain for SymbolChain {
    type Key = Symbol;

    fn key(&self) -> &Symbol {
        &self.0
    }

    fn catch_up_with(&mut self, counter: u64) {
        self.0.steps = self.0.steps.max(u32::try_from(counter).unwrap());
    }
}

/// The protocol keeps all its rules.
pub(super) const NONE: u8 = 0;
pub(super) const STEP_AFTER_USE: u8 = 1;
pub(super) const STEP_ON_JOIN: u8 = 2;
pub(super) const REFRESH_ABOVE_LEAVES: u8 = 3;
pub(super) const STEP_PER_EPOCH: u8 = 4;

/// Symbols, and the rule that is dropped.
pub(super) struct Symbolic<const DROPPED: u8>;

impl<const DROPPED: u8> Algebra for Symbolic<DROPPED> {
    type Key = Symbol;
    type Leaf = SymbolChain;
    type Wrap = (Symbol, Symbol);

    const RULES: Rules = Rules {
        step_after_use: DROPPED != STEP_AFTER_USE,
        step_per_epoch: DROPPED != STEP_PER_EPOCH,
        step_on_join: DROPPED != STEP_ON_JOIN,
        refresh_above_leaves: DROPPED != REFRESH_ABOVE_LEAVES,
    };

    fn wrap(_: &Place<'_>, under: &Symbol, key: &Symbol) -> ((Symbol, Symbol), Symbol) {
        ((*under, *key), under.stepped())
    }

    fn unwrap(place: &Place<'_>, under: &Symbol, wrap: &(Symbol, Symbol)) -> (Symbol, Symbol) {
        assert_eq!(wrap.0, *under, "a member uses another key than the leader at {place:?}");
        (wrap.1, under.stepped())
    }

    fn step(_: Node, key: &Symbol) -> Symbol {
        key.stepped()
    }
}

/// Knowledge of an adversary: the fewest steps of every key.
pub(super) struct Closure(BTreeMap<u32, u32>);

impl Closure {
    pub(super) fn of(keys: impl IntoIterator<Item = Symbol>, sent: &[(Symbol, Symbol)]) -> Self {
        let mut known = Self(BTreeMap::new());
        for key in keys {
            known.learns(key);
        }
        loop {
            let mut news = false;
            for (under, key) in sent {
                news |= known.has(*under) && known.learns(*key);
            }
            if !news {
                return known;
            }
        }
    }

    fn learns(&mut self, key: Symbol) -> bool {
        let news = !self.has(key);
        if news {
            self.0.insert(key.name, key.steps);
        }
        news
    }

    pub(super) fn has(&self, key: Symbol) -> bool {
        self.0.get(&key.name).is_some_and(|steps| *steps <= key.steps)
    }
}
