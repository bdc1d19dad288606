//! The flash that keeps the board's state: RAM that behaves like the nRF52840's flash, and that QEMU does not
//! touch at a reset.
//!
//! Pages of 4,096 bytes are erased as a whole, writing only clears bits, and a word may be written twice
//! between erasures (nRF52840 Product Specification 1.7, section 4.3, *n*WRITE); a third time is a mistake of
//! the program, which ends the emulation. Power can be lost, or the program hang, at any word: see
//! [`EmulationOptions`](super::options::EmulationOptions).

use embedded_storage_async::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::options::{Cuts, EmulationOptions};
use crate::machine::retained::{FLASH_LEN, StartCause, flash, retained};

const PAGE: usize = 4096;
const WRITES_PER_WORD: u8 = 2;

/// The flash.
pub(crate) struct Flash {
    cuts: Cuts,
    hang: u32,
}

/// Reason why it did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlashError {
    /// Only whole words are written, only whole pages erased.
    Unaligned,
    /// The address is not in the flash.
    OutOfBounds,
}

impl NorFlashError for FlashError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Unaligned => NorFlashErrorKind::NotAligned,
            Self::OutOfBounds => NorFlashErrorKind::OutOfBounds,
        }
    }
}

impl Flash {
    /// The flash of this machine; every handle has the same.
    pub(crate) fn new(options: &EmulationOptions) -> Self {
        Self { cuts: options.cuts, hang: options.hang }
    }

    /// Returns true if power is lost at this operation, a word or a page. Does not return from one at which
    /// the program hangs.
    fn power_fails(&self) -> bool {
        let operation = retained().operation();
        if operation == self.hang {
            // As a driver that waits for a dead device: interrupts go on, the program does not.
            loop {
                core::hint::spin_loop();
            }
        }
        self.cuts.contains(&operation)
    }

    fn write_word(&self, at: usize, bytes: [u8; 4]) {
        let (word, value) = (&flash()[at], u32::from_le_bytes(bytes));
        let writes = retained().writes[at].fetch_add(1, Relaxed) + 1;
        assert!(writes <= WRITES_PER_WORD, "flash word {at} written a third time since its page was erased");
        if self.power_fails() {
            // Every other bit got there.
            word.fetch_and(value | 0xaaaa_aaaa, Relaxed);
            retained().reset(StartCause::Power);
        }
        word.fetch_and(value, Relaxed);
    }

    fn erase_page(&self, page: usize) {
        let words = page * PAGE / 4..(page + 1) * PAGE / 4;
        if self.power_fails() {
            // Half of the page is erased, and the other half to half.
            let (done, begun) = flash()[words].split_at(PAGE / 8);
            done.iter().for_each(|word| word.store(u32::MAX, Relaxed));
            begun.iter().for_each(|word| _ = word.fetch_or(0x5555_5555, Relaxed));
            retained().reset(StartCause::Power);
        }
        flash()[words.clone()].iter().for_each(|word| word.store(u32::MAX, Relaxed));
        retained().writes[words].iter().for_each(|count| count.store(0, Relaxed));
    }
}

/// `from..to` as a range, if it lies within the flash and on multiples of `unit`.
fn range(from: u32, to: u64, unit: usize) -> Result<Range<usize>, FlashError> {
    let (from, to) = (from as usize, usize::try_from(to).map_err(|_| FlashError::OutOfBounds)?);
    if from > to || to > FLASH_LEN {
        return Err(FlashError::OutOfBounds);
    }
    if !from.is_multiple_of(unit) || !to.is_multiple_of(unit) {
        return Err(FlashError::Unaligned);
    }
    Ok(from..to)
}

impl ErrorType for Flash {
    type Error = FlashError;
}

impl ReadNorFlash for Flash {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        let places = range(offset, u64::from(offset) + bytes.len() as u64, 1)?;
        for (byte, at) in bytes.iter_mut().zip(places) {
            *byte = flash()[at / 4].load(Relaxed).to_le_bytes()[at % 4];
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        FLASH_LEN
    }
}

impl NorFlash for Flash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = PAGE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        let places = range(from, to.into(), PAGE)?;
        (places.start / PAGE..places.end / PAGE).for_each(|page| self.erase_page(page));
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let places = range(offset, u64::from(offset) + bytes.len() as u64, 4)?;
        for (word, at) in bytes.as_chunks::<4>().0.iter().zip(places.step_by(4)) {
            self.write_word(at / 4, *word);
        }
        Ok(())
    }
}

// A second write of a word may clear more of its bits.
impl MultiwriteNorFlash for Flash {}
