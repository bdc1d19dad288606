//! The wraps of an epoch with the hashes of their nodes: what the leader makes, and from which it, or anybody
//! who passes wraps on, cuts parts that verify alone (§8.3).

use alloc::vec::Vec;
use core::ops::Range;

use quiver_crypto::{Digest, Hasher};

use super::branch::NodeChange;
use super::delta::{
    Delta, Flags, STRING_LEN, String32, begin_node, begin_root, first_byte, write_fork, write_node,
};
use super::hierarchy::Wrapped;
use super::node::{KeyTreeNode, MAX_HEIGHT, Touched};
use crate::slots::Slot;

/// Bytes of a node and its wraps and hashes in a part, at most.
const NODE_LEN: usize = 2 * STRING_LEN + 2;

/// All wraps of an epoch. Contains nothing secret.
#[derive(Clone, Debug)]
pub struct WrapTree {
    height: u8,
    root: NodeChange,
    /// Nodes from the root down, the left one first: at most 2^20.
    nodes: Vec<WrapNode>,
    wraps: Vec<String32>,
    digest: Digest,
}

/// A node at or beneath which something changes, and its children's wraps.
#[derive(Clone, Debug)]
struct WrapNode {
    node: KeyTreeNode,
    flags: Flags,
    /// Number of nodes before the first that is not beneath it.
    end: u32,
    /// Number of wraps before its own.
    first: u32,
    /// Number of wraps beneath it and its own.
    len: u32,
    /// M, if its parent forks.
    digest: Digest,
}

impl WrapNode {
    /// The wraps of its children, of all.
    fn wraps<'a>(&self, all: &'a [String32]) -> &'a [String32] {
        let first = self.first as usize;
        all.get(first..first + self.flags.own()).unwrap_or_default()
    }

    const fn has_child(&self, side: usize) -> bool {
        self.node.level > 1 && self.flags.child(side).any()
    }
}

impl WrapTree {
    pub(super) const fn new(height: u8, root: NodeChange) -> Self {
        Self { height, root, nodes: Vec::new(), wraps: Vec::new(), digest: [0; 32] }
    }

    /// The wraps of an epoch, which come in the order level, index, child.
    pub(crate) fn pack(touched: &Touched, wraps: &[Wrapped<String32>]) -> Self {
        let root = KeyTreeNode { level: touched.height(), index: 0 };
        let mut tree = Self::new(root.level, touched.change(root));
        // Of each level there is one next wrap, because nodes are visited from left to right.
        let mut rest: [&[Wrapped<String32>]; MAX_HEIGHT as usize + 1] = [&[]; _];
        for level in wraps.chunk_by(|a, b| a.parent.level == b.parent.level) {
            let place = level.first().and_then(|first| rest.get_mut(usize::from(first.parent.level)));
            if let Some(place) = place {
                *place = level;
            }
        }
        let mut pending = alloc::vec![root];
        while let Some(node) = pending.pop() {
            let children = node.children().map(|child| {
                let rest = rest.get_mut(usize::from(node.level));
                let wrap = rest.and_then(|rest| {
                    let (first, others) = rest.split_first()?;
                    ((first.parent, first.child) == (node, child)).then(|| {
                        *rest = others;
                        first.wrap
                    })
                });
                let silent = child.level > 0 && touched.is_new(child);
                (child, if silent { NodeChange::default() } else { touched.change(child) }, wrap)
            });
            let flags = Flags::new(children.map(|(_, change, wrap)| (change, wrap.is_some())));
            tree.push(node, flags, children.map(|(_, _, wrap)| wrap));
            for (child, change, _) in children.into_iter().rev() {
                if node.level > 1 && change.any() {
                    pending.push(child);
                }
            }
        }
        tree.measure();
        tree.drop_empty();
        tree.finish();
        tree
    }

    pub(super) fn push(&mut self, node: KeyTreeNode, flags: Flags, wraps: [Option<String32>; 2]) {
        let first = self.wraps.len() as u32;
        self.wraps.extend(wraps.into_iter().flatten());
        self.nodes.push(WrapNode { node, flags, end: 0, first, len: 0, digest: [0; 32] });
    }

    /// Drops subtrees in which no member remains: they have no wraps, and no newcomer.
    fn drop_empty(&mut self) {
        let mut kept = Vec::with_capacity(self.nodes.len());
        let mut pending = alloc::vec![0];
        while let Some(place) = pending.pop() {
            let Some(mut node) = self.nodes.get(place).cloned() else { continue };
            let mut children = [0, 1].map(|side| (node.flags.child(side), node.flags.wraps(side)));
            let mut at = place + 1;
            let mut places = [None; 2];
            for (side, ((change, _), place)) in children.iter_mut().zip(&mut places).enumerate() {
                let Some(child) = self.nodes.get(at).filter(|_| node.has_child(side)) else { continue };
                change.refreshed &= change.added || child.len > 0;
                *place = change.any().then_some(at);
                at = child.end as usize;
            }
            pending.extend(places.into_iter().rev().flatten());
            node.flags = Flags::new(children);
            kept.push(node);
        }
        self.nodes = kept;
    }

    /// Works out what is beneath each node, from the last one on.
    fn measure(&mut self) {
        for place in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(place) else { return };
            let (mut end, mut len) = (place + 1, node.flags.own() as u32);
            for _ in 0..node.flags.beneath(node.node) {
                if let Some(child) = self.nodes.get(end) {
                    (end, len) = (child.end as usize, len + child.len);
                }
            }
            if let Some(node) = self.nodes.get_mut(place) {
                (node.end, node.len) = (end as u32, len);
            }
        }
    }

    /// Hashes everything, too: children before their parents.
    pub(super) fn finish(&mut self) {
        self.measure();
        for place in (0..self.nodes.len()).rev() {
            for child in self.fork(place).into_iter().flatten() {
                let Some(node) = self.nodes.get(child) else { continue };
                let digest = self.chain_hash(begin_node(node.node), child);
                if let Some(node) = self.nodes.get_mut(child) {
                    node.digest = digest;
                }
            }
        }
        self.digest = self.chain_hash(begin_root(first_byte(self.height, self.root, false)), 0);
    }

    /// The places of a node's children if both change.
    fn fork(&self, place: usize) -> Option<[usize; 2]> {
        self.nodes.get(place).filter(|node| node.flags.forks(node.node))?;
        let right = self.nodes.get(place + 1)?.end as usize;
        Some([place + 1, right])
    }

    /// Hashes nodes from one on down, as far as one child alone changes, and the hashes of both where the way
    /// forks.
    fn chain_hash(&self, begun: Hasher, from: usize) -> Digest {
        let (mut hash, mut place) = (begun, from);
        while let Some(node) = self.nodes.get(place) {
            write_node(&mut hash, node.flags, node.wraps(&self.wraps));
            if let Some(children) = self.fork(place) {
                let digests = children.map(|child| self.nodes.get(child).map(|child| child.digest));
                write_fork(&mut hash, &digests);
            }
            if node.flags.beneath(node.node) != 1 {
                break;
            }
            place += 1;
        }
        hash.finish()
    }

    /// entries_root.
    #[must_use]
    pub const fn root(&self) -> Digest {
        self.digest
    }

    /// All wraps.
    #[must_use]
    pub fn whole(&self) -> Delta {
        self.cut(&|_| true)
    }

    /// Part of the wraps that the holder of a slot needs: those of the nodes above it, and the hashes beside
    /// them. At most 66 bytes for each level of the tree, and one.
    #[must_use]
    pub fn branch(&self, slot: Slot) -> Delta {
        self.cut(&|node| KeyTreeNode::above(slot, node.level) == node)
    }

    /// All wraps in parts of at most `most` bytes, or of one member if that takes more, each with the slots whose
    /// [branches](Self::branch) are in it, in ascending order and without gaps. One part if they fit.
    #[must_use]
    pub fn chunks(&self, most: usize) -> Vec<(Range<Slot>, Delta)> {
        let (whole, end) = (self.whole(), 1 << self.height);
        if whole.as_bytes().len() <= most {
            return alloc::vec![(0..end, whole)];
        }
        // The first and the last slot of a part each need the nodes above them.
        let room = most.saturating_sub(2 * NODE_LEN * usize::from(self.height) + 1);
        let mut parts = Vec::new();
        let (mut from, mut size) = (0, 0);
        // Small pieces fill the parts.
        for (start, more) in self.subtrees(room / 8) {
            if size + more > room && start > from {
                parts.push((from..start, self.between(from, start)));
                (from, size) = (start, 0);
            }
            size += more;
        }
        parts.push((from..end, self.between(from, end)));
        parts
    }

    /// Subtrees of at most `room` bytes, from left to right: the first slot of each and its bytes, with those of
    /// the nodes above it that come before it.
    fn subtrees(&self, room: usize) -> Vec<(Slot, usize)> {
        let mut subtrees = Vec::new();
        let (mut place, mut above) = (0, 0);
        while let Some(node) = self.nodes.get(place) {
            let end = node.end as usize;
            // Ten bits for a node in a part.
            let size = (end - place).div_ceil(4) * 5 + node.len as usize * STRING_LEN;
            if size <= room || node.node.level == 1 {
                subtrees.push((node.node.index << node.node.level, above + size));
                (place, above) = (end, 0);
            } else {
                (place, above) = (place + 1, above + NODE_LEN);
            }
        }
        subtrees
    }

    /// The part for the slots from one up to another.
    fn between(&self, from: Slot, to: Slot) -> Delta {
        self.cut(&|node| {
            let first = node.index << node.level;
            first < to && from < first + (1 << node.level)
        })
    }

    /// The part with the nodes that are to be kept, and with the hashes of those beneath them that are not.
    fn cut(&self, keep: &dyn Fn(KeyTreeNode) -> bool) -> Delta {
        let mut writer = WrapTreeWriter::default();
        let mut nodes = Vec::new();
        let mut part = false;
        let mut pending = alloc::vec![0];
        while let Some(place) = pending.pop() {
            let Some(node) = self.nodes.get(place) else { continue };
            // §8.3: where one child alone changes it is always there.
            let one = (node.flags.beneath(node.node) == 1).then_some(place + 1);
            let fork = self.fork(place).map(|children| {
                children.map(|child| (child, self.nodes.get(child).is_some_and(|child| keep(child.node))))
            });
            part |= fork.iter().flatten().any(|(_, kept)| !kept);
            let kept = fork.into_iter().flatten().rev().filter(|(_, kept)| *kept);
            pending.extend(one.into_iter().chain(kept.map(|(child, _)| child)));
            nodes.push((node, fork));
        }
        for (node, fork) in nodes {
            writer.flags(node.flags);
            writer.strings.extend(node.wraps(&self.wraps).as_flattened());
            for (place, kept) in fork.into_iter().flatten() {
                if part {
                    writer.bit(kept);
                }
                if let Some(child) = self.nodes.get(place).filter(|_| !kept) {
                    writer.strings.extend(child.digest);
                }
            }
        }
        writer.finish(first_byte(self.height, self.root, part))
    }
}

/// Writes what nodes say, and apart from it their wraps and hashes.
#[derive(Default)]
struct WrapTreeWriter {
    bits: Vec<u8>,
    bit: usize,
    strings: Vec<u8>,
}

impl WrapTreeWriter {
    fn bit(&mut self, bit: bool) {
        if self.bit.is_multiple_of(8) {
            self.bits.push(0);
        }
        if let Some(last) = self.bits.last_mut() {
            *last |= u8::from(bit) << (self.bit % 8);
        }
        self.bit += 1;
    }

    fn flags(&mut self, flags: Flags) {
        let (code, all) = flags.code();
        (0..2).for_each(|place| self.bit(code >> place & 1 > 0));
        if !all {
            (0..6).for_each(|place| self.bit(flags.0 >> place & 1 > 0));
        }
    }

    fn finish(self, first: u8) -> Delta {
        let mut bytes = Vec::with_capacity(1 + self.bits.len() + self.strings.len());
        bytes.push(first);
        bytes.extend(&self.bits);
        let strings = bytes.len();
        bytes.extend(&self.strings);
        Delta::from_parts(bytes, strings)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::super::algebra::Rules;
    use super::*;
    use crate::Error;
    use crate::slots::SlotSet;

    /// Wraps of an epoch in a tree in which all slots but those removed and added are held.
    fn packed(height: u8, removed: &SlotSet, added: &SlotSet) -> WrapTree {
        let touched = Touched::new(height, height, removed, added, Rules::ALL);
        packed_for(&touched, &|slot| !removed.contains(slot) && !added.contains(slot))
    }

    /// Wraps of an epoch in a tree for those who remain in it.
    fn packed_for(touched: &Touched, remains_in: &dyn Fn(Slot) -> bool) -> WrapTree {
        let height = touched.height();
        let remains = |node: KeyTreeNode| {
            let first = node.index << node.level;
            (first..first + (1 << node.level)).any(remains_in)
        };
        let mut wraps = Vec::new();
        for parent in (1..=height).flat_map(|level| {
            touched.refreshed(level).iter().map(move |index| KeyTreeNode { level, index }).collect::<Vec<_>>()
        }) {
            let mut chained = None;
            for child in parent.children().into_iter().filter(|child| remains(*child)) {
                if chained.is_none() && child.level > 0 && touched.refreshes(child) {
                    chained = Some(child);
                    continue;
                }
                let number = (parent.level, parent.index, child.index);
                let wrap = Hasher::new("wrap").fixed(format!("{number:?}").as_bytes()).finish();
                wraps.push(Wrapped { parent, child, wrap });
            }
        }
        WrapTree::pack(touched, &wraps)
    }

    /// The first slot, and the end of each part but the last.
    fn ends_before(parts: &[(Range<Slot>, Delta)]) -> impl Iterator<Item = Slot> {
        let ends = parts.iter().map(|(slots, _)| slots.end);
        core::iter::once(0).chain(ends).take(parts.len())
    }

    fn decoded(delta: &Delta) -> Delta {
        Delta::from_bytes(delta.encode()).unwrap()
    }

    #[test]
    fn a_part_of_all_is_no_part() {
        let tree = packed(4, &SlotSet::from_iter([5]), &SlotSet::new());
        assert!(!tree.whole().is_part());
        // One leaves: the way to it forks nowhere.
        assert_eq!(tree.branch(8), tree.whole());
        let tree = packed(4, &SlotSet::from_iter([5, 12]), &SlotSet::new());
        assert!(tree.branch(8).is_part());
        assert_eq!(tree.branch(8).to_tree().map(drop), Err(Error::Malformed("wraps")));
        assert_eq!(tree.chunks(Delta::MAX_LEN), [(0..16, tree.whole())]);
    }

    proptest! {
        #[test]
        fn every_part_verifies_alone_and_each_slot_is_in_one(
            removed in proptest::collection::btree_set(0..256_u32, 0..60),
            added in proptest::collection::btree_set(0..256_u32, 0..20),
            most in 1600..6000_usize,
        ) {
            let (removed, added): (SlotSet, SlotSet) = (removed.into_iter().collect(), added.into_iter().collect());
            let tree = packed(8, &removed, &added);
            let whole = decoded(&tree.whole());
            prop_assert_eq!(&whole, &tree.whole());
            prop_assert_eq!(whole.root(), tree.root());
            prop_assert_eq!(whole.to_tree().unwrap().root(), tree.root());
            let parts = tree.chunks(most);
            prop_assert!(parts.iter().map(|(slots, _)| slots.start).eq(ends_before(&parts)));
            prop_assert!(parts.iter().all(|(_, part)| part.is_part() == (parts.len() > 1)));
            for (_, part) in &parts {
                prop_assert!(part.as_bytes().len() <= most);
                prop_assert_eq!(decoded(part).root(), tree.root());
            }
            for slot in 0..256 {
                let branch = decoded(&tree.branch(slot));
                prop_assert_eq!(branch.root(), tree.root());
                prop_assert!(branch.as_bytes().len() <= 8 * (NODE_LEN + 1) + 1);
                // Removed members are shown it, and nobody else.
                let changes = (removed.contains(slot), added.contains(slot));
                if changes != (false, true) {
                    prop_assert_eq!(branch.keeps(slot), Some(!changes.0));
                    prop_assert_eq!(whole.keeps(slot), Some(!changes.0));
                }
                let expected = whole.branch(slot);
                let same = |delta: &Delta| delta.branch(slot).map(|branch| format!("{branch:?}"));
                let expected = expected.map(|branch| format!("{branch:?}"));
                prop_assert_eq!(same(&branch), expected.clone());
                let covering = parts.iter().filter(|(_, part)| part.covers(slot));
                prop_assert!(covering.clone().any(|(slots, _)| slots.contains(&slot)));
                prop_assert!(covering.map(|(_, part)| same(part)).all(|same| same == expected));
            }
        }

        #[test]
        fn newcomers_that_follow_have_wraps_from_their_leaves_to_the_root(
            before in 5..=8_u8,
            members in proptest::collection::btree_set(0..256_u32, 1..100),
            removed in proptest::collection::btree_set(0..256_u32, 0..20),
            added in proptest::collection::btree_set(0..256_u32, 1..60),
            most in 1600..6000_usize,
        ) {
            let members: SlotSet = members.into_iter().filter(|slot| slot >> before == 0).collect();
            let removed: SlotSet = removed.into_iter().filter(|slot| members.contains(*slot)).collect();
            let added: SlotSet = added.into_iter().filter(|slot| !members.contains(*slot)).collect();
            let touched = Touched::joining(before, 8, &removed, &added);
            let remains = |slot| members.contains(slot) && !removed.contains(slot) || added.contains(slot);
            let tree = packed_for(&touched, &remains);
            prop_assert_eq!(decoded(&tree.whole()).root(), tree.root());
            let parts = tree.chunks(most);
            for slot in added.iter() {
                let (_, part) = parts.iter().find(|(slots, _)| slots.contains(&slot)).unwrap();
                let branch = part.branch(slot).unwrap();
                prop_assert!(branch.remains() && branch.wrap(0).is_some());
                prop_assert!((1..=8).all(|level| branch.change(level).refreshed));
                prop_assert!((0..=8).all(|level| !branch.change(level).added));
            }
            // Whether a member stays is shown as without joins.
            for slot in members.iter() {
                prop_assert_eq!(tree.branch(slot).keeps(slot), Some(!removed.contains(slot)));
            }
        }

        #[test]
        fn no_other_bytes_have_the_same_root(
            removed in proptest::collection::btree_set(0..64_u32, 1..9),
            slot in 0..64_u32,
            place: usize,
            bit in 0..8_u8,
        ) {
            let tree = packed(6, &removed.into_iter().collect(), &SlotSet::new());
            for delta in [tree.whole(), tree.branch(slot)] {
                let mut bytes = delta.encode();
                let place = place % bytes.len();
                bytes[place] ^= 1 << bit;
                prop_assert!(Delta::from_bytes(bytes).map_or(true, |forged| forged.root() != tree.root()));
            }
        }

        #[test]
        fn nothing_from_outside_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), slot: u32) {
            if let Ok(delta) = Delta::from_bytes(bytes) {
                let _ = (delta.root(), delta.branch(slot).map(drop), delta.to_tree().map(drop));
            }
        }
    }

    #[test]
    fn wraps_from_outside_are_as_long_as_the_bound_says_and_no_longer() {
        let decoded = |length: usize| Delta::from_bytes(alloc::vec![0; length]).map(drop);
        assert_eq!(Delta::MAX_LEN, 393_216);
        assert_eq!(decoded(393_216), Err(Error::Malformed("wraps")));
        assert_eq!(decoded(393_217), Err(Error::TooLong { what: "wraps", limit: 393_216 }));
    }
}
