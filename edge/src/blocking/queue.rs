//! Events that the application has not taken yet: bounded, whatever it does.

use std::collections::VecDeque;
use std::mem::discriminant;

use super::Event;

/// Maximum number of messages, and of bytes in them; beyond, the oldest are dropped and counted.
const MESSAGES: usize = 1024;
const BYTES: usize = 16 << 20;
/// Maximum number of other events; beyond, the oldest is dropped of which there is a newer one of the same
/// kind: the newest epoch is never lost.
const OTHERS: usize = 256;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct BoundedEventQueue {
    events: VecDeque<Event>,
    messages: usize,
    bytes: usize,
    dropped: u64,
}

impl BoundedEventQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of messages dropped so far.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn clear(&mut self) {
        *self = Self { dropped: self.dropped, ..Self::default() };
    }

    pub(super) fn push(&mut self, event: Event) {
        if let Some(length) = event.message_len() {
            self.messages += 1;
            self.bytes += length;
        }
        self.events.push_back(event);
        while self.messages > MESSAGES || self.bytes > BYTES {
            let oldest = self.events.iter().position(|event| event.message_len().is_some());
            let Some(oldest) = oldest else { break };
            self.remove(oldest);
            self.dropped += 1;
        }
        if self.events.len() - self.messages > OTHERS
            && let Some(superseded) = self.superseded()
        {
            self.remove(superseded);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.remove(0)
    }

    fn remove(&mut self, at: usize) -> Option<Event> {
        let event = self.events.remove(at)?;
        if let Some(length) = event.message_len() {
            self.messages -= 1;
            self.bytes -= length;
        }
        Some(event)
    }

    /// The oldest event but messages of which there is a newer one of its kind: there are fewer kinds than
    /// events.
    fn superseded(&self) -> Option<usize> {
        self.events.iter().enumerate().position(|(at, event)| {
            event.message_len().is_none()
                && self.events.iter().skip(at + 1).any(|newer| discriminant(newer) == discriminant(event))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::{MessageSender, ReceivedMessage, RemoteService};

    fn message(number: usize, length: usize) -> Event {
        let mut data = number.to_be_bytes().to_vec();
        data.resize(length, 0);
        let sender = MessageSender::Unauthenticated { slot: 0 };
        Event::Message(ReceivedMessage { channel: "chat".into(), data: data.into(), sender })
    }

    fn epoch(counter: u64) -> Event {
        Event::Epoch { term: 1, counter, digest: [0; 32], slot: 0 }
    }

    fn drain(queue: &mut BoundedEventQueue) -> Vec<Event> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn oldest_messages_are_dropped_and_counted_and_nothing_else() {
        let mut queue = BoundedEventQueue::default();
        queue.push(epoch(1));
        (0..MESSAGES + 3).for_each(|number| queue.push(message(number, 8)));
        queue.push(epoch(2));
        assert_eq!(queue.dropped(), 3);
        let events = drain(&mut queue);
        assert_eq!((events.len(), &events[0]), (MESSAGES + 2, &epoch(1)));
        assert_eq!((&events[1], events.last()), (&message(3, 8), Some(&epoch(2))));
    }

    #[test]
    fn large_messages_are_bounded_by_their_bytes_and_leave_room_once_taken() {
        let mut queue = BoundedEventQueue::default();
        let fit = BYTES / 65_536;
        (0..=fit).for_each(|number| queue.push(message(number, 65_536)));
        assert_eq!((queue.dropped(), queue.events.len()), (1, fit));
        assert_eq!(queue.pop(), Some(message(1, 65_536)));
        queue.push(message(0, 65_536));
        assert_eq!(queue.dropped(), 1);
    }

    #[test]
    fn newest_of_each_other_kind_is_never_lost() {
        let mut queue = BoundedEventQueue::default();
        queue.push(Event::Enrolled { name: "edge-1".into() });
        queue.push(message(0, 8));
        for counter in 0..1000 {
            queue.push(epoch(counter));
            queue.push(Event::Disconnected { service: RemoteService::Leader });
        }
        let events = drain(&mut queue);
        assert_eq!(events.len(), OTHERS + 1);
        assert_eq!(events[0], Event::Enrolled { name: "edge-1".into() });
        assert_eq!(events[1], message(0, 8));
        assert!(events.contains(&epoch(999)) && !events.contains(&epoch(0)));
        assert_eq!(queue.dropped(), 0);
    }
}
