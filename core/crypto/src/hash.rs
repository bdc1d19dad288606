//! Domain-separated SHA-256.

use crate::canonical::length;
use crate::sha256::{Digest as _, Sha256};

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// SHA-256 over `lp(domain)` and whatever follows.
///
/// Variable-length input goes in through [`lp`](Self::lp), input whose length the domain fixes through
/// [`fixed`](Self::fixed) and the integers; so two different lists of inputs never make the same byte string.
#[derive(Clone)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Starts a hash of the given domain.
    #[must_use]
    #[inline]
    pub fn new(domain: &str) -> Self {
        Self(Sha256::new()).lp(domain.as_bytes())
    }

    /// Adds `bytes` behind its four-byte length.
    #[must_use]
    pub fn lp(mut self, bytes: &[u8]) -> Self {
        self.add(&length(bytes));
        self.add(bytes);
        self
    }

    /// Adds `bytes` as they are; their length must be fixed by what was hashed before.
    #[must_use]
    #[inline]
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.add(bytes);
        self
    }

    /// Adds bytes, as [`fixed`](Self::fixed) does, in place.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds one byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.fixed(&[value])
    }

    /// Adds two bytes, big-endian.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    /// Adds four bytes, big-endian.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    /// Adds eight bytes, big-endian.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    /// The digest.
    #[must_use]
    #[inline]
    pub fn finish(self) -> Digest {
        self.0.finalize().into()
    }
}

impl core::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hasher(SHA-256)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha256_of_its_length_prefixed_parts() {
        let by_hand = Sha256::digest(b"\0\0\0\x03dom\0\0\0\x02ab\x07\0\x08\0\0\0\x09\0\0\0\0\0\0\0\x0axyz");
        let hash = Hasher::new("dom").lp(b"ab").u8(7).u16(8).u32(9).u64(10).fixed(b"xyz").finish();
        assert_eq!(hash, <[u8; 32]>::from(by_hand));
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_hash() {
        let (a, b) = (Hasher::new("d").lp(b"ab").lp(b"c"), Hasher::new("d").lp(b"a").lp(b"bc"));
        assert_ne!(a.finish(), b.finish());
    }
}
