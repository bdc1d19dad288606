//! Symbolic tests of the tree: what an adversary derives from the keys it has (§8.6).
//!
//! The code under test is the one that runs: [`Hierarchy`], [`Path`] and [`Touched`] over another
//! [`Algebra`]. A key is a name and a number of steps; a wrap is a pair of keys. An adversary that has some
//! keys has all that follow by steps, and whatever was ever sent under any of these: [`Closure`], which knows
//! nothing of trees, works that out.

mod symbols;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use self::symbols::{
    Closure, FRESH_PER_TERM, NONE, REFRESH_ABOVE_LEAVES, SEEDS_APART, SEEDS_ERASED, STEP_AFTER_USE,
    STEP_ON_JOIN, STEP_PER_EPOCH, Symbol, SymbolChain, Symbolic,
};
use super::algebra::{Algebra, LeafKeyChain};
use super::branch::Branch;
use super::hierarchy::{Hierarchy, Wrapped};
use super::node::{KeyTreeNode, Touched, height_for};
use super::path::Path;
use crate::slots::{Slot, SlotSet};

/// Histories that must leak nothing.
const HISTORIES: u64 = 1500;
/// Epochs of a history.
const EPOCHS: usize = 14;

/// A drone's place in the group.
struct SymbolicMember<const D: u8> {
    id: u32,
    leaf: SymbolChain,
    /// K_g of the newest epoch that it accepted.
    newest: Option<Symbol>,
    /// Path of the member; `None` while it has missed an epoch.
    path: Option<Path<Symbolic<D>>>,
    /// Seeds of openings that it did not erase, if that rule is dropped.
    seeds: Vec<Symbol>,
}

/// Source of an adversary's forbidden key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Leak {
    /// All non-members together, with all they ever held.
    Coalition,
    /// A captured member's memory, and everything recorded.
    CapturedMember,
    /// The captured leader's memory, and everything recorded.
    CapturedLeader,
}

/// A group, and everything that was ever sent and held.
struct SymbolicGroup<const D: u8> {
    rng: ChaCha20Rng,
    names: u32,
    ids: u32,
    nodes: Hierarchy<Symbolic<D>>,
    members: BTreeMap<Slot, SymbolicMember<D>>,
    sent: Vec<(Symbol, Symbol)>,
    /// The current epoch's, in its term.
    counter: u32,
    held: BTreeMap<u32, BTreeSet<Symbol>>,
    /// K_g of every epoch, and who was a member.
    epochs: Vec<(Symbol, BTreeSet<u32>)>,
    /// Seeds of openings that the leader did not erase, if that rule is dropped.
    seeds: Vec<Symbol>,
}

impl<const D: u8> SymbolicGroup<D> {
    /// A group whose first term has opened with nobody.
    fn new(seed: u64) -> Self {
        let mut nodes = Hierarchy::new(&[]);
        let (touched, none) = (Touched::opening(1, &SlotSet::new()), SlotSet::new());
        nodes.rekey(&touched, &none, &[], &[0; 32], &mut |_| unreachable!("nobody has a path yet"));
        Self {
            rng: ChaCha20Rng::seed_from_u64(seed),
            names: 0,
            ids: 0,
            nodes,
            members: BTreeMap::new(),
            sent: Vec::new(),
            counter: 1,
            held: BTreeMap::new(),
            epochs: Vec::new(),
            seeds: Vec::new(),
        }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound
    }

    fn fresh(&mut self) -> Symbol {
        self.names += 1;
        Symbol::fresh(self.names)
    }

    /// A chain that starts in this epoch.
    fn fresh_chain(&mut self) -> SymbolChain {
        SymbolChain(Symbol { steps: self.counter, ..self.fresh() })
    }

    /// A term opens, without those that are absent: fresh chains for all, wraps above them, and K_g under each. Some
    /// follow by the wraps, others by their entry, and most of these get a path.
    fn open(&mut self) {
        self.some_leave();
        let slots: Vec<Slot> = self.members.keys().copied().collect();
        let height = slots.last().map_or(1, |slot| height_for(*slot));
        self.counter = 1;
        let leaves: Vec<_> = slots.iter().map(|slot| (*slot, self.fresh_chain())).collect();
        let touched = Touched::opening(height, &slots.iter().copied().collect());
        let former = core::mem::replace(&mut self.nodes, Hierarchy::new(&leaves));
        let names = &mut self.names;
        let wraps = self.nodes.rekey(&touched, &SlotSet::new(), &[], &[0; 32], &mut |_| {
            *names += 1;
            Symbol::fresh(*names)
        });
        self.sent.extend(wraps.iter().map(|wrapped| wrapped.wrap));
        if !Symbolic::<D>::FRESH_PER_TERM {
            // As if nodes kept their keys from one term to the next.
            let under = |wrapped: &Wrapped<_>| former.key(wrapped.child).copied();
            self.sent.extend(wraps.iter().filter_map(|wrapped| Some((under(wrapped)?, wrapped.wrap.1))));
        }
        let (key, _) = self.group_key(height);
        for (slot, leaf) in leaves {
            self.sent.push((leaf.0, key));
            let by_wraps = self.below(3) > 0;
            let member = self.members.get_mut(&slot).unwrap();
            (member.leaf, member.newest, member.path) = (leaf, Some(key), None);
            if by_wraps {
                self.follow_from_leaf(slot, &branch(slot, &touched, &wraps), key);
            } else {
                self.member_holds(slot, [key]);
            }
        }
        if !Symbolic::<D>::SEEDS_ERASED {
            let nodes = (1..=height)
                .flat_map(|level| touched.refreshed(level).iter().map(move |index| (level, index)));
            let keys = nodes.filter_map(|(level, index)| self.nodes.key(KeyTreeNode { level, index }));
            let seeds: Vec<_> = keys.map(|key: &Symbol| key.seed()).collect();
            self.seeds.extend(seeds);
        }
        self.end_epoch(key);
        self.send_paths(key, 3);
    }

    /// K_g, which is a function of the root's key, and the root's key none of it.
    fn group_key(&mut self, height: u8) -> (Symbol, Option<Symbol>) {
        let key = self.fresh();
        let root = self.nodes.key(KeyTreeNode { level: height, index: 0 }).copied();
        self.sent.extend(root.map(|root| (root, key)));
        (key, root)
    }

    /// An epoch with random leavers and newcomers, of which some members miss the wraps. In half of them newcomers
    /// follow by these.
    fn rekey(&mut self) {
        let removed = self.some_leave();
        let follow = self.below(2) == 0;
        self.rekey_without(removed, follow);
    }

    /// The same without these members. `follow`: newcomers follow by the wraps if they can.
    fn rekey_without(&mut self, removed: Vec<Slot>, follow: bool) {
        self.counter += 1;
        let added = self.some_join(&removed);
        let highest = self.members.keys().chain(added.iter()).max();
        let height = highest.map_or(1, |slot| height_for(*slot)).max(self.nodes.height());
        let removed: SlotSet = removed.into_iter().collect();
        let newcomers: Vec<_> = added.iter().map(|slot| (*slot, self.fresh_chain())).collect();
        let added: SlotSet = added.into_iter().collect();
        let rules = <Symbolic<D> as Algebra>::RULES;
        // No slot is freed and filled when newcomers follow by the wraps.
        let apart = !added.iter().any(|slot| removed.contains(slot));
        let follow = follow && !added.is_empty() && apart;
        let touched = if follow {
            Touched::joining(self.nodes.height(), height, &removed, &added)
        } else {
            Touched::new(self.nodes.height(), height, &removed, &added, rules)
        };
        let names = &mut self.names;
        let wraps = self.nodes.rekey(&touched, &removed, &newcomers, &[0; 32], &mut |_| {
            *names += 1;
            Symbol::fresh(*names)
        });
        self.sent.extend(wraps.iter().map(|wrapped| wrapped.wrap));
        let (key, root) = self.group_key(height);
        for slot in self.members.keys().copied().collect::<Vec<_>>() {
            let misses = self.below(5) == 0;
            let member = self.members.get_mut(&slot).unwrap();
            let path = member.path.take().filter(|_| !misses);
            let Some(path) = path else { continue };
            if rules.step_per_epoch {
                member.leaf.catch_up_with(self.counter.into());
            }
            let path = path.follow(&member.leaf, &branch(slot, &touched, &wraps), &[0; 32]).unwrap();
            assert_eq!(path.root().copied(), root, "a member that follows has the leader's root");
            (member.newest, member.path) = (Some(key), Some(path));
            self.member_holds(slot, [key]);
        }
        for (slot, leaf) in newcomers {
            self.ids += 1;
            let member = SymbolicMember { id: self.ids, leaf, newest: None, path: None, seeds: Vec::new() };
            self.members.insert(slot, member);
            // One in four misses the wraps, and is sent a path.
            if follow && self.below(4) > 0 {
                self.follow_from_leaf(slot, &branch(slot, &touched, &wraps), key);
            } else {
                self.send_path(slot, key);
            }
        }
        self.end_epoch(key);
        self.send_paths(key, 2);
    }

    /// A member that holds the key of its leaf alone follows by wraps.
    fn follow_from_leaf(&mut self, slot: Slot, branch: &Branch<'_, (Symbol, Symbol)>, key: Symbol) {
        let root = self.nodes.key(branch.node(branch.height())).copied();
        let member = self.members.get_mut(&slot).unwrap();
        let path = Path::new(Vec::new()).follow(&member.leaf, branch, &[0; 32]).unwrap();
        assert_eq!(path.root().copied(), root, "a member that follows has the leader's root");
        if !Symbolic::<D>::SEEDS_ERASED {
            member.seeds.extend(path.keys().iter().map(|key: &Symbol| key.seed()));
        }
        (member.newest, member.path) = (Some(key), Some(path));
        self.member_holds(slot, [key]);
    }

    fn some_leave(&mut self) -> Vec<Slot> {
        let count = [0, 0, 1, 1, 2, 4][self.below(6) as usize].min(self.members.len().saturating_sub(1));
        let mut removed = Vec::new();
        for _ in 0..count {
            let place = self.rng.next_u32() as usize % self.members.len();
            let slot = *self.members.keys().nth(place).unwrap();
            self.members.remove(&slot);
            removed.push(slot);
        }
        removed
    }

    /// Newcomers take free slots, not always the lowest, and often one that was freed with them.
    fn some_join(&mut self, freed: &[Slot]) -> Vec<Slot> {
        let count = [0, 0, 1, 1, 3][self.below(5) as usize];
        let mut added: Vec<Slot> = Vec::new();
        while added.len() < count {
            let free = |slot: &Slot| !self.members.contains_key(slot) && !added.contains(slot);
            let lowest = (0..).filter(free).take(3).collect::<Vec<_>>();
            let again = freed.iter().copied().find(free).filter(|_| self.rng.next_u32().is_multiple_of(2));
            let slot = again.unwrap_or_else(|| lowest[self.rng.next_u32() as usize % 3]);
            added.push(slot);
        }
        added.sort_unstable();
        added
    }

    /// Sends path messages to members without theirs, each omitted with a chance of 1 in `odds`; and
    /// sometimes one to a member that followed by the wraps before its answer arrived.
    fn send_paths(&mut self, key: Symbol, odds: u32) {
        for slot in self.members.keys().copied().collect::<Vec<_>>() {
            let lacks = self.members[&slot].path.is_none();
            if if lacks { self.below(odds) != 0 } else { self.below(5) == 0 } {
                self.send_path(slot, key);
            }
        }
    }

    fn send_path(&mut self, slot: Slot, key: Symbol) {
        let (leaf, keys) = self.nodes.leaf_and_path(slot).unwrap();
        let keys: Vec<Symbol> = keys.copied().collect();
        let under = leaf.0;
        self.sent.extend(keys.iter().chain([&key]).map(|key| (under, *key)));
        // One in four is lost on the way, recorded all the same. A member that holds the epoch needs none.
        let member = self.members.get_mut(&slot).unwrap();
        self.held.entry(member.id).or_default().insert(under);
        if self.rng.next_u32().is_multiple_of(4) || member.path.is_some() {
            return;
        }
        if <Symbolic<D> as Algebra>::RULES.step_per_epoch {
            member.leaf.catch_up_with(self.counter.into());
        }
        assert_eq!(member.leaf.0, under, "a member uses another key than the leader");
        (member.newest, member.path) = (Some(key), Some(Path::new(keys)));
        self.member_holds(slot, [key]);
    }

    /// Records the keys that a member holds, for the case that it turns against the group.
    fn member_holds(&mut self, slot: Slot, more: impl IntoIterator<Item = Symbol>) {
        let member = &self.members[&slot];
        let held = self.held.entry(member.id).or_default();
        held.extend(more);
        held.extend(state(member));
    }

    fn end_epoch(&mut self, key: Symbol) {
        self.epochs.push((key, self.members.values().map(|member| member.id).collect()));
    }

    /// Closure of some keys and of everything that was sent.
    fn closure(&self, keys: impl IntoIterator<Item = Symbol>) -> Closure {
        Closure::of(keys, &self.sent, <Symbolic<D> as Algebra>::RULES.seeds_apart)
    }

    /// Number of epochs that the members, together, can open: a search that finds nothing anywhere would
    /// prove nothing. A key that all of them missed is nobody's.
    fn readable(&self) -> usize {
        let opened = |(key, members): &&(Symbol, BTreeSet<u32>)| {
            let inside = self.held.iter().filter(|(id, _)| members.contains(id));
            self.closure(inside.flat_map(|(_, held)| held.iter().copied())).has(*key)
        };
        self.epochs.iter().filter(opened).count()
    }

    /// Every way in which a key came into the wrong hands.
    fn leaks(&self) -> BTreeSet<Leak> {
        let mut leaks = BTreeSet::new();
        for (key, members) in &self.epochs {
            let outside = self.held.iter().filter(|(id, _)| !members.contains(id));
            let coalition = self.closure(outside.flat_map(|(_, held)| held.iter().copied()));
            if coalition.has(*key) {
                leaks.insert(Leak::Coalition);
            }
        }
        let opens_before = |newest: Symbol, keys: Vec<Symbol>| {
            let known = self.closure(keys);
            self.epochs.iter().take_while(|(key, _)| *key != newest).any(|(key, _)| known.has(*key))
        };
        for member in self.members.values() {
            if member.newest.is_some_and(|newest| opens_before(newest, state(member))) {
                leaks.insert(Leak::CapturedMember);
            }
        }
        let leaders = self.members.keys().flat_map(|slot| {
            let path = (1..=self.nodes.height())
                .filter_map(|level| self.nodes.key(KeyTreeNode::above(*slot, level)));
            path.copied().chain(self.nodes.leaf(*slot).map(|leaf| leaf.0))
        });
        if opens_before(self.epochs.last().unwrap().0, leaders.chain(self.seeds.iter().copied()).collect()) {
            leaks.insert(Leak::CapturedLeader);
        }
        leaks
    }
}

/// Keys in a member's memory.
fn state<const D: u8>(member: &SymbolicMember<D>) -> Vec<Symbol> {
    let path = member.path.iter().flat_map(|path| path.keys().to_vec());
    path.chain([member.leaf.0]).chain(member.seeds.iter().copied()).collect()
}

/// Changes of the nodes above a leaf in an epoch.
fn branch<'a>(
    slot: Slot,
    touched: &Touched,
    wraps: &'a [Wrapped<(Symbol, Symbol)>],
) -> Branch<'a, (Symbol, Symbol)> {
    let mut branch = Branch::new(slot, touched.height());
    for level in 0..=touched.height() {
        let child = KeyTreeNode::above(slot, level);
        let wrapped = wraps.iter().find(|wrapped| wrapped.child == child);
        branch.set(level, touched.change(child), wrapped.map(|wrapped| &wrapped.wrap));
    }
    branch
}

/// A life of a group, one of some twelve epochs an opening.
fn history<const D: u8>(seed: u64) -> SymbolicGroup<D> {
    let mut group = SymbolicGroup::<D>::new(seed);
    group.rekey();
    for _ in 1..EPOCHS {
        if group.below(12) == 0 { group.open() } else { group.rekey() }
    }
    group
}

/// A life whose wraps are those of openings alone: within a term drones join, and nobody leaves.
fn history_of_openings<const D: u8>(seed: u64) -> SymbolicGroup<D> {
    let mut group = SymbolicGroup::<D>::new(seed);
    for _ in 0..EPOCHS {
        if group.below(3) == 0 && !group.members.is_empty() {
            group.open();
        } else {
            group.rekey_without(Vec::new(), false);
        }
    }
    group
}

/// A history in which drones join by wraps, and none leaves.
fn history_of_joins<const D: u8>(seed: u64) -> SymbolicGroup<D> {
    let mut group = SymbolicGroup::<D>::new(seed);
    (0..EPOCHS).for_each(|_| group.rekey_without(Vec::new(), true));
    group
}

fn leaks_of<const D: u8>(histories: u64) -> BTreeSet<Leak> {
    (0..histories).flat_map(|seed| history::<D>(seed).leaks()).collect()
}

fn leaks_of_openings<const D: u8>(histories: u64) -> BTreeSet<Leak> {
    (0..histories).flat_map(|seed| history_of_openings::<D>(seed).leaks()).collect()
}

fn leaks_of_joins<const D: u8>(histories: u64) -> BTreeSet<Leak> {
    (0..histories).flat_map(|seed| history_of_joins::<D>(seed).leaks()).collect()
}

/// Searches histories for leaks, and checks that the members can open most epochs.
fn find_none(history: fn(u64) -> SymbolicGroup<NONE>) {
    let mut readable = 0;
    for seed in 0..HISTORIES {
        let group = history(seed);
        assert_eq!(group.leaks(), BTreeSet::new(), "history {seed}");
        readable += group.readable();
    }
    let epochs = usize::try_from(HISTORIES).unwrap() * EPOCHS;
    assert!(readable * 10 > epochs * 9, "members opened {readable} of {epochs} epochs");
}

#[test]
fn no_history_gives_a_key_to_who_must_not_have_it() {
    find_none(history::<NONE>);
}

#[test]
fn no_history_of_openings_gives_a_key_to_who_must_not_have_it() {
    find_none(history_of_openings::<NONE>);
}

#[test]
fn no_history_of_joins_by_wraps_gives_a_key_to_who_must_not_have_it() {
    find_none(history_of_joins::<NONE>);
}

#[test]
fn a_join_by_wraps_leaks_if_keys_do_not_step_or_seeds_are_kept_or_follow_from_keys() {
    let captured = [Leak::CapturedMember, Leak::CapturedLeader];
    let all = |leaks: BTreeSet<Leak>| captured.iter().all(|leak| leaks.contains(leak));
    assert!(all(leaks_of_joins::<STEP_AFTER_USE>(100)));
    assert!(all(leaks_of_joins::<STEP_PER_EPOCH>(100)));
    assert!(leaks_of_joins::<SEEDS_APART>(100).contains(&Leak::CapturedMember));
    assert!(leaks_of_joins::<SEEDS_ERASED>(100).contains(&Leak::CapturedMember));
}

#[test]
fn without_a_step_after_use_a_captured_memory_opens_a_recorded_opening() {
    let leaks = leaks_of_openings::<STEP_AFTER_USE>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn without_a_step_per_epoch_a_captured_memory_opens_a_recorded_opening() {
    let leaks = leaks_of_openings::<STEP_PER_EPOCH>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn seeds_of_an_opening_that_followed_from_keys_would_lead_captured_memories_upwards() {
    let leaks = leaks_of_openings::<SEEDS_APART>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn seeds_of_an_opening_that_were_kept_would_lead_captured_memories_upwards() {
    let leaks = leaks_of_openings::<SEEDS_ERASED>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn an_opening_under_keys_of_the_term_before_would_be_read_by_who_is_absent() {
    let leaks = leaks_of_openings::<FRESH_PER_TERM>(100);
    assert!(leaks.contains(&Leak::Coalition), "{leaks:?}");
}

#[test]
fn without_a_step_after_use_a_captured_memory_opens_what_was_recorded() {
    let leaks = leaks_of::<STEP_AFTER_USE>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn without_a_step_per_epoch_a_captured_memory_opens_answers_that_nobody_needed() {
    let leaks = leaks_of::<STEP_PER_EPOCH>(100);
    assert!(leaks.contains(&Leak::CapturedMember) && leaks.contains(&Leak::CapturedLeader), "{leaks:?}");
}

#[test]
fn without_a_step_on_join_newcomers_read_what_was_before_them() {
    let leaks = leaks_of::<STEP_ON_JOIN>(100);
    assert!(leaks.contains(&Leak::Coalition), "{leaks:?}");
}

#[test]
fn without_a_refresh_above_its_leaf_a_leaver_reads_on() {
    let leaks = leaks_of::<REFRESH_ABOVE_LEAVES>(100);
    assert!(leaks.contains(&Leak::Coalition), "{leaks:?}");
}

#[test]
fn a_seed_that_followed_from_a_key_would_lead_captured_memories_upwards() {
    let leaks = leaks_of::<SEEDS_APART>(100);
    assert!(leaks.contains(&Leak::CapturedMember), "{leaks:?}");
}
