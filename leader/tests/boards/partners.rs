//! Peers of a board, under the gateway's numbers and the machine's.

use quiver_machine::{Peer, Route};

/// The gateway's numbers are a session's; the machine's are never used twice.
#[derive(Default)]
pub(crate) struct Partners {
    list: Vec<Partner>,
    last: u64,
}

struct Partner {
    number: u64,
    peer: Peer,
    route: Route,
}

impl Partners {
    /// The machine's number, unless the partner was connected before.
    pub(crate) fn connected(&mut self, number: u64, route: Route) -> Option<Peer> {
        if self.peer(number).is_some() {
            return None;
        }
        self.last += 1;
        let peer = Peer(self.last);
        self.list.push(Partner { number, peer, route });
        Some(peer)
    }

    pub(crate) fn disconnected(&mut self, number: u64) -> Option<Peer> {
        let place = self.list.iter().position(|partner| partner.number == number)?;
        Some(self.list.remove(place).peer)
    }

    /// Takes any of them out.
    pub(crate) fn pop(&mut self) -> Option<Peer> {
        self.list.pop().map(|partner| partner.peer)
    }

    pub(crate) fn peer(&self, number: u64) -> Option<Peer> {
        self.list.iter().find(|partner| partner.number == number).map(|partner| partner.peer)
    }

    pub(crate) fn number(&self, peer: Peer) -> Option<u64> {
        self.list.iter().find(|partner| partner.peer == peer).map(|partner| partner.number)
    }

    pub(crate) fn has(&self, route: Route) -> bool {
        self.list.iter().any(|partner| partner.route == route)
    }
}
