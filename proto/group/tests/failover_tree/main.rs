//! Several leaders when group keys travel down a tree.

#[path = "../failover/main.rs"]
mod failover;

use failover::world;

/// How group keys travel in these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Tree;
