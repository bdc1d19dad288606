//! The wraps of an epoch with the hashes of their nodes: what the leader makes, and from which it, or anybody
//! who passes wraps on, cuts parts that verify alone (§8.3).

use alloc::vec::Vec;

use quiver_crypto::Digest;

use super::branch::Change;
use super::delta::{Delta, Flags, STRING_LEN, String32, first_byte, node_hash, root_of};
use super::hierarchy::Wrapped;
use super::node::{MAX_HEIGHT, Node, Touched};
use crate::slots::Slot;

/// Bytes of a node and its wraps and hashes in a part, at most.
const NODE_LEN: usize = 2 * STRING_LEN + 2;

/// All wraps of an epoch. Contains nothing secret.
#[derive(Clone, Debug)]
pub struct WrapTree {
    height: u8,
    root: Change,
    /// From the root down, the left one first.
    nodes: Vec<WrapNode>,
}

/// A node at or beneath which something changes, and its children's wraps.
#[derive(Clone, Debug)]
struct WrapNode {
    node: Node,
    flags: Flags,
    wraps: [Option<String32>; 2],
    digest: Digest,
    /// Number of nodes before the first that is not beneath it.
    end: usize,
    /// Number of wraps beneath it and its own.
    len: usize,
}

impl WrapNode {
    const fn has_child(&self, side: usize) -> bool {
        self.node.level > 1 && self.flags.child(side).any()
    }
}

impl WrapTree {
    pub(super) const fn new(height: u8, root: Change) -> Self {
        Self { height, root, nodes: Vec::new() }
    }

    /// The wraps of an epoch, which come in the order level, index, child.
    pub(crate) fn pack(touched: &Touched, wraps: &[Wrapped<String32>]) -> Self {
        let root = Node { level: touched.height(), index: 0 };
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
                (child, touched.change(child), wrap)
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

    pub(super) fn push(&mut self, node: Node, flags: Flags, wraps: [Option<String32>; 2]) {
        self.nodes.push(WrapNode { node, flags, wraps, digest: [0; 32], end: 0, len: 0 });
    }

    /// Leaves out what is beneath a node that nobody is beneath any more: it has no wraps, and no newcomer.
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
                at = child.end;
            }
            pending.extend(places.into_iter().rev().flatten());
            node.flags = Flags::new(children);
            kept.push(node);
        }
        self.nodes = kept;
    }

    /// Works out what is beneath each node, from the last one on.
    fn measure(&mut self) {
        self.from_last(|node, end, len, _| (node.end, node.len) = (end, len));
    }

    /// Hashes all nodes, too.
    pub(super) fn finish(&mut self) {
        self.from_last(|node, end, len, children| {
            let digest = node_hash(node.node, node.flags, &node.wraps, children);
            (node.end, node.len, node.digest) = (end, len, digest);
        });
    }

    /// Visits all nodes from the last one on, so children before their parents: with the place behind what is
    /// beneath it, the number of wraps there, and the hashes of the children that change.
    fn from_last(&mut self, visit: impl Fn(&mut WrapNode, usize, usize, &[Option<Digest>; 2])) {
        for place in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(place) else { return };
            let (mut end, mut len) = (place + 1, node.wraps.iter().flatten().count());
            let mut children = [None; 2];
            for (side, digest) in children.iter_mut().enumerate() {
                if let Some(child) = self.nodes.get(end).filter(|_| node.has_child(side)) {
                    (*digest, end, len) = (Some(child.digest), child.end, len + child.len);
                }
            }
            if let Some(node) = self.nodes.get_mut(place) {
                visit(node, end, len, &children);
            }
        }
    }

    /// entries_root.
    #[must_use]
    pub fn root(&self) -> Digest {
        let digest = self.nodes.first().map_or([0; 32], |root| root.digest);
        root_of(first_byte(self.height, self.root, false), &digest)
    }

    /// All wraps.
    #[must_use]
    pub fn whole(&self) -> Delta {
        self.cut(&|_| true)
    }

    /// What the holder of a slot needs: the wraps of the nodes above it, and the hashes beside them. At most
    /// 66 bytes for each level of the tree, and one.
    #[must_use]
    pub fn branch(&self, slot: Slot) -> Delta {
        self.cut(&|node| Node::above(slot, node.level) == node)
    }

    /// All wraps in parts of at most `most` bytes, or of one member if that takes more: each slot's
    /// [branch](Self::branch) is in one of them. One part if they fit.
    #[must_use]
    pub fn chunks(&self, most: usize) -> Vec<Delta> {
        let whole = self.whole();
        if whole.as_bytes().len() <= most {
            return alloc::vec![whole];
        }
        // The first and the last slot of a part each need the nodes above them.
        let room = most.saturating_sub(2 * NODE_LEN * usize::from(self.height) + 1);
        let mut parts = Vec::new();
        let (mut from, mut size) = (0, 0);
        for (start, more) in self.subtrees(room) {
            if size + more > room && start > from {
                parts.push(self.between(from, start));
                (from, size) = (start, 0);
            }
            size += more;
        }
        parts.push(self.between(from, 1 << self.height));
        parts
    }

    /// Subtrees of at most `room` bytes, as large as can be, from left to right: the first slot of each and
    /// its bytes.
    fn subtrees(&self, room: usize) -> Vec<(Slot, usize)> {
        let mut subtrees = Vec::new();
        let mut place = 0;
        while let Some(node) = self.nodes.get(place) {
            let size = (node.end - place) + node.len * STRING_LEN;
            let small = size <= room || node.node.level == 1;
            if small {
                subtrees.push((node.node.index << node.node.level, size));
            }
            place = if small { node.end } else { place + 1 };
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
    fn cut(&self, keep: &dyn Fn(Node) -> bool) -> Delta {
        let mut writer = Writer::default();
        let mut nodes = Vec::new();
        let mut part = false;
        let mut pending = alloc::vec![0];
        while let Some(place) = pending.pop() {
            let Some(node) = self.nodes.get(place) else { continue };
            let mut at = place + 1;
            let mut children = [None; 2];
            for (side, child) in children.iter_mut().enumerate() {
                if let Some(found) = self.nodes.get(at).filter(|_| node.has_child(side)) {
                    *child = Some((at, keep(found.node)));
                    at = found.end;
                }
            }
            part |= children.iter().flatten().any(|(_, kept)| !kept);
            let kept = children.iter().rev().flatten().filter(|(_, kept)| *kept);
            pending.extend(kept.map(|(place, _)| *place));
            nodes.push((node, children));
        }
        for (node, children) in nodes {
            writer.flags(node.flags);
            node.wraps.iter().flatten().for_each(|wrap| writer.strings.extend(wrap));
            for (place, kept) in children.into_iter().flatten() {
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
struct Writer {
    bits: Vec<u8>,
    bit: usize,
    strings: Vec<u8>,
}

impl Writer {
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
