//! The check sum of frames and messages: CRC-32 as in IEEE 802.3 and zip files.

/// Bytes of a check sum.
pub(crate) const CHECKSUM_LEN: usize = 4;

/// Remainders of four bits that are shifted out. A table for whole bytes takes 1 KiB of a board's flash and
/// saves some ten instructions a byte.
const REMAINDERS: [u32; 16] = [
    0x0000_0000,
    0x1db7_1064,
    0x3b6e_20c8,
    0x26d9_30ac,
    0x76dc_4190,
    0x6b6b_51f4,
    0x4db2_6158,
    0x5005_713c,
    0xedb8_8320,
    0xf00f_9344,
    0xd6d6_a3e8,
    0xcb61_b38c,
    0x9b64_c2b0,
    0x86d3_d2d4,
    0xa00a_e278,
    0xbdbd_f21c,
];

/// Checksum of a frame's body.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    !shifted(u32::MAX, bytes)
}

/// Checksum of a message and its place.
pub(crate) fn message_checksum(session: u32, id: u16, message: &[u8]) -> u32 {
    let place = shifted(shifted(u32::MAX, &session.to_be_bytes()), &id.to_be_bytes());
    !shifted(place, message)
}

/// The register after these bytes, each from its lowest bit.
#[inline(never)]
fn shifted(register: u32, bytes: &[u8]) -> u32 {
    let nibble = |register: u32| {
        let remainder = REMAINDERS.get((register & 0xf) as usize).copied().unwrap_or_default();
        (register >> 4) ^ remainder
    };
    bytes.iter().fold(register, |register, byte| nibble(nibble(register ^ u32::from(*byte))))
}

#[cfg(test)]
mod tests {
    use crc::{CRC_32_ISO_HDLC, Crc};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_comes_out() {
        assert_eq!(checksum(b"123456789"), CRC_32_ISO_HDLC.check);
    }

    proptest! {
        #[test]
        fn check_sums_are_those_of_another_implementation(
            (session, id, message) in (any::<u32>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..100))
        ) {
            let other = Crc::<u32>::new(&CRC_32_ISO_HDLC);
            prop_assert_eq!(checksum(&message), other.checksum(&message));
            let mut placed = session.to_be_bytes().to_vec();
            placed.extend(id.to_be_bytes());
            placed.extend(&message);
            prop_assert_eq!(message_checksum(session, id, &message), other.checksum(&placed));
        }
    }
}
