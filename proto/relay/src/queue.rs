//! Frames that wait for a batch: those of each drone in their order, the drones in turn, what is for all behind what
//! came before it.

use std::collections::{BTreeMap, VecDeque};

/// Messages of one drone, or to it, that may wait.
const MAX_FRAMES: usize = 64;
/// Their bytes.
const MAX_BYTES: usize = 2 << 20;
/// Bytes of all messages that may wait.
const MAX_TOTAL: usize = 64 << 20;

/// The queue. Who sends more than others waits longer, and nobody else does. What is for all drones goes when all
/// that waited before has gone: a member that is yet to be sent its welcome has no use for the epoch after that.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    rounds: VecDeque<Round>,
    /// Of each drone with frames: how many wait.
    waiting: BTreeMap<u32, Waiting>,
    /// Of all drones.
    bytes: usize,
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
struct Waiting {
    frames: usize,
    bytes: usize,
}

impl Queue {
    /// Appends a frame that is for all drones.
    pub(crate) fn push_for_all(&mut self, frame: Vec<u8>) {
        match self.rounds.back_mut() {
            Some(last) => last.for_all.push_back(frame),
            None => self.rounds.push_back(Round { for_all: [frame].into(), ..Round::default() }),
        }
    }

    /// Appends a message of a drone. Returns whether there was room.
    pub(crate) fn push_message(&mut self, drone: u32, frame: Vec<u8>) -> bool {
        let Waiting { frames, bytes } = self.waiting.get(&drone).copied().unwrap_or_default();
        if frames >= MAX_FRAMES || bytes + frame.len() > MAX_BYTES || self.bytes + frame.len() > MAX_TOTAL {
            return false;
        }
        self.push(drone, frame);
        true
    }

    /// Appends what must not be lost, of which there is little.
    pub(crate) fn push(&mut self, drone: u32, frame: Vec<u8>) {
        self.bytes += frame.len();
        let waiting = self.waiting.entry(drone).or_default();
        (waiting.frames, waiting.bytes) = (waiting.frames + 1, waiting.bytes + frame.len());
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
            Some(drone) => {
                let frame = round.pop(drone, room)?;
                self.gone(drone, frame.len());
                frame
            }
            None if round.for_all.front()?.len() <= room => round.for_all.pop_front()?,
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

    fn is_over(&self) -> bool {
        self.turns.is_empty() && self.for_all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drones_take_turns_however_much_one_of_them_sends() {
        let mut queue = Queue::default();
        (0..10).for_each(|number| assert!(queue.push_message(1, vec![1, number])));
        assert!(queue.push_message(2, vec![2, 0]) && queue.push_message(3, vec![3, 0]));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(9)).map(|frame| frame[0]).collect();
        assert_eq!(order, [1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(queue.is_empty() && queue.bytes == 0 && queue.waiting.is_empty());
    }

    #[test]
    fn what_is_for_all_neither_overtakes_nor_is_overtaken() {
        let mut queue = Queue::default();
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
        let mut queue = Queue::default();
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
        let mut queue = Queue::default();
        let fits = (0..1000).filter(|_| queue.push_message(1, vec![0; 8])).count();
        assert_eq!(fits, MAX_FRAMES);
        let before = queue.bytes;
        let fits = (2..1000).filter(|drone| queue.push_message(*drone, vec![0; MAX_BYTES / 2])).count();
        assert!(queue.bytes <= MAX_TOTAL && before + (fits + 1) * (MAX_BYTES / 2) > MAX_TOTAL);
        queue.forget(3);
        assert!(queue.push_message(2000, vec![0; MAX_BYTES / 2]), "there is room again");
    }

    #[test]
    fn frame_that_does_not_fit_waits_for_the_next_batch() {
        let mut queue = Queue::default();
        queue.push(1, vec![0; 100]);
        queue.push(2, vec![0; 10]);
        assert_eq!(queue.pop(99), None, "nobody overtakes it");
        assert_eq!(queue.pop(100).map(|frame| frame.len()), Some(100));
        assert_eq!(queue.pop(99).map(|frame| frame.len()), Some(10));
    }
}
