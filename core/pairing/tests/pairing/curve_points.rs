//! Points of the first curve outside G1: found out, or mapped into it.

use ark_bls12_381::{Fq, Fr, G1Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger as _, PrimeField};
use proptest::prelude::*;
use quiver_pairing::{CurvePoint, G1, G1_COFACTOR, Group, PairingError, Scalar};

/// The uncompressed form, by arkworks' own arithmetic.
fn uncompressed(point: &G1Affine) -> [u8; 96] {
    let (x, y) = point.xy().unwrap();
    [x, y].map(|coordinate| coordinate.into_bigint().to_bytes_be()).concat().try_into().unwrap()
}

/// A point of the curve with an x near this one: all but certainly of a large composite order.
fn any_point(seed: u64) -> G1Affine {
    (seed..).find_map(|x| G1Affine::get_point_from_x_unchecked(Fq::from(x), seed.is_multiple_of(2))).unwrap()
}

/// The same without its part of order r.
fn torsion(seed: u64) -> G1Affine {
    any_point(seed).mul_bigint(Fr::MODULUS).into_affine()
}

/// A point of this prime order, which divides the cofactor once squared.
fn of_order(order: u64) -> G1Affine {
    let x_minus_one = G1_COFACTOR;
    (1..)
        .map(|seed| {
            let point = torsion(seed).mul_bigint([x_minus_one / order]).into_affine();
            assert!(point.mul_bigint([order]).into_affine().is_zero());
            point
        })
        .find(|point| !point.is_zero())
        .unwrap()
}

#[test]
fn points_of_small_order_are_of_no_group_and_cleared_to_the_identity() {
    for order in [3, 11, 10_177, 859_267, 52_437_899] {
        let point = CurvePoint::decode(&uncompressed(&of_order(order))).unwrap();
        assert_eq!(point.in_subgroup(), Err(PairingError::WrongSubgroup), "{order}");
        assert!(point.clear_cofactor().is_identity(), "{order}");
    }
}

#[test]
fn many_points_are_checked_and_cleared_as_each_alone_is() {
    let mut points: Vec<_> = (1..20).map(|seed| uncompressed(&any_point(seed))).collect();
    points.extend([3, 11, 10_177].map(|order| uncompressed(&of_order(order))));
    points.extend(
        (1..10_u64).map(|scalar| G1::encode_uncompressed(&[G1::generator() * Scalar::from(scalar)])[0]),
    );
    let points: Vec<CurvePoint> = points.iter().map(|bytes| CurvePoint::decode(bytes).unwrap()).collect();
    for count in [0, 1, 2, 3, 8, points.len()] {
        let points = &points[points.len() - count..];
        let checked: Vec<_> = points.iter().map(CurvePoint::in_subgroup).collect();
        assert_eq!(CurvePoint::all_in_subgroup(points), checked);
        let cleared: Vec<_> = points.iter().map(CurvePoint::clear_cofactor).collect();
        assert_eq!(CurvePoint::clear_cofactors(points), cleared);
    }
}

/// Orders are the primes that divide the cofactor. Points that cancel out are in the set because a test of sums
/// would let them pass.
#[test]
fn points_with_a_part_of_small_order_are_refused_each_wherever_they_are() {
    let members: Vec<G1Affine> =
        (1..=133_u64).map(|at| (G1Affine::generator() * Fr::from(at * at + 5)).into_affine()).collect();
    let refused = |points: &[G1Affine]| {
        let points: Vec<_> =
            points.iter().map(|point| CurvePoint::decode(&uncompressed(point)).unwrap()).collect();
        let verdicts = CurvePoint::all_in_subgroup(&points);
        assert_eq!(verdicts.len(), points.len());
        let wrong = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_err());
        wrong
            .inspect(|(_, verdict)| assert_eq!(**verdict, Err(PairingError::WrongSubgroup)))
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    assert!(refused(&members).is_empty());
    for order in [3, 11, 10_177, 859_267, 52_437_899] {
        let torsion = of_order(order);
        let with = |torsions: &[(usize, G1Affine)]| {
            let mut points = members.clone();
            for (at, torsion) in torsions {
                points[*at] = (points[*at] + torsion).into_affine();
            }
            refused(&points)
        };
        for at in [0, 3, 4, 131, 132] {
            assert_eq!(with(&[(at, torsion)]), [at], "{order}");
            let mut both = [at, 70];
            both.sort_unstable();
            assert_eq!(with(&[(at, torsion), (70, -torsion)]), both, "{order} and its opposite");
        }
        let everywhere: Vec<usize> = (0..132).collect();
        assert_eq!(with(&everywhere.iter().map(|at| (*at, torsion)).collect::<Vec<_>>()), everywhere);
        assert_eq!(refused(&[torsion; 132]), everywhere, "{order} alone");
    }
}

#[test]
fn the_point_of_order_three_with_x_zero_is_known() {
    let mut bytes = [0; 96];
    bytes[95] = 2;
    let point = CurvePoint::decode(&bytes).unwrap();
    assert_eq!(point.in_subgroup(), Err(PairingError::WrongSubgroup));
    assert!(point.clear_cofactor().is_identity());
    assert_eq!(point.encode(), bytes);
}

#[test]
fn what_is_no_uncompressed_point_is_refused() {
    let good = G1::encode_uncompressed(&[G1::generator()])[0];
    assert!(CurvePoint::decode(&good).is_ok());
    assert_eq!(CurvePoint::decode(&good[..95]), Err(PairingError::WrongLength { expected: 96, actual: 95 }));
    let identity = G1::encode_uncompressed(&[G1::identity()])[0];
    assert_eq!(CurvePoint::decode(&identity), Err(PairingError::Identity));
    for flag in [0x80, 0x40, 0x20] {
        let mut flagged = good;
        flagged[0] |= flag;
        assert_eq!(CurvePoint::decode(&flagged), Err(PairingError::NotCanonical), "{flag:x}");
    }
    let mut off = good;
    off[95] ^= 1;
    assert_eq!(CurvePoint::decode(&off), Err(PairingError::NotOnCurve));
    // x + p for a small x: no other encoding of the same.
    let mut above = [0; 96];
    above[..48].copy_from_slice(&Fq::MODULUS.to_bytes_be());
    above[95] = 2;
    assert_eq!(CurvePoint::decode(&above), Err(PairingError::NotCanonical));
}

fn scalar() -> impl Strategy<Value = Scalar> {
    proptest::array::uniform::<_, 64>(any::<u8>()).prop_map(|wide| quiver_pairing::scalar_from_wide(&wide))
}

proptest! {
    #[test]
    fn uncompressed_points_are_read_back(scalar in scalar()) {
        let point = G1::generator() * scalar;
        let read = CurvePoint::decode(&G1::encode_uncompressed(&[point])[0]).unwrap();
        prop_assert_eq!(read.in_subgroup(), Ok(point));
        prop_assert_eq!(read.clear_cofactor(), point * Scalar::from(G1_COFACTOR));
    }

    #[test]
    fn clearing_the_cofactor_gives_a_point_of_the_group_without_the_torsion(seed in 1_u64..1_000_000, high: u64) {
        let (point, scalar) = (any_point(seed), Scalar::from(seed));
        let read = CurvePoint::decode(&uncompressed(&point)).unwrap();
        let cleared = read.clear_cofactor();
        prop_assert!(G1::decode(&cleared.encode()).is_ok());
        // The same with a point of G1 that differs by torsion alone.
        let torsion = torsion(seed + 1);
        let moved = CurvePoint::decode(&uncompressed(&(point + torsion).into_affine())).unwrap();
        prop_assert_eq!(moved.clear_cofactor(), cleared);
        prop_assert!(point.mul_bigint(Fr::MODULUS).into_affine().is_zero() || read.in_subgroup().is_err());
        let combined = CurvePoint::combine_cleared(&[read, moved], &[[seed, 0], [0, high]]).unwrap();
        let z = Scalar::from(G1_COFACTOR - 1);
        prop_assert_eq!(combined, cleared * (scalar + z * z * Scalar::from(high)));
        let cleared = [cleared, cleared.double()];
        let weighted = G1::msm_weighted(&cleared, &[[seed, high], [1, 2]]).unwrap();
        let wanted = scalar + z * z * Scalar::from(high) + Scalar::from(2) + z * z * Scalar::from(4);
        prop_assert_eq!(weighted, cleared[0] * wanted);
    }

    #[test]
    fn multiples_of_the_generator_by_many_scalars_are_what_those_by_one_are(
        scalars in prop::collection::vec(scalar(), 0..12), short: u128
    ) {
        let z = Scalar::from(G1_COFACTOR - 1);
        let edges = [Scalar::from(0), Scalar::from(1), -Scalar::from(1), z * z, -z * z, Scalar::from(short)];
        let scalars: Vec<Scalar> = scalars.into_iter().chain(edges).collect();
        let wanted: Vec<G1> = scalars.iter().map(|scalar| G1::generator() * scalar).collect();
        prop_assert_eq!(G1::multiply_generator_by_each(&scalars), wanted);
    }

    #[test]
    fn either_base_is_multiplied_as_it_would_be_alone(
        first in scalar(), second in scalar(), each in prop::collection::vec((any::<bool>(), scalar()), 0..6)
    ) {
        let [first, second] = [first, second].map(|scalar| G1::generator() * scalar);
        let (choices, scalars): (Vec<bool>, Vec<Scalar>) = each.into_iter().unzip();
        let products = G1::multiply_either([&first, &second], &choices, &scalars).unwrap();
        let wanted: Vec<G1> =
            choices.iter().zip(&scalars).map(|(&one, s)| if one { second * s } else { first * s }).collect();
        prop_assert_eq!(products, wanted);
        prop_assert!(G1::multiply_either([&first, &second], &choices, &[]).is_ok() == choices.is_empty());
    }

    #[test]
    fn selection_gives_the_one_that_is_chosen(one in scalar(), other in scalar()) {
        let [one, other] = [one, other].map(|scalar| G1::generator() * scalar);
        prop_assert_eq!(G1::select(&one, &other, false), one);
        prop_assert_eq!(G1::select(&one, &other, true), other);
    }
}
