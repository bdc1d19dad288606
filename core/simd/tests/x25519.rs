//! The multiplication as a whole against RFC 7748, curve25519-dalek and vectors made elsewhere, by each
//! implementation that this machine has.

#[cfg(target_arch = "x86_64")]
mod environment;

use std::io::Write;

use curve25519_dalek::montgomery::MontgomeryPoint;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::scalar::Scalar;
use fiat_crypto::curve25519_64 as fiat;
use proptest::prelude::*;
use quiver_simd::x25519::{self, X25519Backend, backend, multiply_in_place};
use serde::Deserialize;

type Bytes = [u8; 32];

fn unhex(text: &str) -> Bytes {
    hex::decode(text).unwrap().try_into().unwrap()
}

fn one_by_one(scalar: &Bytes, us: &[Bytes]) -> Vec<Bytes> {
    us.iter().map(|u| MontgomeryPoint(*u).mul_clamped(*scalar).to_bytes()).collect()
}

/// u-coordinates that differ.
fn us(count: usize) -> Vec<Bytes> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = || {
        // A linear congruential generator's high bits.
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..count).map(|_| core::array::from_fn(|_| bytes())).collect()
}

/// The products by every implementation that this machine has, which have to be the same.
fn multiply(scalar: &Bytes, us: &[Bytes]) -> Vec<Bytes> {
    let products = x25519::multiply(scalar, us).to_vec();
    for backend in X25519Backend::ALL {
        let mut by_name = us.to_vec();
        if backend.multiply_in_place(scalar, &mut by_name) {
            assert_eq!(by_name, products, "{backend:?}");
        }
    }
    products
}

#[test]
fn the_fastest_implementation_of_those_allowed_is_chosen() {
    #[cfg(target_arch = "x86_64")]
    let has = [
        std::arch::is_x86_feature_detected!("avx512ifma"),
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma"),
        true,
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let has = [false, false, true];
    assert_eq!(X25519Backend::ALL.map(X25519Backend::is_there), has);
    for (backend, has) in X25519Backend::ALL.into_iter().zip(has) {
        if !has {
            // Not through `eprintln!`, which the harness would keep to itself.
            let message = format!("\nNOT TESTED: this machine has nothing for {backend:?}\n");
            std::io::stderr().write_all(message.as_bytes()).unwrap();
        }
    }
    let from = match std::env::var("QUIVER_SIMD").as_deref() {
        Ok("avx2") => 1,
        Ok("serial") => 2,
        _ => 0,
    };
    let fastest = (from..3).find(|place| has[*place]).unwrap();
    assert_eq!(backend(), X25519Backend::ALL[fastest]);
}

/// Elsewhere there is nothing to forbid.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_environment_forbids_what_is_faster_than_it_names() {
    environment::passes_with_every_value("the_fastest_implementation_of_those_allowed_is_chosen");
}

/// RFC 7748, section 5.2, the single vectors.
#[test]
fn the_vectors_of_rfc_7748_hold_in_every_lane() {
    for (scalar, u, product) in [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ] {
        for count in [1, 7, 8, 9] {
            assert_eq!(multiply(&unhex(scalar), &vec![unhex(u); count]), vec![unhex(product); count]);
        }
    }
}

/// RFC 7748, section 5.2, the iterated vector after 1 and 1,000 rounds.
#[test]
fn a_thousand_rounds_of_rfc_7748_end_where_they_should() {
    let mut base = [0; 32];
    base[0] = 9;
    let (mut k, mut u) = (base, base);
    for round in 1..=1000 {
        let product = multiply(&k, &[u])[0];
        (k, u) = (product, k);
        if round == 1 {
            assert_eq!(k, unhex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"));
        }
    }
    assert_eq!(k, unhex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"));
}

#[test]
fn every_number_of_points_gives_what_each_alone_gives() {
    let scalar = [0xa5; 32];
    let (us, all) = (us(300), one_by_one(&[0xa5; 32], &us(300)));
    for count in (0..=20).chain([63, 64, 65, 127, 128, 129, 135, 136, 137, 256, 300]) {
        assert_eq!(multiply(&scalar, &us[..count]), all[..count], "{count} points");
    }
    let mut in_place = us;
    multiply_in_place(&scalar, &mut in_place);
    assert_eq!(in_place, all);
}

#[test]
fn points_of_small_order_give_zero_and_spoil_no_neighbour() {
    // u of the points of order 2, 4 and 8 on the curve and its twist, in all their encodings below 2^255
    let p_plus = |small: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (0xed + small, 0x7f);
        bytes
    };
    let mut small: Vec<Bytes> =
        [0, 1].map(|u| core::array::from_fn(|place| if place == 0 { u } else { 0 })).into();
    small.push(unhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"));
    small.push(unhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"));
    small.extend([p_plus(0), p_plus(1)]);
    // p − 1
    small.push(unhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"));
    let neighbours = us(3 * small.len());
    let mixed: Vec<Bytes> =
        small.iter().zip(neighbours.chunks(3)).flat_map(|(u, others)| [others, &[*u]].concat()).collect();
    for scalar in [[0; 32], [0x77; 32], [0xff; 32]] {
        let products = multiply(&scalar, &mixed);
        assert_eq!(products, one_by_one(&scalar, &mixed));
        assert!(products.iter().skip(3).step_by(4).all(|product| *product == [0; 32]));
        assert!(products.iter().enumerate().all(|(i, product)| i % 4 == 3 || *product != [0; 32]));
    }
}

#[test]
fn the_edges_of_scalars_and_coordinates_agree_with_dalek() {
    let mut edges: Vec<Bytes> = vec![[0; 32], [0xff; 32], [0x7f; 32], [0x80; 32], [0x55; 32], [0xaa; 32]];
    for bit in [0, 1, 2, 3, 50, 51, 52, 101, 102, 153, 204, 253, 254, 255] {
        let mut only = [0; 32];
        only[bit / 8] = 1 << (bit % 8);
        edges.extend([only, only.map(|byte| !byte)]);
    }
    for scalar in &edges {
        assert_eq!(multiply(scalar, &edges), one_by_one(scalar, &edges));
    }
}

proptest! {
    #[test]
    fn any_scalar_and_points_agree_with_dalek(scalar: [u8; 32], us in proptest::collection::vec(any::<[u8; 32]>(), 1..20)) {
        prop_assert_eq!(multiply(&scalar, &us), one_by_one(&scalar, &us));
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
struct Vector {
    #[serde(rename = "l")]
    leader: String,
    y: String,
    e: String,
    t: String,
}

/// k as a clamped scalar: eight times k or q − k, whichever is in [2^251, 2^252).
fn normalised(k: Scalar) -> Bytes {
    let fits = |k: &Scalar| k.as_bytes()[31] >> 3 == 1;
    let k = if fits(&k) { k } else { -k };
    assert!(fits(&k));
    let k = k.to_bytes();
    core::array::from_fn(|i| k[i] << 3 | if i == 0 { 0 } else { k[i - 1] >> 5 })
}

fn squared(bytes: &Bytes) -> Bytes {
    let mut element = fiat::fiat_25519_tight_field_element([0; 5]);
    let mut loose = fiat::fiat_25519_loose_field_element([0; 5]);
    fiat::fiat_25519_from_bytes(&mut element, bytes);
    fiat::fiat_25519_relax(&mut loose, &element);
    fiat::fiat_25519_carry_square(&mut element, &loose);
    let mut bytes = [0; 32];
    fiat::fiat_25519_to_bytes(&mut bytes, &element);
    bytes
}

/// `vectors/pairwise-secret.json`: l times Y + E on ristretto255, as the u-coordinate T.
#[test]
fn the_pairwise_secrets_of_the_vectors_come_out() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("vectors/pairwise-secret.json")).unwrap();
    assert!(!vectors.is_empty());
    let point = |text: &str| CompressedRistretto(unhex(text)).decompress().unwrap();
    for vector in vectors {
        let sum = point(&vector.y) + point(&vector.e);
        let scalar = normalised(Scalar::from_canonical_bytes(unhex(&vector.leader)).unwrap());
        let products = multiply(&scalar, &[squared(sum.compress().as_bytes()); 9]);
        assert_eq!(products, [unhex(&vector.t); 9]);
    }
}
