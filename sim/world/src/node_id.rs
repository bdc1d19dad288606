//! Names and numbers nodes, and the handles of their connections.

use quiver_ainq::KgcId;
use quiver_machine::Peer;

/// A node of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum NodeId {
    /// The KGC of this identifier, from 1; a single one is 1.
    #[display("kgc-{_0}")]
    Kgc(KgcId),
    /// The leader of this ordinal.
    #[display("leader-{_0}")]
    Leader(u16),
    /// The relay of this number: those of the first leader come first.
    #[display("relay-{_0}")]
    Relay(u16),
    /// The edge drone of this number.
    #[display("edge-{_0}")]
    Edge(u32),
}

/// Numbers nodes in one row: the KGCs, the leaders, their relays, the edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeIndex {
    pub(crate) kgcs: u16,
    pub(crate) leaders: u16,
    /// Relays of each leader.
    pub(crate) relays: u16,
}

impl NodeIndex {
    /// Number of nodes that are dialled: the KGCs, the leaders and the relays.
    pub(crate) fn hubs(self) -> usize {
        self.first_relay() + usize::from(self.all_relays())
    }

    fn first_relay(self) -> usize {
        usize::from(self.kgcs) + usize::from(self.leaders)
    }

    /// Number of relays of all leaders.
    pub(crate) fn all_relays(self) -> u16 {
        self.leaders.saturating_mul(self.relays)
    }

    /// The leader that a relay serves.
    pub(crate) fn leader_of(self, relay: u16) -> NodeId {
        NodeId::Leader(relay.checked_div(self.relays).unwrap_or_default())
    }

    /// The relays that an edge knows, of each leader the one that it prefers and another.
    pub(crate) fn relays_of(self, edge: u32) -> impl Iterator<Item = NodeId> + use<> {
        let number = move |leader: u16, other: u32| {
            let place = (edge + other).checked_rem(self.relays.into()).unwrap_or_default();
            NodeId::Relay(leader * self.relays + u16::try_from(place).unwrap_or_default())
        };
        let known = u32::from(self.relays.min(2));
        (0..self.leaders).flat_map(move |leader| (0..known).map(move |other| number(leader, other)))
    }

    /// Returns true if a node dials another.
    pub(crate) fn dials(self, dialler: NodeId, hub: NodeId) -> bool {
        match (dialler, hub) {
            (NodeId::Edge(_), NodeId::Leader(_)) => self.relays == 0,
            (NodeId::Edge(edge), NodeId::Relay(_)) => self.relays_of(edge).any(|relay| relay == hub),
            (NodeId::Relay(relay), _) => self.leader_of(relay) == hub,
            (_, NodeId::Kgc(_) | NodeId::Leader(_)) => self.index(hub) < self.index(dialler),
            (_, NodeId::Relay(_) | NodeId::Edge(_)) => false,
        }
    }

    /// The KGCs in order.
    pub(crate) fn kgcs(self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (1..=self.kgcs).map(NodeId::Kgc)
    }

    /// The leaders in order.
    pub(crate) fn leaders(self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.leaders).map(NodeId::Leader)
    }

    /// The relays in order.
    pub(crate) fn relays(self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.all_relays()).map(NodeId::Relay)
    }

    pub(crate) fn index(self, node: NodeId) -> usize {
        match node {
            NodeId::Kgc(id) => usize::from(id).saturating_sub(1),
            NodeId::Leader(ordinal) => usize::from(self.kgcs) + usize::from(ordinal),
            NodeId::Relay(number) => self.first_relay() + usize::from(number),
            NodeId::Edge(number) => self.hubs() + number as usize,
        }
    }

    /// The same as it is in events.
    pub(crate) fn number(self, node: NodeId) -> u32 {
        u32::try_from(self.index(node)).unwrap_or(u32::MAX)
    }

    pub(crate) fn node(self, index: usize) -> NodeId {
        let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        if let Some(number) = index.checked_sub(self.hubs()) {
            NodeId::Edge(u32::try_from(number).unwrap_or(u32::MAX))
        } else if let Some(number) = index.checked_sub(self.first_relay()) {
            NodeId::Relay(short(number))
        } else if let Some(ordinal) = index.checked_sub(usize::from(self.kgcs)) {
            NodeId::Leader(short(ordinal))
        } else {
            NodeId::Kgc(short(index + 1))
        }
    }

    /// The handle under which a node knows another over one connection: connections are numbered, so no
    /// handle is ever used again.
    pub(crate) fn peer(self, node: NodeId, connection: u32) -> Peer {
        Peer(u64::from(connection) << 32 | self.index(node) as u64)
    }

    /// The node and connection of a handle.
    pub(crate) fn behind(self, peer: Peer) -> (NodeId, u32) {
        let (connection, index) = ((peer.0 >> 32) as u32, (peer.0 & u64::from(u32::MAX)) as usize);
        (self.node(index), connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_back_to_its_node_and_connection() {
        for (kgcs, relays) in [(1, 0), (5, 0), (1, 4), (5, 1)] {
            let nodes = NodeIndex { kgcs, leaders: 3, relays };
            let edges = [NodeId::Edge(0), NodeId::Edge(999_999)];
            for node in nodes.kgcs().chain(nodes.leaders()).chain(nodes.relays()).chain(edges) {
                assert_eq!(nodes.node(nodes.index(node)), node);
                assert_eq!(nodes.behind(nodes.peer(node, 7)), (node, 7));
            }
        }
    }

    #[test]
    fn drones_dial_leaders_or_two_relays_of_each() {
        let dialled = |relays, node: NodeId| {
            let nodes = NodeIndex { kgcs: 1, leaders: 2, relays };
            let hubs = nodes.kgcs().chain(nodes.leaders()).chain(nodes.relays());
            hubs.filter(|hub| nodes.dials(node, *hub))
                .map(|hub| hub.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(dialled(0, NodeId::Edge(4)), "kgc-1 leader-0 leader-1");
        assert_eq!(dialled(3, NodeId::Edge(4)), "kgc-1 relay-1 relay-2 relay-4 relay-5");
        assert_eq!(dialled(3, NodeId::Edge(5)), "kgc-1 relay-0 relay-2 relay-3 relay-5");
        assert_eq!(dialled(1, NodeId::Edge(4)), "kgc-1 relay-0 relay-1");
        assert_eq!(dialled(3, NodeId::Relay(2)), "leader-0");
        assert_eq!(dialled(3, NodeId::Relay(3)), "leader-1");
        assert_eq!(dialled(3, NodeId::Leader(1)), "kgc-1 leader-0");
    }
}
