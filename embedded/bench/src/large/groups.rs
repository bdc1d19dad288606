//! Elements of Fr, G1, G2 and GT of BLS12-381, and the pairing.
//!
//! Elements are drawn as published figures of another curve show it was done: the generator times a random
//! scalar, in GT the pairing of two such points.

use alloc::format;
use alloc::vec::Vec;

use quiver_pairing::{G1, G2, Group, Gt, Scalar, pairing, pairing_product, scalar_random};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::BenchTarget;
use crate::arguments::{Arguments, Bounds};
use crate::error::{BenchError, Result};
use crate::runner::{Runner, Subject};

/// Usage, as it is printed.
pub(super) const USAGE: &str = "\
  group <iterations> [operation]       BLS12-381: sample-, add-, multiply- with g1 g2 gt, sample-fr,
                                       hash-g1, hash-g2
  pairing <iterations> [pairs]         the product of so many pairings
";

/// The domain of attributes' names.
const DOMAIN: &str = "QUIVER-BENCH-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";

/// More heap than an operation of the groups takes, and a pairing.
const HEAP: usize = 2 * 1024;
const PAIRING_HEAP: usize = 60 * 1024;
/// More heap than a second pair takes, and than each further one: two go through one Miller loop.
const SECOND_PAIR_HEAP: usize = 38 * 1024;
const PAIR_HEAP: usize = 1024;

/// Last coefficient of the encoding of the pairing of both generators: a check of assembly before it is
/// measured.
const KNOWN: [u8; 48] = [
    0x12, 0x50, 0xeb, 0xd8, 0x71, 0xfc, 0x0a, 0x92, 0xa7, 0xb2, 0xd8, 0x31, 0x68, 0xd0, 0xd7, 0x27, 0x27,
    0x2d, 0x44, 0x1b, 0xef, 0xa1, 0x5c, 0x50, 0x3d, 0xd8, 0xe9, 0x0c, 0xe9, 0x8d, 0xb3, 0xe7, 0xb6, 0xd1,
    0x94, 0xf6, 0x08, 0x39, 0xc5, 0x08, 0xa8, 0x43, 0x05, 0xaa, 0xca, 0x17, 0x89, 0xb6,
];

const PAIRS: Bounds = Bounds { what: "pairs", least: 1, most: 30 };

/// The operations, in the order in which all of them run.
pub(super) const OPERATIONS: [&str; 12] = [
    "sample-fr",
    "sample-g1",
    "sample-g2",
    "sample-gt",
    "add-g1",
    "add-g2",
    "add-gt",
    "multiply-g1",
    "multiply-g2",
    "multiply-gt",
    "hash-g1",
    "hash-g2",
];

/// `group <iterations> [operation]`.
pub(super) async fn group<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let only = words.word();
    words.end()?;
    if only.is_some_and(|only| !OPERATIONS.contains(&only)) {
        return Err(BenchError::Usage("no such operation"));
    }
    for operation in OPERATIONS {
        if only.is_none_or(|only| only == operation) {
            runner.needs(if operation.ends_with("-gt") { PAIRING_HEAP } else { HEAP })?;
            one(runner, operation).await?;
        }
    }
    Ok(())
}

async fn one<H: BenchTarget>(runner: &mut Runner<'_, '_, H>, operation: &str) -> Result<()> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let rng = &mut rng;
    let benchmark = format!("group {operation}");
    let subject = Subject { benchmark: &benchmark, parameters: "BLS12-381" };
    match operation {
        "sample-fr" => runner.repeat(subject, || scalar_random(rng)).await,
        "sample-g1" => runner.repeat(subject, || drawn::<G1>(G1::generator(), rng)).await,
        "sample-g2" => runner.repeat(subject, || drawn::<G2>(G2::generator(), rng)).await,
        "sample-gt" => runner.repeat(subject, || paired(rng)).await,
        "add-g1" => add(runner, subject, G1::generator(), rng).await,
        "add-g2" => add(runner, subject, G2::generator(), rng).await,
        "add-gt" => add(runner, subject, paired(rng), rng).await,
        "multiply-g1" => multiply(runner, subject, G1::generator(), rng).await,
        "multiply-g2" => multiply(runner, subject, G2::generator(), rng).await,
        "multiply-gt" => multiply(runner, subject, paired(rng), rng).await,
        "hash-g1" => runner.repeat(subject, || G1::hash(DOMAIN, &[b"attribute-1"])).await,
        _ => runner.repeat(subject, || G2::hash(DOMAIN, &[b"attribute-1"])).await,
    }
}

fn drawn<G: Group>(generator: G, rng: &mut ChaCha20Rng) -> G {
    generator * scalar_random(rng)
}

fn paired(rng: &mut ChaCha20Rng) -> Gt {
    pairing(&drawn(G1::generator(), rng), &drawn(G2::generator(), rng))
}

async fn add<H: BenchTarget, G: Group>(
    runner: &mut Runner<'_, '_, H>,
    subject: Subject<'_>,
    generator: G,
    rng: &mut ChaCha20Rng,
) -> Result<()> {
    let (mut sum, element) = (drawn(generator, rng), drawn(generator, rng));
    runner.repeat(subject, || sum += element).await
}

async fn multiply<H: BenchTarget, G: Group>(
    runner: &mut Runner<'_, '_, H>,
    subject: Subject<'_>,
    generator: G,
    rng: &mut ChaCha20Rng,
) -> Result<()> {
    let element = drawn(generator, rng);
    let scalars: [Scalar; 4] = core::array::from_fn(|_| scalar_random(rng));
    let mut scalars = scalars.iter().cycle();
    runner.repeat(subject, || scalars.next().map(|scalar| element * scalar)).await
}

/// `pairing <iterations> [pairs]`: the product of so many pairings, with one final exponentiation.
pub(super) async fn pairings<H: BenchTarget>(
    runner: &mut Runner<'_, '_, H>,
    mut words: Arguments<'_>,
) -> Result<()> {
    let count = words.number_or(1, PAIRS)? as usize;
    words.end()?;
    let second = if count > 1 { SECOND_PAIR_HEAP } else { 0 };
    runner.needs(PAIRING_HEAP + second + count * PAIR_HEAP)?;
    if !pairing(&G1::generator(), &G2::generator()).encode().ends_with(&KNOWN) {
        return Err(BenchError::Failed("the generators' pairing is another one"));
    }
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let pairs: Vec<(G1, G2)> =
        (0..count).map(|_| (drawn(G1::generator(), &mut rng), drawn(G2::generator(), &mut rng))).collect();
    let parameters = format!("BLS12-381, {count} pairs");
    let subject = Subject { benchmark: "pairing", parameters: &parameters };
    match pairs.as_slice() {
        [(p, q)] => runner.repeat(subject, || pairing(p, q)).await,
        pairs => runner.repeat(subject, || pairing_product(pairs)).await,
    }
}
