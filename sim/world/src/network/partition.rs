//! Partitions: which nodes do not reach which others.

use std::fmt;

use crate::{NodeId, NodeSet};

/// Messages from some nodes do not reach some others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    from: NodeSet,
    to: NodeSet,
    both_ways: bool,
}

impl Partition {
    /// What `from` sends does not reach `to`; the other way is open.
    pub fn one_way(from: NodeSet, to: NodeSet) -> Self {
        Self { from, to, both_ways: false }
    }

    /// Neither hears the other.
    pub fn both_ways(one: NodeSet, other: NodeSet) -> Self {
        Self { from: one, to: other, both_ways: true }
    }

    /// These nodes and the rest of the world do not hear each other.
    pub fn island(nodes: impl IntoIterator<Item = NodeId> + Clone) -> Self {
        Self::both_ways(NodeSet::only(nodes.clone()), NodeSet::all_but(nodes))
    }

    /// Whether it stops a message.
    pub fn stops(&self, from: NodeId, to: NodeId) -> bool {
        (self.from.contains(from) && self.to.contains(to))
            || (self.both_ways && self.from.contains(to) && self.to.contains(from))
    }

    /// Whether it stops messages either way.
    pub fn parts(&self, one: NodeId, other: NodeId) -> bool {
        self.stops(one, other) || self.stops(other, one)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.from, if self.both_ways { "⇹" } else { "⇸" }, self.to)
    }
}
