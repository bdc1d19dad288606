//! Lists that are empty, too long or out of order.

use quiver_abe::{AbeError, FabeoCp, FabeoKp, Gpsw06, MAX_UNIVERSE, PublicEncoding, Scheme, Universe};
use quiver_policy::{Attribute, AttributeSet};

use crate::fixture::{Case, World, closed, rng, set};

fn numbered(count: usize) -> impl Iterator<Item = Attribute> {
    (0..count).map(|number| Attribute::plain(&format!("a{number}")).unwrap())
}

#[test]
fn a_universe_has_bounds() {
    assert_eq!(Universe::closed([]).err(), Some(AbeError::NoAttributes));
    assert!(Universe::closed(numbered(MAX_UNIVERSE)).is_ok());
    let refused = Universe::closed(numbered(MAX_UNIVERSE + 1)).err();
    assert_eq!(refused, Some(AbeError::TooLong { what: "a universe", limit: MAX_UNIVERSE }));
    // However often something is named.
    assert!(Universe::closed((0..MAX_UNIVERSE).flat_map(|_| numbered(2))).is_ok());
}

#[test]
fn no_attributes_are_an_error_on_either_side() {
    let none = AttributeSet::new();
    let kp = World::<FabeoKp>::new(1);
    let refused = FabeoKp::encapsulate(&kp.parameters, &none, &mut rng(1)).err();
    assert_eq!(refused, Some(AbeError::NoAttributes));
    let cp = World::<FabeoCp>::new(1);
    let refused = FabeoCp::derive(&cp.parameters, &cp.master, &none, &mut rng(1)).err();
    assert_eq!(refused, Some(AbeError::NoAttributes));
}

#[test]
fn a_closed_universe_out_of_order_is_refused() {
    let universe =
        |names: [&str; 2]| Universe::closed(names.map(|name| Attribute::plain(name).unwrap())).unwrap();
    let (parameters, _) = Gpsw06::setup(&universe(["a1", "a2"]), &mut rng(1)).unwrap();
    let mut bytes = parameters.encode();
    let (one, two) = (7 + 6, 7 + 7 + 6);
    assert_eq!((bytes[one], bytes[two]), (b'1', b'2'));
    bytes.swap(one, two);
    let refused = <Gpsw06 as Scheme>::Parameters::decode(&bytes).err();
    assert_eq!(refused, Some(AbeError::Malformed("attributes out of order")));
    bytes[one] = b'1';
    assert!(<Gpsw06 as Scheme>::Parameters::decode(&bytes).is_err(), "an attribute twice");
}

#[test]
fn a_count_that_cannot_be_true_is_refused_before_anything_is_read() {
    let (parameters, _) = Gpsw06::setup(&closed(), &mut rng(1)).unwrap();
    let mut bytes = parameters.encode();
    bytes[3..7].copy_from_slice(&u32::MAX.to_be_bytes());
    let refused = <Gpsw06 as Scheme>::Parameters::decode(&bytes).err();
    assert_eq!(refused, Some(AbeError::Malformed("list too long")));
    // Terms of four gigabytes.
    let mut world = World::<FabeoKp>::new(1);
    let mut bytes = world.sealed(&crate::fixture::policy("alpha"), &set("alpha")).0.encode();
    bytes[35..39].copy_from_slice(&u32::MAX.to_be_bytes());
    let refused = <FabeoKp as Scheme>::Ciphertext::decode(&bytes).err();
    assert_eq!(refused, Some(AbeError::Malformed("byte string too long")));
    assert!(matches!(FabeoKp::universe(), Universe::Open));
}
