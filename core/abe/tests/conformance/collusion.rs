//! Keys that would open together, taken apart and put together again.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use quiver_abe::{AbeError, FabeoCp, FabeoKp, Gpsw06, Scheme, SecretEncoding};
use quiver_policy::{AccessTree, AttributeSet};

use crate::fixture::{Case, NAMES, Parts, World, ciphertext_of, key_of, policy, set};
use crate::for_each_scheme;

for_each_scheme![
    two_keys_for_the_same_terms_cannot_be_mixed,
    keys_derived_twice_share_no_element,
    encapsulations_share_no_element,
];

/// A conjunction of the first `count` names, of which every element of either side is needed.
fn conjunction(count: usize) -> (AccessTree, AttributeSet) {
    (policy(&NAMES[..count].join(" and ")), set(&NAMES[..count].join(", ")))
}

/// Every mixture of the elements of two keys: the keys are randomised apart.
fn two_keys_for_the_same_terms_cannot_be_mixed<S: Case>() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(60), rng);
    runner
        .run(&(2..=NAMES.len(), any::<u64>(), any::<u64>()), |(count, seed, mask)| {
            let (tree, attributes) = conjunction(count);
            let mut world = World::<S>::new(seed);
            let lengths = S::key_elements(&tree, &attributes);
            let [one, other] = [(); 2].map(|()| Parts::of(&world.key(&tree, &attributes).encode(), &lengths));
            let (ciphertext, secret) = world.sealed(&tree, &attributes);
            let open =
                |parts: &Parts| S::decapsulate(&world.parameters, &key_of::<S>(&parts.join()), &ciphertext);
            prop_assert!(open(&one).unwrap() == secret && open(&other).unwrap() == secret);

            let mut mixed = one;
            for (place, element) in other.elements.iter().enumerate() {
                if mask >> place & 1 == 1 {
                    mixed.elements[place].clone_from(element);
                }
            }
            let all = (1_u64 << lengths.len()) - 1;
            prop_assert_eq!(
                open(&mixed).unwrap() == secret,
                matches!(mask & all, chosen if chosen == 0 || chosen == all)
            );
            Ok(())
        })
        .unwrap();
}

/// Encoded elements of two values, none of which may occur in both.
fn disjoint(one: &Parts, other: &Parts) -> bool {
    one.elements.iter().all(|element| !other.elements.contains(element))
}

fn keys_derived_twice_share_no_element<S: Case>() {
    let mut world = World::<S>::new(1);
    // A policy of one leaf is left out, whose share is the whole secret: GPSW and YCT have one key for it.
    let (tree, attributes) = conjunction(3);
    let lengths = S::key_elements(&tree, &attributes);
    let [one, other] = [(); 2].map(|()| Parts::of(&world.key(&tree, &attributes).encode(), &lengths));
    assert!(disjoint(&one, &other));
}

fn encapsulations_share_no_element<S: Case>() {
    let mut world = World::<S>::new(2);
    let (tree, attributes) = conjunction(3);
    let lengths = S::ciphertext_elements(&tree, &attributes);
    let [one, other] = [(); 2].map(|()| world.sealed(&tree, &attributes));
    assert_ne!(one.1, other.1);
    let [one, other] =
        [one, other].map(|(sealed, _)| Parts::of(&quiver_abe::PublicEncoding::encode(&sealed), &lengths));
    assert!(disjoint(&one, &other));
}

/// Alice may read alpha and bravo, Bob charlie and delta. A ciphertext about alpha and charlie is for
/// neither; together they hold a leaf for each.
fn key_policies_of_two_holders_do_not_add_up<
    S: Case<KeyTerms = AccessTree, CiphertextTerms = AttributeSet>,
>() {
    let mut world = World::<S>::new(3);
    let (for_alice, for_bob) = (policy("alpha and bravo"), policy("charlie and delta"));
    let about = set("alpha, charlie");
    let lengths = S::key_elements(&for_alice, &about);
    let alice = world.key(&for_alice, &about);
    let bob = world.key(&for_bob, &about);
    let (ciphertext, secret) = world.sealed(&for_alice, &about);
    for key in [&alice, &bob] {
        assert_eq!(S::decapsulate(&world.parameters, key, &ciphertext), Err(AbeError::NotSatisfied));
    }
    let (alice, bob) = (Parts::of(&alice.encode(), &lengths), Parts::of(&bob.encode(), &lengths));
    let wanted = policy("alpha and charlie");
    // The elements beside the leaves, if there are any, may come from either.
    for rest in [&alice.elements[2..], &bob.elements[2..]] {
        let elements: Vec<_> = [&alice.elements[0], &bob.elements[0]].into_iter().chain(rest).collect();
        let forged = key_of::<S>(&alice.forged(&wanted, &elements));
        let opened = S::decapsulate(&world.parameters, &forged, &ciphertext).unwrap();
        assert_ne!(opened, secret);
    }
    // A key that was issued for it does open.
    let honest = world.key(&wanted, &about);
    assert_eq!(S::decapsulate(&world.parameters, &honest, &ciphertext), Ok(secret));
}

#[test]
fn gpsw06_keys_of_two_holders_do_not_add_up() {
    key_policies_of_two_holders_do_not_add_up::<Gpsw06>();
}

#[test]
fn fabeo22_kp_keys_of_two_holders_do_not_add_up() {
    key_policies_of_two_holders_do_not_add_up::<FabeoKp>();
}

/// Alice is alpha, Bob is bravo; an order is for a drone with both.
#[test]
fn fabeo22_cp_keys_of_two_holders_do_not_add_up() {
    let mut world = World::<FabeoCp>::new(4);
    let order = policy("alpha and bravo");
    let (of_alice, of_bob) = (set("alpha"), set("bravo"));
    let (alice, bob) = (world.key(&order, &of_alice), world.key(&order, &of_bob));
    let (ciphertext, secret) = world.sealed(&order, &of_alice);
    for key in [&alice, &bob] {
        assert_eq!(FabeoCp::decapsulate(&world.parameters, key, &ciphertext), Err(AbeError::NotSatisfied));
    }
    let lengths = FabeoCp::key_elements(&order, &of_alice);
    let (alice, bob) = (Parts::of(&alice.encode(), &lengths), Parts::of(&bob.encode(), &lengths));
    let both = set("alpha, bravo");
    // sk1, sk2 of alpha, sk2 of bravo, sk3: the attributes' from their holders, the others from either.
    for (first, last) in [(&alice, &alice), (&alice, &bob), (&bob, &alice), (&bob, &bob)] {
        let elements = [&first.elements[0], &alice.elements[1], &bob.elements[1], &last.elements[2]];
        let forged = key_of::<FabeoCp>(&alice.forged(&both, &elements));
        assert_ne!(FabeoCp::decapsulate(&world.parameters, &forged, &ciphertext).unwrap(), secret);
    }
    let honest = world.key(&order, &both);
    assert_eq!(FabeoCp::decapsulate(&world.parameters, &honest, &ciphertext), Ok(secret));
}

/// A thief who relabels a ciphertext with a policy that he satisfies gets another secret, because the policy
/// is in it.
#[test]
fn a_ciphertext_relabelled_for_its_thief_gives_another_secret() {
    let mut world = World::<FabeoCp>::new(5);
    let (order, thief) = (policy("alpha and bravo"), set("charlie, delta"));
    let (ciphertext, secret) = world.sealed(&order, &thief);
    let lengths = FabeoCp::ciphertext_elements(&order, &thief);
    let parts = Parts::of(&quiver_abe::PublicEncoding::encode(&ciphertext), &lengths);
    let elements: Vec<_> = parts.elements.iter().collect();
    let relabelled = ciphertext_of::<FabeoCp>(&parts.forged(&policy("charlie and delta"), &elements));
    let key = world.key(&order, &thief);
    assert_ne!(FabeoCp::decapsulate(&world.parameters, &key, &relabelled).unwrap(), secret);
}
