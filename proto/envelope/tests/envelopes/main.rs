//! Envelopes in a group: leader and edges on a virtual clock.

mod access;
mod authority;
mod beside;
mod floods;
mod limits;
mod sessions;
#[expect(dead_code, reason = "shared with the tests of the roles, which use all of it")]
#[path = "../../../group/tests/roles"]
mod roles {
    pub(crate) mod world;
}

use roles::world;

/// Re-key strategy of these tests.
const STRATEGY: quiver_ainq::StrategyKind = quiver_ainq::StrategyKind::Flat;
/// Every member has a link of its own.
const SHARED_MEDIUM: bool = false;
