//! Payloads that wait for the carrier: commands first, the oldest telemetry dropped first; and the carrier's
//! bit rate. §20.9.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::header::Hint;
use crate::{Config, Counters, Priority};

/// A payload that waits, or several that were sealed under the former key before.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) at: Duration,
    pub(crate) priority: Priority,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Epoch and number under which they were sealed before.
    pub(crate) before: Option<(Hint, u32)>,
}

impl Queued {
    fn len(&self) -> usize {
        self.payloads.iter().map(Vec::len).sum()
    }

    fn count_dropped(&self, counters: &mut Counters) {
        let dropped = match self.priority {
            Priority::Telemetry => &mut counters.dropped_telemetry,
            Priority::Command => &mut counters.dropped_commands,
        };
        *dropped += self.payloads.len() as u64;
    }
}

/// A datagram that is sealed already, because its signature had to be waited for.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) counter: u32,
    /// Its payloads; `None` in a manifest.
    pub(crate) queued: Option<Queued>,
}

/// What waits for the carrier, bounded in bytes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// To be signed, in order; commands and telemetry.
    signed: VecDeque<Queued>,
    commands: VecDeque<Queued>,
    telemetry: VecDeque<Queued>,
    bytes: usize,
}

impl Queue {
    /// Adds something; makes room for it first.
    pub(crate) fn push(&mut self, config: &Config, counters: &mut Counters, queued: Queued, sign: bool) {
        let len = queued.len();
        while self.bytes + len > config.queue_bytes && self.drop_one(counters, queued.priority) {}
        if self.bytes + len > config.queue_bytes && self.bytes > 0 {
            return queued.count_dropped(counters);
        }
        self.bytes += len;
        match (sign, queued.priority) {
            (true, _) => self.signed.push_back(queued),
            (false, Priority::Command) => self.commands.push_back(queued),
            (false, Priority::Telemetry) => self.telemetry.push_back(queued),
        }
    }

    /// Puts back in front what was taken.
    pub(crate) fn push_front(&mut self, queued: Queued, sign: bool) {
        self.bytes += queued.len();
        match (sign, queued.priority) {
            (true, _) => self.signed.push_front(queued),
            (false, Priority::Command) => self.commands.push_front(queued),
            (false, Priority::Telemetry) => self.telemetry.push_front(queued),
        }
    }

    /// §20.9: drops the oldest telemetry, or the oldest command for another command.
    fn drop_one(&mut self, counters: &mut Counters, newcomer: Priority) -> bool {
        let is_telemetry = |queued: &Queued| queued.priority == Priority::Telemetry;
        let signed = self.signed.iter().position(is_telemetry);
        let dropped = match (self.telemetry.pop_front(), signed) {
            (Some(dropped), _) => Some(dropped),
            (None, Some(place)) => self.signed.remove(place),
            (None, None) if newcomer == Priority::Telemetry => None,
            (None, None) => self.commands.pop_front().or_else(|| self.signed.pop_front()),
        };
        if let Some(dropped) = &dropped {
            self.bytes -= dropped.len();
            dropped.count_dropped(counters);
        }
        dropped.is_some()
    }

    /// Drops telemetry that waited for too long.
    pub(crate) fn expire(&mut self, config: &Config, counters: &mut Counters, now: Duration) {
        let stale = |queued: &Queued| {
            queued.priority == Priority::Telemetry && queued.at.saturating_add(config.telemetry_for) <= now
        };
        let mut bytes = 0;
        for queue in [&mut self.telemetry, &mut self.signed] {
            queue.retain(|queued| {
                let keep = !stale(queued);
                if !keep {
                    bytes += queued.len();
                    queued.count_dropped(counters);
                }
                keep
            });
        }
        self.bytes -= bytes;
    }

    /// Takes what one datagram carries, as many payloads as `fits` accepts, by their lengths.
    pub(crate) fn take(&mut self, sign: bool, mut fits: impl FnMut(&[usize]) -> bool) -> Option<Queued> {
        let queue = match (sign, self.commands.is_empty()) {
            (true, _) => &mut self.signed,
            (false, false) => &mut self.commands,
            (false, true) => &mut self.telemetry,
        };
        let mut taken = queue.pop_front()?;
        let mut lens: Vec<usize> = taken.payloads.iter().map(Vec::len).collect();
        // What was sealed before stays alone: its receivers tell it by its number.
        while taken.before.is_none()
            && let Some(next) = queue.front().filter(|next| next.before.is_none())
        {
            let before = lens.len();
            lens.extend(next.payloads.iter().map(Vec::len));
            if !fits(&lens) {
                lens.truncate(before);
                break;
            }
            let Some(next) = queue.pop_front() else { break };
            taken.priority = taken.priority.max(next.priority);
            taken.payloads.extend(next.payloads);
        }
        self.bytes -= lens.iter().sum::<usize>();
        Some(taken)
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, counters: &mut Counters) {
        for queue in [&self.signed, &self.commands, &self.telemetry] {
            queue.iter().for_each(|queued| queued.count_dropped(counters));
        }
        *self = Self::default();
    }

    pub(crate) fn has_unsigned(&self) -> bool {
        !self.commands.is_empty() || !self.telemetry.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_unsigned() && self.signed.is_empty()
    }

    /// When the oldest telemetry becomes too old.
    pub(crate) fn deadline(&self, config: &Config) -> Option<Duration> {
        let telemetry = self.telemetry.front().map(|queued| queued.at);
        let signed = self.signed.iter().find(|queued| queued.priority == Priority::Telemetry);
        let oldest = telemetry.into_iter().chain(signed.map(|queued| queued.at)).min()?;
        Some(oldest.saturating_add(config.telemetry_for))
    }
}

/// A token bucket for the carrier's bit rate.
#[derive(Debug, Default)]
pub(crate) struct Shaper {
    /// Time at which the bucket is full again.
    full: Duration,
}

impl Shaper {
    fn time(config: &Config, bytes: usize) -> Duration {
        let Some(rate) = config.bit_rate else { return Duration::ZERO };
        let nanos = (bytes as u128 * 8 * 1_000_000_000) / u128::from(rate.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Earliest time at which a datagram may leave: as soon as the bucket has anything in it.
    pub(crate) fn ready(&self, config: &Config) -> Duration {
        self.full.saturating_sub(Self::time(config, config.burst))
    }

    /// A datagram leaves.
    pub(crate) fn spend(&mut self, config: &Config, now: Duration, bytes: usize) {
        self.full = self.full.max(now).saturating_add(Self::time(config, bytes + config.framing));
    }
}
