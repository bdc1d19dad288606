//! Points of the curve as bytes, computed by arkworks: also such as this project's types cannot hold.

use ark_bls12_381::{Fq, G1Affine};
use ark_ec::{AffineRepr as _, CurveGroup as _};
use ark_ff::{BigInteger as _, PrimeField as _};

/// (0, 2), of order three.
pub(crate) fn of_order_three() -> G1Affine {
    G1Affine::new_unchecked(Fq::from(0), Fq::from(2))
}

pub(crate) fn read(bytes: &[u8]) -> G1Affine {
    let (x, y) = bytes.split_at(48);
    G1Affine::new_unchecked(Fq::from_be_bytes_mod_order(x), Fq::from_be_bytes_mod_order(y))
}

/// The identity has its own encoding.
pub(crate) fn write(point: &G1Affine) -> [u8; 96] {
    match point.xy() {
        None => {
            let mut identity = [0; 96];
            identity[0] = 0x40;
            identity
        }
        Some((x, y)) => {
            [x, y].map(|coordinate| coordinate.into_bigint().to_bytes_be()).concat().try_into().unwrap()
        }
    }
}

/// Adds a point to the one at a place.
pub(crate) fn add(bytes: &mut [u8], at: usize, point: &G1Affine) {
    let place = &mut bytes[at..at + 96];
    let sum = write(&(read(place) + point).into_affine());
    place.copy_from_slice(&sum);
}

/// Replaces the point at a place.
pub(crate) fn put(bytes: &mut [u8], at: usize, point: &G1Affine) {
    bytes[at..at + 96].copy_from_slice(&write(point));
}
