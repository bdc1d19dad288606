//! HKDF with SHA-256 and AES-128 in Galois counter mode.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use mls_rs_crypto_traits::{AeadId, AeadType, KdfId, KdfType};

use super::ProviderError;

/// HMAC-SHA-256 of `data`, 32 bytes.
pub(super) fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), data).as_ref().to_vec()
}

/// HKDF with SHA-256 (RFC 5869).
#[derive(Clone, Copy, Debug)]
pub struct Hkdf;

/// Number of bytes to expand.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl KdfType for Hkdf {
    type Error = ProviderError;

    fn kdf_id(&self) -> u16 {
        KdfId::HkdfSha256 as u16
    }

    fn expand(&self, prk: &[u8], info: &[u8], len: usize) -> Result<Vec<u8>, ProviderError> {
        // aws-lc takes no longer key here, and MLS has none.
        if prk.len() > self.extract_size() {
            return Err(ProviderError::Malformed);
        }
        let mut out = vec![0; len];
        Prk::new_less_safe(HKDF_SHA256, prk).expand(&[info], Length(len))?.fill(&mut out)?;
        Ok(out)
    }

    fn extract(&self, salt: &[u8], ikm: &[u8]) -> Result<Vec<u8>, ProviderError> {
        // Extraction is HMAC under the salt; aws-lc would not give the bytes out.
        Ok(hmac(salt, ikm))
    }

    fn extract_size(&self) -> usize {
        KdfId::HkdfSha256.extract_size()
    }
}

/// AES-128-GCM: 16 byte key, 12 byte nonce, 16 byte tag.
#[derive(Clone, Copy, Debug)]
pub struct Aes128Gcm;

impl Aes128Gcm {
    fn key(key: &[u8]) -> Result<LessSafeKey, ProviderError> {
        Ok(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key)?))
    }
}

impl AeadType for Aes128Gcm {
    type Error = ProviderError;

    fn aead_id(&self) -> u16 {
        AeadId::Aes128Gcm as u16
    }

    fn seal(
        &self,
        key: &[u8],
        data: &[u8],
        aad: Option<&[u8]>,
        nonce: &[u8],
    ) -> Result<Vec<u8>, ProviderError> {
        let (nonce, aad) = (Nonce::try_assume_unique_for_key(nonce)?, Aad::from(aad.unwrap_or_default()));
        let mut sealed = data.to_vec();
        Self::key(key)?.seal_in_place_append_tag(nonce, aad, &mut sealed)?;
        Ok(sealed)
    }

    fn open(
        &self,
        key: &[u8],
        ciphertext: &[u8],
        aad: Option<&[u8]>,
        nonce: &[u8],
    ) -> Result<Vec<u8>, ProviderError> {
        let (nonce, aad) = (Nonce::try_assume_unique_for_key(nonce)?, Aad::from(aad.unwrap_or_default()));
        let mut opened = ciphertext.to_vec();
        let length = Self::key(key)?.open_in_place(nonce, aad, &mut opened)?.len();
        opened.truncate(length);
        Ok(opened)
    }

    fn key_size(&self) -> usize {
        AeadId::Aes128Gcm.key_size()
    }

    fn nonce_size(&self) -> usize {
        AeadId::Aes128Gcm.nonce_size()
    }
}
