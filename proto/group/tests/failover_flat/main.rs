//! Several leaders when a leader wraps the group key for every member.

#[path = "../failover/main.rs"]
mod failover;

use failover::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Flat;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;
