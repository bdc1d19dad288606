//! Several leaders when a leader wraps the group key for every member.

#[path = "../failover/main.rs"]
mod failover;

use failover::world;

/// How group keys travel in these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Flat;
