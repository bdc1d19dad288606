//! Ordered delivery of frames between a relay and its leader, the same at both ends.
//!
//! At most [`WINDOW`] batches are on their way (§21.2), so that an end that takes nothing costs the other half a
//! megabyte. Each batch confirms all of the other end's up to a number. A batch that is not confirmed is sent again after
//! a timeout, and a session in which [`ATTEMPTS`] repeats bring no confirmation is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prost::Message as _;

use crate::queue::FairQueue;
use crate::wire::RelayBatch;

/// Batches on their way at a time.
pub(crate) const WINDOW: usize = 4;
/// Bytes of frames after which a batch is full. One frame may be longer.
const FULL: usize = 128 << 10;
/// Time after which batches that are not confirmed are sent again, unless a relay or leader is told otherwise.
pub(crate) const RETRANSMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of times that a batch is sent again.
const ATTEMPTS: u32 = 3;

/// An end of a session.
#[derive(Debug)]
pub(crate) struct RelaySession {
    pub(crate) id: u64,
    /// Time after which batches that are not confirmed are sent again.
    retransmit_timeout: Duration,
    pub(crate) queue: FairQueue,
    /// Sent and not confirmed, the oldest first.
    unconfirmed: VecDeque<(u64, Vec<u8>)>,
    /// Number of the last batch sent.
    sent: u64,
    /// Number of the last of the other's batches, all of which have come up to it.
    received: u64,
    /// Frames of batches that overtook others.
    early: BTreeMap<u64, Vec<u8>>,
    /// True if the other end has sent a batch and no confirmation of it is on its way.
    ack_pending: bool,
    /// True if the next batch goes out without frames, so that the other end confirms that it is there.
    probing: bool,
    /// Time at which the batches that are not confirmed are sent again.
    retransmit_at: Option<Duration>,
    /// Number of times that they were sent again since the last confirmation.
    attempts: u32,
    /// Index in `unconfirmed` of the next batch to send again; `None` if all were.
    retransmit_from: Option<usize>,
}

/// Result of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReceivedBatch {
    /// The next frames.
    Frames(Vec<u8>),
    /// No frames, or frames that had come before, or whose turn comes later.
    Nothing,
    /// No honest end sends this.
    Broken,
}

impl RelaySession {
    pub(crate) fn new(id: u64, retransmit_timeout: Duration) -> Self {
        Self {
            id,
            retransmit_timeout,
            queue: FairQueue::default(),
            unconfirmed: VecDeque::new(),
            sent: 0,
            received: 0,
            early: BTreeMap::new(),
            ack_pending: false,
            probing: false,
            retransmit_at: None,
            attempts: 0,
            retransmit_from: None,
        }
    }

    /// Takes a batch of this session.
    pub(crate) fn receive(&mut self, now: Duration, batch: RelayBatch) -> ReceivedBatch {
        // §21.2: a number that is confirmed and was not sent ends the session.
        if batch.received > self.sent {
            return ReceivedBatch::Broken;
        }
        let before = self.unconfirmed.len();
        // A confirmation covers all batches up to its number, because the other end takes them in order.
        self.unconfirmed.retain(|(number, _)| *number > batch.received);
        if self.unconfirmed.len() < before {
            // Progress begins the count of attempts anew: a slow link is not a dead one.
            self.attempts = 0;
            self.retransmit_from = None;
            self.retransmit_at = (!self.unconfirmed.is_empty()).then(|| now + self.retransmit_timeout);
        }
        // §21.2: 0 is a mere confirmation, which needs none itself; else the ends would confirm for ever.
        if batch.number == 0 {
            return ReceivedBatch::Nothing;
        }
        self.ack_pending = true;
        let ahead = batch.number.saturating_sub(self.received);
        // A repeat shows that its confirmation was lost, so that another goes out. Beyond the window no
        // honest end sends.
        if !(1..=WINDOW as u64).contains(&ahead) {
            return ReceivedBatch::Nothing;
        }
        // §21.2: a batch that overtakes others waits for its turn; at most three can, so that memory is
        // bounded.
        if ahead > 1 {
            self.early.insert(batch.number, batch.frames);
            return ReceivedBatch::Nothing;
        }
        self.received = batch.number;
        let mut next = batch.frames;
        while let Some(frames) = self.early.remove(&(self.received + 1)) {
            self.received += 1;
            next.extend(frames);
        }
        ReceivedBatch::Frames(next)
    }

    /// Has the other end confirm that it is there, if nothing that it is to confirm is on its way or waits.
    pub(crate) fn probe(&mut self) {
        self.probing = self.unconfirmed.is_empty() && self.queue.is_empty();
    }

    /// The next message to send.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        // §21.2: repeats go first, because the other end can take nothing before the batch that it lacks.
        if let Some(index) = self.retransmit_from {
            self.retransmit_from = (index + 1 < self.unconfirmed.len()).then_some(index + 1);
            if let Some((number, frames)) = self.unconfirmed.get(index).cloned() {
                return Some(self.batch(number, frames));
            }
        }
        // §21.2: four batches at a time, of 128 KiB or of one frame, which may be longer.
        if self.unconfirmed.len() < WINDOW && (self.probing || !self.queue.is_empty()) {
            self.probing = false;
            // A probe has no frames, but a number, so that it is confirmed.
            let mut frames = self.queue.pop(usize::MAX).unwrap_or_default();
            while let Some(frame) = self.queue.pop(FULL.saturating_sub(frames.len())) {
                frames.extend(frame);
            }
            self.sent += 1;
            self.unconfirmed.push_back((self.sent, frames.clone()));
            self.retransmit_at.get_or_insert(now + self.retransmit_timeout);
            return Some(self.batch(self.sent, frames));
        }
        // Every batch confirms; one of its own is sent only if nothing else goes out.
        self.ack_pending.then(|| self.batch(0, Vec::new()))
    }

    fn batch(&mut self, number: u64, frames: Vec<u8>) -> Vec<u8> {
        self.ack_pending = false;
        let Self { id, received, .. } = *self;
        RelayBatch { session: id, number, received, frames, ended: false }.encode_to_vec()
    }

    /// Does what is due. Returns whether the session is over because the other end confirms nothing, or too little.
    pub(crate) fn tick(&mut self, now: Duration) -> bool {
        // §21.2: what must not be lost found no room, so both ends have to begin anew.
        if self.queue.has_overflowed() {
            return true;
        }
        if self.retransmit_at.is_some_and(|at| at <= now) {
            // §21.2: sent again three times without a confirmation.
            if self.attempts == ATTEMPTS {
                return true;
            }
            self.attempts += 1;
            self.retransmit_at = Some(now + self.retransmit_timeout);
            self.retransmit_from = Some(0);
        }
        false
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        if self.queue.has_overflowed() { Some(Duration::ZERO) } else { self.retransmit_at }
    }
}

/// Tells the other end that a session is over.
pub(crate) fn ended(session: u64) -> Vec<u8> {
    RelayBatch { session, ended: true, ..RelayBatch::default() }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn carried(from: &mut RelaySession, to: &mut RelaySession) -> Vec<ReceivedBatch> {
        let batches: Vec<_> = std::iter::from_fn(|| from.poll(NOW)).collect();
        batches.iter().map(|bytes| to.receive(NOW, RelayBatch::decode(bytes.as_slice()).unwrap())).collect()
    }

    #[test]
    fn frames_come_in_order_and_no_more_than_a_window_is_on_its_way() {
        let (mut near, mut far) =
            (RelaySession::new(7, RETRANSMIT_TIMEOUT), RelaySession::new(7, RETRANSMIT_TIMEOUT));
        for number in 0..20 {
            near.queue.push(number, vec![u8::try_from(number).unwrap(); FULL]);
        }
        let mut came = Vec::new();
        for round in 0..5 {
            let received = carried(&mut near, &mut far);
            assert_eq!(received.len(), WINDOW, "round {round}");
            came.extend(received);
            assert_eq!(carried(&mut far, &mut near), [ReceivedBatch::Nothing], "it is confirmed at once");
        }
        for (number, received) in came.into_iter().enumerate() {
            assert_eq!(received, ReceivedBatch::Frames(vec![u8::try_from(number).unwrap(); FULL]));
        }
        assert_eq!(near.deadline(), None);
    }

    /// Encodes and decodes this number of full batches that differ.
    fn full_batches(near: &mut RelaySession, count: u8) -> (Vec<Vec<u8>>, Vec<RelayBatch>) {
        (0..count).for_each(|number| near.queue.push(number.into(), vec![number; FULL]));
        let sent: Vec<_> = std::iter::from_fn(|| near.poll(NOW)).collect();
        let batches = sent.iter().map(|bytes| RelayBatch::decode(bytes.as_slice()).unwrap()).collect();
        (sent, batches)
    }

    #[test]
    fn lost_batch_is_sent_again_with_those_behind_it_and_taken_once() {
        let (mut near, mut far) =
            (RelaySession::new(7, RETRANSMIT_TIMEOUT), RelaySession::new(7, RETRANSMIT_TIMEOUT));
        let (sent, batches) = full_batches(&mut near, 3);
        assert_eq!(far.receive(NOW, batches[0].clone()), ReceivedBatch::Frames(batches[0].frames.clone()));
        assert!(!near.tick(NOW + RETRANSMIT_TIMEOUT));
        let again: Vec<_> = std::iter::from_fn(|| near.poll(NOW + RETRANSMIT_TIMEOUT)).collect();
        assert_eq!(again, sent);
        assert_eq!(far.receive(NOW, batches[0].clone()), ReceivedBatch::Nothing, "a second time");
        for batch in &batches[1..] {
            assert_eq!(far.receive(NOW, batch.clone()), ReceivedBatch::Frames(batch.frames.clone()));
            assert_eq!(far.receive(NOW, batch.clone()), ReceivedBatch::Nothing, "a second time");
        }
    }

    #[test]
    fn batches_that_overtake_others_wait_for_their_turn() {
        let (mut near, mut far) =
            (RelaySession::new(7, RETRANSMIT_TIMEOUT), RelaySession::new(7, RETRANSMIT_TIMEOUT));
        let (_, batches) = full_batches(&mut near, 4);
        for early in [3, 1, 3] {
            assert_eq!(far.receive(NOW, batches[early].clone()), ReceivedBatch::Nothing);
        }
        let in_order = |range: std::ops::Range<usize>| {
            ReceivedBatch::Frames(batches[range].iter().flat_map(|batch| batch.frames.clone()).collect())
        };
        assert_eq!(far.receive(NOW, batches[0].clone()), in_order(0..2));
        assert_eq!(far.receive(NOW, batches[2].clone()), in_order(2..4));
        let outside = RelayBatch { number: 4 + WINDOW as u64 + 1, ..batches[3].clone() };
        assert_eq!(far.receive(NOW, outside), ReceivedBatch::Nothing);
        assert!(far.early.is_empty(), "no honest end has so many on their way");
    }

    #[test]
    fn session_in_which_nothing_is_confirmed_is_over() {
        let mut near = RelaySession::new(7, RETRANSMIT_TIMEOUT);
        near.queue.push(1, vec![1]);
        assert!(near.poll(NOW).is_some());
        let ticks = (0..=ATTEMPTS).map(|attempt| near.tick(NOW + RETRANSMIT_TIMEOUT * (attempt + 1)));
        assert_eq!(ticks.collect::<Vec<_>>(), [false, false, false, true]);
    }

    #[test]
    fn probe_is_confirmed_and_one_that_is_not_ends_the_session() {
        let (mut near, mut far) =
            (RelaySession::new(7, RETRANSMIT_TIMEOUT), RelaySession::new(7, RETRANSMIT_TIMEOUT));
        near.probe();
        assert_eq!(carried(&mut near, &mut far), [ReceivedBatch::Frames(Vec::new())]);
        assert_eq!(carried(&mut far, &mut near), [ReceivedBatch::Nothing]);
        assert_eq!((near.poll(NOW), near.deadline()), (None, None), "confirmed, once and for all");
        near.probe();
        assert!(near.poll(NOW).is_some());
        assert!((0..=ATTEMPTS).any(|attempt| near.tick(NOW + RETRANSMIT_TIMEOUT * (attempt + 1))));
    }

    #[test]
    fn confirmation_of_what_was_not_sent_breaks_a_session() {
        let mut near = RelaySession::new(7, RETRANSMIT_TIMEOUT);
        assert_eq!(
            near.receive(NOW, RelayBatch { session: 7, received: 1, ..RelayBatch::default() }),
            ReceivedBatch::Broken
        );
    }
}
