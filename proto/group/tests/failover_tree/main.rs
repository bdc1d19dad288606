//! Several leaders when group keys travel down a tree.

#[path = "../failover/main.rs"]
mod failover;

use failover::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Tree;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;
