//! Crash records: the place of a panic or a fault, in memory that survives a reset. Never its message, which
//! could hold anything.
//!
//! A panic is located by the return addresses on the stack, not by the name of its file: so nothing refers to
//! those names, and the linker leaves them out of the image (5 KB of flash).

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::slice;
use core::sync::atomic::{Ordering, compiler_fence};

use cortex_m::peripheral::SCB;
use cortex_m::register::msp;
use cortex_m_rt::{ExceptionFrame, exception};

use crate::callers::callers;

/// Marks a record as one.
const MAGIC: u32 = 0x5155_4353;

/// Return addresses that are kept: the first few lie in what makes a panic.
const CALLERS: usize = 10;

/// Record of the crash that stopped the program last time.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Crash {
    magic: u32,
    kind: u32,
    /// A panic's return addresses, the innermost first; a fault's program counter and link register; an
    /// interrupt's number. Then zeros.
    places: [u32; CALLERS],
    check: u32,
}

const PANIC: u32 = 1;
const FAULT: u32 = 2;
const INTERRUPT: u32 = 3;

#[unsafe(link_section = ".uninit.crash")]
#[expect(unsafe_code, reason = "memory that no start-up code clears")]
static mut RECORD: MaybeUninit<Crash> = MaybeUninit::uninit();

impl Crash {
    fn new(kind: u32, found: impl Iterator<Item = u32>) -> Self {
        let mut places = [0; CALLERS];
        places.iter_mut().zip(found).for_each(|(place, found)| *place = found);
        let mut crash = Self { magic: MAGIC, kind, places, check: 0 };
        crash.check = crash.sum();
        crash
    }

    /// FNV-1a over words: distinguishes a record from the random content of RAM after power-on.
    fn sum(&self) -> u32 {
        let words = [self.magic, self.kind].into_iter().chain(self.places);
        words.fold(0x811C_9DC5, |sum: u32, word| (sum ^ word).wrapping_mul(0x0100_0193))
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
        let [first, second, ..] = self.places;
        match self.kind {
            PANIC => {
                f.write_str("panic")?;
                self.places.iter().filter(|place| **place != 0).try_for_each(|place| write!(f, " {place:#x}"))
            }
            FAULT => write!(f, "fault pc {first:#x} lr {second:#x}"),
            _ => write!(f, "unexpected interrupt {first}"),
        }
    }
}

/// Takes the record of the last run, if there is one. Call it once, at the start.
#[must_use]
pub fn take() -> Option<Crash> {
    #[expect(unsafe_code, reason = "memory that no start-up code clears")]
    // SAFETY: any bits are a valid `Crash`, as it is made of integers; called before anything that could
    // write the record.
    let crash = unsafe {
        let crash = (&raw const RECORD).read_volatile().assume_init();
        (&raw mut RECORD).write_volatile(MaybeUninit::zeroed());
        crash
    };
    (crash.magic == MAGIC && crash.check == crash.sum()).then_some(crash)
}

mod symbols {
    #[expect(unsafe_code, reason = "symbols of the linker script")]
    // SAFETY: only their addresses are used; `memory.x` and `link.x` define them.
    unsafe extern "C" {
        pub(super) static __stext: u16;
        pub(super) static __etext: u16;
        pub(super) static _stack_start: u32;
    }
}

/// Return addresses on the stack from this address upwards.
fn callers_above(stack: u32) -> impl Iterator<Item = u32> {
    let (program, end) = (&raw const symbols::__stext, &raw const symbols::__etext);
    let (stack, top) = ((stack & !3) as *const u32, &raw const symbols::_stack_start);
    #[expect(unsafe_code, reason = "reads program and stack")]
    // SAFETY: the linker defines where the program is, which nothing changes; the words between the stack's
    // pointer and its beginning are in RAM, and nothing else writes them any more.
    let (program_words, stack_words) = unsafe {
        (
            slice::from_raw_parts(program, (end as usize).saturating_sub(program as usize) / 2),
            slice::from_raw_parts(stack, (top as usize).saturating_sub(stack as usize) / 4),
        )
    };
    callers(stack_words, program_words, program as u32)
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    Crash::new(PANIC, callers_above(msp::read())).leave()
}

#[exception]
#[allow(
    unsafe_code,
    reason = "the attribute wants it so, and copies what stands here to more than one function"
)]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    cortex_m::interrupt::disable();
    Crash::new(FAULT, [frame.pc(), frame.lr()].into_iter()).leave()
}

#[exception]
#[allow(
    unsafe_code,
    reason = "the attribute wants it so, and copies what stands here to more than one function"
)]
unsafe fn DefaultHandler(number: i16) {
    cortex_m::interrupt::disable();
    Crash::new(INTERRUPT, core::iter::once(number as u32)).leave()
}
