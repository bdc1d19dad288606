//! Numbers by which a board knows its peers.

use std::collections::BTreeMap;

use quiver_machine::{Peer, Route};

/// One of a board's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoardNode {
    Leaders,
    Kgcs,
}

/// Peers of a board's nodes. As many as there are configured addresses, at most.
#[derive(Debug, Default)]
pub(crate) struct BoardPeers {
    next: u64,
    known: BTreeMap<u64, (BoardNode, Peer)>,
}

impl BoardPeers {
    /// Numbers a peer. None for routes that a board does not know.
    pub(crate) fn add(
        &mut self,
        side: BoardNode,
        peer: Peer,
        route: Route,
    ) -> Option<(u64, quiver_link::Route)> {
        let route = match route {
            Route::Kgc => quiver_link::Route::Kgc,
            Route::Leader => quiver_link::Route::Leader,
            Route::Inbound | Route::Member(_) | Route::Relay => return None,
        };
        let number = self.next;
        // 2^64 connections do not happen.
        self.next = self.next.wrapping_add(1);
        self.known.insert(number, (side, peer));
        Some((number, route))
    }

    pub(crate) fn number(&self, side: BoardNode, peer: Peer) -> Option<u64> {
        self.known.iter().find(|(_, known)| **known == (side, peer)).map(|(number, _)| *number)
    }

    /// The peer of a node that has been there longest.
    pub(crate) fn first(&self, side: BoardNode) -> Option<u64> {
        self.known.iter().find(|(_, (of, _))| *of == side).map(|(number, _)| *number)
    }

    pub(crate) fn find(&self, number: u64) -> Option<(BoardNode, Peer)> {
        self.known.get(&number).copied()
    }

    pub(crate) fn remove(&mut self, side: BoardNode, peer: Peer) -> Option<u64> {
        let number = self.number(side, peer)?;
        self.known.remove(&number);
        Some(number)
    }

    /// The numbers of all peers of a node, which is gone.
    pub(crate) fn remove_all(&mut self, side: BoardNode) -> Vec<u64> {
        let gone: Vec<_> =
            self.known.iter().filter(|(_, (of, _))| *of == side).map(|(number, _)| *number).collect();
        gone.iter().for_each(|number| {
            self.known.remove(number);
        });
        gone
    }
}
