//! The exchange between a leader that demands a policy and a drone that satisfies it.
//!
//! ```text
//! drone → leader   AdmissionHello(nonce, group, set)
//! leader → drone   AdmissionChallenge(nonce, cookie, leader, policy, set and g)
//! drone → leader   AdmissionProof(nonce, cookie, hello of the exchange: an unlinked key; ek)
//! leader → drone   AdmissionStep: the offer, with the leader's signature `abke` on the run's context; ct
//! leader → drone   AdmissionStep*: the garbled circuit, at most four pieces of 64 KiB, then more whenever the drone asks (empty step)
//! drone → leader   AdmissionStep: commitment          leader → drone   AdmissionStep: seeds
//! drone → leader   AdmissionStep: opening             leader → drone   AdmissionStep: confirmation
//! ```
//!
//! Both sides are machines of their own, [`Gate`](gate::Gate) and [`Applicant`](applicant::Applicant). The
//! result of a run is a session: a key, and a pseudonym for this run alone; and κ, where the deployment has a
//! second factor of pairwise secrets. A failure has no reason that the other side may learn. A drone answers a
//! leader a limited number of times in a period ([`ledger`]).

mod admitting_leader;
mod anonymous_edge;
mod any_edge;
pub mod applicant;
pub mod gate;
mod kem;
pub mod ledger;

use alloc::vec::Vec;

use quiver_ainq::Name;
use quiver_crypto::canonical::Writer;
use quiver_kem::{KemError, KemSetting};
use quiver_message::RefusalReason;

pub use admitting_leader::{AdmittingLeader, AdmittingLeaderCommand, AdmittingLeaderEvent, Demand};
pub use anonymous_edge::{AnonymousConfig, AnonymousEdge, AnonymousEvent, Ending};
pub use any_edge::AnyEdge;
pub use ledger::{Exhausted, Ledger};

use crate::policy::AdmissionPolicyError;

/// Pieces of a garbled circuit, of 64 KiB each, that are under way at a time.
pub const WINDOW: usize = 4;

/// Reason why a run came to nothing. For one's own log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The policy that is demanded cannot be.
    #[error(transparent)]
    Policy(#[from] AdmissionPolicyError),
    /// The leader is not one that may demand anything.
    #[error("the leader is not answered: {0}")]
    Leader(&'static str),
    /// The leader has been answered often enough.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The credential is of another period.
    #[error("the credential is not of this period")]
    Expired,
    /// The exchange failed.
    #[error(transparent)]
    Exchange(#[from] quiver_abke::Error),
    /// The other side's encapsulation key or ciphertext is none.
    #[error(transparent)]
    Kem(#[from] KemError),
    /// The leader's deployment says another parameter set of ML-KEM, or none. Nothing was shown to it.
    #[error("`kem` is \"{leader}\" in the leader's deployment and \"{own}\" in the drone's")]
    OtherKem {
        /// Setting of the drone.
        own: KemSetting,
        /// Setting of the leader.
        leader: KemSetting,
    },
    /// A message at the wrong time, or of another run.
    #[error("out of turn: {0}")]
    OutOfTurn(&'static str),
    /// The other side was silent for too long, or left.
    #[error("the other side fell silent")]
    Silent,
    /// The leader's welcome does not hold: another than this run's, or the drone's clock is wrong.
    #[error(
        "the welcome of the leader does not hold; if that happens with every leader, check this drone's clock"
    )]
    Welcome,
    /// Refused, by the other side or an attacker in its name, or before there was a run.
    #[error("refused: {0}")]
    Refused(RefusalReason),
}

/// Signed `admission`: group, and the policy as the KGC signed it.
pub(crate) fn demand(group: &Name, policy: &[u8]) -> Vec<u8> {
    Writer::new().lp(group.as_bytes()).lp(policy).finish()
}
