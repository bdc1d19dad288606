//! The incremental Merkle tree of a roster's hash.

use alloc::vec::Vec;

use quiver_crypto::{Digest, Hasher};

/// Stands for a subtree without a member. No hash of a member or of two subtrees can be found that equals it.
const EMPTY: Digest = [0; 32];

/// Hashes of the subtrees over slots `0..2^k`; a change costs one hash per level.
#[derive(Clone, Debug)]
pub(super) struct MerkleTree {
    suite: &'static str,
    /// `levels[h][i]` covers the slots `i·2^h .. (i+1)·2^h`; the last level has one node.
    levels: Vec<Vec<Digest>>,
}

impl MerkleTree {
    pub(super) fn new(suite: &'static str) -> Self {
        Self { suite, levels: alloc::vec![alloc::vec![EMPTY]] }
    }

    /// The hash over the slots `0..2^height`, whether or not there ever were that many.
    pub(super) fn root(&self, height: u8) -> Digest {
        let level = self.levels.get(usize::from(height));
        level.and_then(|nodes| nodes.first()).copied().unwrap_or(EMPTY)
    }

    /// Puts a member's leaf hash, or nothing, under `slot`.
    pub(super) fn set(&mut self, slot: u32, leaf: Option<Digest>) {
        let mut index = slot as usize;
        self.grow_to(index);
        let mut hash = leaf.unwrap_or(EMPTY);
        let mut level = 0;
        while let Some(nodes) = self.levels.get_mut(level) {
            if let Some(node) = nodes.get_mut(index) {
                *node = hash;
            }
            let pair = index & !1;
            let left = nodes.get(pair).copied().unwrap_or(EMPTY);
            let right = nodes.get(pair + 1).copied().unwrap_or(EMPTY);
            // One hash for each level up to the root.
            hash = self.join(&left, &right);
            index >>= 1;
            level += 1;
        }
    }

    /// Doubles the tree until it has a leaf `index`. The old tree becomes the left half.
    fn grow_to(&mut self, index: usize) {
        while self.levels.first().is_some_and(|leaves| leaves.len() <= index) {
            let old_root = self.levels.last().and_then(|nodes| nodes.first()).copied().unwrap_or(EMPTY);
            for nodes in &mut self.levels {
                nodes.resize(nodes.len() * 2, EMPTY);
            }
            let root = self.join(&old_root, &EMPTY);
            self.levels.push(alloc::vec![root]);
        }
    }

    fn join(&self, left: &Digest, right: &Digest) -> Digest {
        // An empty subtree costs no hash.
        if *left == EMPTY && *right == EMPTY {
            return EMPTY;
        }
        Hasher::new("quiver/1 roster node").lp(self.suite.as_bytes()).fixed(left).fixed(right).finish()
    }
}
