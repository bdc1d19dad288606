//! Seals and opens datagrams: AES-128-CCM with a nonce of 13 bytes. §20.2.
//!
//! NIST SP 800-38C and RFC 3610; with a tag of 8 bytes AES-CCM-16-64-128 of RFC 9053, as in OSCORE (RFC 8613)
//! and IEEE 802.15.4.

use alloc::vec::Vec;

use aes::Aes128;
use ccm::aead::inout::InOutBuf;
use ccm::consts::{U8, U13, U16};
use ccm::{AeadInOut, Ccm, KeyInit};
use quiver_crypto::{Secret, Zeroizing};

/// Bytes of a datagram's tag.
pub(crate) const TAG_LEN: usize = 8;

/// Bytes of an announcement's tag.
pub(crate) const FULL_TAG_LEN: usize = 16;

/// Number of a datagram under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramNonce {
    /// True if it is numbered among the signed ones.
    pub(crate) signed: bool,
    pub(crate) counter: u32,
}

impl DatagramNonce {
    /// 0 or 1, eight zeros, the counter: 13 bytes.
    fn bytes(self) -> [u8; 13] {
        let [a, b, c, d] = self.counter.to_be_bytes();
        [self.signed.into(), 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
    }
}

/// Encrypts what follows the first `header` bytes, which are authenticated too, and adds a tag of 8 bytes.
/// Empty if it is longer than CCM allows.
pub(crate) fn seal(key: &Secret<16>, nonce: DatagramNonce, bytes: Vec<u8>, header: usize) -> Vec<u8> {
    seal_with::<U8>(key, &nonce.bytes(), bytes, header)
}

/// The same with a tag of 16 bytes.
pub(crate) fn seal_full(key: &Secret<16>, nonce: DatagramNonce, bytes: Vec<u8>, header: usize) -> Vec<u8> {
    seal_with::<U16>(key, &nonce.bytes(), bytes, header)
}

/// Decrypts what [`seal`] made of it; `None` if the tag does not hold.
pub(crate) fn open(
    key: &Secret<16>,
    nonce: DatagramNonce,
    header: &[u8],
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    open_with::<U8>(key, &nonce.bytes(), header, sealed, TAG_LEN)
}

/// Decrypts what [`seal_full`] made of it; `None` if the tag does not hold.
pub(crate) fn open_full(
    key: &Secret<16>,
    nonce: DatagramNonce,
    header: &[u8],
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    open_with::<U16>(key, &nonce.bytes(), header, sealed, FULL_TAG_LEN)
}

fn seal_with<T: ccm::aead::array::ArraySize + ccm::TagSize>(
    key: &Secret<16>,
    nonce: &[u8; 13],
    mut bytes: Vec<u8>,
    header: usize,
) -> Vec<u8> {
    let cipher = Ccm::<Aes128, T, U13>::new(key.expose().into());
    let sealed = bytes.split_at_mut_checked(header).and_then(|(header, body)| {
        cipher.encrypt_inout_detached(nonce.into(), header, InOutBuf::from(body)).ok()
    });
    // It fails beyond the cipher's limit alone. The plaintext must then not leave, so nothing does.
    match sealed {
        Some(tag) => bytes.extend_from_slice(&tag),
        None => bytes.clear(),
    }
    bytes
}

fn open_with<T: ccm::aead::array::ArraySize + ccm::TagSize>(
    key: &Secret<16>,
    nonce: &[u8; 13],
    header: &[u8],
    sealed: &[u8],
    tag_len: usize,
) -> Option<Zeroizing<Vec<u8>>> {
    let (body, tag) = sealed.split_at_checked(sealed.len().checked_sub(tag_len)?)?;
    let cipher = Ccm::<Aes128, T, U13>::new(key.expose().into());
    // Zeroised, because a tag that does not hold leaves bytes that no one may use.
    let mut plaintext = Zeroizing::new(body.to_vec());
    let buffer = InOutBuf::from(plaintext.as_mut_slice());
    cipher.decrypt_inout_detached(nonce.into(), header, buffer, tag.try_into().ok()?).ok()?;
    Some(plaintext)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 3610, section 8, packet vectors 1 to 3.
    #[test]
    fn sealing_gives_the_packets_of_rfc_3610() {
        let vectors = [
            (
                31,
                "00000003020100a0a1a2a3a4a5",
                "588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0",
            ),
            (
                32,
                "00000004030201a0a1a2a3a4a5",
                "72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3ba091d56e10400916",
            ),
            (
                33,
                "00000005040302a0a1a2a3a4a5",
                "51b1e5f44a197d1da46b0f8e2d282ae871e838bb64da8596574adaa76fbd9fb0c5",
            ),
        ];
        let key = Secret::new(core::array::from_fn(|i| 0xc0 + i as u8));
        for (total, nonce, expected) in vectors {
            let nonce = hex::decode(nonce).unwrap().try_into().unwrap();
            let packet: Vec<u8> = (0..total).collect();
            let sealed = seal_with::<U8>(&key, &nonce, packet.clone(), 8);
            assert_eq!(hex::encode(&sealed[8..]), expected);
            let opened = open_with::<U8>(&key, &nonce, &sealed[..8], &sealed[8..], TAG_LEN);
            assert_eq!(opened.unwrap()[..], packet[8..]);
        }
    }

    proptest! {
        #[test]
        fn nothing_opens_after_one_bit_changed(
            plaintext in prop::collection::vec(any::<u8>(), 0..60), header in prop::collection::vec(any::<u8>(), 1..20),
            place in any::<prop::sample::Index>(), bit in 0..8_u8, part in 0..4_u8, full in any::<bool>(),
        ) {
            let (mut key, mut nonce) = ([3; 16], [4; 13]);
            let bytes = [&header[..], &plaintext].concat();
            let (mut header, tag) = (header, if full { FULL_TAG_LEN } else { TAG_LEN });
            let open = |key: [u8; 16], nonce: &[u8; 13], header: &[u8], sealed: &[u8]| {
                let key = Secret::new(key);
                if full { open_with::<U16>(&key, nonce, header, sealed, tag) } else { open_with::<U8>(&key, nonce, header, sealed, tag) }
            };
            let sealed = if full {
                seal_with::<U16>(&Secret::new(key), &nonce, bytes, header.len())
            } else {
                seal_with::<U8>(&Secret::new(key), &nonce, bytes, header.len())
            };
            let mut sealed = sealed[header.len()..].to_vec();
            prop_assert_eq!(sealed.len(), plaintext.len() + tag);
            prop_assert_eq!(open(key, &nonce, &header, &sealed).unwrap().to_vec(), plaintext);
            let target: &mut [u8] =
                match part { 0 => &mut key, 1 => &mut nonce, 2 => &mut header, _ => &mut sealed };
            let place = place.index(target.len());
            target[place] ^= 1 << bit;
            prop_assert!(open(key, &nonce, &header, &sealed).is_none());
        }
    }

    #[test]
    fn what_is_shorter_than_a_tag_does_not_open() {
        let nonce = DatagramNonce { signed: false, counter: 0 };
        assert!(open(&Secret::new([0; 16]), nonce, &[], &[0; 7]).is_none());
        assert!(open_full(&Secret::new([0; 16]), nonce, &[], &[0; 15]).is_none());
    }

    #[test]
    fn signed_and_unsigned_datagrams_of_one_number_have_different_nonces() {
        let nonce = |signed| DatagramNonce { signed, counter: 0x0102_0304 }.bytes();
        assert_eq!(nonce(false), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(nonce(true), [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    }
}
