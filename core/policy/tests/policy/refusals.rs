//! Refusals of bad input: a fault that names the mistake, and its column.

use quiver_policy::{
    AccessTree, AttributeName, AttributeSet, Fault, IntegerType, MAX_DEPTH, MAX_LEAVES, MAX_TEXT,
    PolicyError, Schema,
};

fn open() -> Schema {
    let schema = Schema::new().with_integer("altitude", IntegerType::unsigned(16).unwrap()).unwrap();
    let schema = schema.with_integer("wide", IntegerType::unsigned(64).unwrap()).unwrap();
    schema.with_integer("valid-until", IntegerType::Date).unwrap()
}

fn closed() -> Schema {
    open().with_plain(["scout", "thermal", "lidar"]).unwrap()
}

#[track_caller]
fn refused(error: &PolicyError, column: usize, fault: &Fault) {
    assert_eq!(error.fault(), fault);
    assert_eq!(error.place().map(|place| (place.line, place.column)), Some((1, column)), "{error}");
}

#[track_caller]
fn policy(text: &str, column: usize, fault: &Fault) {
    refused(&AccessTree::parse(text, &open()).unwrap_err(), column, fault);
}

#[track_caller]
fn attributes(text: &str, column: usize, fault: &Fault) {
    refused(&AttributeSet::parse(text, &open()).unwrap_err(), column, fault);
}

fn expected(expected: &'static str, found: &str) -> Fault {
    Fault::Expected { expected, found: found.into() }
}

const OPERAND: &str = "an attribute, a comparison, `(` or `k of (`";

#[test]
fn an_empty_policy_is_refused() {
    policy("", 1, &Fault::Empty);
    policy("   ", 4, &Fault::Empty);
}

#[test]
fn an_empty_gate_is_refused() {
    policy("()", 1, &Fault::EmptyParentheses);
    policy("a and ( )", 7, &Fault::EmptyParentheses);
    policy("2 of ()", 6, &Fault::EmptyParentheses);
    policy("2 of (a, )", 10, &expected(OPERAND, "`)`"));
}

#[test]
fn a_parenthesis_that_is_not_closed_is_pointed_at() {
    policy("a and (b or (c and d)", 7, &Fault::Unclosed);
    policy("2 of (a, b", 6, &Fault::Unclosed);
    policy("(", 1, &Fault::Unclosed);
}

#[test]
fn a_parenthesis_that_was_not_opened_is_pointed_at() {
    policy("a and b) or c", 8, &Fault::Unopened);
    policy("a)", 2, &Fault::Unopened);
}

#[test]
fn a_threshold_of_zero_is_refused() {
    policy("a or 0 of (b, c)", 6, &Fault::ThresholdZero);
}

#[test]
fn a_threshold_above_its_children_is_refused() {
    policy("a or 3 of (b, c)", 6, &Fault::ThresholdAboveChildren { children: 2 });
    policy("99999999999999999999999 of (b, c)", 1, &Fault::ThresholdAboveChildren { children: 2 });
}

#[test]
fn a_megabyte_of_text_is_refused_before_it_is_parsed() {
    for text in ["a or ".repeat(200_000), "(".repeat(1 << 20), "\"".repeat(1 << 20), "é".repeat(1 << 19)] {
        let error = AccessTree::parse(&text, &open()).unwrap_err();
        assert_eq!(error.fault(), &Fault::TextTooLong);
        assert!(error.pointing_at(&text).len() < 600);
        assert_eq!(AttributeSet::parse(&text, &open()).unwrap_err().fault(), &Fault::TextTooLong);
    }
    refused(
        &AccessTree::parse(&"a".repeat(MAX_TEXT + 1), &open()).unwrap_err(),
        MAX_TEXT + 1,
        &Fault::TextTooLong,
    );
}

#[test]
fn ten_thousand_parentheses_are_refused_without_following_them() {
    policy(&format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)), MAX_DEPTH + 1, &Fault::TooDeep);
    policy(&"1 of (".repeat(10_000), MAX_DEPTH * 6 + 6, &Fault::TooDeep);
    policy(&"(".repeat(10_000), MAX_DEPTH + 1, &Fault::TooDeep);
}

#[test]
fn gates_nest_no_deeper_than_parentheses_do() {
    // Two gates for each parenthesis: depth is counted in gates as well.
    let nested = |depth: usize| {
        (0..depth).fold("a".to_owned(), |inner, level| format!("x{level} or y{level} and ({inner})"))
    };
    assert!(AccessTree::parse(&nested(MAX_DEPTH / 2), &open()).is_ok());
    let error = AccessTree::parse(&nested(MAX_DEPTH / 2 + 1), &open()).unwrap_err();
    assert_eq!(error.fault(), &Fault::TooDeep);
}

#[test]
fn leaves_are_counted_as_the_bits_they_come_down_to() {
    let list = |count: usize| (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>().join(" or ");
    assert!(AccessTree::parse(&list(MAX_LEAVES), &open()).is_ok());
    let text = list(MAX_LEAVES + 1);
    policy(&text, text.len() - 4, &Fault::TooManyLeaves);
    // 16 leaves each.
    let wide = |count: usize| {
        (0..count).map(|number| format!("wide >= {}", 2 * number + 1)).collect::<Vec<_>>().join(" or ")
    };
    assert!(AccessTree::parse(&wide(MAX_LEAVES / 64), &open()).is_ok());
    assert_eq!(
        AccessTree::parse(&wide(MAX_LEAVES / 64 + 1), &open()).unwrap_err().fault(),
        &Fault::TooManyLeaves
    );
}

#[test]
fn a_comparison_out_of_range_is_refused_at_its_constant() {
    let kind = IntegerType::unsigned(16).unwrap();
    policy("a and altitude >= 65536", 19, &Fault::OutOfRange { kind });
    policy("altitude<99999999999999999999999", 10, &Fault::OutOfRange { kind });
    policy("valid-until > 2149-06-07", 15, &Fault::OutOfRange { kind: IntegerType::Date });
    attributes("altitude = 65536", 12, &Fault::OutOfRange { kind });
    let error = AccessTree::parse("altitude >= 65536", &open()).unwrap_err();
    assert_eq!(error.to_string(), "column 13: out of range: the smallest value is 0, the largest 65535");
}

#[test]
fn a_comparison_that_nothing_changes_is_refused() {
    policy("altitude >= 0", 13, &Fault::AlwaysTrue);
    policy("altitude <= 65535", 13, &Fault::AlwaysTrue);
    policy("altitude < 0", 12, &Fault::AlwaysFalse);
    policy("altitude > 65535", 12, &Fault::AlwaysFalse);
}

#[test]
fn a_constant_that_is_none_is_refused() {
    policy("altitude >= high", 13, &expected("a number", "`high`"));
    policy("altitude >= -5", 13, &expected("a number", "`-5`"));
    policy("altitude == 5", 11, &expected("a number", "`=`"));
    policy("altitude >=", 12, &expected("a number", "the end"));
    policy("valid-until >= 20261120", 16, &expected("a date such as 2026-11-20", "`20261120`"));
    policy("valid-until >= 2026-02-30", 16, &expected("a date such as 2026-11-20", "`2026-02-30`"));
}

#[test]
fn duplicate_attributes_are_refused() {
    attributes("scout, lidar, scout", 15, &Fault::Duplicate { name: "scout".into() });
    attributes("altitude = 1, scout, altitude=1", 22, &Fault::Duplicate { name: "altitude".into() });
    attributes("scout, \"scout\"", 8, &Fault::Duplicate { name: "scout".into() });
}

#[test]
fn a_leaf_listed_twice_under_one_gate_is_refused() {
    policy("2 of (thermal, lidar, thermal)", 23, &Fault::RepeatedLeaf);
    policy("a and (a)", 7, &Fault::RepeatedLeaf);
    policy("altitude >= 5 or altitude >= 5", 18, &Fault::RepeatedLeaf);
    assert!(AccessTree::parse("a and (a or b)", &open()).is_ok());
}

#[test]
fn an_unknown_attribute_is_refused_with_the_nearest_known() {
    let unknown = |text: &str| AccessTree::parse(text, &closed()).unwrap_err();
    let fault = Fault::UnknownAttribute { name: "scuot".into(), nearest: Some("scout".into()) };
    refused(&unknown("lidar and scuot"), 11, &fault);
    refused(&unknown("radar"), 1, &Fault::UnknownAttribute { name: "radar".into(), nearest: None });
    assert_eq!(unknown("scuot").to_string(), "column 1: unknown attribute `scuot`, did you mean `scout`?");
    let nearest = Some("altitude".into());
    policy("a or altitud > 5", 6, &Fault::NotAnInteger { name: "altitud".into(), nearest });
    policy("b or a > 5", 6, &Fault::NotAnInteger { name: "a".into(), nearest: None });
    attributes("scout = 5", 1, &Fault::NotAnInteger { name: "scout".into(), nearest: None });
    for (text, number) in [("150 <= altitude", "150"), ("100 < altitude < 200", "100")] {
        let said = unknown(text).to_string();
        assert!(said.contains(&format!("`{number}` is a number where a name is expected")), "{said}");
    }
    refused(&AttributeSet::parse("scout, scuot", &closed()).unwrap_err(), 8, &fault);
}

#[test]
fn an_integer_needs_a_value() {
    let kind = IntegerType::unsigned(16).unwrap();
    policy("a and altitude", 7, &Fault::NeedsValue { name: "altitude".into(), kind });
    attributes("a, altitude", 4, &Fault::NeedsValue { name: "altitude".into(), kind });
}

#[test]
fn words_without_a_keyword_between_them_are_refused() {
    policy("a b", 3, &expected("`and`, `or` or the end", "`b`"));
    policy("a, b", 2, &expected("`and`, `or` or the end", "`,`"));
    policy("(a, b)", 3, &expected("`and`, `or` or `)`", "`,`"));
    policy("2 of (a; b)", 8, &expected("`and`, `or`, `,` or `)`", "`;`"));
    attributes("a b", 3, &expected("`,` or the end", "`b`"));
    attributes("a,", 3, &expected("an attribute", "the end"));
    attributes(",a", 1, &expected("an attribute", "`,`"));
}

#[test]
fn keywords_where_an_operand_belongs_are_refused() {
    policy("and b", 1, &expected(OPERAND, "`and`"));
    policy("a or or b", 6, &expected(OPERAND, "`or`"));
    policy("a AND", 6, &expected(OPERAND, "the end"));
    policy("2 of a", 6, &expected("`(` after `of`", "`a`"));
    policy(
        "two of (a, b)",
        5,
        &expected("`and`, `or`, an operator or the end (`of` follows a number)", "`of`"),
    );
    policy("not a", 1, &Fault::Negation);
    policy("a and not b", 7, &Fault::Negation);
    attributes("a, of", 4, &expected("an attribute (a keyword stands in quotation marks)", "`of`"));
}

#[test]
fn names_nobody_could_read_are_refused() {
    policy("a or \"b", 6, &Fault::UnclosedQuote);
    policy("\"\"", 1, &Fault::NameLength);
    policy(&"a".repeat(AttributeName::MAX_LEN + 1), 1, &Fault::NameLength);
    policy("\"a\tb\"", 3, &Fault::NameCharacter('\t'));
    policy("\"scout\u{202e}\"", 7, &Fault::NameCharacter('\u{202e}'));
    policy("\"a\\nb\"", 4, &expected("`\"` or `\\` after a backslash", "`nb`"));
}

#[test]
fn one_name_is_one_kind_of_attribute() {
    let mut builder = AccessTree::builder();
    let compare = |bits| {
        let kind = IntegerType::unsigned(bits).unwrap();
        quiver_policy::Condition::compare("altitude", kind, quiver_policy::Operator::Above, 5).unwrap()
    };
    builder.leaf(compare(16)).unwrap();
    assert_eq!(builder.leaf(compare(8)), Err(Fault::ConflictingKinds { name: "altitude".into() }));
    let plain = quiver_policy::Condition::plain("altitude").unwrap();
    assert_eq!(builder.leaf(plain), Err(Fault::ConflictingKinds { name: "altitude".into() }));
}

#[test]
fn a_builder_takes_trees_only() {
    let leaf = |name: &str| quiver_policy::Condition::plain(name).unwrap();
    let mut builder = AccessTree::builder();
    let (a, b) = (builder.leaf(leaf("a")).unwrap(), builder.leaf(leaf("b")).unwrap());
    assert_eq!(builder.gate(0, vec![a]), Err(Fault::ThresholdZero));
    assert_eq!(builder.gate(1, vec![]), Err(Fault::ThresholdAboveChildren { children: 0 }));
    assert!(matches!(builder.gate(1, vec![a, 9]), Err(Fault::Builder(_))));
    assert!(matches!(builder.gate(1, vec![a, b, a]), Err(Fault::Builder(_))));
    let again = builder.leaf(leaf("a")).unwrap();
    assert_eq!(builder.clone().gate(1, vec![a, b, again]), Err(Fault::RepeatedLeaf));
    let mut builder = AccessTree::builder();
    let (a, b) = (builder.leaf(leaf("a")).unwrap(), builder.leaf(leaf("b")).unwrap());
    assert!(matches!(builder.clone().finish(a), Err(Fault::Builder(_))), "b would be lost");
    let gate = builder.gate(2, vec![a, b]).unwrap();
    assert!(matches!(builder.gate(1, vec![a]), Err(Fault::Builder(_))), "a stands under a gate already");
    assert!(matches!(builder.gate(1, vec![gate, gate]), Err(Fault::Builder(_))));
    assert!(matches!(builder.clone().finish(a), Err(Fault::Builder(_))));
    assert_eq!(builder.finish(gate).unwrap().to_string(), "a and b");
}

#[test]
fn the_caret_stands_under_the_fault() {
    let text = "scout and\n  (thérmal or altitude >= 70000)";
    let error = AccessTree::parse("scout and\n  (\"thérmal\" or altitude >= 70000)", &open()).unwrap_err();
    assert_eq!(error.place().map(|place| (place.line, place.column)), Some((2, 29)));
    let error = AccessTree::parse(text, &open()).unwrap_err();
    assert_eq!(
        error.pointing_at(text),
        "  (thérmal or altitude >= 70000)\n     ^\nline 2, column 6: expected `and`, `or` or `)`, found `é`"
    );
    // Of a long line, the part around the fault; and nothing that would move a terminal's cursor.
    let long = format!("{} or \u{1b}[2J", "a".repeat(100));
    let shown = AccessTree::parse(&long, &open()).unwrap_err().pointing_at(&long);
    let (line, caret) = (shown.lines().next().unwrap(), shown.lines().nth(1).unwrap());
    assert_eq!(line.chars().nth(caret.chars().count() - 1), Some('\u{fffd}'));
    assert!(!shown.contains('\u{1b}'));
}

#[test]
fn a_policy_that_is_written_has_no_contradiction() {
    let names = |text: &str| match AccessTree::parse_new(text, &open()).map_err(|error| error.fault().clone())
    {
        Err(Fault::Contradiction { name }) => Some(name),
        Ok(_) => None,
        Err(other) => panic!("{text}: {other}"),
    };
    for text in [
        "altitude >= 100 and altitude <= 50",
        "altitude > 100 and a and altitude < 101",
        "a or (altitude >= 100 and (b and altitude <= 50))",
        "(altitude >= 100 or altitude >= 200) and altitude <= 50",
        "2 of (altitude >= 100, altitude = 120, altitude >= 300) and altitude < 100",
        "altitude = 7 and altitude != 7",
        "altitude >= 7 and altitude < 10 and altitude != 7 and altitude != 9 and altitude != 8",
        "3 of (altitude = 1, a, altitude = 2)",
    ] {
        assert_eq!(names(text).as_deref(), Some("altitude"), "{text}");
    }
    assert_eq!(
        names("wide > 18446744073709551614 and wide != 18446744073709551615").as_deref(),
        Some("wide")
    );
    for text in [
        "altitude >= 100 and altitude <= 100",
        "altitude >= 100 or altitude <= 50",
        "(altitude >= 100 or a) and altitude <= 50",
        "2 of (altitude >= 100, a, altitude <= 50)",
        "altitude >= 7 and altitude < 10 and altitude != 7 and altitude != 9",
        "altitude >= 100 and wide <= 50",
        "altitude != 0 and altitude != 65535",
    ] {
        assert_eq!(names(text), None, "{text}");
        assert_eq!(AccessTree::parse_new(text, &open()), AccessTree::parse(text, &open()));
    }
    // A policy written before can still be read.
    AccessTree::parse("altitude >= 100 and altitude <= 50", &open()).unwrap();
    let error = AccessTree::parse_new("altitude >= 100 and altitude <= 50", &open()).unwrap_err();
    assert_eq!(error.to_string(), "no value of `altitude` fulfils all that the policy demands of it");
}
