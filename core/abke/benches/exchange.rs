//! Every step of the exchange, on one core. `cargo bench -p quiver-abke`.
//!
//! 200 attributes and 100,000 AND gates, as the source has them; 10 and 1,000; and the geofence of the
//! documentation at its own. Batches of 1, 10 and 100 keys. Thread time, so that others on the machine count
//! for little.

use std::hint::black_box;
use std::sync::Arc;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main};
use quiver_abke::{
    Authority, Client, Committed, Credential, Evaluating, Garbling, Hello, Opened, Policy, Seeded, Terms,
    UnverifiedPublicKey, VerifiedHello, Verifier,
};
use quiver_crypto::Secret;
use quiver_garble::policy::Schema;
use quiver_garble::{Circuit, Gate};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

#[path = "../../garble/benches/measuring/thread_time.rs"]
mod thread_time;
use thread_time::timed;

const TERMS: Terms<'_> = Terms { policy: &[1; 32], server: b"a leader", channel: b"a channel" };

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// So many ANDs and as many XORs over so many inputs, of which the depth is moderate.
fn circuit(inputs: u32, ands: u32) -> Circuit {
    let mut gates = Vec::new();
    let wires = |gates: &Vec<Gate>| inputs + gates.len() as u32;
    for at in 0..ands {
        let (last, back) = (wires(&gates), 256.min(wires(&gates)));
        gates.push(Gate::Xor(last - 1 - at % back, last - back));
        gates.push(Gate::And(last, last - 1 - (at * 7) % back));
    }
    // All are needed: their sum is the output.
    let mut sum = inputs + 1;
    for at in 1..ands {
        gates.push(Gate::Xor(sum, inputs + 2 * at + 1));
        sum = wires(&gates) - 1;
    }
    Circuit::new(inputs as usize, gates, vec![sum]).unwrap()
}

struct Scene {
    policy: Arc<Policy>,
    authority: Authority,
    verifier: Verifier,
    credential: Credential,
}

impl Scene {
    fn new(policy: Policy, attributes: &[bool]) -> Self {
        let authority = Authority::derive(&Secret::new([1; 32]), 1, attributes.len()).unwrap();
        let verifier = Verifier::new(authority.key().clone());
        let credential = authority.certify(attributes, &mut rng(1)).unwrap();
        Self { policy: Arc::new(policy), authority, verifier, credential }
    }

    fn of(attributes: u32, ands: u32) -> Self {
        let policy = Policy::new(&circuit(attributes, ands)).unwrap();
        assert_eq!(policy.tables_len(), 16 * ands as usize);
        let bits: Vec<bool> = (0..attributes).map(|at| at % 3 == 0).collect();
        Self::new(policy, &bits)
    }

    fn hello(&self, seed: u64) -> (Client, Vec<u8>) {
        let rng = &mut rng(seed);
        let key = self.credential.unlink(rng);
        Client::start(&TERMS, Arc::clone(&self.policy), key, rng).unwrap()
    }

    fn decode(&self, hello: &[u8]) -> Hello {
        Hello::decode(hello, self.policy.attributes()).unwrap()
    }

    fn verified(&self, hello: &[u8]) -> VerifiedHello {
        self.decode(hello).verify(&self.verifier, &mut rng(2)).unwrap()
    }

    fn offer(&self, verified: VerifiedHello) -> (Garbling, Vec<u8>) {
        verified.offer(&TERMS, Arc::clone(&self.policy), &mut rng(3), |_| vec![0; 64]).unwrap()
    }

    fn offered(&self) -> (Client, Vec<u8>, Garbling) {
        let (client, hello) = self.hello(4);
        let (server, offer) = self.offer(self.verified(&hello));
        (client, offer, server)
    }

    fn evaluating(&self) -> (Evaluating, Vec<Vec<u8>>, Garbling) {
        let (client, offer, mut server) = self.offered();
        let client = client.offer(&offer, |_, _| true).unwrap();
        let mut tables = Vec::new();
        while let Some(piece) = server.next_tables().unwrap() {
            tables.push(piece);
        }
        (client, tables, server)
    }

    fn committed(&self) -> (Committed, Seeded, Vec<u8>) {
        let (client, tables, server) = self.evaluating();
        let (client, commitment) = evaluate(client, &tables);
        let (server, seeds) = server.finish().unwrap().commitment(&commitment).unwrap();
        (client, server, seeds)
    }
}

fn evaluate(mut client: Evaluating, tables: &[Vec<u8>]) -> (Committed, Vec<u8>) {
    for piece in tables {
        client.tables(piece).unwrap();
    }
    client.commit(&mut rng(5)).unwrap()
}

fn garble(mut server: Garbling) -> Garbling {
    while let Some(piece) = server.next_tables().unwrap() {
        black_box(piece);
    }
    server
}

fn open(client: Committed, seeds: &[u8]) -> (Opened, Vec<u8>) {
    client.open(seeds, &mut rng(6)).unwrap()
}

fn client_steps(group: &mut BenchmarkGroup<'_, WallTime>, scene: &Scene) {
    group.bench_function("client/1 unlink, hello", |b| timed(b, || (), |()| scene.hello(7)));
    group.bench_function("client/2 authenticate, decrypt", |b| {
        timed(b, || scene.offered(), |(client, offer, _)| client.offer(&offer, |_, _| true).unwrap());
    });
    group.bench_function("client/3 evaluate, commit", |b| {
        timed(b, || scene.evaluating(), |(client, tables, _)| evaluate(client, &tables));
    });
    group.bench_function("client/4 check, open", |b| {
        timed(b, || scene.committed(), |(client, _, seeds)| open(client, &seeds));
    });
}

fn server_steps(group: &mut BenchmarkGroup<'_, WallTime>, scene: &Scene) {
    let hello = scene.hello(7).1;
    group.bench_function("server/1a decode", |b| timed(b, || (), |()| scene.decode(&hello)));
    group.bench_function("server/1b verify", |b| {
        timed(b, || scene.decode(&hello), |hello| hello.verify(&scene.verifier, &mut rng(2)).unwrap());
    });
    group.bench_function("server/2a encrypt, offer", |b| {
        timed(b, || scene.verified(&hello), |verified| scene.offer(verified));
    });
    group.bench_function("server/2b garble", |b| timed(b, || scene.offered().2, garble));
    group.bench_function("server/5 check the opening", |b| {
        timed(
            b,
            || {
                let (client, server, seeds) = scene.committed();
                (server, open(client, &seeds).1)
            },
            |(server, opening)| server.opening(&opening).map(drop),
        );
    });
}

/// Decoding and verifying so many hellos: to be divided by their number.
fn batches(group: &mut BenchmarkGroup<'_, WallTime>, scene: &Scene) {
    let hellos: Vec<Vec<u8>> = (0..100).map(|seed| scene.hello(seed).1).collect();
    for count in [1, 10, 100] {
        let hellos = hellos.get(..count).unwrap();
        group.bench_function(format!("server/1 decode, verify {count}"), |b| {
            timed(
                b,
                || (),
                |()| {
                    let read = hellos.iter().map(|hello| scene.decode(hello)).collect();
                    let verdicts = Hello::verify_batch(read, &scene.verifier, &mut rng(8));
                    assert!(verdicts.iter().all(Result::is_ok));
                    verdicts
                },
            );
        });
    }
}

fn whole(group: &mut BenchmarkGroup<'_, WallTime>, scene: &Scene) {
    group.bench_function("server and client", |b| {
        timed(
            b,
            || (),
            |()| {
                let (client, server, seeds) = scene.committed();
                let (_, opening) = open(client, &seeds);
                server.opening(&opening).is_ok()
            },
        );
    });
}

fn all(criterion: &mut Criterion) {
    for (name, attributes, ands) in
        [("200 attributes, 100,000 gates", 200, 100_000), ("10 attributes, 1,000 gates", 10, 1000)]
    {
        let scene = Scene::of(attributes, ands);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        client_steps(&mut group, &scene);
        server_steps(&mut group, &scene);
        batches(&mut group, &scene);
        whole(&mut group, &scene);
        group.finish();
    }
    geofence(criterion);
    authority(criterion);
}

fn geofence(criterion: &mut Criterion) {
    let schema = Schema::parse("x: i64, y: i64, time: u64").unwrap();
    let text = "(x - 512_340)^2 + (y + 88_210)^2 < 2_500^2 and 1_790_000_000 <= time < 1_790_003_600";
    let compiled = quiver_garble::policy::Policy::compile(text, &schema).unwrap();
    let attributes = schema.encode(&[("x", 512_000), ("y", -88_000), ("time", 1_790_000_100)]).unwrap();
    let scene = Scene::new(Policy::new(compiled.circuit()).unwrap(), &attributes);
    let name = format!("geofence of {} attributes, {:?}", attributes.len(), scene.policy);
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    client_steps(&mut group, &scene);
    server_steps(&mut group, &scene);
    whole(&mut group, &scene);
    group.finish();
}

fn authority(criterion: &mut Criterion) {
    let scene = Scene::of(200, 1000);
    let mut group = criterion.benchmark_group("authority of 200 attributes");
    group.sample_size(10);
    let bits = scene.credential.attributes().to_vec();
    group.bench_function("certify", |b| {
        timed(b, || (), |()| scene.authority.certify(&bits, &mut rng(1)).unwrap());
    });
    group.bench_function("derive", |b| {
        timed(b, || (), |()| Authority::derive(&Secret::new([1; 32]), 1, 200).unwrap());
    });
    let key = scene.credential.unlink(&mut rng(3));
    group.bench_function("decode a key", |b| {
        b.iter_batched(
            || key.encoded(),
            |key| UnverifiedPublicKey::decode(key, 200).unwrap(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, all);
criterion_main!(benches);
