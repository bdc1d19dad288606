//! Any t right shares make the key; every sender of a wrong one is named, and no other.

use crate::staged_quorum::{Quorum, blamed, rng};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use quiver_ibe::{
    Error, IdentityPoint, KeyShare, ShareFault, UnverifiedIdentityKey, UnverifiedKeyShare, combine,
    verify_batch,
};

fn point() -> IdentityPoint {
    IdentityPoint::of_bytes(b"identity")
}

/// A threshold, a number of KGCs, and who answers, as many as the threshold or more, in any order.
fn answers() -> impl Strategy<Value = (u16, u16, Vec<u16>)> {
    (1_u16..9).prop_flat_map(|count| (1..=count, Just(count))).prop_flat_map(|(threshold, count)| {
        let all: Vec<u16> = (1..=count).collect();
        (
            Just(threshold),
            Just(count),
            subsequence(all, usize::from(threshold)..=usize::from(count)).prop_shuffle(),
        )
    })
}

/// A wrong share in place of the right one.
fn lie(kind: usize, index: u16, quorum: &Quorum) -> UnverifiedKeyShare {
    let other = Quorum::new(1234, 2, 9);
    match kind % 4 {
        // For another identity
        0 => quorum.share(&IdentityPoint::of_bytes(b"identitx"), index),
        // By another quorum
        1 => other.share(&point(), index),
        // Another index's
        2 => relabelled(&other.share(&point(), index % 9 + 1), index),
        // The right one's opposite
        _ => {
            let mut bytes = quorum.share(&point(), index).encode().to_vec();
            bytes[2] ^= 0x20;
            UnverifiedKeyShare::decode(&bytes).unwrap()
        }
    }
}

/// The same point under another index.
fn relabelled(share: &UnverifiedKeyShare, index: u16) -> UnverifiedKeyShare {
    let mut bytes = share.encode().to_vec();
    bytes[..2].copy_from_slice(&index.to_be_bytes());
    UnverifiedKeyShare::decode(&bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_threshold_of_shares_makes_the_one_key(seed in any::<u64>(), (threshold, count, indices) in answers()) {
        let quorum = Quorum::new(seed, threshold, count);
        let key = quorum.key(&point(), &indices).unwrap();
        let first: Vec<u16> = (1..=threshold).collect();
        prop_assert_eq!(&key, &quorum.key(&point(), &first).unwrap());
        let master = quorum.publics.master();
        prop_assert!(UnverifiedIdentityKey::from(key).verify(master, &point()).is_ok());
        let shares = quorum.shares(&point(), &indices);
        let verified = verify_batch(&quorum.publics, &point(), &shares, &mut rng(seed)).unwrap();
        prop_assert!(verified.iter().map(KeyShare::index).eq(indices));
    }

    #[test]
    fn one_wrong_share_is_blamed_on_its_sender(
        seed in any::<u64>(),
        (threshold, count, indices) in answers(),
        liar in any::<Index>(),
        kind in 0_usize..4,
    ) {
        let quorum = Quorum::new(seed, threshold, count);
        let mut shares = quorum.shares(&point(), &indices);
        let place = liar.index(shares.len());
        let index = indices[place];
        shares[place] = lie(kind, index, &quorum);
        let named = blamed(&[(index, ShareFault::Wrong)]);
        let refused = verify_batch(&quorum.publics, &point(), &shares, &mut rng(seed));
        prop_assert_eq!(&refused.unwrap_err(), &named);
        match combine(&quorum.publics, &point(), &shares, &mut rng(seed)) {
            // Not among the shares that were taken
            Ok(_) => prop_assert!(place >= usize::from(threshold)),
            Err(error) => prop_assert_eq!(error, named),
        }
    }

    #[test]
    fn all_wrong_shares_are_named_at_once(seed in any::<u64>(), lies in prop::collection::vec(0_usize..6, 9)) {
        let quorum = Quorum::new(seed, 9, 9);
        let shares: Vec<_> = (1..).zip(&lies).map(|(index, kind)| match kind {
            0..4 => lie(*kind, index, &quorum),
            _ => quorum.share(&point(), index),
        }).collect();
        let liars: Vec<_> = (1..).zip(&lies).filter(|(_, kind)| **kind < 4).map(|(index, _)| (index, ShareFault::Wrong)).collect();
        match combine(&quorum.publics, &point(), &shares, &mut rng(seed)) {
            Ok(_) => prop_assert!(liars.is_empty()),
            Err(error) => prop_assert_eq!(error, blamed(&liars)),
        }
    }
}

#[test]
fn errors_that_cancel_out_in_the_sum_are_found_one_by_one() {
    // With the indices 1 and 2, K = 2·K_1 − K_2: an error added to K_1 once cancels if it is added to K_2
    // twice.
    let quorum = Quorum::new(1, 2, 2);
    let [one, two] = [1, 2].map(|index| quorum.share(&point(), index));
    let error = quiver_pairing::G2::hash("TEST", &[b"an error"]);
    let bent = |share: &UnverifiedKeyShare, error| {
        let decoded = <quiver_pairing::G2 as quiver_pairing::Group>::decode(&share.encode()[2..]).unwrap();
        UnverifiedKeyShare::new(share.index(), decoded + error).unwrap()
    };
    let shares = [bent(&one, error), bent(&two, error + error)];
    let expected = quorum.key(&point(), &[1, 2]).unwrap();
    // The key is right all the same, and was checked.
    assert_eq!(combine(&quorum.publics, &point(), &shares, &mut rng(1)).unwrap(), expected);
    let refused = verify_batch(&quorum.publics, &point(), &shares, &mut rng(1));
    assert_eq!(refused.unwrap_err(), blamed(&[(1, ShareFault::Wrong), (2, ShareFault::Wrong)]));
}

#[test]
fn too_few_shares_say_how_many_there_are() {
    let quorum = Quorum::new(1, 3, 5);
    for (given, indices) in [(0, &[][..]), (1, &[4]), (2, &[5, 2])] {
        assert_eq!(quorum.key(&point(), indices).unwrap_err(), Error::TooFewShares { needed: 3, given });
    }
    assert!(verify_batch(&quorum.publics, &point(), &[], &mut rng(1)).unwrap().is_empty());
}

#[test]
fn shares_that_came_twice_or_from_outside_are_named_before_anything_is_computed() {
    let quorum = Quorum::new(1, 2, 5);
    let both = quorum.key(&point(), &[3, 1, 3, 4, 4, 4]).unwrap_err();
    assert_eq!(both, blamed(&[(3, ShareFault::Duplicate), (4, ShareFault::Duplicate)]));
    for index in [0, 6, u16::MAX] {
        let shares = [
            quorum.share(&point(), 1),
            quorum.share(&point(), 2),
            relabelled(&quorum.share(&point(), 3), index),
        ];
        let refused = combine(&quorum.publics, &point(), &shares, &mut rng(1)).unwrap_err();
        assert_eq!(refused, blamed(&[(index, ShareFault::Foreign)]));
        let refused = verify_batch(&quorum.publics, &point(), &shares, &mut rng(1)).unwrap_err();
        assert_eq!(refused, blamed(&[(index, ShareFault::Foreign)]));
    }
}

#[test]
fn bytes_that_are_no_share_are_blamed_on_whoever_sent_them() {
    let quorum = Quorum::new(1, 2, 5);
    let right = quorum.share(&point(), 3).encode().to_vec();
    assert!(UnverifiedKeyShare::decode_from(3, &right).is_ok());
    let other = UnverifiedKeyShare::decode_from(4, &right).unwrap_err();
    assert_eq!(other, blamed(&[(4, ShareFault::OtherIndex)]));
    for point in [
        crate::staged_quorum::identity(96),
        crate::staged_quorum::outside_g2().to_vec(),
        vec![0xff; 96],
        vec![0; 96],
    ] {
        let bytes = [&[0, 3][..], &point].concat();
        assert_eq!(
            UnverifiedKeyShare::decode_from(3, &bytes).unwrap_err(),
            blamed(&[(3, ShareFault::NoPoint)])
        );
        assert_eq!(UnverifiedKeyShare::decode(&bytes).unwrap_err(), blamed(&[(3, ShareFault::NoPoint)]));
    }
    for length in 0..right.len() {
        assert!(matches!(UnverifiedKeyShare::decode(&right[..length]), Err(Error::Malformed(_))));
        let short = UnverifiedKeyShare::decode_from(3, &right[..length]).unwrap_err();
        assert_eq!(short, blamed(&[(3, ShareFault::NoPoint)]));
    }
    let long = [&right[..], &[0]].concat();
    assert!(matches!(UnverifiedKeyShare::decode(&long), Err(Error::Malformed(_))));
    let identity = <quiver_pairing::G2 as quiver_pairing::Group>::identity();
    assert_eq!(UnverifiedKeyShare::new(3, identity).unwrap_err(), blamed(&[(3, ShareFault::NoPoint)]));
}

#[test]
fn an_identity_key_is_taken_for_its_own_identity_and_quorum_alone() {
    let quorum = Quorum::new(1, 2, 3);
    let encoded = quorum.key(&point(), &[2, 3]).unwrap().encode();
    let stored = || UnverifiedIdentityKey::decode(&*encoded).unwrap();
    assert!(stored().verify(quorum.publics.master(), &point()).is_ok());
    let other = IdentityPoint::of_bytes(b"identitx");
    assert_eq!(stored().verify(quorum.publics.master(), &other), Err(Error::InvalidIdentityKey));
    let others = Quorum::new(2, 2, 3);
    assert_eq!(stored().verify(others.publics.master(), &point()), Err(Error::InvalidIdentityKey));
    for bytes in [
        crate::staged_quorum::identity(96),
        crate::staged_quorum::outside_g2().to_vec(),
        encoded[..95].to_vec(),
        vec![],
    ] {
        assert_eq!(UnverifiedIdentityKey::decode(&bytes).unwrap_err(), Error::InvalidPoint("G2"));
    }
}

#[test]
fn the_largest_quorum_makes_its_key_and_finds_its_liar() {
    let quorum = Quorum::new(1, 1024, 1024);
    let indices: Vec<u16> = (1..=1024).collect();
    let mut shares = quorum.shares(&point(), &indices);
    let key = combine(&quorum.publics, &point(), &shares, &mut rng(1)).unwrap();
    assert!(UnverifiedIdentityKey::from(key).verify(quorum.publics.master(), &point()).is_ok());
    shares[700] = lie(0, 701, &quorum);
    let refused = combine(&quorum.publics, &point(), &shares, &mut rng(1)).unwrap_err();
    assert_eq!(refused, blamed(&[(701, ShareFault::Wrong)]));
    assert_eq!(refused.to_string(), "invalid key shares: KGC 701 (not the share of this identity's key)");
}
