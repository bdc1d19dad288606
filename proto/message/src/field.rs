//! Decoding of single fields, each with its bound and its name for the error.

use alloc::vec::Vec;

use prost::bytes::Bytes;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};
use quiver_ainq::{DronePublicKey, Element, Name, Signature, SlotRun, SlotSet, Suite};

use crate::MessageError;

/// Bound above the longest encoding of a drone's public key, in bytes: identity with sixteen groups, and two points.
pub const MAX_DRONE_LEN: usize = 2048;
/// Bound above the longest encoding of a signature, in bytes.
pub const MAX_SIGNATURE_LEN: usize = 128;

/// A field of so many bytes.
///
/// # Errors
/// If it has another length.
pub fn array<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], MessageError> {
    bytes.try_into().map_err(|_| MessageError::Invalid(field))
}

/// Arrays one after the other, so many at most. One field, because each field of a repeated one takes memory
/// before its content is checked.
pub(crate) fn arrays<const N: usize>(
    field: &'static str,
    bytes: &[u8],
    most: usize,
) -> Result<Vec<[u8; N]>, MessageError> {
    let (arrays, rest) = bytes.as_chunks::<N>();
    if rest.is_empty() && arrays.len() <= most {
        Ok(arrays.to_vec())
    } else {
        Err(MessageError::Invalid(field))
    }
}

/// A field of at least one byte and at most so many.
///
/// # Errors
/// If it has another length.
pub fn bounded(field: &'static str, bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, MessageError> {
    if bytes.is_empty() || bytes.len() > limit { Err(MessageError::Invalid(field)) } else { Ok(bytes) }
}

/// A field of at most so many bytes, which may be left out.
///
/// # Errors
/// If it is longer.
pub fn at_most(field: &'static str, bytes: Vec<u8>, limit: usize) -> Result<Vec<u8>, MessageError> {
    if bytes.len() > limit { Err(MessageError::Invalid(field)) } else { Ok(bytes) }
}

pub(crate) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, MessageError> {
    value.ok_or(MessageError::Missing(field))
}

/// A name.
///
/// # Errors
/// If the text is none.
pub fn name(field: &'static str, text: &str) -> Result<Name, MessageError> {
    Name::new(text).map_err(|error| MessageError::Field { field, error })
}

pub(crate) fn element<S: Suite>(field: &'static str, bytes: &[u8]) -> Result<Element<S>, MessageError> {
    Element::decode(bytes).map_err(|error| MessageError::Field { field, error })
}

/// A signature, decoded and not verified.
///
/// # Errors
/// If the bytes are none.
pub fn signature<S: Suite>(field: &'static str, bytes: &[u8]) -> Result<Signature<S>, MessageError> {
    Signature::decode(bytes).map_err(|error| MessageError::Field { field, error })
}

/// A drone's public key as bytes, for messages that a cookie must admit before any curve arithmetic.
///
/// # Errors
/// If there are none, or more than the longest key has.
pub fn undecoded_drone(field: &'static str, bytes: Vec<u8>) -> Result<Vec<u8>, MessageError> {
    bounded(field, bytes, MAX_DRONE_LEN)
}

/// A drone's public key.
///
/// # Errors
/// If it does not decode.
pub fn drone<S: Suite>(field: &'static str, bytes: &[u8]) -> Result<DronePublicKey<S>, MessageError> {
    drone_expecting(field, bytes, None)
}

/// Decodes a drone, as [`drone`] does, without decoding points again if it is the expected key.
///
/// # Errors
/// Errors of [`drone`].
pub fn drone_expecting<S: Suite>(
    field: &'static str,
    bytes: &[u8],
    expected: Option<&DronePublicKey<S>>,
) -> Result<DronePublicKey<S>, MessageError> {
    // Before any point is decoded.
    if bytes.len() > MAX_DRONE_LEN {
        return Err(MessageError::Invalid(field));
    }
    DronePublicKey::decode_expecting(bytes, expected).map_err(|error| MessageError::Field { field, error })
}

/// A set of slots. It takes the memory of its runs and no more, and of such as are none nothing.
pub(crate) fn slots(field: &'static str, mut bytes: &[u8]) -> Result<SlotSet, MessageError> {
    // Each number ends with the only one of its bytes that is below 128.
    let numbers = bytes.iter().filter(|byte| **byte < 0x80).count();
    let mut end = 0_u32;
    let runs = (0..numbers.div_ceil(2)).map(|_| {
        let run = number(&mut bytes).zip(number(&mut bytes));
        // An empty run is none.
        let (gap, len) = run.unwrap_or_default();
        let start = end.saturating_add(gap);
        end = start.saturating_add(len);
        SlotRun { start, len }
    });
    let set = SlotSet::from_runs(runs).map_err(|error| MessageError::Field { field, error })?;
    if bytes.is_empty() { Ok(set) } else { Err(MessageError::Invalid(field)) }
}

/// A varint in its shortest form.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let before = bytes.len();
    let number = decode_varint(bytes).ok()?;
    // One encoding for each number.
    let shortest = encoded_len_varint(number) == before - bytes.len();
    u32::try_from(number).ok().filter(|_| shortest)
}

pub(crate) fn slots_to_wire(set: &SlotSet) -> Bytes {
    let (mut bytes, mut end) = (Vec::new(), 0);
    for SlotRun { start, len } in set.runs() {
        // The run before ends below.
        for number in [start - end, *len] {
            encode_varint(number.into(), &mut bytes);
        }
        end = start + len;
    }
    bytes.into()
}
