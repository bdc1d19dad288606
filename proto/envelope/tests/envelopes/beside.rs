//! Envelopes are beside the roles.

use quiver_envelope::Envelopes;
use quiver_group::{Edge, Leader};
use quiver_machine::{Either, Node, Primary};

use crate::world::S;

pub(crate) type EdgeMachine = Node<Edge<S>, Envelopes>;
pub(crate) type LeaderMachine = Node<Leader<S>, Envelopes>;

pub(crate) fn node<P: Primary>(machine: P) -> Node<P, Envelopes> {
    Node::new(machine, Envelopes::default())
}

/// The role's own part of an event or a record.
pub(crate) fn own<L, R>(all: &Either<L, R>) -> Option<&L> {
    all.left()
}

/// A role's own command or record, as its node's.
pub(crate) const fn whole<L, R>(own: L) -> Either<L, R> {
    Either::Left(own)
}
