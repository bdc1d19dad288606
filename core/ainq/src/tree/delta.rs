//! The wraps of an epoch, encoded, whole or in parts that verify alone: bound by the header (§8.3).
//!
//! Only nodes at or beneath which anything changes are written, from the root down. Each says of its children
//! what the epoch does to them and carries their wraps, so that nobody needs the sets of removed and added
//! slots to read them; a hash tree of the same form gives entries_root. Where both children of a node change, a
//! part may have a child's hash in its place.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

use super::branch::{Branch, NodeChange};
use super::node::{KeyTreeNode, MAX_HEIGHT};
use super::wrap_tree::WrapTree;
use crate::Error;
use crate::slots::Slot;

/// Bytes of a wrap, and of a hash.
pub(super) const STRING_LEN: usize = 32;

/// A wrap, or a hash.
pub(super) type String32 = [u8; STRING_LEN];

const MALFORMED: Error = Error::Malformed("wraps");

/// Bits of the first byte above the height.
const ROOT_REFRESHED: u8 = 1 << 5;
const ROOT_ADDED: u8 = 1 << 6;
const PART: u8 = 1 << 7;

/// The wraps of one epoch of a tree, or a part of them, bound to its header by entries_root. Received, it has
/// the form of wraps; whose they are shows when the root is compared with the header's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    bytes: Vec<u8>,
    /// Offset of the wraps and hashes.
    strings: usize,
}

impl Delta {
    /// Bytes a message's delta may have. An epoch with more wraps is sent in several
    /// [parts](WrapTree::chunks).
    pub const MAX_LEN: usize = 3 << 17;

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to be sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads the bytes of a message.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_LEN`](Self::MAX_LEN); [`Error::Malformed`] unless they have the
    /// one form that a set of wraps has.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_bytes(bytes.to_vec())
    }

    /// Decodes as [`decode`](Self::decode) does, without a copy.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        if bytes.len() > Self::MAX_LEN {
            return Err(Error::TooLong { what: "wraps", limit: Self::MAX_LEN });
        }
        let (first, rest) = bytes.split_first().ok_or(MALFORMED)?;
        if !(1..=MAX_HEIGHT).contains(&(first & !(PART | ROOT_ADDED | ROOT_REFRESHED))) {
            return Err(MALFORMED);
        }
        let mut nodes = Nodes::new(*first, rest);
        let (mut count, mut part) = (0, false);
        for node in nodes.by_ref() {
            let node = node?;
            count = node.strings + node.strings_len();
            part |= node.hashes > 0;
        }
        let shape = nodes.bit.div_ceil(8);
        // Bits behind the last node are zero, and a part lacks something: one set of wraps has one form.
        let padding = rest.get(nodes.bit / 8).map_or(0, |last| last >> (nodes.bit % 8));
        let padded = !nodes.bit.is_multiple_of(8) && padding > 0;
        if padded || part != nodes.part || rest.len() != shape + count * STRING_LEN {
            return Err(MALFORMED);
        }
        let strings = 1 + shape;
        Ok(Self { bytes, strings })
    }

    pub(super) const fn from_parts(bytes: Vec<u8>, strings: usize) -> Self {
        Self { bytes, strings }
    }

    /// Returns true if it is only a part of the epoch's wraps.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.first() & PART > 0
    }

    /// Height of the tree.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.first() & !(PART | ROOT_ADDED | ROOT_REFRESHED)
    }

    /// entries_root, which a header binds: the hash of all its nodes. A part has that of the whole.
    #[must_use]
    pub fn root(&self) -> Digest {
        let mut open = Vec::new();
        let (mut hash, mut begun) = (begin_root(self.first()), true);
        for shape in self.nodes().filter_map(Result::ok) {
            if !begun {
                hash = begin_node(shape.node);
            }
            let strings = self.strings_of(&shape);
            write_node(&mut hash, shape.flags, strings.wraps());
            begun = shape.flags.beneath(shape.node) == 1;
            if begun {
                continue;
            }
            if shape.flags.forks(shape.node) {
                open.push(Fork { hash: hash.clone(), children: strings.hashes() });
            } else {
                let digest = hash.clone().finish();
                if open.is_empty() {
                    return digest;
                }
                take(&mut open, digest);
            }
            // Forks whose hashes are there.
            while let Some(mut fork) = open.pop_if(|fork| fork.children.iter().all(Option::is_some)) {
                write_fork(&mut fork.hash, &fork.children);
                let digest = fork.hash.finish();
                if open.is_empty() {
                    return digest;
                }
                take(&mut open, digest);
            }
        }
        // Not of wraps that were decoded: their nodes are whole.
        [0; 32]
    }

    /// Changes of the nodes above a leaf in the epoch.
    ///
    /// # Errors
    /// [`Error::MissingEntry`] if this is a part that does not have them.
    pub(crate) fn branch(&self, slot: Slot) -> Result<Branch<'_, String32>, Error> {
        let height = self.height();
        if slot >> height > 0 {
            return Err(Error::MissingEntry);
        }
        let mut branch = Branch::new(slot, height);
        branch.set(height, root_change(self.first()), None);
        let mut expected = Some(branch.node(height));
        for shape in self.nodes() {
            let shape = shape?;
            if expected != Some(shape.node) {
                continue;
            }
            let level = shape.node.level - 1;
            let child = branch.node(level);
            let side = (child.index & 1) as usize;
            let change = shape.child(side);
            let wrap = self.strings_of(&shape).wrap(side);
            branch.set(level, change, wrap);
            if level == 0 || !change.any() {
                return Ok(branch);
            }
            expected = shape.given(side).then_some(child);
        }
        Err(Error::MissingEntry)
    }

    /// Returns true if it has what the member in a slot needs.
    #[must_use]
    pub fn covers(&self, slot: Slot) -> bool {
        self.keeps(slot).is_some()
    }

    /// Tells if the holder of a slot before the epoch stays in the group: of the nodes above the leaf the
    /// lowest in R has a wrap for what is beneath, or none is in R. `None` if it does not
    /// [cover](Self::covers) the slot. A proof if its [root](Self::root) is the header's.
    #[must_use]
    #[inline(never)]
    pub fn keeps(&self, slot: Slot) -> Option<bool> {
        self.branch(slot).ok().map(|branch| branch.remains())
    }

    /// All of it with the hashes of its nodes, from which parts are cut.
    ///
    /// # Errors
    /// [`Error::Malformed`] for what is a part itself.
    pub fn to_tree(&self) -> Result<WrapTree, Error> {
        if self.is_part() {
            return Err(MALFORMED);
        }
        let mut tree = WrapTree::new(self.height(), root_change(self.first()));
        for shape in self.nodes() {
            let shape = shape?;
            let strings = self.strings_of(&shape);
            tree.push(shape.node, shape.flags, [strings.wrap(0).copied(), strings.wrap(1).copied()]);
        }
        tree.finish();
        Ok(tree)
    }

    fn first(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    fn nodes(&self) -> Nodes<'_> {
        Nodes::new(self.first(), self.bytes.get(1..self.strings).unwrap_or_default())
    }

    fn strings_of(&self, shape: &Shape) -> Strings<'_> {
        let all = self.bytes.get(self.strings..).unwrap_or_default().as_chunks().0;
        let own = all.get(shape.strings..shape.strings + shape.strings_len()).unwrap_or_default();
        Strings { flags: shape.flags, given: shape.given, own }
    }
}

const fn root_change(first: u8) -> NodeChange {
    NodeChange { refreshed: first & ROOT_REFRESHED > 0, added: first & ROOT_ADDED > 0 }
}

/// The first byte.
pub(super) const fn first_byte(height: u8, root: NodeChange, part: bool) -> u8 {
    let (refreshed, added) = (root.refreshed as u8, root.added as u8);
    height | refreshed << 5 | added << 6 | (part as u8) << 7
}

/// Flags of a node about its children: three bits for each, the left one's lowest: in R, in A, has a wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u8);

impl Flags {
    pub(super) fn new(children: [(NodeChange, bool); 2]) -> Self {
        let of = |(change, wraps): (NodeChange, bool)| {
            u8::from(change.refreshed) | u8::from(change.added) << 1 | u8::from(wraps) << 2
        };
        let [left, right] = children;
        Self(of(left) | of(right) << 3)
    }

    pub(super) const fn child(self, side: usize) -> NodeChange {
        let bits = self.0 >> (3 * side);
        NodeChange { refreshed: bits & 1 > 0, added: bits & 2 > 0 }
    }

    /// Returns true if anything changes at a child or beneath it.
    const fn changes(self, side: usize) -> bool {
        self.0 >> (3 * side) & 3 > 0
    }

    pub(super) const fn wraps(self, side: usize) -> bool {
        self.0 >> (3 * side) & 4 > 0
    }

    /// Number of wraps.
    pub(super) const fn own(self) -> usize {
        self.wraps(0) as usize + self.wraps(1) as usize
    }

    /// Flags of most nodes, by their code of two bits: the left child is refreshed and the right one wraps;
    /// the other way round; both are refreshed and the right one wraps. Six bits follow the fourth code.
    pub(super) const USUAL: [Self; 3] = [Self(0b100_001), Self(0b001_100), Self(0b101_001)];

    /// Code of the flags, and true if that says it all.
    pub(super) fn code(self) -> (u8, bool) {
        let usual = (0..).zip(Self::USUAL).find(|(_, usual)| *usual == self);
        (usual.map_or(3, |(code, _)| code), usual.is_some())
    }

    /// Children of a node that change and have nodes beneath them, a bit for each.
    const fn beneath_by_side(self, node: KeyTreeNode) -> u8 {
        if node.level > 1 { self.changes(0) as u8 | (self.changes(1) as u8) << 1 } else { 0 }
    }

    /// Number of children of a node that change and have nodes beneath them.
    pub(super) const fn beneath(self, node: KeyTreeNode) -> usize {
        self.beneath_by_side(node).count_ones() as usize
    }

    /// Returns true if both children of a node are inner nodes that change: each has a hash of its own.
    pub(super) const fn forks(self, node: KeyTreeNode) -> bool {
        self.beneath_by_side(node) == 0b11
    }

    /// Returns true if a node with this change can have these flags: what changes beneath changes it too, and
    /// only a refreshed node has a seed to wrap.
    const fn fits(self, node: NodeChange) -> bool {
        (node.refreshed || self.0 & 0b101_101 == 0) && (node.added || self.0 & 0b010_010 == 0)
    }
}

/// A node as it is written.
#[derive(Clone, Copy, Debug)]
struct Shape {
    node: KeyTreeNode,
    flags: Flags,
    /// Children that change and follow, a bit for each; of the others there is the hash.
    given: u8,
    /// Number of wraps and hashes before this node's.
    strings: usize,
    /// Number of hashes in place of its children.
    hashes: usize,
}

impl Shape {
    const fn child(&self, side: usize) -> NodeChange {
        self.flags.child(side)
    }

    const fn given(&self, side: usize) -> bool {
        self.given >> side & 1 > 0
    }

    const fn strings_len(&self) -> usize {
        self.flags.own() + self.hashes
    }
}

/// Error if there are no bits of a node, or they are not its one form.
struct NoNode;

impl From<NoNode> for Error {
    fn from(NoNode: NoNode) -> Self {
        MALFORMED
    }
}

/// Reads nodes from the root down, the left one first.
struct Nodes<'a> {
    bits: &'a [u8],
    bit: usize,
    part: bool,
    /// The next node, with what is done to it.
    next: Option<(KeyTreeNode, NodeChange)>,
    /// Right children to come, whose left siblings or what is beneath these comes first: at most one on each level,
    /// a bit for each.
    right: u32,
    /// Nodes among them that are refreshed.
    refreshed: u32,
    /// Nodes among them that are above newcomers.
    added: u32,
    strings: usize,
}

impl<'a> Nodes<'a> {
    const fn new(first: u8, bits: &'a [u8]) -> Self {
        let level = first & !(PART | ROOT_ADDED | ROOT_REFRESHED);
        let next = Some((KeyTreeNode { level, index: 0 }, root_change(first)));
        let part = first & PART > 0;
        Self { bits, bit: 0, part, next, right: 0, refreshed: 0, added: 0, strings: 0 }
    }

    /// Reads at most eight bits, the lowest first.
    fn next_bits(&mut self, count: usize) -> Result<u8, NoNode> {
        let from = self.bit;
        self.bit += count;
        let bytes = self.bits.get(from / 8..self.bit.div_ceil(8)).ok_or(NoNode)?;
        let bits = bytes.iter().rev().fold(0_u16, |bits, byte| bits << 8 | u16::from(*byte));
        Ok((bits >> (from % 8) & ((1 << count) - 1)) as u8)
    }

    fn read(&mut self, node: KeyTreeNode, change: NodeChange) -> Result<Shape, NoNode> {
        let code = self.next_bits(2)?;
        let flags = match Flags::USUAL.get(usize::from(code)) {
            Some(flags) => *flags,
            None => Flags(self.next_bits(6)?),
        };
        // One form for each node.
        if (code == 3 && Flags::USUAL.contains(&flags)) || !flags.fits(change) {
            return Err(NoNode);
        }
        // In a part each of two that change may be missing.
        let beneath = flags.beneath_by_side(node);
        let given = if self.part && beneath == 0b11 { self.next_bits(2)? } else { beneath };
        let missing = beneath ^ given;
        let hashes = usize::from((missing & 1) + (missing >> 1));
        let shape = Shape { node, flags, given, strings: self.strings, hashes };
        self.strings += shape.strings_len();
        self.next = self.after(&shape);
        Ok(shape)
    }

    /// The node that follows this one.
    const fn after(&mut self, shape: &Shape) -> Option<(KeyTreeNode, NodeChange)> {
        let KeyTreeNode { level, index } = shape.node;
        if shape.given > 0 {
            let side = if shape.given(0) { 0 } else { 1 };
            if shape.given == 0b11 {
                let (right, at) = (shape.child(1), level - 1);
                self.right |= 1 << at;
                self.refreshed = self.refreshed & !(1 << at) | (right.refreshed as u32) << at;
                self.added = self.added & !(1 << at) | (right.added as u32) << at;
            }
            return Some((shape.node.child(side), shape.child(side)));
        }
        if self.right == 0 {
            return None;
        }
        // This node is the left sibling of the lowest of them, or beneath that.
        let at = self.right.trailing_zeros();
        self.right &= self.right - 1;
        let node = KeyTreeNode { level: at as u8, index: index >> (at as u8 - level) | 1 };
        let (refreshed, added) = (self.refreshed >> at & 1 > 0, self.added >> at & 1 > 0);
        Some((node, NodeChange { refreshed, added }))
    }
}

impl Iterator for Nodes<'_> {
    type Item = Result<Shape, NoNode>;

    fn next(&mut self) -> Option<Self::Item> {
        let (node, change) = self.next.take()?;
        Some(self.read(node, change))
    }
}

/// The wraps and hashes of one node.
#[derive(Clone, Copy)]
struct Strings<'a> {
    flags: Flags,
    given: u8,
    own: &'a [String32],
}

impl<'a> Strings<'a> {
    fn wrap(&self, side: usize) -> Option<&'a String32> {
        let before = usize::from(side > 0 && self.flags.wraps(0));
        self.flags.wraps(side).then(|| self.own.get(before)).flatten()
    }

    fn wraps(&self) -> &'a [String32] {
        self.own.get(..self.flags.own()).unwrap_or_default()
    }

    /// The hashes of a fork's children that do not follow.
    fn hashes(&self) -> [Option<Digest>; 2] {
        let mut hashes = self.own.iter().skip(self.flags.own()).copied();
        [1, 2].map(|side| if self.given & side > 0 { None } else { hashes.next() })
    }
}

/// A node of which both children change, and the hashes of these as far as they are known.
struct Fork {
    hash: Hasher,
    children: [Option<Digest>; 2],
}

/// Gives the innermost fork the hash of its next child.
fn take(open: &mut [Fork], digest: Digest) {
    if let Some(child) =
        open.last_mut().and_then(|fork| fork.children.iter_mut().find(|child| child.is_none()))
    {
        *child = Some(digest);
    }
}

/// entries_root = H("quiver/1 wraps", height and what is done to the root ‖ T(root)).
pub(super) fn begin_root(first: u8) -> Hasher {
    // §8.3: the same for the whole and for a part.
    Hasher::new("quiver/1 wraps").fixed(&[first & !PART])
}

/// M(v) = H("quiver/1 node", v ‖ T(v)).
pub(super) fn begin_node(node: KeyTreeNode) -> Hasher {
    Hasher::new("quiver/1 node").fixed(&node.encode())
}

/// The first part of T(v): what it says of its children, and their wraps. T of the one child that changes
/// follows, or M of both.
pub(super) fn write_node(hash: &mut Hasher, flags: Flags, wraps: &[String32]) {
    hash.add(&[flags.0]);
    hash.add(wraps.as_flattened());
}

/// The end of T(v) where both children change.
pub(super) fn write_fork(hash: &mut Hasher, children: &[Option<Digest>; 2]) {
    children.iter().flatten().for_each(|digest| hash.add(digest));
}
