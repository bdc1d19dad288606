//! Sends a message for several boards once, as a coded broadcast, and says which boards did not confirm it.
//!
//! A gateway receives what is published to a group once for each of its boards. The [`Broadcaster`] takes all
//! of these for one message, sends data frames and as many parity frames as the loss demands that the gateway
//! sees, and waits for the boards to confirm that they have it. To boards that do not, the gateway sends it in
//! their sessions; so it does for boards that take no broadcasts, and from the third in a row that a board did
//! not confirm on, until it confirms one again.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use super::frame::message_id;
use super::{CODED_OVERHEAD, CodedFrame, ObservedLoss, code_broadcast, parity_for};
use crate::MAX_RADIO_DATAGRAM;

/// Broadcasts in a row after which a board that confirmed none is sent no more of them.
const MAX_IN_VAIN: u8 = 3;
/// Boards for which broadcasts are made: to one, a session sends fewer frames.
const FEWEST_BOARDS: usize = 2;

/// Limits of a [`Broadcaster`]. It holds `queued` + 1 messages at most, and the frames of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcasterLimits {
    /// The longest frame in bytes.
    pub mtu: usize,
    /// Boards that take broadcasts; others beyond are served in their sessions.
    pub boards: usize,
    /// Messages that wait; beyond, they are sent in sessions.
    pub queued: usize,
    /// Time after its last frame by which boards must have confirmed a broadcast.
    pub confirm_within: Duration,
    /// Time after a broadcast for which it is remembered who confirmed it: it may be published again.
    pub remember: Duration,
    /// Broadcasts that are remembered; beyond, the oldest is forgotten.
    pub remembered: usize,
}

impl BroadcasterLimits {
    /// Limits of boards on IEEE 802.15.4. They compute for up to a second before they confirm an epoch.
    pub const fn radio() -> Self {
        Self {
            mtu: MAX_RADIO_DATAGRAM,
            boards: 64,
            queued: 8,
            confirm_within: Duration::from_secs(2),
            remember: Duration::from_secs(10),
            remembered: 16,
        }
    }
}

/// Counters of a [`Broadcaster`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BroadcasterCounters {
    /// Broadcasts that ended.
    pub broadcasts: u64,
    /// Frames sent, parity included.
    pub frames: u64,
    /// Frames of parity sent.
    pub parity: u64,
    /// Boards that a broadcast was for and that confirmed it, added up.
    pub confirmed: u64,
    /// Boards that a broadcast was for and that did not.
    pub missed: u64,
}

/// A message that boards did not confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The boards, to each of which the gateway sends it in its session.
    pub boards: Vec<u16>,
    /// The message.
    pub message: Vec<u8>,
}

/// Broadcasts messages to the boards on one medium.
///
/// Not trusted by boards, and does not trust them: a board that confirms what it has not got goes without it,
/// one that confirms nothing delays what others are sent next for [`BroadcasterLimits::confirm_within`], three
/// times in a row, and one that acknowledges nothing in its session adds parity, as much as half the frames' loss
/// demands.
#[derive(Debug)]
pub struct Broadcaster {
    limits: BroadcasterLimits,
    boards: BTreeMap<u16, ReceivingBoard>,
    waiting: VecDeque<CodedBroadcast>,
    current: Option<UnderWay>,
    past: VecDeque<Past>,
    missed: VecDeque<Missed>,
    loss: ObservedLoss,
    counters: BroadcasterCounters,
}

/// A board that takes broadcasts.
#[derive(Debug)]
struct ReceivingBoard {
    /// The longest message that it takes as a broadcast, in bytes.
    longest: usize,
    /// Broadcasts in a row that it did not confirm.
    in_vain: u8,
}

#[derive(Debug)]
struct CodedBroadcast {
    id: [u8; 32],
    message: Vec<u8>,
    /// Boards that it is for.
    receivers: BTreeSet<u16>,
}

#[derive(Debug)]
struct UnderWay {
    broadcast: CodedBroadcast,
    /// Boards that have it, receivers or not.
    confirmed: BTreeSet<u16>,
    /// Frames still to be sent, the next one last.
    frames: Vec<Vec<u8>>,
    /// Number of these that are parity.
    parity: usize,
    /// Once all frames are sent: the time by which it must be confirmed.
    until: Option<Duration>,
}

#[derive(Debug)]
struct Past {
    id: [u8; 32],
    confirmed: BTreeSet<u16>,
    since: Duration,
}

impl Broadcaster {
    /// Knows of no board.
    pub fn new(limits: BroadcasterLimits) -> Self {
        Self {
            limits,
            boards: BTreeMap::new(),
            waiting: VecDeque::new(),
            current: None,
            past: VecDeque::new(),
            missed: VecDeque::new(),
            loss: ObservedLoss::default(),
            counters: BroadcasterCounters::default(),
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> BroadcasterCounters {
        self.counters
    }

    /// Notes what a session sent since the last call: fragments, repeats included, and repeats.
    pub fn note_fragments(&mut self, sent: u64, repeated: u64) {
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        self.loss.note(short(sent), short(sent.saturating_sub(repeated)));
    }

    /// Estimated probability that a frame is lost, from 0 to 0.5.
    pub fn loss(&self) -> f64 {
        self.loss.estimate()
    }

    /// A board takes broadcasts of messages of at most `longest` bytes, in its present session.
    pub fn add(&mut self, board: u16, longest: usize) {
        // Bounded, because anybody in range can send hellos; others are served in their sessions.
        if self.boards.contains_key(&board) || self.boards.len() < self.limits.boards {
            self.boards.insert(board, ReceivingBoard { longest, in_vain: 0 });
        }
    }

    /// The board's session has ended.
    pub fn remove(&mut self, now: Duration, board: u16) {
        self.boards.remove(&board);
        self.waiting.iter_mut().for_each(|broadcast| {
            broadcast.receivers.remove(&board);
        });
        self.waiting.retain(|broadcast| !broadcast.receivers.is_empty());
        if let Some(current) = &mut self.current {
            // Its next session begins without this message: nobody waits for its confirmation.
            current.broadcast.receivers.remove(&board);
        }
        self.past.iter_mut().for_each(|past| {
            past.confirmed.remove(&board);
        });
        self.end_if_confirmed(now);
    }

    /// Takes what was published to a board. False if it is to be sent in the board's session, because the board
    /// takes no broadcasts or not this one, no other board takes any, one frame holds it, or too many wait.
    pub fn publish(&mut self, now: Duration, board: u16, message: &[u8]) -> bool {
        self.past.retain(|past| now.saturating_sub(past.since) < self.limits.remember);
        let Some(takes) = self.boards.get(&board) else { return false };
        // A board that confirms none would delay the others each time.
        if takes.in_vain >= MAX_IN_VAIN || message.len() > takes.longest {
            return false;
        }
        let id = message_id(message);
        if let Some(past) = self.past.iter().find(|past| past.id == id) {
            // Published for another board again: who has it already needs no second copy, who has not gets it
            // in the session.
            return past.confirmed.contains(&board);
        }
        let current = self.current.as_mut().map(|current| &mut current.broadcast);
        let known = current.into_iter().chain(&mut self.waiting).find(|broadcast| broadcast.id == id);
        if let Some(broadcast) = known {
            broadcast.receivers.insert(board);
            return true;
        }
        let takers = self.takers().filter(|(_, taker)| message.len() <= taker.longest).count();
        let several_frames = message.len().saturating_add(CODED_OVERHEAD) > self.limits.mtu;
        // To one board, or of one frame, a session sends no more than a broadcast, and repeats only what is
        // lost.
        if takers < FEWEST_BOARDS || !several_frames || self.waiting.len() >= self.limits.queued {
            return false;
        }
        let receivers = BTreeSet::from([board]);
        self.waiting.push_back(CodedBroadcast { id, message: message.into(), receivers });
        true
    }

    /// A board has the message whose frames have this digest.
    pub fn confirm(&mut self, now: Duration, board: u16, digest: [u8; 4]) {
        let Some(state) = self.boards.get_mut(&board) else { return };
        let current = self.current.as_mut().map(|current| (&current.broadcast.id, &mut current.confirmed));
        let past = self.past.iter_mut().map(|past| (&past.id, &mut past.confirmed));
        // The broadcast under way first: it alone is waited for.
        if let Some((_, confirmed)) = current.into_iter().chain(past).find(|(id, _)| id.starts_with(&digest))
        {
            confirmed.insert(board);
            state.in_vain = 0;
        }
        self.end_if_confirmed(now);
    }

    /// The next frame to be sent to all boards, if the medium can take one.
    pub fn poll_frame(&mut self, now: Duration) -> Option<Vec<u8>> {
        while self.current.is_none() {
            let broadcast = self.waiting.pop_front()?;
            let loss = self.loss();
            let coded = code_broadcast(&broadcast.message, self.limits.mtu, |data| parity_for(data, loss));
            let Ok(mut frames) = coded else {
                // More frames than a code has.
                self.miss(broadcast.receivers.into_iter().collect(), broadcast.message);
                continue;
            };
            let first = frames.first().and_then(|frame| CodedFrame::decode(frame).ok());
            let parity = frames.len().saturating_sub(first.map_or(0, |frame| frame.data()));
            // Taken from the end: data first, then parity, because boards that lost nothing are done after
            // the data.
            frames.reverse();
            let confirmed = BTreeSet::new();
            self.current = Some(UnderWay { broadcast, confirmed, frames, parity, until: None });
        }
        let current = self.current.as_mut()?;
        let frame = current.frames.pop()?;
        self.counters.frames += 1;
        self.counters.parity += u64::from(current.frames.len() < current.parity);
        if current.frames.is_empty() {
            // The wait begins with the last frame: boards may need all of them.
            current.until = Some(now.saturating_add(self.limits.confirm_within));
        }
        self.end_if_confirmed(now);
        Some(frame)
    }

    /// A message for the sessions of boards that did not confirm it. To be called after everything else.
    pub fn poll_missed(&mut self) -> Option<Missed> {
        self.missed.pop_front()
    }

    /// Time at which [`Broadcaster::handle_timeout`] is to be called.
    pub fn timeout(&self) -> Option<Duration> {
        self.current.as_ref()?.until
    }

    /// Ends a broadcast whose time is over.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.timeout().is_some_and(|until| until <= now) {
            self.end(now);
        }
    }

    /// Boards that confirm broadcasts.
    fn takers(&self) -> impl Iterator<Item = (&u16, &ReceivingBoard)> {
        self.boards.iter().filter(|(_, board)| board.in_vain < MAX_IN_VAIN)
    }

    fn end_if_confirmed(&mut self, now: Duration) {
        let Some(current) = &self.current else { return };
        let receivers = &current.broadcast.receivers;
        // With frames left, others may yet turn out to be receivers.
        let over = if current.until.is_some() {
            receivers.is_subset(&current.confirmed)
        } else {
            self.takers().all(|(board, _)| current.confirmed.contains(board))
                && receivers.is_subset(&current.confirmed)
        };
        if over {
            self.end(now);
        }
    }

    fn end(&mut self, now: Duration) {
        let Some(UnderWay { broadcast, confirmed, .. }) = self.current.take() else { return };
        let CodedBroadcast { id, message, receivers } = broadcast;
        let missed: Vec<u16> = receivers.difference(&confirmed).copied().collect();
        self.counters.broadcasts += 1;
        self.counters.confirmed += receivers.len().saturating_sub(missed.len()) as u64;
        for (_, board) in self.boards.iter_mut().filter(|(number, _)| missed.contains(number)) {
            // Three in a row: perhaps it is out of range, or hostile.
            board.in_vain = board.in_vain.saturating_add(1);
        }
        if self.past.len() >= self.limits.remembered.max(1) {
            self.past.pop_front();
        }
        // Remembered, because a hub may publish the same again for a board that came late.
        self.past.push_back(Past { id, confirmed, since: now });
        self.miss(missed, message);
    }

    fn miss(&mut self, boards: Vec<u16>, message: Vec<u8>) {
        self.counters.missed += boards.len() as u64;
        if boards.is_empty() {
            return;
        }
        // Only if nobody takes them.
        if self.missed.len() > self.limits.queued {
            self.missed.pop_front();
        }
        self.missed.push_back(Missed { boards, message });
    }
}
