//! A whole exchange about 200 attributes and a circuit of 100,000 AND gates: the time of each side, on one core.
//! The client's includes the fresh key that it could make beforehand.
//!
//! `QUIVER_SIMD` chooses the instruction sets: see the documentation of `quiver-simd`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use quiver_abke::{Authority, Client, Credential, ExchangeTerms, Hello, PolicyCircuit, Verifier};
use quiver_crypto::Secret;
use quiver_garble::{Circuit, Gate};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const ATTRIBUTES: u32 = 200;
const ANDS: u32 = 100_000;

/// ANDs that read the last 256 wires, with a XOR each, and the sum of all.
fn gates() -> (Vec<Gate>, u32) {
    let (mut gates, mut sum) = (Vec::new(), ATTRIBUTES + 1);
    for at in 0..ANDS {
        let next = ATTRIBUTES + 2 * at;
        let window = next.min(256);
        gates.push(Gate::Xor(next - 1 - at % window, next - window));
        gates.push(Gate::And(next, next - 1 - (at * 7) % window));
    }
    for at in 1..ANDS {
        let next = ATTRIBUTES + 2 * ANDS + at - 1;
        gates.push(Gate::Xor(sum, ATTRIBUTES + 2 * at + 1));
        sum = next;
    }
    (gates, sum)
}

/// Runs an exchange and adds what each side takes.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn exchange(
    (credential, verifier, policy): (&Credential, &Verifier, &Arc<PolicyCircuit>),
    rng: &mut ChaCha20Rng,
) -> [Duration; 2] {
    let [mut server_time, mut client_time] = [Duration::ZERO; 2];
    macro_rules! timed {
        ($time:ident, $work:expr) => {{
            let start = Instant::now();
            let result = $work;
            $time += start.elapsed();
            result
        }};
    }
    let terms = ExchangeTerms { policy: &[9; 32], server: b"the leader", channel: b"the channel" };
    let (client, hello) =
        timed!(client_time, Client::start(&terms, policy.clone(), credential.unlink(rng), rng).unwrap());
    let verified = timed!(
        server_time,
        Hello::decode(&hello, ATTRIBUTES as usize).unwrap().verify(verifier, rng).unwrap()
    );
    let (mut server, offer) =
        timed!(server_time, verified.offer(&terms, policy.clone(), rng, |_| vec![7; 64]).unwrap());
    let mut client = timed!(client_time, client.offer(&offer, |_, _| true).unwrap());
    while let Some(tables) = timed!(server_time, server.next_tables().unwrap()) {
        timed!(client_time, client.tables(&tables).unwrap());
    }
    let (client, commitment) = timed!(client_time, client.commit(rng).unwrap());
    let (server, seeds) = timed!(server_time, server.finish().unwrap().commitment(&commitment).unwrap());
    let (client, opening) = timed!(client_time, client.open(&seeds, rng).unwrap());
    let (server, confirmation) = timed!(server_time, server.opening(&opening).unwrap());
    let client = timed!(client_time, client.confirm(&confirmation).unwrap());
    assert_eq!(client.key(), server.key());
    [server_time, client_time]
}

fn sides(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    let authority = Authority::derive(&Secret::random(&mut rng), 1, ATTRIBUTES as usize).unwrap();
    let verifier = Verifier::new(authority.key().clone());
    let (gates, sum) = gates();
    let circuit = Circuit::new(ATTRIBUTES as usize, gates, vec![sum]).unwrap();
    // Some attributes that satisfy it.
    let attributes = (2..).map(|step| (0..ATTRIBUTES).map(|at| at % step == 0).collect::<Vec<bool>>());
    let attributes = attributes.take(64).find(|bits| circuit.evaluate(bits).is_ok_and(|out| out == [true]));
    let credential = authority.certify(&attributes.unwrap(), &mut rng).unwrap();
    let policy = Arc::new(PolicyCircuit::new(&circuit).unwrap());
    let mut group = c.benchmark_group("exchange");
    for (at, side) in ["server", "client"].into_iter().enumerate() {
        group.bench_function(side, |b| {
            b.iter_custom(|rounds| {
                (0..rounds).map(|_| exchange((&credential, &verifier, &policy), &mut rng)[at]).sum()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = sides
}
criterion_main!(benches);
