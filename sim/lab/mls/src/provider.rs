//! `MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519`, RFC 9420's mandatory ciphersuite, over aws-lc.
//!
//! The choice that is kindest to MLS: with aws-lc's curve arithmetic `mls-rs` encrypts to a member in less
//! than half the time it takes with the pure-Rust provider. `mls-rs-crypto-awslc` is as fast (within a tenth)
//! but pins an exact release of aws-lc, which the network services of this workspace would have to follow.
//! HPKE itself is `mls-rs-crypto-hpke`'s.

mod kem;
mod symmetric;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256, digest};
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use mls_rs_core::crypto::{
    CipherSuite, CipherSuiteProvider, CryptoProvider, HpkeCiphertext, HpkePsk, HpkePublicKey, HpkeSecretKey,
    SignaturePublicKey, SignatureSecretKey,
};
use mls_rs_core::error::IntoAnyError;
use mls_rs_crypto_hpke::context::{ContextR, ContextS};
use mls_rs_crypto_hpke::hpke::{Hpke, HpkeError};
use mls_rs_crypto_traits::{AeadType, KdfType};
use zeroize::Zeroizing;

pub use self::kem::X25519Kem;
pub use self::symmetric::{Aes128Gcm, Hkdf};

/// The ciphersuite of every group here.
pub const CIPHERSUITE: CipherSuite = CipherSuite::CURVE25519_AES128;

/// Bytes of an Ed25519 seed, which is stored as a signing key.
const SEED_LEN: usize = 32;

/// Reason why the cryptography failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// aws-lc refused and does not say why: a bad tag, an unusable key, no randomness.
    #[error("the cryptographic operation failed")]
    Failed,
    /// A key has the wrong length.
    #[error("malformed key")]
    Malformed,
    /// HPKE could not be carried out.
    #[error(transparent)]
    Hpke(#[from] HpkeError),
}

impl From<Unspecified> for ProviderError {
    fn from(_: Unspecified) -> Self {
        Self::Failed
    }
}

impl From<KeyRejected> for ProviderError {
    fn from(_: KeyRejected) -> Self {
        Self::Malformed
    }
}

impl IntoAnyError for ProviderError {
    fn into_dyn_error(self) -> Result<Box<dyn std::error::Error + Send + Sync>, Self> {
        Ok(self.into())
    }
}

/// The signatures found valid so far, each with its key and message as one digest.
type Remembered = Arc<Mutex<HashSet<[u8; 32]>>>;

/// Gives out [`Suite`] and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Provider {
    remembered: Option<Remembered>,
}

impl Provider {
    /// A provider that checks a signature once and knows it again. Nothing that is measured uses it: it is
    /// for members that are needed for a moment while a group is set up, each of which would check all the
    /// signatures anew.
    #[must_use]
    pub fn remembering() -> Self {
        Self { remembered: Some(Remembered::default()) }
    }

    /// The operations.
    #[must_use]
    pub fn suite(&self) -> Suite {
        Suite { hpke: Hpke::new(X25519Kem, Hkdf, Some(Aes128Gcm)), remembered: self.remembered.clone() }
    }
}

impl CryptoProvider for Provider {
    type CipherSuiteProvider = Suite;

    fn supported_cipher_suites(&self) -> Vec<CipherSuite> {
        vec![CIPHERSUITE]
    }

    fn cipher_suite_provider(&self, cipher_suite: CipherSuite) -> Option<Suite> {
        (cipher_suite == CIPHERSUITE).then(|| self.suite())
    }
}

/// The operations of the one ciphersuite.
#[derive(Clone)]
pub struct Suite {
    hpke: Hpke<X25519Kem, Hkdf, Aes128Gcm>,
    remembered: Option<Remembered>,
}

impl Suite {
    fn check(key: &SignaturePublicKey, signature: &[u8], data: &[u8]) -> Result<(), ProviderError> {
        Ok(UnparsedPublicKey::new(&ED25519, key).verify(data, signature)?)
    }

    fn check_once(
        remembered: &Remembered,
        key: &SignaturePublicKey,
        signature: &[u8],
        data: &[u8],
    ) -> Result<(), ProviderError> {
        let mut hash = Context::new(&SHA256);
        for part in [key.as_ref(), signature, data] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finish().as_ref().try_into().map_err(|_| ProviderError::Failed)?;
        let mut remembered = remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if !remembered.contains(&digest) {
            Self::check(key, signature, data)?;
            remembered.insert(digest);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite").finish_non_exhaustive()
    }
}

impl CipherSuiteProvider for Suite {
    type Error = ProviderError;
    type HpkeContextS = ContextS<Hkdf, Aes128Gcm>;
    type HpkeContextR = ContextR<Hkdf, Aes128Gcm>;

    fn cipher_suite(&self) -> CipherSuite {
        CIPHERSUITE
    }

    fn hash(&self, data: &[u8]) -> Result<Vec<u8>, ProviderError> {
        Ok(digest(&SHA256, data).as_ref().to_vec())
    }

    fn mac(&self, key: &[u8], data: &[u8]) -> Result<Vec<u8>, ProviderError> {
        Ok(symmetric::hmac(key, data))
    }

    fn aead_seal(
        &self,
        key: &[u8],
        data: &[u8],
        aad: Option<&[u8]>,
        nonce: &[u8],
    ) -> Result<Vec<u8>, ProviderError> {
        Aes128Gcm.seal(key, data, aad, nonce)
    }

    fn aead_open(
        &self,
        key: &[u8],
        ciphertext: &[u8],
        aad: Option<&[u8]>,
        nonce: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        Aes128Gcm.open(key, ciphertext, aad, nonce).map(Zeroizing::new)
    }

    fn aead_key_size(&self) -> usize {
        Aes128Gcm.key_size()
    }

    fn aead_nonce_size(&self) -> usize {
        Aes128Gcm.nonce_size()
    }

    fn kdf_extract(&self, salt: &[u8], ikm: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        Hkdf.extract(salt, ikm).map(Zeroizing::new)
    }

    fn kdf_expand(&self, prk: &[u8], info: &[u8], len: usize) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        Hkdf.expand(prk, info, len).map(Zeroizing::new)
    }

    fn kdf_extract_size(&self) -> usize {
        Hkdf.extract_size()
    }

    fn hpke_seal(
        &self,
        remote_key: &HpkePublicKey,
        info: &[u8],
        aad: Option<&[u8]>,
        pt: &[u8],
    ) -> Result<HpkeCiphertext, ProviderError> {
        Ok(self.hpke.seal(remote_key, info, None, aad, pt)?)
    }

    fn hpke_seal_psk(
        &self,
        remote_key: &HpkePublicKey,
        info: &[u8],
        aad: Option<&[u8]>,
        pt: &[u8],
        psk: HpkePsk<'_>,
    ) -> Result<HpkeCiphertext, ProviderError> {
        Ok(self.hpke.seal(remote_key, info, Some(psk), aad, pt)?)
    }

    fn hpke_open(
        &self,
        ciphertext: &HpkeCiphertext,
        local_secret: &HpkeSecretKey,
        local_public: &HpkePublicKey,
        info: &[u8],
        aad: Option<&[u8]>,
    ) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        Ok(self.hpke.open(ciphertext, local_secret, local_public, info, None, aad)?)
    }

    fn hpke_open_psk(
        &self,
        ciphertext: &HpkeCiphertext,
        local_secret: &HpkeSecretKey,
        local_public: &HpkePublicKey,
        info: &[u8],
        aad: Option<&[u8]>,
        psk: HpkePsk<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        Ok(self.hpke.open(ciphertext, local_secret, local_public, info, Some(psk), aad)?)
    }

    fn hpke_setup_s(
        &self,
        remote_key: &HpkePublicKey,
        info: &[u8],
    ) -> Result<(Vec<u8>, Self::HpkeContextS), ProviderError> {
        Ok(self.hpke.setup_sender(remote_key, info, None)?)
    }

    fn hpke_setup_r(
        &self,
        kem_output: &[u8],
        local_secret: &HpkeSecretKey,
        local_public: &HpkePublicKey,
        info: &[u8],
    ) -> Result<Self::HpkeContextR, ProviderError> {
        Ok(self.hpke.setup_receiver(kem_output, local_secret, local_public, info, None)?)
    }

    fn kem_derive(&self, ikm: &[u8]) -> Result<(HpkeSecretKey, HpkePublicKey), ProviderError> {
        Ok(self.hpke.derive(ikm)?)
    }

    fn kem_generate(&self) -> Result<(HpkeSecretKey, HpkePublicKey), ProviderError> {
        Ok(self.hpke.generate()?)
    }

    fn kem_public_key_validate(&self, key: &HpkePublicKey) -> Result<(), ProviderError> {
        Ok(self.hpke.public_key_validate(key)?)
    }

    fn random_bytes(&self, out: &mut [u8]) -> Result<(), ProviderError> {
        Ok(aws_lc_rs::rand::fill(out)?)
    }

    fn signature_key_generate(&self) -> Result<(SignatureSecretKey, SignaturePublicKey), ProviderError> {
        let mut seed = vec![0; SEED_LEN];
        self.random_bytes(&mut seed)?;
        let secret = SignatureSecretKey::from(seed);
        let public = self.signature_key_derive_public(&secret)?;
        Ok((secret, public))
    }

    fn signature_key_derive_public(
        &self,
        secret_key: &SignatureSecretKey,
    ) -> Result<SignaturePublicKey, ProviderError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret_key)?;
        Ok(pair.public_key().as_ref().to_vec().into())
    }

    fn sign(&self, secret_key: &SignatureSecretKey, data: &[u8]) -> Result<Vec<u8>, ProviderError> {
        Ok(Ed25519KeyPair::from_seed_unchecked(secret_key)?.try_sign(data)?.as_ref().to_vec())
    }

    fn verify(
        &self,
        public_key: &SignaturePublicKey,
        signature: &[u8],
        data: &[u8],
    ) -> Result<(), ProviderError> {
        match &self.remembered {
            Some(remembered) => Self::check_once(remembered, public_key, signature, data),
            None => Self::check(public_key, signature, data),
        }
    }
}
