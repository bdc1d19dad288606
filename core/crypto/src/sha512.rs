//! SHA-512 and HMAC-SHA-512, by one of two crates.
//!
//! | crate | when | code on a Cortex-M4 |
//! |---|---|---|
//! | sha2 | without the feature `small` | 27 KB: every round written out |
//! | hmac-sha512 | with it | 2 KB, and more time for each block |

#[cfg_attr(feature = "small", path = "sha512/small.rs")]
mod implementation;

use zeroize::Zeroizing;

/// SHA-512 over whatever it is given, piece by piece. Domains and lengths are the caller's to put in.
#[derive(Clone)]
pub struct Sha512(implementation::State);

impl Default for Sha512 {
    fn default() -> Self {
        Self::new()
    }
}

impl Sha512 {
    /// Starts with nothing hashed.
    #[must_use]
    pub fn new() -> Self {
        Self(implementation::new())
    }

    /// Adds `bytes` as they are.
    pub fn update(&mut self, bytes: &[u8]) {
        implementation::update(&mut self.0, bytes);
    }

    /// The digest.
    #[must_use]
    pub fn finish(self) -> [u8; 64] {
        implementation::finish(self.0)
    }
}

impl core::fmt::Debug for Sha512 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sha512")
    }
}

/// HMAC-SHA-512 over the parts one after the other: 64 bytes, wide enough to be reduced to a scalar without
/// bias.
#[must_use]
pub fn hmac_sha512(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 64]> {
    let keyed = |pad: u8| {
        let mut block = Zeroizing::new([pad; 128]);
        let hashed = (key.len() > block.len()).then(|| {
            let mut hash = Sha512::new();
            hash.update(key);
            Zeroizing::new(hash.finish())
        });
        let key = hashed.as_ref().map_or(key, |hashed| hashed.as_slice());
        block.iter_mut().zip(key).for_each(|(to, from)| *to ^= from);
        let mut hash = Sha512::new();
        hash.update(&*block);
        hash
    };
    // RFC 2104: H(K ⊕ opad, H(K ⊕ ipad, text))
    let (mut inner, mut outer) = (keyed(0x36), keyed(0x5c));
    parts.iter().for_each(|part| inner.update(part));
    outer.update(&*Zeroizing::new(inner.finish()));
    Zeroizing::new(outer.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> alloc::vec::Vec<u8> {
        hex::decode(text).unwrap()
    }

    /// FIPS 180-4's examples: one block, and two.
    #[test]
    fn the_digests_are_those_of_fips_180_4() {
        let hash = |pieces: &[&str]| {
            let mut hash = Sha512::new();
            pieces.iter().for_each(|piece| hash.update(piece.as_bytes()));
            hash.finish()
        };
        let one = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
                   454d4423643ce80e2a9ac94fa54ca49f";
        assert_eq!(hash(&["abc"])[..], unhex(one));
        assert_eq!(hash(&["a", "", "bc"])[..], unhex(one));
        let two = "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433a\
                   c7d329eeb6dd26545e96e55b874be909";
        let text = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs\
                    mnopqrstnopqrstu";
        assert_eq!(hash(&[text])[..], unhex(two));
    }

    /// RFC 4231, test cases 2 and 6 (short key, key longer than a block).
    #[test]
    fn hmac_sha512_gives_the_tags_of_rfc_4231() {
        let tag = hmac_sha512(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        let expected = "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd\
                        caeab1a34d4a6b4b636e070a38bce737";
        assert_eq!(tag[..], unhex(expected));
        let tag = hmac_sha512(&[0xaa; 131], &[b"Test Using Larger Than Block-Size Key - Hash Key First"]);
        let expected = "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e52\
                        95e64f73f63f0aec8b915a985d786598";
        assert_eq!(tag[..], unhex(expected));
    }
}
