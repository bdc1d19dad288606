use ark_bls12_381::Fq;
use ark_ff::{BigInt, Field, PrimeField, Zero};
use proptest::prelude::*;

use super::*;
use crate::ifma::on_vectors;

fn element(value: Fq) -> BaseFieldElement {
    value.0.0
}

fn value(element: BaseFieldElement) -> Fq {
    Fq::new_unchecked(BigInt(element))
}

fn elements() -> impl Strategy<Value = [Fq; LANES]> {
    let special = prop_oneof![
        Just(Fq::zero()),
        Just(Fq::ONE),
        Just(-Fq::ONE),
        Just(Fq::from(2_u64).inverse().unwrap())
    ];
    let any = any::<[u64; 6]>()
        .prop_map(|words| Fq::from_le_bytes_mod_order(&words.map(u64::to_le_bytes).concat()));
    proptest::array::uniform8(prop_oneof![1 => special, 6 => any])
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn operations([a, b]: [[BaseFieldElement; LANES]; 2]) -> Vec<[BaseFieldElement; LANES]> {
    let (a, b) = (TightElement::enter(&a), TightElement::enter(&b));
    let zero = TightElement::zero().wide();
    vec![
        a.leave(),
        a.mul(&b).leave(),
        dot([[&a, &b], [&a, &a], [&b, &b]]).carry().leave(),
        a.wide().plus(&b.wide()).carry().leave(),
        a.wide().minus(&b.wide()).carry().leave(),
        zero.minus(&a.wide().tripled().shifted::<2>()).carry().leave(),
        a.neg().leave(),
        a.wide().doubled().minus(&b.wide()).carry().leave(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arithmetic_is_that_of_arkworks(a in elements(), b in elements()) {
        let Some(found) = on_vectors(operations, [a.map(element), b.map(element)]) else { return Ok(()) };
        for lane in 0..LANES {
            let (x, y) = (a[lane], b[lane]);
            let expected = [
                x, x * y, x * y + x * x + y * y, x + y, x - y, -(x * Fq::from(12_u64)), -x,
                x + x - y,
            ];
            for (operation, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(value(found[operation][lane]), expected, "operation {}, lane {}", operation, lane);
            }
        }
    }
}

#[test]
fn zero_is_known_whatever_multiple_of_p_stands_for_it() {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn body(elements: [BaseFieldElement; LANES]) -> [Mask; 4] {
        let a = TightElement::enter(&elements);
        let twice = a.wide().plus(&a.neg().wide()).carry();
        [a.is_zero(), a.neg().is_zero(), twice.is_zero(), TightElement::one().is_zero()]
    }
    let mut elements = [element(Fq::ONE); LANES];
    elements[3] = element(Fq::zero());
    let expected = [1 << 3, 1 << 3, 0xff, 0];
    assert!(on_vectors(body, elements).is_none_or(|found| found == expected));
}

/// The number of the limbs modulo p, which is 2^416 times the element.
fn number(limbs: &Constant) -> Fq {
    let shift = Fq::from(1_u64 << 52);
    limbs.iter().rev().fold(Fq::zero(), |sum, &limb| sum * shift + Fq::from(limb.cast_unsigned()))
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn lanes_of(limbs: FieldLimbs) -> [Constant; LANES] {
    transposed(&limbs.map(|limb| store(limb))).map(|limbs| limbs.map(u64::cast_signed))
}

/// 2^11·p − 1 in limbs as large as can be, all ones where there is room.
const LARGEST: Constant = {
    let mut limbs = [LIMB; LIMBS];
    limbs[7] = (P[7] << 11) - 1;
    limbs
};

#[test]
fn limbs_stay_within_what_their_types_promise() {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn body((a, b): (Constant, Constant)) -> [[Constant; LANES]; 6] {
        let (a, b) = (TightElement::constant(&a), TightElement::constant(&b));
        let twelve = dot([[&a, &b]; 12]);
        let one = dot([[&a, &b]]);
        // The longest sums there are: Y² − 3·b₃Z² and twelve products.
        let sum = one.shifted::<2>().tripled().tripled().plus(&one).carry();
        let difference = TightElement::zero().wide().minus(&one.shifted::<2>().tripled().tripled()).carry();
        [
            lanes_of(twelve.0),
            lanes_of(twelve.carry().0),
            lanes_of(one.0),
            lanes_of(one.carry().0),
            lanes_of(sum.0),
            lanes_of(difference.0),
        ]
    }
    let inverse_of_form = Fq::from(2_u64).pow([416]).inverse().unwrap();
    let mut cases = vec![[0; LIMBS], LARGEST, P, ONE];
    for at in 0..LIMBS {
        let mut without = LARGEST;
        without[at] = 0;
        let mut alone = [0; LIMBS];
        alone[at] = LARGEST[at];
        cases.extend([without, alone]);
    }
    for a in &cases {
        for b in &cases {
            let Some([twelve, carried, one, tight, sum, difference]) = on_vectors(body, (*a, *b)) else {
                return;
            };
            let product = number(a) * number(b) * inverse_of_form;
            for lane in 0..LANES {
                assert!(twelve[lane].iter().all(|&limb| (0..196 << 52).contains(&limb)));
                assert!(one[lane].iter().all(|&limb| (0..31 << 52).contains(&limb)));
                for (limbs, factor) in [(&carried, 12_i64), (&tight, 1), (&sum, 37), (&difference, -36)] {
                    assert!(limbs[lane].iter().all(|limb| (0..1 << 52).contains(limb)));
                    assert!(limbs[lane][7] <= LARGEST[7], "{:x?}", limbs[lane]);
                    assert_eq!(number(&limbs[lane]), product * Fq::from(factor));
                }
            }
        }
    }
}

#[test]
fn constants_are_what_they_are_said_to_be() {
    let two = Fq::from(2_u64);
    assert_eq!(
        (number(&ONE), number(&ENTER), number(&LEAVE)),
        (two.pow([416]), two.pow([448]), two.pow([384]))
    );
    assert_eq!((number(&P), number(&RAISE)), (Fq::zero(), Fq::zero()));
    assert_eq!(P[0].wrapping_mul(MINUS_INVERSE) & LIMB, LIMB);
    assert_eq!(RAISE[7] >> 10, P[7]);
}
