//! Hooks: what the node asks of a board besides its devices.

/// Watchdog, LEDs, button, reset, and how much memory was used.
#[expect(async_fn_in_trait, reason = "the node runs on one thread and needs no `Send`")]
pub trait Hooks {
    /// Feeds the watchdog. Called at least once a second by the loop that makes progress, and between the
    /// steps of what takes longer; a watchdog of 8 s has room for the longest single operation.
    fn alive(&mut self);

    /// Indicates the node's state, for example by LEDs. Called whenever that changes.
    fn indicate(&mut self, state: IndicatorState);

    /// Memory used so far.
    fn memory(&self) -> Memory;

    /// Counters of faults since the start.
    fn fault_counters(&self) -> FaultCounters {
        FaultCounters::default()
    }

    /// Waits until the operator has held the button that wipes all keys. Never ready on a board without one.
    ///
    /// Cancel-safe: called anew after every other event.
    async fn wipe_button(&mut self) {
        core::future::pending::<()>().await;
    }

    /// Runs a line of the console that begins with `bench`, and writes what it finds. An image without
    /// benchmarks says so.
    async fn bench(&mut self, _line: &str, out: &mut dyn core::fmt::Write) {
        // Output that cannot be written is dropped.
        let _ = out.write_str("error no benchmarks in this image\n");
    }

    /// Starts the board anew.
    async fn reset(&mut self) -> !;
}

/// State of the node, as its LEDs indicate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndicatorState {
    /// No deployment and no token yet.
    Unprovisioned,
    /// The gateway does not answer.
    NoGateway,
    /// Waiting for a key from the KGC.
    Enrolling,
    /// Waiting to be let into the group, or to catch up with it.
    Joining,
    /// Synced with the group.
    Member,
    /// Synced with the group as far as it knows, but no leader has answered lately.
    NoLeader,
    /// Randomness or flash fail: no cryptography is done until it is mended.
    Fault,
}

/// Counters of the board's own faults since the start. Counters stay at their greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Warnings that the supply is low.
    pub supply_warnings: u32,
    /// Times that received bytes were lost because the receive buffer was full.
    pub overruns: u32,
}

/// Memory used, in bytes; `None` where a board does not measure it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Heap in use now.
    pub heap: Option<u32>,
    /// The most heap that was ever in use.
    pub heap_peak: Option<u32>,
    /// Bytes the heap has in all.
    pub heap_size: Option<u32>,
    /// The deepest that the stack ever was.
    pub stack_peak: Option<u32>,
    /// Bytes the stack may have.
    pub stack_size: Option<u32>,
}
