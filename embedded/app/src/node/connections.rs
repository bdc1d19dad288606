//! Connections by route: the gateway's numbers for a session, the machine's handles for its life.

use alloc::vec::Vec;

use quiver_machine::{Peer, Route};

/// Greatest number of connections at once: KGCs of a quorum, a leader and its deputies.
const MAX_CONNECTIONS: usize = 80;

/// The connected connections. The machine never sees a number twice.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    list: Vec<Connection>,
    last: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    peer: Peer,
    route: Route,
}

impl Connections {
    /// Registers a connection and returns the machine's handle for it; `None` if it was registered before or
    /// there are too many.
    pub(super) fn connected(&mut self, number: u64, route: Route) -> Option<Peer> {
        if self.peer(number).is_some() || self.list.len() >= MAX_CONNECTIONS {
            return None;
        }
        let peer = self.fresh();
        self.list.push(Connection { number, peer, route });
        Some(peer)
    }

    pub(super) fn disconnected(&mut self, number: u64) -> Option<Peer> {
        let place = self.list.iter().position(|connection| connection.number == number)?;
        Some(self.list.remove(place).peer)
    }

    /// Takes any of them out.
    pub(super) fn pop(&mut self) -> Option<Peer> {
        self.list.pop().map(|connection| connection.peer)
    }

    /// The machine's name.
    pub(super) fn peer(&self, number: u64) -> Option<Peer> {
        self.list.iter().find(|connection| connection.number == number).map(|connection| connection.peer)
    }

    /// The gateway's number.
    pub(super) fn number(&self, peer: Peer) -> Option<u64> {
        self.list.iter().find(|connection| connection.peer == peer).map(|connection| connection.number)
    }

    /// Connections on this route.
    pub(crate) fn on(&self, route: Route) -> impl Iterator<Item = Peer> + '_ {
        self.list.iter().filter(move |connection| connection.route == route).map(|connection| connection.peer)
    }

    /// Returns true if there is one to whom this leads.
    pub(crate) fn has(&self, route: Route) -> bool {
        self.on(route).next().is_some()
    }

    /// All of them under new names, for a new machine.
    pub(super) fn renamed(&mut self) -> Vec<(Peer, Route)> {
        let last = &mut self.last;
        let renamed = self.list.iter_mut().map(|connection| {
            *last += 1;
            connection.peer = Peer(*last);
            (connection.peer, connection.route)
        });
        renamed.collect()
    }

    fn fresh(&mut self) -> Peer {
        self.last += 1;
        Peer(self.last)
    }
}
