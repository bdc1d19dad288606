//! Counts the pairings of a combination.

use alloc::vec::Vec;
use core::cell::Cell;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::Dealing;

/// Combines and gives the pairings that were computed.
fn counted(threshold: u16, count: u16, wrong: &[usize]) -> (Result<IdentityKey, Error>, usize) {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let dealing = Dealing::deal(threshold, count, &mut rng).unwrap();
    let (point, other) = (IdentityPoint::of_bytes(b"this"), IdentityPoint::of_bytes(b"other"));
    let shares: Vec<UnverifiedKeyShare> = dealing
        .shares()
        .iter()
        .enumerate()
        .map(|(place, share)| share.extract(if wrong.contains(&place) { &other } else { &point }).into())
        .collect();
    let pairings = Cell::new(0);
    let check = |pairs: &[(G1, G2)]| {
        pairings.set(pairings.get() + pairs.len());
        product_is_one(pairs)
    };
    let key = combine_checked(&dealing.public_shares().unwrap(), &point, &shares, &mut rng, &check);
    (key, pairings.get())
}

#[test]
fn combining_takes_two_pairings_when_nobody_lies() {
    for (threshold, count) in [(1, 1), (2, 3), (5, 9), (40, 60)] {
        let (key, pairings) = counted(threshold, count, &[]);
        assert!(key.is_ok());
        assert_eq!(pairings, 2, "{threshold} of {count}");
    }
}

#[test]
fn a_liar_beyond_the_threshold_costs_nothing() {
    let (key, pairings) = counted(3, 9, &[3, 8]);
    assert!(key.is_ok());
    assert_eq!(pairings, 2);
}

#[test]
fn one_liar_is_found_in_logarithmically_many_pairings() {
    let (key, pairings) = counted(64, 64, &[37]);
    let culprits = alloc::vec![Culprit { index: 38, fault: ShareFault::Wrong }];
    assert_eq!(key, Err(Error::InvalidKeyShares { culprits }));
    // The key, the whole, and two halves on each of six levels.
    assert_eq!(pairings, 2 + 2 + 6 * 4);
}
