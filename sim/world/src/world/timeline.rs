//! Keeps virtual time, and all that is to happen.

use std::time::Duration;

use quiver_testbed::nanos;

use super::ScheduledAction;
use crate::event_queue::{QueuedEvent, WorldEvent, WorldEventQueue};
use crate::node_id::NodeIndex;
use crate::{EPOCH_START, NodeId};

/// The clock, the queue of events, and the actions that the world has scheduled.
#[derive(Debug)]
pub(crate) struct Timeline {
    index: NodeIndex,
    /// Nanoseconds since the world began.
    now: u64,
    queue: WorldEventQueue,
    scheduled: Vec<Option<ScheduledAction>>,
}

impl Timeline {
    pub(super) fn new(index: NodeIndex) -> Self {
        Self { index, now: 0, queue: WorldEventQueue::default(), scheduled: Vec::new() }
    }

    /// Nanoseconds since the world began.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// Time since the world began.
    pub(crate) const fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Unix time by the true clock.
    pub(crate) const fn unix(&self) -> u64 {
        EPOCH_START + self.now / 1_000_000_000
    }

    /// Advances to a time, unless that has passed.
    pub(super) fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
    }

    /// Schedules an action of the world.
    pub(crate) fn plan(&mut self, after: Duration, scheduled: ScheduledAction) {
        let number = u32::try_from(self.scheduled.len()).unwrap_or(u32::MAX);
        self.scheduled.push(Some(scheduled));
        self.queue.push(self.now.saturating_add(nanos(after)), number, WorldEvent::ScheduledAction);
    }

    /// Takes the scheduled action of this number, once.
    pub(super) fn take_scheduled(&mut self, number: u32) -> Option<ScheduledAction> {
        self.scheduled.get_mut(number as usize).and_then(Option::take)
    }

    /// Adds an event of a node.
    pub(crate) fn push(&mut self, at: u64, node: NodeId, event: WorldEvent) {
        self.queue.push(at, self.index.number(node), event);
    }

    /// The events that are to happen.
    pub(super) const fn queue(&self) -> &WorldEventQueue {
        &self.queue
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<QueuedEvent> {
        self.queue.pop()
    }

    /// Takes the next event of a node, with the node.
    pub(crate) fn pop_event(&mut self) -> Option<(NodeId, QueuedEvent)> {
        let queued = self.queue.pop()?;
        Some((self.index.node(queued.event.node as usize), queued))
    }
}
