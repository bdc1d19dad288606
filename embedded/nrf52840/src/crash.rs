//! What remains of a panic or a fault: where it was, in memory that a reset leaves alone. Never what it said, which could hold anything.

use core::fmt::{self, Write as _};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::sync::atomic::{Ordering, compiler_fence};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};

/// Marks a record as one.
const MAGIC: u32 = 0x5155_4352;

/// The longest piece of a file's name that is kept: its end, in bytes.
const FILE_LEN: usize = 48;

/// What stopped the program last time.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Crash {
    magic: u32,
    kind: u32,
    /// A panic's line; a fault's program counter.
    place: u32,
    /// A fault's link register.
    caller: u32,
    file_len: u32,
    file: [u8; FILE_LEN],
    check: u32,
}

const PANIC: u32 = 1;
const FAULT: u32 = 2;
const INTERRUPT: u32 = 3;

#[unsafe(link_section = ".uninit.crash")]
#[expect(unsafe_code, reason = "memory that no start-up code clears")]
static mut RECORD: MaybeUninit<Crash> = MaybeUninit::uninit();

impl Crash {
    fn new(kind: u32, place: u32, caller: u32, file: &str) -> Self {
        let mut crash =
            Self { magic: MAGIC, kind, place, caller, file_len: 0, file: [0; FILE_LEN], check: 0 };
        let tail = file.len().saturating_sub(FILE_LEN);
        for (to, from) in crash.file.iter_mut().zip(file.as_bytes().iter().skip(tail)) {
            *to = *from;
            crash.file_len += 1;
        }
        crash.check = crash.sum();
        crash
    }

    /// FNV-1a: enough to tell a record from what RAM holds after power comes.
    fn sum(&self) -> u32 {
        let words = [self.magic, self.kind, self.place, self.caller, self.file_len];
        words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(self.file)
            .fold(0x811C_9DC5, |sum: u32, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Leaves the record for the next start, and starts.
    fn leave(self) -> ! {
        #[expect(unsafe_code, reason = "the one place that writes the record")]
        // SAFETY: the program ends here; interrupts that could read or write it are off.
        unsafe {
            (&raw mut RECORD).write_volatile(MaybeUninit::new(self));
        }
        compiler_fence(Ordering::SeqCst);
        SCB::sys_reset()
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            PANIC => {
                f.write_str("panic ")?;
                for byte in self.file.iter().take(self.file_len as usize) {
                    f.write_char(if byte.is_ascii_graphic() { char::from(*byte) } else { '?' })?;
                }
                write!(f, ":{}", self.place)
            }
            FAULT => write!(f, "fault pc {:#010x} lr {:#010x}", self.place, self.caller),
            _ => write!(f, "unexpected interrupt {}", self.place),
        }
    }
}

/// Takes what the last run left, if it left anything. Call it once, at the start.
#[must_use]
pub fn take() -> Option<Crash> {
    #[expect(unsafe_code, reason = "memory that no start-up code clears")]
    // SAFETY: any bits are a valid `Crash`, as it is made of integers; called before anything that could write the record.
    let crash = unsafe {
        let crash = (&raw const RECORD).read_volatile().assume_init();
        (&raw mut RECORD).write_volatile(MaybeUninit::zeroed());
        crash
    };
    (crash.magic == MAGIC && crash.check == crash.sum()).then_some(crash)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    let (file, line) = info.location().map_or(("", 0), |location| (location.file(), location.line()));
    Crash::new(PANIC, line, 0, file).leave()
}

#[exception]
#[allow(
    unsafe_code,
    reason = "the attribute wants it so, and copies what stands here to more than one function"
)]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    cortex_m::interrupt::disable();
    Crash::new(FAULT, frame.pc(), frame.lr(), "").leave()
}

#[exception]
#[allow(
    unsafe_code,
    reason = "the attribute wants it so, and copies what stands here to more than one function"
)]
unsafe fn DefaultHandler(number: i16) {
    cortex_m::interrupt::disable();
    Crash::new(INTERRUPT, number as u32, 0, "").leave()
}
