//! Sizes of an epoch's wraps, which follow from the slots that change.

use alloc::vec::Vec;

use quiver_crypto::Secret;

use super::algebra::Rules;
use super::{Delta, Hierarchy, HmacXor, Touched};
use crate::pairwise::Ratchet;
use crate::slots::{MAX_SLOTS, SlotSet};
use crate::{MAX_TREE_REMOVALS, Ristretto255};

type Tree = Hierarchy<HmacXor<Ristretto255>>;

fn full(height: u8, members: u32) -> Tree {
    let leaf = Ratchet::decode(&[0; 72]).unwrap();
    let leaves: Vec<_> = (0..members).map(|slot| (slot, leaf.clone())).collect();
    Tree::new(height, &leaves, &mut |_| Secret::new([1; 32]))
}

fn wraps_of(tree: &mut Tree, removed: &SlotSet) -> Delta {
    let touched = Touched::new(tree.height(), tree.height(), removed, &SlotSet::new(), Rules::ALL);
    let wraps = tree.rekey(&touched, removed, &[], &[0; 32], &mut |_| Secret::new([2; 32]));
    Delta::pack(&touched, &wraps)
}

#[test]
fn one_of_2000_leaves_with_355_bytes() {
    let mut tree = full(11, 2000);
    // 11 wraps, 22 bits for 11 nodes.
    assert_eq!(wraps_of(&mut tree, &SlotSet::from_iter([700])).as_bytes().len(), 11 * 32 + 3);
    // The next expiry refreshes the root alone.
    assert_eq!(wraps_of(&mut tree, &SlotSet::new()).as_bytes().len(), 2 * 32 + 1);
}

#[test]
fn a_million_members_are_told_of_leavers_within_bounds() {
    let mut tree = full(20, MAX_SLOTS);
    assert_eq!(wraps_of(&mut tree, &SlotSet::from_iter([0xabcde])).as_bytes().len(), 20 * 32 + 5);
    // As many as one epoch removes, as far from each other as they can be.
    let apart = MAX_SLOTS / u32::try_from(MAX_TREE_REMOVALS).unwrap();
    let removed: SlotSet = (0..MAX_SLOTS).step_by(apart as usize).collect();
    assert_eq!(removed.len(), MAX_TREE_REMOVALS);
    let delta = wraps_of(&mut tree, &removed);
    assert!((360_000..=Delta::MAX_LEN).contains(&delta.as_bytes().len()), "{}", delta.as_bytes().len());
}
