//! The field against fiat-crypto's, whose code is generated from a proof, with limbs up to the largest the
//! types admit.

use core::arch::x86_64::{_mm256_extract_epi64, _mm256_set_epi64x, _mm256_set_pd};

use fiat_crypto::curve25519_64::{
    fiat_25519_add, fiat_25519_carry, fiat_25519_carry_mul, fiat_25519_from_bytes,
    fiat_25519_loose_field_element as Loose, fiat_25519_opp, fiat_25519_relax, fiat_25519_sub,
    fiat_25519_tight_field_element as Proven, fiat_25519_to_bytes,
};
use proptest::array::{uniform4, uniform5};
use proptest::prelude::*;

use super::*;
use crate::avx2::Avx2;
use crate::x25519::bytes::{gather, scatter};

type Numbers = [[u8; 32]; LANES];
/// The limbs of one number per lane.
type Loaded = [[i64; 5]; LANES];

/// The largest limbs of a [`Tight`], a [`Difference`] and a [`Wide`].
const TIGHT: i64 = (1 << 50) + (1 << 14) - 1;
const DIFFERENCE: i64 = 2 * TIGHT;
const WIDE: i64 = (1 << 59) - 1;

/// Runs a test's code for vectors. On a machine without the instructions it returns `None` and says so.
fn on_vectors<I, O>(body: unsafe fn(I) -> O, input: I) -> Option<O> {
    let avx2 = Avx2::detect();
    if avx2.is_none() {
        use std::io::Write;
        let message = b"\nNOT TESTED: this machine has no AVX2 and FMA; no test of their code ran\n";
        std::io::stderr().write_all(message).unwrap();
    }
    Some(avx2?.run(body, input))
}

#[target_feature(enable = "avx2,fma")]
fn factors(numbers: &Loaded) -> Factors {
    let [a, b, c, d] = numbers.map(|limbs| limbs.map(|limb| limb as f64));
    core::array::from_fn(
        #[inline]
        |limb| _mm256_set_pd(d[limb], c[limb], b[limb], a[limb]),
    )
}

#[target_feature(enable = "avx2,fma")]
fn integers(numbers: &Loaded) -> Limbs {
    let [a, b, c, d] = *numbers;
    core::array::from_fn(
        #[inline]
        |limb| _mm256_set_epi64x(d[limb], c[limb], b[limb], a[limb]),
    )
}

/// The limbs of wide elements.
#[target_feature(enable = "avx2,fma")]
fn wide_limbs(element: Wide) -> Loaded {
    let limbs = element.0.map(
        #[inline]
        |limb| {
            [
                _mm256_extract_epi64::<0>(limb),
                _mm256_extract_epi64::<1>(limb),
                _mm256_extract_epi64::<2>(limb),
                _mm256_extract_epi64::<3>(limb),
            ]
        },
    );
    core::array::from_fn(|lane| limbs.map(|limb| limb[lane]))
}

/// The limbs of raised elements, without what they were raised by.
#[target_feature(enable = "avx2,fma")]
fn raised_limbs(element: Raised) -> Loaded {
    wide_limbs(Wide(element.0)).map(|limbs| limbs.map(|limb| limb.wrapping_sub(RAISE)))
}

/// The limbs of tight elements.
#[target_feature(enable = "avx2,fma")]
fn tight_limbs(element: Tight) -> Loaded {
    let magic = _mm256_set1_pd(LOW);
    let integers = element.0.map(
        #[inline]
        |limb| _mm256_castpd_si256(_mm256_add_pd(limb, magic)),
    );
    wide_limbs(Wide(integers)).map(|limbs| limbs.map(|limb| limb - LOW.to_bits().cast_signed()))
}

#[target_feature(enable = "avx2,fma")]
fn stored(element: Tight) -> Numbers {
    let mut numbers = [[0; 32]; LANES];
    scatter(&element.to_words(), &mut numbers);
    numbers
}

fn small(value: u64) -> Proven {
    let (mut bytes, mut element) = ([0; 32], Proven([0; 5]));
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    fiat_25519_from_bytes(&mut element, &bytes);
    element
}

fn mul(a: &Proven, b: &Proven) -> Proven {
    let (mut x, mut y, mut product) = (Loose([0; 5]), Loose([0; 5]), Proven([0; 5]));
    fiat_25519_relax(&mut x, a);
    fiat_25519_relax(&mut y, b);
    fiat_25519_carry_mul(&mut product, &x, &y);
    product
}

/// Result of `fiat_25519_add` or `fiat_25519_sub`.
fn by(operation: fn(&mut Loose, &Proven, &Proven), a: &Proven, b: &Proven) -> Proven {
    let (mut loose, mut result) = (Loose([0; 5]), Proven([0; 5]));
    operation(&mut loose, a, b);
    fiat_25519_carry(&mut result, &loose);
    result
}

/// The number of limbs of any size and sign.
fn proven(limbs: &[i64; 5]) -> Proven {
    limbs.iter().rev().fold(small(0), |sum, limb| {
        let mut size = small(limb.unsigned_abs());
        if *limb < 0 {
            size = by(|out, a, _| fiat_25519_opp(out, a), &size, &size);
        }
        by(fiat_25519_add, &mul(&sum, &small(1 << 51)), &size)
    })
}

fn to_bytes(element: &Proven) -> [u8; 32] {
    let mut bytes = [0; 32];
    fiat_25519_to_bytes(&mut bytes, element);
    bytes
}

/// fiat-crypto's result for the numbers in each lane of `a` and `b`.
fn expected(a: &Loaded, b: &Loaded, compute: impl Fn(&Proven, &Proven) -> Proven) -> Numbers {
    core::array::from_fn(|lane| to_bytes(&compute(&proven(&a[lane]), &proven(&b[lane]))))
}

/// Any limbs up to the largest, the edges often.
fn elements(largest: i64) -> impl Strategy<Value = Loaded> {
    let special = vec![0, 1, -1, 1 << 50, -(1 << 50), largest, -largest];
    uniform4(uniform5(prop_oneof![-largest..=largest, proptest::sample::select(special)]))
}

proptest! {
    #[test]
    fn products_and_squares_are_those_of_fiat_crypto(
        a in elements(TIGHT), b in elements(TIGHT), difference in elements(DIFFERENCE),
    ) {
        #[target_feature(enable = "avx2,fma")]
        fn body((a, b, difference): (Loaded, Loaded, Loaded)) -> [Numbers; 5] {
            let (a, b) = (Tight(factors(&a)), Tight(factors(&b)));
            let (difference, fold) = (Difference(factors(&difference)), Fold::new());
            [
                stored(a.mul(b, fold).raised().carry()),
                stored(a.mul_raised(b, fold).carry()),
                stored(a.square_raised(fold).carry()),
                stored(difference.mul(b, fold).raised().carry()),
                stored(a.mul_raised(b, fold).plus_multiple(difference, 121_665.0, fold).carry()),
            ]
        }
        if let Some(found) = on_vectors(body, (a, b, difference)) {
            let product = expected(&a, &b, mul);
            let multiple: Numbers = core::array::from_fn(|lane| {
                let product = mul(&proven(&a[lane]), &proven(&b[lane]));
                let multiple = mul(&proven(&difference[lane]), &small(121_665));
                to_bytes(&by(fiat_25519_add, &product, &multiple))
            });
            let others = [expected(&a, &a, mul), expected(&difference, &b, mul), multiple];
            prop_assert_eq!(&found[..2], &[product; 2]);
            prop_assert_eq!(&found[2..], &others);
        }
    }

    #[test]
    fn sums_and_differences_are_those_of_fiat_crypto(a in elements(WIDE), b in elements(WIDE)) {
        #[target_feature(enable = "avx2,fma")]
        fn body((a, b): (Loaded, Loaded)) -> [Numbers; 2] {
            let (a, b) = (Wide(integers(&a)).raised(), Wide(integers(&b)));
            [stored(a.add(b)), stored(a.sub(b))]
        }
        if let Some(found) = on_vectors(body, (a, b)) {
            let sum = expected(&a, &b, |a, b| by(fiat_25519_add, a, b));
            let difference = expected(&a, &b, |a, b| by(fiat_25519_sub, a, b));
            prop_assert_eq!(found, [sum, difference]);
        }
    }

    #[test]
    fn a_number_times_its_inverse_is_one(a in elements(TIGHT)) {
        #[target_feature(enable = "avx2,fma")]
        fn body(a: Loaded) -> [Numbers; 2] {
            let (a, fold) = (Tight(factors(&a)), Fold::new());
            let inverse = a.invert(fold);
            let zeros = Tight::small(1.0).select(Tight::small(0.0), a.is_zero());
            [stored(inverse.mul_raised(a, fold).carry()), stored(zeros)]
        }
        if let Some(found) = on_vectors(body, a) {
            let is_one = a.map(|limbs| to_bytes(&small((to_bytes(&proven(&limbs)) != [0; 32]).into())));
            prop_assert_eq!(found, [is_one; 2]);
        }
    }

    #[test]
    fn any_32_bytes_are_read_modulo_p_without_their_highest_bit(numbers in uniform4(any::<[u8; 32]>())) {
        #[target_feature(enable = "avx2,fma")]
        fn body(numbers: Numbers) -> Numbers {
            stored(Wide::from_words(&gather(&numbers)).raised().carry())
        }
        if let Some(found) = on_vectors(body, numbers) {
            let expected = numbers.map(|mut number| {
                number[31] &= 0x7f;
                let mut element = Proven([0; 5]);
                fiat_25519_from_bytes(&mut element, &number);
                to_bytes(&element)
            });
            prop_assert_eq!(found, expected);
        }
    }
}

/// Limbs all as large as can be, all but one zero, and every other sign.
fn extremes(largest: i64) -> Vec<Loaded> {
    let mut all = vec![[[largest; 5]; LANES], [[-largest; 5]; LANES]];
    for limb in 0..5 {
        let (mut one, mut other) = ([0; 5], [largest; 5]);
        (one[limb], other[limb]) = (largest, -largest);
        all.extend([[one; LANES], [other; LANES]]);
    }
    all
}

#[test]
fn limbs_stay_within_what_their_types_promise() {
    #[target_feature(enable = "avx2,fma")]
    fn products((a, b, difference): (Loaded, Loaded, Loaded)) -> [Loaded; 5] {
        let (a, b, fold) = (Tight(factors(&a)), Tight(factors(&b)), Fold::new());
        let difference = Difference(factors(&difference));
        let product = a.mul_raised(b, fold);
        [
            wide_limbs(a.mul(b, fold)),
            raised_limbs(product),
            raised_limbs(a.square_raised(fold)),
            wide_limbs(difference.mul(b, fold)),
            raised_limbs(product.plus_multiple(difference, 121_665.0, fold)),
        ]
    }
    #[target_feature(enable = "avx2,fma")]
    fn carries((a, b): (Loaded, Loaded)) -> [Loaded; 3] {
        let (a, b) = (Wide(integers(&a)).raised(), Wide(integers(&b)));
        [tight_limbs(a.add(b)), tight_limbs(a.sub(b)), tight_limbs(a.carry())]
    }
    let within = |found: &[Loaded], largest: i64| {
        let bad = found.iter().flatten().flatten().find(|limb| limb.abs() > largest);
        assert_eq!(bad, None, "limb beyond {largest:#x}");
    };
    for a in extremes(TIGHT) {
        for (b, difference) in extremes(TIGHT).into_iter().zip(extremes(DIFFERENCE)) {
            let Some(found) = on_vectors(products, (a, b, difference)) else { return };
            within(&found, WIDE);
        }
    }
    for a in extremes(WIDE) {
        for b in extremes(WIDE) {
            let Some(found) = on_vectors(carries, (a, b)) else { return };
            within(&found, TIGHT);
        }
    }
}

#[test]
fn numbers_around_p_and_2_to_the_255_are_reduced() {
    #[target_feature(enable = "avx2,fma")]
    fn body(numbers: Numbers) -> Numbers {
        stored(Wide::from_words(&gather(&numbers)).raised().carry())
    }
    let near = |low: u8, high: u8| {
        let mut number = [0xff; 32];
        (number[0], number[31]) = (low, high);
        number
    };
    // p − 1, p, p + 1, 2^255 − 1, and the last with the bit above
    let numbers = [near(0xec, 0x7f), near(0xed, 0x7f), near(0xee, 0xff), near(0xff, 0xff)];
    let Some(found) = on_vectors(body, numbers) else { return };
    assert_eq!(found, [near(0xec, 0x7f), to_bytes(&small(0)), to_bytes(&small(1)), to_bytes(&small(18))]);
}
