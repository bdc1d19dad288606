//! Benchmarks of enrolment at the KGC and the drone.
//!
//! `verify` checks the operator's signature and the drone's two proofs in one product. `verify_one_by_one` is
//! given the operator twice: among several the signer has to be sought, so each check is made on its own.

use criterion::Criterion;
use quiver_ainq::{EnrolmentRequest, Name, OperatorSecretKey, Ristretto255, Role, SealedReply, TokenGrant};

use super::{NOW, World};

/// `enrolment/…`: one request, from the drone's draw to its key.
pub(crate) fn enrolment(c: &mut Criterion) {
    let mut world = World::<Ristretto255>::new();
    let operator = OperatorSecretKey::generate(&mut world.rng);
    let grant = TokenGrant {
        name: Name::new("drone").unwrap(),
        role: Role::Edge,
        groups: vec![world.group.clone()],
        not_after: NOW + 1_000_000,
        expiry: NOW + 1000,
    };
    let token = operator.issue(&world.deployment, grant, &mut world.rng).unwrap();
    let create = |world: &mut World<Ristretto255>| {
        EnrolmentRequest::create(&world.deployment, &token, &[1], [7; 16], &mut world.rng).unwrap()
    };
    let (request, pending) = create(&mut world);
    let verify = |operators: &[_]| request.verify(&world.deployment, operators, 1, NOW).unwrap();
    let (one, two) = ([operator.public()], [operator.public(), operator.public()]);
    let verified = verify(&one);
    let mut group = c.benchmark_group("enrolment");
    group.bench_function("verify", |b| b.iter(|| verify(&one)));
    group.bench_function("verify_one_by_one", |b| b.iter(|| verify(&two)));
    let (deployment, master, rng) = (&world.deployment, &world.master, &mut world.rng);
    group.bench_function("issue", |b| b.iter(|| SealedReply::issue(master, deployment, &verified, 1, rng)));
    let (reply, _) = SealedReply::issue(master, deployment, &verified, 1, rng);
    group.bench_function("open", |b| b.iter(|| pending.open(deployment, &reply).unwrap()));
    group.bench_function("request", |b| b.iter(|| create(&mut world)));
    group.finish();
}
