//! The pairwise secret on ristretto255, against vectors made elsewhere.

use quiver_ainq::{Element, Error, Ristretto255, SecretScalar, Suite};
use serde::Deserialize;

type Scalar = <Ristretto255 as Suite>::Scalar;

#[derive(Deserialize)]
struct Vector {
    y: String,
    e: String,
    l: String,
    #[serde(rename = "Y")]
    y_point: String,
    #[serde(rename = "E")]
    e_point: String,
    #[serde(rename = "V")]
    v: String,
    #[serde(rename = "T")]
    t: String,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../vectors/pairwise-secret.json")).unwrap()
}

fn scalar(text: &str) -> Scalar {
    Ristretto255::scalar_decode(&hex::decode(text).unwrap()).unwrap()
}

fn element(text: &str) -> Element<Ristretto255> {
    Element::decode(&hex::decode(text).unwrap()).unwrap()
}

#[test]
fn the_drone_computes_the_vectors() {
    assert!(!vectors().is_empty());
    for vector in vectors() {
        let key = scalar(&vector.y) + scalar(&vector.e);
        let secret = Ristretto255::agree(&key, &element(&vector.v)).unwrap();
        assert_eq!(hex::encode(secret.expose()), vector.t);
    }
}

#[test]
fn the_leader_computes_the_vectors_one_by_one_and_all_at_once() {
    for vector in vectors() {
        let l = scalar(&vector.l);
        let sum = *element(&vector.y_point).point() + *element(&vector.e_point).point();
        let one = Ristretto255::agree(&l, &Element::from_point(sum).unwrap()).unwrap();
        assert_eq!(hex::encode(one.expose()), vector.t);
        let many = Ristretto255::agree_many(&l, &[sum, *element(&vector.v).point()]);
        assert_eq!(many[0].as_ref().unwrap(), &one);
    }
}

#[test]
fn the_points_of_the_vectors_are_those_of_their_scalars() {
    for vector in vectors() {
        for (secret, public) in
            [(&vector.y, &vector.y_point), (&vector.e, &vector.e_point), (&vector.l, &vector.v)]
        {
            assert_eq!(Ristretto255::mul_base(&scalar(secret)), *element(public).point());
        }
    }
}

#[test]
fn a_scalar_that_cannot_be_normalised_is_no_key() {
    // Neither k nor q − k lies in [2^251, 2^252) for k up to q − 2^252, and for their negatives.
    for small in [1_u128, 2, 1 << 64, 1 << 124] {
        let k = Scalar::from(small);
        let point = Element::from_point(Ristretto255::mul_base(&Scalar::from(5_u8))).unwrap();
        for k in [k, -k] {
            assert!(!Ristretto255::secret_scalar_ok(&k));
            assert_eq!(SecretScalar::<Ristretto255>::new(k).unwrap_err(), Error::InvalidScalar);
            assert_eq!(Ristretto255::agree(&k, &point), Err(Error::InvalidScalar));
            assert_eq!(Ristretto255::agree_many(&k, &[*point.point()]), [Err(Error::InvalidScalar)]);
        }
    }
}

#[test]
fn the_edges_of_normalisation_agree_at_both_ends() {
    let mut bytes = [0; 32];
    bytes[31] = 0x08;
    let lowest = Ristretto255::scalar_decode(&bytes).unwrap();
    let one = Scalar::from(1_u8);
    // 2^251 and 2^252 − 1, the scalars just outside, and all their negatives
    let highest = lowest + lowest - one;
    let y = SecretScalar::<Ristretto255>::generate(&mut crate::fixture::rng(8));
    for k in [lowest, highest, lowest - one, lowest + one] {
        for k in [k, -k] {
            assert!(Ristretto255::secret_scalar_ok(&k));
            let v = Element::from_point(Ristretto255::mul_base(&k)).unwrap();
            let drone = Ristretto255::agree(y.expose(), &v).unwrap();
            assert_eq!(Ristretto255::agree(&k, &y.public()).unwrap(), drone);
            assert_eq!(Ristretto255::agree_many(&k, &[*y.public().point()]), [Ok(drone)]);
        }
    }
    assert!(!Ristretto255::secret_scalar_ok(&(highest + one)));
}
