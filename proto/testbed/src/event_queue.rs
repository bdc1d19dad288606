//! The event queue, ordered by time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An event and when it is due. Ordered by time, then by the order in which events were planned.
#[derive(Clone, Debug)]
pub struct QueuedEvent<E> {
    /// Nanoseconds of virtual time.
    pub at: u64,
    /// The how-manieth event it is that was ever planned.
    pub number: u64,
    /// The event.
    pub event: E,
}

impl<E> PartialEq for QueuedEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for QueuedEvent<E> {}

impl<E> PartialOrd for QueuedEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for QueuedEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// All that is to happen.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<QueuedEvent<E>>>,
    planned: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Plans an event.
    pub fn push(&mut self, at: u64, event: E) {
        let number = self.planned;
        self.planned += 1;
        self.heap.push(Reverse(QueuedEvent { at, number, event }));
    }

    /// Time at which the next event is due.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(queued)| queued.at)
    }

    /// The next event.
    pub fn peek(&self) -> Option<&E> {
        self.heap.peek().map(|Reverse(queued)| &queued.event)
    }

    /// Takes the next event out.
    pub fn pop(&mut self) -> Option<QueuedEvent<E>> {
        self.heap.pop().map(|Reverse(queued)| queued)
    }

    /// All events in order. Takes time: for tests that choose what happens next.
    pub fn in_order(&self) -> Vec<&QueuedEvent<E>> {
        let mut all: Vec<_> = self.heap.iter().map(|Reverse(queued)| queued).collect();
        all.sort_unstable();
        all
    }

    /// Takes an event out of its turn. Takes time, as [`in_order`](Self::in_order) does.
    pub fn remove(&mut self, number: u64) -> Option<QueuedEvent<E>> {
        let (mut wanted, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.heap).into_iter().partition(|Reverse(queued)| queued.number == number);
        self.heap = rest.into();
        wanted.pop().map(|Reverse(queued)| queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> EventQueue<u32> {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            queue.push(at, event);
        }
        queue
    }

    #[test]
    fn events_come_by_time_and_then_in_the_order_planned() {
        let mut queue = queue();
        assert_eq!(queue.next_at(), Some(3));
        assert_eq!(queue.in_order().iter().map(|queued| queued.event).collect::<Vec<_>>(), [2, 4, 1, 3]);
        let events: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|queued| queued.event).collect();
        assert_eq!(events, [2, 4, 1, 3]);
    }

    #[test]
    fn an_event_can_be_taken_out_of_its_turn() {
        let mut queue = queue();
        assert_eq!(queue.remove(2).map(|queued| queued.event), Some(3));
        assert!(queue.remove(2).is_none());
        let events: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|queued| queued.event).collect();
        assert_eq!(events, [2, 4, 1]);
    }
}
