//! The attack on YCT14, carried out: two keys for one conjunction give the key for either attribute alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../tests/conformance/fixture.rs"]
#[allow(dead_code, reason = "the suite that every scheme passes uses the rest")]
mod fixture;

use curve25519_dalek::Scalar;
use quiver_abe::{AbeError, Scheme, SecretEncoding};
use quiver_yct14::InsecureYct14;

use self::fixture::{Case, Parts, World, key_of, policy, set};

/// The scalars of a key for two attributes.
fn scalars(key: &Parts) -> [Scalar; 2] {
    [0, 1].map(|place| {
        let bytes = key.elements[place].as_slice().try_into().unwrap();
        Option::<Scalar>::from(Scalar::from_canonical_bytes(bytes)).unwrap()
    })
}

/// Solves a·x + b·y = 1 and c·x + d·y = 1.
fn solve([a, b]: [Scalar; 2], [c, d]: [Scalar; 2]) -> [Scalar; 2] {
    let determinant = (a * d - b * c).invert();
    [(d - b) * determinant, (a - c) * determinant]
}

#[test]
fn two_keys_for_a_conjunction_give_the_key_for_either_attribute() {
    let mut world = World::<InsecureYct14>::new(1);
    let conjunction = policy("alpha and bravo");
    let nothing = set("hotel");
    // Two keys for the conjunction, honestly issued. Neither opens what carries alpha alone or bravo alone.
    let lengths = InsecureYct14::key_elements(&conjunction, &nothing);
    let keys = [(); 2].map(|()| world.key(&conjunction, &nothing));
    for attribute in ["alpha", "bravo"] {
        let (ciphertext, _) = world.sealed(&conjunction, &set(attribute));
        for key in &keys {
            let opened = InsecureYct14::decapsulate(&world.parameters, key, &ciphertext);
            assert_eq!(opened, Err(AbeError::NotSatisfied));
        }
    }

    // D_1·(s_1/s) + D_2·(s_2/s) = 1, twice: everything below uses the contents of the two keys and nothing
    // else.
    let [one, other] = keys.map(|key| Parts::of(&key.encode(), &lengths));
    let quotients = solve(scalars(&one), scalars(&other));

    for (attribute, quotient) in ["alpha", "bravo"].into_iter().zip(quotients) {
        // The key that was never issued: s / s_i, the whole secret as the only share.
        let leaf = quotient.invert().to_bytes().to_vec();
        let forged = key_of::<InsecureYct14>(&one.forged(&policy(attribute), &[&leaf]));
        // It opens every ciphertext with the attribute.
        for carried in [attribute.to_owned(), format!("{attribute}, charlie, altitude = 9")] {
            let (ciphertext, secret) = world.sealed(&conjunction, &set(&carried));
            let opened = InsecureYct14::decapsulate(&world.parameters, &forged, &ciphertext);
            assert_eq!(opened, Ok(secret), "the attack works");
        }
        // The authority itself would have issued that very key.
        let honest = world.key(&policy(attribute), &nothing);
        assert_eq!(honest.encode(), forged.encode());
    }
}

#[test]
fn one_key_for_a_conjunction_is_one_equation_and_gives_neither() {
    let mut world = World::<InsecureYct14>::new(2);
    let conjunction = policy("alpha and bravo");
    let lengths = InsecureYct14::key_elements(&conjunction, &set("alpha"));
    let key = Parts::of(&world.key(&conjunction, &set("alpha")).encode(), &lengths);
    let [a, b] = scalars(&key);
    // The same equation twice has no solution: its determinant is zero.
    assert_eq!(a * b - b * a, Scalar::ZERO);
    let (ciphertext, secret) = world.sealed(&conjunction, &set("alpha"));
    for leaf in [a, a + b, a - b] {
        let forged = key_of::<InsecureYct14>(&key.forged(&policy("alpha"), &[&leaf.to_bytes().to_vec()]));
        assert_ne!(InsecureYct14::decapsulate(&world.parameters, &forged, &ciphertext).unwrap(), secret);
    }
}
