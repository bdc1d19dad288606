//! Key derivation: HMAC-SHA-256 as the PRF of every key chain, HKDF-Extract where a secret is not yet
//! uniform.

use crate::Secret;
use crate::canonical::length;
use crate::sha256::{Digest, Hmac, Sha256};

/// `HMAC-SHA-256(key, lp(suite) ‖ lp(label) ‖ input)`, the parts of `input` one after the other.
///
/// The caller sees to it that one label is always used with inputs of one shape.
#[must_use]
pub fn prf(key: &Secret<32>, suite: &str, label: &str, input: &[&[u8]]) -> Secret<32> {
    PrfKey::new(key).prf(suite, label, input)
}

/// Several [`prf`]s under one key, each with its label and input; hashing the key itself is done once for
/// all.
#[must_use]
pub fn prf_each<const N: usize>(
    key: &Secret<32>,
    suite: &str,
    uses: [(&str, &[&[u8]]); N],
) -> [Secret<32>; N] {
    let key = PrfKey::new(key);
    uses.map(|(label, input)| key.prf(suite, label, input))
}

/// A key of [`prf`]s, hashed once for all that are to come: 64 bytes.
#[derive(Clone, Debug)]
pub struct PrfKey(Hmac);

impl PrfKey {
    /// Hashes a key.
    #[must_use]
    pub fn new(key: &Secret<32>) -> Self {
        Self(keyed(key.expose()))
    }

    /// [`prf`] under this key.
    #[must_use]
    pub fn prf(&self, suite: &str, label: &str, input: &[&[u8]]) -> Secret<32> {
        let (suite, label) = (suite.as_bytes(), label.as_bytes());
        let names: [&[u8]; 4] = [&length(suite), suite, &length(label), label];
        Secret::new(self.0.tag(names.iter().chain(input).copied()))
    }
}

/// HKDF-Extract of RFC 5869 with SHA-256: a uniform key out of `ikm`, bound to the public `salt`.
#[must_use]
pub fn extract(salt: &[u8], ikm: &[u8]) -> Secret<32> {
    // RFC 5869, 2.2: PRK = HMAC-Hash(salt, IKM)
    Secret::new(keyed(salt).tag([ikm].into_iter()))
}

/// RFC 2104: a key is filled up with zeros to one block of the hash, a longer one hashed first.
fn keyed(key: &[u8]) -> Hmac {
    let mut block = [0; 64];
    if let Some(start) = block.get_mut(..key.len()) {
        start.copy_from_slice(key);
    } else if let Some(start) = block.first_chunk_mut::<32>() {
        *start = Sha256::digest(key).into();
    }
    Hmac::new(&mut block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> alloc::vec::Vec<u8> {
        hex::decode(text).unwrap()
    }

    /// RFC 5869, appendix A.1 and A.2 (the second has a salt longer than a block).
    #[test]
    fn extract_gives_the_pseudorandom_keys_of_rfc_5869() {
        let first = extract(&unhex("000102030405060708090a0b0c"), &[0x0b; 22]);
        let prk = unhex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
        assert_eq!(first.expose()[..], prk);
        let salt: alloc::vec::Vec<u8> = (0x60..=0xaf).collect();
        let ikm: alloc::vec::Vec<u8> = (0x00..=0x4f).collect();
        let prk = unhex("06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244");
        assert_eq!(extract(&salt, &ikm).expose()[..], prk);
    }

    #[test]
    fn prf_is_hmac_over_prefixed_suite_and_label() {
        let key = Secret::new([9; 32]);
        let keyed = keyed(key.expose());
        let expected = keyed.tag([&b"\0\0\0\x02su\0\0\0\x05label12"[..]].into_iter());
        assert_eq!(*prf(&key, "su", "label", &[b"1", b"2"]).expose(), expected);
    }

    #[test]
    fn keys_of_different_labels_differ() {
        let key = Secret::new([9; 32]);
        assert_ne!(prf(&key, "s", "step", &[]), prf(&key, "s", "wrap", &[]));
        assert_ne!(prf(&key, "s", "step", &[]), prf(&key, "t", "step", &[]));
    }

    #[test]
    fn several_uses_of_one_key_are_what_each_alone_would_be() {
        let key = Secret::new([3; 32]);
        let [a, b] = prf_each(&key, "suite", [("one", &[b"x", b"y"]), ("two", &[])]);
        assert_eq!(a, prf(&key, "suite", "one", &[b"xy"]));
        assert_eq!(b, prf(&key, "suite", "two", &[]));
    }
}
