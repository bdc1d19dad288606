//! Small changes to valid inputs.

use arbitrary::Unstructured;

/// Changes `bytes` a little, as the fuzzer's bytes say; `other` is something valid to splice with.
///
/// # Errors
/// If the fuzzer's bytes are used up.
pub fn mutate(u: &mut Unstructured<'_>, mut bytes: Vec<u8>, other: &[u8]) -> arbitrary::Result<Vec<u8>> {
    let place = |u: &mut Unstructured<'_>, len: usize| u.int_in_range(0..=len.saturating_sub(1));
    match u.int_in_range(0..=11_u8)? {
        0..=2 => {}
        3..=5 if !bytes.is_empty() => {
            let at = place(u, bytes.len())?;
            bytes[at] ^= 1 << u.int_in_range(0..=7_u8)?;
        }
        6 if !bytes.is_empty() => {
            let at = place(u, bytes.len())?;
            bytes[at] = u.arbitrary()?;
        }
        7 => bytes.truncate(u.int_in_range(0..=bytes.len())?),
        8 => {
            let at = u.int_in_range(0..=bytes.len())?;
            bytes.insert(at, u.arbitrary()?);
        }
        9 => {
            let at = u.int_in_range(0..=bytes.len())?;
            let tail = bytes[at..].to_vec();
            bytes.extend(tail);
        }
        10 => {
            let at = u.int_in_range(0..=bytes.len().min(other.len()))?;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[at..]);
        }
        _ => {
            let end = u.int_in_range(0..=bytes.len())?;
            let start = u.int_in_range(0..=end)?;
            bytes.drain(start..end);
        }
    }
    Ok(bytes)
}
