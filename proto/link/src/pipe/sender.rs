//! Sends messages one after the other.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::Broken;
use super::retransmission_timer::RetransmissionTimer;
use super::transfer::Transfer;
use crate::checksum::CHECKSUM_LEN;
use crate::datagram::{Datagram, FRAGMENT_OVERHEAD};
use crate::limits::{EndpointLimits, MAX_FRAGMENTS, PipeCounters};

/// Vital messages that may wait.
const MAX_VITAL: usize = 64;
/// Messages given up one after the other before the session is.
const MAX_IN_VAIN: u8 = 3;
/// Number of times that a message that is all there and not taken is sent from its beginning before it is
/// given up.
const MAX_RESTARTS: u8 = 6;

/// A message to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Vec<u8>,
    /// True if the session makes no sense without it.
    pub(crate) vital: bool,
}

/// Limits of the other side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLimits {
    /// Bytes of an encoded message.
    pub(crate) max_message: u32,
    /// Fragments under way to it.
    pub(crate) window: u8,
}

#[derive(Debug)]
pub(crate) struct PipeSender {
    limits: EndpointLimits,
    peer: PeerLimits,
    queue: VecDeque<Outgoing>,
    queued_bytes: usize,
    current: Option<Current>,
    timer: RetransmissionTimer,
    next_id: u16,
    /// Messages given up since the other side last took one.
    in_vain: u8,
}

#[derive(Debug)]
struct Current {
    transfer: Transfer,
    vital: bool,
    /// Time since the other side last acknowledged something new.
    waited: Duration,
    /// Number of times that all fragments were there and the message was not taken.
    restarts: u8,
    deadline: Option<Duration>,
}

impl PipeSender {
    pub(crate) fn new(limits: EndpointLimits, peer: PeerLimits) -> Self {
        Self {
            limits,
            peer,
            queue: VecDeque::new(),
            queued_bytes: 0,
            current: None,
            timer: RetransmissionTimer::new(limits.repeat_after),
            next_id: 0,
            in_vain: 0,
        }
    }

    pub(crate) fn longest(&self) -> usize {
        // A message has at most 255 fragments, and the other side a limit of its own.
        let fragments = self.part_len().saturating_mul(MAX_FRAGMENTS).saturating_sub(CHECKSUM_LEN);
        usize::try_from(self.peer.max_message).unwrap_or(usize::MAX).min(fragments)
    }

    /// Bytes that fit a fragment.
    fn part_len(&self) -> usize {
        self.limits.mtu.saturating_sub(FRAGMENT_OVERHEAD).max(1)
    }

    pub(crate) fn push(&mut self, message: Outgoing, counters: &mut PipeCounters) -> Result<(), Broken> {
        // The list of connected peers cannot be delivered any more: the session ends.
        if message.vital && self.queue.iter().filter(|waiting| waiting.vital).count() >= MAX_VITAL {
            return Err(Broken);
        }
        self.queued_bytes = self.queued_bytes.saturating_add(message.bytes.len());
        self.queue.push_back(message);
        // Nothing grows: the oldest goes first.
        while self.is_overfull() && self.drop_oldest() {
            counters.dropped += 1;
        }
        Ok(())
    }

    fn is_overfull(&self) -> bool {
        let ordinary = self.queue.iter().filter(|waiting| !waiting.vital).count();
        ordinary > self.limits.queued || self.queued_bytes > self.limits.queued_bytes
    }

    /// Drops the oldest message that may be dropped; whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.queue.iter().position(|waiting| !waiting.vital);
        let dropped = oldest.and_then(|place| self.queue.remove(place));
        self.queued_bytes = self.queued_bytes.saturating_sub(dropped.as_ref().map_or(0, |m| m.bytes.len()));
        dropped.is_some()
    }

    pub(crate) fn poll(
        &mut self,
        now: Duration,
        session: u32,
        counters: &mut PipeCounters,
    ) -> Option<Vec<u8>> {
        // One message at a time, so that they come in order.
        if self.current.is_none() {
            self.begin(session)?;
        }
        let current = self.current.as_mut()?;
        let number = current.transfer.sent().wrapping_add(1);
        // No more under way than the other side can buffer while it computes.
        let (fragment, again) = current.transfer.next(self.peer.window.max(1))?;
        counters.repeated += u64::from(again);
        current.deadline = Some(now.saturating_add(self.timer.wait()));
        // RFC 6298, 3: only what is sent for the first time is measured.
        if again {
            self.timer.repeats();
        } else if fragment.asks {
            self.timer.asks(now, number);
        }
        Some(Datagram::Fragment { session, fragment }.encode())
    }

    fn begin(&mut self, session: u32) -> Option<()> {
        let message = self.queue.pop_front()?;
        self.queued_bytes = self.queued_bytes.saturating_sub(message.bytes.len());
        // A number for each message, so that an acknowledgement of an earlier one is not taken for this
        // one's.
        let transfer = Transfer::new(session, self.next_id, message.bytes, self.part_len());
        self.next_id = self.next_id.wrapping_add(1);
        let (waited, vital) = (Duration::ZERO, message.vital);
        self.current = Some(Current { transfer, vital, waited, restarts: 0, deadline: None });
        Some(())
    }

    pub(crate) fn handle_have(&mut self, now: Duration, id: u16, bitmap: &[u8], counters: &mut PipeCounters) {
        let Some(current) = self.current.as_mut().filter(|current| current.transfer.id() == id) else {
            return;
        };
        match current.transfer.mark(bitmap) {
            Ok(Some(number)) => {
                // Something new is there: the wait begins again.
                self.timer.answered(now, number);
                current.deadline = Some(now.saturating_add(self.timer.wait()));
                current.waited = Duration::ZERO;
            }
            Ok(None) => {}
            Err(()) => counters.malformed += 1,
        }
    }

    pub(crate) fn handle_done(&mut self, now: Duration, id: u16, checksum: u32, counters: &mut PipeCounters) {
        // The check sum proves that it was this very message.
        if let Some(current) = self.current.take_if(|current| current.transfer.is(id, checksum)) {
            self.timer.answered(now, current.transfer.sent());
            self.timer.forget();
            self.in_vain = 0;
            counters.sent += 1;
        }
    }

    pub(crate) fn handle_timeout(
        &mut self,
        now: Duration,
        counters: &mut PipeCounters,
    ) -> Result<(), Broken> {
        let Some(current) = self.current.as_mut().filter(|c| c.deadline.is_some_and(|at| at <= now)) else {
            return Ok(());
        };
        current.deadline = None;
        // All there and not taken: it was altered, and is sent from its beginning.
        current.restarts = current.restarts.saturating_add(u8::from(current.transfer.repeat()));
        current.waited = current.waited.saturating_add(self.timer.wait());
        self.timer.back_off();
        // 40 s: a board may compute for half a minute, and answers nothing meanwhile.
        if current.waited < self.limits.give_up_after && current.restarts <= MAX_RESTARTS {
            return Ok(());
        }
        let vital = current.vital;
        self.current = None;
        self.timer.forget();
        self.in_vain = self.in_vain.saturating_add(1);
        counters.given_up += 1;
        // A vital one, or three in a row.
        if vital || self.in_vain >= MAX_IN_VAIN { Err(Broken) } else { Ok(()) }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.current.as_ref().and_then(|current| current.deadline)
    }

    pub(crate) fn unsent(&self) -> u64 {
        u64::try_from(self.queue.len()).unwrap_or(u64::MAX) + u64::from(self.current.is_some())
    }
}
