//! Memory that outlives a reset: the flash, and beside it how often the machine has started, and why.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Bytes of flash that keep the board's state: the last of its 1 MiB.
pub(crate) const FLASH_LEN: usize = 32 * 1024;
/// The same in words of 4 bytes.
pub(crate) const FLASH_WORDS: usize = FLASH_LEN / 4;
const FLASH_AT: usize = 1024 * 1024 - FLASH_LEN;
const KEPT_AT: usize = 0x2100_0000;
/// Says that the memory was initialised: RAM is zero when QEMU starts.
const MARK: u32 = 0x5155_4956;

/// What outlives a reset, besides the flash. All zero when the machine is switched on.
#[repr(C)]
pub(crate) struct Kept {
    /// [`MARK`], once initialised.
    pub(crate) mark: u32,
    /// How often the machine has started.
    pub(crate) boots: u32,
    /// Why it was last reset, if the program did it.
    pub(crate) cause: u32,
    /// Words written and pages erased so far.
    pub(crate) operations: u32,
    /// How often each word of the flash was written since its page was erased.
    pub(crate) writes: [u8; FLASH_WORDS],
}

/// The flash and what else outlives a reset. Once; `None` ever after.
pub(crate) fn take_memory() -> Option<(&'static mut [u32; FLASH_WORDS], &'static mut Kept)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    // SAFETY: RAM that is outside of what the linker knows (memory.x ends before the flash region, and the PSRAM at 16 MiB
    // is not in it); every bit pattern is a value of these types; handed out once.
    unsafe {
        let flash = &mut *ptr::with_exposed_provenance_mut(FLASH_AT);
        Some((flash, &mut *ptr::with_exposed_provenance_mut(KEPT_AT)))
    }
}

/// Why the program reset the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Cause {
    /// It did not: the watchdog did, or whoever controls QEMU.
    None = 0,
    /// Somebody asked for it.
    Asked = 1,
    /// A pretended loss of power.
    PowerLost = 2,
}

impl Kept {
    /// Initialises what was never initialised; says whether it was.
    pub(crate) fn start(&mut self, flash: &mut [u32]) -> bool {
        let first = self.mark != MARK;
        if first {
            // As it leaves the factory.
            flash.fill(u32::MAX);
            self.operations = 0;
            self.boots = 0;
            self.cause = Cause::None as u32;
            self.writes.fill(0);
            self.mark = MARK;
        }
        self.boots += 1;
        first
    }

    /// Why the machine was reset. From now on it is reset for no reason known.
    pub(crate) fn take_cause(&mut self) -> Cause {
        match core::mem::replace(&mut self.cause, Cause::None as u32) {
            1 => Cause::Asked,
            2 => Cause::PowerLost,
            _ => Cause::None,
        }
    }
}
