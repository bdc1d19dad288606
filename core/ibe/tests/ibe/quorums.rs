//! Public shares and commitments that do not belong together are refused, and so is a dealer's wrong share.

use crate::staged_quorum::{Quorum, rng};
use proptest::prelude::*;
use proptest::sample::Index;
use quiver_ibe::{
    Dealing, Error, MAX_SHARES, MasterCommitment, MasterPublicKey, MasterShare, PublicShares,
    UnverifiedMasterShare,
};
use quiver_pairing::{G1, Group, Scalar};

fn bent(share: &MasterShare) -> MasterShare {
    MasterShare::new(share.index(), *share.expose() + Scalar::from(1_u64)).unwrap()
}

fn sizes() -> impl Strategy<Value = (u16, u16)> {
    (1_u16..12).prop_flat_map(|count| (1..=count, Just(count)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_a_dealer_publishes_is_consistent(seed in any::<u64>(), (threshold, count) in sizes()) {
        let Quorum { dealing, publics } = Quorum::new(seed, threshold, count);
        let bytes = publics.encode();
        prop_assert_eq!(bytes.len(), 55 + 50 * usize::from(count));
        prop_assert_eq!(&PublicShares::decode(&bytes).unwrap(), &publics);
        for share in dealing.shares() {
            publics.check(share).unwrap();
            prop_assert_eq!(publics.check(&bent(share)), Err(Error::InvalidMasterShare(share.index())));
            prop_assert_eq!(dealing.commitment().public(share.index()), share.public());
            prop_assert_eq!(MasterShare::decode(&*share.encode()).unwrap().encode(), share.encode());
        }
        let bytes = dealing.commitment().encode();
        prop_assert_eq!(&MasterCommitment::decode(&bytes).unwrap(), dealing.commitment());
    }

    #[test]
    fn one_public_share_that_does_not_fit_is_noticed(
        seed in any::<u64>(),
        (threshold, count) in sizes(),
        place in any::<Index>(),
    ) {
        let publics = Quorum::new(seed, threshold, count).publics;
        let mut shares = publics.shares().to_vec();
        let place = place.index(shares.len());
        shares[place].1 += G1::generator();
        let refused = PublicShares::new(threshold, *publics.master(), shares.clone());
        prop_assert_eq!(refused.unwrap_err(), Error::InconsistentShares);
        // A master public key that fits all of them but one is refused as well.
        let master = MasterPublicKey::new(*publics.master().point() + G1::generator()).unwrap();
        let refused = PublicShares::new(threshold, master, publics.shares().to_vec());
        prop_assert_eq!(refused.unwrap_err(), Error::InconsistentShares);
    }

    #[test]
    fn a_threshold_lower_than_that_of_the_polynomial_is_noticed(seed in any::<u64>(), (threshold, count) in sizes()) {
        let publics = Quorum::new(seed, threshold, count).publics;
        for other in 1..=count {
            let claimed = PublicShares::new(other, *publics.master(), publics.shares().to_vec());
            prop_assert_eq!(claimed.is_ok(), other >= threshold, "{} for {}", other, threshold);
        }
    }

    #[test]
    fn every_wrong_master_share_is_named(seed in any::<u64>(), (threshold, count) in sizes(), wrong in any::<u16>()) {
        let dealing = Dealing::deal(threshold, count, &mut rng(seed)).unwrap();
        let is_wrong = |index: u16| wrong >> index & 1 == 1;
        let shares: Vec<_> = dealing.shares().iter().map(|share| {
            UnverifiedMasterShare::new(if is_wrong(share.index()) { bent(share) } else { share.clone() })
        }).collect();
        for share in &shares {
            let verified = share.clone().verify(dealing.commitment());
            prop_assert_eq!(verified.is_err(), is_wrong(share.index()));
        }
        let culprits: Vec<u16> = (1..=count).filter(|index| is_wrong(*index)).collect();
        match dealing.commitment().verify_batch(shares, &mut rng(seed)) {
            Ok(verified) => prop_assert!(culprits.is_empty() && verified.len() == usize::from(count)),
            Err(error) => prop_assert_eq!(error, Error::InvalidMasterShares(culprits)),
        }
    }
}

#[test]
fn impossible_thresholds_are_refused() {
    for (threshold, count) in [(0, 0), (0, 3), (4, 3), (1, 1025)] {
        let (t, n) = (usize::from(threshold), usize::from(count));
        let expected = Error::Threshold { threshold: t, count: n };
        assert_eq!(Dealing::deal(threshold, count, &mut rng(1)).unwrap_err(), expected);
        let master = MasterPublicKey::new(G1::generator()).unwrap();
        let shares = (1..=count).map(|index| (index, G1::generator())).collect();
        assert_eq!(PublicShares::new(threshold, master, shares).unwrap_err(), expected);
    }
    assert_eq!(MAX_SHARES, 1024);
}

#[test]
fn indices_out_of_order_or_zero_and_identities_are_refused() {
    let publics = Quorum::new(1, 1, 3).publics;
    let (master, shares) = (*publics.master(), publics.shares().to_vec());
    let with = |change: fn(&mut Vec<(u16, G1)>)| {
        let mut shares = shares.clone();
        change(&mut shares);
        PublicShares::new(1, master, shares).unwrap_err()
    };
    assert_eq!(with(|shares| shares[0].0 = 0), Error::ZeroIndex);
    assert_eq!(with(|shares| shares[1].0 = 1), Error::DuplicateIndex(1));
    assert_eq!(with(|shares| shares.swap(0, 1)), Error::DuplicateIndex(1));
    assert_eq!(with(|shares| shares[2].1 = G1::identity()), Error::InvalidPoint("G1"));
    assert_eq!(MasterPublicKey::new(G1::identity()).unwrap_err(), Error::InvalidPoint("G1"));
}

#[test]
fn every_truncation_and_every_other_version_of_public_shares_is_refused() {
    let bytes = Quorum::new(1, 2, 3).publics.encode();
    for length in 0..bytes.len() {
        assert!(PublicShares::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(PublicShares::decode(&[&bytes[..], &[0]].concat()).is_err());
    for version in [0, 2, 255] {
        let other = [&[version], &bytes[1..]].concat();
        assert_eq!(PublicShares::decode(&other), Err(Error::Malformed("version of public shares")));
    }
    // A count that would take memory before anything is there
    let mut many = bytes.clone();
    many[51..55].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(PublicShares::decode(&many), Err(Error::Malformed(_))));
    for (place, point) in [
        (3, crate::staged_quorum::identity(48)),
        (57, crate::staged_quorum::identity(48)),
        (57, crate::staged_quorum::outside_g1().to_vec()),
    ] {
        let mut other = bytes.clone();
        other[place..place + 48].copy_from_slice(&point);
        assert_eq!(PublicShares::decode(&other), Err(Error::InvalidPoint("G1")));
    }
}

#[test]
fn commitments_to_nothing_and_to_the_identity_are_refused() {
    assert!(MasterCommitment::decode(&[0; 4]).is_err());
    assert!(MasterCommitment::decode(&[0, 0, 4, 1]).is_err());
    let zero = [&[0, 0, 0, 1][..], &crate::staged_quorum::identity(48)].concat();
    assert_eq!(MasterCommitment::decode(&zero), Err(Error::InvalidPoint("G1")));
    let outside = [&[0, 0, 0, 1][..], &crate::staged_quorum::outside_g1()].concat();
    assert_eq!(MasterCommitment::decode(&outside), Err(Error::InvalidPoint("G1")));
}

#[test]
fn master_shares_that_are_zero_or_too_large_are_refused() {
    let r = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
    for scalar in [vec![0; 32], vec![0xff; 32], hex::decode(r).unwrap(), vec![1; 31], vec![1; 33]] {
        assert_eq!(MasterShare::from_scalar_bytes(1, &scalar).unwrap_err(), Error::InvalidScalar);
    }
    assert_eq!(MasterShare::from_scalar_bytes(0, &[1; 32]).unwrap_err(), Error::ZeroIndex);
    assert!(matches!(MasterShare::decode(&[1; 33]), Err(Error::Malformed(_))));
    assert!(matches!(MasterShare::decode(&[1; 35]), Err(Error::Malformed(_))));
}

#[test]
fn master_public_keys_are_known_by_their_fingerprints() {
    let [one, other] = [1, 2].map(|seed| *Quorum::new(seed, 1, 1).publics.master());
    assert_eq!(MasterPublicKey::decode(&one.encode()).unwrap().fingerprint(), one.fingerprint());
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_ne!(Quorum::new(1, 1, 2).publics.digest(), Quorum::new(1, 2, 2).publics.digest());
    for bytes in [
        crate::staged_quorum::identity(48),
        crate::staged_quorum::outside_g1().to_vec(),
        one.encode()[1..].to_vec(),
    ] {
        assert_eq!(MasterPublicKey::decode(&bytes), Err(Error::InvalidPoint("G1")));
    }
}

#[test]
fn secrets_are_not_printed() {
    let Quorum { dealing, publics } = Quorum::new(1, 2, 3);
    let point = quiver_ibe::IdentityPoint::of_bytes(b"identity");
    let share = &dealing.shares()[1];
    assert_eq!(format!("{share:?}"), "MasterShare(2)");
    assert_eq!(format!("{:?}", share.extract(&point)), "KeyShare(2)");
    assert_eq!(
        format!("{:?}", UnverifiedMasterShare::new(share.clone())),
        "UnverifiedMasterShare(MasterShare(2))"
    );
    let key =
        Quorum { dealing: Dealing::deal(2, 3, &mut rng(1)).unwrap(), publics }.key(&point, &[1, 3]).unwrap();
    assert_eq!(format!("{key:?}"), "IdentityKey(..)");
    let printed = format!("{dealing:?}");
    for share in dealing.shares() {
        assert!(!printed.contains(&hex::encode(&share.encode()[2..])));
        assert!(!printed.contains(&share.expose().to_string()));
    }
}
