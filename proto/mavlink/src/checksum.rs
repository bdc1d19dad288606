//! CRC-16/MCRF4XX, MAVLink's check sum, and how it changes when a byte before it does.

/// The check sum of `bytes`, which begin behind a frame's start byte, and a message's seed.
pub(crate) fn checksum(bytes: &[u8], crc_extra: u8) -> u16 {
    accumulate(bytes.iter().fold(0xffff, |crc, byte| accumulate(crc, *byte)), crc_extra)
}

/// Value that a check sum is to be combined with (exclusive or) when a byte changes by `difference` and
/// `following` bytes, seed included, stand between it and the check sum. The sum is linear: no seed need be
/// known, and a wrong sum stays wrong.
pub(crate) fn change(difference: u8, following: usize) -> u16 {
    (0..following).fold(accumulate(0, difference), |crc, _| accumulate(crc, 0))
}

fn accumulate(crc: u16, byte: u8) -> u16 {
    let [low, high] = crc.to_le_bytes();
    let mut term = byte ^ low;
    term ^= term << 4;
    let wide = u16::from(term);
    u16::from(high) ^ (wide << 8) ^ (wide << 3) ^ (wide >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_catalogue_of_crcs() {
        // CRC-16/MCRF4XX of "123456789" is 0x6f91: without a seed, by feeding the last byte as one.
        assert_eq!(checksum(b"12345678", b'9'), 0x6f91);
    }

    #[test]
    fn a_changed_byte_changes_the_sum_as_computed() {
        let mut bytes = *b"a frame behind its start byte";
        let before = checksum(&bytes, 77);
        bytes[3] ^= 0x41;
        assert_eq!(checksum(&bytes, 77), before ^ change(0x41, bytes.len() - 4 + 1));
    }
}
