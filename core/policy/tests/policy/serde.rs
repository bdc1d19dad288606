//! Schemas, policies and sets in files that people write.

use quiver_policy::{AccessTree, AttributeSet, IntegerType, Schema};

#[test]
fn a_schema_is_read_from_a_configuration_file() {
    let file = r#"
        plain = ["scout", "two words"]
        integers = { altitude = "16 bits", flag = "1 bit", valid-until = "date" }
    "#;
    let expected = Schema::new().with_plain(["scout", "two words"]).unwrap();
    let expected = expected.with_integer("altitude", IntegerType::unsigned(16).unwrap()).unwrap();
    let expected = expected.with_integer("flag", IntegerType::unsigned(1).unwrap()).unwrap();
    let expected = expected.with_integer("valid-until", IntegerType::Date).unwrap();
    let schema: Schema = toml::from_str(file).unwrap();
    assert_eq!(schema, expected);
    assert_eq!(toml::from_str::<Schema>("").unwrap(), Schema::new());
    let shown = "altitude: 16 bits; flag: 1 bit; valid-until: date; plain attributes: scout, \"two words\"";
    assert_eq!(schema.to_string(), shown);
    assert_eq!(Schema::new().to_string(), "any plain attribute");
}

#[test]
fn a_policy_carries_the_integers_it_compares() {
    let schema = Schema::new().with_integer("altitude", IntegerType::unsigned(16).unwrap()).unwrap();
    let tree = AccessTree::parse("scout and altitude >= 120", &schema).unwrap();
    let json = r#"{"policy":"scout and altitude >= 120","integers":{"altitude":"16 bits"}}"#;
    assert_eq!(serde_json::to_string(&tree).unwrap(), json);
    assert_eq!(serde_json::from_str::<AccessTree>(json).unwrap(), tree);
    let set = AttributeSet::parse("scout, altitude = 7", &schema).unwrap();
    let json = r#"{"attributes":"altitude = 7, scout","integers":{"altitude":"16 bits"}}"#;
    assert_eq!(serde_json::to_string(&set).unwrap(), json);
}

#[test]
fn mistakes_in_files_are_told() {
    let refusal = |file: &str| toml::from_str::<Schema>(file).unwrap_err().message().to_owned();
    assert!(refusal("plane = []").contains("unknown field"));
    assert_eq!(refusal("integers = { a = \"65 bits\" }"), "an integer attribute has 1 to 64 bits");
    assert_eq!(
        refusal("integers = { a = \"wide\" }"),
        "expected `date` or a width such as `16 bits`, found `wide`"
    );
    let twice = "plain = [\"a\"]\nintegers = { a = \"date\" }";
    assert_eq!(refusal(twice), "`a` is declared twice");
    assert_eq!(refusal("plain = [\"a\", \"a\"]"), "`a` is declared twice");
    let policy = serde_json::from_str::<AccessTree>(r#"{"policy":"scout and altitude >= 120"}"#).unwrap_err();
    assert!(policy.to_string().starts_with("column 11: `altitude` is not declared as an integer"));
}
