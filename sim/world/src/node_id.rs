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
    /// The edge drone of this number.
    #[display("edge-{_0}")]
    Edge(u32),
}

/// Numbers nodes in one row: the KGCs, the leaders, the edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeIndex {
    pub(crate) kgcs: u16,
    pub(crate) leaders: u16,
}

impl NodeIndex {
    /// Number of nodes that are dialled: the KGCs and the leaders.
    pub(crate) fn hubs(self) -> usize {
        usize::from(self.kgcs) + usize::from(self.leaders)
    }

    /// The KGCs in order.
    pub(crate) fn kgcs(self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (1..=self.kgcs).map(NodeId::Kgc)
    }

    /// The leaders in order.
    pub(crate) fn leaders(self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.leaders).map(NodeId::Leader)
    }

    pub(crate) fn index(self, node: NodeId) -> usize {
        match node {
            NodeId::Kgc(id) => usize::from(id).saturating_sub(1),
            NodeId::Leader(ordinal) => usize::from(self.kgcs) + usize::from(ordinal),
            NodeId::Edge(number) => self.hubs() + number as usize,
        }
    }

    pub(crate) fn node(self, index: usize) -> NodeId {
        let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        match (index.checked_sub(self.hubs()), index.checked_sub(usize::from(self.kgcs))) {
            (Some(number), _) => NodeId::Edge(u32::try_from(number).unwrap_or(u32::MAX)),
            (None, Some(ordinal)) => NodeId::Leader(short(ordinal)),
            (None, None) => NodeId::Kgc(short(index + 1)),
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
        for kgcs in [1, 5] {
            let nodes = NodeIndex { kgcs, leaders: 3 };
            let edges = [NodeId::Edge(0), NodeId::Edge(999_999)];
            for node in nodes.kgcs().chain(nodes.leaders()).chain(edges) {
                assert_eq!(nodes.node(nodes.index(node)), node);
                assert_eq!(nodes.behind(nodes.peer(node, 7)), (node, 7));
            }
        }
    }
}
