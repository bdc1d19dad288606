//! The roles when a leader keeps a tree of keys, over a medium that all share.

mod joins;
mod term_opening;

#[path = "../roles/beside.rs"]
mod beside;
#[path = "../roles/main.rs"]
mod roles;
#[path = "../tree/wraps.rs"]
mod wraps;

use roles::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Tree;
/// One transmission reaches all members.
const SHARED_MEDIUM: bool = true;
