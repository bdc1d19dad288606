//! Policies, attribute sets and schemas, as text and as bytes: what is read is written as it was read, and a
//! formula means what its policy means.

use quiver_crypto::canonical::Reader;
use quiver_policy::{AccessTree, Attribute, AttributeName, AttributeSet, IntegerType, PolicyError, Schema};

const POLICIES: [&str; 6] = [
    "scout",
    "(scout and sector:7) or 2 of (thermal, lidar, radar)",
    "altitude >= 120 and battery != 30 and valid-until < 2026-12-01",
    "1 of (scout) or \"two words\" and (altitude <= 1000 or \"Ü\\\"ber\\\\\" and flag = 1)",
    "3 of (a, b and c, (d or e), 2 of (f, g, altitude > 70))",
    "\"and\"\n and wide >= 18446744073709551615",
];

const SETS: [&str; 4] = [
    "",
    "scout, sector:7, thermal, radar",
    "altitude = 150, battery = 29, valid-until = 2026-11-20, flag = 1, wide = 18446744073709551615",
    "\"and\", \"two words\", a, b, c",
];

fn open() -> Schema {
    let integers = [("altitude", 16), ("battery", 7), ("flag", 1), ("wide", 64)];
    let schema = Schema::new().with_integer("valid-until", IntegerType::Date).expect("a date");
    integers.into_iter().fold(schema, |schema, (name, bits)| {
        schema.with_integer(name, IntegerType::unsigned(bits).expect("a width")).expect("a new name")
    })
}

fn closed() -> Schema {
    open().with_plain(["scout", "sector:7", "thermal", "lidar", "radar"]).expect("new names")
}

fn set(text: &str) -> AttributeSet {
    AttributeSet::parse(text, &open()).expect("a list of attributes")
}

/// A refusal of text has a position, and can be printed.
fn shown(error: &PolicyError, text: &str) {
    let place = error.place().expect("a place");
    assert!(place.line <= text.matches('\n').count() + 1 && place.column <= text.chars().count() + 1);
    assert!(error.pointing_at(text).len() < 2000);
}

/// The policy language.
pub fn policy_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for schema in [Schema::new(), open(), closed()] {
        match AccessTree::parse(&text, &schema) {
            Ok(tree) => {
                check(&tree);
                assert_eq!(AccessTree::parse(&tree.to_string(), &schema).as_ref(), Ok(&tree), "other text");
                assert_eq!(AccessTree::decode(&tree.encode()), Ok(tree), "other bytes");
            }
            Err(error) => shown(&error, &text),
        }
    }
}

/// Lists of attributes as text.
pub fn attribute_list(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for schema in [Schema::new(), open(), closed()] {
        match AttributeSet::parse(&text, &schema) {
            Ok(set) => {
                assert_eq!(AttributeSet::parse(&set.to_string(), &schema).as_ref(), Ok(&set), "other text");
                assert_eq!(AttributeSet::decode(&set.encode()), Ok(set), "other bytes");
            }
            Err(error) => shown(&error, &text),
        }
    }
}

/// Encoded policies.
pub fn access_tree(bytes: &[u8]) {
    let Ok(tree) = AccessTree::decode(bytes) else { return };
    assert_eq!(tree.encode(), bytes, "two encodings of one policy");
    assert_eq!(AccessTree::parse(&tree.to_string(), &tree.schema()).as_ref(), Ok(&tree), "other text");
    check(&tree);
}

/// Encoded attribute sets.
pub fn attribute_set(bytes: &[u8]) {
    let Ok(set) = AttributeSet::decode(bytes) else { return };
    assert_eq!(set.encode(), bytes, "two encodings of one set");
    assert_eq!(AttributeSet::parse(&set.to_string(), &set.schema()).as_ref(), Ok(&set), "other text");
    assert!(set.atoms().all(|atom| set.contains(&atom)) && set.atoms().count() == set.len());
}

/// Encoded schemas.
pub fn attribute_schema(bytes: &[u8]) {
    let Ok(schema) = Schema::decode(bytes) else { return };
    assert_eq!(schema.encode(), bytes, "two encodings of one schema");
    let _ = (schema.to_string(), schema.universe());
    for text in POLICIES {
        let _ = AccessTree::parse(text, &schema);
    }
}

/// Encoded atoms.
pub fn attribute(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let Ok(atom) = Attribute::decode(&mut reader) else { return };
    assert!(
        bytes.starts_with(&atom.hash_input()) && atom.hash_input().len() + reader.remaining() == bytes.len()
    );
}

/// The formula and the policy agree on every set, and a selection is a subset of the attributes.
fn check(tree: &AccessTree) {
    let formula = tree.formula();
    for set in SETS.map(set) {
        let satisfied = formula.satisfied_by(&set);
        assert_eq!(satisfied, tree.satisfied_by(&set), "a formula that means something else");
        let selection = formula.select(&set, |_, use_number| 1 + use_number as u32);
        assert_eq!(satisfied, selection.is_some());
        let chosen =
            selection.iter().flat_map(|selection| selection.leaves()).map(|&leaf| &formula.leaves()[leaf]);
        assert!(chosen.into_iter().all(|leaf| set.contains(leaf.attribute())));
    }
}

/// Policies in the language.
pub fn policy_text_seeds() -> Vec<Vec<u8>> {
    POLICIES.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Lists of attributes.
pub fn attribute_list_seeds() -> Vec<Vec<u8>> {
    SETS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Encoded policies.
pub fn access_tree_seeds() -> Vec<Vec<u8>> {
    POLICIES.iter().map(|text| AccessTree::parse(text, &open()).expect("a policy").encode()).collect()
}

/// Encoded attribute sets.
pub fn attribute_set_seeds() -> Vec<Vec<u8>> {
    SETS.iter().map(|text| set(text).encode()).collect()
}

/// Encoded schemas.
pub fn attribute_schema_seeds() -> Vec<Vec<u8>> {
    [Schema::new(), open(), closed()].iter().map(Schema::encode).collect()
}

/// Encoded atoms.
pub fn attribute_seeds() -> Vec<Vec<u8>> {
    let name = AttributeName::new("altitude").expect("a name");
    let bit = Attribute::bit(name, 16, 9, true).expect("a bit");
    vec![Attribute::plain("sector:7").expect("a name").hash_input(), bit.hash_input()]
}
