//! DHKEM(X25519, HKDF-SHA256) of RFC 9180, section 4.1.

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::encoding::{AsBigEndian, Curve25519SeedBin};
use mls_rs_core::crypto::{HpkePublicKey, HpkeSecretKey};
use mls_rs_crypto_traits::{KdfType, KemId, KemResult, KemType};
use zeroize::Zeroizing;

use super::{Hkdf, ProviderError};

/// Bytes of a private key, a public key and the agreed secret alike.
const LEN: usize = 32;

/// DHKEM(X25519, HKDF-SHA256).
///
/// The ephemeral key is agreed with right where it was made: taking it out of aws-lc and back in would cost a
/// third multiplication per encapsulation.
#[derive(Clone, Copy, Debug)]
pub struct X25519Kem;

impl X25519Kem {
    const ID: KemId = KemId::DhKemX25519Sha256;

    fn suite() -> [u8; 5] {
        let [high, low] = (Self::ID as u16).to_be_bytes();
        [b'K', b'E', b'M', high, low]
    }

    fn expand(prk: &[u8], label: &[u8], info: &[u8]) -> Result<Vec<u8>, ProviderError> {
        let length = [0, LEN as u8];
        let labelled = [&length, b"HPKE-v1".as_slice(), &Self::suite(), label, info].concat();
        Hkdf.expand(prk, &labelled, LEN)
    }

    /// `ExtractAndExpand(dh, enc ‖ pkR)`.
    fn shared_secret(dh: &[u8], enc: &[u8], receiver: &[u8]) -> Result<Vec<u8>, ProviderError> {
        let labelled =
            Zeroizing::new([b"HPKE-v1".as_slice(), &Self::suite(), b"eae_prk".as_slice(), dh].concat());
        let prk = Zeroizing::new(Hkdf.extract(&[], &labelled)?);
        Self::expand(&prk, b"shared_secret", &[enc, receiver].concat())
    }

    fn agree(own: &PrivateKey, other: &[u8]) -> Result<Zeroizing<Vec<u8>>, ProviderError> {
        let other = UnparsedPublicKey::new(&X25519, other);
        agree(own, other, ProviderError::Failed, |secret| Ok(Zeroizing::new(secret.to_vec())))
    }

    fn pair(key: &PrivateKey) -> Result<(HpkeSecretKey, HpkePublicKey), ProviderError> {
        let secret: Curve25519SeedBin<'_> = key.as_be_bytes()?;
        Ok((secret.as_ref().to_vec().into(), key.compute_public_key()?.as_ref().to_vec().into()))
    }
}

impl KemType for X25519Kem {
    type Error = ProviderError;

    fn kem_id(&self) -> u16 {
        Self::ID as u16
    }

    /// `seed` is what RFC 9180 calls `dkp_prk`: already extracted.
    fn generate_deterministic(&self, seed: &[u8]) -> Result<(HpkeSecretKey, HpkePublicKey), ProviderError> {
        let secret = Zeroizing::new(Self::expand(seed, b"sk", &[])?);
        Self::pair(&PrivateKey::from_private_key(&X25519, &secret)?)
    }

    fn generate(&self) -> Result<(HpkeSecretKey, HpkePublicKey), ProviderError> {
        Self::pair(&PrivateKey::generate(&X25519)?)
    }

    fn public_key_validate(&self, key: &HpkePublicKey) -> Result<(), ProviderError> {
        if key.len() == LEN { Ok(()) } else { Err(ProviderError::Malformed) }
    }

    fn encap(&self, remote_key: &HpkePublicKey) -> Result<KemResult, ProviderError> {
        let ephemeral = PrivateKey::generate(&X25519)?;
        let enc = ephemeral.compute_public_key()?.as_ref().to_vec();
        let dh = Self::agree(&ephemeral, remote_key)?;
        Ok(KemResult::new(Self::shared_secret(&dh, &enc, remote_key)?, enc))
    }

    fn decap(
        &self,
        enc: &[u8],
        secret_key: &HpkeSecretKey,
        local_public: &HpkePublicKey,
    ) -> Result<Vec<u8>, ProviderError> {
        let own = PrivateKey::from_private_key(&X25519, secret_key)?;
        Self::shared_secret(&Self::agree(&own, enc)?, enc, local_public)
    }

    fn seed_length_for_derive(&self) -> usize {
        Self::ID.n_secret()
    }
}
