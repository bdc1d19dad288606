//! The shell on a host.

extern crate std;

use core::fmt::Write;
use core::future::{Future, ready};
use core::ops::ControlFlow;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::time::Instant;

use crate::error::Result;
use crate::{About, BenchTarget};

/// A host: a clock, and time enough.
#[derive(Clone, Copy, Debug)]
pub struct Native {
    start: Instant,
}

impl Native {
    /// Description of this host in the output.
    pub const ABOUT: About<'static> = About { board: "native", mcu: std::env::consts::ARCH };

    /// The clock starts.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "reads the clock, so that two are not the same")]
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl BenchTarget for Native {
    fn now(&mut self) -> Duration {
        self.start.elapsed()
    }

    fn pause(&mut self) -> impl Future<Output = ControlFlow<()>> {
        ready(ControlFlow::Continue(()))
    }
}

/// Runs benchmarks, as [`run`](crate::run) does, on this host.
///
/// # Errors
/// As [`run`](crate::run).
pub fn run(line: &str, out: &mut dyn Write) -> Result<()> {
    wait_for(crate::run(line, &Native::ABOUT, &mut Native::new(), out))
}

/// Polls a future until it is ready: for hosts whose [`BenchTarget::pause`] waits for nothing.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}
