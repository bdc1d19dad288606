//! A KGC with its deliveries, as one machine for one driver and one node in the network.

use quiver_enrolment::{Kgc, KgcCommand, KgcEvent, KgcRecord};
use quiver_machine::{Either, Node};

use crate::attributes::{AttributeServer, IssuerCommand, IssuerEvent, KeyIssued};
use crate::release::{ReleaseCommand, ReleaseEvent, ShareReleased, ShareServer};

/// Deliveries of a KGC: attribute keys, and shares of condition keys if it has any of a master key.
pub type KgcParts<S> = (AttributeServer<S>, Option<ShareServer<S>>);
/// A KGC with its deliveries.
pub type KgcNode<S> = Node<Kgc<S>, KgcParts<S>>;

/// Commands of a [`KgcNode`]: to the KGC, to its attribute authorities, to its release of key shares.
pub type KgcNodeCommand = Either<KgcCommand, Either<IssuerCommand, ReleaseCommand>>;
/// Events of a [`KgcNode`].
pub type KgcNodeEvent = Either<KgcEvent, Either<IssuerEvent, ReleaseEvent>>;
/// Durable records of a [`KgcNode`].
pub type KgcNodeRecord = Either<KgcRecord, Either<KeyIssued, ShareReleased>>;
