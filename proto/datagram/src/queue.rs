//! Payloads that wait for the carrier: in order; where it is short, commands first, and the oldest telemetry dropped
//! first; and the carrier's bit rate. §20.9.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::header::Hint;
use crate::{Config, DatagramCounters, Priority};

/// Time for which payloads wait for the carrier in the order in which they came. A carrier that makes one wait for longer is
/// short.
const ORDERED_FOR: Duration = Duration::from_millis(100);
/// The same, with the time in which what came before was being signed.
const SIGNED_WITHIN: Duration = Duration::from_millis(500);

/// Payloads that were taken from the queue to be signed, and have not left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Time since which the oldest of these payloads waits.
    pub(crate) oldest: Option<Duration>,
    /// True while a payload is being signed.
    pub(crate) signing: bool,
    /// Time at which the last signature came.
    pub(crate) signed: Duration,
    /// True if there are no such payloads.
    pub(crate) nothing: bool,
}

/// A payload that waits, or several that were sealed under the former key before.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) at: Duration,
    /// Place in the order in which payloads came, of the first of several.
    pub(crate) order: u64,
    pub(crate) priority: Priority,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Epoch and number under which they were sealed before.
    pub(crate) before: Option<(Hint, u32)>,
}

impl Queued {
    /// A payload that was not sealed yet. The queue gives it its place.
    pub(crate) fn new(at: Duration, priority: Priority, payload: Vec<u8>) -> Self {
        Self { at, order: 0, priority, payloads: alloc::vec![payload], before: None }
    }

    /// Time since which it waits; `None` if it left once, and is only sealed again.
    pub(crate) fn waits_since(&self) -> Option<Duration> {
        self.before.is_none().then_some(self.at)
    }

    fn len(&self) -> usize {
        self.payloads.iter().map(Vec::len).sum()
    }

    fn count_dropped(&self, counters: &mut DatagramCounters) {
        let dropped = match self.priority {
            Priority::Telemetry => &mut counters.dropped_telemetry,
            Priority::Command => &mut counters.dropped_commands,
        };
        *dropped += self.payloads.len() as u64;
    }
}

/// A datagram that is sealed already, because its signature had to be waited for.
#[derive(Clone, Debug)]
pub(crate) struct SealedDatagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) counter: u32,
    /// Payloads of the datagram; `None` in a manifest.
    pub(crate) queued: Option<Queued>,
}

/// Queue of payloads that wait for the carrier, bounded in bytes.
///
/// Three queues, each in order. As long as the carrier is not short, they are emptied in the order of all three: receivers
/// that number what they get would otherwise count what was overtaken as lost.
#[derive(Debug, Default)]
pub(crate) struct PayloadQueue {
    /// Payloads to be signed, in order; commands and telemetry.
    signed: VecDeque<Queued>,
    commands: VecDeque<Queued>,
    telemetry: VecDeque<Queued>,
    bytes: usize,
    /// Number of payloads that ever came.
    came: u64,
    /// The carrier is short, until nothing waits: commands overtake telemetry.
    short: bool,
}

impl PayloadQueue {
    /// Adds something; makes room for it first.
    pub(crate) fn push(
        &mut self,
        config: &Config,
        counters: &mut DatagramCounters,
        mut queued: Queued,
        sign: bool,
    ) {
        let len = queued.len();
        if self.bytes + len > config.queue_bytes {
            self.short = true;
        }
        while self.bytes + len > config.queue_bytes && self.drop_one(counters, queued.priority) {}
        // An empty queue takes even a payload that is longer than it, because none would ever leave else.
        if self.bytes + len > config.queue_bytes && self.bytes > 0 {
            return queued.count_dropped(counters);
        }
        self.bytes += len;
        self.came += 1;
        queued.order = self.came;
        self.queue(sign, queued.priority).push_back(queued);
    }

    /// Puts back in front what was taken.
    pub(crate) fn push_front(&mut self, queued: Queued, sign: bool) {
        // The bound may be passed here: what was accepted once is not dropped for want of room.
        self.bytes += queued.len();
        self.queue(sign, queued.priority).push_front(queued);
    }

    fn queue(&mut self, sign: bool, priority: Priority) -> &mut VecDeque<Queued> {
        match (sign, priority) {
            (true, _) => &mut self.signed,
            (false, Priority::Command) => &mut self.commands,
            (false, Priority::Telemetry) => &mut self.telemetry,
        }
    }

    /// §20.9: notes whether the carrier is short.
    pub(crate) fn note_waits(&mut self, now: Duration, taken: Taken) {
        if taken.nothing && self.is_empty() {
            self.short = false;
        } else if self.ordered_until(taken).is_some_and(|until| until <= now) {
            self.short = true;
        }
    }

    /// Time at which the carrier counts as short if nothing leaves before.
    pub(crate) fn ordered_until(&self, taken: Taken) -> Option<Duration> {
        let queues = [&self.signed, &self.commands, &self.telemetry];
        let oldest = queues.into_iter().filter_map(|queue| queue.iter().find_map(Queued::waits_since));
        let oldest = oldest.chain(taken.oldest).min()?;
        let signed = oldest.saturating_add(SIGNED_WITHIN);
        if taken.signing {
            return Some(signed);
        }
        // The time for signatures does not count against the carrier.
        Some(oldest.max(taken.signed).saturating_add(ORDERED_FOR).min(signed))
    }

    /// Returns true if the carrier is short.
    pub(crate) const fn is_short(&self) -> bool {
        self.short
    }

    /// Place of the first payload that is to be signed.
    pub(crate) fn first_signed(&self) -> Option<u64> {
        self.signed.front().map(|queued| queued.order)
    }

    /// Place of the first payload that is not to be signed.
    pub(crate) fn first_unsigned(&self) -> Option<u64> {
        [&self.commands, &self.telemetry].into_iter().filter_map(|queue| Some(queue.front()?.order)).min()
    }

    /// §20.9: drops the oldest telemetry, or the oldest command for another command.
    fn drop_one(&mut self, counters: &mut DatagramCounters, newcomer: Priority) -> bool {
        let is_telemetry = |queued: &Queued| queued.priority == Priority::Telemetry;
        let signed = self.signed.iter().position(is_telemetry);
        let dropped = match (self.telemetry.pop_front(), signed) {
            (Some(dropped), _) => Some(dropped),
            (None, Some(place)) => self.signed.remove(place),
            // Telemetry never takes the place of a command.
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
    pub(crate) fn expire(&mut self, config: &Config, counters: &mut DatagramCounters, now: Duration) {
        let stale = |queued: &Queued| {
            queued.priority == Priority::Telemetry && queued.at.saturating_add(config.telemetry_for) <= now
        };
        // §20.9: telemetry that waited for a second is of no use any more.
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

    /// Takes what one signed datagram carries, as many payloads as `fits` accepts, by their lengths: those that nothing
    /// unsigned came between.
    pub(crate) fn take_signed(&mut self, fits: impl FnMut(&[usize]) -> bool) -> Option<Queued> {
        let first = self.first_signed()?;
        let behind =
            |queue: &VecDeque<Queued>| queue.iter().map(|queued| queued.order).find(|order| *order > first);
        let between = [behind(&self.commands), behind(&self.telemetry)].into_iter().flatten().min();
        let limit = between.filter(|_| !self.short).unwrap_or(u64::MAX);
        // A signature costs more bytes than stale telemetry.
        self.take(fits, |queue| &mut queue.signed, limit, true)
    }

    /// Takes what one unsigned datagram carries. `signed`: place of the first signed payload that was taken and has not
    /// left. In order, unless the carrier is short: then commands first.
    pub(crate) fn take_unsigned(
        &mut self,
        signed: Option<u64>,
        fits: impl FnMut(&[usize]) -> bool,
    ) -> Option<Queued> {
        // §20.9: where the carrier is short, commands go before telemetry.
        if self.short && !self.commands.is_empty() {
            return self.take(fits, |queue| &mut queue.commands, u64::MAX, false);
        }
        if self.short {
            return self.take(fits, |queue| &mut queue.telemetry, u64::MAX, false);
        }
        // §20.9: what follows a payload that is being signed waits for it, so that order is kept.
        let limit = signed.into_iter().chain(self.first_signed()).min().unwrap_or(u64::MAX);
        self.take(fits, Self::first_of_unsigned, limit, false)
    }

    /// The queue of unsigned payloads whose first came first.
    fn first_of_unsigned(&mut self) -> &mut VecDeque<Queued> {
        let order = |queue: &VecDeque<Queued>| queue.front().map_or(u64::MAX, |queued| queued.order);
        if order(&self.commands) < order(&self.telemetry) { &mut self.commands } else { &mut self.telemetry }
    }

    /// Takes from the front of the queue that `of` names, as many payloads as `fits` accepts, by their lengths, and that
    /// came before `limit`. Commands and telemetry together only if `mixed`: commands are sealed again when a key follows soon,
    /// and telemetry, which is stale by then, should not be with them.
    fn take(
        &mut self,
        mut fits: impl FnMut(&[usize]) -> bool,
        of: fn(&mut Self) -> &mut VecDeque<Queued>,
        limit: u64,
        mixed: bool,
    ) -> Option<Queued> {
        of(self).front().filter(|first| first.order < limit)?;
        let mut taken = of(self).pop_front()?;
        let mut lens: Vec<usize> = taken.payloads.iter().map(Vec::len).collect();
        // A payload that was sealed before stays alone: its receivers tell it by its number.
        while taken.before.is_none()
            && let Some(next) = of(self).front().filter(|next| next.before.is_none() && next.order < limit)
            && (mixed || next.priority == taken.priority)
        {
            let before = lens.len();
            lens.extend(next.payloads.iter().map(Vec::len));
            if !fits(&lens) {
                lens.truncate(before);
                break;
            }
            let Some(next) = of(self).pop_front() else { break };
            taken.priority = taken.priority.max(next.priority);
            taken.payloads.extend(next.payloads);
        }
        self.bytes -= lens.iter().sum::<usize>();
        Some(taken)
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, counters: &mut DatagramCounters) {
        for queue in [&self.signed, &self.commands, &self.telemetry] {
            queue.iter().for_each(|queued| queued.count_dropped(counters));
        }
        *self = Self { came: self.came, ..Self::default() };
    }

    pub(crate) fn has_unsigned(&self) -> bool {
        !self.commands.is_empty() || !self.telemetry.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_unsigned() && self.signed.is_empty()
    }

    /// Time at which the oldest telemetry becomes too old.
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
        // The bucket may go into debt by one datagram, so that one longer than the burst can leave.
        self.full.saturating_sub(Self::time(config, config.burst))
    }

    /// A datagram leaves.
    pub(crate) fn spend(&mut self, config: &Config, now: Duration, bytes: usize) {
        self.full = self.full.max(now).saturating_add(Self::time(config, bytes + config.framing));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A payload that says what it is.
    fn payload(number: u8, priority: Priority) -> Queued {
        Queued::new(Duration::ZERO, priority, alloc::vec![number; 10])
    }

    fn numbers(taken: &Queued) -> Vec<u8> {
        taken.payloads.iter().map(|payload| payload[0]).collect()
    }

    proptest! {
        /// However pushes, signatures and departures alternate: what leaves is in order.
        #[test]
        fn nothing_overtakes_on_a_carrier_that_is_not_short(
            steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0..4_u8), 1..200),
        ) {
            let (config, mut counters) = (Config::default(), DatagramCounters::default());
            let (mut queue, mut left) = (PayloadQueue::default(), Vec::new());
            // Taken to be signed: one at a time, and whether it is signed by now.
            let mut signing: Option<(Queued, bool)> = None;
            let fits = |lens: &[usize]| lens.len() <= 3;
            let mut step = |queue: &mut PayloadQueue, action| match action {
                0 => {
                    let signed = signing.as_ref().map(|(queued, _)| queued.order);
                    left.extend(queue.take_unsigned(signed, fits).iter().flat_map(numbers));
                }
                1 if signing.is_none() => signing = queue.take_signed(fits).map(|queued| (queued, false)),
                2 => if let Some((_, done)) = &mut signing { *done = true },
                3 => {
                    let first = queue.first_unsigned().unwrap_or(u64::MAX);
                    let goes = signing.take_if(|(queued, done)| *done && queued.order < first);
                    left.extend(goes.iter().flat_map(|(queued, _)| numbers(queued)));
                }
                _ => {}
            };
            let total = steps.len();
            for (number, (sign, is_command, action)) in (0..).zip(steps) {
                let priority = if is_command { Priority::Command } else { Priority::Telemetry };
                queue.push(&config, &mut counters, payload(number, priority), sign);
                step(&mut queue, action);
            }
            // Nothing waits for ever either.
            for action in (0..4).cycle().take(8 * total) {
                step(&mut queue, action);
            }
            prop_assert_eq!(left, (0..).take(total).collect::<Vec<u8>>());
            prop_assert!(queue.is_empty() && queue.bytes == 0);
        }
    }

    #[test]
    fn carrier_is_short_once_something_waited_or_was_dropped_until_nothing_waits() {
        let (config, mut counters) =
            (Config { queue_bytes: 40, ..Config::default() }, DatagramCounters::default());
        let mut queue = PayloadQueue::default();
        let mut push = |queue: &mut PayloadQueue, number, priority| {
            queue.push(&config, &mut counters, payload(number, priority), false);
        };
        push(&mut queue, 1, Priority::Telemetry);
        push(&mut queue, 2, Priority::Command);
        let nothing = Taken { nothing: true, ..Taken::default() };
        queue.note_waits(ORDERED_FOR - Duration::from_millis(1), nothing);
        assert!(!queue.is_short());
        let signing = Taken { signing: true, ..Taken::default() };
        queue.note_waits(ORDERED_FOR, signing);
        queue.note_waits(ORDERED_FOR * 2, Taken { signed: ORDERED_FOR * 2, ..Taken::default() });
        assert!(!queue.is_short(), "what came before was being signed");
        queue.note_waits(ORDERED_FOR, nothing);
        assert!(queue.is_short());
        let mut taken = || numbers(&queue.take_unsigned(None, |_| false).unwrap());
        assert_eq!([taken(), taken()], [[2], [1]]);
        queue.note_waits(ORDERED_FOR, Taken { oldest: Some(ORDERED_FOR), ..signing });
        assert!(queue.is_short(), "something is being signed");
        queue.note_waits(ORDERED_FOR, nothing);
        assert!(!queue.is_short());
        for number in 0..5 {
            push(&mut queue, number, if number == 4 { Priority::Command } else { Priority::Telemetry });
        }
        assert!(queue.is_short(), "one was dropped");
        assert_eq!(numbers(&queue.take_unsigned(None, |_| false).unwrap()), [4]);
    }
}
