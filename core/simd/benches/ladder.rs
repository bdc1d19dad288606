//! The ladder next to what curve25519-dalek needs for the same points, in batches of several sizes.
//!
//! Per batch: `ladder` is [`quiver_simd::x25519::multiply`] on this machine's backend; `montgomery` dalek's
//! ladder, point by point; `edwards` dalek's multiplication of ristretto points, whose encodings share one
//! inversion. The ratios of one run are what counts. Throughput is in points.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use curve25519_dalek::montgomery::MontgomeryPoint;
use curve25519_dalek::{RistrettoPoint, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

fn batches(c: &mut Criterion) {
    let backend = format!("{:?}", quiver_simd::x25519::backend());
    let mut group = c.benchmark_group(backend);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut bytes = || {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    let clamped = bytes();
    let scalar = Scalar::from_bytes_mod_order(clamped);
    for count in [1, 2, 8, 9, 64, 512, 2000] {
        let us: Vec<[u8; 32]> = (0..count).map(|_| bytes()).collect();
        let points: Vec<RistrettoPoint> =
            (0..count).map(|_| RistrettoPoint::mul_base(&Scalar::from_bytes_mod_order(bytes()))).collect();
        group.throughput(Throughput::Elements(count));
        group.bench_with_input(BenchmarkId::new("ladder", count), &us, |b, us| {
            b.iter(|| quiver_simd::x25519::multiply(black_box(&clamped), us));
        });
        group.bench_with_input(BenchmarkId::new("montgomery", count), &us, |b, us| {
            b.iter(|| {
                us.iter().map(|u| MontgomeryPoint(*u).mul_clamped(black_box(clamped))).collect::<Vec<_>>()
            });
        });
        group.bench_with_input(BenchmarkId::new("edwards", count), &points, |b, points| {
            b.iter(|| {
                let products: Vec<_> = points.iter().map(|point| black_box(scalar) * point).collect();
                RistrettoPoint::double_and_compress_batch(&products)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = ladder;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = batches
}
criterion_main!(ladder);
