//! Sizes of an epoch's wraps, which follow from the slots that change.

use alloc::vec::Vec;

use quiver_crypto::Secret;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

use super::algebra::Rules;
use super::{Delta, Hierarchy, HmacXor, Touched, WrapTree};
use crate::Ristretto255;
use crate::pairwise::Ratchet;
use crate::slots::{MAX_SLOTS, SlotSet};

type KeyTree = Hierarchy<HmacXor<Ristretto255>>;

/// A tree of that many members with which a term opens, and the wraps of the opening.
fn opened(height: u8, members: u32) -> (KeyTree, WrapTree) {
    let leaf = Ratchet::decode(&[0; 72]).unwrap();
    let leaves: Vec<_> = (0..members).map(|slot| (slot, leaf.clone())).collect();
    let mut tree = KeyTree::new(&leaves);
    let touched = Touched::opening(height, &(0..members).collect());
    let wraps = tree.rekey(&touched, &SlotSet::new(), &[], &[0; 32], &mut |_| Secret::new([1; 32]));
    (tree, WrapTree::pack(&touched, &wraps))
}

fn full(height: u8, members: u32) -> KeyTree {
    opened(height, members).0
}

fn wraps_of(tree: &mut KeyTree, removed: &SlotSet) -> WrapTree {
    let touched = Touched::new(tree.height(), tree.height(), removed, &SlotSet::new(), Rules::ALL);
    let wraps = tree.rekey(&touched, removed, &[], &[0; 32], &mut |_| Secret::new([2; 32]));
    WrapTree::pack(&touched, &wraps)
}

fn len(wraps: &WrapTree) -> usize {
    wraps.whole().as_bytes().len()
}

#[test]
fn one_of_2000_leaves_with_356_bytes() {
    let mut tree = full(11, 2000);
    // 11 wraps; the first byte, and two bits for each of 11 nodes.
    assert_eq!(len(&wraps_of(&mut tree, &SlotSet::from_iter([700]))), 11 * 32 + 1 + 3);
    // The next expiry refreshes the root alone.
    assert_eq!(len(&wraps_of(&mut tree, &SlotSet::new())), 2 * 32 + 1 + 1);
}

#[test]
fn a_term_opens_for_2000_with_97_kilobytes_and_each_part_has_its_members() {
    let (_, wraps) = opened(11, 2000);
    // 2,999 wraps: of the node above each pair of leaves both, of every other with two children one; the first byte;
    // eight bits of each of the 1,000 nodes above leaves and of the two with one child, two of the 999 others.
    assert_eq!(len(&wraps), 2999 * 32 + 1 + (1_002_usize * 8 + 999 * 2).div_ceil(8));
    let parts = wraps.chunks(12 * 1024);
    let bytes: usize = parts.iter().map(|(_, part)| part.as_bytes().len()).sum();
    assert!((9..=11).contains(&parts.len()) && bytes < 104_000, "{} parts of {bytes} bytes", parts.len());
    for (_, part) in &parts {
        assert_eq!(part.root(), wraps.root());
    }
    for slot in 0..2048 {
        let covering: Vec<_> = parts.iter().map(|(_, part)| part).filter(|part| part.covers(slot)).collect();
        assert!(
            !covering.is_empty() && covering.iter().all(|part| part.keeps(slot) == Some(slot < 2000)),
            "{slot}"
        );
    }
}

#[test]
fn a_million_members_are_told_of_leavers_within_bounds() {
    let mut tree = full(20, MAX_SLOTS);
    assert_eq!(len(&wraps_of(&mut tree, &SlotSet::from_iter([0xabcde]))), 20 * 32 + 1 + 5);
    // A hundred, anywhere: some 43 kB.
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let removed: SlotSet = (0..100).map(|_| rng.next_u32() % MAX_SLOTS).collect();
    let wraps = wraps_of(&mut tree, &removed);
    assert!((42_000..=44_500).contains(&len(&wraps)), "{}", len(&wraps));
    // A tenth of 10⁶ in one epoch, in parts; and no member needs more than 66 bytes for each level.
    let removed: SlotSet = (0..1_000_000).filter(|_| rng.next_u32().is_multiple_of(10)).collect();
    let wraps = wraps_of(&mut tree, &removed);
    assert!((11_000_000..=12_000_000).contains(&len(&wraps)), "{}", len(&wraps));
    let parts = wraps.chunks(Delta::MAX_LEN);
    assert!(parts.len() < 40 && parts.iter().all(|(_, part)| part.as_bytes().len() <= Delta::MAX_LEN));
    let longest = (1..MAX_SLOTS).step_by(3001).map(|slot| wraps.branch(slot).as_bytes().len()).max();
    assert!(longest.is_some_and(|longest| longest <= 20 * 66 + 1), "{longest:?}");
}

#[test]
fn subtrees_without_members_cost_nothing() {
    let mut tree = full(12, 4096);
    // A quarter of the tree goes: one level of it is refreshed above, and nothing is said of what is beneath.
    assert_eq!(len(&wraps_of(&mut tree, &(0..1024).collect())), 2 * 32 + 3);
}
