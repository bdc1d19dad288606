//! UF2 files of images for the nRF52840.
//!
//! UF2 (Microsoft, "USB Flashing Format", github.com/microsoft/uf2) cuts an image into blocks of 512 bytes,
//! each of which says where in flash its 256 bytes of payload belong, so that a bootloader can take them in
//! any order as sectors of a drive.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod block;
mod error;
mod image;

pub use block::{BLOCK_LEN, FAMILY, PAYLOAD_LEN, blocks, read_blocks};
pub use error::Uf2Error;
pub use image::{FLASH_LEN, Image};
