//! Retained memory: the flash, and beside it the number of starts and the cause of the last one.

use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Bytes of flash that keep the board's state: the last of its 1 MiB.
pub(crate) const FLASH_LEN: usize = 32 * 1024;
/// The same in words of 4 bytes.
pub(crate) const FLASH_WORDS: usize = FLASH_LEN / 4;
const FLASH_AT: usize = 1024 * 1024 - FLASH_LEN;
const RETAINED_AT: usize = 0x2100_0000;
/// Says that the memory was initialised: RAM is zero when QEMU starts.
const MARK: u32 = 0x5155_4956;

/// The flash's words.
pub(crate) fn flash() -> &'static [AtomicU32; FLASH_WORDS] {
    // SAFETY: RAM that the linker does not know (memory.x ends before it), and that only these atomics ever
    // touch; every bit pattern is a value of them.
    unsafe { &*ptr::with_exposed_provenance(FLASH_AT) }
}

/// Memory that survives a reset, besides the flash.
pub(crate) fn retained() -> &'static Retained {
    // SAFETY: as for `flash`: the machine's PSRAM, 16 MiB at this address.
    unsafe { &*ptr::with_exposed_provenance(RETAINED_AT) }
}

/// Memory that survives a reset, besides the flash. All zero when the machine is switched on.
#[repr(C)]
pub(crate) struct Retained {
    /// [`MARK`], once initialised.
    mark: AtomicU32,
    boots: AtomicU32,
    cause: AtomicU32,
    operations: AtomicU32,
    /// Writes of each word of the flash since its page was erased.
    pub(crate) writes: [AtomicU8; FLASH_WORDS],
}

/// Cause of the machine's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum StartCause {
    /// A reset that the program did not ask for: by the watchdog, or from outside QEMU.
    Watchdog = 0,
    /// The program reset it because it was asked to.
    Asked = 1,
    /// QEMU has just started, or the program pretended a loss of power.
    Power = 2,
}

impl Retained {
    /// Called once at each start: returns the number of starts and the cause of this one. Initialises new
    /// memory.
    pub(crate) fn start(&self) -> (u32, StartCause) {
        if self.mark.load(Relaxed) != MARK {
            // Erased, as it leaves the factory.
            flash().iter().for_each(|word| word.store(u32::MAX, Relaxed));
            self.writes.iter().for_each(|count| count.store(0, Relaxed));
            self.boots.store(0, Relaxed);
            self.operations.store(0, Relaxed);
            self.cause.store(StartCause::Power as u32, Relaxed);
            self.mark.store(MARK, Relaxed);
        }
        let cause = match self.cause.swap(StartCause::Watchdog as u32, Relaxed) {
            1 => StartCause::Asked,
            2 => StartCause::Power,
            _ => StartCause::Watchdog,
        };
        (self.boots.fetch_add(1, Relaxed) + 1, cause)
    }

    /// Starts the machine anew.
    pub(crate) fn reset(&self, cause: StartCause) -> ! {
        self.cause.store(cause as u32, Relaxed);
        cortex_m::peripheral::SCB::sys_reset()
    }

    /// Counts a word written or a page erased; returns its number, from 1 on.
    pub(crate) fn operation(&self) -> u32 {
        self.operations.fetch_add(1, Relaxed) + 1
    }
}
