//! Every element has one encoding, and nothing else decodes.

use quiver_pairing::{
    G1, G2, Group, Gt, PairingError, Scalar, pairing, scalar_decode, scalar_encode, scalar_from_wide,
};

/// p, the order of the field in which coordinates lie.
const P: &str =
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
/// r, the order of the groups.
const R: &str = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";

fn modulus() -> Vec<u8> {
    hex::decode(P).unwrap()
}

fn round_trip<G: Group>(element: G) {
    let bytes = element.encode();
    assert_eq!(bytes.as_ref().len(), G::ENCODED_LEN);
    assert_eq!(G::decode(bytes.as_ref()), Ok(element));
    assert_eq!(G::decode_or_identity(bytes.as_ref()), Ok(element));
    // The other root, or the conjugate, is an element too, but not this one.
    assert_ne!((-element).encode(), bytes);
    assert_eq!(G::decode((-element).encode().as_ref()), Ok(-element));
}

fn wrong_lengths<G: Group>(element: G) {
    let mut bytes = element.encode().as_ref().to_vec();
    let wrong = |actual| Err(PairingError::WrongLength { expected: G::ENCODED_LEN, actual });
    bytes.push(0);
    assert_eq!(G::decode(&bytes), wrong(G::ENCODED_LEN + 1));
    bytes.truncate(G::ENCODED_LEN - 1);
    assert_eq!(G::decode(&bytes), wrong(G::ENCODED_LEN - 1));
    assert_eq!(G::decode(&[]), wrong(0));
}

fn generator_of_gt() -> Gt {
    pairing(&G1::generator(), &G2::generator())
}

#[test]
fn elements_come_back_from_their_encodings() {
    for scalar in [1_u64, 2, 3, 0xffff_ffff_ffff_ffff].map(Scalar::from) {
        round_trip(G1::generator() * scalar);
        round_trip(G2::generator() * scalar);
        round_trip(generator_of_gt() * scalar);
    }
}

#[test]
fn encodings_of_another_length_are_refused() {
    wrong_lengths(G1::generator());
    wrong_lengths(G2::generator());
    wrong_lengths(generator_of_gt());
}

/// draft-irtf-cfrg-pairing-friendly-curves-11, section 4.2.1: the x-coordinates of the generators; both y are
/// the smaller root.
#[test]
fn generators_are_those_everybody_uses() {
    let g1 =
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb";
    assert_eq!(hex::encode(G1::generator().encode()), g1);
    let g2 = "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e\
              024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8";
    assert_eq!(hex::encode(G2::generator().encode()), g2);
}

#[test]
fn the_identity_decodes_only_where_it_is_asked_for() {
    fn check<G: Group>(expected: &[u8]) {
        assert_eq!(G::identity().encode().as_ref(), expected);
        assert_eq!(G::decode(expected), Err(PairingError::Identity));
        assert_eq!(G::decode_or_identity(expected), Ok(G::identity()));
    }
    check::<G1>(&[&[0xc0][..], &[0; 47]].concat());
    check::<G2>(&[&[0xc0][..], &[0; 95]].concat());
    check::<Gt>(&[&[0; 575][..], &[1]].concat());
}

#[test]
fn flags_that_no_encoding_has_are_refused() {
    fn check<G: Group>(point: G) {
        let bytes = point.encode().as_ref().to_vec();
        for flags in [0x00, 0x20, 0x40, 0x60, 0xc0, 0xe0] {
            let mut changed = bytes.clone();
            changed[0] = changed[0] & 0x1f | flags;
            assert_eq!(G::decode_or_identity(&changed), Err(PairingError::NotCanonical), "{flags:02x}");
        }
        for (flags, last) in [(0xe0, 0), (0x40, 0), (0x00, 0), (0xc0, 1), (0xc1, 0)] {
            let mut identity = vec![0; G::ENCODED_LEN];
            (identity[0], identity[G::ENCODED_LEN - 1]) = (flags, last);
            assert_eq!(G::decode_or_identity(&identity), Err(PairingError::NotCanonical), "{flags:02x}");
        }
    }
    check(G1::generator());
    check(G2::generator());
}

#[test]
fn coordinates_that_are_not_reduced_are_refused() {
    let mut above = modulus();
    *above.last_mut().unwrap() += 1;
    for number in [modulus(), above, [&[0x1f][..], &[0xff; 47]].concat()] {
        let mut g1 = number.clone();
        g1[0] |= 0x80;
        assert_eq!(G1::decode(&g1), Err(PairingError::NotCanonical));
        for position in 0..2 {
            let mut g2 = G2::generator().encode();
            g2[48 * position..48 * (position + 1)].copy_from_slice(&number);
            g2[0] |= 0x80;
            assert_eq!(G2::decode(&g2), Err(PairingError::NotCanonical), "{position}");
        }
        for position in 0..12 {
            let mut gt = generator_of_gt().encode();
            gt[48 * position..48 * (position + 1)].copy_from_slice(&number);
            assert_eq!(Gt::decode(&gt), Err(PairingError::NotCanonical), "{position}");
        }
    }
}

/// One in 2^125 points of the first curve is in its subgroup, and far fewer of the second: small x give none.
#[test]
fn points_off_the_curve_or_outside_the_subgroup_are_refused() {
    fn check<G: Group>() {
        let mut seen = [0, 0];
        for x in 0..100 {
            let mut bytes = vec![0; G::ENCODED_LEN];
            (bytes[0], bytes[G::ENCODED_LEN - 1]) = (0x80, x);
            let error = G::decode_or_identity(&bytes).unwrap_err();
            assert!(matches!(error, PairingError::NotOnCurve | PairingError::WrongSubgroup), "{x}: {error}");
            seen[usize::from(error == PairingError::NotOnCurve)] += 1;
        }
        assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
    }
    check::<G1>();
    check::<G2>();
}

#[test]
fn field_elements_outside_the_target_group_are_refused() {
    let small = |value| {
        let mut bytes = [0; 576];
        bytes[575] = value;
        bytes
    };
    assert_eq!(Gt::decode_or_identity(&small(0)), Err(PairingError::WrongSubgroup));
    assert_eq!(Gt::decode_or_identity(&small(2)), Err(PairingError::WrongSubgroup));
    // −1 is of order 2
    let mut minus_one = small(0);
    minus_one[528..].copy_from_slice(&modulus());
    minus_one[575] -= 1;
    assert_eq!(Gt::decode_or_identity(&minus_one), Err(PairingError::WrongSubgroup));
    let mut changed = generator_of_gt().encode();
    changed[575] ^= 1;
    assert_eq!(Gt::decode(&changed), Err(PairingError::WrongSubgroup));
}

#[test]
fn scalars_come_back_from_their_encodings_and_others_are_refused() {
    let mut r = hex::decode(R).unwrap();
    assert_eq!(scalar_decode(&r), Err(PairingError::NotCanonical));
    assert_eq!(scalar_decode(&[0xff; 32]), Err(PairingError::NotCanonical));
    r[31] -= 1;
    assert_eq!(scalar_decode(&r), Ok(-Scalar::from(1_u64)));
    assert_eq!(scalar_encode(&-Scalar::from(1_u64))[..], r);
    assert_eq!(scalar_decode(&[0; 32]), Ok(Scalar::from(0_u64)));
    assert_eq!(scalar_encode(&Scalar::from(0x0102_u64))[30..], [1, 2]);
    assert_eq!(scalar_decode(&[0; 31]), Err(PairingError::WrongLength { expected: 32, actual: 31 }));
}

#[test]
fn wide_bytes_are_reduced_as_a_big_endian_integer() {
    let mut wide = [0; 64];
    wide[63] = 7;
    assert_eq!(scalar_from_wide(&wide), Scalar::from(7_u64));
    wide[32..].copy_from_slice(&hex::decode(R).unwrap());
    assert_eq!(scalar_from_wide(&wide), Scalar::from(0_u64));
    let mut high = [0; 64];
    high[31] = 1;
    // 2^256 mod r
    let two = Scalar::from(2_u64);
    assert_eq!(scalar_from_wide(&high), (0..256).fold(Scalar::from(1_u64), |power, _| power * two));
}

#[test]
fn many_points_are_encoded_as_one_by_one() {
    let points: Vec<G2> = (0..5_u64).map(|index| G2::generator() * Scalar::from(index)).collect();
    let encodings = G2::encode_all(&points);
    assert_eq!(encodings, points.iter().map(Group::encode).collect::<Vec<_>>());
    assert!(G1::encode_all(&[]).is_empty());
}

#[test]
fn debug_names_the_group_and_shows_nothing_of_the_element() {
    assert_eq!(format!("{:?}", G1::generator()), "G1(..)");
    assert_eq!(format!("{:?}", G2::generator()), "G2(..)");
    assert_eq!(format!("{:?}", generator_of_gt()), "Gt(..)");
}
