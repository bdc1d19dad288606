//! Secrets of fixed length: erased on drop, never printed, compared in constant time.

use core::fmt;

use rand_core::CryptoRngCore;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::sha256::erase;

/// A secret of `N` bytes.
///
/// Erased when dropped, compared in constant time; its `Debug` prints only the length.
#[derive(Clone)]
pub struct Secret<const N: usize>([u8; N]);

impl<const N: usize> Zeroize for Secret<N> {
    fn zeroize(&mut self) {
        erase(&mut self.0);
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl<const N: usize> ZeroizeOnDrop for Secret<N> {}

/// A byte string does not have the length a secret of that kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a secret of {expected} bytes cannot be made of {actual}")]
pub struct WrongLength {
    /// Bytes the secret has.
    pub expected: usize,
    /// Bytes that were given.
    pub actual: usize,
}

impl<const N: usize> Secret<N> {
    /// Takes over `bytes`. The caller's own copy is the caller's to erase.
    #[must_use]
    pub const fn new(bytes: [u8; N]) -> Self {
        Self(bytes)
    }

    /// Draws a secret of `N` random bytes.
    #[must_use]
    pub fn random(rng: &mut (impl CryptoRngCore + ?Sized)) -> Self {
        let mut secret = Self([0; N]);
        rng.fill_bytes(&mut secret.0);
        secret
    }

    /// The bytes themselves. The caller controls where they go.
    #[must_use]
    pub const fn expose(&self) -> &[u8; N] {
        &self.0
    }

    /// Masks this secret with a one-time pad: `self ⊕ pad`. The result is as public as the pad is secret and
    /// used once.
    #[must_use]
    pub fn xor(&self, pad: &Self) -> [u8; N] {
        let mut masked = self.0;
        pad.apply(&mut masked);
        masked
    }

    /// The secret that is `masked` under this one-time pad: `masked ⊕ self`. It is in no place that is not
    /// erased.
    #[must_use]
    pub fn unmask(&self, masked: &[u8; N]) -> Self {
        let mut secret = Self(*masked);
        self.apply(&mut secret.0);
        secret
    }

    /// Puts this pad over some bytes.
    fn apply(&self, masked: &mut [u8; N]) {
        // Words first: most secrets have nothing else.
        let ((words, rest), (masks, rest_of_pad)) = (masked.as_chunks_mut::<4>(), self.0.as_chunks::<4>());
        for (word, mask) in words.iter_mut().zip(masks) {
            *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(*mask)).to_ne_bytes();
        }
        for (byte, mask) in rest.iter_mut().zip(rest_of_pad) {
            *byte ^= mask;
        }
    }
}

impl<const N: usize> TryFrom<&[u8]> for Secret<N> {
    type Error = WrongLength;

    fn try_from(bytes: &[u8]) -> Result<Self, WrongLength> {
        let wrong = WrongLength { expected: N, actual: bytes.len() };
        bytes.try_into().map(Self).map_err(|_| wrong)
    }
}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({N} bytes)")
    }
}

impl<const N: usize> PartialEq for Secret<N> {
    fn eq(&self, other: &Self) -> bool {
        ct_eq(&self.0, &other.0)
    }
}

impl<const N: usize> Eq for Secret<N> {}

/// Returns true if `a` equals `b`, in time that depends on their lengths alone.
#[must_use]
pub fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn debug_shows_the_length_and_nothing_else() {
        assert_eq!(format!("{:?}", Secret::new([0xab; 32])), "Secret(32 bytes)");
    }

    #[test]
    fn padding_twice_gives_the_secret_back() {
        let (secret, pad) = (Secret::new([7; 4]), Secret::new([1, 2, 3, 4]));
        let masked = secret.xor(&pad);
        assert_eq!(masked, [6, 5, 4, 3]);
        assert_eq!(Secret::new(masked).xor(&pad), *secret.expose());
    }

    #[test]
    fn a_secret_is_made_only_of_its_own_length() {
        assert!(Secret::<4>::try_from(&[1, 2, 3, 4][..]).is_ok());
        let wrong = Secret::<4>::try_from(&[1, 2, 3][..]);
        assert_eq!(wrong, Err(WrongLength { expected: 4, actual: 3 }));
    }

    #[test]
    fn comparison_sees_any_single_difference() {
        assert!(ct_eq(b"abc", b"abc"));
        assert!(!ct_eq(b"abc", b"abd"));
        assert!(!ct_eq(b"abc", b"abcd"));
        assert_ne!(Secret::new([0; 32]), Secret::new([1; 32]));
    }
}
