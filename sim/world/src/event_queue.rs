//! The event queue, ordered by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use quiver_role::Route;

/// Something that is to happen to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its deadline may have come.
    Wake,
    /// A message arrives over a connection, sent to this node alone or published to the group.
    Message { via: u32, connection: u32, by_group: bool, payload: Arc<[u8]> },
    /// A connection stands.
    Connected { other: u32, connection: u32, route: Route },
    /// A connection is gone.
    Disconnected { other: u32, connection: u32 },
    /// The world does something; the node is the number of the errand.
    ScheduledAction,
}

/// When, to whom, and what. Ordered by time, then by the order in which they were planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedEvent {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) node: u32,
    pub(crate) due: Event,
}

impl PartialOrd for QueuedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// All that is to happen.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<QueuedEvent>>,
    planned: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: u64, node: u32, due: Event) {
        let number = self.planned;
        self.planned += 1;
        self.heap.push(Reverse(QueuedEvent { at, number, node, due }));
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(event)| event.at)
    }

    /// Whether the next thing is an errand of the world.
    pub(crate) fn action_is_next(&self) -> bool {
        self.heap.peek().is_some_and(|Reverse(event)| matches!(event.due, Event::ScheduledAction))
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedEvent> {
        self.heap.pop().map(|Reverse(event)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_planned() {
        let mut queue = EventQueue::default();
        for (at, node) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            queue.push(at, node, Event::Wake);
        }
        assert_eq!(queue.next_at(), Some(3));
        let nodes: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|event| event.node).collect();
        assert_eq!(nodes, [2, 4, 1, 3]);
    }
}
