//! Whether many points of the first curve all lie in G1, by sums of them, where there are no vector lanes.
//! Not constant-time.
//!
//! G1 is a group, so points that lie in it have all their sums there. Of a point outside, let T be its part
//! of an order that divides the cofactor. Such orders are odd, and the least is 3: so T, its opposite and the
//! identity are three points, and in a sum with coefficients −1, 0 and 1, whatever the others are, one
//! coefficient of the point at most has all such parts cancel. So a sum lies in G1 once in three times at
//! most, and 81 sums with coefficients of their own do once in 3^81 > 2^128 times. Larger coefficients would
//! gain nothing where T is of order 3. (Checks of each point: M. Scott, "A note on group membership tests for
//! G1, G2 and GT on BLS pairing-friendly curves", eprint 2021/1130; S. Bowe, "Faster subgroup checks for
//! BLS12-381", eprint 2019/814.)
//!
//! Coefficients come from a hash of all points, so that who chooses the points has to compute 2^128 hashes to
//! find some that pass. Points are taken in fours, of whose 81 combinations each sum adds one: with an
//! inversion for many additions, a point takes a fifth of the time of its own check, and the 81 sums take
//! what 81 points do.

use alloc::vec::Vec;

use ark_ec::short_weierstrass::Affine;
use quiver_crypto::Hasher;

use super::batch_addition::{Summand, add_each};
use crate::parameters::g1;

/// With fewer points, each alone is checked in less time.
pub(super) const MANY: usize = 128;

/// Sums that are checked.
const SUMS: usize = 81;

/// Points that are combined beforehand.
const BLOCK: usize = 4;

/// Combinations of them: the digits of a number to the base 3 are coefficients, where 2 is for −1.
const COMBINATIONS: usize = 3_usize.pow(BLOCK as u32);

/// Blocks whose combinations share inversions: 8 kB each.
const AT_ONCE: usize = 8;

/// Whether all points lie in G1. If some do not, it says that all do once in 2^128 times at most.
pub(super) fn all_in_subgroup(
    points: &[Affine<g1::Config>],
    in_subgroup: impl Fn(&Affine<g1::Config>) -> bool,
) -> bool {
    let summands: Vec<Summand> = points.iter().map(Summand::new).collect();
    let mut numbers = numbers(&summands);
    // The sums, and after them the combinations of a few blocks.
    let mut places = alloc::vec![Summand::IDENTITY; SUMS];
    for blocks in summands.chunks(BLOCK * AT_ONCE) {
        places.truncate(SUMS);
        places.resize(SUMS + blocks.len().div_ceil(BLOCK) * COMBINATIONS, Summand::IDENTITY);
        combine(&mut places, blocks);
        for first in (SUMS..places.len()).step_by(COMBINATIONS) {
            let pairs: Vec<[usize; 2]> =
                (0..SUMS).zip(&mut numbers).map(|(sum, number)| [sum, first + number]).collect();
            add_each(&mut places, &pairs);
        }
    }
    places.iter().take(SUMS).all(|sum| in_subgroup(&sum.affine()))
}

/// Sets the combinations of each block, which stand after the sums.
fn combine(places: &mut [Summand], blocks: &[Summand]) {
    let firsts = (SUMS..places.len()).step_by(COMBINATIONS);
    let mut unit = 1;
    for at in 0..BLOCK {
        let of_block = firsts.clone().zip(blocks.chunks(BLOCK).map(|block| block.get(at)));
        let mut pairs = Vec::new();
        for (first, point) in of_block {
            // The point itself, then the point and each combination of those before.
            let point = point.copied().unwrap_or(Summand::IDENTITY);
            places.iter_mut().skip(first + unit).take(unit).for_each(|place| *place = point);
            pairs.extend((1..unit).map(|number| [first + unit + number, first + number]));
        }
        add_each(places, &pairs);
        // And the opposites of these.
        for first in firsts.clone() {
            for number in unit..2 * unit {
                if let Some(opposite) = places.get(first + number).copied().map(Summand::opposite) {
                    places
                        .iter_mut()
                        .skip(first + mirrored(number))
                        .take(1)
                        .for_each(|place| *place = opposite);
                }
            }
        }
        unit *= 3;
    }
}

/// The number with the opposite coefficients.
fn mirrored(number: usize) -> usize {
    match number {
        0 => 0,
        _ => (3 - number % 3) % 3 + 3 * mirrored(number / 3),
    }
}

/// Numbers of combinations, as many as anybody wants: uniform, and determined by the points.
fn numbers(points: &[Summand]) -> impl Iterator<Item = usize> {
    let limbs = points.iter().flat_map(|point| point.x.l.iter().chain(&point.y.l));
    let seed = limbs.fold(hasher(b"points"), |hasher, limb| hasher.u64(*limb)).finish();
    let bytes = (0_u64..).flat_map(move |counter| hasher(b"numbers").fixed(&seed).u64(counter).finish());
    // Of 243 = 3 · 81 bytes each remainder is that of three.
    bytes.map(usize::from).filter(|byte| *byte < 3 * COMBINATIONS).map(|byte| byte % COMBINATIONS)
}

fn hasher(part: &[u8]) -> Hasher {
    Hasher::new("QUIVER-PAIRING-v1 membership of many points").lp(part)
}

#[cfg(test)]
mod tests {
    use ark_ec::{AffineRepr as _, CurveGroup as _};
    use ark_ff::PrimeField as _;

    use super::*;
    use crate::backend::{Backend as _, Blst};
    use crate::parameters::Fq;
    use crate::{G1, G1_COFACTOR, Scalar};

    type Point = Affine<g1::Config>;

    fn members(count: u64) -> Vec<Point> {
        crate::point::affine(
            &(1..=count).map(|at| G1::generator() * Scalar::from(at * at + 5)).collect::<Vec<_>>(),
        )
    }

    /// A point of this prime order.
    fn of_order(order: u64) -> Point {
        let any = (1_u64..).filter_map(|x| Point::get_point_from_x_unchecked(Fq::from(x), false));
        any.map(|point| {
            let torsion = point.mul_bigint(Scalar::MODULUS).into_affine();
            torsion.mul_bigint([G1_COFACTOR / order]).into_affine()
        })
        .find(|point| !point.is_zero())
        .unwrap()
    }

    #[test]
    fn points_of_the_group_and_identities_pass() {
        for count in [0, 1, 4, 129, 202] {
            let mut points = members(count);
            assert!(all_in_subgroup(&points, Blst::in_subgroup));
            points.extend([Affine::identity(); 3]);
            points.extend(points.clone());
            assert!(all_in_subgroup(&points, Blst::in_subgroup));
        }
    }

    #[test]
    fn parts_of_any_order_are_found_wherever_they_are_and_though_their_sum_is_nothing() {
        let members = members(133);
        for order in [3, 11, 10_177, 859_267, 52_437_899] {
            let torsion = of_order(order);
            assert!(torsion.mul_bigint([order]).into_affine().is_zero());
            let with = |torsions: &[(usize, Point)]| {
                let mut points = members.clone();
                for (at, torsion) in torsions {
                    points[*at] = (points[*at] + torsion).into_affine();
                }
                all_in_subgroup(&points, Blst::in_subgroup)
            };
            for at in [0, 3, 4, 131, 132] {
                assert!(!with(&[(at, torsion)]), "{order} at {at}");
                assert!(!with(&[(at, torsion), (70, -torsion)]), "{order} at {at} and its opposite");
            }
            assert!(!with(&(0..132).map(|at| (at, torsion)).collect::<Vec<_>>()), "{order} everywhere");
            assert!(!all_in_subgroup(&[torsion; 132], Blst::in_subgroup), "{order} alone");
        }
    }

    #[test]
    fn combinations_have_the_digits_of_their_numbers_as_coefficients() {
        let points = members(4);
        let block: Vec<Summand> = points.iter().map(Summand::new).collect();
        let mut places = alloc::vec![Summand::IDENTITY; SUMS + COMBINATIONS];
        combine(&mut places, &block);
        for (number, combination) in places[SUMS..].iter().enumerate() {
            let mut rest = number;
            let sum = points.iter().fold(Point::identity().into_group(), |sum, point| {
                let digit = rest % 3;
                rest /= 3;
                match digit {
                    0 => sum,
                    1 => sum + point,
                    _ => sum - point,
                }
            });
            assert_eq!(combination.affine(), sum.into_affine(), "{number}");
        }
    }

    #[test]
    fn coefficients_are_uniform_and_of_all_points() {
        let mut points: Vec<Summand> = members(4).iter().map(Summand::new).collect();
        let drawn: Vec<usize> = numbers(&points).take(COMBINATIONS * 200).collect();
        let mut counts = [0_usize; COMBINATIONS];
        drawn.iter().for_each(|number| counts[*number] += 1);
        // 200 each, with a standard deviation of 14.
        assert!(counts.iter().all(|count| (120..280).contains(count)), "{counts:?}");
        for at in 0..4 {
            points[at] = points[at].opposite();
            assert_ne!(numbers(&points).take(40).collect::<Vec<_>>(), drawn[..40]);
            points[at] = points[at].opposite();
        }
        assert_eq!(numbers(&points).take(40).collect::<Vec<_>>(), drawn[..40]);
    }
}
