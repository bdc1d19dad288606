//! Every operation of `bls12_381` on points, compared with arkworks'.
#![cfg(target_arch = "x86_64")]

use std::io::Write;

use ark_bls12_381::{Fq, Fr, G1Affine, G1Projective};
use ark_ec::{AdditiveGroup, AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{BigInt, One, PrimeField, UniformRand, Zero};
use quiver_simd::bls12_381::{ENTRIES, Jacobian, Lanes, Scalar};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// The lanes under test; `None`, and a message about it, on a machine without the instructions.
fn lanes() -> Option<Lanes> {
    let lanes = Lanes::detect();
    if lanes.is_none() {
        // Not through `eprintln!`, which the harness would keep to itself.
        let message =
            b"\nNOT TESTED: this machine has no AVX-512 IFMA; nothing of quiver-simd's `bls12_381` ran\n";
        std::io::stderr().write_all(message).unwrap();
    }
    lanes
}

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn raw(point: &G1Projective) -> Jacobian {
    [point.x, point.y, point.z].map(|coordinate| coordinate.0.0)
}

fn point(raw: &Jacobian) -> G1Projective {
    let [x, y, z] = raw.map(|coordinate| Fq::new_unchecked(BigInt(coordinate)));
    G1Projective { x, y, z }
}

fn words(scalar: &Fr) -> Scalar {
    scalar.into_bigint().0
}

fn scalars() -> Vec<Fr> {
    let z_squared = Fr::from(0xac45_a401_0001_a402_0000_0001_0000_0000_u128);
    let mut scalars = vec![
        Fr::zero(),
        Fr::one(),
        -Fr::one(),
        Fr::from(2_u64),
        -Fr::from(2_u64),
        Fr::from(u64::MAX),
        Fr::from(u128::MAX),
        z_squared,
        -z_squared,
        z_squared - Fr::one(),
        z_squared + Fr::one(),
        z_squared * Fr::from(u128::MAX),
        Fr::from(16_u64),
        Fr::from(17_u64),
        Fr::from_le_bytes_mod_order(&[0xff; 32]),
        Fr::from_le_bytes_mod_order(&[0x55; 32]),
    ];
    scalars.extend((0..29).map(|_| Fr::rand(&mut rng())));
    scalars
}

/// Some of them in other coordinates than affine ones, two of them the identity.
fn points(count: usize) -> Vec<G1Projective> {
    let mut rng = rng();
    let mut points: Vec<_> = (0..count).map(|_| G1Projective::rand(&mut rng)).collect();
    for (at, place) in points.iter_mut().enumerate() {
        match at % 11 {
            3 => *place = place.into_affine().into_group(),
            4 => *place = G1Projective::zero(),
            5 => *place = G1Projective { x: Fq::zero(), y: Fq::zero(), z: Fq::zero() },
            6 => *place = G1Projective::generator(),
            _ => {}
        }
    }
    points
}

#[test]
fn each_point_is_multiplied_by_its_scalar() {
    let Some(lanes) = lanes() else { return };
    let scalars = scalars();
    let points = points(scalars.len());
    let raws: Vec<_> = points.iter().map(raw).collect();
    for rotation in 0..7 {
        let mut scalars = scalars.clone();
        scalars.rotate_left(rotation);
        let words: Vec<_> = scalars.iter().map(words).collect();
        let products = lanes.multiply_each(&raws, &words);
        assert_eq!(products.len(), points.len());
        for (product, (of, scalar)) in products.iter().zip(points.iter().zip(&scalars)) {
            assert_eq!(point(product), *of * scalar, "{scalar}");
        }
    }
}

#[test]
fn all_points_are_multiplied_by_one_scalar() {
    let Some(lanes) = lanes() else { return };
    for count in [0, 1, 7, 8, 9, 23] {
        let points = points(count);
        let raws: Vec<_> = points.iter().map(raw).collect();
        for scalar in scalars().iter().step_by(4) {
            let products: Vec<_> = lanes.multiply_all(&raws, &words(scalar)).iter().map(point).collect();
            assert_eq!(products, points.iter().map(|point| *point * scalar).collect::<Vec<_>>());
        }
    }
}

#[test]
fn weights_are_integers_and_multiples_of_the_square_of_the_parameter() {
    let Some(lanes) = lanes() else { return };
    let z_squared = Fr::from(0xac45_a401_0001_a402_0000_0001_0000_0000_u128);
    let halves = [0, 1, 16, 17, u64::MAX, u64::MAX - 1, 1 << 63, 0x5555_5555_5555_5555];
    let weights: Vec<[u64; 2]> = halves.iter().flat_map(|a| halves.map(|b| [*a, b])).collect();
    let points = points(weights.len());
    let raws: Vec<_> = points.iter().map(raw).collect();
    let products = lanes.sum_weighted(&raws, &weights, points.len());
    for (product, (of, [a, b])) in products.iter().zip(points.iter().zip(&weights)) {
        assert_eq!(point(product), *of * (Fr::from(*a) + Fr::from(*b) * z_squared));
    }
}

/// A point of the curve for each x that has one, mostly of no order of use.
fn curve_points(count: usize) -> Vec<G1Projective> {
    let points = (1_u64..).filter_map(|x| G1Affine::get_point_from_x_unchecked(Fq::from(x), x % 2 == 0));
    points.map(G1Affine::into_group).take(count).collect()
}

/// integer · point, by doubling and adding: arkworks' own would reduce the integer modulo r.
fn times(point: &G1Projective, integer: &[u64]) -> G1Projective {
    let bits = integer.iter().rev().flat_map(|word| (0..64).rev().map(move |bit| word >> bit & 1 == 1));
    bits.fold(G1Projective::zero(), |sum, bit| if bit { sum.double() + point } else { sum.double() })
}

#[test]
fn points_of_any_order_are_multiplied_by_public_integers() {
    let Some(lanes) = lanes() else { return };
    let mut points = curve_points(20);
    // (0, 2) is of order three: doubling it is negating it, adding it twice to itself the identity.
    points.push(G1Affine::new_unchecked(Fq::zero(), Fq::from(2_u64)).into_group());
    points.push(G1Projective::zero());
    points.push(G1Projective::generator());
    let raws: Vec<_> = points.iter().map(raw).collect();
    for integer in [1, 2, 3, 5, 0xd201_0000_0001_0001, u64::MAX] {
        let products: Vec<_> = lanes.multiply_public(&raws, integer).iter().map(point).collect();
        let expected: Vec<_> = points.iter().map(|point| times(point, &[integer])).collect();
        assert_eq!(products, expected, "{integer}");
    }
}

#[test]
fn points_outside_the_subgroup_are_told_apart() {
    let Some(lanes) = lanes() else { return };
    let mut all = curve_points(20);
    all.push(G1Affine::new_unchecked(Fq::zero(), Fq::from(2_u64)).into_group());
    all.extend(points(30));
    // A part of order three on a point of order r.
    all.push(all[20] + G1Projective::generator());
    let expected: Vec<bool> = all.iter().map(|point| times(point, &Fr::MODULUS.0).is_zero()).collect();
    let found = lanes.in_subgroup(&all.iter().map(raw).collect::<Vec<_>>());
    assert_eq!(found, expected);
    assert!(found.contains(&true) && found.contains(&false));
}

#[test]
fn results_are_reduced() {
    let Some(lanes) = lanes() else { return };
    let raws: Vec<_> = points(16).iter().map(raw).collect();
    for coordinate in lanes.multiply_public(&raws, 0xd201_0000_0001_0001).as_flattened() {
        assert!(BigInt(*coordinate) < Fq::MODULUS);
    }
}

#[test]
fn sums_are_taken_column_by_column() {
    let Some(lanes) = lanes() else { return };
    let z_squared = Fr::from(0xac45_a401_0001_a402_0000_0001_0000_0000_u128);
    for (columns, rows) in [(1, 1), (1, 9), (3, 2), (8, 20), (11, 17)] {
        let points = points(columns * rows);
        let weights: Vec<[u64; 2]> = (1..)
            .map(|at: u64| [at.wrapping_mul(0x9e37_79b9_7f4a_7c15), u64::MAX / at])
            .take(points.len())
            .collect();
        let raws: Vec<_> = points.iter().map(raw).collect();
        let sums: Vec<_> = lanes.sum_weighted(&raws, &weights, columns).iter().map(point).collect();
        let mut expected = vec![G1Projective::zero(); columns];
        for (at, (point, [a, b])) in points.iter().zip(&weights).enumerate() {
            expected[at % columns] += *point * (Fr::from(*a) + Fr::from(*b) * z_squared);
        }
        assert_eq!(sums, expected);
    }
}

#[test]
fn combs_multiply_their_point_by_scalars_of_full_size() {
    let Some(lanes) = lanes() else { return };
    let base = points(1)[0];
    let rows: Vec<[[[u64; 6]; 2]; ENTRIES]> = (0..26)
        .map(|row| {
            let unit = (0..5 * row).fold(base, |unit, _| unit.double());
            core::array::from_fn(|at| {
                let entry = (unit * Fr::from(at as u64 + 1)).into_affine();
                [entry.x.0.0, entry.y.0.0]
            })
        })
        .collect();
    let comb = lanes.comb(&rows);
    let z_squared = Fr::from(0xac45_a401_0001_a402_0000_0001_0000_0000_u128);
    let mut multiples = scalars();
    for short in [15, 31, 32, 33, u128::MAX - 15, 1 << 127, 1 << 64, u128::MAX / 33] {
        multiples.extend([Fr::from(short), Fr::from(short) * z_squared]);
    }
    // Each digit at each place of either half.
    let digits = (0..26).flat_map(|place| (1..32).map(move |digit: u128| Fr::from(digit << (5 * place))));
    multiples.extend(digits.flat_map(|digit| [digit, digit * z_squared]));
    for count in [multiples.len(), 1, 0] {
        let words: Vec<_> = multiples[..count].iter().map(words).collect();
        let products = lanes.multiply_comb(&comb, &words);
        assert_eq!(products.len(), count);
        for (product, scalar) in products.iter().zip(&multiples) {
            assert_eq!(point(product), base * scalar, "{scalar}");
        }
    }
}
