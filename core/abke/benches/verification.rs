//! Verifies keys of 200 attributes, one, ten and a hundred at once, and makes one. Throughput is in keys.
//!
//! `QUIVER_SIMD` chooses the instruction sets: see the documentation of `quiver-simd`.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quiver_abke::{Authority, UnverifiedPublicKey, Verifier};
use quiver_crypto::Secret;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const ATTRIBUTES: usize = 200;

fn verification(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let authority = Authority::derive(&Secret::random(&mut rng), 1, ATTRIBUTES).unwrap();
    let verifier = Verifier::new(authority.key().clone());
    let attributes: Vec<bool> = (0..ATTRIBUTES).map(|at| at.is_multiple_of(3)).collect();
    let credential = authority.certify(&attributes, &mut rng).unwrap();
    let mut group = c.benchmark_group("200 attributes");
    group.bench_function("unlink", |b| b.iter(|| credential.unlink(&mut rng)));
    let key = credential.unlink(&mut rng).encoded().to_vec();
    for count in [1, 10, 100] {
        group.throughput(Throughput::Elements(count));
        let keys =
            || (0..count).map(|_| UnverifiedPublicKey::decode(&key, ATTRIBUTES).unwrap()).collect::<Vec<_>>();
        assert!(verifier.verify_batch(keys(), &mut rng).iter().all(Result::is_ok));
        group.bench_function(BenchmarkId::new("verify", count), |b| {
            b.iter_batched(keys, |keys| verifier.verify_batch(keys, &mut rng), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = verification
}
criterion_main!(benches);
