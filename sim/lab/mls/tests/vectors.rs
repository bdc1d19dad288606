//! The provider against published vectors: RFC 9180 (HPKE), RFC 8032 (Ed25519), RFC 5869 (HKDF).

use mls_rs_core::crypto::{CipherSuiteProvider as _, HpkeCiphertext, SignatureSecretKey};
use quiver_mls::provider::{Provider, Suite};

fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).unwrap()
}

/// RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode, sequence number
/// 0.
mod a_1_1 {
    pub(super) const IKM_R: &str = "6db9df30aa07dd42ee5e8181afdb977e538f5e1fec8a06223f33f7013e525037";
    pub(super) const SK_R: &str = "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8";
    pub(super) const PK_R: &str = "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d";
    pub(super) const ENC: &str = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431";
    pub(super) const CT: &str =
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a";
    pub(super) const INFO: &[u8] = b"Ode on a Grecian Urn";
    pub(super) const AAD: &[u8] = b"Count-0";
    pub(super) const PT: &[u8] = b"Beauty is truth, truth beauty";
}

fn suite() -> Suite {
    Provider::default().suite()
}

#[test]
fn key_pair_is_derived_as_in_rfc_9180() {
    let (secret, public) = suite().kem_derive(&bytes(a_1_1::IKM_R)).unwrap();
    assert_eq!(hex::encode(&secret[..]), a_1_1::SK_R);
    assert_eq!(hex::encode(&public[..]), a_1_1::PK_R);
}

#[test]
fn ciphertext_of_rfc_9180_opens_and_a_changed_one_does_not() {
    let (suite, secret, public) = (suite(), bytes(a_1_1::SK_R).into(), bytes(a_1_1::PK_R).into());
    let mut sealed = HpkeCiphertext { kem_output: bytes(a_1_1::ENC), ciphertext: bytes(a_1_1::CT) };
    let open = |sealed: &HpkeCiphertext| {
        suite.hpke_open(sealed, &secret, &public, a_1_1::INFO, Some(a_1_1::AAD)).map(|opened| opened.to_vec())
    };
    assert_eq!(open(&sealed).unwrap(), a_1_1::PT);
    sealed.ciphertext[0] ^= 1;
    assert!(open(&sealed).is_err());
    sealed.ciphertext[0] ^= 1;
    sealed.kem_output[0] ^= 1;
    assert!(open(&sealed).is_err());
}

#[test]
fn what_is_sealed_to_a_fresh_key_opens_with_it_alone() {
    let suite = suite();
    let (secret, public) = suite.kem_generate().unwrap();
    let (_, other) = suite.kem_generate().unwrap();
    let sealed = suite.hpke_seal(&public, b"info", None, b"text").unwrap();
    assert_eq!(*suite.hpke_open(&sealed, &secret, &public, b"info", None).unwrap(), b"text");
    let sealed = suite.hpke_seal(&other, b"info", None, b"text").unwrap();
    assert!(suite.hpke_open(&sealed, &secret, &public, b"info", None).is_err());
}

#[test]
fn signature_is_that_of_rfc_8032() {
    let suite = suite();
    let secret =
        SignatureSecretKey::from(bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
    let public = suite.signature_key_derive_public(&secret).unwrap();
    assert_eq!(
        hex::encode(public.as_bytes()),
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    );
    let signature = suite.sign(&secret, b"").unwrap();
    assert_eq!(
        hex::encode(&signature),
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    );
    suite.verify(&public, &signature, b"").unwrap();
    assert!(suite.verify(&public, &signature, b"other").is_err());
}

#[test]
fn key_material_is_that_of_rfc_5869() {
    let suite = suite();
    let prk = suite.kdf_extract(&bytes("000102030405060708090a0b0c"), &[0x0b; 22]).unwrap();
    assert_eq!(hex::encode(&*prk), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
    let okm = suite.kdf_expand(&prk, &bytes("f0f1f2f3f4f5f6f7f8f9"), 42).unwrap();
    assert_eq!(
        hex::encode(&*okm),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    );
}

#[test]
fn remembering_provider_still_refuses_a_signature_it_never_saw_valid() {
    let suite = Provider::remembering().suite();
    let (secret, public) = suite.signature_key_generate().unwrap();
    let signature = suite.sign(&secret, b"message").unwrap();
    for _ in 0..2 {
        suite.verify(&public, &signature, b"message").unwrap();
        assert!(suite.verify(&public, &signature, b"another").is_err());
    }
}
