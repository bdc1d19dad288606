//! Whether multiplications take longer for one secret scalar than for others, by Welch's t-test.
//!
//! What measures is ignored, because it takes a processor to itself for a minute or two:
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
use quiver_simd::bls12_381::{ENTRIES, Element, Jacobian, Lanes, Scalar};
use quiver_simd::x25519::Backend;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use welch::{DIFFERENT, largest, report, tell, welch};

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
    for backend in [Backend::Avx512Ifma, Backend::Avx2] {
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
    for backend in [Backend::Avx512Ifma, Backend::Avx2] {
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

/// Below the order of the groups.
fn reduced(secret: Secret) -> Scalar {
    Fr::from_le_bytes_mod_order(&secret).into_bigint().0
}

fn raw(point: &G1Projective) -> Jacobian {
    [point.x, point.y, point.z].map(|coordinate| coordinate.0.0)
}

/// Rows of multiples for a comb of the generator.
fn rows() -> Vec<[[Element; 2]; ENTRIES]> {
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

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn multiplications_on_bls12_381_take_the_same_time_for_every_scalar() {
    let Some(lanes) = Lanes::detect() else {
        tell("NOT MEASURED: this machine has no AVX-512 IFMA");
        return;
    };
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let points: Vec<_> =
        (0..8).map(|_| raw(&G1Projective::rand(&mut rng).into_affine().into_group())).collect();
    let comb = lanes.comb(&rows());
    let mut different = Vec::new();
    let fixed = [("0", Fr::from(0_u64)), ("1", Fr::from(1_u64)), ("r - 1", -Fr::from(1_u64))];
    for (name, fixed) in fixed {
        let mut check = |operation: &str, function: &dyn Fn(&Scalar)| {
            let name = format!("G1, AVX-512 IFMA, {operation}, {name}");
            let t = report(&name, &fixed.into_bigint().0, reduced, function);
            if t.abs() >= DIFFERENT {
                different.push(format!("{name}: t = {t}"));
            }
        };
        check("eight points, one scalar", &|scalar| drop(black_box(lanes.multiply_all(&points, scalar))));
        check("a scalar each", &|scalar| drop(black_box(lanes.multiply_each(&points, &[*scalar; 8]))));
        check("a comb", &|scalar| drop(black_box(lanes.multiply_comb(&comb, &[*scalar; 8]))));
    }
    assert!(different.is_empty(), "another time for the fixed scalar: {different:#?}");
}
