//! Partitions: which nodes do not reach which others.

use std::collections::BTreeSet;
use std::fmt;

/// Some of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSet<N> {
    /// All of them.
    Everyone,
    /// Only these nodes.
    Only(BTreeSet<N>),
    /// All but these.
    AllBut(BTreeSet<N>),
}

impl<N: Copy + Ord> NodeSet<N> {
    /// Makes the set of these nodes.
    pub fn only(nodes: impl IntoIterator<Item = N>) -> Self {
        Self::Only(nodes.into_iter().collect())
    }

    /// All nodes but these.
    pub fn all_but(nodes: impl IntoIterator<Item = N>) -> Self {
        Self::AllBut(nodes.into_iter().collect())
    }

    /// Returns true if the node is one of them.
    pub fn contains(&self, node: N) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(nodes) => nodes.contains(&node),
            Self::AllBut(nodes) => !nodes.contains(&node),
        }
    }
}

impl<N: fmt::Display> fmt::Display for NodeSet<N> {
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

/// Messages from some nodes do not reach some others.
#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
#[display("{from} {} {to}", if self.both_ways { "⇹" } else { "⇸" })]
pub struct Partition<N> {
    from: NodeSet<N>,
    to: NodeSet<N>,
    both_ways: bool,
}

impl<N: Copy + Ord> Partition<N> {
    /// Messages of `from` do not reach `to`; the other way is open.
    pub fn one_way(from: NodeSet<N>, to: NodeSet<N>) -> Self {
        Self { from, to, both_ways: false }
    }

    /// Partition in which neither hears the other.
    pub fn both_ways(one: NodeSet<N>, other: NodeSet<N>) -> Self {
        Self { from: one, to: other, both_ways: true }
    }

    /// Partition in which these nodes and the rest of the world do not hear each other.
    pub fn island(nodes: impl IntoIterator<Item = N> + Clone) -> Self {
        Self::both_ways(NodeSet::only(nodes.clone()), NodeSet::all_but(nodes))
    }

    /// Returns true if it stops a message.
    pub fn stops(&self, from: N, to: N) -> bool {
        (self.from.contains(from) && self.to.contains(to))
            || (self.both_ways && self.from.contains(to) && self.to.contains(from))
    }

    /// Returns true if it stops messages either way.
    pub fn parts(&self, one: N, other: N) -> bool {
        self.stops(one, other) || self.stops(other, one)
    }
}
