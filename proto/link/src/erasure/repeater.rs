//! Repeats coded broadcasts: a member that has one sends its frames again, for those who do not hear the
//! leader.
//!
//! Each message has a [`Trickle`] timer for a few intervals, as each data message of MPL has (RFC 7731,
//! section 5.3). An attacker that wants members to keep silent could send a frame or two and be counted for a
//! repetition; so one is counted only when as many different frames as make the message came from one
//! address, byte for byte those of the message, which members can tell because they have it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CodedFrame, code_broadcast};
use crate::LinkError;
use crate::trickle::{Trickle, TrickleConfig};

/// Limits of a [`Repeater`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeaterLimits {
    /// The timers.
    pub trickle: TrickleConfig,
    /// Intervals after which a message is repeated no more.
    pub intervals: u8,
    /// Messages that are repeated at once; beyond, the oldest is dropped.
    pub messages: usize,
    /// Others that are told apart in an interval; beyond, the one that began first is dropped.
    pub sources: usize,
}

impl RepeaterLimits {
    /// Four messages, three intervals, 16 others.
    pub const fn new(trickle: TrickleConfig) -> Self {
        Self { trickle, intervals: 3, messages: 4, sources: 16 }
    }
}

/// Repeats messages to which nothing secret belongs.
#[derive(Debug)]
pub struct Repeater {
    limits: RepeaterLimits,
    messages: VecDeque<Repeated>,
}

#[derive(Debug)]
struct Repeated {
    /// Data first.
    frames: Vec<Vec<u8>>,
    data: usize,
    trickle: Trickle,
    intervals: u8,
    /// The time has come, and the medium has not been free since.
    due: bool,
    /// Addresses of the others that repeat it, and the frames that came in this interval.
    others: VecDeque<(u64, [bool; 256])>,
}

impl Repeater {
    /// Repeats nothing.
    pub fn new(limits: RepeaterLimits) -> Self {
        Self { limits, messages: VecDeque::new() }
    }

    /// Repeats a message from now on, in frames of at most `mtu` bytes with `parity` more than its data, as
    /// [`code_broadcast`] makes them. Ignores one that is being repeated. `random` is uniform.
    ///
    /// # Errors
    /// As [`code_broadcast`].
    pub fn repeat(
        &mut self,
        now: Duration,
        message: &[u8],
        (mtu, parity): (usize, usize),
        random: u64,
    ) -> Result<(), LinkError> {
        let frames = code_broadcast(message, mtu, |_| parity)?;
        // A message comes over several ways; its timer begins once.
        if self.messages.iter().any(|repeated| repeated.frames.first() == frames.first()) {
            return Ok(());
        }
        if self.messages.len() >= self.limits.messages.max(1) {
            self.messages.pop_front();
        }
        let data =
            frames.first().and_then(|frame| CodedFrame::decode(frame).ok()).map_or(0, |frame| frame.data());
        let trickle = Trickle::new(self.limits.trickle, now, random);
        let others = VecDeque::new();
        self.messages.push_back(Repeated { frames, data, trickle, intervals: 0, due: false, others });
        Ok(())
    }

    /// Notes a frame that came from `source`, as it claims.
    pub fn handle_frame(&mut self, source: u64, bytes: &[u8]) {
        let Ok(frame) = CodedFrame::decode(bytes) else { return };
        let index = usize::from(frame.index);
        // Byte for byte: a forged frame counts for no repetition.
        let is_of = |repeated: &&mut Repeated| repeated.frames.get(index).is_some_and(|own| own == bytes);
        if let Some(repeated) = self.messages.iter_mut().find(is_of) {
            repeated.note(source, index, self.limits.sources);
        }
    }

    /// Time at which [`Repeater::handle_timeout`] is to be called next; `None`: not before another message.
    pub fn timeout(&self) -> Option<Duration> {
        self.messages.iter().map(|repeated| repeated.trickle.timeout()).min()
    }

    /// Lets timers expire. `random` gives uniform numbers.
    pub fn handle_timeout(&mut self, now: Duration, mut random: impl FnMut() -> u64) {
        for repeated in &mut self.messages {
            if repeated.trickle.timeout() > now {
                continue;
            }
            let step = repeated.trickle.handle_timeout(now, random());
            // Kept until the medium is free: then the count of others decides once more.
            repeated.due |= step.transmit;
            if step.expired {
                repeated.intervals = repeated.intervals.saturating_add(1);
                // RFC 6206, 4.2, rule 2: each interval counts anew.
                repeated.others.clear();
            }
        }
        let intervals = self.limits.intervals.max(1);
        self.messages.retain(|repeated| repeated.intervals < intervals);
    }

    /// The frames to send, asked for when the medium is free. If others repeated the message while it was not,
    /// there are none.
    pub fn poll_frames(&mut self) -> Option<&[Vec<u8>]> {
        self.messages.iter_mut().for_each(|repeated| repeated.due &= repeated.trickle.is_needed());
        let repeated = self.messages.iter_mut().find(|repeated| repeated.due)?;
        repeated.due = false;
        Some(&repeated.frames)
    }
}

impl Repeated {
    fn note(&mut self, source: u64, index: usize, sources: usize) {
        if !self.others.iter().any(|(other, _)| *other == source) {
            if self.others.len() >= sources.max(1) {
                // Bounded: addresses can be made up. A neighbour that loses its count has to repeat the
                // message again to be counted.
                self.others.pop_front();
            }
            self.others.push_back((source, [false; 256]));
        }
        let Some((_, came)) = self.others.iter_mut().find(|(other, _)| *other == source) else { return };
        let new = came.get_mut(index).is_some_and(|came| !core::mem::replace(came, true));
        // As many different frames as make the message: a frame or two keep nobody silent.
        if new && came.iter().filter(|came| **came).count() == self.data {
            self.trickle.handle_consistent();
        }
    }
}
