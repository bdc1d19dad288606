//! Delivery: what a KGC hands to one drone on request (docs/protocol.md §4). This crate has the
//! protocol of every payload, and one payload: attribute keys and certified fields. The other, shares of
//! condition keys, is a crate of conditions.
//!
//! ```text
//! drone → KGC   DeliveryHello(payload, nonce)
//! KGC → drone   DeliveryChallenge(nonce, cookie, what is offered)
//! drone → KGC   DeliveryRequest, signed over nonce ‖ cookie with the payload's label: a query to one authority
//! KGC → drone   DeliveryReply, sealed to the drone
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`attributes`] | attribute keys and certified fields: their issuer, their client |
//! | [`client`] | the drone's side of the protocol, for the client of a payload |
//! | [`encoding`] | fields of the queries and responses of all payloads |
//! | [`server`] | the protocol at a KGC: [`DeliveryServer`], of an [`Issuer`] |
//! | [`standalone`] | a server or a client as a machine of its own: [`Standalone`] |
//! | [`kgc`] | a KGC with both servers beside it: [`KgcNode`](kgc::KgcNode) |
//!
//! A build for drones alone has no servers. Examples of both payloads, from a token to what a key opens, are in
//! `quiver-attribute-schemes` and `quiver-key-release`.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod attributes;
pub mod client;
pub mod encoding;
#[cfg(feature = "kgc")]
pub mod kgc;
#[cfg(feature = "services")]
pub mod server;
pub mod standalone;

#[cfg(feature = "services")]
pub use self::server::{DeliveryServer, Issuer};
pub use self::standalone::Standalone;
