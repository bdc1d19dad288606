//! The vectors that every image is checked against are those that the core is tested with.

use serde_json::Value;

#[test]
fn fixture_has_every_vector_of_the_pairwise_secret() {
    let text = include_str!("../../../core/ainq/tests/vectors/pairwise-secret.json");
    let vectors: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(!vectors.is_empty());
    let fields = vectors.iter().flat_map(|vector| ["y", "e", "V", "T"].map(|name| &vector[name]));
    let expected: String = fields.map(|field| field.as_str().unwrap()).collect();
    assert_eq!(hex::encode(include_bytes!("../fixtures/pairwise-secret.bin")), expected);
}
