//! Frames that wait for a batch: those of each drone in their order, the drones in turn.

use std::collections::{BTreeMap, VecDeque};

/// Messages of one drone, or to it, that may wait.
const MAX_FRAMES: usize = 64;
/// Their bytes.
const MAX_BYTES: usize = 2 << 20;
/// Bytes of all messages that may wait.
const MAX_TOTAL: usize = 64 << 20;

/// The queue. Who sends more than others waits longer, and nobody else does.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Frames that concern the session, in front of all others.
    first: VecDeque<Vec<u8>>,
    lines: BTreeMap<u32, Line>,
    /// The drones with frames, in their turn.
    turns: VecDeque<u32>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Line {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    /// Appends a frame that goes in front of those of the drones.
    pub(crate) fn push_first(&mut self, frame: Vec<u8>) {
        self.first.push_back(frame);
    }

    /// Appends a message of a drone. Returns whether there was room.
    pub(crate) fn push_message(&mut self, drone: u32, frame: Vec<u8>) -> bool {
        let line = self.lines.get(&drone);
        let full =
            line.is_some_and(|line| line.frames.len() >= MAX_FRAMES || line.bytes + frame.len() > MAX_BYTES);
        if full || self.bytes + frame.len() > MAX_TOTAL {
            return false;
        }
        self.push(drone, frame);
        true
    }

    /// Appends what must not be lost, of which there is little.
    pub(crate) fn push(&mut self, drone: u32, frame: Vec<u8>) {
        self.bytes += frame.len();
        let line = self.lines.entry(drone).or_default();
        if line.frames.is_empty() {
            self.turns.push_back(drone);
        }
        line.bytes += frame.len();
        line.frames.push_back(frame);
    }

    /// Drops what waits of a drone.
    pub(crate) fn forget(&mut self, drone: u32) {
        if let Some(line) = self.lines.remove(&drone) {
            self.bytes -= line.bytes;
            self.turns.retain(|other| *other != drone);
        }
    }

    /// The next frame, unless it has more than `room` bytes.
    pub(crate) fn pop(&mut self, room: usize) -> Option<Vec<u8>> {
        if let Some(next) = self.first.front() {
            return if next.len() <= room { self.first.pop_front() } else { None };
        }
        let drone = *self.turns.front()?;
        let line = self.lines.get_mut(&drone)?;
        if line.frames.front().is_none_or(|frame| frame.len() > room) {
            return None;
        }
        let frame = line.frames.pop_front()?;
        self.turns.pop_front();
        line.bytes -= frame.len();
        self.bytes -= frame.len();
        if line.frames.is_empty() {
            self.lines.remove(&drone);
        } else {
            self.turns.push_back(drone);
        }
        Some(frame)
    }

    /// Number of drones with frames that wait.
    pub(crate) fn drones(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.turns.is_empty()
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
        queue.push_first(vec![0]);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(9)).map(|frame| frame[0]).collect();
        assert_eq!(order, [0, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(queue.is_empty() && queue.bytes == 0 && queue.lines.is_empty());
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
