//! Costs of a policy beside the cryptography that it controls: parsing, lowering, selecting.
//!
//! A pairing is hundreds of microseconds; the largest policy there may be must stay in that order, and one of
//! thirty leaves far below it.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use quiver_policy::{AccessTree, AttributeSet, IntegerType, Schema};

fn schema() -> Schema {
    Schema::new().with_integer("altitude", IntegerType::unsigned(16).unwrap()).unwrap()
}

/// Alternatives of four plain attributes and a comparison, as many as make `leaves` leaves or a few more; the
/// last one has what `set` has.
fn policy(leaves: usize) -> String {
    let alternatives = (0..leaves.div_ceil(10)).map(|number| {
        format!(
            "(scout-{number} and altitude >= {} and 2 of (thermal-{number}, lidar, radar))",
            2048 * (number % 31 + 1) + 1024
        )
    });
    alternatives.collect::<Vec<_>>().join(" or ")
}

fn set() -> AttributeSet {
    AttributeSet::parse("scout-0, thermal-0, lidar, altitude = 40000, sector:7", &schema()).unwrap()
}

fn policies(c: &mut Criterion) {
    let (schema, set) = (schema(), set());
    for leaves in [10, 30, 1_000] {
        let text = policy(leaves);
        let tree = AccessTree::parse(&text, &schema).unwrap();
        let (formula, bytes) = (tree.formula(), tree.encode());
        assert!(formula.leaves().len().abs_diff(leaves) <= leaves / 10 + 2, "{}", formula.leaves().len());
        assert!(formula.satisfied_by(&set));
        let mut group = c.benchmark_group("policy");
        group.bench_function(BenchmarkId::new("parse", leaves), |b| {
            b.iter(|| AccessTree::parse(black_box(&text), &schema));
        });
        group.bench_function(BenchmarkId::new("decode", leaves), |b| {
            b.iter(|| AccessTree::decode(black_box(&bytes)));
        });
        group.bench_function(BenchmarkId::new("lower", leaves), |b| b.iter(|| black_box(&tree).formula()));
        group.bench_function(BenchmarkId::new("select", leaves), |b| {
            b.iter(|| black_box(&formula).select(&set, |_, use_number| 1 + use_number as u32));
        });
        group.finish();
    }
}

criterion_group!(benches, policies);
criterion_main!(benches);
