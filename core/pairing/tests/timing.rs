//! Tests that multiplications by blst, and by the tables beside it, take no longer for one secret scalar than
//! for others.
//!
//! Ignored, because it takes a processor to itself for a minute or two; how it measures is in `quiver-simd`:
//!
//! ```sh
//! cargo test -p quiver-pairing --test timing --release -- --ignored --test-threads 1
//! ```
#![cfg(target_arch = "x86_64")]

#[path = "../../simd/tests/timing/welch.rs"]
mod welch;

use std::hint::black_box;

use quiver_pairing::{G1, G2, Scalar, hash_to_scalar};
use welch::{DIFFERENT, compare};

#[test]
#[ignore = "measures time: run it alone, on a processor that does nothing else"]
fn multiplications_take_the_same_time_for_every_scalar() {
    let (p, q) = (G1::hash("QUIVER-TIMING-TEST", &[b"p"]), G2::hash("QUIVER-TIMING-TEST", &[b"q"]));
    let random = |bytes: [u8; 32]| hash_to_scalar("QUIVER-TIMING-TEST", &[&bytes]);
    let fixed = [("0", Scalar::from(0_u64)), ("1", Scalar::from(1_u64)), ("r - 1", -Scalar::from(1_u64))];
    let fixed = fixed.map(|(name, scalar)| (name, Some(scalar)));
    let mut different = Vec::new();
    let mut check = |operation: &str, function: &dyn Fn(&Scalar)| {
        // The controls first: one class twice, and a scalar of no special form.
        for (name, fixed) in [("random", None), ("some", Some(random([1; 32])))].into_iter().chain(fixed) {
            let name = format!("{operation}, {name}");
            let t = compare(&name, |bytes| fixed.unwrap_or_else(|| random(bytes)), random, function).t;
            // For 0, which no secret is, blst takes its way for scalars that are too large for its
            // endomorphism: quiver-simd's REVIEW.md.
            if t.abs() >= DIFFERENT && !["G1, 0", "G2, 0"].contains(&&*name) {
                different.push(format!("{name}: t = {t}"));
            }
        }
    };
    check("G1", &|scalar| _ = black_box(black_box(p) * scalar));
    check("G2", &|scalar| _ = black_box(black_box(q) * scalar));
    check("G1, generator", &|scalar| _ = black_box(G1::multiply_generator(scalar)));
    check("G1, generator, 24 scalars", &|scalar| {
        _ = black_box(G1::multiply_generator_by_each(&[*scalar; 24]));
    });
    check("G1, 40 points", &|scalar| _ = black_box(G1::multiply_points(&[p; 40], scalar)));
    // Without vector lanes (`QUIVER_SIMD=avx2`): a table of either point.
    check("G1, either of two points", &|scalar| {
        _ = black_box(G1::multiply_either([&p, &-p], &[false; 64], &[*scalar; 64]));
    });
    assert!(different.is_empty(), "another time for the fixed scalar: {different:#?}");
}
