//! The canonical byte encoding of whatever is hashed, signed or stored.
//!
//! Integers are big-endian; a value of variable length follows its length in four bytes. A value has one
//! encoding, and a reader takes exactly that one: it checks bounds as it goes, and bytes left over at the end
//! are an error.

use alloc::vec::Vec;

use thiserror::Error;

/// A byte string is not the canonical encoding of anything of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// The four bytes of the length before variable-length input.
///
/// Nothing that is hashed or signed comes near 4 GiB: every decoder and every list has a bound far below.
/// Should a caller ever try, the length saturates and the encoding stays distinct from that of every shorter
/// input.
pub(crate) fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// Writes a canonical encoding.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Starts with nothing written.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Starts with room for `capacity` bytes. An encoding that holds a secret needs it: a buffer that grows
    /// leaves copies that are never erased.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Writes `bytes` behind their four-byte length.
    pub fn lp(&mut self, bytes: &[u8]) -> &mut Self {
        self.fixed(&length(bytes)).fixed(bytes)
    }

    /// Writes `bytes` as they are; the reader must know their length.
    pub fn fixed(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.fixed(&[value])
    }

    /// Writes two bytes, big-endian.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.fixed(&value.to_be_bytes())
    }

    /// Writes four bytes, big-endian.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.fixed(&value.to_be_bytes())
    }

    /// Writes eight bytes, big-endian.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.fixed(&value.to_be_bytes())
    }

    /// Writes how many items of a list follow, in four bytes.
    pub fn count(&mut self, items: usize) -> &mut Self {
        self.u32(u32::try_from(items).unwrap_or(u32::MAX))
    }

    /// Takes what was written; the writer is empty afterwards.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0)
    }
}

/// Reads a canonical encoding, front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Bytes not read yet.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.0.len()
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed("truncated"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed("truncated"))?;
        self.0 = rest;
        Ok(*array)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Malformed`] if none is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads two bytes, big-endian.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes, big-endian.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes, big-endian.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads how many items of a list follow.
    ///
    /// # Errors
    /// [`Malformed`] if that is more than `max`, or more than could follow at `item_len` bytes each or
    /// longer.
    pub fn count(&mut self, max: usize, item_len: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.u32()?).map_err(|_| Malformed("list too long"))?;
        if count > max || count.saturating_mul(item_len) > self.0.len() {
            return Err(Malformed("list too long"));
        }
        Ok(count)
    }

    /// Reads a byte string after its four-byte length.
    ///
    /// # Errors
    /// [`Malformed`] if it is longer than `max_len` or not all there.
    pub fn lp(&mut self, max_len: usize) -> Result<&'a [u8], Malformed> {
        match usize::try_from(self.u32()?) {
            Ok(len) if len <= max_len => self.take(len),
            _ => Err(Malformed("byte string too long")),
        }
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are left over.
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("trailing bytes")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let bytes = Writer::new().lp(b"abc").u8(1).u16(2).u32(3).u64(4).fixed(b"xy").count(1).u8(9).finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.lp(3), Ok(&b"abc"[..]));
        assert_eq!((reader.u8(), reader.u16(), reader.u32(), reader.u64()), (Ok(1), Ok(2), Ok(3), Ok(4)));
        assert_eq!(reader.array(), Ok(*b"xy"));
        assert_eq!(reader.count(1, 1), Ok(1));
        assert_eq!(reader.end(), Err(Malformed("trailing bytes")));
        assert_eq!(reader.u8(), Ok(9));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = Writer::new().lp(b"abc").u64(4).finish();
        for len in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..len]);
            assert!(reader.lp(3).and_then(|_| reader.u64()).is_err());
        }
    }

    #[test]
    fn a_byte_string_beyond_its_bound_is_refused_before_it_is_read() {
        let bytes = Writer::new().lp(b"abcd").finish();
        assert_eq!(Reader::new(&bytes).lp(3), Err(Malformed("byte string too long")));
    }

    #[test]
    fn a_count_that_cannot_be_true_is_refused() {
        let bytes = Writer::new().count(1_000_000).fixed(&[0; 64]).finish();
        assert_eq!(Reader::new(&bytes).count(usize::MAX, 32), Err(Malformed("list too long")));
        assert_eq!(Reader::new(&bytes).count(3, 0), Err(Malformed("list too long")));
    }
}
