//! Frames that wait for a batch: those of each drone in their order, the drones in turn, what is for all behind what
//! came before it.

use std::collections::{BTreeMap, VecDeque};

/// Messages of one drone, or to it, that may wait.
const MAX_FRAMES: usize = 64;
/// Bytes of the messages of one drone that may wait.
const MAX_BYTES: usize = 2 << 20;
/// Bytes of all messages that may wait.
const MAX_MESSAGES: usize = 44 << 20;
/// Bytes beyond which no message of a stranger waits: the rest is for drones that are proven.
const MAX_BESIDE_STRANGERS: usize = 24 << 20;
/// Bytes of all that may wait of drones, with what must not be lost.
const MAX_OF_DRONES: usize = 48 << 20;
/// Bytes and number of what may wait for all drones.
const MAX_FOR_ALL: usize = 16 << 20;
const MAX_BROADCASTS: usize = 1_024;
/// Bytes that a frame takes beside its own, counted so that many short frames are bounded as few long ones are.
const OVERHEAD: usize = 64;

/// Bytes of memory of a frame.
const fn cost(frame: &[u8]) -> usize {
    frame.len() + OVERHEAD
}

/// The queue. A sender that sends more than others waits longer, and nobody else does. A message for all
/// drones goes when all that waited before has gone: a member that is yet to be sent its welcome has no use
/// for the epoch after that.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    rounds: VecDeque<Round>,
    /// Frames and bytes that wait, for each drone with frames.
    waiting: BTreeMap<u32, QueueLoad>,
    /// Bytes that wait of all drones.
    bytes: usize,
    /// Frames and bytes that wait for all drones.
    for_all: QueueLoad,
    /// True if a frame that must not be lost found no room: nothing waits any more, and the session is over.
    overflowed: bool,
}

/// Frames of drones, and behind them what is for all.
#[derive(Debug, Default)]
struct Round {
    lines: BTreeMap<u32, VecDeque<Vec<u8>>>,
    /// The drones with frames, in their turn.
    turns: VecDeque<u32>,
    for_all: VecDeque<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct QueueLoad {
    frames: usize,
    bytes: usize,
}

impl FairQueue {
    /// Appends a broadcast. If too much waits for all, the oldest are dropped: who is sent a newer one than it can follow
    /// asks.
    pub(crate) fn push_for_all(&mut self, frame: Vec<u8>) {
        // §21.2: what waits is bounded, however slowly the other end takes it.
        let needed = cost(&frame);
        if self.overflowed || needed > MAX_FOR_ALL {
            return;
        }
        while self.for_all.bytes + needed > MAX_FOR_ALL || self.for_all.frames >= MAX_BROADCASTS {
            self.drop_oldest_broadcast();
        }
        self.for_all = QueueLoad { frames: self.for_all.frames + 1, bytes: self.for_all.bytes + needed };
        // §21.2: a broadcast goes behind all that waited before it: it closes the last round.
        match self.rounds.back_mut() {
            Some(last) => last.for_all.push_back(frame),
            None => self.rounds.push_back(Round { for_all: [frame].into(), ..Round::default() }),
        }
    }

    fn drop_oldest_broadcast(&mut self) {
        let place = self.rounds.iter().position(|round| !round.for_all.is_empty());
        let dropped = place.and_then(|place| self.rounds.get_mut(place)?.for_all.pop_front());
        match dropped {
            Some(frame) => self.for_all_gone(&frame),
            None => self.for_all = QueueLoad::default(),
        }
        // A round that has none any more is one with the next, so that there are few.
        let Some(place) = place else { return };
        if self.rounds.get(place).is_some_and(|round| round.for_all.is_empty()) {
            let next = self.rounds.remove(place + 1);
            if let (Some(round), Some(next)) = (self.rounds.get_mut(place), next) {
                round.append(next);
            }
        }
        if self.rounds.get(place).is_some_and(Round::is_over) {
            self.rounds.remove(place);
        }
    }

    fn for_all_gone(&mut self, frame: &[u8]) {
        let QueueLoad { frames, bytes } = self.for_all;
        self.for_all = QueueLoad { frames: frames - 1, bytes: bytes - cost(frame) };
    }

    /// Appends a message of a drone. Returns whether there was room.
    pub(crate) fn push_message(&mut self, drone: u32, frame: Vec<u8>) -> bool {
        self.push_within(MAX_MESSAGES, drone, frame)
    }

    /// Appends a message of a stranger, which has less room.
    pub(crate) fn push_message_of_stranger(&mut self, drone: u32, frame: Vec<u8>) -> bool {
        self.push_within(MAX_BESIDE_STRANGERS, drone, frame)
    }

    fn push_within(&mut self, most: usize, drone: u32, frame: Vec<u8>) -> bool {
        let QueueLoad { frames, bytes } = self.waiting.get(&drone).copied().unwrap_or_default();
        let needed = cost(&frame);
        let is_full = frames >= MAX_FRAMES || bytes + needed > MAX_BYTES || self.bytes + needed > most;
        if self.overflowed || is_full {
            return false;
        }
        self.push(drone, frame);
        true
    }

    /// Appends what must not be lost, of which there is little. Without room for it the session is over.
    pub(crate) fn push(&mut self, drone: u32, frame: Vec<u8>) {
        // The 4 MiB above what messages may take are for these frames alone.
        if self.overflowed || self.bytes + cost(&frame) > MAX_OF_DRONES {
            *self = Self { overflowed: true, ..Self::default() };
            return;
        }
        self.bytes += cost(&frame);
        let waiting = self.waiting.entry(drone).or_default();
        (waiting.frames, waiting.bytes) = (waiting.frames + 1, waiting.bytes + cost(&frame));
        // A frame after a broadcast begins a round, so that it does not overtake the broadcast.
        if self.rounds.back().is_none_or(|last| !last.for_all.is_empty()) {
            self.rounds.push_back(Round::default());
        }
        let Some(last) = self.rounds.back_mut() else { return };
        let line = last.lines.entry(drone).or_default();
        if line.is_empty() {
            last.turns.push_back(drone);
        }
        line.push_back(frame);
    }

    /// Drops what waits of a drone.
    pub(crate) fn forget(&mut self, drone: u32) {
        if let Some(waiting) = self.waiting.remove(&drone) {
            self.bytes -= waiting.bytes;
            for round in &mut self.rounds {
                if round.lines.remove(&drone).is_some() {
                    round.turns.retain(|other| *other != drone);
                }
            }
            self.rounds.retain(|round| !round.is_over());
        }
    }

    /// The next frame, unless it has more than `room` bytes.
    pub(crate) fn pop(&mut self, room: usize) -> Option<Vec<u8>> {
        let round = self.rounds.front_mut()?;
        let frame = match round.turns.front().copied() {
            // Drones take turns, one frame each.
            Some(drone) => {
                let frame = round.pop(drone, room)?;
                self.gone(drone, cost(&frame));
                frame
            }
            None if round.for_all.front()?.len() <= room => {
                let frame = round.for_all.pop_front()?;
                self.for_all_gone(&frame);
                frame
            }
            None => return None,
        };
        if self.rounds.front().is_some_and(Round::is_over) {
            self.rounds.pop_front();
        }
        Some(frame)
    }

    /// A frame of a drone waits no more.
    fn gone(&mut self, drone: u32, bytes: usize) {
        self.bytes -= bytes;
        if let Some(waiting) = self.waiting.get_mut(&drone) {
            (waiting.frames, waiting.bytes) = (waiting.frames - 1, waiting.bytes - bytes);
            if waiting.frames == 0 {
                self.waiting.remove(&drone);
            }
        }
    }

    /// Number of drones with frames that wait.
    pub(crate) fn drones(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if a frame of a drone waits.
    pub(crate) fn holds(&self, drone: u32) -> bool {
        self.waiting.contains_key(&drone)
    }

    /// Returns true if a frame that must not be lost was lost.
    pub(crate) const fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }
}

impl Round {
    /// The frame of the drone whose turn it is, unless it has more than `room` bytes.
    fn pop(&mut self, drone: u32, room: usize) -> Option<Vec<u8>> {
        let line = self.lines.get_mut(&drone)?;
        let frame = if line.front()?.len() <= room { line.pop_front()? } else { return None };
        self.turns.pop_front();
        if line.is_empty() {
            self.lines.remove(&drone);
        } else {
            self.turns.push_back(drone);
        }
        Some(frame)
    }

    /// Goes on with what is behind it.
    fn append(&mut self, mut next: Self) {
        for drone in next.turns {
            let line = self.lines.entry(drone).or_default();
            if line.is_empty() {
                self.turns.push_back(drone);
            }
            line.extend(next.lines.remove(&drone).unwrap_or_default());
        }
        self.for_all.extend(next.for_all);
    }

    fn is_over(&self) -> bool {
        self.turns.is_empty() && self.for_all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drones_take_turns_however_much_one_of_them_sends() {
        let mut queue = FairQueue::default();
        (0..10).for_each(|number| assert!(queue.push_message(1, vec![1, number])));
        assert!(queue.push_message(2, vec![2, 0]) && queue.push_message(3, vec![3, 0]));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(9)).map(|frame| frame[0]).collect();
        assert_eq!(order, [1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(queue.is_empty() && queue.bytes == 0 && queue.waiting.is_empty());
    }

    #[test]
    fn what_is_for_all_neither_overtakes_nor_is_overtaken() {
        let mut queue = FairQueue::default();
        queue.push_for_all(vec![100]);
        (1..4).for_each(|drone| queue.push(drone, vec![drone.try_into().unwrap()]));
        queue.push(2, vec![2]);
        (101..103).for_each(|broadcast| queue.push_for_all(vec![broadcast]));
        (2..5).for_each(|drone| queue.push(drone, vec![drone.try_into().unwrap()]));
        queue.push_for_all(vec![103]);
        queue.forget(3);
        assert_eq!(queue.drones(), 3);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(9)).map(|frame| frame[0]).collect();
        assert_eq!(order, [100, 1, 2, 2, 101, 102, 2, 4, 103]);
        assert!(queue.is_empty() && queue.bytes == 0 && queue.waiting.is_empty());
    }

    #[test]
    fn what_waits_of_a_drone_is_bounded_whatever_is_sent_to_all() {
        let mut queue = FairQueue::default();
        let fits = (0..1000).filter(|_| {
            queue.push_for_all(vec![0]);
            queue.push_message(1, vec![0; 8])
        });
        assert_eq!(fits.count(), MAX_FRAMES);
        queue.forget(1);
        assert_eq!((queue.bytes, queue.drones()), (0, 0));
        assert_eq!(std::iter::from_fn(|| queue.pop(9)).count(), 1000);
    }

    #[test]
    fn what_waits_is_bounded_for_each_drone_and_for_all() {
        let mut queue = FairQueue::default();
        let fits = (0..1000).filter(|_| queue.push_message(1, vec![0; 8])).count();
        assert_eq!(fits, MAX_FRAMES);
        let before = queue.bytes;
        let fits = (2..1000).filter(|drone| queue.push_message(*drone, vec![0; MAX_BYTES / 2])).count();
        let each = MAX_BYTES / 2 + OVERHEAD;
        assert!(queue.bytes <= MAX_MESSAGES && before + (fits + 1) * each > MAX_MESSAGES);
        queue.forget(3);
        assert!(!queue.push_message_of_stranger(2001, vec![0; 8]), "not for strangers");
        assert!(queue.push_message(2000, vec![0; MAX_BYTES / 2]), "there is room again");
    }

    /// Bytes of memory of all that waits.
    fn held(queue: &FairQueue) -> usize {
        let lines = |round: &Round| round.lines.values().flatten().map(|frame| cost(frame)).sum::<usize>();
        let for_all = |round: &Round| round.for_all.iter().map(|frame| cost(frame)).sum::<usize>();
        queue.rounds.iter().map(|round| lines(round) + for_all(round)).sum()
    }

    #[test]
    fn of_too_many_broadcasts_the_newest_wait_and_nothing_else_is_lost() {
        for (len, count) in [(300_000, 300), (10, 3_000), (1 << 20, 100)] {
            let mut queue = FairQueue::default();
            for number in 0..count {
                // Between them what a drone is sent.
                if number % 50 == 0 {
                    assert!(queue.push_message(7 + number, number.to_be_bytes().to_vec()));
                }
                let mut broadcast = vec![0; len];
                broadcast[..4].copy_from_slice(&u32::to_be_bytes(number));
                queue.push_for_all(broadcast);
                if number % 7 == 0 {
                    assert!(held(&queue) <= MAX_FOR_ALL + 60 * 100, "{} bytes", held(&queue));
                }
            }
            assert_eq!(queue.bytes + queue.for_all.bytes, held(&queue));
            assert!(queue.rounds.len() <= 62, "{} rounds", queue.rounds.len());
            let order: Vec<_> = std::iter::from_fn(|| queue.pop(usize::MAX)).collect();
            let numbers = |broadcasts: bool| {
                let frames = order.iter().filter(move |frame| (frame.len() == len) == broadcasts);
                frames.map(|frame| u32::from_be_bytes(*frame.first_chunk().unwrap())).collect::<Vec<_>>()
            };
            assert_eq!(numbers(false), (0..count).step_by(50).collect::<Vec<_>>());
            let broadcasts = numbers(true);
            assert!(broadcasts.len() > 10 && broadcasts.iter().copied().eq(broadcasts[0]..count));
            assert!(queue.is_empty() && queue.for_all.frames == 0 && queue.bytes == 0);
        }
    }

    #[test]
    fn what_must_not_be_lost_ends_the_session_where_there_is_no_room() {
        let mut queue = FairQueue::default();
        let mut most = 0;
        for drone in 0..2_000_000 {
            queue.push(drone % 20_000, vec![0; 3]);
            if drone % 100_000 == 0 {
                most = most.max(held(&queue));
            }
            if queue.has_overflowed() {
                break;
            }
        }
        assert!(queue.has_overflowed() && most <= MAX_OF_DRONES && held(&queue) == 0);
        queue.push_for_all(vec![1]);
        assert!(!queue.push_message(1, vec![1]));
        assert_eq!(queue.pop(usize::MAX), None);
    }

    #[test]
    fn frame_that_does_not_fit_waits_for_the_next_batch() {
        let mut queue = FairQueue::default();
        queue.push(1, vec![0; 100]);
        queue.push(2, vec![0; 10]);
        assert_eq!(queue.pop(99), None, "nobody overtakes it");
        assert_eq!(queue.pop(100).map(|frame| frame.len()), Some(100));
        assert_eq!(queue.pop(99).map(|frame| frame.len()), Some(10));
    }
}
