//! Symbols for keys, the algebra over them, and their derivation rules.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::algebra::{Algebra, LeafKeyChain, Rules, WrapPosition};
use super::super::node::KeyTreeNode;

/// A key or a seed: the random bytes it comes from, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Symbol {
    pub(super) name: u32,
    /// Number of nodes that a seed was raised.
    pub(super) raised: u8,
    /// True if it is the key that is made of the seed.
    pub(super) made: bool,
    /// Number of steps of the key.
    pub(super) steps: u32,
}

impl Symbol {
    pub(super) const fn fresh(name: u32) -> Self {
        Self { name, raised: 0, made: false, steps: 0 }
    }

    pub(super) const fn stepped(self) -> Self {
        Self { steps: self.steps + 1, ..self }
    }

    /// The seed that a node's key was made of.
    pub(super) const fn seed(self) -> Self {
        Self { made: false, steps: 0, ..self }
    }

    /// Returns true if another follows from it: seeds lead upwards and to keys, keys to steps and, unless
    /// seeds are apart from keys, to the seed above.
    fn leads_to(self, other: Self, seeds_apart: bool) -> bool {
        let seed = !self.made && self.steps == 0;
        self.name == other.name
            && (self.raised, self.made) == (other.raised, other.made)
            && self.steps <= other.steps
            || self.name == other.name
                && (seed && self.raised <= other.raised && (other.made || other.steps == 0)
                    || !seeds_apart && self.steps == 0 && self.raised < other.raised)
    }
}

#[derive(Clone, Debug)]
pub(super) struct SymbolChain(pub(super) Symbol);

impl LeafKeyChain for SymbolChain {
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
pub(super) const SEEDS_APART: u8 = 5;
/// Rules of openings, by the tests' own group: seeds are erased, and nodes' keys end with their term.
pub(super) const SEEDS_ERASED: u8 = 6;
pub(super) const FRESH_PER_TERM: u8 = 7;

/// Symbols, and the rule that is dropped.
pub(super) struct Symbolic<const DROPPED: u8>;

impl<const DROPPED: u8> Symbolic<DROPPED> {
    pub(super) const SEEDS_ERASED: bool = DROPPED != SEEDS_ERASED;
    pub(super) const FRESH_PER_TERM: bool = DROPPED != FRESH_PER_TERM;
}

impl<const DROPPED: u8> Algebra for Symbolic<DROPPED> {
    type Key = Symbol;
    type Seed = Symbol;
    type Leaf = SymbolChain;
    type Wrap = (Symbol, Symbol);

    const RULES: Rules = Rules {
        step_after_use: DROPPED != STEP_AFTER_USE,
        step_per_epoch: DROPPED != STEP_PER_EPOCH,
        step_on_join: DROPPED != STEP_ON_JOIN,
        refresh_above_leaves: DROPPED != REFRESH_ABOVE_LEAVES,
        seeds_apart: DROPPED != SEEDS_APART,
    };

    fn wrap(_: &WrapPosition<'_>, under: &Symbol, key: &Symbol) -> ((Symbol, Symbol), Symbol) {
        ((*under, *key), under.stepped())
    }

    fn unwrap(place: &WrapPosition<'_>, under: &Symbol, wrap: &(Symbol, Symbol)) -> (Symbol, Symbol) {
        assert_eq!(wrap.0, *under, "a member uses another key than the leader at {place:?}");
        (wrap.1, under.stepped())
    }

    fn seed(seed: &Symbol) -> Symbol {
        *seed
    }

    fn raise(_: KeyTreeNode, seed: &Symbol) -> Symbol {
        Symbol { raised: seed.raised + 1, made: false, ..*seed }
    }

    fn key_of(_: KeyTreeNode, seed: &Symbol) -> Symbol {
        Symbol { made: true, ..*seed }
    }

    fn step(_: KeyTreeNode, key: &Symbol) -> Symbol {
        key.stepped()
    }
}

/// Knowledge of an adversary: of all that comes from the same random bytes, what the rest follows from.
pub(super) struct Closure {
    known: BTreeMap<u32, Vec<Symbol>>,
    seeds_apart: bool,
}

impl Closure {
    pub(super) fn of(
        keys: impl IntoIterator<Item = Symbol>,
        sent: &[(Symbol, Symbol)],
        seeds_apart: bool,
    ) -> Self {
        let mut known = Self { known: BTreeMap::new(), seeds_apart };
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
            self.known.entry(key.name).or_default().push(key);
        }
        news
    }

    pub(super) fn has(&self, key: Symbol) -> bool {
        let related = self.known.get(&key.name);
        related.is_some_and(|known| known.iter().any(|known| known.leads_to(key, self.seeds_apart)))
    }
}
