//! Reason why there is no UF2 file.

/// An error of an image or a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Uf2Error {
    /// Not an ELF file of a 32-bit Arm program.
    #[error("no program for a 32-bit Arm processor: {0}")]
    NotAnImage(String),
    /// Nothing that belongs into flash.
    #[error("nothing in it belongs into flash")]
    Empty,
    /// Something belongs where the nRF52840 has no flash.
    #[error("{len} bytes from {start:#x} on are not within the flash of 1 MiB")]
    OutsideFlash {
        /// The first address.
        start: u64,
        /// The length in bytes.
        len: u64,
    },
    /// The program would overwrite what starts the bootloader.
    #[error(
        "the program begins at {start:#x}, where the bootloader's own code lies; build it with the feature `dongle` or `feather`"
    )]
    OverBootloader {
        /// The program's first address.
        start: u32,
    },
    /// The program reaches into the flash that holds the state.
    #[error("the program ends at {end:#x}, but its state begins at {state:#x}")]
    OverState {
        /// The first address after the program.
        end: u32,
        /// The state's first address.
        state: u32,
    },
    /// Two parts of the program want the same address.
    #[error("two parts of the program are to lie at {at:#x}")]
    Overlap {
        /// The first such address.
        at: u32,
    },
    /// A block of a UF2 file is not as it should be.
    #[error("block {number} is not as it should be: {why}")]
    BadBlock {
        /// Counted from 0.
        number: usize,
        /// The reason.
        why: &'static str,
    },
}
