//! Links, partitions and sets of the simulated world's nodes.

use crate::NodeId;

/// The simulated network.
pub type SimNetwork = quiver_testbed::Network<NodeId>;
/// Messages from some nodes do not reach some others.
pub type Partition = quiver_testbed::Partition<NodeId>;
/// Some of the nodes.
pub type NodeSet = quiver_testbed::NodeSet<NodeId>;
