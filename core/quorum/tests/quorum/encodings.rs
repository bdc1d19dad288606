//! Stored and signed values are read back exactly, and no inconsistent one is.

use proptest::prelude::*;
use quiver_ainq::{Element, Ristretto255, Suite};
use quiver_quorum::dkg::Resumed;
use quiver_quorum::{
    Commitment, Error, MAX_MEMBERS, PublicShares, QuorumParameters, QuorumSuite, SecretShare,
};

use crate::fixture::{World, rng, three_of_five};
use crate::for_each_suite;
use crate::plain::Plain;

for_each_suite!(
    public_shares_are_read_back,
    public_shares_that_are_no_polynomial_are_refused,
    a_secret_share_is_read_back_and_fits_only_its_own_quorum,
    nothing_secret_is_printed,
);

fn public_shares_are_read_back<S: QuorumSuite>() {
    for (n, t) in [(2, 2), (3, 2), (5, 3), (64, 33)] {
        let world = World::<S>::new(1, QuorumParameters::new(n, t).unwrap());
        let bytes = world.public.encode();
        assert_eq!(bytes.len(), PublicShares::<S>::encoded_len(world.public.parameters()));
        assert!(bytes.len() <= PublicShares::<S>::max_len());
        let read = PublicShares::<S>::decode(&bytes).unwrap();
        assert_eq!((read.digest(), &read), (world.public.digest(), &world.public));
        assert!(PublicShares::<S>::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(PublicShares::<S>::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    }
}

fn public_shares_that_are_no_polynomial_are_refused<S: QuorumSuite>() {
    let world = World::<S>::new(2, three_of_five());
    let shares: Vec<Element<S>> = world.public.shares().map(|(_, share)| *share).collect();
    let put = |master, shares| PublicShares::<S>::new(three_of_five(), 0, master, shares);
    let master = *world.public.master();
    assert_eq!(put(master, shares.clone()).unwrap(), world.public);
    assert_eq!(put(shares[0], shares.clone()).unwrap_err(), Error::InconsistentShares, "another key");
    for i in 0..5 {
        let mut spoilt = shares.clone();
        spoilt[i] = master;
        assert_eq!(put(master, spoilt).unwrap_err(), Error::InconsistentShares, "share {i}");
    }
    let mut swapped = shares.clone();
    swapped.swap(1, 3);
    assert_eq!(put(master, swapped).unwrap_err(), Error::InconsistentShares);
    assert!(matches!(put(master, shares[1..].to_vec()).unwrap_err(), Error::WrongNumber { actual: 4, .. }));
    // A polynomial of a higher degree is consistent for a higher threshold alone, one of a lower degree for
    // both.
    let higher = QuorumParameters::new(5, 4).unwrap();
    assert!(PublicShares::<S>::new(higher, 0, master, shares).is_ok());
    let four = World::<S>::new(3, higher);
    let shares = four.public.shares().map(|(_, share)| *share).collect();
    assert_eq!(put(*four.public.master(), shares).unwrap_err(), Error::InconsistentShares);
}

fn a_secret_share_is_read_back_and_fits_only_its_own_quorum<S: QuorumSuite>() {
    let (world, other) = (World::<S>::new(4, three_of_five()), World::<S>::new(5, three_of_five()));
    for share in &world.shares {
        let bytes = share.encode();
        assert_eq!(bytes.len(), SecretShare::<S>::encoded_len());
        let read = SecretShare::<S>::decode(&bytes).unwrap();
        assert_eq!((read.encode(), read.expose()), (share.encode(), share.expose()));
        assert_eq!(read.public(), world.public.share(share.kgc()).unwrap());
        read.matches(&world.public).unwrap();
        assert_eq!(read.matches(&other.public).unwrap_err(), Error::WrongQuorum);
        assert!(SecretShare::<S>::decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(SecretShare::<S>::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
        assert!(PublicShares::<S>::decode(&bytes).is_err());
        let scalar = S::scalar_decode(&share.expose()).unwrap();
        assert_eq!(S::encode(&S::mul_base(&scalar)).as_ref(), share.public().as_bytes(), "little-endian");
    }
    assert_eq!(world.public.share(0).unwrap_err(), Error::UnknownKgc(0));
    assert_eq!(world.public.share(6).unwrap_err(), Error::UnknownKgc(6));
}

fn nothing_secret_is_printed<S: QuorumSuite>() {
    let mut world = World::<S>::new(6, three_of_five());
    let (_, shares) = world.sign(b"message", &[1, 2, 3]);
    let (nonces, _) = world.share(1).commit(&mut rng(0)).unwrap();
    let printed = format!("{:?} {:?} {nonces:?}", world.shares[0], shares[&1]);
    for secret in [world.shares[0].expose(), shares[&1].encode()] {
        assert!(!printed.contains(&hex::encode(&*secret)));
        assert!(!printed.contains(&format!("{:?}", &secret[..4])[1..]));
    }
    assert_eq!(format!("{:?}", shares[&1]), "SignatureShare(32 bytes)");
}

#[test]
fn a_share_of_one_suite_is_none_of_another() {
    let world = World::<Ristretto255>::new(7, three_of_five());
    assert_eq!(SecretShare::<Plain>::decode(&world.shares[0].encode()).unwrap_err(), Error::WrongQuorum);
    assert_eq!(PublicShares::<Plain>::decode(&world.public.encode()).unwrap_err(), Error::WrongQuorum);
}

#[test]
fn only_numbers_that_make_a_quorum_are_taken() {
    for (n, t) in [(2, 2), (3, 2), (3, 3), (5, 3), (64, 33), (MAX_MEMBERS, 64)] {
        let parameters = QuorumParameters::new(n, t).unwrap();
        assert_eq!((parameters.members(), parameters.threshold()), (n, t));
        assert_eq!(parameters.kgcs().count(), usize::from(n));
    }
    for (n, t) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (64, 32), (65, 33), (3, 4), (u16::MAX, 40_000)] {
        let invalid = Error::InvalidParameters { members: n, threshold: t };
        assert_eq!(QuorumParameters::new(n, t).unwrap_err(), invalid);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(PublicShares::<Ristretto255>::decode(&bytes).is_err());
        prop_assert!(SecretShare::<Ristretto255>::decode(&bytes).is_err());
        prop_assert!(Resumed::<Ristretto255>::decode(&bytes).is_err());
        let _ = Commitment::<Ristretto255>::decode(&bytes);
    }

    #[test]
    fn public_shares_with_one_changed_bit_are_refused_or_name_another_version(bit in 0_usize..8 * 300) {
        let world = World::<Ristretto255>::new(8, three_of_five());
        let mut bytes = world.public.encode();
        let bit = bit % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(read) = PublicShares::<Ristretto255>::decode(&bytes) {
            prop_assert_ne!(read.version(), world.public.version());
            prop_assert_eq!(read.master(), world.public.master());
        }
    }

    #[test]
    fn any_quorum_of_any_size_signs(seed: u64, n in 2_u16..9, extra in 0_u16..8) {
        let t = n / 2 + 1;
        let parameters = QuorumParameters::new(n, (t + extra).min(n).max(2)).unwrap();
        let mut world = World::<Ristretto255>::new(seed, parameters);
        let kgcs: Vec<_> = parameters.kgcs().skip(usize::from(n - parameters.threshold())).collect();
        let (package, shares) = world.sign(&seed.to_be_bytes(), &kgcs);
        let partial = world.public.aggregate_partial_key(&package, &shares).unwrap();
        prop_assert_eq!(package.commitment(world.public.master()).unwrap(), *partial.r());
        prop_assert_eq!(partial.encode().len(), Ristretto255::SCALAR_LEN + Ristretto255::POINT_LEN);
    }
}
