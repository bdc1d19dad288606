//! The machine: registers and memory at fixed addresses, interrupts, semihosting. Everything `unsafe` of this
//! package is here and in [`retained`], behind functions that are safe to call.
//!
//! Addresses and registers: Arm, *Application Note AN386: Cortex-M4 on the MPS2*, and *Cortex-M System Design
//! Kit Technical Reference Manual* (CMSDK), chapters 4.2 to 4.4. The memory is that of an nRF52840, which the
//! machine has at the same addresses and more of it.

#![expect(unsafe_code, reason = "registers and memory at fixed addresses; each block says why it is sound")]

pub(crate) mod retained;

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;
use cortex_m_rt::{ExceptionFrame, exception};
use embassy_executor::raw::Executor;
use embedded_alloc::LlffHeap;
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};

/// Ticks per second of all timers.
pub(crate) const TICK_HZ: u32 = 25_000_000;
/// Value of unused words of the stack.
const PAINT: u32 = 0xcccc_cccc;

/// A CMSDK APB UART.
#[repr(C)]
pub(crate) struct UartRegisters {
    pub(crate) data: ReadWrite<u32>,
    /// Bit 0: the transmit buffer is full; bit 1: the receive buffer is.
    pub(crate) state: ReadWrite<u32>,
    /// Bits: 0 transmit, 1 receive, 2 interrupt on sent, 3 interrupt on received.
    pub(crate) control: ReadWrite<u32>,
    /// Read: which interrupts are pending; write: clear them. Bits: 0 sent, 1 received.
    pub(crate) interrupt: ReadWrite<u32>,
    pub(crate) divisor: ReadWrite<u32>,
}

/// One half of the CMSDK APB dual timer. Counts down.
#[repr(C)]
pub(crate) struct TimerRegisters {
    pub(crate) load: ReadWrite<u32>,
    pub(crate) value: ReadOnly<u32>,
    /// Bits: 0 stop at zero, 1 of 32 bits, 5 interrupt at zero, 6 start over at `load`, 7 run.
    pub(crate) control: ReadWrite<u32>,
    pub(crate) clear: WriteOnly<u32>,
    _rest: [u32; 4],
}

/// The CMSDK APB watchdog, up to the interrupt's acknowledgement. Counts down; at the first zero an interrupt
/// is pending, at the second the machine is reset.
#[repr(C)]
pub(crate) struct WatchdogRegisters {
    pub(crate) load: ReadWrite<u32>,
    pub(crate) value: ReadOnly<u32>,
    /// Bits: 0 run, 1 reset.
    pub(crate) control: ReadWrite<u32>,
    pub(crate) clear: WriteOnly<u32>,
}

/// UART 0 (to the gateway) or 1 (the console).
pub(crate) fn uart<const N: usize>() -> &'static UartRegisters {
    const { assert!(N < 2, "there are two") };
    // SAFETY: the machine has these registers at this place, for as long as it runs; they are only accessed
    // through cells.
    unsafe { &*ptr::with_exposed_provenance(0x4000_4000 + 0x1000 * N) }
}

/// The dual timer.
pub(crate) fn timers() -> &'static [TimerRegisters; 2] {
    // SAFETY: as for `uart`.
    unsafe { &*ptr::with_exposed_provenance(0x4000_2000) }
}

/// The watchdog.
pub(crate) fn watchdog() -> &'static WatchdogRegisters {
    // SAFETY: as for `uart`.
    unsafe { &*ptr::with_exposed_provenance(0x4000_8000) }
}

unsafe extern "C" {
    // Set by the linker script; only their addresses mean something.
    static __sheap: u32;
    static _ram_end: u32;
    static _stack_start: u32;
    static _stack_end: u32;
}

/// The heap: all RAM above the variables.
struct Heap {
    inner: LlffHeap,
    peak: AtomicUsize,
}

#[global_allocator]
static HEAP: Heap = Heap { inner: LlffHeap::empty(), peak: AtomicUsize::new(0) };

// SAFETY: hands everything on to an allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the callee's condition.
        let place = unsafe { self.inner.alloc(layout) };
        self.peak.fetch_max(self.inner.used(), Ordering::Relaxed);
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the callee's condition.
        unsafe { self.inner.dealloc(place, layout) }
    }
}

/// Makes the heap. To be called once, before anything is allocated; panics at the second call.
pub(crate) fn start_heap() {
    let (start, end) = (&raw const __sheap, &raw const _ram_end);
    // SAFETY: this memory is RAM that the linker has given to nothing else: the stack is below the variables.
    unsafe { HEAP.inner.init(start.addr(), end.addr() - start.addr()) };
}

/// Bytes of the heap: in use, free, and the most that was in use since [`watch_heap`].
pub(crate) fn heap() -> (usize, usize, usize) {
    (HEAP.inner.used(), HEAP.inner.free(), HEAP.peak.load(Ordering::Relaxed))
}

/// Starts over with the heap's peak.
pub(crate) fn watch_heap() {
    HEAP.peak.store(HEAP.inner.used(), Ordering::Relaxed);
}

/// Bytes the stack may have.
pub(crate) fn stack_size() -> usize {
    (&raw const _stack_start).addr() - (&raw const _stack_end).addr()
}

/// Bytes in use by the stack now.
pub(crate) fn stack_used() -> usize {
    (&raw const _stack_start).addr() - cortex_m::register::msp::read() as usize
}

/// The most bytes the stack has had since the start or [`watch_stack`].
pub(crate) fn stack_peak() -> usize {
    let end = &raw const _stack_end;
    let words = stack_size() / 4;
    // SAFETY: reads words of the stack's memory, which is there whatever they hold; `volatile`, because below
    // the stack pointer nothing is initialised as far as the compiler knows.
    let unused = (0..words).take_while(|&word| unsafe { end.add(word).read_volatile() } == PAINT).count();
    4 * (words - unused)
}

/// Paints the unused part of the stack.
pub(crate) fn watch_stack() {
    // Room below the stack pointer for this function, its callees and an interrupt.
    const MARGIN: usize = 512;
    let end = (&raw const _stack_end).cast_mut();
    let words = stack_size().saturating_sub(stack_used() + MARGIN) / 4;
    critical_section::with(|_| {
        for word in 0..words {
            // SAFETY: this memory belongs to the stack, and nothing of it is in use: it lies well below the
            // stack pointer, and no interrupt comes in between.
            unsafe { end.add(word).write_volatile(PAINT) };
        }
    });
}

/// The external interrupts in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Interrupt {
    Uart0Received = 0,
    Uart0Sent = 1,
    Uart1Received = 2,
    Uart1Sent = 3,
    Timers = 10,
}

// SAFETY: these are the numbers of AN386; each belongs to one interrupt.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

/// Lets interrupts through from now on.
pub(crate) fn enable(interrupts: &[Interrupt]) {
    for &interrupt in interrupts {
        // SAFETY: no critical section of this image masks single interrupts.
        unsafe { NVIC::unmask(interrupt) };
    }
}

#[exception]
unsafe fn DefaultHandler(number: i16) {
    match number {
        #[cfg(feature = "edge")]
        0 | 1 => crate::edge::LINK.interrupted(),
        2 | 3 => crate::uart::CONSOLE.interrupted(),
        10 => crate::clock::interrupted(),
        // The watchdog's warning: whatever hangs, hangs. The reset follows.
        -14 => {}
        _ => panic!("exception {number}"),
    }
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("fault at {:#010x} (called from {:#010x})", frame.pc(), frame.lr())
}

static WORK: AtomicBool = AtomicBool::new(true);

#[unsafe(export_name = "__pender")]
fn pend(_executor: *mut ()) {
    WORK.store(true, Ordering::Release);
}

/// Runs tasks for ever; sleeps when there is nothing to do.
///
/// The crate's own thread executor sleeps by WFE, which QEMU does not do: it would keep a processor of the
/// host busy.
pub(crate) fn run(executor: &'static Executor) -> ! {
    loop {
        // SAFETY: `run` is only called from `main`, outside of interrupts and of tasks, with the one executor
        // there is.
        unsafe { executor.poll() };
        // With interrupts masked a pending one still ends the sleep, and none comes between check and sleep.
        critical_section::with(|_| {
            if !WORK.swap(false, Ordering::Acquire) {
                cortex_m::asm::wfi();
            }
        });
    }
}

/// The arguments that QEMU was given by `-semihosting-config arg=...`, separated by spaces, up to the
/// buffer's length.
pub(crate) fn arguments(buffer: &mut [u8]) -> &str {
    buffer.fill(0);
    // SAFETY: the host writes at most so many bytes into the buffer, with a zero at the end.
    let failed = unsafe { cortex_m_semihosting::syscall!(GET_CMDLINE, buffer.as_mut_ptr(), buffer.len()) };
    let len = buffer.iter().position(|&byte| byte == 0).filter(|_| failed == 0).unwrap_or(0);
    str::from_utf8(&buffer[..len]).unwrap_or_default()
}
