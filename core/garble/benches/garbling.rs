//! Garbles and evaluates 100,000 AND gates and 200,000 XORs. Throughput is in AND gates.
//!
//! `cipher/aes` is what no privacy-free garbling of the crate `aes` could be faster than: four blocks of AES-128 for
//! each AND under one key, nothing else, in memory that stays in the cache.
//!
//! `QUIVER_SIMD` chooses the instruction sets: see the documentation of `quiver-simd`.

use std::hint::black_box;
use std::time::Duration;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use quiver_garble::{
    Circuit, Evaluator, Garbler, GarblingProgram, GarblingScheme, Gate, HalfGates, Label, PrivacyFree,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

const INPUTS: u32 = 200;
const ANDS: u32 = 100_000;
const RUN: [u8; 16] = [7; 16];

/// The circuit of `cargo lab reproduce abke`: ANDs that read the last 256 wires, with a XOR each, and the sum of
/// all.
fn program() -> GarblingProgram {
    let (mut gates, mut sum) = (Vec::new(), INPUTS + 1);
    for at in 0..ANDS {
        let next = INPUTS + 2 * at;
        let window = next.min(256);
        gates.push(Gate::Xor(next - 1 - at % window, next - window));
        gates.push(Gate::And(next, next - 1 - (at * 7) % window));
    }
    for at in 1..ANDS {
        let next = INPUTS + 2 * ANDS + at - 1;
        gates.push(Gate::Xor(sum, INPUTS + 2 * at + 1));
        sum = next;
    }
    GarblingProgram::new(&Circuit::new(INPUTS as usize, gates, vec![sum]).unwrap())
}

fn garbling<S: GarblingScheme>(c: &mut Criterion, name: &str) {
    let program = program();
    assert_eq!(program.ands(), ANDS as usize);
    let garbler = || Garbler::<S>::new(&program, &RUN, &mut ChaCha20Rng::from_seed([1; 32]));
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(ANDS.into()));
    let mut tables: Vec<[u8; 16]> = Vec::with_capacity(program.ands() * S::CIPHERTEXTS);
    group.bench_function("garble", |b| {
        b.iter_batched(
            garbler,
            |mut garbler| {
                tables.clear();
                garbler.garble(black_box(program.steps()), |table| tables.push(table)).unwrap();
                garbler
            },
            BatchSize::SmallInput,
        );
    });
    let labels: Vec<Label> =
        (0..program.inputs()).map(|at| garbler().input(at).unwrap().of(at.is_multiple_of(3))).collect();
    group.bench_function("evaluate", |b| {
        b.iter_batched(
            || Evaluator::<S>::new(&program, &RUN, garbler().one(), &labels).unwrap(),
            |mut evaluator| {
                evaluator.evaluate(black_box(program.steps()), &mut tables.iter().copied()).unwrap();
                evaluator
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn cipher(c: &mut Criterion) {
    let cipher = Aes128::new(&[7; 16].into());
    let mut blocks = [Block::default(); 1_000];
    let mut group = c.benchmark_group("cipher");
    group.throughput(Throughput::Elements(ANDS.into()));
    group.bench_function("aes", |b| {
        b.iter(|| {
            for _ in 0..4 * ANDS / 1_000 {
                cipher.encrypt_blocks(black_box(&mut blocks));
            }
        });
    });
    group.finish();
}

fn schemes(c: &mut Criterion) {
    garbling::<PrivacyFree>(c, "privacy-free");
    garbling::<HalfGates>(c, "half-gates");
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = cipher, schemes
}
criterion_main!(benches);
