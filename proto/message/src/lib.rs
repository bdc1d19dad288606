//! Messages between Quiver's roles: the protobuf package `quiver.v1`, bounded and validated.
//!
//! [`Message::decode`] is the one way in. It checks the deployment, lengths, lists and names; points and
//! signatures are decoded where the receiver needs them at once, and left as bounded bytes in messages that a
//! cookie must admit first ([`EnrolRequest`], [`JoinHello`], [`JoinRequest`]), so that a stranger buys no
//! curve arithmetic with one packet.
//!
//! | message | from → to | answers | authenticated by |
//! |---|---|---|---|
//! | [`EnrolHello`] | drone → KGC | – | – |
//! | [`EnrolCookie`] | KGC → drone | `EnrolHello` | – (echoes the nonce) |
//! | [`EnrolRequest`] | drone → KGC | `EnrolCookie` | operator's token, proofs under tsk and x_i |
//! | [`EnrolReply`] | KGC → drone | `EnrolRequest` | sealed to the drone; the partial key verifies or not |
//! | [`Refusal`] | service → drone | any request | – (sets the pace of retries; `Rejoin` makes a member join anew) |
//! | [`JoinHello`] | edge → leader | – | – |
//! | [`JoinChallenge`] | leader → edge | `JoinHello` | – (the header of the welcome is signed) |
//! | [`JoinRequest`] | edge → leader | `JoinChallenge` | signature `join`, challenge |
//! | [`JoinCiphertext`] | leader → edge | `JoinRequest` | – (a wrong one leads to a key that the welcome does not fit) |
//! | [`Welcome`] | leader → edge | `JoinRequest` | signature `header`, tag |
//! | [`Ack`] | edge → leader | `Welcome`, `Rekey`, `CatchUpReply` | MAC under A_i |
//! | [`Rekey`] | leader → edges | – | signature `header`, tag |
//! | [`ShortRekey`] | leader → edges | – | signature `header` over the whole header, tag |
//! | [`CatchUpRequest`] | edge → leader | – | MAC under A_i (if the leader still shares one) |
//! | [`CatchUpReply`] | leader → edge | `CatchUpRequest` | signature `header`, MAC under A_i |
//! | [`SparePublication`] | edge → leader | – | signature `spare` |
//! | [`SpareAck`] | leader → edge | `SparePublication` | MAC under A_i |
//! | [`Leave`] | edge → leader | – | signature `leave` |
//! | [`EvictionNotice`] | leader → group | – | signature `evict` |
//! | [`GroupMessage`] | member → group | – | AEAD under the group key; signature if a source is named |
//! | [`RevocationQuery`] | anyone → anyone | – | – |
//! | [`RevocationList`] | anyone → anyone | `RevocationQuery` | KGC's statement `revocation` |
//! | [`StandBy`] | deputy → leader | `JoinChallenge`, `Replica` | signature `stand-by`, challenge |
//! | [`Replica`] | leader → deputy | `StandBy` | signature `replica`; roster hash; signatures `spare` |
//! | `EquivocationProof` | anyone → anyone | – | two signatures `header` |
//! | [`DeliveryHello`] | drone → KGC | – | – |
//! | [`DeliveryChallenge`] | KGC → drone | `DeliveryHello` | – (echoes the nonce) |
//! | [`DeliveryRequest`] | drone → KGC | `DeliveryChallenge` | signature `attributes` or `ibe-release`, challenge |
//! | [`DeliveryReply`] | KGC → drone | `DeliveryRequest` | sealed to the drone by the authority, or the condition key verifies or not; KGC's statement `parameters` |
//!
//! Messages of features are one variant, [`Message::Extension`]: this crate has their number and their bytes, and the crate
//! of the feature their types, bounds and a table as the one above ([`Extension`]). In the `.proto` they stand with the
//! others, because what travels is one protocol.
//!
//! | messages | crate |
//! |---|---|
//! | `Envelope`, `OpeningRequest` | `quiver-envelope` |
//! | `EnrolCommitment`, `EnrolSigning`, `EnrolShare`, `EnrolDone` | `quiver-enrolment`, which has them with quorums |
//! | `AdmissionHello`, `AdmissionChallenge`, `AdmissionProof`, `AdmissionStep`, `AdmissionLeave` | `quiver-admission` |
//!
//! Messages between the KGCs of a quorum have a frame of their own: [`quorum`].
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

#[allow(dead_code, reason = "a board reads none")]
mod delivery;
#[allow(dead_code, reason = "a board reads none")]
mod deputy;
mod enrolment;
mod epoch;
mod equivocation;
mod error;
mod extension;
pub mod field;
mod joining;
pub mod kem;
mod message;
mod part;
pub mod quorum;
mod refusal;
mod revocation;
mod short_rekey;
mod template;
mod traffic;

/// The types generated from the `.proto` by `examples/compile_proto.rs`, unvalidated.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "generated from the .proto, which documents it"
)]
pub mod wire {
    include!("wire.rs");

    // The message around all others, with the bodies that this build has: one of any other kind is refused.
    #[cfg(feature = "services")]
    include!("wire/services.rs");
    #[cfg(all(feature = "delivery", not(feature = "services")))]
    include!("wire/delivery.rs");
    #[cfg(not(any(feature = "services", feature = "delivery")))]
    include!("wire/board.rs");
}

pub use delivery::{
    DeliveryChallenge, DeliveryHello, DeliveryOffer, DeliveryReply, DeliveryRequest, MAX_AUTHORITIES,
    MAX_RELEASE_STATEMENT_LEN, Payload,
};
pub use deputy::{EpochChanges, MAX_REPLICA_EVICTED, MAX_SEATS, Replica, ReplicaChunk, Seat, StandBy};
pub use enrolment::{COOKIE_LEN, EnrolCookie, EnrolHello, EnrolReply, EnrolRequest, Nonce};
pub use epoch::{
    Ack, CatchUpNumber, CatchUpReply, CatchUpRequest, EvictionNotice, Leave, MAX_EVICTED, Newcomers, Rekey,
    SpareAck, SparePublication,
};
pub use error::MessageError;
pub use extension::{Extension, ExtensionMessage, canonical};
pub use joining::{DecodedJoinRequest, JoinChallenge, JoinHello, JoinRequest, Welcome};
pub use kem::{JoinCiphertext, KemOffer};
pub use message::{MAX_MESSAGE_LEN, Message, group_message_channel};
pub use quorum::QuorumMessage;
pub use refusal::{Refusal, RefusalReason};
pub use revocation::{RevocationList, RevocationQuery};
pub use short_rekey::ShortRekey;
pub use template::{RekeyParts, RekeyTemplate};
pub use traffic::{GroupMessage, MAX_PAYLOAD_LEN, Source};
