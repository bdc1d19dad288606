//! AND gates per second, and costs of the policies of the documentation. `cargo bench -p quiver-garble`.
//! Thread time, so that others on the machine count for little.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quiver_garble::policy::{Policy, Schema};
use quiver_garble::{Evaluator, Garbler, HalfGates, Operand, PrivacyFree, Program, Scheme, Step};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;

#[path = "measuring/thread_time.rs"]
mod thread_time;
use thread_time::timed;

const GATES: u32 = 100_000;
const SLOTS: u32 = 1024;
const RUN: [u8; 16] = [7; 16];

/// ANDs and as many XORs over a few slots, none of which waits for the one before.
fn steps() -> Vec<Step> {
    let operand = |slot: u32| Operand::new(slot % SLOTS, slot.is_multiple_of(5));
    (0..GATES)
        .flat_map(|at| {
            let to = (at * 2) % SLOTS;
            let (a, b) = (operand(at * 2 + 257), operand(at * 2 + 514));
            [Step::And { a, b, to }, Step::Xor { a, b: operand(at * 2 + 771), to: (to + 1) % SLOTS }]
        })
        .collect()
}

fn scheme<S: Scheme>(criterion: &mut Criterion, name: &str, steps: &[Step]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(u64::from(GATES)));
    let slots = SLOTS as usize;
    let garbler = || Garbler::<S>::with_slots(slots, slots, &RUN, &mut ChaCha20Rng::from_seed([1; 32]));
    let mut tables = Vec::new();
    let first = garbler();
    let labels: Vec<_> = (0..slots).map(|at| first.input(at).unwrap().of(at.is_multiple_of(3))).collect();
    garbler().garble(steps, |table| tables.push(table)).unwrap();
    group.bench_function("garble", |bench| {
        let mut out = Vec::with_capacity(tables.len());
        timed(bench, garbler, |mut garbler| {
            out.clear();
            garbler.garble(steps, |table| out.push(table)).unwrap();
        });
    });
    group.bench_function("evaluate", |bench| {
        let evaluator = || Evaluator::<S>::with_slots(slots, &RUN, first.one(), &labels);
        timed(bench, evaluator, |mut evaluator| {
            evaluator.evaluate(steps, &mut tables.iter().copied()).unwrap();
        });
    });
    group.finish();
}

fn geofence(criterion: &mut Criterion) {
    let schema = Schema::parse("x: i64, y: i64, time: u64").unwrap();
    let text = "(x - 512_340)^2 + (y + 88_210)^2 < 2_500^2 and 1_790_000_000 <= time < 1_790_003_600";
    let mut group = criterion.benchmark_group("geofence");
    group.bench_function("compile", |bench| {
        timed(bench, || (), |()| Policy::compile(text, &schema).unwrap().program());
    });
    let program: Program = Policy::compile(text, &schema).unwrap().program();
    group.throughput(Throughput::Elements(program.ands() as u64));
    group.bench_function("garble", |bench| {
        let garbler = || Garbler::<PrivacyFree>::new(&program, &RUN, &mut ChaCha20Rng::from_seed([1; 32]));
        timed(bench, garbler, |mut garbler| {
            let mut tables = Vec::with_capacity(program.ands());
            garbler.garble(program.steps(), |table| tables.push(table)).unwrap();
            tables
        });
    });
    group.finish();
}

fn all(criterion: &mut Criterion) {
    let steps = steps();
    scheme::<PrivacyFree>(criterion, "privacy-free", &steps);
    scheme::<HalfGates>(criterion, "half-gates", &steps);
    geofence(criterion);
}

criterion_group!(benches, all);
criterion_main!(benches);
