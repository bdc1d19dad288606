//! Attribute-selective encryption: the halves that a credential decrypts, and those that it does not.

use ark_bls12_381::{Fq, Fr, G1Affine};
use ark_ec::{AffineRepr as _, CurveGroup as _};
use ark_ff::{BigInteger as _, PrimeField as _};
use quiver_abke::{
    AbkeCiphertext, Authority, Credential, Effort, Error, PointLabel, Presentation, PublicKey, Randomness,
    UnverifiedCredential, UnverifiedPublicKey, Verifier,
};
use quiver_crypto::Secret;
use quiver_pairing::{G1_COFACTOR, PairingError};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const ATTRIBUTES: [bool; 5] = [true, false, false, true, true];

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn authority(seed: u8) -> (Authority, Verifier) {
    let authority = Authority::derive(&Secret::new([seed; 32]), 7, ATTRIBUTES.len()).unwrap();
    let verifier = Verifier::new(authority.key().clone());
    (authority, verifier)
}

fn credential(seed: u8) -> Credential {
    authority(1).0.certify(&ATTRIBUTES, &mut rng(seed)).unwrap()
}

fn received(key: &Presentation) -> UnverifiedPublicKey {
    UnverifiedPublicKey::decode(key.encoded(), ATTRIBUTES.len()).unwrap()
}

fn verified(key: &Presentation) -> PublicKey {
    authority(1).1.verify(received(key), &mut rng(9)).unwrap()
}

#[test]
fn credential_reads_the_half_that_its_attribute_selects() {
    let key = credential(2).unlink(&mut rng(3));
    let randomness = Randomness::derive(&Secret::new([5; 32]), &[6; 32], ATTRIBUTES.len());
    let plaintexts = randomness.plaintexts();
    let ciphertext = AbkeCiphertext::encrypt(&verified(&key), &randomness, &plaintexts).unwrap();
    let received = AbkeCiphertext::decode(&ciphertext.encode(), ATTRIBUTES.len()).unwrap();
    let read = received.decrypt(&key).unwrap();
    for ((attribute, pair), read) in ATTRIBUTES.iter().zip(plaintexts.iter()).zip(read.iter()) {
        assert!(pair[usize::from(*attribute)] == *read && pair[usize::from(!attribute)] != *read);
    }
    assert!(received.follows_from(&randomness, &key, &mut rng(4)).unwrap());
}

#[test]
fn batch_names_the_keys_that_nobody_signed() {
    let verifier = authority(1).1;
    let (other, _) = authority(8);
    let mut keys: Vec<_> =
        (0..7).map(|seed| received(&credential(seed).unlink(&mut rng(30 + seed)))).collect();
    for at in [1, 6] {
        let stranger = other.certify(&ATTRIBUTES, &mut rng(50)).unwrap();
        keys[at] = received(&stranger.unlink(&mut rng(51)));
    }
    let verdicts: Vec<bool> =
        verifier.verify_batch(keys, &mut rng(60)).into_iter().map(|verdict| verdict.is_ok()).collect();
    assert_eq!(verdicts, [true, false, true, true, true, true, false]);
}

#[test]
fn credential_survives_being_encoded() {
    let (credential, verifier) = (credential(2), authority(1).1);
    let encoded = credential.encode();
    assert_eq!(encoded.len(), Credential::encoded_len(ATTRIBUTES.len()));
    let read = UnverifiedCredential::decode(&encoded).unwrap().verify(&verifier, &mut rng(1)).unwrap();
    assert_eq!(read.encode(), encoded);
    assert_eq!(read.attributes(), ATTRIBUTES);
}

#[test]
fn credential_of_another_authority_is_refused() {
    let credential = UnverifiedCredential::decode(&credential(2).encode()).unwrap();
    let refused = credential.verify(&authority(8).1, &mut rng(1));
    assert_eq!(refused.unwrap_err(), Error::OtherAuthority);
}

#[test]
fn two_presentations_have_no_point_in_common() {
    let credential = credential(2);
    let [one, other] = [3, 4].map(|seed| credential.unlink(&mut rng(seed)));
    for place in 0..one.encoded().len() / 96 {
        let range = place * 96..(place + 1) * 96;
        assert_ne!(one.encoded()[range.clone()], other.encoded()[range]);
    }
    assert_eq!(one.encoded().len(), UnverifiedPublicKey::encoded_len(ATTRIBUTES.len()));
}

/// A batch of so many keys that the sums of their points are computed otherwise than those of a few.
#[test]
fn large_batch_names_the_keys_that_were_altered_and_takes_parts_of_small_order_off_the_others() {
    let (verifier, m) = (authority(1).1, ATTRIBUTES.len());
    let three = G1Affine::new_unchecked(Fq::from(0), Fq::from(2));
    let credential = credential(2);
    let (u, e, signature) = (2, 3, m + 6);
    let altered = |at: usize| {
        let mut key = credential.unlink(&mut rng(100 + at as u8)).encoded().to_vec();
        match at {
            // One attribute, one signature, and two of either in the place of each other.
            7 => key.copy_within(e * 96..(e + 1) * 96, (e + 1) * 96),
            11 => key.copy_within(signature * 96..(signature + 1) * 96, (signature + 1) * 96),
            // A point of order three alone, as the attribute and as its signature.
            23 => write(&mut key, e + 4, three),
            24 => write(&mut key, signature + 4, three),
            // −u, with what is a signature of the identity.
            31 => {
                let opposite = -read(&key, u);
                write(&mut key, e + 1, opposite);
                write(&mut key, signature + 1, three);
            }
            // Such parts in good points, which both sides drop.
            40 => (0..2 * m + 6).for_each(|point| add(&mut key, point, three)),
            41 => add(&mut key, e + 2, -three),
            69 => add(&mut key, signature + 2, three),
            _ => {}
        }
        UnverifiedPublicKey::decode(&key, m).unwrap()
    };
    let verdicts = verifier.verify_batch((0..70).map(altered).collect(), &mut rng(9));
    let point = |element, reason| Error::InvalidPoint { element, reason };
    for (at, verdict) in verdicts.into_iter().enumerate() {
        let wanted = match at {
            7 | 11 | 24 => Some(Error::InvalidSignature),
            23 => Some(point(PointLabel::Key(e + 4), PairingError::WrongSubgroup)),
            31 => Some(point(PointLabel::Signed(1), PairingError::Identity)),
            _ => None,
        };
        assert_eq!(verdict.err(), wanted, "{at}");
    }
}

/// A point of small order in one half, or in two that cancel out, which a check of sums would let pass.
#[test]
fn one_half_outside_the_group_is_named_among_many() {
    let m = 80;
    let (verifier, keys) = keys(m, 1, 0);
    let key = verifier.verify_batch(keys, &mut rng(9)).pop().unwrap().unwrap();
    let randomness = Randomness::derive(&Secret::new([5; 32]), &[6; 32], m);
    let ciphertext = AbkeCiphertext::encrypt(&key, &randomness, &randomness.plaintexts()).unwrap().encode();
    assert!(AbkeCiphertext::decode(&ciphertext, m).is_ok());
    for order in [3, 11, 10_177, 859_267, 52_437_899] {
        let torsion = of_order(order);
        for (point, other) in [(2, None), (3, Some(2)), (77, Some(161)), (161, None)] {
            let mut altered = ciphertext.clone();
            add(&mut altered, point, torsion);
            if let Some(other) = other {
                add(&mut altered, other, -torsion);
            }
            let element = PointLabel::Ciphertext(other.map_or(point, |other| point.min(other)));
            let wanted = Error::InvalidPoint { element, reason: PairingError::WrongSubgroup };
            assert_eq!(AbkeCiphertext::decode(&altered, m).unwrap_err(), wanted, "{order}");
        }
    }
}

/// A point of this prime order, which divides the cofactor once squared.
fn of_order(order: u64) -> G1Affine {
    let points = (1_u64..).filter_map(|x| G1Affine::get_point_from_x_unchecked(Fq::from(x), false));
    let cleared = |point: G1Affine| {
        let torsion = point.mul_bigint(Fr::MODULUS).into_affine();
        torsion.mul_bigint([G1_COFACTOR / order]).into_affine()
    };
    let found = points.map(cleared).find(|point| !point.is_zero()).unwrap();
    assert!(found.mul_bigint([order]).into_affine().is_zero());
    found
}

fn read(bytes: &[u8], at: usize) -> G1Affine {
    let (x, y) = bytes[96 * at..96 * (at + 1)].split_at(48);
    G1Affine::new_unchecked(Fq::from_be_bytes_mod_order(x), Fq::from_be_bytes_mod_order(y))
}

fn write(bytes: &mut [u8], at: usize, point: G1Affine) {
    let (x, y) = point.xy().unwrap();
    bytes[96 * at..96 * (at + 1)]
        .copy_from_slice(&[x, y].map(|coordinate| coordinate.into_bigint().to_bytes_be()).concat());
}

/// Adds a point to the one in this place.
fn add(bytes: &mut [u8], at: usize, point: G1Affine) {
    let sum = (read(bytes, at) + point).into_affine();
    write(bytes, at, sum);
}

/// Authority's verifier and keys of so many attributes, the first few of which it signed.
fn keys(attributes: usize, signed: usize, foreign: usize) -> (Verifier, Vec<UnverifiedPublicKey>) {
    let bits: Vec<bool> = (0..attributes).map(|at| at % 3 == 0).collect();
    let [own, other] = [1, 8].map(|seed| Authority::derive(&Secret::new([seed; 32]), 7, attributes).unwrap());
    let issuers = core::iter::repeat_n(&own, signed).chain(core::iter::repeat_n(&other, foreign));
    let keys = issuers.zip(0..).map(|(issuer, seed)| {
        let key = issuer.certify(&bits, &mut rng(seed)).unwrap().unlink(&mut rng(100 + seed));
        UnverifiedPublicKey::decode(key.encoded(), attributes).unwrap()
    });
    let keys = keys.collect();
    (Verifier::new(own.key().clone()), keys)
}

#[test]
fn keys_that_nobody_signed_are_told_by_four_miller_loops_however_many_attributes_there_are() {
    for attributes in [1, 40] {
        let (verifier, keys) = keys(attributes, 0, 4);
        let (verdicts, effort) = verifier.verify_batch_counting(keys, &mut rng(9));
        assert!(verdicts.iter().all(|verdict| *verdict.as_ref().unwrap_err() == Error::InvalidSignature));
        // All at once, then each.
        assert_eq!(effort, Effort { miller_loops: 4 + 4 * 4, cleared: 0 });
    }
}

#[test]
fn good_keys_take_two_equations_and_forged_ones_beside_them_no_more_than_one_each() {
    let m = 40;
    let (verifier, good) = keys(m, 4, 0);
    let (verdicts, effort) = verifier.verify_batch_counting(good, &mut rng(9));
    assert!(verdicts.iter().all(Result::is_ok));
    assert_eq!(effort, Effort { miller_loops: 4 + (m + 1), cleared: 4 * m });
    let (_, mixed) = keys(m, 2, 2);
    let (verdicts, effort) = verifier.verify_batch_counting(mixed, &mut rng(9));
    assert_eq!(verdicts.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(effort, Effort { miller_loops: (4 + 4 * 4) + (m + 1), cleared: 2 * m });
}

/// An observer of a key has its first three signatures: the most that an attacker without a credential can
/// make the verifier compute.
#[test]
fn what_altered_attributes_cost_grows_with_the_number_of_keys_and_no_faster() {
    let m = 5;
    let keys: Vec<UnverifiedPublicKey> = (0..8)
        .map(|seed| {
            let key = credential(seed).unlink(&mut rng(30 + seed));
            let mut altered = key.encoded().to_vec();
            // e_1 in the place of e_2.
            altered.copy_within(3 * 96..4 * 96, 4 * 96);
            UnverifiedPublicKey::decode(&altered, m).unwrap()
        })
        .collect();
    let (verdicts, effort) = authority(1).1.verify_batch_counting(keys, &mut rng(9));
    assert!(verdicts.iter().all(|verdict| *verdict.as_ref().unwrap_err() == Error::InvalidSignature));
    assert_eq!(effort, Effort { miller_loops: 4 + (m + 1) * (1 + 8), cleared: 8 * m });
}
