//! AinQ: certificateless group keys for drone swarms.
//!
//! Source: Frimpong, Rabbaninejad, Michalas, *Arrows in a Quiver: A Secure Certificateless Group Key
//! Distribution Protocol for Drones*, NordSec 2021, eprint 2021/1372. The paper's seven algorithms as
//! published are kept for experiments; all other modules are the protocol Quiver builds on them.
//!
//! Mathematics only: no I/O, no clock, no logging. Time and randomness are arguments. Generic over a
//! [`Suite`].
//!
//! | module | what it has |
//! |---|---|
//! | [`suite`] | the groups: ristretto255, and G1 of BLS12-381 behind a feature |
//! | [`element`], [`schnorr`] | validated points, secret scalars; the one signature equation |
//! | [`name`], [`identity`], [`deployment`] | who, and under which KGC |
//! | [`keys`], [`statement`], [`signature`] | certificateless keys; what a KGC signs; what drones sign |
//! | [`token`], [`enrolment`], [`revocation`] | how a drone gets its key, and loses it |
//! | [`quorum`] | who the KGCs are that share x, in their own word |
//! | [`authority`], [`delivery`] | authorities beside the KGC: what it says of them, how they hand secrets to drones |
//! | [`slots`], [`roster`] | who is in a group, replicated and hashed |
//! | [`kem`] | κ, the second factor of pairwise secrets |
//! | [`spare`], [`pairwise`] | one-time points, and the ratchet a member shares with its leader |
//! | [`header`], [`group_key`] | what an epoch says, when it is believed, and the key it brings |
//! | [`leadership`], [`membership`] | a group from the leader's side and from an edge's |
//! | [`tree`] | the key hierarchy, and what its members are sent |
//! | [`anonymous`] | anonymous members, admitted by an exchange over hidden attributes |
//! | [`traffic`] | messages under the group key |
//! | [`equivocation`] | evidence against a leader that contradicts itself |
//! | [`paper`] | the seven algorithms as published, unauthenticated, for experiments |
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod anonymous;
pub mod authority;
pub mod delivery;
pub mod deployment;
pub mod element;
pub mod enrolment;
pub mod equivocation;
pub mod error;
pub mod group_key;
pub mod header;
pub mod identity;
#[cfg(feature = "instrumented")]
pub mod instrumented;
pub mod kem;
pub mod keys;
pub mod leadership;
pub mod membership;
pub mod name;
pub mod pairwise;
pub mod paper;
pub mod quorum;
pub mod revocation;
pub mod roster;
pub mod schnorr;
pub mod signature;
mod slab;
pub mod slots;
pub mod spare;
pub mod statement;
mod strategy;
pub mod suite;
pub mod token;
pub mod traffic;
pub mod tree;

pub use anonymous::{Admission, Anonymous, Pseudonym};
pub use authority::{AuthorityStatement, MAX_AUTHORITY_LEN, SignedAuthority, VerifiedAuthority};
pub use delivery::{PendingDelivery, SealedDelivery, SignedDeliveryRequest, VerifiedDelivery};
pub use deployment::Deployment;
pub use element::{Element, SecretScalar};
pub use enrolment::{EnrolmentRequest, KgcId, PendingEnrolment, SealedReply, SealedShare, VerifiedRequest};
pub use error::Error;
pub use identity::{Identity, MAX_GROUPS, MAX_IDENTITY_LEN, Role, Serial, UnixTime};
pub use keys::{
    DroneKeypair, DronePublicKey, Handle, MasterSecret, SecretValue, UnverifiedPartialKey, identity_statement,
};
pub use name::Name;
pub use quorum::{MAX_QUORUM_STATEMENT_LEN, QuorumStatement, VerifiedQuorum};
pub use revocation::{
    BOARD_REVOCATION_LIST_LEN, MAX_REVOCATION_LIST_LEN, REVOCATION_MARGIN, RevocationStatement, Revoked,
    SignedRevocationList, VerifiedRevocationList,
};
pub use schnorr::SchnorrSignature;
pub use signature::{Label, Signature, SignedItem, verify_batch, verify_batch_implicit};
pub use statement::{Purpose, StatementSignature};
#[cfg(feature = "bls12-381")]
pub use suite::Bls12381G1;
#[cfg(feature = "verification-cache")]
pub use suite::CacheScope;
pub use suite::{AgreedSecret, Ristretto255, Suite};
pub use token::{IssuedToken, OperatorPublicKey, OperatorSecretKey, Token, TokenGrant, TokenStatement};

pub use equivocation::EquivocationProof;
pub use group_key::GroupKey;
pub use header::{
    Entry, Epoch, EpochKind, GroupContext, Header, HeaderCore, PrevStart, ShortHeader, StrategyKind,
    VerifiedHeader,
};
pub use kem::{KEM_TAG_LEN, KemKey, KemPair, KemTag, KemTerm, MAX_KEM_STEPS, TermKeys};
pub use leadership::{Batch, EpochOutput, Join, Leadership, Times};
pub use membership::GroupMembership;
pub use pairwise::{
    MAX_SKIP, PairContext, REQUEST_LEN, Ratchet, ack_tag, catch_up_tag, fresh_tag, leave_tag,
};
pub use roster::Roster;
pub use slots::{LEADER_SLOT, MAX_LISTED, MAX_RUNS, MAX_SLOTS, Slot, SlotChanges, SlotRun, SlotSet};
pub use spare::{SparePair, SpareStatement};
pub use traffic::{Ceiling, EpochKeys, MAX_FRAMES, Opened, Receiver, SealedMessage, Sender, TrafficKey};
pub use tree::{Delta, EpochPart, PathMessage, PathNonce, WrapTree};
