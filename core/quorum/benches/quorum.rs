//! Benchmarks of a quorum: signing by 3 of 5, beside a single KGC, and key generation by 5.
//!
//! Figures mean something as ratios inside one run.

use std::collections::BTreeMap;

use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use quiver_ainq::{Deployment, MasterSecret, Name, Purpose, Ristretto255};
use quiver_quorum::dkg::Dealing;
use quiver_quorum::{
    PublicShares, QuorumParameters, QuorumSuite, SecretShare, SignatureShare, SigningPackage, dealer,
};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

type Group<'a> = BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn signers<S: QuorumSuite>(rng: &mut ChaCha20Rng) -> (Vec<SecretShare<S>>, PublicShares<S>) {
    dealer::deal(QuorumParameters::new(5, 3).unwrap(), rng).unwrap()
}

/// Runs both rounds of signing by the first three.
fn sign<S: QuorumSuite>(
    shares: &[SecretShare<S>],
    message: &[u8],
    rng: &mut ChaCha20Rng,
) -> (SigningPackage<S>, BTreeMap<u16, SignatureShare<S>>) {
    let (nonces, commitments): (Vec<_>, Vec<_>) =
        shares[..3].iter().map(|share| share.commit(rng).unwrap()).unzip();
    let package = SigningPackage::new(0, message.to_vec(), (1..).zip(commitments)).unwrap();
    let signed =
        shares.iter().zip(nonces).map(|(share, nonces)| (share.kgc(), share.sign(nonces, &package).unwrap()));
    let signed = signed.collect();
    (package, signed)
}

fn signing<S: QuorumSuite>(group: &mut Group<'_>) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (shares, public) = signers::<S>(&mut rng);
    let message = [7; 200];
    group.bench_function("commit", |b| b.iter(|| shares[0].commit(&mut rng).unwrap()));
    group.bench_function("sign", |b| {
        let (_, others) = shares[1].commit(&mut rng).unwrap();
        b.iter_batched(
            || {
                let (nonces, own) = shares[0].commit(&mut rng).unwrap();
                let commitments = [(1, own), (2, others), (3, others)];
                (nonces, SigningPackage::new(0, message.to_vec(), commitments).unwrap())
            },
            |(nonces, package)| shares[0].sign(nonces, &package).unwrap(),
            BatchSize::SmallInput,
        );
    });
    let (package, signed) = sign(&shares, &message, &mut rng);
    group
        .bench_function("aggregate", |b| b.iter(|| public.aggregate_partial_key(&package, &signed).unwrap()));
    let mut spoilt = signed;
    spoilt.insert(3, SignatureShare::decode(&spoilt[&1].encode()).unwrap());
    group.bench_function("aggregate and blame", |b| {
        b.iter(|| public.aggregate_partial_key(&package, &spoilt).unwrap_err());
    });
    group.bench_function("all of 3 of 5", |b| {
        b.iter(|| {
            let (package, signed) = sign(&shares, &message, &mut rng);
            public.aggregate_partial_key(&package, &signed).unwrap()
        });
    });
}

/// A KGC's share of the work of making a key.
fn generating<S: QuorumSuite>(group: &mut Group<'_>) {
    let parameters = QuorumParameters::new(5, 3).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let start = |kgc, rng: &mut ChaCha20Rng| Dealing::<S>::generate(parameters, kgc, [0; 32], rng).unwrap();
    let others: Vec<_> = parameters.others(1).map(|kgc| start(kgc, &mut rng)).collect();
    group.bench_function("round 1 of 5", |b| {
        b.iter(|| {
            let mut own = start(1, &mut rng);
            for (kgc, other) in (2..).zip(&others) {
                own.receive(kgc, other.package()).unwrap();
            }
            own.advance().unwrap()
        });
    });
    group.bench_function("round 2 of 5", |b| {
        b.iter_batched(
            || {
                let mut own = start(1, &mut rng);
                for (kgc, other) in (2..).zip(&others) {
                    own.receive(kgc, other.package()).unwrap();
                }
                let mut own = own.advance().unwrap();
                let echo = own.echo();
                parameters.others(1).for_each(|kgc| own.receive(kgc, &echo).unwrap());
                own
            },
            |own| own.advance().unwrap(),
            BatchSize::SmallInput,
        );
    });
}

fn quorum(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ristretto255");
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let master = MasterSecret::<Ristretto255>::generate(&mut rng);
    let deployment = Deployment::new(Name::new("harbour").unwrap(), master.public());
    group.bench_function("a single KGC", |b| {
        b.iter(|| master.sign(&deployment, Purpose::Parameters, &[7; 150], &mut rng));
    });
    signing::<Ristretto255>(&mut group);
    generating::<Ristretto255>(&mut group);
    group.finish();
    let mut group = criterion.benchmark_group("bls12381g1");
    group.sample_size(20);
    signing::<quiver_ainq::Bls12381G1>(&mut group);
    generating::<quiver_ainq::Bls12381G1>(&mut group);
    group.finish();
}

criterion_group!(benches, quorum);
criterion_main!(benches);
