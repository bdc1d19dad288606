//! The roles when a leader keeps a tree of keys.

#[path = "../roles/main.rs"]
mod roles;

use roles::world;

/// How group keys travel in these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Tree;
