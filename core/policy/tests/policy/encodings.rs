//! Encodings byte by byte, written by hand from the documentation: bytes that are hashed into keys must not
//! change unnoticed. And what decoders refuse.

use quiver_policy::{
    AccessTree, Attribute, AttributeName, AttributeSet, Fault, IntegerType, MAX_DEPTH, MAX_NODES,
    PolicyError, Schema,
};

fn schema() -> Schema {
    let schema = Schema::new().with_integer("alt", IntegerType::unsigned(16).unwrap()).unwrap();
    schema.with_integer("day", IntegerType::Date).unwrap()
}

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn malformed<T>(result: Result<T, PolicyError>) -> &'static str {
    match result.map(|_| ()).unwrap_err().fault() {
        Fault::Malformed(what) => what,
        fault => panic!("{fault}"),
    }
}

const LEAF_A: &[u8] = b"\0\0\0\0\0\x01a";
const LEAF_B: &[u8] = b"\0\0\0\0\0\x01b";

#[test]
fn what_schemes_hash_is_kind_name_and_bit() {
    assert_eq!(Attribute::plain("sector:7").unwrap().hash_input(), b"\x01\0\0\0\x08sector:7");
    let name = AttributeName::new("alt").unwrap();
    let bit = Attribute::bit(name.clone(), 16, 9, true).unwrap();
    assert_eq!(bit.hash_input(), b"\x02\0\0\0\x03alt\x10\x09\x01");
    assert_eq!(bit.to_string(), "alt[9/16]=1");
    assert_eq!(Attribute::bit(name.clone(), 16, 16, true), Err(Fault::InvalidWidth));
    assert_eq!(Attribute::bit(name, 65, 0, true), Err(Fault::InvalidWidth));
}

#[test]
fn bits_of_another_width_are_other_atoms() {
    let name = AttributeName::new("alt").unwrap();
    let narrow: Vec<_> = Attribute::bits_of(&name, IntegerType::unsigned(8).unwrap(), 200).collect();
    let mut wide = AttributeSet::new();
    wide.insert_integer("alt", IntegerType::unsigned(16).unwrap(), 200).unwrap();
    assert_eq!(narrow.len(), 8);
    assert!(narrow.iter().all(|atom| !wide.contains(atom)));
    // So an 8-bit 200 does not pass for a 16-bit value below 256.
    let below = AccessTree::parse("alt < 256", &schema()).unwrap();
    let mut eight = AttributeSet::new();
    eight.insert_integer("alt", IntegerType::unsigned(8).unwrap(), 200).unwrap();
    assert!(below.formula().satisfied_by(&wide) && below.satisfied_by(&wide));
    assert!(!below.formula().satisfied_by(&eight) && !below.satisfied_by(&eight));
}

#[test]
fn a_policy_is_encoded_leaves_first() {
    let tree = AccessTree::parse("2 of (a, alt > 258, b) or day = 1970-01-03", &schema()).unwrap();
    let compare = b"\0\x01\0\0\0\x03alt\x01\x10\x01\0\0\0\0\0\0\x01\x02";
    let day = b"\0\x01\0\0\0\x03day\x02\x04\0\0\0\0\0\0\0\x02";
    let (inner, outer) = (b"\x01\0\x02\0\x03", b"\x01\0\x01\0\x02");
    assert_eq!(tree.encode(), bytes(&[b"\x01\0\0\0\x06", LEAF_A, compare, LEAF_B, inner, day, outer]));
}

#[test]
fn a_set_is_encoded_by_name() {
    let set = AttributeSet::parse("scout, day = 1970-01-03, alt = 258", &schema()).unwrap();
    let alt = b"\0\0\0\x03alt\x01\x01\x10\0\0\0\0\0\0\x01\x02";
    let day = b"\0\0\0\x03day\x01\x02\0\0\0\0\0\0\0\x02";
    assert_eq!(set.encode(), bytes(&[b"\x01\0\0\0\x03", alt, day, b"\0\0\0\x05scout\0"]));
}

#[test]
fn a_schema_is_encoded_by_name() {
    let open = bytes(&[b"\x01\0\0\0\x02", b"\0\0\0\x03alt\x01\x10", b"\0\0\0\x03day\x02"]);
    assert_eq!(schema().encode(), bytes(&[&open, b"\0"]));
    let closed = schema().with_plain(["b", "a"]).unwrap();
    assert_eq!(closed.encode(), bytes(&[&open, b"\x01\0\0\0\x02", b"\0\0\0\x01a", b"\0\0\0\x01b"]));
    for schema in [schema(), closed, Schema::new(), Schema::new().with_plain([]).unwrap()] {
        assert_eq!(Schema::decode(&schema.encode()), Ok(schema));
    }
}

#[test]
fn a_closed_schema_knows_every_atom() {
    assert_eq!(schema().universe(), None);
    let closed = schema().with_plain(["b", "a"]).unwrap();
    let universe = closed.universe().unwrap();
    assert_eq!(universe.len(), 2 + 2 * 16 + 2 * 16);
    let tree = AccessTree::parse("a and b and alt > 5 and alt < 900 and day != 2026-11-20", &closed).unwrap();
    assert!(tree.formula().atoms().iter().all(|atom| universe.contains(atom)));
}

#[test]
fn nodes_that_are_no_single_tree_are_refused() {
    let decode = |nodes: &[&[u8]]| {
        AccessTree::decode(&bytes(&[
            b"\x01",
            &u32::try_from(nodes.len()).unwrap().to_be_bytes(),
            &nodes.concat(),
        ]))
    };
    assert!(decode(&[LEAF_A, LEAF_B, b"\x01\0\x01\0\x02"]).is_ok());
    assert_eq!(malformed(decode(&[])), "not one tree");
    assert_eq!(malformed(decode(&[LEAF_A, LEAF_B])), "not one tree");
    assert_eq!(malformed(decode(&[LEAF_A, b"\x01\0\x01\0\x02"])), "a gate without children");
    assert_eq!(malformed(decode(&[b"\x02\0\x01\0\x02"])), "neither leaf nor gate");
    let fault = |nodes: &[&[u8]]| decode(nodes).unwrap_err().fault().clone();
    assert_eq!(fault(&[LEAF_A, b"\x01\0\0\0\x01"]), Fault::ThresholdZero);
    assert_eq!(fault(&[LEAF_A, b"\x01\0\x02\0\x01"]), Fault::ThresholdAboveChildren { children: 1 });
    assert_eq!(fault(&[LEAF_A, LEAF_A, b"\x01\0\x01\0\x02"]), Fault::RepeatedLeaf);
    // `alt >= 0`: a comparison that always holds.
    let nothing: &[u8] = b"\0\x01\0\0\0\x03alt\x01\x10\0\0\0\0\0\0\0\0\0";
    assert_eq!(fault(&[nothing]), Fault::AlwaysTrue);
}

#[test]
fn encoded_depth_and_size_are_bounded() {
    let gates = |count: usize| {
        let nodes = u32::try_from(count + 1).unwrap().to_be_bytes();
        AccessTree::decode(&bytes(&[b"\x01", &nodes, LEAF_A, &b"\x01\0\x01\0\x01".repeat(count)]))
    };
    assert!(gates(MAX_DEPTH).is_ok());
    assert_eq!(gates(MAX_DEPTH + 1).unwrap_err().fault(), &Fault::TooDeep);
    assert_eq!(gates(MAX_NODES - 1).unwrap_err().fault(), &Fault::TooDeep);
    assert_eq!(malformed(gates(10_000)), "list too long");
}

#[test]
fn sets_out_of_order_are_refused() {
    let decode = |entries: &[&[u8]]| {
        AttributeSet::decode(&bytes(&[
            b"\x01",
            &u32::try_from(entries.len()).unwrap().to_be_bytes(),
            &entries.concat(),
        ]))
    };
    let (a, b): (&[u8], &[u8]) = (b"\0\0\0\x01a\0", b"\0\0\0\x01b\0");
    assert!(decode(&[a, b]).is_ok());
    assert_eq!(malformed(decode(&[b, a])), "names out of order");
    assert_eq!(malformed(decode(&[a, a])), "names out of order");
    assert_eq!(malformed(AttributeSet::decode(&bytes(&[b"\x01\0\0\0\x01", a, b"\0"]))), "trailing bytes");
    assert_eq!(malformed(AttributeSet::decode(b"\x02\0\0\0\0")), "an attribute set of another format");
    // The value 2 of one bit.
    let fault = decode(&[b"\0\0\0\x01a\x01\x01\x01\0\0\0\0\0\0\0\x02"]).unwrap_err().fault().clone();
    assert_eq!(fault, Fault::OutOfRange { kind: IntegerType::unsigned(1).unwrap() });
}

#[test]
fn the_deepest_policy_is_parsed_on_a_small_stack() {
    let text = format!("{}a{}", "1 of (x and (".repeat(MAX_DEPTH / 2), "))".repeat(MAX_DEPTH / 2));
    let deep = format!("{}a{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
    let parse = move || {
        assert!(AccessTree::parse(&text, &Schema::new()).is_ok());
        assert!(AccessTree::parse(&deep, &Schema::new()).is_ok());
    };
    std::thread::Builder::new().stack_size(64 * 1024).spawn(parse).unwrap().join().unwrap();
}
