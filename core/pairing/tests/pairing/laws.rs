//! The laws of the groups and of the pairing, on random elements.

use proptest::prelude::*;
use quiver_pairing::{
    FixedBase, G1, G2, Group, Gt, PairingError, Prepared, Scalar, pairing, pairing_product, product_is_one,
    scalar_from_wide,
};

/// Scalars of all sizes: random ones, small ones, those next to r and powers of two.
fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        4 => proptest::array::uniform::<_, 64>(any::<u8>()).prop_map(|wide| scalar_from_wide(&wide)),
        1 => (0_u64..40).prop_map(Scalar::from),
        1 => (1_u64..40).prop_map(|small| -Scalar::from(small)),
        1 => (0_usize..255).prop_map(|bits| (0..bits).fold(Scalar::from(1_u64), |power, _| power + power)),
        1 => (0_usize..255).prop_map(|bits| (0..bits).fold(-Scalar::from(1_u64), |power, _| power + power)),
    ]
}

/// scalar · element by doubling and adding, bit by bit.
fn by_bits<G: Group>(element: G, scalar: &Scalar) -> G {
    let bytes = quiver_pairing::scalar_encode(scalar);
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).fold(
        G::identity(),
        |sum, bit| {
            if bit == 1 { sum.double() + element } else { sum.double() }
        },
    )
}

fn gt() -> Gt {
    pairing(&G1::generator(), &G2::generator())
}

fn from_signed(integer: i128) -> Scalar {
    let magnitude = Scalar::from(integer.unsigned_abs());
    if integer < 0 { -magnitude } else { magnitude }
}

fn obeys_group_laws<G: Group>(generator: G, a: Scalar, b: Scalar) {
    let (p, q) = (generator * a, generator * b);
    assert_eq!(p, by_bits(generator, &a));
    assert_eq!(p * b, by_bits(p, &b));
    assert_eq!(p + q, generator * (a + b));
    assert_eq!(p - q, generator * (a - b));
    assert_eq!(-p, generator * -a);
    assert_eq!(p.double(), p + p);
    assert!((p + -p).is_identity());
    assert_eq!([p, q, G::identity()].iter().sum::<G>(), p + q);
    let mut assigned = p;
    assigned += q;
    assigned -= p;
    assert_eq!(assigned, q);
    assert!((G::identity() * a).is_identity());
}

fn tables_multiply<G: Group>(base: G, scalars: &[Scalar], widths: &[u32]) {
    for width in widths {
        let table = FixedBase::with_window(&base, *width);
        for scalar in scalars {
            assert_eq!(table.multiply(scalar), base * scalar, "{width} bits");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn groups_obey_their_laws(a in scalar(), b in scalar()) {
        obeys_group_laws(G1::generator(), a, b);
        obeys_group_laws(G2::generator(), a, b);
        obeys_group_laws(gt(), a, b);
    }

    #[test]
    fn pairings_are_bilinear(a in scalar(), b in scalar(), c in scalar()) {
        let (p, q) = (G1::generator() * a, G2::generator() * b);
        prop_assert_eq!(pairing(&p, &q), gt() * (a * b));
        prop_assert_eq!(pairing(&(p * c), &q), pairing(&p, &(q * c)));
        prop_assert_eq!(pairing(&(p + G1::generator() * c), &q), pairing(&p, &q) + gt() * (c * b));
        prop_assert_eq!(pairing(&p, &(q + G2::generator() * c)), pairing(&p, &q) + gt() * (a * c));
    }

    #[test]
    fn products_are_sums_of_pairings(scalars in prop::collection::vec((scalar(), scalar()), 0..9)) {
        let pairs: Vec<(G1, G2)> =
            scalars.iter().map(|(a, b)| (G1::generator() * a, G2::generator() * b)).collect();
        let sum = scalars.iter().map(|(a, b)| *a * b).sum::<Scalar>();
        prop_assert_eq!(pairing_product(&pairs), gt() * sum);
        prop_assert_eq!(product_is_one(&pairs), sum == Scalar::from(0_u64));
        let balanced = [&pairs[..], &[(G1::generator() * -sum, G2::generator())]].concat();
        prop_assert!(product_is_one(&balanced));
    }

    #[test]
    fn combinations_are_sums_of_multiples(
        pairs in prop::collection::vec((scalar(), scalar()), 0..40),
        repeated in any::<bool>(),
    ) {
        let (factors, scalars): (Vec<Scalar>, Vec<Scalar>) = pairs.into_iter().unzip();
        let factors: Vec<Scalar> = factors.iter().map(|factor| if repeated { factors[0] } else { *factor }).collect();
        let sum: Scalar = factors.iter().zip(&scalars).map(|(a, b)| *a * b).sum();
        let g1: Vec<G1> = factors.iter().map(|factor| G1::generator() * factor).collect();
        prop_assert_eq!(G1::msm(&g1, &scalars), Ok(G1::generator() * sum));
        let g2: Vec<G2> = factors.iter().map(|factor| G2::generator() * factor).collect();
        prop_assert_eq!(G2::msm(&g2, &scalars), Ok(G2::generator() * sum));
    }

    #[test]
    fn combinations_with_small_integers_are_those_with_scalars(
        pairs in prop::collection::vec((scalar(), any::<i128>()), 0..12),
        bits in 0_u32..128,
    ) {
        let (factors, integers): (Vec<Scalar>, Vec<i128>) =
            pairs.into_iter().map(|(factor, integer)| (factor, integer >> bits)).unzip();
        let scalars: Vec<Scalar> = integers.iter().map(|integer| from_signed(*integer)).collect();
        let g1: Vec<G1> = factors.iter().map(|factor| G1::generator() * factor).collect();
        prop_assert_eq!(G1::msm_small(&g1, &integers), G1::msm(&g1, &scalars));
        let g2: Vec<G2> = factors.iter().map(|factor| G2::generator() * factor).collect();
        prop_assert_eq!(G2::msm_small(&g2, &integers), G2::msm(&g2, &scalars));
    }

    #[test]
    fn tables_give_multiples(base in scalar(), scalars in prop::collection::vec(scalar(), 3)) {
        tables_multiply(G1::generator() * base, &scalars, &[4, 6]);
        tables_multiply(G2::generator() * base, &scalars, &[5]);
        tables_multiply(gt() * base, &scalars, &[3]);
    }
}

#[test]
fn tables_of_every_width_reach_every_digit() {
    let extremes =
        [0, 1, 2].map(Scalar::from).into_iter().chain([-Scalar::from(1_u64), -Scalar::from(2_u64)]);
    // All digits as large as they get, and one more than that: the carry runs through.
    let halves = (2..=8).flat_map(|width: u32| {
        let base = Scalar::from(1_u64 << width);
        let digits = |digit: u64, count: u32| {
            (0..count).fold(Scalar::from(0_u64), |sum, _| sum * base + Scalar::from(digit))
        };
        let half = 1 << (width - 1);
        [digits(half, 254 / width), digits(half + 1, 254 / width), digits((1 << width) - 1, 254 / width)]
    });
    let scalars: Vec<Scalar> = extremes.chain(halves).collect();
    tables_multiply(G1::generator(), &scalars, &[0, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn tables_are_as_large_as_documented() {
    let sizes = |width| {
        [
            FixedBase::with_window(&G1::generator(), width).size(),
            FixedBase::with_window(&G2::generator(), width).size(),
            FixedBase::with_window(&gt(), width).size(),
        ]
    };
    assert_eq!(sizes(2), [24_576, 49_152, 147_456]);
    assert_eq!(sizes(4), [49_152, 98_304, 294_912]);
    assert_eq!(sizes(FixedBase::<G1>::DEFAULT_WINDOW), [132_096, 264_192, 792_576]);
    assert_eq!(FixedBase::new(&G1::generator()).size(), 132_096);
    assert_eq!(sizes(8), [393_216, 786_432, 2_359_296]);
}

#[test]
fn the_empty_combination_is_the_identity() {
    assert_eq!(G1::msm(&[], &[]), Ok(G1::identity()));
    assert_eq!(G2::msm_small(&[], &[]), Ok(G2::identity()));
    assert!(pairing_product(&[]).is_identity());
    assert!(product_is_one(&[]));
}

#[test]
fn combinations_of_unequal_lengths_are_refused() {
    let (points, scalars) = ([G1::generator(); 3], [Scalar::from(1_u64); 2]);
    let unequal = Err(PairingError::UnequalLengths { elements: 3, coefficients: 2 });
    assert_eq!(G1::msm(&points, &scalars), unequal);
    assert_eq!(G1::msm_small(&points, &[1, 1]), unequal);
    assert_eq!(G1::msm(&[], &scalars), Err(PairingError::UnequalLengths { elements: 0, coefficients: 2 }));
}

#[test]
fn combinations_with_identities_and_opposites_inside_come_out_right() {
    let (p, o) = (G2::generator(), G2::identity());
    let scalars = [5, 7, 5, 1, 0].map(|value: u64| Scalar::from(value));
    assert_eq!(G2::msm(&[p, o, -p, o, p], &scalars), Ok(o));
    assert_eq!(G2::msm(&[p, p, o, -p, p], &scalars), Ok(p * Scalar::from(11_u64)));
    assert_eq!(
        G2::msm_small(&[p, o, -p, p, p], &[5, 7, -5, 0, i128::MIN]),
        G2::msm(&[p, p], &[10, 0].map(|value: u64| Scalar::from(value)))
            .map(|sum| sum + p * from_signed(i128::MIN))
    );
    assert_eq!(G2::msm_small(&[p, p, p], &[-1, 1, -1]), Ok(-p));
    assert_eq!(G1::msm(&[G1::identity()], &scalars[..1]), Ok(G1::identity()));
}

#[test]
fn pairs_with_an_identity_count_for_nothing() {
    let (p, q) = (G1::generator(), G2::generator());
    assert!(pairing(&G1::identity(), &q).is_identity());
    assert!(pairing(&p, &G2::identity()).is_identity());
    let pairs = [(p, q), (G1::identity(), q), (p, G2::identity()), (G1::identity(), G2::identity()), (p, q)];
    assert_eq!(pairing_product(&pairs), gt().double());
    assert!(product_is_one(&pairs[1..4]));
    assert!(!product_is_one(&pairs));
}

#[test]
fn the_pairing_is_not_degenerate_and_has_order_r() {
    assert!(!gt().is_identity());
    assert_eq!(gt() * -Scalar::from(1_u64), -gt());
    assert!((gt() + gt() * -Scalar::from(1_u64)).is_identity());
}

/// Value that zkcrypto's `bls12_381` and drand's `kyber-bls12381` have, which publish it: the coefficient
/// that the encoding ends with.
#[test]
fn the_pairing_of_both_generators_is_the_one_that_others_have() {
    let known =
        "1250ebd871fc0a92a7b2d83168d0d727272d441befa15c503dd8e90ce98db3e7b6d194f60839c508a84305aaca1789b6";
    assert!(hex::encode(pairing(&G1::generator(), &G2::generator()).encode()).ends_with(known));
}

#[test]
fn prepared_points_are_paired_like_others() {
    for count in [0, 1, 7, 8, 9, 20] {
        let qs: Vec<G2> =
            (1..=count).map(|scalar: u64| G2::generator() * Scalar::from(scalar * scalar + 5)).collect();
        let mut ps: Vec<G1> =
            (1..=count).map(|scalar: u64| G1::generator() * Scalar::from(scalar + 77)).collect();
        let product = |ps: &[G1], qs: &[G2]| {
            pairing_product(&ps.iter().copied().zip(qs.iter().copied()).collect::<Vec<_>>())
        };
        let prepared = Prepared::new(qs.clone());
        assert_eq!(prepared.pairing_product(&ps), product(&ps, &qs));
        // Other points, an identity among them, and fewer.
        ps.iter_mut().for_each(|p| *p = p.double() + G1::generator());
        if let Some(p) = ps.get_mut(2) {
            *p = G1::identity();
        }
        assert_eq!(prepared.pairing_product(&ps), product(&ps, &qs));
        ps.truncate(ps.len() / 2);
        assert_eq!(prepared.pairing_product(&ps), product(&ps, &qs));
        assert_eq!(prepared.product_is_one(&ps), ps.is_empty());
        ps.fill(G1::identity());
        assert!(prepared.product_is_one(&ps));
    }
    // Points with an identity among them.
    let mut qs = vec![G2::generator(); 9];
    qs[4] = G2::identity();
    let ps = vec![G1::generator(); 9];
    assert_eq!(
        Prepared::new(qs).pairing_product(&ps),
        pairing(&G1::generator(), &G2::generator()) * Scalar::from(8_u64)
    );
}

#[test]
fn so_many_prepared_points_that_sums_on_their_way_have_to_be_reduced_are_paired_like_others() {
    // 8 · 300 points: more lines at one bit than go without a reduction.
    let (p, q) = (G1::generator().double(), G2::generator() * Scalar::from(9_u64));
    let prepared = Prepared::new(vec![q; 2400]);
    assert_eq!(prepared.pairing_product(&[p; 2400]), pairing(&p, &q) * Scalar::from(2400_u64));
}
