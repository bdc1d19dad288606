//! Counts the most memory that an operation holds, by the process's allocator.

use std::alloc::GlobalAlloc;

use peakmem_alloc::{PeakMemAlloc, PeakMemAllocTrait as _};

/// An allocator that counts.
pub trait Heap {
    /// Counts anew: memory held now counts as zero.
    fn reset(&self);

    /// The most bytes that all threads together have held at a time since, beyond what they held then.
    fn peak(&self) -> usize;
}

impl<A: GlobalAlloc> Heap for PeakMemAlloc<A> {
    fn reset(&self) {
        self.reset_peak_memory();
    }

    fn peak(&self) -> usize {
        self.get_peak_memory()
    }
}
