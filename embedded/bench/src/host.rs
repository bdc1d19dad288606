//! Interface of a target.

use core::ops::ControlFlow;
use core::time::Duration;

/// Description of the target in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About<'a> {
    /// The board: `nrf52840dk`, `mps2-an386`, `native`.
    pub board: &'a str,
    /// The processor.
    pub mcu: &'a str,
}

/// Interface of a target: clock, counters, and yielding.
pub trait BenchTarget {
    /// The time since an arbitrary start; never goes back. As fine as the target can: figures are
    /// microseconds.
    fn now(&mut self) -> Duration;

    /// The instructions executed since an arbitrary start, where the target counts them.
    fn instructions(&mut self) -> Option<u64> {
        None
    }

    /// Bytes that the heap has left, where the target knows.
    fn free_heap(&mut self) -> Option<usize> {
        None
    }

    /// Resets the memory peaks: from here on [`peaks`](Self::peaks) are what is used on top of now.
    fn watch_memory(&mut self) {}

    /// The peaks since [`watch_memory`](Self::watch_memory).
    fn peaks(&mut self) -> Peaks {
        Peaks::default()
    }

    /// Called between iterations, never within one: feeds the watchdog and lets other tasks go on. An
    /// iteration may take seconds. [`ControlFlow::Break`] ends the benchmark, whose figures so far are then
    /// written.
    fn pause(&mut self) -> impl Future<Output = ControlFlow<()>>;
}

/// Peak memory in bytes, where the target measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Heap.
    pub heap: Option<usize>,
    /// Stack.
    pub stack: Option<usize>,
}
