//! HMAC-SHA-256, RFC 2104, under a key of whole blocks that is hashed once for all that is done with it.

use sha2::digest::core_api::{CoreProxy, CoreWrapper, UpdateCore};

use crate::{Digest, Sha256, erase};

type Core = <Sha256 as CoreProxy>::Core;

/// A key, hashed: `H(K ⊕ ipad ‖` and `H(K ⊕ opad ‖`.
#[derive(Clone)]
pub struct Hmac {
    inner: Core,
    outer: Core,
}

impl Hmac {
    /// For a key that was filled up with zeros to one block.
    #[must_use]
    pub fn new(key: &[u8; 64]) -> Self {
        Self { inner: padded(key, 0x36), outer: padded(key, 0x5C) }
    }

    /// Begins a message.
    #[must_use]
    pub fn begin(&self) -> Sha256 {
        CoreWrapper::from_core(self.inner.clone())
    }

    /// The authenticator of a message that was [begun](Self::begin).
    #[must_use]
    pub fn end(&self, message: Sha256) -> [u8; 32] {
        let mut outer: Sha256 = CoreWrapper::from_core(self.outer.clone());
        outer.update(message.finalize());
        outer.finalize().into()
    }
}

impl core::fmt::Debug for Hmac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hmac")
    }
}

/// `K ⊕ pad`, four bytes at a time, hashed.
fn padded(key: &[u8; 64], pad: u8) -> Core {
    let (mut block, mask) = ([0; 64], u32::from_ne_bytes([pad; 4]));
    for (to, from) in block.as_chunks_mut::<4>().0.iter_mut().zip(key.as_chunks::<4>().0) {
        *to = (u32::from_ne_bytes(*from) ^ mask).to_ne_bytes();
    }
    let mut core = Core::default();
    core.update_blocks(&[block.into()]);
    erase(&mut block);
    core
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, 4.2, 4.3 and 4.6 (truncated there).
    #[test]
    fn authenticators_are_those_of_rfc_4231() {
        let cases: [(&[u8], &[u8], [u8; 16]); 3] = [
            (&[0x0b; 20], b"Hi There", 0xb034_4c61_d8db_3853_5ca8_afce_af0b_f12b_u128.to_be_bytes()),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                0x5bdc_c146_bf60_754e_6a04_2426_0895_75c7_u128.to_be_bytes(),
            ),
            (
                &[0x0c; 20],
                b"Test With Truncation",
                0xa3b6_1674_7310_0ee0_6e0c_796c_2955_552b_u128.to_be_bytes(),
            ),
        ];
        for (key, message, expected) in cases {
            let mut block = [0; 64];
            block[..key.len()].copy_from_slice(key);
            let keyed = Hmac::new(&block);
            for _ in 0..2 {
                let mut mac = keyed.begin();
                mac.update(message);
                assert_eq!(keyed.end(mac)[..16], expected);
            }
        }
    }
}
