//! Inputs and outputs of [`Datagrams`](crate::Datagrams).

use alloc::boxed::Box;
use alloc::vec::Vec;

use quiver_ainq::{DronePublicKey, Handle, Name, Slot, Suite};

/// Importance of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Soon replaced by the next: dropped first.
    Telemetry,
    /// Leaves first, is dropped last, and is sealed again if the key changes just then.
    Command,
}

/// Payload to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The bytes. They arrive whole or not at all.
    pub bytes: Vec<u8>,
    /// Priority, by which payloads leave and are dropped.
    pub priority: Priority,
    /// True if the member signs it, so that receivers know which member sent it.
    pub sign: bool,
}

/// Reason why a payload is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramRefusal {
    /// There is no valid key of an epoch that is known to be current.
    #[error("there is no valid group key")]
    Closed,
    /// It has no bytes.
    #[error("an empty payload")]
    Empty,
    /// It fits no datagram.
    #[error("payload of {len} bytes is longer than the {max} that one datagram takes")]
    TooLong {
        /// The length in bytes.
        len: usize,
        /// The longest in bytes.
        max: usize,
    },
    /// It is to be signed by an anonymous member, which has no key for that.
    #[error("an anonymous member cannot sign")]
    NoSigner,
    /// It is to be signed, but the announcement with this member's key, without which nobody can verify that,
    /// fits no datagram.
    #[error(
        "nothing can be signed: the announcement of this member's key needs {needed} bytes, the carrier takes {mtu}"
    )]
    AnnouncementTooLong {
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that the carrier takes.
        mtu: usize,
    },
    /// So many datagrams were sealed under this epoch's key that none may follow.
    #[error("this epoch's datagram counter is used up")]
    Exhausted,
}

/// Sender of a payload, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadOrigin {
    /// A member of the group; the slot is its own claim.
    Member,
    /// This drone, which signed.
    Signed {
        /// Name of the signer.
        name: Name,
        /// Key of the signer.
        handle: Handle,
    },
}

/// Reason to believe that a member sends as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// The sender's signed manifest has another datagram under a number that was received.
    Manifest,
    /// Numbers were received that its signed manifest is far from.
    Ahead,
    /// The sender's manifests ended, its datagrams did not.
    Unvouched,
    /// A drone other than the one known signed an announcement for the slot.
    Signer,
    /// The slot is this member's own, and this process did not send that: another member did, or a copy of
    /// this one runs, which repeats its nonces. Start anew: a raised boot number, and the epoch set again.
    Own,
}

/// Statement to sign with the member's own key, under the label `datagram`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// Names it in [`Datagrams::provide_signature`](crate::Datagrams::provide_signature).
    pub id: u64,
    /// The bytes to sign.
    pub statement: Vec<u8>,
}

/// Event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<S: Suite> {
    /// A payload arrived.
    Received {
        /// The slot that it came from, [`LEADER_SLOT`](quiver_ainq::LEADER_SLOT) for the leader.
        slot: Slot,
        /// The payload.
        bytes: Vec<u8>,
        /// Sender of the payload, as far as it is known.
        source: PayloadOrigin,
    },
    /// A statement is to be signed: `Edge::sign_datagram` or `Leader::sign_datagram`, then
    /// [`Datagrams::provide_signature`](crate::Datagrams::provide_signature). A second later it is given up.
    SignatureWanted(SigningRequest),
    /// A drone signed that it sends from this slot. Its signed payloads are held until
    /// [`Datagrams::allow_signer`](crate::Datagrams::allow_signer), which is to follow if
    /// `may_sign_datagrams` of the group's machine agrees.
    SignerAnnounced {
        /// The slot.
        slot: Slot,
        /// The drone; its signature holds.
        drone: Box<DronePublicKey<S>>,
    },
    /// Datagrams come under a key that is not known: perhaps there is a newer epoch. Ask the leader
    /// (`EdgeCommand::CatchUp`).
    EpochWanted,
    /// More datagrams than [`Config::forgery_limit`](crate::Config::forgery_limit) did not hold in this epoch:
    /// somebody guesses. The leader is to make a new key. Once per epoch.
    TooManyForgeries {
        /// Number of them.
        count: u64,
    },
    /// Perhaps a member sends as another.
    Impostor {
        /// The slot.
        slot: Slot,
        /// Suspicion about the sender.
        suspicion: Suspicion,
    },
}
