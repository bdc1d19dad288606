//! Benchmarks of a drone and a quorum: encryption, decryption, keys from many shares, and checking a dealer.
//!
//! `cargo bench -p quiver-ibe`, in processor time of the thread. Only ratios within one run mean anything.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkId, Criterion, criterion_group, criterion_main};
use quiver_ibe::{
    Ciphertext, Dealing, Encryptor, IdentityPoint, PublicShares, UnverifiedKeyShare, UnverifiedMasterShare,
    combine, verify_batch,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const IDENTITY: &[u8] = b"mission/alpha/phase-2";

/// A file's key, as age has it.
const MESSAGE: &[u8; 16] = b"sixteen bytes of";

fn timed<T>(b: &mut Bencher<'_, WallTime>, mut operation: impl FnMut() -> T) {
    b.iter_custom(|iterations| {
        let start = ThreadTime::now();
        for _ in 0..iterations {
            black_box(operation());
        }
        start.elapsed()
    });
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn messages(c: &mut Criterion) {
    let mut rng = rng();
    let dealing = Dealing::deal(1, 1, &mut rng).unwrap();
    let (quorum, point) = (dealing.public_shares().unwrap(), IdentityPoint::of_bytes(IDENTITY));
    let shares = [dealing.shares()[0].extract(&point).into()];
    let key = combine(&quorum, &point, &shares, &mut rng).unwrap();
    let master = *quorum.master();
    let ciphertext = master.encrypt(&point, MESSAGE, &mut rng).unwrap();
    let bytes = ciphertext.encode();

    let mut group = c.benchmark_group("message");
    group.bench_function("encrypt", |b| {
        timed(b, || {
            let point = IdentityPoint::of_bytes(black_box(IDENTITY));
            master.encrypt(&point, MESSAGE, &mut rng).unwrap()
        });
    });
    let encryptor = Encryptor::new(master, point);
    group.bench_function("encrypt to a kept identity", |b| {
        timed(b, || encryptor.encrypt(black_box(MESSAGE), &mut rng).unwrap());
    });
    group.bench_function("decrypt", |b| timed(b, || key.decrypt(black_box(&ciphertext)).unwrap()));
    group.bench_function("decode and decrypt", |b| {
        timed(b, || key.decrypt(&Ciphertext::decode(black_box(&bytes)).unwrap()).unwrap());
    });
    group.bench_function("extract", |b| timed(b, || dealing.shares()[0].extract(black_box(&point))));
    group.finish();
}

/// A quorum of so many, all of whom are needed, and their shares of an identity's key.
fn quorum(count: u16) -> (PublicShares, IdentityPoint, Vec<UnverifiedKeyShare>) {
    let dealing = Dealing::deal(count, count, &mut rng()).unwrap();
    let point = IdentityPoint::of_bytes(IDENTITY);
    let shares = dealing.shares().iter().map(|share| share.extract(&point).into()).collect();
    (dealing.public_shares().unwrap(), point, shares)
}

fn shares(c: &mut Criterion) {
    let mut group = c.benchmark_group("key shares");
    for count in [3, 16, 128, 1024] {
        let mut rng = rng();
        let (quorum, point, shares) = quorum(count);
        group.bench_function(BenchmarkId::new("combine and verify", count), |b| {
            timed(b, || combine(&quorum, &point, black_box(&shares), &mut rng).unwrap());
        });
        let bytes: Vec<_> = shares.iter().map(UnverifiedKeyShare::encode).collect();
        group.bench_function(BenchmarkId::new("combine and verify from bytes", count), |b| {
            timed(b, || {
                let shares = bytes.iter().map(|bytes| UnverifiedKeyShare::decode(&**bytes));
                let shares: Vec<_> = black_box(shares).collect::<Result<_, _>>().unwrap();
                combine(&quorum, &point, &shares, &mut rng).unwrap()
            });
        });
        group.bench_function(BenchmarkId::new("verify each at once", count), |b| {
            timed(b, || verify_batch(&quorum, &point, black_box(&shares), &mut rng).unwrap());
        });
        let mut bent = shares.clone();
        let other = IdentityPoint::of_bytes(b"another");
        bent[0] = Dealing::deal(1, 1, &mut rng).unwrap().shares()[0].extract(&other).into();
        group.bench_function(BenchmarkId::new("find one liar", count), |b| {
            timed(b, || combine(&quorum, &point, black_box(&bent), &mut rng).unwrap_err());
        });
        let published = quorum.encode();
        group.bench_function(BenchmarkId::new("decode and check public shares", count), |b| {
            timed(b, || PublicShares::decode(black_box(&published)).unwrap());
        });
    }
    group.finish();
}

fn dealers(c: &mut Criterion) {
    let mut group = c.benchmark_group("dealer");
    let (mut rng, count) = (rng(), 128);
    let dealing = Dealing::deal(count, count, &mut rng).unwrap();
    let shares: Vec<_> = dealing.shares().iter().cloned().map(UnverifiedMasterShare::new).collect();
    group.bench_function("deal 128", |b| timed(b, || Dealing::deal(count, count, &mut rng).unwrap()));
    group.bench_function("verify 128 one by one", |b| {
        timed(b, || {
            let verified = shares.iter().map(|share| share.clone().verify(dealing.commitment()));
            verified.collect::<Result<Vec<_>, _>>().unwrap()
        });
    });
    group.bench_function("verify 128 at once", |b| {
        timed(b, || dealing.commitment().verify_batch(black_box(shares.clone()), &mut rng).unwrap());
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800));
    targets = messages, shares, dealers
}
criterion_main!(benches);
