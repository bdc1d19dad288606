//! The roles when a leader wraps the group key for every member.

mod lost_key;
mod misaddressed;

#[path = "../roles/beside.rs"]
mod beside;
#[path = "../roles/main.rs"]
mod roles;

use roles::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Flat;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;
