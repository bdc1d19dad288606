//! Blocks of a UF2 file.

use crate::{Image, Uf2Error};

/// The family of nRF52840 programs, as the bootloaders of Adafruit have it.
pub const FAMILY: u32 = 0xADA5_2840;
/// A block's length in bytes: a sector of the drive.
pub const BLOCK_LEN: usize = 512;
/// A block's payload in bytes; the bootloader takes no other length and no address that is not a multiple of
/// it.
pub const PAYLOAD_LEN: usize = 256;

const MAGIC_START: [u32; 2] = [0x0A32_4655, 0x9E5D_5157];
const MAGIC_END: u32 = 0x0AB1_6F30;
/// The last field of the header holds the family.
const FAMILY_PRESENT: u32 = 0x2000;
const HEADER_LEN: usize = 32;

/// The UF2 file of an image. The rest of a partly filled block is 0xFF, as erased flash.
#[must_use]
pub fn blocks(image: &Image) -> Vec<u8> {
    let mut payloads: Vec<(u32, [u8; PAYLOAD_LEN])> = Vec::new();
    for (start, bytes) in image.pieces() {
        for (at, byte) in (*start..).zip(bytes) {
            let (base, offset) = (at - at % PAYLOAD_LEN as u32, at as usize % PAYLOAD_LEN);
            if payloads.last().is_none_or(|(last, _)| *last != base) {
                payloads.push((base, [0xFF; PAYLOAD_LEN]));
            }
            if let Some(place) = payloads.last_mut().and_then(|(_, payload)| payload.get_mut(offset)) {
                *place = *byte;
            }
        }
    }
    let count = payloads.len() as u32;
    let mut file = Vec::with_capacity(payloads.len() * BLOCK_LEN);
    for (number, (address, payload)) in (0u32..).zip(&payloads) {
        let [magic, more] = MAGIC_START;
        for field in [magic, more, FAMILY_PRESENT, *address, PAYLOAD_LEN as u32, number, count, FAMILY] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        file.extend_from_slice(payload);
        file.extend_from_slice(&[0; BLOCK_LEN - HEADER_LEN - PAYLOAD_LEN - 4]);
        file.extend_from_slice(&MAGIC_END.to_le_bytes());
    }
    file
}

/// Address and payload of each block of a UF2 file, checked as strictly as by a bootloader.
///
/// # Errors
/// [`Uf2Error::BadBlock`].
pub fn read_blocks(file: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, Uf2Error> {
    let (blocks, rest) = file.as_chunks::<BLOCK_LEN>();
    if !rest.is_empty() {
        return Err(Uf2Error::BadBlock { number: blocks.len(), why: "it is cut off" });
    }
    let count = blocks.len();
    blocks.iter().enumerate().map(|(number, block)| read_block(number, count, block)).collect()
}

fn read_block(number: usize, count: usize, block: &[u8; BLOCK_LEN]) -> Result<(u32, Vec<u8>), Uf2Error> {
    let (words, _) = block.as_chunks::<4>();
    let field = |at: usize| words.get(at).map_or(0, |word| u32::from_le_bytes(*word));
    let address = field(3);
    let checks = [
        (
            [field(0), field(1)] == MAGIC_START && field(BLOCK_LEN / 4 - 1) == MAGIC_END,
            "it does not begin or end as a block does",
        ),
        (field(2) == FAMILY_PRESENT && field(7) == FAMILY, "it is not for an nRF52840"),
        (field(4) as usize == PAYLOAD_LEN, "its payload is not 256 bytes long"),
        ((address as usize).is_multiple_of(PAYLOAD_LEN), "its address is not a multiple of 256"),
        (field(5) as usize == number && field(6) as usize == count, "it is counted wrong"),
    ];
    if let Some((_, why)) = checks.iter().find(|(good, _)| !good) {
        return Err(Uf2Error::BadBlock { number, why });
    }
    Ok((address, block.iter().skip(HEADER_LEN).take(PAYLOAD_LEN).copied().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pieces: &[(u32, &[u8])]) -> Image {
        Image::new(pieces.iter().map(|(start, bytes)| (*start, bytes.to_vec())).collect()).unwrap()
    }

    #[test]
    fn block_has_every_field_where_the_format_puts_it() {
        let file = blocks(&image(&[(0x2_6000, &[0xAB; 300])]));
        assert_eq!(file.len(), 2 * BLOCK_LEN);
        let header = [
            0x55, 0x46, 0x32, 0x0A, 0x57, 0x51, 0x5D, 0x9E, 0x00, 0x20, 0, 0, 0x00, 0x61, 0x02, 0, 0, 1, 0,
            0, 1, 0, 0, 0, 2, 0, 0, 0, 0x40, 0x28, 0xA5, 0xAD,
        ];
        let second = &file[BLOCK_LEN..];
        assert_eq!(second[..32], header);
        assert_eq!(second[32..32 + 44], [0xAB; 44]);
        assert_eq!(second[32 + 44..32 + 256], [0xFF; 256 - 44]);
        assert_eq!(second[508..], [0x30, 0x6F, 0xB1, 0x0A]);
    }

    #[test]
    fn pieces_that_share_a_block_are_in_it_together() {
        let file =
            blocks(&image(&[(0x2_6010, b"one"), (0x2_60F8, b"across the border"), (0x3_0000, b"far away")]));
        let found = read_blocks(&file).unwrap();
        assert_eq!(
            found.iter().map(|(address, _)| *address).collect::<Vec<_>>(),
            [0x2_6000, 0x2_6100, 0x3_0000]
        );
        assert_eq!(found[0].1[0x10..0x13], *b"one");
        assert_eq!(found[0].1[0xF8..], *b"across t");
        assert_eq!(found[1].1[..9], *b"he border");
        assert_eq!(found[2].1[..8], *b"far away");
    }

    #[test]
    fn whatever_is_changed_in_a_header_is_noticed() {
        let file = blocks(&image(&[(0x2_6000, &[1; 600])]));
        assert!(read_blocks(&file).is_ok());
        for byte in (0..32).chain(508..512) {
            let mut changed = file.clone();
            changed[BLOCK_LEN + byte] ^= 0x01;
            // The upper bytes of an address may be any.
            let free = (13..16).contains(&byte);
            assert_eq!(read_blocks(&changed).is_ok(), free, "byte {byte}");
        }
        assert!(read_blocks(&file[..file.len() - 1]).is_err());
    }
}
