//! Counts the heap that the board uses, apart from everything else in the process.

use std::alloc::System;
use std::cell::Cell;

use cap::Cap;

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static SINCE: Cell<i64> = const { Cell::new(0) };
}

fn now() -> i64 {
    HEAP.allocated() as i64
}

/// Counts the allocations of the board's work.
pub(crate) fn board<T>(work: impl FnOnce() -> T) -> T {
    SINCE.set(now());
    let done = work();
    HELD.set(HELD.get() + now() - SINCE.get());
    done
}

/// Suspends counting meanwhile.
pub(crate) fn pause<T>(work: impl FnOnce() -> T) -> T {
    HELD.set(HELD.get() + now() - SINCE.get());
    let done = work();
    SINCE.set(now());
    done
}

/// The board has lost power, and its memory with it.
pub(crate) fn forget() {
    HELD.set(0);
}

/// Bytes in use.
pub(crate) fn held() -> i64 {
    HELD.get()
}
