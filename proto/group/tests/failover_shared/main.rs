//! Several leaders when group keys travel down a tree, over a medium that all share.

#[path = "../failover/main.rs"]
mod failover;

use failover::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Tree;
/// One transmission reaches all members.
const SHARED_MEDIUM: bool = true;
