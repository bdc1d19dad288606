//! Errors of a board.

use embedded_storage_async::nor_flash::NorFlashErrorKind;

/// Error of the flash storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The region is too small, or its pages and words are not of a size this firmware can use.
    #[error("flash region of {size} bytes with pages of {page} cannot be used")]
    Region {
        /// Bytes in the region.
        size: usize,
        /// Bytes in a page.
        page: usize,
    },
    /// The device reports an error.
    #[error("flash device: {0:?}")]
    Device(NorFlashErrorKind),
    /// There is no key to seal the state with: randomness fails.
    #[error("no key: randomness fails")]
    NoKey,
    /// The flash has not been read yet.
    #[error("flash was not read yet")]
    NotRead,
    /// Written data does not read back, wherever it is put.
    #[error("flash is worn: what is written does not read back")]
    Worn,
    /// The state is too long for the region.
    #[error("flash is full: a state of {len} bytes, room for {limit}")]
    Full {
        /// Bytes the state has.
        len: usize,
        /// Bytes it may have.
        limit: usize,
    },
}
