//! Clients that want a key without the attributes.

use ark_bls12_381::G1Affine;
use ark_ec::{AffineRepr as _, CurveGroup as _};
use quiver_abke::{Authority, Client, Error, Hello, PointLabel};
use quiver_crypto::{Secret, prf};
use quiver_pairing::PairingError;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use crate::points::{add, of_order_three, put, read};
use crate::scene::*;

/// Points of a key: keys, then signatures.
const POINTS: usize = 2 * M + 6;

fn place(point: usize) -> usize {
    KEY + 96 * point
}

fn hello() -> Vec<u8> {
    offered(&inside(), 4).hello
}

fn verify(hello: &[u8]) -> Result<(), Error> {
    Hello::decode(hello, M)?.verify(&verifier(), &mut rng(9)).map(drop)
}

fn element(point: usize) -> PointLabel {
    if point < M + 3 { PointLabel::Key(point) } else { PointLabel::Signature(point - M - 3) }
}

#[test]
fn the_key_of_identities_is_refused() {
    let mut all = hello();
    (0..POINTS).for_each(|point| put(&mut all, place(point), &G1Affine::zero()));
    let reason = PairingError::Identity;
    assert_eq!(verify(&all), Err(Error::InvalidPoint { element: PointLabel::Key(0), reason }));
}

#[test]
fn a_key_with_one_identity_is_refused() {
    for point in 0..POINTS {
        let mut one = hello();
        put(&mut one, place(point), &G1Affine::zero());
        let reason = PairingError::Identity;
        assert_eq!(verify(&one), Err(Error::InvalidPoint { element: element(point), reason }));
    }
}

#[test]
fn the_key_of_points_of_order_three_is_refused() {
    let mut all = hello();
    (0..POINTS).for_each(|point| put(&mut all, place(point), &of_order_three()));
    let reason = PairingError::WrongSubgroup;
    assert_eq!(verify(&all), Err(Error::InvalidPoint { element: PointLabel::Key(0), reason }));
}

#[test]
fn a_key_with_one_point_of_order_three_is_refused() {
    for point in 0..POINTS {
        let mut one = hello();
        put(&mut one, place(point), &of_order_three());
        let wanted = match element(point) {
            PointLabel::Signature(_) => Error::InvalidSignature,
            element => Error::InvalidPoint { element, reason: PairingError::WrongSubgroup },
        };
        assert_eq!(verify(&one), Err(wanted), "{point}");
    }
}

/// A part of order three would pass a batched check for the subgroup one time in three. Here it is gone
/// before anything is computed with it, so that nothing depends on it.
#[test]
fn parts_of_order_three_in_a_key_are_removed() {
    for point in 0..POINTS {
        for seed in 0..2 {
            let (rng, policy) = (&mut rng(seed), geofence());
            let key = inside().unlink(rng);
            let (_, mut hello) = Client::start(&TERMS, policy.clone(), key, rng).unwrap();
            let untouched = Hello::decode(&hello, M).unwrap();
            add(&mut hello, place(point), &of_order_three());
            let touched = Hello::decode(&hello, M).unwrap();
            for hello in [untouched, touched] {
                assert!(hello.verify(&verifier(), rng).is_ok());
            }
        }
    }
}

#[test]
fn points_that_are_none_are_refused() {
    for point in 0..POINTS {
        let mut off = hello();
        off[place(point) + 95] ^= 1;
        let reason = PairingError::NotOnCurve;
        assert_eq!(verify(&off), Err(Error::InvalidPoint { element: element(point), reason }));
        let mut flagged = hello();
        flagged[place(point)] |= 0x80;
        let reason = PairingError::NotCanonical;
        assert_eq!(verify(&flagged), Err(Error::InvalidPoint { element: element(point), reason }));
    }
}

/// The authority's signature for it would be on the identity, of which everybody has one.
#[test]
fn the_opposite_of_u_is_no_attribute() {
    for attribute in 0..M {
        let mut forged = hello();
        let u = read(&forged[place(2)..place(3)]);
        put(&mut forged, place(3 + attribute), &-u);
        let reason = PairingError::Identity;
        assert_eq!(
            verify(&forged),
            Err(Error::InvalidPoint { element: PointLabel::Signed(attribute), reason })
        );
    }
}

#[test]
fn a_credential_altered_in_one_slot_is_refused() {
    let other = offered(&credential(&attributes(3, true, 2)), 5).hello;
    for point in 0..POINTS {
        let mut altered = hello();
        let range = place(point)..place(point + 1);
        altered[range.clone()].copy_from_slice(&other[range.clone()]);
        assert_eq!(verify(&altered), Err(Error::InvalidSignature), "{point} of another credential");
        let mut doubled = hello();
        let own = read(&doubled[range]);
        put(&mut doubled, place(point), &(own + own).into_affine());
        assert_eq!(verify(&doubled), Err(Error::InvalidSignature), "{point} doubled");
    }
}

#[test]
fn an_attribute_in_the_place_of_another_is_refused() {
    let mut swapped = hello();
    for (one, other) in [(place(3), place(4)), (place(M + 6), place(M + 7))] {
        let kept = swapped[one..one + 96].to_vec();
        swapped.copy_within(other..other + 96, one);
        swapped[other..other + 96].copy_from_slice(&kept);
    }
    assert_eq!(verify(&swapped), Err(Error::InvalidSignature));
}

/// Every attribute that the one lacks, of the other.
#[test]
fn two_credentials_do_not_add_up() {
    let [mut one, other] = [4, 5].map(|seed| {
        let credential = credential(&attributes(if seed == 4 { 12 } else { 3 }, seed == 5, 3));
        offered(&credential, seed).hello
    });
    for point in 0..POINTS {
        let point_of_other = read(&other[place(point)..place(point + 1)]);
        add(&mut one, place(point), &point_of_other);
    }
    // All signatures are linear, so the sum is signed; but no attribute's point is a known multiple of
    // anything.
    assert_eq!(verify(&one), Ok(()));
    let verified = Hello::decode(&one, M).unwrap().verify(&verifier(), &mut rng(9)).unwrap();
    assert!(verified.offer(&TERMS, geofence(), &mut rng(9), |_| Vec::new()).is_ok());
}

#[test]
fn a_credential_of_another_authority_or_period_is_refused() {
    let others = [([1; 32], 4), ([2; 32], 3)];
    for (seed, period) in others {
        let authority = Authority::derive(&Secret::new(seed), period, M).unwrap();
        let credential = authority.certify(&attributes(12, true, 0), &mut rng(2)).unwrap();
        let (rng, policy) = (&mut rng(3), geofence());
        let (_, hello) = Client::start(&TERMS, policy, credential.unlink(rng), rng).unwrap();
        assert_eq!(verify(&hello), Err(Error::InvalidSignature));
    }
}

#[test]
fn a_hello_of_another_length_is_refused_before_anything_is_computed() {
    let hello = hello();
    for len in [0, 1, 33, hello.len() - 96, hello.len() - 1] {
        assert!(matches!(Hello::decode(&hello[..len], M), Err(Error::Malformed(_) | Error::Unexpected(_))));
    }
    let longer = [&hello[..], &[0]].concat();
    assert_eq!(Hello::decode(&longer, M).unwrap_err(), Error::Malformed("a hello of another length"));
    assert!(Hello::decode(&hello, M + 1).is_err() && Hello::decode(&hello, M - 1).is_err());
}

#[test]
fn an_ephemeral_key_that_is_none_is_refused() {
    for bytes in [[0; 32], [0xff; 32]] {
        let mut hello = hello();
        hello[1..33].copy_from_slice(&bytes);
        let refused = Hello::decode(&hello, M).unwrap_err();
        assert!(matches!(refused, Error::InvalidPoint { element: PointLabel::Ephemeral, .. }));
    }
}

/// The label for yes, which follows from the seeds: Δ is the first that is drawn.
fn other_label(label: &[u8], seeds: &[u8], context: &[u8; 32]) -> [u8; 16] {
    let seed = Secret::try_from(&seeds[33..65]).unwrap();
    let seed = prf(&seed, "QUIVER-ABKE-v1", "garbling", &[context]);
    let mut delta = [0; 16];
    ChaCha20Rng::from_seed(*seed.expose()).fill_bytes(&mut delta);
    delta[0] |= 1;
    std::array::from_fn(|at| label[at] ^ delta[at])
}

#[test]
fn the_label_that_says_yes_is_of_no_use_once_the_seeds_are_known() {
    let mut context = [0; 32];
    let offered = offered(&outside(), 4);
    let mut evaluating = offered
        .client
        .offer(&offered.offer, |signed, _| {
            context = *signed;
            true
        })
        .unwrap();
    evaluating.tables(&offered.tables).unwrap();
    let (client, commitment) = evaluating.commit(&mut rng(50)).unwrap();
    let (server, seeds) = offered.server.commitment(&commitment).unwrap();
    let (_, opening) = client.open(&seeds, &mut rng(51)).unwrap();
    let yes = other_label(&opening[1..17], &seeds, &context);
    let forged = [&opening[..1], &yes, &opening[17..]].concat();
    assert_eq!(server.opening(&forged).unwrap_err(), Error::InvalidOpening);
}

#[test]
fn an_opening_with_any_byte_changed_is_refused() {
    for byte in [0, 1, 9, 16, 17, 30, 48, 49, 60, 80] {
        let mut opening = offered(&inside(), 4).commit().open();
        opening.opening[byte] ^= 0x10;
        let refused = opening.server.opening(&opening.opening).unwrap_err();
        let wanted = match byte {
            0 => Error::Unexpected("an opening was expected"),
            1..49 => Error::InvalidOpening,
            _ => Error::Unconfirmed,
        };
        assert_eq!(refused, wanted, "{byte}");
    }
}
