//! Authenticated encryption: ChaCha20-Poly1305 (RFC 8439).

use alloc::vec::Vec;

use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit, Tag};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::Secret;

/// Bytes by which a ciphertext is longer than its plaintext.
pub const TAG_LEN: usize = 16;

/// A ciphertext was not made with this key, nonce and associated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ciphertext does not open")]
pub struct OpenError;

/// Encrypts `plaintext`; the result is [`TAG_LEN`] bytes longer and authenticates `aad` as well.
///
/// A key and a nonce together are used once. `plaintext` may have up to 256 GiB, the limit of the cipher.
#[must_use]
pub fn seal(key: &Secret<32>, nonce: &[u8; 12], aad: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(plaintext.len() + TAG_LEN);
    sealed.extend_from_slice(plaintext);
    // Encryption fails only beyond the cipher's limit. The plaintext must then not leave, so nothing does.
    match cipher(key).encrypt_in_place_detached(nonce.into(), aad, &mut sealed) {
        Ok(tag) => sealed.extend_from_slice(&tag),
        Err(_) => sealed.clear(),
    }
    sealed
}

/// Decrypts the output of [`seal`]; an error unless it was made with this key, nonce and associated data.
///
/// # Errors
/// [`OpenError`], whatever the reason.
pub fn open(
    key: &Secret<32>,
    nonce: &[u8; 12],
    aad: &[u8],
    ciphertext: &[u8],
) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let split = ciphertext.len().checked_sub(TAG_LEN).ok_or(OpenError)?;
    let (body, tag) = ciphertext.split_at_checked(split).ok_or(OpenError)?;
    let mut plaintext = Zeroizing::new(body.to_vec());
    cipher(key)
        .decrypt_in_place_detached(nonce.into(), aad, &mut plaintext, Tag::from_slice(tag))
        .map_err(|_| OpenError)?;
    Ok(plaintext)
}

fn cipher(key: &Secret<32>) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(key.expose().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 8439, section 2.8.2.
    #[test]
    fn sealing_gives_the_ciphertext_of_rfc_8439() {
        let key: [u8; 32] = core::array::from_fn(|i| 0x80 + i as u8);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let aad = hex::decode("50515253c0c1c2c3c4c5c6c7").unwrap();
        let plaintext: &[u8] =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
                                 future, sunscreen would be it.";
        let sealed = seal(&Secret::new(key), &nonce, &aad, plaintext);
        assert_eq!(hex::encode(&sealed[..16]), "d31a8d34648e60db7b86afbc53ef7ec2");
        assert_eq!(hex::encode(&sealed[114..]), "1ae10b594f09e26a7e902ecbd0600691");
        assert_eq!(open(&Secret::new(key), &nonce, &aad, &sealed).unwrap()[..], *plaintext);
    }

    proptest! {
        #[test]
        fn nothing_opens_after_one_bit_changed(
            plaintext in prop::collection::vec(any::<u8>(), 0..80), aad in prop::collection::vec(any::<u8>(), 1..40),
            place in any::<prop::sample::Index>(), bit in 0..8u8, part in 0..4u8,
        ) {
            let (mut key, mut nonce, mut aad) = ([3; 32], [4; 12], aad);
            let mut sealed = seal(&Secret::new(key), &nonce, &aad, &plaintext);
            let target: &mut [u8] = match part { 0 => &mut key, 1 => &mut nonce, 2 => &mut aad, _ => &mut sealed };
            let place = place.index(target.len());
            target[place] ^= 1 << bit;
            prop_assert_eq!(open(&Secret::new(key), &nonce, &aad, &sealed), Err(OpenError));
        }

        #[test]
        fn a_truncated_ciphertext_does_not_open(length in 0..40usize) {
            let key = Secret::new([3; 32]);
            let sealed = seal(&key, &[0; 12], b"", &[1; 24]);
            prop_assert_eq!(open(&key, &[0; 12], b"", &sealed[..length]), Err(OpenError));
        }
    }
}
