//! The heap with its peak, and how deep the stack has ever been.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use embedded_alloc::LlffHeap;

/// Value with which `cortex-m-rt` fills the stack before anything runs.
const PAINT: u32 = 0xCCCC_CCCC;

#[expect(unsafe_code, reason = "symbols of the linker script")]
mod symbols {
    // SAFETY: only their addresses are used; `memory.x` and `link.x` define them.
    unsafe extern "C" {
        pub(super) static __sheap: u8;
        pub(super) static _ram_end: u8;
        pub(super) static _stack_start: u8;
        pub(super) static _stack_end: u8;
        pub(super) static _state_start: u8;
        pub(super) static _state_end: u8;
    }
}

macro_rules! address_of {
    ($symbol:ident) => {
        (&raw const symbols::$symbol) as usize
    };
}

/// The heap, and the most that was ever taken from it.
struct Counted {
    heap: LlffHeap,
    used: AtomicU32,
    peak: AtomicU32,
}

#[global_allocator]
static HEAP: Counted = Counted { heap: LlffHeap::empty(), used: AtomicU32::new(0), peak: AtomicU32::new(0) };

#[expect(unsafe_code, reason = "an allocator")]
// SAFETY: every call is handed on unchanged.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        let block = unsafe { self.heap.alloc(layout) };
        if !block.is_null() {
            let size = layout.size() as u32;
            let used = self.used.fetch_add(size, Ordering::Relaxed) + size;
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { self.heap.dealloc(block, layout) };
        self.used.fetch_sub(layout.size() as u32, Ordering::Relaxed);
    }
}

/// Opens the heap: all of RAM that stack and variables leave. Call it before anything is allocated; later
/// calls do nothing.
pub fn start() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if !STARTED.swap(true, Ordering::Relaxed) {
        #[expect(unsafe_code, reason = "the heap's place in memory is the linker's word")]
        // SAFETY: nothing else lies between `__sheap` and the end of RAM, as the stack is below the
        // variables, and this runs once.
        unsafe {
            HEAP.heap.init(address_of!(__sheap), heap_size());
        }
    }
}

fn heap_size() -> usize {
    address_of!(_ram_end) - address_of!(__sheap)
}

/// Bytes of heap and stack.
#[must_use]
pub fn figures() -> quiver_firmware::Memory {
    quiver_firmware::Memory {
        heap: Some(HEAP.used.load(Ordering::Relaxed)),
        heap_peak: Some(HEAP.peak.load(Ordering::Relaxed)),
        heap_size: Some(heap_size() as u32),
        stack_peak: Some(stack_peak()),
        stack_size: Some((address_of!(_stack_start) - address_of!(_stack_end)) as u32),
    }
}

/// Bytes of the stack that are painted no longer.
fn stack_peak() -> u32 {
    let (low, high) = (address_of!(_stack_end), address_of!(_stack_start));
    let mut at = low;
    while at < high {
        #[expect(unsafe_code, reason = "reads the part of the stack that is not in use")]
        // SAFETY: an aligned word of the stack's own memory, to which no reference exists; volatile, as
        // interrupts may write to it.
        let word = unsafe { core::ptr::read_volatile(at as *const u32) };
        if word != PAINT {
            break;
        }
        at += 4;
    }
    (high - at) as u32
}

/// The bytes of flash from and to which the state lies.
#[must_use]
pub fn state() -> (u32, u32) {
    (address_of!(_state_start) as u32, address_of!(_state_end) as u32)
}
