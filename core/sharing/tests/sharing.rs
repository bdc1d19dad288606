//! Any t shares recover a secret, fewer reveal nothing about it, and commitments distinguish right shares
//! from wrong ones: over every field, and, where it can be, over all polynomials of a small one.

#[path = "sharing/tiny.rs"]
mod tiny;

use std::collections::BTreeMap;

use ark_bls12_381::{Fr, G1Projective, G2Projective};
use curve25519_dalek::{RistrettoPoint, Scalar};
use proptest::prelude::*;
use proptest::sample::subsequence;
use quiver_sharing::{
    Error, Field, MAX_SHARES, Polynomial, PolynomialCommitment, PrimeOrderGroup, SecretShare,
    UnverifiedShare, combine, lagrange_at_zero, rational_lagrange, split,
};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use tiny::F7;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A threshold, a number of shares, and which of the shares come together, as many as the threshold or more,
/// in any order.
fn gathered() -> impl Strategy<Value = (usize, usize, Vec<usize>)> {
    (1_usize..12).prop_flat_map(|count| (1..=count, Just(count))).prop_flat_map(|(threshold, count)| {
        let places: Vec<usize> = (0..count).collect();
        (Just(threshold), Just(count), subsequence(places, threshold..=count).prop_shuffle())
    })
}

fn recovered<F: Field>(seed: u64, threshold: usize, count: usize, places: &[usize]) -> bool {
    let mut rng = rng(seed);
    let secret = F::random(&mut rng);
    let shares = split(&secret, threshold, count, &mut rng).unwrap();
    assert!(shares.iter().map(SecretShare::index).eq(1..=count as u32));
    let gathered: Vec<_> = places.iter().map(|&place| shares[place].clone()).collect();
    *combine(&gathered).unwrap() == secret
}

/// Returns true if shares that are one too few go together with any secret at all.
fn undetermined<F: Field>(seed: u64, threshold: usize, count: usize, places: &[usize]) -> bool {
    let mut rng = rng(seed);
    let shares = split(&F::random(&mut rng), threshold, count, &mut rng).unwrap();
    let mut few: Vec<_> = places.iter().take(threshold - 1).map(|&place| shares[place].clone()).collect();
    // For any other secret there is a last share with which they give it.
    let (other, index) = (F::random(&mut rng), 1000);
    let indices: Vec<u32> = few.iter().map(SecretShare::index).chain([index]).collect();
    let coefficients = lagrange_at_zero::<F>(&indices).unwrap();
    let known = few.iter().zip(&coefficients).fold(F::ZERO, |sum, (share, &c)| sum + *share.expose() * c);
    let last = (other - known) * coefficients[threshold - 1].invert().unwrap();
    few.push(SecretShare::new(index, last).unwrap());
    *combine(&few).unwrap() == other
}

fn fractions_agree<F: Field>(indices: &[u32]) {
    let coefficients = lagrange_at_zero::<F>(indices).unwrap();
    if let Some(rational) = rational_lagrange(indices).unwrap() {
        let inverse = F::from_integer(rational.denominator).invert().unwrap();
        for (numerator, coefficient) in rational.numerators.iter().zip(&coefficients) {
            assert!(F::from_integer(*numerator) * inverse == *coefficient);
        }
    }
}

fn commitments_tell<G: PrimeOrderGroup + std::fmt::Debug>(seed: u64, threshold: usize, index: u32) {
    let mut rng = rng(seed);
    let secret = G::Scalar::random(&mut rng);
    let polynomial = Polynomial::random(&secret, threshold, &mut rng).unwrap();
    let commitment = PolynomialCommitment::<G>::commit(&polynomial);
    assert_eq!(commitment.threshold(), threshold);
    assert!(commitment.public(0) == G::generator() * secret);
    let value = polynomial.evaluate(index);
    assert!(commitment.public(index) == G::generator() * value);
    let claim = |index, value| commitment.verify(UnverifiedShare::new(index, value).unwrap());
    assert!(*claim(index, value).unwrap().expose() == value);
    assert_eq!(claim(index, value + G::Scalar::ONE).unwrap_err(), Error::InvalidShare(index));
    if threshold > 1 {
        assert_eq!(claim(index + 1, value).unwrap_err(), Error::InvalidShare(index + 1));
    }
    let other = Polynomial::random(&secret, threshold + 1, &mut rng).unwrap();
    let sum = commitment + &PolynomialCommitment::commit(&other);
    let both = UnverifiedShare::new(index, value + other.evaluate(index)).unwrap();
    assert!(sum.verify(both).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_as_many_shares_as_the_threshold_recover_the_secret(seed: u64, (t, n, places) in gathered()) {
        prop_assert!(recovered::<Fr>(seed, t, n, &places));
        prop_assert!(recovered::<Scalar>(seed, t, n, &places));
    }

    #[test]
    fn one_share_fewer_goes_with_every_secret(seed: u64, (t, n, places) in gathered()) {
        prop_assert!(undetermined::<Fr>(seed, t, n, &places));
        prop_assert!(undetermined::<Scalar>(seed, t, n, &places));
    }

    #[test]
    fn fractions_are_the_coefficients(indices in prop::collection::btree_set(1_u32..200, 1..24)) {
        let indices: Vec<u32> = indices.into_iter().collect();
        fractions_agree::<Fr>(&indices);
        fractions_agree::<Scalar>(&indices);
    }

    #[test]
    fn fractions_of_indices_up_to_sixty_four_fit(indices in prop::collection::btree_set(1_u32..=64, 1..=64)) {
        prop_assert!(rational_lagrange(&indices.into_iter().collect::<Vec<_>>()).unwrap().is_some());
    }

    #[test]
    fn fractions_of_three_indices_fit(indices in prop::collection::btree_set(1_u32.., 1..=3)) {
        prop_assert!(rational_lagrange(&indices.into_iter().collect::<Vec<_>>()).unwrap().is_some());
    }

    #[test]
    fn fractions_of_any_indices_are_the_coefficients_or_too_large(
        indices in prop::collection::btree_set(1_u32.., 1..8),
    ) {
        fractions_agree::<Scalar>(&indices.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn integers_are_taken_modulo_the_order(a: i64, b: i64) {
        let product = i128::from(a) * i128::from(b);
        prop_assert!(Fr::from_integer(product) == Fr::from_integer(a.into()) * Fr::from_integer(b.into()));
        prop_assert!(Scalar::from_integer(product) == Scalar::from_integer(a.into()) * Scalar::from_integer(b.into()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn commitments_tell_right_shares_from_wrong(seed: u64, threshold in 1_usize..6, index in 1..u32::MAX) {
        commitments_tell::<RistrettoPoint>(seed, threshold, index);
        commitments_tell::<G1Projective>(seed, threshold, index);
        commitments_tell::<G2Projective>(seed, threshold, index);
    }
}

#[test]
fn too_few_shares_are_distributed_alike_whatever_the_secret() {
    // All polynomials of three coefficients over seven elements: each pair of values at any two indices
    // occurs once per secret, so that two shares of three reveal nothing.
    let elements = || (0..7).map(F7);
    for (x, y) in [(1, 2), (1, 6), (3, 5), (4, 2)] {
        for secret in elements() {
            let mut seen = BTreeMap::<(u64, u64), usize>::new();
            for (a, b) in elements().flat_map(|a| elements().map(move |b| (a, b))) {
                let q = Polynomial::new(vec![secret, a, b]).unwrap();
                *seen.entry((q.evaluate(x).0, q.evaluate(y).0)).or_default() += 1;
            }
            assert_eq!(seen.len(), 49);
            assert!(seen.values().all(|&times| times == 1));
        }
    }
}

#[test]
fn every_polynomial_of_a_small_field_is_recovered_from_every_three_points() {
    for indices in [[1, 2, 3], [6, 1, 4], [5, 3, 2]] {
        for code in 0..343 {
            let q = Polynomial::new(vec![F7(code % 7), F7(code / 7 % 7), F7(code / 49)]).unwrap();
            let shares = indices.map(|index| SecretShare::new(index, q.evaluate(index)).unwrap());
            assert!(*combine(&shares).unwrap() == q.evaluate(0));
        }
    }
}

#[test]
fn consecutive_indices_have_binomial_coefficients() {
    for n in 1_u32..=30 {
        let rational = rational_lagrange(&(1..=n).collect::<Vec<_>>()).unwrap().unwrap();
        assert_eq!(rational.denominator, 1);
        let mut binomial = 1_i128;
        for (k, numerator) in (1_i128..).zip(rational.numerators) {
            binomial = binomial * (i128::from(n) - k + 1) / k;
            assert_eq!(numerator, if k % 2 == 1 { binomial } else { -binomial });
        }
    }
}

#[test]
fn fractions_are_in_lowest_terms() {
    // λ_2 = 3·5/(1·3) = 5, λ_3 = 2·5/(−1·2) = −5, λ_5 = 2·3/(−3·−2) = 1
    let rational = rational_lagrange(&[2, 3, 5]).unwrap().unwrap();
    assert_eq!((rational.numerators, rational.denominator), (vec![5, -5, 1], 1));
    // λ_1 = 4/3, λ_4 = −1/3
    let rational = rational_lagrange(&[1, 4]).unwrap().unwrap();
    assert_eq!((rational.numerators, rational.denominator), (vec![4, -1], 3));
}

#[test]
fn coefficients_beyond_128_bits_are_none_and_not_wrong() {
    let up_to = |n: u32| (1..=n).collect::<Vec<_>>();
    assert!(rational_lagrange(&up_to(130)).unwrap().is_some());
    assert_eq!(rational_lagrange(&up_to(131)).unwrap(), None);
    assert_eq!(lagrange_at_zero::<Scalar>(&up_to(131)).unwrap().len(), 131);
    let far: Vec<u32> = (1..=8).map(|number| number * 500_000_003).collect();
    fractions_agree::<Fr>(&far);
}

#[test]
fn thresholds_that_cannot_be_are_refused() {
    let secret = Scalar::from(5_u64);
    let split = |threshold, count| split(&secret, threshold, count, &mut rng(1)).map(|shares| shares.len());
    assert_eq!(split(0, 3), Err(Error::ThresholdZero));
    assert_eq!(split(0, 0), Err(Error::ThresholdZero));
    assert_eq!(split(4, 3), Err(Error::ThresholdAboveCount { threshold: 4, count: 3 }));
    assert_eq!(split(1, MAX_SHARES + 1), Err(Error::TooManyShares));
    assert_eq!(split(2, MAX_SHARES), Ok(MAX_SHARES));
    let random = |threshold| Polynomial::random(&secret, threshold, &mut rng(1)).map(|_| ());
    assert_eq!(random(MAX_SHARES + 1), Err(Error::TooManyShares));
    assert_eq!(Polynomial::<Scalar>::new(vec![]).map(|_| ()), Err(Error::NoShares));
    assert_eq!(PolynomialCommitment::<RistrettoPoint>::new(vec![]), Err(Error::NoShares));
}

#[test]
fn indices_that_cannot_be_are_refused() {
    for (indices, error) in [
        (&[][..], Error::NoShares),
        (&[1, 0], Error::ZeroIndex),
        (&[3, 1, 3], Error::DuplicateIndex(3)),
        (&[1; MAX_SHARES + 1], Error::TooManyShares),
    ] {
        assert!(lagrange_at_zero::<Fr>(indices).is_err_and(|found| found == error));
        assert_eq!(rational_lagrange(indices), Err(error));
    }
    assert_eq!(SecretShare::new(0, Fr::ONE).map(|_| ()), Err(Error::ZeroIndex));
    assert_eq!(UnverifiedShare::new(0, Scalar::ONE).map(|_| ()), Err(Error::ZeroIndex));
    let share = SecretShare::new(1, Scalar::ONE).unwrap();
    assert_eq!(combine(&[share.clone(), share]).map(|_| ()), Err(Error::DuplicateIndex(1)));
    assert_eq!(combine::<Scalar>(&[]).map(|_| ()), Err(Error::NoShares));
}

#[test]
fn debug_shows_no_secret() {
    let value = Scalar::from(0x1234_5678_u64);
    let share = SecretShare::new(7, value).unwrap();
    assert_eq!(format!("{share:?}"), "SecretShare(7)");
    assert_eq!(format!("{:?}", UnverifiedShare::from(share)), "UnverifiedShare(SecretShare(7))");
    let polynomial = Polynomial::new(vec![value; 3]).unwrap();
    assert_eq!(format!("{polynomial:?}"), "Polynomial(3 coefficients)");
}

#[test]
fn zero_has_no_inverse() {
    assert!(<Fr as Field>::invert(&<Fr as Field>::ZERO).is_none());
    assert!(Field::invert(&Scalar::ZERO).is_none());
    assert!(
        Field::invert(&Scalar::from(2_u64)).unwrap() + Field::invert(&Scalar::from(2_u64)).unwrap()
            == Scalar::ONE
    );
}
