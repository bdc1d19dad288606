//! The roles of Quiver under one name: what the crates of the protocols have.
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "abke")]
pub use quiver_admission as admission;
#[cfg(any(feature = "abe", feature = "abke", feature = "ibe"))]
pub use quiver_delivery as delivery;
#[cfg(any(feature = "abe", feature = "abke"))]
pub use quiver_delivery::attributes;
#[cfg(feature = "ibe")]
pub use quiver_delivery::release;
#[cfg(feature = "threshold")]
pub use quiver_enrolment::QuorumSuite;
#[cfg(feature = "services")]
pub use quiver_enrolment::kgc;
#[cfg(feature = "threshold")]
pub use quiver_enrolment::threshold;
pub use quiver_enrolment::{EnrolmentTrouble, Kgcs};
#[cfg(feature = "services")]
pub use quiver_enrolment::{
    Kgc, KgcCommand, KgcConfig, KgcEvent, KgcRecord, Master, MasterShare, RevocationUsage,
};
#[cfg(feature = "abe")]
pub use quiver_envelope::{
    AttributeAccess, AttributeKeys, Author, DroneSigner, DroneVerifier, EnvelopeCommand, EnvelopeEvent,
    EnvelopeLimits, Envelopes,
};
pub use quiver_group::edge;
#[cfg(feature = "services")]
pub use quiver_group::leader;
pub use quiver_group::{Edge, EdgeCommand, EdgeConfig, EdgeEvent, Source};
#[cfg(feature = "services")]
pub use quiver_group::{Leader, LeaderCommand, LeaderConfig, LeaderEvent, LeaderRecord};
pub use quiver_machine as machine;
pub use quiver_machine::{
    CLOCK_TOLERANCE, Destination, Either, Finished, Input, Job, MAX_MESSAGE_LEN, Machine, Misdeed, Node, Now,
    Offence, Output, Peer, Primary, Reason, Route, Snapshot, Via,
};
#[cfg(feature = "quorum")]
pub use quiver_quorum_node as quorum;
#[cfg(feature = "quorum")]
pub use quiver_quorum_node::{QuorumCommand, QuorumConfig, QuorumEvent, QuorumNode, QuorumRecord};
