//! The wraps of a tree's epoch, read from their bytes alone (docs/protocol.md, §8.3).

use quiver_crypto::Digest;

use crate::table::Table;

/// A node of the tree: its level and its index there.
pub(crate) type TreeNode = (u8, u32);

/// A node as it is hashed (§8.1): level and index.
pub(crate) fn node(level: u8, index: u32) -> Vec<u8> {
    [&[level][..], &index.to_be_bytes()].concat()
}

/// Statement of a node about one of its children.
#[derive(Clone, Default)]
pub(crate) struct Child {
    pub(crate) refreshed: bool,
    pub(crate) added: bool,
    wrapped: bool,
    pub(crate) wrap: Option<[u8; 32]>,
    below: Option<Box<Said>>,
    /// M of the node, where a part lacks it.
    hash: Option<[u8; 32]>,
}

/// A node of R or A.
#[derive(Clone)]
struct Said {
    level: u8,
    index: u32,
    children: [Child; 2],
}

/// Wraps of an epoch, all of them or a part.
pub(crate) struct Wraps {
    first: u8,
    pub(crate) height: u8,
    top: Said,
}

/// Bits of a string, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl Bits<'_> {
    fn take(&mut self) -> Option<bool> {
        let bit = self.bytes.get(self.place / 8)? >> (self.place % 8) & 1;
        self.place += 1;
        Some(bit == 1)
    }
}

impl Said {
    fn read(bits: &mut Bits<'_>, part: bool, level: u8, index: u32) -> Option<Self> {
        let (low, high) = (bits.take()?, bits.take()?);
        let flags = match (high, low) {
            (false, false) => [true, false, false, false, false, true],
            (false, true) => [false, false, true, true, false, false],
            (true, false) => [true, false, false, true, false, true],
            (true, true) => {
                let mut flags = [false; 6];
                for flag in &mut flags {
                    *flag = bits.take()?;
                }
                flags
            }
        };
        let child = |at: usize| Child {
            refreshed: flags[at],
            added: flags[at + 1],
            wrapped: flags[at + 2],
            ..Child::default()
        };
        let mut said = Self { level, index, children: [child(0), child(3)] };
        let mut follows = [said.changes_below(0), said.changes_below(1)];
        if part && follows == [true, true] {
            follows = [bits.take()?, bits.take()?];
        }
        for side in [0, 1].into_iter().filter(|side| follows[*side]) {
            let below = Self::read(bits, part, level.checked_sub(1)?, 2 * index + side as u32)?;
            said.children[side].below = Some(Box::new(below));
        }
        Some(said)
    }

    /// Returns true if a child is an inner node of R or A.
    const fn changes_below(&self, side: usize) -> bool {
        self.level > 1 && (self.children[side].refreshed || self.children[side].added)
    }

    /// Takes up the wraps of this node and of those below, and the hashes in place of what a part lacks.
    fn fill(&mut self, strings: &mut impl Iterator<Item = [u8; 32]>) -> Option<()> {
        for child in self.children.iter_mut().filter(|child| child.wrapped) {
            child.wrap = Some(strings.next()?);
        }
        let forks = self.changes_below(0) && self.changes_below(1);
        for child in self.children.iter_mut().filter(|child| forks && child.below.is_none()) {
            child.hash = Some(strings.next()?);
        }
        self.children
            .iter_mut()
            .filter_map(|child| child.below.as_mut())
            .try_for_each(|said| said.fill(strings))
    }

    /// T of the node.
    fn text(&self, table: &Table) -> Option<Vec<u8>> {
        let mut text = vec![0];
        for (side, child) in self.children.iter().enumerate() {
            let flags = [child.refreshed, child.added, child.wrapped];
            text[0] |=
                flags.iter().enumerate().map(|(bit, flag)| u8::from(*flag) << (3 * side + bit)).sum::<u8>();
        }
        text.extend(self.children.iter().filter_map(|child| child.wrap).flatten());
        let beneath: Vec<&Child> =
            (0..2).filter(|side| self.changes_below(*side)).map(|side| &self.children[side]).collect();
        if let [one] = beneath[..] {
            text.extend(one.below.as_ref()?.text(table)?);
        } else {
            for child in beneath {
                text.extend(child.hash.map_or_else(|| child.below.as_ref()?.hash(table), Some)?);
            }
        }
        Some(text)
    }

    /// M of the node.
    fn hash(&self, table: &Table) -> Option<Digest> {
        Some(table.hash("node", &[("v", &node(self.level, self.index)), ("text", &self.text(table)?)]))
    }
}

impl Wraps {
    /// Reads them. `None` for what is no such bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        let height = first & 31;
        let mut bits = Bits { bytes: rest, place: 0 };
        let mut top = Said::read(&mut bits, first & 128 > 0, height, 0)?;
        let strings = rest.get(bits.place.div_ceil(8)..)?.as_chunks::<32>().0;
        let mut strings = strings.iter().copied();
        top.fill(&mut strings)?;
        strings.next().is_none().then_some(Self { first: first & 127, height, top })
    }

    /// entries_root. `None` if a node is missing that no hash stands for.
    pub(crate) fn root(&self, table: &Table) -> Option<Digest> {
        let all = [&[self.first][..], &self.top.text(table)?].concat();
        Some(table.hash("wraps", &[("all", &all)]))
    }

    /// Flags of the nodes above a slot, from the leaf to the root: the node itself, as far as it is known.
    /// `None` if this part lacks a node above the slot, or the tree has no such slot.
    pub(crate) fn branch(&self, slot: u32) -> Option<Vec<Child>> {
        if slot >> self.height > 0 {
            return None;
        }
        let mut branch = vec![Child::default(); usize::from(self.height) + 1];
        branch[usize::from(self.height)] =
            Child { refreshed: self.first & 32 > 0, added: self.first & 64 > 0, ..Child::default() };
        let mut said = &self.top;
        loop {
            let child = &said.children[(slot >> (said.level - 1) & 1) as usize];
            let level = usize::from(said.level) - 1;
            branch[level] = Child { below: None, ..child.clone() };
            if level == 0 || !(child.refreshed || child.added) {
                return Some(branch);
            }
            said = child.below.as_ref()?;
        }
    }

    /// Every wrap that is there: parent, child, mask.
    pub(crate) fn all(&self) -> Vec<(TreeNode, TreeNode, [u8; 32])> {
        let (mut open, mut all) = (vec![&self.top], Vec::new());
        while let Some(said) = open.pop() {
            for (side, child) in said.children.iter().enumerate() {
                let place = (said.level - 1, 2 * said.index + side as u32);
                all.extend(child.wrap.map(|wrap| ((said.level, said.index), place, wrap)));
                open.extend(child.below.as_deref());
            }
        }
        all
    }
}
