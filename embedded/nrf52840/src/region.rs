//! The part of flash that holds the state: addressed from 0, not written while the supply is low.

use embedded_storage::nor_flash::{
    ErrorType, MultiwriteNorFlash as BlockingMultiwrite, NorFlash as Blocking, NorFlashError,
    NorFlashErrorKind,
};
use embedded_storage_async::nor_flash::{MultiwriteNorFlash, NorFlash, ReadNorFlash};

/// Reason why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError<E> {
    /// The supply is too low to write safely. Later it may be well again.
    #[error("the supply is too low to write flash")]
    SupplyLow,
    /// The caller left the region or did not keep to pages or words.
    #[error("address outside the state's flash or not aligned")]
    Address(NorFlashErrorKind),
    /// Error of the flash.
    #[error("flash: {0:?}")]
    Flash(E),
}

impl<E: core::fmt::Debug> NorFlashError for RegionError<E>
where
    E: NorFlashError,
{
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::SupplyLow => NorFlashErrorKind::Other,
            Self::Address(kind) => *kind,
            Self::Flash(inner) => inner.kind(),
        }
    }
}

/// Supply, asked if it is good enough to write flash.
pub trait Supply {
    /// Checked before every word and every page.
    fn is_low(&self) -> bool;
}

/// A part of a flash, from `start` on, `len` bytes long.
#[derive(Debug)]
pub struct Region<F, S> {
    flash: F,
    supply: S,
    start: u32,
    len: u32,
}

impl<F: Blocking, S: Supply> Region<F, S> {
    /// The bytes from `start` to `end` of a flash, or `None` if that is not made of whole pages of it.
    pub fn new(flash: F, supply: S, start: u32, end: u32) -> Option<Self> {
        let page = u32::try_from(F::ERASE_SIZE).ok()?;
        let len = end.checked_sub(start)?;
        let inside = usize::try_from(end).is_ok_and(|end| end <= flash.capacity());
        let whole = start.is_multiple_of(page) && end.is_multiple_of(page);
        (inside && whole && len > 0).then_some(Self { flash, supply, start, len })
    }

    /// Position in the whole flash of `len` bytes from `offset` on, if they are this region's and aligned to
    /// `unit` bytes.
    fn locate(&self, offset: u32, len: usize, unit: usize) -> Result<u32, RegionError<F::Error>> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > self.len) {
            return Err(RegionError::Address(NorFlashErrorKind::OutOfBounds));
        }
        if !(offset as usize).is_multiple_of(unit) || !len.is_multiple_of(unit) {
            return Err(RegionError::Address(NorFlashErrorKind::NotAligned));
        }
        Ok(self.start + offset)
    }

    fn ready(&self) -> Result<(), RegionError<F::Error>> {
        if self.supply.is_low() { Err(RegionError::SupplyLow) } else { Ok(()) }
    }
}

impl<F: Blocking, S> ErrorType for Region<F, S> {
    type Error = RegionError<F::Error>;
}

impl<F: Blocking, S: Supply> ReadNorFlash for Region<F, S> {
    const READ_SIZE: usize = F::READ_SIZE;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        let at = self.locate(offset, bytes.len(), F::READ_SIZE)?;
        self.flash.read(at, bytes).map_err(RegionError::Flash)
    }

    fn capacity(&self) -> usize {
        self.len as usize
    }
}

impl<F: Blocking, S: Supply> NorFlash for Region<F, S> {
    const WRITE_SIZE: usize = F::WRITE_SIZE;
    const ERASE_SIZE: usize = F::ERASE_SIZE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        let len = to.checked_sub(from).ok_or(RegionError::Address(NorFlashErrorKind::OutOfBounds))?;
        let at = self.locate(from, len as usize, F::ERASE_SIZE)?;
        for page in (at..at + len).step_by(F::ERASE_SIZE) {
            self.ready()?;
            self.flash.erase(page, page + F::ERASE_SIZE as u32).map_err(RegionError::Flash)?;
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        let mut at = self.locate(offset, bytes.len(), F::WRITE_SIZE)?;
        for word in bytes.chunks(F::WRITE_SIZE) {
            self.ready()?;
            self.flash.write(at, word).map_err(RegionError::Flash)?;
            at += F::WRITE_SIZE as u32;
        }
        Ok(())
    }
}

impl<F: BlockingMultiwrite, S: Supply> MultiwriteNorFlash for Region<F, S> {}

#[cfg(test)]
pub(crate) mod tests;
