//! Every algorithm of every scheme for 1, 10 and 30 attributes: a conjunction of so many, and a set of just
//! these.
//!
//! `cargo bench -p quiver-abe --features insecure-yct14`. Only ratios within one run mean anything:
//! decryption of 30 leaves to that of one, `prepared` to plain, one scheme to another.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use quiver_abe::{FabeoCp, FabeoKp, Gpsw06, PublicEncoding, Scheme, Universe};
use quiver_policy::{AccessTree, Attribute, AttributeSet, Schema};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const COUNTS: [usize; 3] = [1, 10, 30];

/// So many attributes, as a list with something between them.
fn names(count: usize, between: &str) -> String {
    (0..count).map(|number| format!("attribute-{number}")).collect::<Vec<_>>().join(between)
}

fn tree(count: usize) -> AccessTree {
    AccessTree::parse(&names(count, " and "), &Schema::new()).unwrap()
}

fn set(count: usize) -> AttributeSet {
    AttributeSet::parse(&names(count, ", "), &Schema::new()).unwrap()
}

fn listed(count: usize) -> Universe {
    let names = (0..count).map(|number| Attribute::plain(&format!("attribute-{number}")).unwrap());
    Universe::closed(names).unwrap()
}

/// Keys and ciphertexts with which one scheme is measured.
struct Sides<S: Scheme> {
    universe: fn(usize) -> Universe,
    of_key: fn(usize) -> S::KeyTerms,
    of_ciphertext: fn(usize) -> S::CiphertextTerms,
}

fn issue<S: Scheme>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    suffix: &str,
    count: usize,
    sides: &Sides<S>,
    (parameters, master): (&S::Parameters, &S::MasterKey),
) {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let terms = (sides.of_key)(count);
    group.bench_function(BenchmarkId::new(format!("derive{suffix}"), count), |bencher| {
        bencher.iter(|| S::derive(parameters, master, black_box(&terms), &mut rng));
    });
    let terms = (sides.of_ciphertext)(count);
    group.bench_function(BenchmarkId::new(format!("encapsulate{suffix}"), count), |bencher| {
        bencher.iter(|| S::encapsulate(parameters, black_box(&terms), &mut rng));
    });
}

fn scheme<S: Scheme>(criterion: &mut Criterion, sides: &Sides<S>) {
    let mut group = criterion.benchmark_group(S::ID);
    for count in COUNTS {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let universe = (sides.universe)(count);
        group.bench_function(BenchmarkId::new("setup", count), |bencher| {
            bencher.iter(|| S::setup(black_box(&universe), &mut rng));
        });
        let (mut parameters, master) = S::setup(&universe, &mut rng).unwrap();
        issue(&mut group, "", count, sides, (&parameters, &master));

        let key = S::derive(&parameters, &master, &(sides.of_key)(count), &mut rng).unwrap();
        let terms = (sides.of_ciphertext)(count);
        let (ciphertext, _) = S::encapsulate(&parameters, &terms, &mut rng).unwrap();
        group.bench_function(BenchmarkId::new("decapsulate", count), |bencher| {
            bencher.iter(|| S::decapsulate(&parameters, black_box(&key), black_box(&ciphertext)));
        });
        let bytes = ciphertext.encode();
        group.bench_function(BenchmarkId::new("decode ciphertext", count), |bencher| {
            bencher.iter(|| S::Ciphertext::decode(black_box(&bytes)));
        });

        S::prepare(&mut parameters, &listed(count));
        issue(&mut group, " prepared", count, sides, (&parameters, &master));
    }
    group.finish();
}

fn schemes(criterion: &mut Criterion) {
    let open = |_| Universe::Open;
    scheme::<Gpsw06>(criterion, &Sides { universe: listed, of_key: tree, of_ciphertext: set });
    scheme::<FabeoKp>(criterion, &Sides { universe: open, of_key: tree, of_ciphertext: set });
    scheme::<FabeoCp>(criterion, &Sides { universe: open, of_key: set, of_ciphertext: tree });
    #[cfg(feature = "insecure-yct14")]
    scheme::<quiver_abe::InsecureYct14>(
        criterion,
        &Sides { universe: listed, of_key: tree, of_ciphertext: set },
    );
}

criterion_group!(benches, schemes);
criterion_main!(benches);
