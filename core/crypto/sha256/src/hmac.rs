//! HMAC-SHA-256, RFC 2104, with a key that is hashed once for many messages.

use core::slice::from_ref;

use crate::backend::{compress, erase_state};
use crate::erase;
use crate::padded::{BLOCK, HashState, Padded, START};

const IPAD: u8 = 0x36;
const OPAD: u8 = 0x5C;

/// A key, hashed: `H(K ⊕ ipad ‖` and `H(K ⊕ opad ‖`. Erased when dropped, as they are as good as the key.
#[derive(Clone)]
pub struct Hmac {
    inner: HashState,
    outer: HashState,
}

impl Hmac {
    /// Starts an HMAC with a key that was filled up with zeros to one block, which is erased.
    #[must_use]
    pub fn new(key: &mut [u8; BLOCK]) -> Self {
        let mut keyed = Self { inner: START, outer: START };
        mask(key, IPAD);
        compress(&mut keyed.inner, from_ref(key));
        mask(key, IPAD ^ OPAD);
        compress(&mut keyed.outer, from_ref(key));
        erase(key);
        keyed
    }

    /// The authenticator of a message in parts.
    #[must_use]
    pub fn tag<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
        // H(K ⊕ opad ‖ H(K ⊕ ipad ‖ message))
        let mut message = Padded::behind(1, self.inner);
        parts.for_each(|part| message.update(part));
        let tag = message.finish_behind(1, self.outer);
        message.erase();
        tag
    }
}

impl Drop for Hmac {
    fn drop(&mut self) {
        erase_state(&mut self.inner);
        erase_state(&mut self.outer);
    }
}

impl core::fmt::Debug for Hmac {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Hmac")
    }
}

/// `block ⊕ pad`, four bytes at a time.
fn mask(block: &mut [u8; BLOCK], pad: u8) {
    let mask = u32::from_ne_bytes([pad; 4]);
    for bytes in block.as_chunks_mut::<4>().0 {
        *bytes = (u32::from_ne_bytes(*bytes) ^ mask).to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(key: &[u8]) -> Hmac {
        let mut block = [0; BLOCK];
        block[..key.len()].copy_from_slice(key);
        let keyed = Hmac::new(&mut block);
        assert_eq!(block, [0; BLOCK], "the key is erased");
        keyed
    }

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
            let keyed = keyed(key);
            for _ in 0..2 {
                let parts = message.split_at(message.len() / 2);
                assert_eq!(keyed.tag([parts.0, parts.1].into_iter())[..16], expected);
            }
        }
    }
}
