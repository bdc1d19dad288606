//! The check sum of frames and messages.

use crc::{CRC_32_ISO_HDLC, Crc};

/// CRC-32 as in IEEE 802.3 and zip files; a table of 1 KiB.
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Bytes of a check sum.
pub(crate) const CHECKSUM_LEN: usize = 4;

/// Of a frame's body.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// Of a message and its place.
pub(crate) fn message_checksum(session: u32, id: u16, message: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(&session.to_be_bytes());
    digest.update(&id.to_be_bytes());
    digest.update(message);
    digest.finalize()
}
