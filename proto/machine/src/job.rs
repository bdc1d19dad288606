//! Work that a machine lets its driver do elsewhere.

use alloc::boxed::Box;
use core::any::Any;

/// A piece of a machine's work that takes long: it contains all its inputs, its randomness included, so that
/// the result does not depend on the thread or the time.
#[derive(derive_more::Debug)]
#[debug("Job(..)")]
pub struct Job(Box<dyn FnOnce() -> FinishedJob + Send + Sync>);

impl Job {
    /// Work that the driver may do on another thread.
    pub fn new<T: Send + 'static>(work: impl FnOnce() -> T + Send + Sync + 'static) -> Self {
        Self(Box::new(move || FinishedJob(Box::new(work()))))
    }

    /// Does it.
    #[must_use]
    pub fn run(self) -> FinishedJob {
        (self.0)()
    }
}

/// Result of a [`Job`], to be returned to its machine.
#[derive(derive_more::Debug)]
#[debug("FinishedJob(..)")]
pub struct FinishedJob(Box<dyn Any + Send>);

impl FinishedJob {
    /// The result, if it is of this type.
    pub fn open<T: 'static>(self) -> Option<T> {
        self.0.downcast().ok().map(|done| *done)
    }
}
