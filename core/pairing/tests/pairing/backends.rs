//! Tests that both back ends compute the same, whatever they are given.
#![cfg(all(feature = "blst", any(target_arch = "x86_64", target_arch = "aarch64")))]

use proptest::prelude::*;
use quiver_pairing::backend::{Active, Arkworks, Backend, Blst};
use quiver_pairing::{Curve, G1, G1Curve, G2, G2Curve, Group, Point, Scalar, scalar_from_wide};

/// Random scalars, small ones, those next to r, powers of two.
fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        4 => proptest::array::uniform::<_, 64>(any::<u8>()).prop_map(|wide| scalar_from_wide(&wide)),
        1 => (0_u64..20).prop_map(Scalar::from),
        1 => (1_u64..20).prop_map(|small| -Scalar::from(small)),
        1 => (0_usize..255).prop_map(|bits| (0..bits).fold(Scalar::from(1_u64), |power, _| power + power)),
    ]
}

/// A point with coordinates that are not normalised, unless it is the identity.
fn point<C: Curve>(scalar: &Scalar) -> Point<C> {
    Arkworks::multiply(&Point::generator(), scalar)
}

fn multiply_alike<C: Curve>(factor: &Scalar, scalar: &Scalar) {
    let point = point::<C>(factor);
    let product = Blst::multiply(&point, scalar);
    assert_eq!(product, Arkworks::multiply(&point, scalar));
    assert_eq!(product.is_identity(), (*factor * scalar) == Scalar::from(0_u64));
    assert_eq!(product.encode(), Arkworks::multiply(&point, scalar).encode());
    // Its result can be used here.
    assert_eq!(product + point - product, point);
}

fn combine_alike<C: Curve>(factors: &[Scalar], scalars: &[Scalar]) {
    let points: Vec<Point<C>> = factors.iter().map(point).collect();
    assert_eq!(Blst::msm(&points, scalars), Arkworks::msm(&points, scalars));
}

fn combine_small_alike<C: Curve>(factors: &[Scalar], integers: &[i128]) {
    let points: Vec<Point<C>> = factors.iter().map(point).collect();
    assert_eq!(Blst::msm_small(&points, integers), Arkworks::msm_small(&points, integers));
}

fn hash_alike<C: Curve>(domain: &str, parts: &[&[u8]]) {
    assert_eq!(Blst::hash::<C>(domain, parts), Arkworks::hash::<C>(domain, parts));
}

/// Decodes with both, and gives whether there was a point.
fn decode_alike<C: Curve>(bytes: &[u8]) -> bool {
    let bytes = bytes.try_into().ok().expect("bytes of the right length");
    let decoded = Blst::decode::<C>(&bytes);
    assert_eq!(decoded, Arkworks::decode::<C>(&bytes), "{bytes:02x?}");
    if let Ok(point) = decoded {
        assert_eq!(point.encode(), bytes);
    }
    decoded.is_ok()
}

/// Decodes the encoding of a point, the same with one bit changed, and with others' coordinates in it.
fn decode_all_alike<C: Curve>(scalar: &Scalar, bit: usize, noise: &[u8]) {
    let bytes = point::<C>(scalar).encode();
    assert!(decode_alike::<C>(bytes.as_ref()));
    let mut changed = bytes.as_ref().to_vec();
    changed[bit / 8 % C::ENCODED_LEN] ^= 1 << (bit % 8);
    decode_alike::<C>(&changed);
    let flags = noise[0] & 0xe0;
    let mut random = noise[..C::ENCODED_LEN].to_vec();
    random[0] = random[0] & 0x0f | 0x80;
    random[C::ENCODED_LEN / 2] &= 0x0f;
    decode_alike::<C>(&random);
    random[0] = random[0] & 0x1f | flags;
    decode_alike::<C>(&random);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn back_ends_agree_on_multiples(factor in scalar(), scalar in scalar()) {
        multiply_alike::<G1Curve>(&factor, &scalar);
        multiply_alike::<G2Curve>(&factor, &scalar);
    }

    #[test]
    fn back_ends_agree_on_multiples_of_the_generator(scalar in scalar()) {
        let product = Blst::multiply_generator(&scalar);
        prop_assert_eq!(product, Arkworks::multiply_generator(&scalar));
        prop_assert_eq!(product, Blst::multiply(&G1::generator(), &scalar));
        prop_assert_eq!(product.encode(), G1::multiply_generator(&scalar).encode());
        // Its result can be used here.
        prop_assert_eq!(product + G1::generator() - product, G1::generator());
    }

    #[test]
    fn back_ends_agree_on_hashes(message in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200, domain in ".{1,300}") {
        let (head, tail) = message.split_at(cut.min(message.len()));
        hash_alike::<G1Curve>(&domain, &[head, tail]);
        hash_alike::<G2Curve>(&domain, &[head, tail]);
    }

    #[test]
    fn back_ends_agree_on_what_decodes_and_why_not(
        scalar in scalar(),
        bit in 0_usize..768,
        noise in prop::collection::vec(any::<u8>(), 96),
    ) {
        decode_all_alike::<G1Curve>(&scalar, bit, &noise);
        decode_all_alike::<G2Curve>(&scalar, bit, &noise);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn back_ends_agree_on_combinations(pairs in prop::collection::vec((scalar(), scalar()), 0..70)) {
        let (factors, scalars): (Vec<Scalar>, Vec<Scalar>) = pairs.into_iter().unzip();
        combine_alike::<G1Curve>(&factors, &scalars);
        combine_alike::<G2Curve>(&factors, &scalars);
        // All the same point, and opposites
        let same: Vec<Scalar> =
            (0..factors.len()).map(|index| if index % 3 == 0 { -factors[0] } else { factors[0] }).collect();
        combine_alike::<G1Curve>(&same, &scalars);
        combine_alike::<G2Curve>(&same, &scalars);
    }

    #[test]
    fn back_ends_agree_on_combinations_with_small_integers(
        pairs in prop::collection::vec((scalar(), any::<i128>()), 0..90),
        bits in 0_u32..128,
    ) {
        let (factors, integers): (Vec<Scalar>, Vec<i128>) =
            pairs.into_iter().map(|(factor, integer)| (factor, integer >> bits)).unzip();
        combine_small_alike::<G1Curve>(&factors, &integers);
        combine_small_alike::<G2Curve>(&factors, &integers);
    }

    #[test]
    fn back_ends_agree_on_products_of_pairings(scalars in prop::collection::vec((scalar(), scalar()), 0..20)) {
        let pairs: Vec<(G1, G2)> = scalars.iter().map(|(a, b)| (point(a), point(b))).collect();
        let product = Blst::pairing_product(&pairs);
        prop_assert_eq!(product, Arkworks::pairing_product(&pairs));
        prop_assert_eq!(product.encode(), Arkworks::pairing_product(&pairs).encode());
    }
}

#[test]
fn back_ends_agree_on_every_length_and_size_of_a_combination() {
    let one = Scalar::from(1_u64);
    for length in [1, 2, 3, 7, 31, 32, 33, 64, 65, 130] {
        let factors: Vec<Scalar> = (0..length).map(|index: u64| Scalar::from(index * index)).collect();
        let scalars: Vec<Scalar> = (0..length).map(|index| -one + Scalar::from(index % 5)).collect();
        combine_alike::<G1Curve>(&factors, &scalars);
        combine_alike::<G2Curve>(&factors, &scalars);
        // From 64 points on, blst has buckets of its own for small integers.
        for bits in 0..=127 {
            let integers: Vec<i128> = (0..length)
                .map(|index| if index % 2 == 0 { i128::MIN >> bits } else { i128::MAX >> bits })
                .collect();
            combine_small_alike::<G1Curve>(&factors, &integers);
        }
    }
}

/// Scalars with one digit to the base 2^width at every place alone, their opposites, those with one digit at
/// every place, and those at which a sum could meet its own summand in the last row of a table.
fn awkward(width: u32) -> Vec<Scalar> {
    let base = Scalar::from(1_u64 << width);
    let (mut scalars, mut power) = (Vec::new(), Scalar::from(1_u64));
    for _ in 0..255 / width {
        for digit in 0..1_u64 << width {
            let scalar = power * Scalar::from(digit);
            scalars.extend([scalar, -scalar]);
        }
        power *= base;
    }
    for digit in 0..1_u64 << width {
        scalars.push((0..255 / width).fold(Scalar::from(0_u64), |sum, _| sum * base + Scalar::from(digit)));
        // 2 · digit · 2^(width · last): once as the sum of the rows below, once as the entry.
        scalars.push(power * Scalar::from(2 * digit));
    }
    scalars
}

#[test]
fn back_ends_agree_on_every_digit_of_a_multiple_of_the_generator() {
    for scalar in awkward(6) {
        assert_eq!(Blst::multiply_generator(&scalar), Blst::multiply(&G1::generator(), &scalar));
    }
    assert!(Blst::multiply_generator(&Scalar::from(0_u64)).is_identity());
    assert!(Arkworks::multiply_generator(&Scalar::from(0_u64)).is_identity());
}

#[test]
fn back_ends_agree_on_every_digit_of_many_multiples() {
    fn check<C: Curve>(scalars: &[Scalar]) {
        let point = Point::<C>::hash("QUIVER TEST MULTIPLES", &[b"of one point"]);
        let multiples = Blst::multiply_all(&point, scalars);
        assert_eq!(multiples.len(), scalars.len());
        for (scalar, multiple) in scalars.iter().zip(&multiples) {
            assert_eq!(*multiple, Blst::multiply(&point, scalar));
        }
        for count in [0, 1, 23, 24, 40] {
            assert_eq!(
                Blst::multiply_all(&point, &scalars[..count]),
                Arkworks::multiply_all(&point, &scalars[..count])
            );
        }
        assert!(Blst::multiply_all(&Point::<C>::identity(), scalars).iter().all(Point::is_identity));
    }
    check::<G1Curve>(&awkward(5));
    check::<G2Curve>(&awkward(5));
}

#[test]
fn back_ends_leave_out_what_has_no_counterpart() {
    let points = [G2::generator(); 3];
    let scalars = [5_u64, 7].map(Scalar::from);
    let twelve = G2::generator() * Scalar::from(12_u64);
    assert_eq!(Blst::msm(&points, &scalars), twelve);
    assert_eq!(Arkworks::msm(&points, &scalars), twelve);
    assert_eq!(Blst::msm(&points[..1], &scalars), G2::generator() * scalars[0]);
    assert_eq!(Arkworks::msm(&points[..1], &scalars), G2::generator() * scalars[0]);
    let (many, large) = ([G2::generator(); 100], [5 << 100; 90]);
    assert_eq!(Blst::msm_small(&many, &large), Arkworks::msm_small(&many[..90], &large));
    assert_eq!(Blst::msm_small(&many[..80], &large), Arkworks::msm_small(&many[..80], &large[..80]));
}

#[test]
fn back_ends_agree_on_identities_within_products() {
    let (p, q) = (G1::generator(), G2::generator());
    let (o, i) = (G1::identity(), G2::identity());
    for pairs in [&[(o, q)][..], &[(p, i)], &[(o, i)], &[(p, q), (o, q), (p, i)], &[(o, q), (p, q)], &[]] {
        assert_eq!(Blst::pairing_product(pairs), Arkworks::pairing_product(pairs));
    }
    // More than blst takes at once
    let many = vec![(p, q); 33];
    assert_eq!(Blst::pairing_product(&many), Blst::pairing_product(&[(p * Scalar::from(33_u64), q)]));
    assert_eq!(Blst::pairing_product(&many), Arkworks::pairing_product(&many));
}

#[test]
fn back_ends_agree_on_small_and_extreme_encodings() {
    fn check<C: Curve>() {
        let mut points = 0;
        for first in 0..=255 {
            for last in [0, 1, 2, 3, 0xaa, 0xab, 0xac] {
                let mut bytes = vec![0; C::ENCODED_LEN];
                (bytes[0], bytes[C::ENCODED_LEN - 1]) = (first, last);
                points += usize::from(decode_alike::<C>(&bytes));
            }
        }
        assert_eq!(points, 1, "the identity alone");
        let p = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
        let mut largest = hex::decode(p).unwrap().repeat(C::ENCODED_LEN / 48);
        largest[0] |= 0x80;
        assert!(!decode_alike::<C>(&largest));
        largest.iter_mut().skip(47).step_by(48).for_each(|byte| *byte -= 1);
        assert!(!decode_alike::<C>(&largest));
    }
    check::<G1Curve>();
    check::<G2Curve>();
}

#[test]
fn a_host_computes_with_blst() {
    assert_eq!(Active::NAME, "blst");
    assert_ne!(Arkworks::NAME, Blst::NAME);
}

/// Points of G1 with a scalar and a weight for each: so many that vectors are filled, and some are left over.
fn many() -> impl Strategy<Value = Vec<(Scalar, Scalar, [u64; 2])>> {
    prop::collection::vec((scalar(), scalar(), any::<[u64; 2]>()), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn back_ends_agree_on_many_points_at_once(many in many(), choices: [bool; 20], one in scalar(), columns in 1_usize..10) {
        let points: Vec<G1> = many.iter().map(|(factor, ..)| point(factor)).collect();
        let scalars: Vec<Scalar> = many.iter().map(|(_, scalar, _)| *scalar).collect();
        let weights: Vec<[u64; 2]> = many.iter().map(|(.., weight)| *weight).collect();
        prop_assert_eq!(Blst::multiply_each(&points, &scalars), Arkworks::multiply_each(&points, &scalars));
        prop_assert_eq!(Blst::multiply_points(&points, &one), Arkworks::multiply_points(&points, &one));
        prop_assert_eq!(Blst::multiply_generator_by_each(&scalars), Arkworks::multiply_generator_by_each(&scalars));
        let (zero, base) = (G1::generator(), point(&one));
        prop_assert_eq!(
            Blst::multiply_either([&zero, &base], &choices, &scalars),
            Arkworks::multiply_either([&zero, &base], &choices, &scalars)
        );
        prop_assert_eq!(
            Blst::sum_weighted(&points, &weights, columns),
            Arkworks::sum_weighted(&points, &weights, columns)
        );
    }
}
