//! Partial keys and statements by a quorum are those of a KGC.

use quiver_ainq::{MasterSecret, Purpose, identity_statement};
use quiver_quorum::{
    Commitment, Error, QuorumParameters, QuorumSuite, SignatureShare, SigningPackage, dealer,
};

use crate::fixture::{World, identity, rng, three_of_five};
use crate::for_each_suite;

for_each_suite!(
    a_partial_key_of_a_quorum_verifies_as_that_of_a_single_kgc,
    a_statement_of_a_quorum_verifies_as_that_of_a_single_kgc,
    any_three_of_five_sign_and_two_do_not,
    everybody_who_spoilt_a_signature_is_named,
    a_kgc_signs_only_with_the_nonces_its_commitment_is_of,
    shares_of_another_version_do_not_sign,
    the_commitment_of_a_signature_is_known_before_it_is_made,
    a_single_kgc_becomes_a_quorum_under_the_same_key,
    shares_and_commitments_are_read_back_and_nothing_else_is,
);

fn a_partial_key_of_a_quorum_verifies_as_that_of_a_single_kgc<S: QuorumSuite>() {
    let mut world = World::<S>::new(1, three_of_five());
    let secret = world.secret_value();
    let message = identity_statement(&world.deployment, &identity(9).encode(), &secret.public());
    let (package, shares) = world.sign(&message, &[1, 3, 4]);
    let partial = world.public.aggregate_partial_key(&package, &shares).unwrap();
    assert_eq!(partial.encode().len(), S::SCALAR_LEN + S::POINT_LEN);
    let again = quiver_ainq::UnverifiedPartialKey::decode(&partial.encode()).unwrap();
    let keypair = partial.verify(&world.deployment, &identity(9), &secret).unwrap();
    assert_eq!(keypair.public().identity, identity(9));
    assert!(again.verify(&world.deployment, &identity(8), &secret).is_err(), "made for another identity");
}

fn a_statement_of_a_quorum_verifies_as_that_of_a_single_kgc<S: QuorumSuite>() {
    let mut world = World::<S>::new(2, three_of_five());
    let message = Purpose::Parameters.message(&world.deployment, b"body");
    let (package, shares) = world.sign(&message, &[2, 3, 5]);
    let statement = world.public.aggregate_statement(&package, &shares).unwrap();
    statement.verify(&world.deployment, Purpose::Parameters, b"body").unwrap();
    assert!(statement.verify(&world.deployment, Purpose::Parameters, b"bodies").is_err());
    assert!(statement.verify(&world.deployment, Purpose::Revocation, b"body").is_err());
}

fn any_three_of_five_sign_and_two_do_not<S: QuorumSuite>() {
    let mut world = World::<S>::new(3, three_of_five());
    for kgcs in [&[1, 2, 3][..], &[3, 4, 5], &[5, 1, 4], &[1, 2, 3, 4], &[1, 2, 3, 4, 5]] {
        let (package, shares) = world.sign(b"message", kgcs);
        world.public.aggregate_statement(&package, &shares).unwrap();
    }
    let (nonces, commitment) = world.share(1).commit(&mut rng(0)).unwrap();
    let package = SigningPackage::new(0, b"message".to_vec(), [(1, commitment), (2, commitment)]).unwrap();
    let too_few = Error::WrongNumber { actual: 2, threshold: 3 };
    assert_eq!(world.share(1).sign(nonces, &package).unwrap_err(), too_few);
    assert_eq!(world.public.aggregate_statement(&package, &[].into()).unwrap_err(), too_few);
}

fn everybody_who_spoilt_a_signature_is_named<S: QuorumSuite>() {
    let mut world = World::<S>::new(4, three_of_five());
    let (package, shares) = world.sign(b"message", &[1, 2, 4, 5]);
    let (_, others) = world.sign(b"another message", &[1, 2, 4, 5]);
    let copy = |share: &SignatureShare<S>| SignatureShare::decode(&share.encode()).unwrap();
    for culprits in [&[1][..], &[5], &[2, 4], &[1, 2, 4, 5]] {
        let spoilt = shares
            .iter()
            .map(|(kgc, share)| (*kgc, copy(if culprits.contains(kgc) { &others[kgc] } else { share })));
        let error = world.public.aggregate_statement(&package, &spoilt.collect()).unwrap_err();
        assert_eq!(error.culprits(), culprits);
        assert!(matches!(error, Error::InvalidSignatureShares { .. }));
    }
    let mut incomplete: std::collections::BTreeMap<_, _> =
        shares.iter().map(|(kgc, share)| (*kgc, copy(share))).collect();
    incomplete.remove(&4);
    let error = world.public.aggregate_statement(&package, &incomplete).unwrap_err();
    assert_eq!(error, Error::Incomplete { missing: vec![4] });
    incomplete.insert(3, copy(&shares[&1]));
    assert_eq!(world.public.aggregate_statement(&package, &incomplete).unwrap_err(), Error::UnknownKgc(3));
}

fn a_kgc_signs_only_with_the_nonces_its_commitment_is_of<S: QuorumSuite>() {
    let mut world = World::<S>::new(5, three_of_five());
    let (package, _) = world.sign(b"message", &[1, 2, 3]);
    let (fresh, _) = world.share(1).commit(&mut rng(0)).unwrap();
    assert_eq!(world.share(1).sign(fresh, &package).unwrap_err(), Error::WrongCommitment);
    let (fresh, _) = world.share(4).commit(&mut rng(0)).unwrap();
    assert_eq!(world.share(4).sign(fresh, &package).unwrap_err(), Error::WrongCommitment);
    let (fresh, own) = world.share(4).commit(&mut rng(0)).unwrap();
    let strangers = SigningPackage::new(0, Vec::new(), [(1, own), (4, own), (6, own)]).unwrap();
    assert_eq!(world.share(4).sign(fresh, &strangers).unwrap_err(), Error::UnknownKgc(6));
    assert_eq!(SigningPackage::new(0, Vec::new(), [(1, own), (1, own)]).unwrap_err(), Error::DuplicateKgc(1));
    assert_eq!(SigningPackage::new(0, Vec::new(), [(0, own)]).unwrap_err(), Error::UnknownKgc(0));
    assert_eq!(SigningPackage::new(0, Vec::new(), [(65, own)]).unwrap_err(), Error::UnknownKgc(65));
}

fn shares_of_another_version_do_not_sign<S: QuorumSuite>() {
    let world = World::<S>::new(6, three_of_five());
    let (nonces, commitment) = world.share(1).commit(&mut rng(0)).unwrap();
    let commitments = [1, 2, 3].map(|kgc| (kgc, commitment));
    let package = SigningPackage::new(1, b"message".to_vec(), commitments).unwrap();
    let wrong = Error::WrongVersion { expected: 0, actual: 1 };
    assert_eq!(world.share(1).sign(nonces, &package).unwrap_err(), wrong);
    assert_eq!(world.public.aggregate_statement(&package, &[].into()).unwrap_err(), wrong);
}

fn the_commitment_of_a_signature_is_known_before_it_is_made<S: QuorumSuite>() {
    let mut world = World::<S>::new(7, three_of_five());
    let (package, shares) = world.sign(b"message", &[2, 4, 5]);
    let partial = world.public.aggregate_partial_key(&package, &shares).unwrap();
    assert_eq!(package.commitment(world.public.master()).unwrap(), *partial.r());
    let (other, _) = world.sign(b"message", &[2, 4, 5]);
    assert_ne!(package.digest(), other.digest());
    assert_ne!(other.commitment(world.public.master()).unwrap(), *partial.r());
}

fn a_single_kgc_becomes_a_quorum_under_the_same_key<S: QuorumSuite>() {
    let mut rng = rng(8);
    let master = MasterSecret::<S>::generate(&mut rng);
    let (shares, public) = dealer::split(&master, QuorumParameters::new(3, 2).unwrap(), &mut rng).unwrap();
    assert_eq!(*public.master(), master.public());
    let mut world = World::of(shares, public, rng);
    let message = Purpose::Revocation.message(&world.deployment, b"list");
    let (package, shares) = world.sign(&message, &[3, 1]);
    let statement = world.public.aggregate_statement(&package, &shares).unwrap();
    statement.verify(&world.deployment, Purpose::Revocation, b"list").unwrap();
}

fn shares_and_commitments_are_read_back_and_nothing_else_is<S: QuorumSuite>() {
    let mut world = World::<S>::new(9, three_of_five());
    let (package, shares) = world.sign(b"message", &[1, 2, 3]);
    let bytes = package.commitments()[&1].encode();
    assert_eq!(bytes.len(), Commitment::<S>::LEN);
    assert_eq!(Commitment::<S>::decode(&bytes).unwrap(), package.commitments()[&1]);
    assert!(Commitment::<S>::decode(&bytes[1..]).is_err());
    assert!(Commitment::<S>::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    assert!(Commitment::<S>::decode(&vec![0xff; bytes.len()]).is_err());
    let bytes = shares[&1].encode();
    assert_eq!(SignatureShare::<S>::decode(&bytes).unwrap(), shares[&1]);
    assert_ne!(shares[&1], shares[&2]);
    assert!(SignatureShare::<S>::decode(&bytes[1..]).is_err());
    assert_eq!(SignatureShare::<S>::decode(&[0xff; 32]).unwrap_err(), Error::InvalidScalar);
}
