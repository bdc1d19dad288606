//! The schemes at work: what they grant, that their keys open what they should, and how large they are.

use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, SecretEncoding};
use quiver_attribute_schemes::{Granting, SchemeKind, UnknownScheme};
use quiver_delivery::attributes::query::MAX_KEY_LEN;
use quiver_policy::{AccessTree, AttributeSet, Schema};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

fn schema() -> Schema {
    let names: Vec<_> = (0..40).map(|number| format!("a{number}")).collect();
    Schema::new().with_plain(names.iter().map(String::as_str)).unwrap()
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A policy or a set of so many attributes.
fn terms(scheme: SchemeKind, count: usize) -> String {
    let names: Vec<_> = (0..count).map(|number| format!("a{number}")).collect();
    match scheme.granting() {
        Granting::Policy => names.join(" and "),
        Granting::Attributes => names.join(", "),
    }
}

/// Returns true if a key made for `granted` opens an envelope to `sealed`.
fn opens<K: Scheme>(scheme: SchemeKind, granted: &str, sealed: &K::CiphertextTerms) -> bool {
    let mut rng = rng(1);
    let founded = scheme.found(&schema(), &mut rng).unwrap();
    let mut maker = scheme.maker(&founded.parameters, &founded.master).unwrap();
    let granted = scheme.read(granted, &schema()).unwrap();
    let key = K::Key::decode(&maker.make(&granted.encoded, &mut rng).unwrap()).unwrap();
    let parameters = K::Parameters::decode(&founded.parameters).unwrap();
    let (ciphertext, secret) = K::encapsulate(&parameters, sealed, &mut rng).unwrap();
    K::decapsulate(&parameters, &key, &ciphertext).is_ok_and(|opened| opened == secret)
}

#[test]
fn keys_open_what_was_granted_and_nothing_else() {
    let policy = |text: &str| AccessTree::parse(text, &schema()).unwrap();
    let set = |text: &str| AttributeSet::parse(text, &schema()).unwrap();
    assert!(opens::<FabeoCp>(SchemeKind::FabeoCp, "a1, a2", &policy("a1 and a2")));
    assert!(!opens::<FabeoCp>(SchemeKind::FabeoCp, "a1, a2", &policy("a1 and a3")));
    assert!(opens::<FabeoKp>(SchemeKind::FabeoKp, "a1 or a3", &set("a1")));
    assert!(!opens::<FabeoKp>(SchemeKind::FabeoKp, "a1 and a3", &set("a1")));
    assert!(opens::<Gpsw06>(SchemeKind::Gpsw06, "2 of (a1, a2, a3)", &set("a1, a3")));
    assert!(!opens::<Gpsw06>(SchemeKind::Gpsw06, "2 of (a1, a2, a3)", &set("a1")));
}

#[test]
fn ids_are_unique_and_find_their_scheme() {
    for scheme in SchemeKind::ALL {
        assert_eq!(SchemeKind::from_id(scheme.id()), Ok(*scheme));
    }
    assert_eq!(SchemeKind::from_id("no-such"), Err(UnknownScheme::Unknown("no-such".into())));
    let broken = SchemeKind::from_id("insecure-yct14").unwrap_err();
    assert_eq!(broken, UnknownScheme::Broken("insecure-yct14".into()));
    assert!(broken.to_string().contains("kgc abe setup"), "{broken}");
}

#[test]
fn keys_of_thirty_leaves_are_small_and_every_key_fits_an_answer() {
    let mut rng = rng(2);
    for scheme in SchemeKind::ALL {
        let founded = scheme.found(&schema(), &mut rng).unwrap();
        let mut maker = scheme.maker(&founded.parameters, &founded.master).unwrap();
        let granted = scheme.read(&terms(*scheme, 30), &schema()).unwrap();
        let length = maker.make(&granted.encoded, &mut rng).unwrap().len();
        assert!(length < 5000, "{} {length}", scheme.id());
    }
    // The most leaves that a policy may have, with names of some length.
    let names: Vec<_> = (0..1024).map(|number| format!("attribute-with-a-long-name-{number:04}")).collect();
    let founded = SchemeKind::FabeoKp.found(&Schema::new(), &mut rng).unwrap();
    let mut maker = SchemeKind::FabeoKp.maker(&founded.parameters, &founded.master).unwrap();
    let granted = SchemeKind::FabeoKp.read(&names.join(" or "), &Schema::new()).unwrap();
    let length = maker.make(&granted.encoded, &mut rng).unwrap().len();
    assert!(length < MAX_KEY_LEN, "{length}");
}

#[test]
fn keys_of_two_authorities_do_not_mix_and_garbage_makes_nothing() {
    let mut rng = rng(3);
    let scheme = SchemeKind::FabeoKp;
    let (one, two) =
        (scheme.found(&Schema::new(), &mut rng).unwrap(), scheme.found(&Schema::new(), &mut rng).unwrap());
    assert!(scheme.maker(&one.parameters, &two.master).is_err());
    assert!(SchemeKind::FabeoCp.maker(&one.parameters, &one.master).is_err());
    let mut maker = scheme.maker(&one.parameters, &one.master).unwrap();
    assert!(maker.make(b"garbage", &mut rng).is_err());
    let other_kind = SchemeKind::FabeoCp.read("a1", &Schema::new()).unwrap();
    assert!(maker.make(&other_kind.encoded, &mut rng).is_err());
    let closed = SchemeKind::Gpsw06;
    assert!(closed.found(&Schema::new(), &mut rng).is_err(), "needs a closed list");
    let founded = closed.found(&schema(), &mut rng).unwrap();
    let mut maker = closed.maker(&founded.parameters, &founded.master).unwrap();
    let outside = closed.read("elsewhere", &Schema::new()).unwrap();
    let error = maker.make(&outside.encoded, &mut rng).unwrap_err().to_string();
    assert!(error.contains("elsewhere"), "{error}");
}
