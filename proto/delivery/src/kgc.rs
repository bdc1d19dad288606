//! A KGC with what it delivers beside it, as one machine for one driver and one node in the network.

use quiver_enrolment::{Kgc, KgcCommand, KgcEvent, KgcRecord};
use quiver_machine::{Either, Node};

use crate::attributes::{AttributeServer, IssuerCommand, IssuerEvent, KeyIssued};
use crate::release::{ReleaseCommand, ReleaseEvent, ShareReleased, ShareServer};

/// What a KGC delivers: attribute keys, and shares of condition keys if it has any of a master key.
pub type KgcParts<S> = (AttributeServer<S>, Option<ShareServer<S>>);
/// A KGC and what it delivers.
pub type KgcNode<S> = Node<Kgc<S>, KgcParts<S>>;

/// What the operator may ask of a [`KgcNode`]: of the KGC, of its attribute authorities, of its release of key shares.
pub type KgcNodeCommand = Either<KgcCommand, Either<IssuerCommand, ReleaseCommand>>;
/// What a [`KgcNode`] reports.
pub type KgcNodeEvent = Either<KgcEvent, Either<IssuerEvent, ReleaseEvent>>;
/// What a [`KgcNode`] has made durable.
pub type KgcNodeRecord = Either<KgcRecord, Either<KeyIssued, ShareReleased>>;
