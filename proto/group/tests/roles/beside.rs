//! Machines without parts beside the roles: they are the nodes.

use quiver_group::{Edge, Leader};

use crate::world::S;

pub(crate) type EdgeMachine = Edge<S>;
pub(crate) type LeaderMachine = Leader<S>;

pub(crate) const fn node<M>(machine: M) -> M {
    machine
}

/// The role's own part of an event or a record.
pub(crate) const fn own<T>(all: &T) -> Option<&T> {
    Some(all)
}

/// A role's own command or record, as its node's.
pub(crate) const fn whole<T>(own: T) -> T {
    own
}
