//! Who there is, and how connections are named.

use std::collections::BTreeSet;
use std::fmt;

use quiver_role::Peer;

/// A node of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The KGC.
    Kgc,
    /// The leader of this ordinal.
    Leader(u16),
    /// The edge drone of this number.
    Edge(u32),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kgc => f.write_str("kgc"),
            Self::Leader(ordinal) => write!(f, "leader-{ordinal}"),
            Self::Edge(number) => write!(f, "edge-{number}"),
        }
    }
}

/// Some of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSet {
    /// All of them.
    Everyone,
    /// These.
    Only(BTreeSet<Node>),
    /// All but these.
    AllBut(BTreeSet<Node>),
}

impl NodeSet {
    /// These nodes.
    pub fn only(nodes: impl IntoIterator<Item = Node>) -> Self {
        Self::Only(nodes.into_iter().collect())
    }

    /// All nodes but these.
    pub fn all_but(nodes: impl IntoIterator<Item = Node>) -> Self {
        Self::AllBut(nodes.into_iter().collect())
    }

    /// Whether the node is one of them.
    pub fn contains(&self, node: Node) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(nodes) => nodes.contains(&node),
            Self::AllBut(nodes) => !nodes.contains(&node),
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, nodes) = match self {
            Self::Everyone => return f.write_str("everyone"),
            Self::Only(nodes) => ("", nodes),
            Self::AllBut(nodes) => ("everyone but ", nodes),
        };
        f.write_str(prefix)?;
        for (index, node) in nodes.iter().enumerate() {
            write!(f, "{}{node}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Numbers nodes in one row: the KGC, the leaders, the edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) leaders: u16,
}

impl Row {
    /// How many nodes are dialled: the KGC and the leaders.
    pub(crate) fn hubs(self) -> usize {
        1 + usize::from(self.leaders)
    }

    pub(crate) fn index(self, node: Node) -> usize {
        match node {
            Node::Kgc => 0,
            Node::Leader(ordinal) => 1 + usize::from(ordinal),
            Node::Edge(number) => self.hubs() + number as usize,
        }
    }

    pub(crate) fn node(self, index: usize) -> Node {
        match index.checked_sub(self.hubs()) {
            Some(number) => Node::Edge(u32::try_from(number).unwrap_or(u32::MAX)),
            None if index == 0 => Node::Kgc,
            None => Node::Leader(u16::try_from(index - 1).unwrap_or(u16::MAX)),
        }
    }

    /// The handle under which a node knows another over one connection: connections are numbered, so no handle is ever
    /// used again.
    pub(crate) fn peer(self, node: Node, connection: u32) -> Peer {
        Peer(u64::from(connection) << 32 | self.index(node) as u64)
    }

    /// Who and which connection a handle means.
    pub(crate) fn behind(self, peer: Peer) -> (Node, u32) {
        let (connection, index) = ((peer.0 >> 32) as u32, (peer.0 & u64::from(u32::MAX)) as usize);
        (self.node(index), connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_back_to_its_node_and_connection() {
        let row = Row { leaders: 3 };
        for node in [Node::Kgc, Node::Leader(0), Node::Leader(2), Node::Edge(0), Node::Edge(999_999)] {
            assert_eq!(row.node(row.index(node)), node);
            assert_eq!(row.behind(row.peer(node, 7)), (node, 7));
        }
    }
}
