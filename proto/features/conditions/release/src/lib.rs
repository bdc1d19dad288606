//! Shares of condition keys: what KGCs release when a condition is met, and how drones collect them
//! (docs/protocol.md §4.3).
//!
//! Every KGC decides for itself, by its own clock, its own operator's approvals and its own policies, and
//! denies what none of them allows. A drone needs the shares of any t; a single KGC is a quorum of one. An
//! answer does not show who sent it (it is an [unattested delivery](quiver_ainq::delivery)): a wrong share
//! shows itself when the key does not come out right, and a refusal ends nothing but one attempt.
//!
//! | module | what it has |
//! |---|---|
//! | [`releaser`] | the KGC's side: [`ShareReleaser`] |
//! | [`collector`] | the drone's client: [`Collector`] |
//! | [`authority`] | what everybody knows of a master key: [`ReleaseAuthority`] |
//! | [`policy`] | who may have which keys: [`ReleasePolicy`], [`Approval`] |
//! | [`query`] | query and response: [`ShareQuery`], [`ShareResponse`] |
//!
//! The protocol around them, from hello to reply, is that of every payload: [`quiver_delivery`].
#![doc = concat!(
    "\nWithout sockets, on the deterministic testbed:\n\n```\n",
    include_str!("../examples/condition_key.rs"),
    "```"
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod authority;
pub mod collector;
pub mod policy;
pub mod query;
pub mod releaser;

use quiver_delivery::DeliveryServer;
pub use quiver_delivery::server::DEFAULT_RATE;

pub use self::authority::{ReleaseAuthority, ReleaseParameters};
pub use self::collector::{CollectCommand, CollectEvent, CollectTiming, Collector, Shortfall, Verdict};
pub use self::policy::{Approval, Audience, Pattern, ReleasePolicy};
pub use self::query::{ShareQuery, ShareResponse};
pub use self::releaser::{
    Holding, HoldingError, ReleaseCommand, ReleaseConfig, ReleaseEvent, ShareReleased, ShareReleaser,
};

/// The server of key shares at a KGC.
pub type ShareServer<S> = DeliveryServer<ShareReleaser<S>>;

/// The kind that the KGC's statements about master keys of identity-based encryption have.
pub const KIND: &str = "ibe";
/// The scheme that those statements name.
pub const SCHEME: &str = quiver_ibe::SCHEME;
