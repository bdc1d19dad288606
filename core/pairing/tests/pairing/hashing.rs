//! Hashing to points and scalars agrees with RFC 9380.

use quiver_pairing::{Curve, G1, G2, Group, Point, hash_to_scalar, scalar_encode};
use serde::Deserialize;

#[derive(Deserialize)]
struct Suites {
    #[serde(rename = "G1")]
    g1: Suite,
    #[serde(rename = "G2")]
    g2: Suite,
}

#[derive(Deserialize)]
struct Suite {
    domain: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    message: String,
    x: Vec<String>,
    y: Vec<String>,
}

/// (p − 1) / 2: a value above it is the larger one of two square roots.
const HALF: &str =
    "0d0088f51cbff34d258dd3db21a5d66bb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555";

fn suites() -> Suites {
    serde_json::from_str(include_str!("vectors/hash-to-curve.json")).unwrap()
}

/// The compressed form of a point whose coordinates are given lowest coefficient first.
fn compressed(vector: &Vector) -> String {
    let highest_first: String = vector.x.iter().rev().map(String::as_str).collect();
    let mut bytes = hex::decode(highest_first).unwrap();
    let deciding =
        vector.y.iter().rev().find(|coefficient| !coefficient.trim_matches('0').is_empty()).unwrap();
    bytes[0] |= if deciding.as_str() > HALF { 0xa0 } else { 0x80 };
    hex::encode(bytes)
}

fn gives_the_points<C: Curve>(suite: &Suite) {
    assert_eq!(suite.vectors.len(), 5);
    for vector in &suite.vectors {
        let (head, tail) = vector.message.as_bytes().split_at(vector.message.len() / 3);
        let point = Point::<C>::hash(&suite.domain, &[head, tail]);
        assert_eq!(hex::encode(point.encode()), compressed(vector), "{}", vector.message);
    }
}

#[test]
fn messages_hash_to_the_points_of_rfc_9380_in_g1() {
    gives_the_points::<quiver_pairing::G1Curve>(&suites().g1);
}

#[test]
fn messages_hash_to_the_points_of_rfc_9380_in_g2() {
    gives_the_points::<quiver_pairing::G2Curve>(&suites().g2);
}

#[test]
fn another_domain_or_message_gives_another_point() {
    let point = G1::hash("FIRST_XMD:SHA-256_SSWU_RO_", &[b"message"]);
    assert_eq!(point, G1::hash("FIRST_XMD:SHA-256_SSWU_RO_", &[b"mess", b"", b"age"]));
    assert_ne!(point, G1::hash("OTHER_XMD:SHA-256_SSWU_RO_", &[b"message"]));
    assert_ne!(point, G1::hash("FIRST_XMD:SHA-256_SSWU_RO_", &[b"messages"]));
}

#[test]
fn long_domains_are_taken() {
    let domain = "LONG".repeat(100);
    assert!(!G1::hash(&domain, &[b"message"]).is_identity());
    assert_ne!(G2::hash(&domain, &[b"message"]), G2::hash(&domain[4..], &[b"message"]));
}

#[test]
fn scalars_are_hashed_as_by_an_independent_computation() {
    // expand_message_xmd with 48 bytes, reduced modulo r: computed with Python's hashlib and integers.
    let scalar = hash_to_scalar("QUIVER-TEST-SCALAR", &[b"a mess", b"age"]);
    assert_eq!(hex::encode(*scalar_encode(&scalar)), EXPECTED_SCALAR);
}

const EXPECTED_SCALAR: &str = "157909c18f2d77e391e86f907510316b2063ede5a1839f200aaec6b3ceafe0f2";
