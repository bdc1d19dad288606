//! blst next to arkworks, operation by operation, in one run: what counts are the ratios.
//!
//! `cargo bench -p quiver-pairing`. Groups end in the name of the operation, functions in that of the back
//! end; tables and powers in the target group are this crate's own over arkworks' fields, next to what
//! arkworks does for the same.

use std::hint::black_box;
use std::time::Duration;

use ark_ec::PrimeGroup;
use ark_ff::{CyclotomicMultSubgroup, PrimeField};
use cpu_time::ThreadTime;
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use quiver_pairing::backend::{Arkworks, Backend, Blst};
use quiver_pairing::{
    Curve, FixedBase, G1, G1Curve, G2, G2Curve, Group, Gt, Point, Scalar, hash_to_scalar, pairing,
};

const DOMAIN: &str = "QUIVER-BENCH_XMD:SHA-256_SSWU_RO_";

/// Measures the thread's own time, so that others on the machine count for little. No back end has threads.
fn timed<T>(b: &mut Bencher<'_, WallTime>, mut operation: impl FnMut() -> T) {
    b.iter_custom(|iterations| {
        let start = ThreadTime::now();
        for _ in 0..iterations {
            black_box(operation());
        }
        start.elapsed()
    });
}

fn scalar(index: usize) -> Scalar {
    hash_to_scalar(DOMAIN, &[&index.to_be_bytes()])
}

fn points<C: Curve>(count: usize) -> Vec<Point<C>> {
    let table = FixedBase::new(&Point::generator());
    (0..count).map(|index| table.multiply(&scalar(index))).collect()
}

fn pairings<B: Backend>(group: &mut BenchmarkGroup<'_, WallTime>, count: usize) {
    let pairs: Vec<(G1, G2)> = points(count).into_iter().zip(points(count)).collect();
    group.bench_function(B::NAME, |b| timed(b, || B::pairing_product(black_box(&pairs))));
}

fn multiplication<B: Backend, C: Curve>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let (point, scalar) = (points::<C>(1)[0], scalar(7));
    group.bench_function(B::NAME, |b| timed(b, || B::multiply(black_box(&point), black_box(&scalar))));
}

fn generator<B: Backend>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let scalar = scalar(7);
    group.bench_function(B::NAME, |b| timed(b, || B::multiply_generator(black_box(&scalar))));
}

fn hashing<B: Backend, C: Curve>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let message: &[u8] = b"thirty-two bytes of a message...";
    group.bench_function(B::NAME, |b| timed(b, || B::hash::<C>(DOMAIN, black_box(&[message]))));
}

fn decoding<B: Backend, C: Curve>(group: &mut BenchmarkGroup<'_, WallTime>) {
    let bytes = points::<C>(1)[0].encode();
    group.bench_function(B::NAME, |b| timed(b, || B::decode::<C>(black_box(&bytes)).unwrap()));
}

fn combination<B: Backend, C: Curve>(group: &mut BenchmarkGroup<'_, WallTime>, count: usize) {
    let points = points::<C>(count);
    let scalars: Vec<Scalar> = (1..=count).map(scalar).collect();
    group.bench_function(B::NAME, |b| timed(b, || B::msm(black_box(&points), black_box(&scalars))));
}

fn small_combination<B: Backend>(group: &mut BenchmarkGroup<'_, WallTime>, count: usize, bits: u32) {
    let points = points::<G1Curve>(count);
    let integers: Vec<i128> = (0..count)
        .map(|index| {
            let [low, high, ..] = scalar(index).into_bigint().0;
            ((u128::from(high) << 64 | u128::from(low)) as i128) >> (127 - bits)
        })
        .collect();
    group.bench_function(B::NAME, |b| {
        timed(b, || B::msm_small(black_box(&points), black_box(&integers)));
    });
}

macro_rules! compare {
    ($criterion:ident, $name:expr, $function:ident $(, $curve:ty)?; $($argument:expr),*) => {{
        let mut group = $criterion.benchmark_group($name);
        $function::<Arkworks $(, $curve)?>(&mut group $(, $argument)*);
        $function::<Blst $(, $curve)?>(&mut group $(, $argument)*);
        group.finish();
    }};
}

fn back_ends(c: &mut Criterion) {
    compare!(c, "pairing", pairings; 1);
    compare!(c, "product of 30", pairings; 30);
    compare!(c, "multiply G1", multiplication, G1Curve;);
    compare!(c, "multiply G2", multiplication, G2Curve;);
    compare!(c, "multiply the generator of G1", generator;);
    compare!(c, "hash to G1", hashing, G1Curve;);
    compare!(c, "hash to G2", hashing, G2Curve;);
    compare!(c, "decode G1", decoding, G1Curve;);
    compare!(c, "decode G2", decoding, G2Curve;);
    for count in [2, 8, 128, 1024] {
        compare!(c, format!("combine {count} in G1"), combination, G1Curve; count);
        compare!(c, format!("combine {count} in G2"), combination, G2Curve; count);
    }
    for (count, bits) in [(30, 1), (30, 32), (30, 127), (256, 8), (256, 16), (256, 127)] {
        compare!(c, format!("combine {count} in G1 with {bits} bits"), small_combination; count, bits);
    }
}

fn tables<G: Group>(c: &mut Criterion, name: &str, base: G) {
    let mut group = c.benchmark_group(format!("fixed base {name}"));
    let scalar = scalar(3);
    group.bench_function("variable base", |b| timed(b, || black_box(base) * black_box(&scalar)));
    for bits in [4, FixedBase::<G>::DEFAULT_WINDOW, 8] {
        let table = FixedBase::with_window(&base, bits);
        group.bench_function(format!("{bits} bits"), |b| timed(b, || table.multiply(black_box(&scalar))));
    }
    group.bench_function("make a table", |b| timed(b, || FixedBase::new(black_box(&base))));
    group.finish();
}

fn own(c: &mut Criterion) {
    let gt: Gt = pairing(&G1::generator(), &G2::generator());
    tables(c, "G1", points::<G1Curve>(1)[0]);
    tables(c, "G2", points::<G2Curve>(1)[0]);
    tables(c, "Gt", gt);
    let mut group = c.benchmark_group("multiply");
    let factor = scalar(6);
    let (p, q) = (ark_bls12_381::G1Projective::generator(), ark_bls12_381::G2Projective::generator());
    group.bench_function("G1 unsplit", |b| timed(b, || black_box(p) * black_box(&factor)));
    group.bench_function("G2 unsplit", |b| timed(b, || black_box(q) * black_box(&factor)));
    group.finish();
    let mut group = c.benchmark_group("power in Gt");
    let (scalar, inner) = (scalar(5), ark_element());
    group.bench_function("arkworks", |b| timed(b, || inner.cyclotomic_exp(black_box(scalar.into_bigint()))));
    group.bench_function("split in four", |b| timed(b, || black_box(gt) * black_box(&scalar)));
    group.finish();
}

/// The pairing of the generators, as arkworks has it.
fn ark_element() -> ark_bls12_381::Fq12 {
    use ark_ec::AffineRepr;
    use ark_ec::pairing::Pairing;
    ark_bls12_381::Bls12_381::pairing(
        ark_bls12_381::G1Affine::generator(),
        ark_bls12_381::G2Affine::generator(),
    )
    .0
}

criterion_group! {
    name = backends;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = back_ends, own
}
criterion_main!(backends);
