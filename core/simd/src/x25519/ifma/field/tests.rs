//! The field against fiat-crypto's, whose code is generated from a proof, with limbs up to the largest the
//! types admit.

use fiat_crypto::curve25519_64::{
    fiat_25519_add, fiat_25519_carry, fiat_25519_carry_mul, fiat_25519_from_bytes,
    fiat_25519_loose_field_element as Loose, fiat_25519_relax, fiat_25519_sub,
    fiat_25519_tight_field_element as Proven, fiat_25519_to_bytes,
};
use proptest::array::{uniform5, uniform8};
use proptest::prelude::*;

use super::*;
use crate::ifma::on_vectors;
use crate::words::LANES;
use crate::x25519::bytes::{gather, scatter};

type Numbers = [[u8; 32]; LANES];
/// The limbs of one number per lane.
type Loaded = [[u64; 5]; LANES];

/// The largest limb of a [`Tight`].
const TIGHT: u64 = (1 << 51) + (1 << 18) - 1;
/// The largest limb of a [`Wide`].
const WIDE: u64 = (1 << 60) - 1;
/// The smallest and largest limb of a [`Raised`].
const RAISED: (u64, u64) = (1 << 61, (1 << 62) - 1);

#[target_feature(enable = "avx512f,avx512ifma")]
fn loaded(numbers: &Loaded) -> Limbs {
    let words = |limb: usize| core::array::from_fn(|lane| numbers[lane][limb]);
    [load(&words(0)), load(&words(1)), load(&words(2)), load(&words(3)), load(&words(4))]
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn limbs(vectors: Limbs) -> Loaded {
    let mut words = [[0; LANES]; 5];
    for (words, vector) in words.iter_mut().zip(vectors) {
        *words = store(vector);
    }
    core::array::from_fn(|lane| words.map(|words| words[lane]))
}

#[target_feature(enable = "avx512f,avx512ifma")]
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

fn relaxed(a: &Proven) -> Loose {
    let mut loose = Loose([0; 5]);
    fiat_25519_relax(&mut loose, a);
    loose
}

fn mul(a: &Proven, b: &Proven) -> Proven {
    let mut product = Proven([0; 5]);
    fiat_25519_carry_mul(&mut product, &relaxed(a), &relaxed(b));
    product
}

/// Result of `fiat_25519_add` or `fiat_25519_sub`.
fn by(operation: fn(&mut Loose, &Proven, &Proven), a: &Proven, b: &Proven) -> Proven {
    let (mut loose, mut result) = (Loose([0; 5]), Proven([0; 5]));
    operation(&mut loose, a, b);
    fiat_25519_carry(&mut result, &loose);
    result
}

fn add(a: &Proven, b: &Proven) -> Proven {
    by(fiat_25519_add, a, b)
}

/// The number of limbs of any size.
fn proven(limbs: &[u64; 5]) -> Proven {
    limbs.iter().rev().fold(small(0), |sum, limb| add(&mul(&sum, &small(1 << 51)), &small(*limb)))
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
fn elements(smallest: u64, largest: u64) -> impl Strategy<Value = Loaded> {
    let special = [0, (1 << 51) - 20, (1 << 51) - 19, (1 << 51) - 1, 1 << 51, smallest, largest];
    let special: Vec<u64> = special.into_iter().filter(|limb| (smallest..=largest).contains(limb)).collect();
    let limb = prop_oneof![smallest..=largest, proptest::sample::select(special)];
    uniform8(uniform5(limb))
}

proptest! {
    #[test]
    fn products_and_squares_are_those_of_fiat_crypto(a in elements(0, TIGHT), b in elements(0, TIGHT)) {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((a, b): (Loaded, Loaded)) -> [Numbers; 4] {
            let (a, b) = (Tight(loaded(&a)), Tight(loaded(&b)));
            [a.mul(b).carry(), a.mul_raised(b).carry(), a.square().carry(), a.square_raised().carry()].map(
                #[inline] |element| stored(element)
            )
        }
        if let Some([plain, raised, square, square_raised]) = on_vectors(body, (a, b)) {
            let product = expected(&a, &b, mul);
            prop_assert_eq!((plain, raised), (product, product));
            let squared = expected(&a, &a, mul);
            prop_assert_eq!((square, square_raised), (squared, squared));
        }
    }

    #[test]
    fn sums_and_differences_are_those_of_fiat_crypto(a in elements(RAISED.0, RAISED.1), b in elements(0, WIDE)) {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((a, b): (Loaded, Loaded)) -> [Numbers; 4] {
            let (a, b) = (Raised(loaded(&a)), Wide(loaded(&b)));
            [stored(a.add(b)), stored(a.sub(b)), stored(a.carry()), stored(b.carry())]
        }
        if let Some([sum, difference, carried, wide]) = on_vectors(body, (a, b)) {
            prop_assert_eq!(sum, expected(&a, &b, add));
            prop_assert_eq!(difference, expected(&a, &b, |a, b| by(fiat_25519_sub, a, b)));
            prop_assert_eq!(carried, expected(&a, &b, |a, _| add(a, &small(0))));
            prop_assert_eq!(wide, expected(&a, &b, |_, b| add(b, &small(0))));
        }
    }

    #[test]
    fn multiples_are_those_of_fiat_crypto(a in elements(0, TIGHT), b in elements(0, TIGHT)) {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body((a, b): (Loaded, Loaded)) -> [Numbers; 2] {
            let (a, b) = (Tight(loaded(&a)), Tight(loaded(&b)));
            [stored(a.plus_multiple(b, 121_665).carry()), stored(a.raised().sub(b.wide()))]
        }
        if let Some([multiple, difference]) = on_vectors(body, (a, b)) {
            prop_assert_eq!(multiple, expected(&a, &b, |a, b| add(a, &mul(b, &small(121_665)))));
            prop_assert_eq!(difference, expected(&a, &b, |a, b| by(fiat_25519_sub, a, b)));
        }
    }

    #[test]
    fn a_number_times_its_inverse_is_one(a in elements(0, TIGHT)) {
        #[target_feature(enable = "avx512f,avx512ifma")]
        fn body(a: Loaded) -> (u8, [Numbers; 2]) {
            let a = Tight(loaded(&a));
            (a.is_zero(), [stored(a.invert()), stored(a.invert().mul(a).carry())])
        }
        if let Some((zeros, [inverse, product])) = on_vectors(body, a) {
            for lane in 0..LANES {
                let is_zero = to_bytes(&proven(&a[lane])) == [0; 32];
                prop_assert_eq!(zeros >> lane & 1 == 1, is_zero);
                prop_assert_eq!(product[lane], to_bytes(&small((!is_zero).into())));
                prop_assert_eq!(inverse[lane] == [0; 32], is_zero);
            }
        }
    }

    #[test]
    fn any_32_bytes_are_read_modulo_p_without_their_highest_bit(numbers in uniform8(any::<[u8; 32]>())) {
        prop_assert_eq!(read_and_written(numbers), modulo_p(numbers));
    }
}

fn modulo_p(numbers: Numbers) -> Numbers {
    numbers.map(|mut number| {
        number[31] &= 0x7f;
        let mut element = Proven([0; 5]);
        fiat_25519_from_bytes(&mut element, &number);
        to_bytes(&element)
    })
}

/// The expected result of the vectors, computed without the instructions.
fn read_and_written(numbers: Numbers) -> Numbers {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn body(numbers: Numbers) -> Numbers {
        stored(Tight::from_words(&gather(&numbers)))
    }
    on_vectors(body, numbers).unwrap_or_else(|| modulo_p(numbers))
}

#[test]
fn numbers_around_p_and_2_to_the_255_are_reduced() {
    let near = |low: u8, high: u8| {
        let mut number = [if low < 0x80 { 0 } else { 0xff }; 32];
        (number[0], number[31]) = (low, high);
        number
    };
    // p − 1, p, p + 1, p + 18 = 2^255 − 1, the same with the bit above, and 0 and 1
    let numbers = [
        near(0xec, 0x7f),
        near(0xed, 0x7f),
        near(0xee, 0x7f),
        near(0xff, 0x7f),
        near(0xff, 0xff),
        near(0xed, 0xff),
        near(0, 0),
        near(1, 0x80),
    ];
    let [zero, one] = [small(0), small(1)].map(|element| to_bytes(&element));
    let eighteen = to_bytes(&small(18));
    assert_eq!(read_and_written(numbers), [near(0xec, 0x7f), zero, one, eighteen, eighteen, zero, zero, one]);
}

/// Limbs all zero, all as large as can be, and every limb but one zero or as large as can be.
fn extremes(smallest: u64, largest: u64) -> Vec<Loaded> {
    let mut all = vec![[[smallest; 5]; LANES], [[largest; 5]; LANES]];
    for limb in 0..5 {
        let (mut low, mut high) = ([smallest; 5], [largest; 5]);
        (low[limb], high[limb]) = (largest, smallest);
        all.extend([[low; LANES], [high; LANES]]);
    }
    all
}

#[test]
fn limbs_stay_within_what_their_types_promise() {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn products((a, b): (Loaded, Loaded)) -> ([Loaded; 3], [Loaded; 3]) {
        let (a, b) = (Tight(loaded(&a)), Tight(loaded(&b)));
        let wide = [limbs(a.mul(b).0), limbs(a.square().0), limbs(a.plus_multiple(b, (1 << 18) - 1).0)];
        (wide, [limbs(a.mul_raised(b).0), limbs(a.square_raised().0), limbs(a.raised().0)])
    }
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn carries((a, b): (Loaded, Loaded)) -> [Loaded; 4] {
        let (a, b) = (Raised(loaded(&a)), Wide(loaded(&b)));
        [limbs(a.add(b).0), limbs(a.sub(b).0), limbs(a.carry().0), limbs(b.carry().0)]
    }
    let within = |found: &[Loaded], smallest: u64, largest: u64| {
        let bad = found.iter().flatten().flatten().find(|limb| !(smallest..=largest).contains(*limb));
        assert_eq!(bad, None, "limb out of {smallest:#x} to {largest:#x}");
    };
    for a in extremes(0, TIGHT) {
        for b in extremes(0, TIGHT) {
            let Some((wide, raised)) = on_vectors(products, (a, b)) else { return };
            within(&wide, 0, WIDE);
            within(&raised, RAISED.0, RAISED.1);
        }
    }
    for a in extremes(RAISED.0, RAISED.1) {
        for b in extremes(0, WIDE) {
            let Some(tight) = on_vectors(carries, (a, b)) else { return };
            within(&tight, 0, TIGHT);
        }
    }
}

#[test]
fn what_multiplies_reads_52_bits_and_so_tight_limbs_must_not_exceed_them() {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn body(a: Loaded) -> Loaded {
        limbs(Tight(loaded(&a)).square().0)
    }
    // The reason for the types: a limb of 2^52 multiplies like 0.
    let Some(lost) = on_vectors(body, [[1 << 52; 5]; LANES]) else { return };
    assert_eq!(lost, [[0; 5]; LANES]);
    const { assert!(TIGHT < 1 << 52) };
}
