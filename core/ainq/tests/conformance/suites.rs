//! One conformance suite, run on every suite.

use quiver_ainq::{Element, Error, SecretScalar, Suite};

use crate::fixture::rng;
use crate::for_each_suite;

for_each_suite![
    both_ends_agree,
    many_agree_as_one_does,
    a_point_decodes_from_its_own_encoding_alone,
    the_identity_is_no_element,
    no_encoding_but_the_canonical_one_is_a_scalar,
    arithmetic_is_that_of_a_module,
    all_multiplications_agree,
    hashes_to_scalars_are_separate,
    the_order_of_the_group_is_not_a_scalar,
    an_unusable_scalar_is_refused,
];

fn scalars<S: Suite>(seed: u64, count: usize) -> Vec<S::Scalar> {
    let mut rng = rng(seed);
    (0..count).map(|_| S::scalar_random(&mut rng)).collect()
}

fn identity<S: Suite>() -> S::Point {
    S::mul_base(&S::scalar_from_u128(0))
}

fn both_ends_agree<S: Suite>() {
    for pair in scalars::<S>(1, 32).chunks(2) {
        let [l, y] = [pair[0], pair[1]];
        let (v, public) = (S::mul_base(&l), S::mul_base(&y));
        let leader = S::agree(&l, &Element::from_point(public).unwrap()).unwrap();
        let drone = S::agree(&y, &Element::from_point(v).unwrap()).unwrap();
        assert_eq!(leader, drone);
        assert_eq!(leader.expose().len(), S::SECRET_LEN);
    }
}

fn many_agree_as_one_does<S: Suite>() {
    let l = scalars::<S>(2, 1)[0];
    // More than two batches, with the identity in the middle of one.
    let mut points: Vec<S::Point> = scalars::<S>(3, 300).iter().map(S::mul_base).collect();
    points[130] = identity::<S>();
    let many = S::agree_many(&l, &points);
    assert_eq!(many.len(), points.len());
    for (index, (secret, point)) in many.iter().zip(&points).enumerate() {
        match index {
            130 => assert_eq!(*secret, Err(Error::IdentityPoint)),
            _ => assert_eq!(*secret, S::agree(&l, &Element::from_point(*point).unwrap())),
        }
    }
    assert_eq!(S::agree_many(&l, &[]), []);
}

fn a_point_decodes_from_its_own_encoding_alone<S: Suite>() {
    for scalar in scalars::<S>(4, 16) {
        let element = Element::<S>::from_point(S::mul_base(&scalar)).unwrap();
        let bytes = element.as_bytes();
        assert_eq!(bytes.len(), S::POINT_LEN);
        let decoded = Element::<S>::decode(bytes).unwrap();
        assert_eq!(decoded, element);
        assert!(decoded.point() == element.point());
        assert_eq!(Element::<S>::decode(&bytes[1..]), Err(Error::InvalidPoint));
        assert_eq!(Element::<S>::decode(&[bytes, &[0]].concat()), Err(Error::InvalidPoint));
    }
    assert_eq!(Element::<S>::decode(&vec![0xff; S::POINT_LEN]), Err(Error::InvalidPoint));
    assert_eq!(Element::<S>::decode(&[]), Err(Error::InvalidPoint));
}

fn the_identity_is_no_element<S: Suite>() {
    let identity = identity::<S>();
    assert!(S::is_identity(&identity));
    assert_eq!(Element::<S>::from_point(identity), Err(Error::IdentityPoint));
    assert_eq!(Element::<S>::decode(S::encode(&identity).as_ref()), Err(Error::IdentityPoint));
}

fn no_encoding_but_the_canonical_one_is_a_scalar<S: Suite>() {
    for scalar in scalars::<S>(5, 16) {
        let bytes = S::scalar_encode(&scalar);
        assert_eq!(bytes.len(), S::SCALAR_LEN);
        assert!(S::scalar_is_zero(&(S::scalar_decode(&*bytes).unwrap() - scalar)));
        assert!(S::scalar_decode(&bytes[1..]).is_none());
    }
    assert!(S::scalar_decode(&[0xff; 32]).is_none());
    assert!(S::scalar_decode(&[0; 33]).is_none());
}

fn the_order_of_the_group_is_not_a_scalar<S: Suite>() {
    // −1 is q − 1, the largest encoding; the next one is q.
    let mut bytes = *S::scalar_encode(&-S::scalar_from_u128(1));
    assert!(S::scalar_decode(&bytes).is_some());
    for byte in &mut bytes {
        let (next, carry) = byte.overflowing_add(1);
        *byte = next;
        if !carry {
            break;
        }
    }
    assert!(S::scalar_decode(&bytes).is_none());
    assert!(SecretScalar::<S>::decode(&bytes).is_err());
}

fn arithmetic_is_that_of_a_module<S: Suite>() {
    for three in scalars::<S>(6, 24).chunks(3) {
        let [a, b, c] = [three[0], three[1], three[2]];
        let point = S::mul_base(&c);
        assert!(S::mul(&(a + b), &point) == S::mul(&a, &point) + S::mul(&b, &point));
        assert!(S::mul(&(a * b), &point) == S::mul(&a, &S::mul(&b, &point)));
        assert!(S::mul(&-a, &point) == identity::<S>() - S::mul(&a, &point));
    }
}

fn all_multiplications_agree<S: Suite>() {
    let scalars = scalars::<S>(7, 400);
    let points: Vec<S::Point> = scalars.iter().rev().map(S::mul_base).collect();
    let base = S::mul_base(&S::scalar_from_u128(1));
    let prepared = S::prepare(&points[0]);
    let mut sum = identity::<S>();
    for (scalar, point) in scalars.iter().zip(&points) {
        sum = sum + S::mul(scalar, point);
        assert!(S::mul_base(scalar) == S::mul(scalar, &base));
        assert!(S::vartime_mul_prepared(scalar, &prepared) == S::mul(scalar, &points[0]));
        let with_base = S::vartime_mul_with_base(scalar, point, &scalars[1]);
        assert!(with_base == S::mul(scalar, point) + S::mul_base(&scalars[1]));
    }
    assert!(S::vartime_multiscalar(&scalars, &points) == sum);
    assert!(S::is_identity(&S::vartime_multiscalar(&[], &[])));
}

fn hashes_to_scalars_are_separate<S: Suite>() {
    let hashes = [
        S::challenge(&[b"ab", b"c"]),
        S::hash_to_scalar("d", &[b"ab", b"c"]),
        S::hash_to_scalar("d", &[b"a", b"bc"]),
        S::hash_to_scalar("e", &[b"ab", b"c"]),
        S::hash_to_scalar("d", &[b"ab", b"c", b""]),
    ];
    for (index, a) in hashes.iter().enumerate() {
        assert!(hashes[..index].iter().all(|b| !S::scalar_is_zero(&(*a - *b))));
    }
    // The challenge is FROST's: its parts are glued.
    assert!(S::scalar_is_zero(&(hashes[0] - S::challenge(&[b"abc"]))));
}

fn an_unusable_scalar_is_refused<S: Suite>() {
    let zero = S::scalar_from_u128(0);
    let point = S::mul_base(&S::scalar_from_u128(5));
    assert_eq!(S::agree(&zero, &Element::from_point(point).unwrap()), Err(Error::InvalidScalar));
    assert_eq!(S::agree_many(&zero, &[point]), [Err(Error::InvalidScalar)]);
    assert!(SecretScalar::<S>::decode(&[0; 32]).is_err());
}
