//! Tests that multiplications take no longer for one secret scalar than for others, by Welch's t-test.
//!
//! Measurements are ignored, because they take a processor to itself for a minute or two:
//!
//! ```sh
//! cargo test -p quiver-simd --test timing --release -- --ignored --test-threads 1
//! ```
//!
//! `QUIVER_TIMING_MEASUREMENTS` sets how often each function is measured: smaller differences show in more.
#![cfg(target_arch = "x86_64")]

#[path = "timing/welch.rs"]
mod welch;

use std::hint::black_box;

use ark_bls12_381::{Fr, G1Projective};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{PrimeField, UniformRand};
use quiver_simd::bls12_381::{BaseFieldElement, ENTRIES, Jacobian, Lanes, Scalar};
use quiver_simd::x25519::X25519Backend;
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use welch::{DIFFERENT, Verdict, compare, largest, tell, welch};

impl Verdict {
    /// Returns true if medians are within two hundredths. Multiplications of zeros take a few thousandths
    /// less on some processors (REVIEW.md), which t shows; what left work out would take far less.
    fn is_close(&self) -> bool {
        let [first, second] = self.medians.map(|median| median.as_secs_f64());
        (0.98..1.02).contains(&(first / second))
    }
}

/// Measures a fixed secret and random ones, prints, and returns t.
fn report<T: Copy>(name: &str, fixed: &T, random: impl Fn(Secret) -> T, function: impl FnMut(&T)) -> f64 {
    compare(name, |_| *fixed, random, function).t
}

/// 32 bytes of a scalar.
type Secret = [u8; 32];

const NONE: Secret = [0; 32];
const ALL: Secret = [0xff; 32];

#[test]
fn t_is_that_of_a_textbook() {
    // Two samples of R's `sleep`, extra hours by group: `t.test(extra ~ group)` prints t = -1.8608.
    let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    assert!((welch(&first, &second) + 1.8608).abs() < 0.0001, "{}", welch(&first, &second));
    assert_eq!(welch(&first, &first), 0.0);
}

#[test]
fn difference_that_outliers_hide_shows_below_a_percentile() {
    // Every tenth measurement is a thousand times longer; the second class takes one hundredth longer.
    let times =
        |base: f64| -> Vec<f64> {
            (0..10_000)
                .map(|at| {
                    if at % 10 == 9 {
                        1e6 + f64::from(at * at % 9_973) * 1e3
                    } else {
                        base + f64::from(at % 7)
                    }
                })
                .collect()
        };
    let (first, second) = (times(1_000.0), times(1_010.0));
    assert!(welch(&first, &second).abs() < 1.0);
    assert!(largest(&first, &second) < -DIFFERENT);
    assert!(largest(&first, &first).abs() < 1.0);
}

/// A multiplication that anybody would write, and nobody should: it adds where a bit is set.
fn double_and_add(scalar: &Secret) -> u64 {
    const P: u128 = (1 << 61) - 1;
    let mut sum = 1_u128;
    for bit in (0..256).rev() {
        sum = sum * sum % P;
        if scalar[bit / 8] >> (bit % 8) & 1 == 1 {
            sum = black_box(sum * 3 % P);
        }
    }
    sum as u64
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn double_and_add_is_found_out() {
    for (name, fixed) in [("none", &NONE), ("all", &ALL)] {
        let t = report(
            &format!("planted, double and add, {name}"),
            fixed,
            |random| random,
            |scalar| {
                black_box(double_and_add(scalar));
            },
        );
        assert!(t.abs() > DIFFERENT, "the test finds no leak where there is one");
    }
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn ladder_with_one_step_too_many_is_found_out() {
    for backend in [X25519Backend::Avx512Ifma, X25519Backend::Avx2] {
        let mut us = [[9; 32]; 8];
        if !backend.is_there() {
            continue;
        }
        // One bit of the scalar decides over a hundredth of the time.
        let t = report(
            &format!("planted, {backend:?} and a bit"),
            &ALL,
            |random| random,
            |scalar| {
                assert!(backend.multiply_in_place(scalar, &mut us));
                if scalar[0] & 8 == 8 {
                    black_box((0..400_u64).fold(1, |sum, at| black_box(sum ^ at)));
                }
            },
        );
        assert!(t.abs() > DIFFERENT, "the test finds no leak where there is one");
    }
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn ladders_take_the_same_time_for_every_scalar() {
    for backend in [X25519Backend::Avx512Ifma, X25519Backend::Avx2] {
        if !backend.is_there() {
            tell(&format!("NOT MEASURED: this machine has no {backend:?}"));
            continue;
        }
        for (name, fixed) in [("none", &NONE), ("all", &ALL)] {
            let start: [[u8; 32]; 8] = core::array::from_fn(|at| [at as u8 + 9; 32]);
            let mut us = start;
            let t = report(
                &format!("X25519, {backend:?}, eight points, {name}"),
                fixed,
                |random| random,
                |scalar| {
                    // The same points each time: products of one scalar would become points of their own.
                    us = start;
                    assert!(backend.multiply_in_place(scalar, &mut us));
                },
            );
            assert!(t.abs() < DIFFERENT, "{backend:?} takes another time for the fixed scalar: t = {t}");
        }
    }
}

/// Reduces a secret below the order of the groups.
fn reduced(secret: Secret) -> Scalar {
    Fr::from_le_bytes_mod_order(&secret).into_bigint().0
}

fn raw(point: &G1Projective) -> Jacobian {
    [point.x, point.y, point.z].map(|coordinate| coordinate.0.0)
}

/// Rows of multiples for a comb of the generator.
fn rows() -> Vec<[[BaseFieldElement; 2]; ENTRIES]> {
    let mut base = G1Projective::generator();
    let row = |base: &G1Projective| {
        core::array::from_fn(|at| {
            let multiple = (*base * Fr::from(at as u64 + 1)).into_affine();
            [multiple.x, multiple.y].map(|coordinate| coordinate.0.0)
        })
    };
    (0..26)
        .map(|_| {
            let row = row(&base);
            base *= Fr::from(32_u64);
            row
        })
        .collect()
}

/// Eight points, whose coordinates are random.
fn points() -> Vec<Jacobian> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    (0..8).map(|_| raw(&G1Projective::rand(&mut rng).into_affine().into_group())).collect()
}

/// A function of a secret scalar, and its name.
type Multiplication<'a> = (&'static str, Box<dyn Fn(&Scalar) + 'a>);

/// The multiplications of [`Lanes`].
fn multiplications(lanes: Lanes, points: &[Jacobian]) -> [Multiplication<'_>; 3] {
    let comb = lanes.comb(&rows());
    [
        ("one scalar", Box::new(move |scalar| drop(black_box(lanes.multiply_all(points, scalar))))),
        (
            "a scalar each",
            Box::new(move |scalar| drop(black_box(lanes.multiply_each(points, &[*scalar; 8])))),
        ),
        ("a comb", Box::new(move |scalar| drop(black_box(lanes.multiply_comb(&comb, &[*scalar; 8]))))),
    ]
}

/// A random scalar, and always the same.
fn some(number: u64) -> Scalar {
    Fr::rand(&mut ChaCha20Rng::seed_from_u64(number)).into_bigint().0
}

/// Makes a scalar of 31 bytes, each with four bits that are one.
fn balanced(secret: Secret) -> Scalar {
    let mut bytes = secret.map(|byte| byte & 15 | (!byte & 15) << 4);
    // Below the order of the groups, whose highest byte is 0x73.
    bytes[31] = 0x1e;
    Fr::from_le_bytes_mod_order(&bytes).into_bigint().0
}

/// k₀ + k₁·z², of 25 digits each, from 1 to 15 where `is_zero` is false.
fn digits(secret: Secret, is_zero: impl Fn(usize) -> bool) -> Scalar {
    let mut rng = ChaCha20Rng::from_seed(secret);
    let z_squared = Fr::from(0xac45_a401_0001_a402_0000_0001_0000_0000_u128);
    let mut half = || {
        Fr::from((0..25).fold(0_u128, |half, place| {
            let digit = rng.next_u32() % 15 + 1;
            half << 5 | if is_zero(place) { 0 } else { u128::from(digit) }
        }))
    };
    (half() + half() * z_squared).into_bigint().0
}

/// Function that makes scalars of a class of random bytes.
type Class<'a> = &'a dyn Fn(Secret) -> Scalar;

/// Compares every multiplication for each two classes of scalars. Fails where the operation's verdict differs.
fn compare_multiplications(differs: impl Fn(&str, &Verdict) -> bool, pairs: &[(&str, Class<'_>, Class<'_>)]) {
    let Some(lanes) = Lanes::detect() else {
        tell("NOT MEASURED: this machine has no AVX-512 IFMA");
        return;
    };
    let points = points();
    let mut different = Vec::new();
    for (operation, function) in multiplications(lanes, &points) {
        for (classes, first, second) in pairs {
            let name = format!("G1, AVX-512 IFMA, {operation}, {classes}");
            let verdict = compare(&name, first, second, &function);
            if differs(operation, &verdict) {
                different.push(format!("{name}: {verdict:?}"));
            }
        }
    }
    assert!(different.is_empty(), "another time for scalars of one class: {different:#?}");
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn multiplications_on_bls12_381_take_the_same_time_for_scalars_of_no_special_form() {
    compare_multiplications(
        |_, verdict| verdict.t.abs() >= DIFFERENT,
        &[
            // The control: one class, twice.
            ("random, random", &reduced, &reduced),
            ("fixed, random", &|_| some(2), &reduced),
            ("another, random", &|_| some(3), &reduced),
            ("fixed, another", &|_| some(4), &|_| some(5)),
            ("fixed, random of its weight", &|_| balanced(NONE), &balanced),
            ("fixed, random, no zeros", &|_| digits(NONE, |_| false), &|secret| digits(secret, |_| false)),
        ],
    );
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn multiplications_on_bls12_381_take_the_same_time_for_scalars_of_special_forms() {
    let zeros = |secret| digits(secret, |place| place % 2 == 0);
    compare_multiplications(
        // A comb's sums are the identity before its first digit that is not zero, and multiplications of zeros show.
        |operation, verdict| {
            if operation == "a comb" { !verdict.is_close() } else { verdict.t.abs() >= DIFFERENT }
        },
        &[
            ("0, random", &|_| Fr::from(0_u64).into_bigint().0, &reduced),
            ("1, random", &|_| Fr::from(1_u64).into_bigint().0, &reduced),
            ("r - 1, random", &|_| (-Fr::from(1_u64)).into_bigint().0, &reduced),
            ("half zeros, no zeros", &zeros, &|secret| digits(secret, |_| false)),
        ],
    );
}

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn arithmetic_on_bls12_381_takes_the_same_time_for_other_points() {
    let Some(lanes) = Lanes::detect() else {
        tell("NOT MEASURED: this machine has no AVX-512 IFMA");
        return;
    };
    let points: [Jacobian; 8] = points().try_into().unwrap();
    let (mut others, identities) = (points, [[[0; 6]; 3]; 8]);
    others.rotate_left(3);
    // No scalar and no table: doublings and additions by a public integer.
    let public = |points: &[Jacobian; 8]| drop(black_box(lanes.multiply_public(points, !0)));
    let t = compare("G1, AVX-512 IFMA, public, points, points", |_| others, |_| points, public).t;
    assert!(t.abs() < DIFFERENT, "another time for other points: t = {t}");
    let verdict = compare("G1, AVX-512 IFMA, public, identities, points", |_| identities, |_| points, public);
    assert!(verdict.is_close(), "identities: {verdict:?}");
}
