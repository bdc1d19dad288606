//! Tests of which keys open which ciphertexts.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quiver_abe::{AbeError, HasTerms};
use quiver_policy::{AccessTree, AttributeSet};

use crate::fixture::{Case, NAMES, World, policy, rng, schema, set};
use crate::for_each_scheme;

for_each_scheme![
    random_policies_open_for_exactly_the_sets_that_satisfy_them,
    every_kind_of_gate_opens_with_every_minimal_set,
    integers_are_compared_bit_by_bit,
    an_attribute_used_often_opens_through_any_of_its_uses,
    a_policy_may_be_one_attribute,
    a_policy_of_the_largest_size_works,
    nested_thresholds_beyond_small_integers_work,
    the_same_generator_gives_the_same_bytes,
    keys_and_ciphertexts_say_what_they_are_for,
];

/// The text of a policy, whose attributes may repeat.
fn policies() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned),
        1 => (1..15_u8).prop_map(|value| format!("altitude >= {value}")),
        1 => (1..15_u8).prop_map(|value| format!("altitude != {value}")),
    ];
    leaf.prop_recursive(3, 16, 4, |child| {
        (prop::collection::vec(child, 2..5), any::<prop::sample::Index>()).prop_map(
            |(mut children, threshold)| {
                children.sort_unstable();
                children.dedup();
                format!("{} of ({})", threshold.index(children.len()) + 1, children.join(", "))
            },
        )
    })
}

fn sets() -> impl Strategy<Value = String> {
    let plain = prop::sample::subsequence(NAMES.to_vec(), 1..=NAMES.len());
    (plain, prop::option::of(0..16_u8)).prop_map(|(plain, altitude)| {
        let altitude = altitude.map(|value| format!(", altitude = {value}"));
        plain.join(", ") + &altitude.unwrap_or_default()
    })
}

fn check<S: Case>(world: &mut World<S>, tree: &AccessTree, set: &AttributeSet) {
    let key = world.key(tree, set);
    let (ciphertext, secret) = world.sealed(tree, set);
    let opened = S::decapsulate(&world.parameters, &key, &ciphertext);
    let admitted = S::admits(key.terms(), ciphertext.terms());
    assert_eq!(admitted, tree.satisfied_by(set), "{tree} / {set}");
    if admitted {
        assert_eq!(opened, Ok(secret), "{tree} / {set}");
    } else {
        assert_eq!(opened, Err(AbeError::NotSatisfied), "{tree} / {set}");
    }
}

fn random_policies_open_for_exactly_the_sets_that_satisfy_them<S: Case>() {
    let mut world = World::<S>::new(1);
    let mut opened = 0;
    let mut runner = TestRunner::new_with_rng(Config::with_cases(80), deterministic());
    let world = std::cell::RefCell::new(&mut world);
    let count = std::cell::RefCell::new(&mut opened);
    runner
        .run(&(policies(), sets()), |(text, attributes)| {
            // A leaf twice under one gate is refused; nested gates may flatten to that.
            let Ok(tree) = AccessTree::parse(&text, &schema()) else { return Ok(()) };
            let attributes = set(&attributes);
            **count.borrow_mut() += usize::from(tree.satisfied_by(&attributes));
            check(&mut world.borrow_mut(), &tree, &attributes);
            Ok(())
        })
        .unwrap();
    assert!((20..80).contains(&opened), "{opened} of 80 satisfied: the test has lost its sense");
}

/// The same cases for every scheme and in every run.
fn deterministic() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}

fn every_kind_of_gate_opens_with_every_minimal_set<S: Case>() {
    let mut world = World::<S>::new(2);
    let cases = [
        ("alpha and bravo", &["alpha, bravo"][..], &["alpha", "bravo", "charlie"][..]),
        ("alpha or bravo", &["alpha", "bravo"], &["charlie"]),
        (
            "2 of (alpha, bravo, charlie)",
            &["alpha, bravo", "alpha, charlie", "bravo, charlie"],
            &["alpha", "bravo"],
        ),
        (
            "3 of (alpha, bravo and charlie, delta or echo, foxtrot)",
            &["alpha, bravo, charlie, echo", "alpha, delta, foxtrot", "bravo, charlie, delta, foxtrot"],
            &["alpha, bravo, delta", "bravo, charlie, foxtrot"],
        ),
        (
            "2 of (2 of (alpha, bravo, charlie), 2 of (delta, echo, foxtrot), golf)",
            &["alpha, charlie, delta, foxtrot", "bravo, charlie, golf", "echo, foxtrot, golf"],
            &["alpha, delta, golf", "alpha, bravo, charlie"],
        ),
    ];
    for (text, opening, not_opening) in cases {
        let tree = policy(text);
        for attributes in opening.iter().map(|text| set(text)) {
            assert!(tree.satisfied_by(&attributes));
            check(&mut world, &tree, &attributes);
        }
        for attributes in not_opening.iter().map(|text| set(text)) {
            assert!(!tree.satisfied_by(&attributes));
            check(&mut world, &tree, &attributes);
        }
    }
}

fn integers_are_compared_bit_by_bit<S: Case>() {
    let mut world = World::<S>::new(3);
    for text in ["altitude >= 5", "altitude < 11", "altitude = 9", "altitude != 9"] {
        let tree = policy(text);
        for value in [0, 4, 5, 9, 10, 11, 15] {
            check(&mut world, &tree, &set(&format!("altitude = {value}")));
        }
    }
}

fn an_attribute_used_often_opens_through_any_of_its_uses<S: Case>() {
    let mut world = World::<S>::new(4);
    let tree =
        policy("(alpha and bravo) or (alpha and charlie) or 2 of (alpha and delta, echo, alpha or foxtrot)");
    assert_eq!(tree.formula().uses(), 4);
    for attributes in [
        "alpha, bravo",
        "alpha, charlie",
        "alpha, delta",
        "alpha, echo",
        "echo, foxtrot",
        "alpha",
        "bravo, charlie",
    ] {
        check(&mut world, &tree, &set(attributes));
    }
}

fn a_policy_may_be_one_attribute<S: Case>() {
    let mut world = World::<S>::new(5);
    check(&mut world, &policy("alpha"), &set("alpha, bravo"));
    check(&mut world, &policy("alpha"), &set("bravo"));
}

fn a_policy_of_the_largest_size_works<S: Case>() {
    let mut world = World::<S>::new(6);
    // 128 gates of eight leaves; every attribute is used 128 times, and all of the first gate's are first
    // uses.
    let gate = format!("({})", NAMES.join(" and "));
    let tree = policy(&vec![gate; 128].join(" or "));
    assert_eq!(tree.formula().leaves().len(), quiver_policy::MAX_LEAVES);
    check(&mut world, &tree, &set(&NAMES.join(", ")));
}

fn nested_thresholds_beyond_small_integers_work<S: Case>() {
    let mut world = World::<S>::new(7);
    // The last of the places 5 to 8 has the coefficient -35, and they multiply from gate to gate: beyond 127
    // bits.
    let mut text = "4 of (alpha, bravo, charlie, delta, echo, foxtrot, golf, hotel)".to_owned();
    for _ in 0..26 {
        text = format!("4 of (alpha, bravo, charlie, delta, echo, foxtrot, golf, {text})");
    }
    let tree = policy(&text);
    check(&mut world, &tree, &set("echo, foxtrot, golf, hotel"));
    check(&mut world, &tree, &set("foxtrot, golf, hotel"));
}

fn the_same_generator_gives_the_same_bytes<S: Case>() {
    use quiver_abe::{PublicEncoding, SecretEncoding};
    let world = World::<S>::new(8);
    let (tree, attributes) = (policy("2 of (alpha, bravo, charlie)"), set("alpha, charlie, altitude = 3"));
    let all = |seed| {
        let (parameters, master) = S::setup(&S::universe(), &mut rng(seed)).unwrap();
        let terms = S::of_key(&tree, &attributes);
        let key = S::derive(&world.parameters, &world.master, &terms, &mut rng(seed)).unwrap();
        let terms = S::of_ciphertext(&tree, &attributes);
        let (ciphertext, secret) = S::encapsulate(&world.parameters, &terms, &mut rng(seed)).unwrap();
        (parameters.encode(), master.encode(), key.encode(), ciphertext.encode(), *secret.expose())
    };
    let (one, again, other) = (all(1), all(1), all(2));
    assert!(one == again);
    assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2 && one.3 != other.3 && one.4 != other.4);
}

fn keys_and_ciphertexts_say_what_they_are_for<S: Case>() {
    let mut world = World::<S>::new(9);
    let (tree, attributes) = (policy("alpha"), set("alpha"));
    assert_eq!(*world.key(&tree, &attributes).terms(), S::of_key(&tree, &attributes));
    assert_eq!(*world.sealed(&tree, &attributes).0.terms(), S::of_ciphertext(&tree, &attributes));
}
