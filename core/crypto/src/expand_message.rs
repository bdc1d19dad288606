//! expand_message_xmd of RFC 9380, section 5.3.1, with SHA-256.
//!
//! arkworks has one, but pads its first block to the length of a field element and not to that of the hash's
//! block. For the scalars of BLS12-381 those differ, so what it computes is not the function of the RFC.

use crate::sha256::{Digest, Sha256};

/// Bytes of a block of SHA-256.
const BLOCK: [u8; 64] = [0; 64];

/// `N` uniform bytes out of a message and a domain separation tag, both given in parts: `expand_message_xmd`
/// of RFC 9380, section 5.3.1, with SHA-256.
///
/// N is at most 255 · 32. A tag with more than 255 bytes is hashed, as section 5.3.3 says. The boundaries of
/// the parts do not count: only their concatenation is hashed.
#[must_use]
pub fn expand_message<const N: usize>(tag: &[&[u8]], message: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= 255 * 32, "expand_message_xmd has at most 255 blocks") };
    let tag_len: usize = tag.iter().map(|part| part.len()).sum();
    match u8::try_from(tag_len) {
        Ok(tag_len) => expand(tag, tag_len, message),
        Err(_) => {
            let long = tag.iter().fold(Sha256::new_with_prefix(b"H2C-OVERSIZE-DST-"), Digest::chain_update);
            expand(&[&long.finalize()], 32, message)
        }
    }
}

fn expand<const N: usize>(tag: &[&[u8]], tag_len: u8, message: &[&[u8]]) -> [u8; N] {
    // DST_prime = DST ‖ I2OSP(len(DST), 1)
    let tagged = |mut hash: Sha256| {
        tag.iter().for_each(|part| hash.update(part));
        <[u8; 32]>::from(hash.chain_update([tag_len]).finalize())
    };
    // b_0 = H(Z_pad ‖ msg ‖ I2OSP(len_in_bytes, 2) ‖ I2OSP(0, 1) ‖ DST_prime)
    let mut first = Sha256::new_with_prefix(BLOCK);
    message.iter().for_each(|part| first.update(part));
    first.update((N as u16).to_be_bytes());
    first.update([0]);
    let first = tagged(first);
    // b_i = H((b_0 XOR b_(i - 1)) ‖ I2OSP(i, 1) ‖ DST_prime), where b_1 has b_0 alone
    let mut out = [0; N];
    let mut block = [0; 32];
    for (chunk, index) in out.chunks_mut(32).zip(1_u8..=255) {
        block.iter_mut().zip(first).for_each(|(byte, mask)| *byte ^= mask);
        block = tagged(Sha256::new_with_prefix(block).chain_update([index]));
        chunk.iter_mut().zip(block).for_each(|(to, from)| *to = from);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9380, appendix K.1.
    #[test]
    fn expansion_gives_the_bytes_of_rfc_9380() {
        let tag: &[&[u8]] = &[b"QUUX-V01-CS02-with-", b"expander-SHA256-128"];
        let expected = "68a985b87eb6b46952128911f2a4412bbc302a9d759667f87f7a21d803f07235";
        assert_eq!(hex::encode(expand_message::<32>(tag, &[])), expected);
        let expected = "d8ccab23b5985ccea865c6c97b6e5b8350e794e603b4b97902f53a8a0d605615";
        assert_eq!(hex::encode(expand_message::<32>(tag, &[b"a", b"bc"])), expected);
        let expected = "af84c27ccfd45d41914fdff5df25293e221afc53d8ad2ac06d5e3e29485dadbee0d121587713a3e0dd4d5e69e93eb7cd\
                        4f5df4cd103e188cf60cb02edc3edf18eda8576c412b18ffb658e3dd6ec849469b979d444cf7b26911a08e63cf31f9dc\
                        c541708d3491184472c2c29bb749d4286b004ceb5ee6b9a7fa5b646c993f0ced";
        assert_eq!(hex::encode(expand_message::<128>(tag, &[])), expected);
    }

    /// RFC 9380, appendix K.2.
    #[test]
    fn a_long_tag_is_hashed_as_in_rfc_9380() {
        let tag: &[&[u8]] = &[b"QUUX-V01-CS02-with-expander-SHA256-128-long-DST-", &[b'1'; 208]];
        let expected = "e8dc0c8b686b7ef2074086fbdd2f30e3f8bfbd3bdf177f73f04b97ce618a3ed3";
        assert_eq!(hex::encode(expand_message::<32>(tag, &[])), expected);
    }

    #[test]
    fn the_longest_tag_that_is_taken_as_it_is_has_255_bytes() {
        let hashed = |bytes: &[u8]| {
            <[u8; 32]>::from(Sha256::new_with_prefix(b"H2C-OVERSIZE-DST-").chain_update(bytes).finalize())
        };
        let of = |tag: &[u8]| expand_message::<32>(&[tag], &[b"message"]);
        assert_ne!(of(&[7; 255]), of(&hashed(&[7; 255])));
        assert_eq!(of(&[7; 256]), of(&hashed(&[7; 256])));
    }
}
