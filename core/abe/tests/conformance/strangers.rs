//! Values of other authorities and other schemes.

use quiver_abe::{AbeError, FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding, Universe};

use crate::fixture::{Case, World, policy, rng, set};
use crate::for_each_scheme;

for_each_scheme![
    a_key_of_another_authority_is_an_error_of_its_own,
    a_ciphertext_of_another_authority_is_an_error_of_its_own,
    a_master_key_of_another_authority_derives_nothing,
    a_ciphertext_that_claims_this_authority_but_is_not_its_own_gives_another_secret,
    bytes_of_any_other_scheme_are_told_apart,
];

fn a_key_of_another_authority_is_an_error_of_its_own<S: Case>() {
    let (mut ours, mut theirs) = (World::<S>::new(1), World::<S>::new(2));
    let (tree, attributes) = (policy("alpha"), set("alpha"));
    let key = theirs.key(&tree, &attributes);
    let (ciphertext, _) = ours.sealed(&tree, &attributes);
    assert_eq!(S::decapsulate(&ours.parameters, &key, &ciphertext), Err(AbeError::WrongAuthority));
    assert_eq!(S::decapsulate(&theirs.parameters, &key, &ciphertext), Err(AbeError::WrongAuthority));
}

fn a_ciphertext_of_another_authority_is_an_error_of_its_own<S: Case>() {
    let (mut ours, mut theirs) = (World::<S>::new(1), World::<S>::new(2));
    let (tree, attributes) = (policy("alpha"), set("alpha"));
    let key = ours.key(&tree, &attributes);
    let (ciphertext, _) = theirs.sealed(&tree, &attributes);
    assert_eq!(S::decapsulate(&ours.parameters, &key, &ciphertext), Err(AbeError::WrongAuthority));
}

fn a_master_key_of_another_authority_derives_nothing<S: Case>() {
    let (ours, theirs) = (World::<S>::new(1), World::<S>::new(2));
    let terms = S::of_key(&policy("alpha"), &set("alpha"));
    let derived = S::derive(&ours.parameters, &theirs.master, &terms, &mut rng(3));
    assert_eq!(derived.err(), Some(AbeError::WrongAuthority));
}

fn a_ciphertext_that_claims_this_authority_but_is_not_its_own_gives_another_secret<S: Case>() {
    let (mut ours, mut theirs) = (World::<S>::new(1), World::<S>::new(2));
    let (tree, attributes) = (policy("alpha"), set("alpha"));
    let key = ours.key(&tree, &attributes);
    let (ciphertext, secret) = theirs.sealed(&tree, &attributes);
    let mut bytes = ciphertext.encode();
    bytes[3..35].copy_from_slice(ours.parameters.authority().as_bytes());
    let claimed = S::Ciphertext::decode(&bytes).unwrap();
    assert_ne!(S::decapsulate(&ours.parameters, &key, &claimed).unwrap(), secret);
}

fn bytes_of_any_other_scheme_are_told_apart<S: Case>() {
    fn none_of<S: Case, T: Case>() {
        if S::ID == T::ID {
            return;
        }
        let mut world = World::<T>::new(4);
        let (tree, attributes) = (policy("alpha"), set("alpha"));
        let wrong = Some(AbeError::WrongScheme);
        assert_eq!(S::Parameters::decode(&world.parameters.encode()).err(), wrong);
        assert_eq!(S::MasterKey::decode(&world.master.encode()).err(), wrong);
        assert_eq!(S::Key::decode(&world.key(&tree, &attributes).encode()).err(), wrong);
        assert_eq!(S::Ciphertext::decode(&world.sealed(&tree, &attributes).0.encode()).err(), wrong);
    }
    none_of::<S, Gpsw06>();
    none_of::<S, FabeoKp>();
    none_of::<S, FabeoCp>();
    none_of::<S, quiver_yct14::InsecureYct14>();
}

#[test]
fn a_universe_is_closed_exactly_where_the_scheme_needs_it() {
    let closed = crate::fixture::closed();
    assert_eq!(Gpsw06::setup(&Universe::Open, &mut rng(1)).err(), Some(AbeError::ClosedUniverseNeeded));
    assert_eq!(FabeoKp::setup(&closed, &mut rng(1)).err(), Some(AbeError::OpenUniverseNeeded));
    assert_eq!(FabeoCp::setup(&closed, &mut rng(1)).err(), Some(AbeError::OpenUniverseNeeded));
}

#[test]
fn an_attribute_outside_a_closed_universe_is_named() {
    let some = crate::fixture::closed();
    let schema = quiver_policy::Schema::new();
    let tree = quiver_policy::AccessTree::parse("alpha and zulu", &schema).unwrap();
    let attributes = quiver_policy::AttributeSet::parse("alpha, zulu", &schema).unwrap();
    let (parameters, master) = Gpsw06::setup(&some, &mut rng(1)).unwrap();
    let outside = Some(AbeError::OutsideUniverse { attribute: "zulu".into() });
    assert_eq!(Gpsw06::derive(&parameters, &master, &tree, &mut rng(2)).err(), outside);
    assert_eq!(Gpsw06::encapsulate(&parameters, &attributes, &mut rng(2)).err(), outside);
}
