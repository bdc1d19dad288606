//! Ordered delivery of frames between a relay and its leader, the same at both ends.
//!
//! At most [`WINDOW`] batches are on their way. The other end says up to which number all have come; what it does not
//! confirm is sent again, and a session in which that does not help is over.

use std::collections::VecDeque;
use std::time::Duration;

use prost::Message as _;

use crate::queue::Queue;
use crate::wire::Batch;

/// Batches on their way at a time.
const WINDOW: usize = 4;
/// Bytes of frames after which a batch is full. One frame may be longer.
const FULL: usize = 128 << 10;
/// Time after which batches that are not confirmed are sent again.
const RESEND: Duration = Duration::from_secs(5);
/// How often they are sent again.
const ATTEMPTS: u32 = 3;

/// One end of a session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) queue: Queue,
    /// Sent and not confirmed, the oldest first.
    unconfirmed: VecDeque<(u64, Vec<u8>)>,
    /// Number of the last batch sent.
    sent: u64,
    /// Number of the last of the other's batches, all of which have come up to it.
    received: u64,
    /// The other end waits to be told.
    owes: bool,
    /// Time to send again what is not confirmed, and how often that was done.
    resend: Option<Duration>,
    attempts: u32,
    /// To be sent again now, from this place in `unconfirmed` on.
    again: Option<usize>,
}

/// What came of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The next frames.
    Frames(Vec<u8>),
    /// None, or frames that had come before, or that come too early and will come again.
    Nothing,
    /// No honest end sends this.
    Broken,
}

impl Session {
    pub(crate) fn new(id: u64) -> Self {
        Self {
            id,
            queue: Queue::default(),
            unconfirmed: VecDeque::new(),
            sent: 0,
            received: 0,
            owes: false,
            resend: None,
            attempts: 0,
            again: None,
        }
    }

    /// Takes a batch of this session.
    pub(crate) fn receive(&mut self, now: Duration, batch: Batch) -> Received {
        if batch.received > self.sent {
            return Received::Broken;
        }
        let before = self.unconfirmed.len();
        self.unconfirmed.retain(|(number, _)| *number > batch.received);
        if self.unconfirmed.len() < before {
            (self.attempts, self.again) = (0, None);
            self.resend = (!self.unconfirmed.is_empty()).then(|| now + RESEND);
        }
        if batch.number == 0 {
            return Received::Nothing;
        }
        self.owes = true;
        if batch.number != self.received + 1 {
            return Received::Nothing;
        }
        self.received = batch.number;
        Received::Frames(batch.frames)
    }

    /// The next message to send.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        if let Some(place) = self.again {
            self.again = (place + 1 < self.unconfirmed.len()).then_some(place + 1);
            if let Some((number, frames)) = self.unconfirmed.get(place) {
                let (number, frames) = (*number, frames.clone());
                return Some(self.batch(number, frames));
            }
        }
        if self.unconfirmed.len() < WINDOW && !self.queue.is_empty() {
            let mut frames = self.queue.pop(usize::MAX).unwrap_or_default();
            while let Some(frame) = self.queue.pop(FULL.saturating_sub(frames.len())) {
                frames.extend(frame);
            }
            self.sent += 1;
            self.unconfirmed.push_back((self.sent, frames.clone()));
            self.resend.get_or_insert(now + RESEND);
            return Some(self.batch(self.sent, frames));
        }
        self.owes.then(|| self.batch(0, Vec::new()))
    }

    fn batch(&mut self, number: u64, frames: Vec<u8>) -> Vec<u8> {
        self.owes = false;
        let Self { id, received, .. } = *self;
        Batch { session: id, number, received, frames, ended: false }.encode_to_vec()
    }

    /// Does what is due. Returns whether the session is over because the other end confirms nothing.
    pub(crate) fn tick(&mut self, now: Duration) -> bool {
        if self.resend.is_some_and(|at| at <= now) {
            if self.attempts == ATTEMPTS {
                return true;
            }
            self.attempts += 1;
            (self.resend, self.again) = (Some(now + RESEND), Some(0));
        }
        false
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.resend
    }
}

/// Tells the other end that a session is over.
pub(crate) fn ended(session: u64) -> Vec<u8> {
    Batch { session, ended: true, ..Batch::default() }.encode_to_vec()
}
