//! Release of identity keys: KGCs that let go of their shares when a condition is met, and drones that collect them.
//!
//! ```text
//! drone → KGC   ReleaseHello(nonce)
//! KGC → drone   ReleaseChallenge(nonce, cookie, which KGC, fingerprint of MPK, version of the shares)
//! drone → KGC   ReleaseRequest, signed `ibe-release` over nonce ‖ cookie: for one condition, with a one-time point
//! KGC → drone   ReleaseReply, sealed to the drone: this KGC's key share, or why not
//! ```
//!
//! Every KGC decides for itself, by its own clock, its own operator's approvals and its own policies, and denies what none of
//! them allows. A drone needs the shares of any t; a single KGC is a quorum of one. An answer does not show from whom it
//! comes (it is an [unattested delivery](quiver_ainq::delivery)): a wrong share shows itself when the key does not come out
//! right, and a refusal ends nothing but one attempt.
//!
//! | module | what it has |
//! |---|---|
//! | [`office`] | the machine at a KGC: [`ReleaseOffice`] |
//! | [`collector`] | the drone's machine: [`Collector`] |
//! | [`authority`] | what everybody knows of a master key: [`ReleaseAuthority`] |
//! | [`policy`] | who may have which keys: [`Policy`], [`Approval`] |
//! | [`inner`] | what question and answer say |

pub mod authority;
pub mod collector;
pub mod inner;
pub mod office;
mod pace;
pub mod policy;

pub use authority::{ReleaseAuthority, ReleaseParameters};
pub use collector::{
    CollectCommand, CollectEvent, CollectTiming, Collector, CollectorConfig, Shortfall, Verdict,
};
pub use inner::{ReleaseAnswer, ReleaseQuestion};
pub use office::{
    Holding, HoldingError, ReleaseCommand, ReleaseConfig, ReleaseEvent, ReleaseOffice, ShareReleased,
};
pub use pace::Allowance;
pub use policy::{Approval, Audience, Pattern, Policy};

/// The kind that the KGC's statements about master keys of identity-based encryption have.
pub const KIND: &str = "ibe";
/// The scheme that those statements name.
pub const SCHEME: &str = quiver_ibe::SCHEME;
