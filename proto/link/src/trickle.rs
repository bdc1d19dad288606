//! Timer to repeat messages that others may lack: the Trickle algorithm (RFC 6206).
//!
//! Many who have the same message repeat it about as often as the few who are needed: each waits for a random
//! time in the second half of an interval, counts who else repeats it meanwhile, and keeps silent if these were
//! enough. Intervals double. Names are those of the RFC, numbers of rules those of its section 4.2.

use core::time::Duration;

use crate::LinkError;

/// Parameters of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrickleConfig {
    imin: Duration,
    doublings: u8,
    k: u8,
}

impl TrickleConfig {
    /// The shortest first interval, and the longest of any.
    pub const BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(86_400));

    /// The first interval `imin`, how often it doubles at most (Imax is `imin` · 2^`doublings`), and the
    /// number `k` of others after which one keeps silent.
    ///
    /// # Errors
    /// [`LinkError::InvalidTrickle`]: Imin of less than a millisecond, Imax of more than a day, k of 0.
    pub fn new(imin: Duration, doublings: u8, k: u8) -> Result<Self, LinkError> {
        let (shortest, longest) = Self::BOUNDS;
        let imax = 1u32.checked_shl(doublings.into()).and_then(|factor| imin.checked_mul(factor));
        let fits = imin >= shortest && imax.is_some_and(|imax| imax <= longest) && k > 0;
        if fits { Ok(Self { imin, doublings, k }) } else { Err(LinkError::InvalidTrickle) }
    }

    /// The first interval.
    pub fn imin(&self) -> Duration {
        self.imin
    }

    /// The longest interval.
    pub fn imax(&self) -> Duration {
        self.imin.saturating_mul(1 << self.doublings)
    }

    /// Number of others after which one keeps silent.
    pub fn k(&self) -> u8 {
        self.k
    }
}

/// The timer of one message at one node. Time and randomness are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trickle {
    config: TrickleConfig,
    /// Interval, I of the RFC.
    interval: Duration,
    ends: Duration,
    /// t, until it has come.
    transmits: Option<Duration>,
    /// c.
    heard: u8,
}

impl Trickle {
    /// Begins with the interval Imin: what is to be repeated is new (rule 1). `random` is uniform.
    pub fn new(config: TrickleConfig, now: Duration, random: u64) -> Self {
        let mut trickle = Self { config, interval: config.imin, ends: now, transmits: None, heard: 0 };
        trickle.begin(now, random);
        trickle
    }

    /// Rule 2: c = 0, and t in [I/2, I).
    fn begin(&mut self, now: Duration, random: u64) {
        let half = u64::try_from((self.interval / 2).as_nanos()).unwrap_or(u64::MAX);
        let within = (u128::from(half) * u128::from(random)) >> 64;
        self.heard = 0;
        self.ends = now.saturating_add(self.interval);
        let after = (self.interval - Duration::from_nanos(half)) + Duration::from_nanos(within as u64);
        // An odd number of nanoseconds has its halves rounded.
        self.transmits = Some(now.saturating_add(after));
    }

    /// Somebody repeated the same (rule 3).
    pub fn handle_consistent(&mut self) {
        // Saturates, because a flood of repeats must not make the count small again.
        self.heard = self.heard.saturating_add(1);
    }

    /// Somebody was heard who lacks it: begins again with Imin, unless the interval is that already (rule 6).
    pub fn handle_inconsistent(&mut self, now: Duration, random: u64) {
        // RFC 6206, 4.2, rule 6: an interval that is Imin already is not begun anew, or a flood would keep it
        // from ever ending.
        if self.interval > self.config.imin {
            self.interval = self.config.imin;
            self.begin(now, random);
        }
    }

    /// Returns true if fewer than k others were heard in this interval.
    pub fn is_needed(&self) -> bool {
        self.heard < self.config.k
    }

    /// The interval in force, I.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Time at which [`Trickle::handle_timeout`] is to be called next.
    pub fn timeout(&self) -> Duration {
        self.transmits.unwrap_or(self.ends)
    }

    /// Says whether to transmit (rule 4), and begins the next interval if this one is over, twice as long, up
    /// to Imax (rule 5). A late call has nothing to catch up: the interval begins when it is made.
    pub fn handle_timeout(&mut self, now: Duration, random: u64) -> TrickleStep {
        let due = self.transmits.is_some_and(|at| at <= now);
        // RFC 6206, 4.2, rule 4: only if fewer than k others were heard.
        let transmit = due && self.is_needed();
        if due {
            self.transmits = None;
        }
        let expired = self.transmits.is_none() && self.ends <= now;
        if expired {
            // RFC 6206, 4.2, rule 5: intervals double, so that a settled network grows quiet.
            self.interval = self.interval.saturating_mul(2).min(self.config.imax());
            self.begin(now, random);
        }
        TrickleStep { transmit, expired }
    }
}

/// Result of a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrickleStep {
    /// Transmit now.
    pub transmit: bool,
    /// An interval is over, and the next has begun.
    pub expired: bool,
}
