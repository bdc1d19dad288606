//! Encoding of group elements and scalars: a fixed number of each kind, each checked when decoded.

use alloc::vec::Vec;

use quiver_crypto::Zeroizing;
use quiver_crypto::canonical::{Reader, Writer};
use quiver_pairing::{
    Curve, Group, Gt, Point, SCALAR_LEN, Scalar, scalar_decode, scalar_encode, scalar_random,
};
use rand_core::CryptoRngCore;
use zeroize::Zeroize;

use crate::AbeError;

/// A scalar that is not zero. Zero is drawn once in 2²⁵⁵ times; drawing again would hang on a broken
/// generator.
pub(crate) fn nonzero(rng: &mut (impl CryptoRngCore + ?Sized)) -> Scalar {
    let scalar = scalar_random(rng);
    if scalar == Scalar::from(0_u64) { Scalar::from(1_u64) } else { scalar }
}

/// Writes points with one inversion for all.
pub(crate) fn write_points<C: Curve>(writer: &mut Writer, points: &[Point<C>]) {
    Point::encode_all(points).iter().for_each(|bytes| {
        writer.fixed(bytes.as_ref());
    });
}

/// Reads so many points of the subgroup, none of them the identity. Fails on too few bytes before it computes
/// anything.
pub(crate) fn read_points<C: Curve>(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<Zeroizing<Vec<Point<C>>>, AbeError> {
    let bytes = reader.take(count.saturating_mul(C::ENCODED_LEN))?;
    let mut points = Zeroizing::new(Vec::with_capacity(count));
    for encoded in bytes.chunks(C::ENCODED_LEN) {
        points.push(Point::decode(encoded).map_err(|_| AbeError::InvalidElement(C::NAME))?);
    }
    Ok(points)
}

/// Reads one point.
pub(crate) fn read_point<C: Curve>(reader: &mut Reader<'_>) -> Result<Point<C>, AbeError> {
    Point::decode(reader.take(C::ENCODED_LEN)?).map_err(|_| AbeError::InvalidElement(C::NAME))
}

/// Reads an element of the target group, not the identity.
pub(crate) fn read_gt(reader: &mut Reader<'_>) -> Result<Gt, AbeError> {
    Gt::decode(reader.take(Gt::ENCODED_LEN)?).map_err(|_| AbeError::InvalidElement("Gt"))
}

pub(crate) fn write_scalar(writer: &mut Writer, scalar: &Scalar) {
    writer.fixed(&*scalar_encode(scalar));
}

/// Reads a scalar, not zero.
pub(crate) fn read_scalar(reader: &mut Reader<'_>) -> Result<Scalar, AbeError> {
    match scalar_decode(reader.take(SCALAR_LEN)?) {
        Ok(scalar) if scalar != Scalar::from(0_u64) => Ok(scalar),
        _ => Err(AbeError::InvalidElement("a secret scalar")),
    }
}

/// The bytes of an element that both sides arrive at.
pub(crate) fn shared(mut element: Gt) -> Zeroizing<Vec<u8>> {
    let mut encoded = element.encode();
    let bytes = Zeroizing::new(encoded.to_vec());
    encoded.zeroize();
    element.zeroize();
    bytes
}
