//! Random policies and sets over a few names, so that they meet.

use proptest::prelude::*;
use quiver_policy::{AccessTree, AttributeSet, Builder, Condition, Fault, IntegerType, Operator, Schema};

const PLAIN: [&str; 6] = ["scout", "sector:7", "thermal", "and", "two words", "Über \"x\\"];
const INTEGERS: [(&str, u8); 4] = [("altitude", 16), ("flag", 1), ("battery", 7), ("wide", 64)];
const DATE: &str = "valid until";

/// Declares the integers.
pub(crate) fn schema() -> Schema {
    let schema = Schema::new().with_integer(DATE, IntegerType::Date).unwrap();
    INTEGERS.iter().fold(schema, |schema, (name, bits)| {
        schema.with_integer(name, IntegerType::unsigned(*bits).unwrap()).unwrap()
    })
}

/// Names, many of which need quotation marks.
pub(crate) fn name() -> impl Strategy<Value = String> {
    let names = prop_oneof!["[A-Za-z0-9_.:/-]{1,12}", "(and|OR|of|Not)", "[ -~]{1,20}", "\\PC{1,20}"];
    names.prop_filter("printable", |name| quiver_policy::AttributeName::new(name).is_ok())
}

fn integer() -> impl Strategy<Value = (&'static str, IntegerType, u64)> {
    let kinds: Vec<_> = schema().integers().map(|(name, kind)| (name.as_str().to_owned(), kind)).collect();
    let value = prop_oneof![any::<u64>(), 0_u64..8, Just(u64::MAX)];
    (prop::sample::select(kinds), value).prop_map(|((name, kind), value)| {
        let names = INTEGERS.iter().map(|(name, _)| *name).chain([DATE]);
        let name = names.into_iter().find(|known| *known == name).unwrap();
        (name, kind, value & kind.max())
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    use Operator::{Above, AtLeast, AtMost, Below, Equal, Unequal};
    let operators = prop::sample::select(vec![AtLeast, Above, AtMost, Below, Equal, Unequal]);
    let compared = (integer(), operators)
        .prop_filter_map("says something", |((name, kind, value), operator)| {
            Condition::compare(name, kind, operator, value).ok()
        });
    let plain = || prop::sample::select(&PLAIN[..]).prop_map(|name| Condition::plain(name).unwrap());
    prop_oneof![3 => plain(), 1 => compared]
}

#[derive(Clone, Debug)]
enum Shape {
    Leaf(Condition),
    Gate(usize, Vec<Shape>),
}

fn build(shape: &Shape, builder: &mut Builder) -> Result<usize, Fault> {
    match shape {
        Shape::Leaf(condition) => builder.leaf(condition.clone()),
        Shape::Gate(threshold, children) => {
            let children =
                children.iter().map(|child| build(child, builder)).collect::<Result<Vec<_>, _>>()?;
            builder.gate(threshold % children.len() + 1, children)
        }
    }
}

fn built(shape: &Shape) -> Option<AccessTree> {
    let mut builder = AccessTree::builder();
    match build(shape, &mut builder) {
        Ok(root) => Some(builder.finish(root).unwrap()),
        Err(Fault::RepeatedLeaf | Fault::TooManyLeaves) => None,
        Err(fault) => panic!("{fault}"),
    }
}

fn of_depth(depth: u32, leaves: u32, leaf: BoxedStrategy<Condition>) -> impl Strategy<Value = AccessTree> {
    let shape = leaf.prop_map(Shape::Leaf).prop_recursive(depth, leaves, 4, |inner| {
        (any::<usize>(), prop::collection::vec(inner, 1..=4))
            .prop_map(|(k, children)| Shape::Gate(k % 64, children))
    });
    shape.prop_filter_map("a leaf twice under a gate", |shape| built(&shape))
}

/// A policy.
pub(crate) fn tree() -> impl Strategy<Value = AccessTree> {
    of_depth(5, 24, condition().boxed())
}

/// A policy of few leaves, with comparisons of few bits.
pub(crate) fn small_tree() -> impl Strategy<Value = AccessTree> {
    let small =
        condition().prop_filter("few bits", |condition| condition.kind().is_none_or(|kind| kind.bits() <= 7));
    of_depth(3, 8, small.boxed())
}

/// A set.
pub(crate) fn set() -> impl Strategy<Value = AttributeSet> {
    let plain = prop::sample::subsequence(PLAIN.to_vec(), 0..=PLAIN.len());
    (plain, prop::collection::vec(integer(), 0..5)).prop_map(|(plain, integers)| {
        let mut set = AttributeSet::new();
        plain.into_iter().for_each(|name| set.insert_plain(name).unwrap());
        for (name, kind, value) in integers {
            // A name drawn twice keeps its first value.
            let _ = set.insert_integer(name, kind, value);
        }
        set
    })
}
