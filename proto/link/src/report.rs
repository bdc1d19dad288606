//! Counters that a board reports.

use alloc::vec::Vec;
use core::fmt;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Count that a board keeps. New ones are added at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Counter {
            $($(#[$doc])* $name,)*
        }

        impl Counter {
            /// All, in the order in which a report carries them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Name of the counter in logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

counters! {
    /// Seconds since the start.
    Uptime = "uptime_s",
    /// Starts of the board, if it remembers them.
    Starts = "starts",
    /// Starts after the watchdog bit.
    WatchdogResets = "watchdog_resets",
    /// Starts after the supply failed.
    BrownOuts = "brown_outs",
    /// Frames or datagrams longer than allowed.
    TooLong = "too_long",
    /// Frames with a wrong check sum or broken framing.
    BadFrames = "bad_frames",
    /// Frames of another version.
    WrongVersion = "wrong_version",
    /// Datagrams or messages of the link that are none.
    Malformed = "malformed",
    /// Messages of the protocol that were refused: unknown, foreign, invalid.
    Offences = "offences",
    /// Link messages that the gateway has taken.
    Sent = "sent",
    /// Link messages received.
    Received = "received",
    /// Fragments sent again.
    Repeated = "repeated",
    /// Link messages given up.
    GivenUp = "given_up",
    /// Link messages dropped because too many were waiting.
    Dropped = "dropped",
    /// Sessions with a gateway that ended.
    SessionsLost = "sessions_lost",
    /// Stored state that was damaged.
    StateDamaged = "state_damaged",
    /// Writes to flash that failed.
    FlashFailures = "flash_failures",
    /// Writes that found no room in flash.
    FlashFull = "flash_full",
    /// Failures of the source of randomness.
    RandomFailures = "random_failures",
    /// Most bytes of heap used.
    HeapPeak = "heap_peak",
    /// Most bytes of stack used.
    StackPeak = "stack_peak",
    /// Warnings that the supply is low.
    SupplyWarnings = "supply_warnings",
    /// Times that received bytes were lost because the buffer was full.
    Overruns = "overruns",
    /// Envelopes that do not hold although a key of the board's fits.
    BadEnvelopes = "bad_envelopes",
}

/// Counters that a report may carry; a later version may have more than this one knows.
const MAX_COUNTERS: usize = 64;

/// Counters of a board since its start. Four bytes each when encoded; beyond 2^32 - 1 a counter stays there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardReport([u32; Counter::ALL.len()]);

impl Default for BoardReport {
    fn default() -> Self {
        Self([0; Counter::ALL.len()])
    }
}

impl BoardReport {
    /// One of the counters.
    pub fn value(&self, counter: Counter) -> u32 {
        self.0.get(counter as usize).copied().unwrap_or(0)
    }

    /// Sets a counter.
    pub fn set(&mut self, counter: Counter, value: u64) {
        if let Some(place) = self.0.get_mut(counter as usize) {
            *place = u32::try_from(value).unwrap_or(u32::MAX);
        }
    }

    /// Counts one more.
    pub fn add(&mut self, counter: Counter) {
        self.set(counter, u64::from(self.value(counter)) + 1);
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        self.0.iter().for_each(|value| {
            writer.u32(*value);
        });
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bytes = reader.take(reader.remaining())?;
        let (values, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() || values.len() > MAX_COUNTERS {
            return Err(Malformed("report"));
        }
        let mut report = Self::default();
        report.0.iter_mut().zip(values).for_each(|(place, value)| *place = u32::from_be_bytes(*value));
        Ok(report)
    }
}

/// Name and value of every counter that is not 0.
impl fmt::Display for BoardReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted: Vec<_> = Counter::ALL.iter().filter(|counter| self.value(**counter) != 0).collect();
        for (place, counter) in counted.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{}={}", counter.name(), self.value(**counter))?;
        }
        Ok(())
    }
}
