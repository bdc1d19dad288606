//! Properties of every policy: text and bytes are read back, formulas mean what the policy means, selections
//! are the cheapest there are.

mod trees;

use std::collections::BTreeSet;

use proptest::prelude::*;
use quiver_crypto::canonical::Reader;
use quiver_policy::{
    AccessTree, Attribute, AttributeName, AttributeSet, Comparison, Condition, Formula, IntegerType,
    Operator, PolicyNode, Schema, Selection,
};
use trees::{name, schema, set, small_tree, tree};

const OPERATORS: [Operator; 6] = [
    Operator::AtLeast,
    Operator::Above,
    Operator::AtMost,
    Operator::Below,
    Operator::Equal,
    Operator::Unequal,
];

/// Returns true if leaves are enough, evaluated top-down.
fn enough(formula: &Formula, node: usize, leaves: &BTreeSet<usize>) -> bool {
    match &formula.nodes()[node] {
        PolicyNode::Leaf(leaf) => leaves.contains(leaf),
        PolicyNode::Gate(gate) => {
            let fulfilled = gate.children().iter().filter(|&&child| enough(formula, child, leaves)).count();
            fulfilled >= gate.threshold()
        }
    }
}

fn suffices(formula: &Formula, leaves: &BTreeSet<usize>) -> bool {
    enough(formula, formula.nodes().len() - 1, leaves)
}

/// A cost that differs from leaf to leaf and has equals.
fn cost(attribute: &Attribute, use_number: usize) -> u32 {
    let bytes = attribute.hash_input();
    bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>() % 7 + 3 * use_number as u32
}

fn cost_of(formula: &Formula, leaves: impl IntoIterator<Item = usize>) -> u64 {
    let leaves = leaves.into_iter().map(|leaf| &formula.leaves()[leaf]);
    leaves.map(|leaf| u64::from(cost(leaf.attribute(), leaf.use_number()))).sum()
}

/// Returns true if the gates of a selection lead from the root to its leaves, each taking as many children as
/// it needs.
fn leads_to_its_leaves(formula: &Formula, selection: &Selection) -> bool {
    let mut reached = BTreeSet::from([formula.nodes().len() - 1]);
    for selected in selection.gates() {
        let PolicyNode::Gate(gate) = &formula.nodes()[selected.node()] else { return false };
        if !reached.remove(&selected.node()) || selected.places().len() != gate.threshold() {
            return false;
        }
        reached.extend(selected.places().iter().map(|&place| gate.children()[place as usize - 1]));
    }
    let leaves = reached.iter().map(|&node| match formula.nodes()[node] {
        PolicyNode::Leaf(leaf) => Some(leaf),
        PolicyNode::Gate(_) => None,
    });
    leaves.eq(selection.leaves().iter().map(|&leaf| Some(leaf)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_policy_is_parsed_from_its_own_text(tree in tree()) {
        let text = tree.to_string();
        prop_assert_eq!(&AccessTree::parse(&text, &schema()).unwrap(), &tree, "{}", text);
        prop_assert_eq!(&AccessTree::parse(&text, &tree.schema()).unwrap(), &tree);
    }

    #[test]
    fn a_policy_is_decoded_from_its_own_bytes(tree in tree()) {
        prop_assert_eq!(AccessTree::decode(&tree.encode()).unwrap(), tree);
    }

    #[test]
    fn a_set_is_read_from_its_own_text_and_bytes(set in set()) {
        prop_assert_eq!(&AttributeSet::parse(&set.to_string(), &schema()).unwrap(), &set);
        prop_assert_eq!(&AttributeSet::parse(&set.to_string(), &set.schema()).unwrap(), &set);
        prop_assert_eq!(&AttributeSet::decode(&set.encode()).unwrap(), &set);
        prop_assert_eq!(set.atoms().count(), set.len());
        prop_assert!(set.atoms().all(|atom| set.contains(&atom)));
    }

    #[test]
    fn an_atom_is_decoded_from_what_is_hashed(set in set()) {
        for atom in set.atoms() {
            let bytes = atom.hash_input();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Attribute::decode(&mut reader), Ok(atom));
            prop_assert_eq!(reader.remaining(), 0);
        }
    }

    #[test]
    fn a_formula_means_what_the_policy_says(tree in tree(), sets in prop::collection::vec(set(), 8)) {
        let formula = tree.formula();
        for set in &sets {
            prop_assert_eq!(formula.satisfied_by(set), tree.satisfied_by(set), "{} for {}", tree, set);
        }
    }

    #[test]
    fn a_comparison_comes_down_to_what_it_says(
        bits in 1_u8..=64, operator in prop::sample::select(&OPERATORS[..]), constant: u64, values: [u64; 8],
    ) {
        let kind = IntegerType::unsigned(bits).unwrap();
        let near = [constant.wrapping_sub(1), constant, constant.wrapping_add(1), 0, u64::MAX];
        let name = AttributeName::new("x").unwrap();
        let Ok(comparison) = Comparison::new(name, kind, operator, constant & kind.max()) else { return Ok(()) };
        let tree = of_one(Condition::Compare(comparison.clone()));
        let formula = tree.formula();
        for value in values.into_iter().chain(near).map(|value| value & kind.max()) {
            let mut set = AttributeSet::new();
            set.insert_integer("x", kind, value).unwrap();
            prop_assert_eq!(formula.satisfied_by(&set), comparison.holds(value), "{} for {}", comparison, value);
        }
    }

    #[test]
    fn a_selection_is_enough_and_no_leaf_of_it_can_be_left_out(tree in tree(), set in set()) {
        let formula = tree.formula();
        let selection = formula.select(&set, cost);
        prop_assert_eq!(selection.is_some(), formula.satisfied_by(&set));
        let Some(selection) = selection else { return Ok(()) };
        let chosen: BTreeSet<usize> = selection.leaves().iter().copied().collect();
        prop_assert!(chosen.iter().all(|&leaf| set.contains(formula.leaves()[leaf].attribute())));
        prop_assert!(suffices(&formula, &chosen));
        for left_out in &chosen {
            let rest = chosen.iter().copied().filter(|leaf| leaf != left_out).collect();
            prop_assert!(!suffices(&formula, &rest));
        }
        prop_assert_eq!(selection.cost(), cost_of(&formula, chosen));
        prop_assert!(selection.leaves().is_sorted());
        prop_assert!(leads_to_its_leaves(&formula, &selection));
    }

    #[test]
    fn no_satisfying_subset_is_cheaper_than_the_selection(tree in small_tree(), set in set()) {
        let formula = tree.formula();
        let count = formula.leaves().len();
        prop_assume!(count <= 12);
        let had = |leaf: &usize| set.contains(formula.leaves()[*leaf].attribute());
        let subsets = (0_u32..1 << count).map(|mask| (0..count).filter(|&leaf| mask >> leaf & 1 == 1).collect());
        let cheapest = subsets
            .filter(|subset: &BTreeSet<usize>| subset.iter().all(had) && suffices(&formula, subset))
            .map(|subset| cost_of(&formula, subset))
            .min();
        prop_assert_eq!(formula.select(&set, cost).map(|selection| selection.cost()), cheapest);
    }

    #[test]
    fn a_changed_byte_is_refused_or_gives_something_else(tree in tree(), set in set(), at: prop::sample::Index, flip in 1_u8..) {
        let mut bytes = tree.encode();
        *at.get_mut(&mut bytes) ^= flip;
        if let Ok(other) = AccessTree::decode(&bytes) {
            prop_assert_ne!(&other, &tree);
            prop_assert_eq!(other.encode(), bytes);
            prop_assert_eq!(AccessTree::parse(&other.to_string(), &other.schema()).unwrap(), other);
        }
        let mut bytes = set.encode();
        *at.get_mut(&mut bytes) ^= flip;
        if let Ok(other) = AttributeSet::decode(&bytes) {
            prop_assert_ne!(&other, &set);
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    #[test]
    fn whatever_is_cut_off_is_refused(tree in tree(), set in set()) {
        let (tree, set, schema) = (tree.encode(), set.encode(), schema().encode());
        for len in 0..tree.len() {
            prop_assert!(AccessTree::decode(&tree[..len]).is_err());
        }
        for len in 0..set.len() {
            prop_assert!(AttributeSet::decode(&set[..len]).is_err());
        }
        for len in 0..schema.len() {
            prop_assert!(Schema::decode(&schema[..len]).is_err());
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_with_a_place(text in any_text()) {
        for schema in [Schema::new(), schema()] {
            match AccessTree::parse(&text, &schema) {
                Ok(tree) => prop_assert_eq!(AccessTree::parse(&tree.to_string(), &schema).unwrap(), tree),
                Err(error) => {
                    let place = error.place().unwrap();
                    prop_assert!(place.column <= text.chars().count() + 1, "{}", error);
                    prop_assert!(error.pointing_at(&text).ends_with(&error.to_string()));
                }
            }
            match AttributeSet::parse(&text, &schema) {
                Ok(set) => prop_assert_eq!(AttributeSet::parse(&set.to_string(), &schema).unwrap(), set),
                Err(error) => prop_assert!(error.place().is_some()),
            }
        }
    }

    #[test]
    fn a_name_is_read_from_how_it_is_written(name in name()) {
        let tree = of_one(Condition::plain(&name).unwrap());
        prop_assert_eq!(AccessTree::parse(&tree.to_string(), &Schema::new()).unwrap(), tree);
    }

    #[test]
    fn tools_read_what_they_wrote(tree in tree(), set in set()) {
        let json = serde_json::to_string(&(&tree, &set, schema())).unwrap();
        prop_assert_eq!(serde_json::from_str::<(AccessTree, AttributeSet, Schema)>(&json).unwrap(), (tree.clone(), set, schema()));
        let toml = toml::to_string(&tree).unwrap();
        prop_assert_eq!(toml::from_str::<AccessTree>(&toml).unwrap(), tree);
    }
}

fn of_one(condition: Condition) -> AccessTree {
    let mut builder = AccessTree::builder();
    let root = builder.leaf(condition).unwrap();
    builder.finish(root).unwrap()
}

/// Text, and text out of pieces of the language.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = [
        "and",
        "or",
        "of",
        "not",
        "(",
        ")",
        ",",
        "2",
        "3",
        "a",
        "b",
        "c",
        "\"",
        "\\",
        ">=",
        "<",
        "=",
        "!=",
        " ",
        "\n",
        "altitude",
        "date",
        "2026-11-20",
        "é",
        "150",
        "scout",
    ];
    let language = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24);
    prop_oneof![".{0,40}", language.prop_map(|pieces| pieces.join(" "))]
}

/// Leaves of the least formula: of every bit that can change the answer, one.
fn bits_that_matter(comparison: &Comparison, bits: u8) -> usize {
    let matters = |bit: u8| {
        (0..1_u64 << bits).any(|value| comparison.holds(value) != comparison.holds(value ^ (1 << bit)))
    };
    (0..bits).filter(|&bit| matters(bit)).count()
}

#[test]
fn every_comparison_of_up_to_six_bits_is_right_and_as_small_as_it_can_be() {
    for bits in 1..=6_u8 {
        let kind = IntegerType::unsigned(bits).unwrap();
        for (operator, constant) in
            OPERATORS.into_iter().flat_map(|op| (0..=kind.max()).map(move |c| (op, c)))
        {
            let holding = (0..=kind.max()).filter(|&value| operator.holds(value, constant)).count();
            let name = AttributeName::new("x").unwrap();
            let Ok(comparison) = Comparison::new(name, kind, operator, constant) else {
                // A refused comparison is trivial: it holds of all values or of none.
                assert!(holding == 0 || holding == 1 << bits, "{operator} {constant} of {bits} bits");
                continue;
            };
            assert!(
                holding > 0 && holding < 1 << bits || matches!(operator, Operator::Equal | Operator::Unequal)
            );
            let formula = of_one(Condition::Compare(comparison.clone())).formula();
            assert_eq!(
                formula.leaves().len(),
                bits_that_matter(&comparison, bits),
                "{comparison} of {bits} bits"
            );
            for value in 0..=kind.max() {
                let mut set = AttributeSet::new();
                set.insert_integer("x", kind, value).unwrap();
                assert_eq!(formula.satisfied_by(&set), comparison.holds(value), "{comparison} for {value}");
            }
        }
    }
}
