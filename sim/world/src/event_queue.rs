//! The events of the simulated world, in order of time.

use std::sync::Arc;

use quiver_machine::Route;

/// Event that is to happen to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorldEvent {
    /// A deadline of the node may have come.
    Wake,
    /// A message arrives over a connection, sent to this node alone or published to the group.
    Message { via: u32, connection: u32, by_group: bool, payload: Arc<[u8]> },
    /// A connection is up.
    Connected { other: u32, connection: u32, route: Route },
    /// A connection is gone.
    Disconnected { other: u32, connection: u32 },
    /// The radio brings a datagram of the group, whose number the world knows.
    Datagram { number: u64, bytes: Arc<[u8]> },
    /// The node's station for datagrams may have something to do.
    Station,
    /// A member may have to repeat the broadcast of this number.
    Repeat { message: u64 },
    /// The world does something; the node is the number of the scheduled action.
    ScheduledAction,
}

/// An event, and the number of its node.
#[derive(Clone, Debug)]
pub(crate) struct PlannedEvent {
    pub(crate) node: u32,
    pub(crate) event: WorldEvent,
}

/// All that is to happen.
#[derive(Debug, Default)]
pub(crate) struct WorldEventQueue(quiver_testbed::EventQueue<PlannedEvent>);

/// An event when it is due.
pub(crate) type QueuedEvent = quiver_testbed::QueuedEvent<PlannedEvent>;

impl WorldEventQueue {
    pub(crate) fn push(&mut self, at: u64, node: u32, event: WorldEvent) {
        self.0.push(at, PlannedEvent { node, event });
    }

    /// Time of the next event.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.0.next_at()
    }

    /// Returns true if the next event is about a station's datagrams.
    pub(crate) fn datagram_is_next(&self) -> bool {
        let is_datagram = |planned: &PlannedEvent| {
            matches!(planned.event, WorldEvent::Datagram { .. } | WorldEvent::Station)
        };
        self.0.peek().is_some_and(is_datagram)
    }

    /// Returns true if the next event is about a broadcast that members repeat.
    pub(crate) fn repeat_is_next(&self) -> bool {
        self.0.peek().is_some_and(|planned| matches!(planned.event, WorldEvent::Repeat { .. }))
    }

    /// Returns true if the next event is a scheduled action of the world.
    pub(crate) fn action_is_next(&self) -> bool {
        self.0.peek().is_some_and(|planned| planned.event == WorldEvent::ScheduledAction)
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedEvent> {
        self.0.pop()
    }
}
