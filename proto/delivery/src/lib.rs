//! Delivery: what a KGC hands to one drone on request: attribute keys, certified fields, shares of condition
//! keys (docs/protocol.md §4).
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
//! | [`server`] | the protocol at a KGC: [`DeliveryServer`], of an [`Issuer`] |
//! | [`release`] | shares of condition keys: their releaser, their client |
//! | [`standalone`] | a server or a client as a machine of its own: [`Standalone`] |
//! | [`kgc`] | a KGC with both servers beside it: [`KgcNode`](kgc::KgcNode) |
//!
//! A build for drones alone has neither servers nor releasers.
#![cfg_attr(
    all(feature = "std", feature = "kgc", feature = "abe", feature = "ibe"),
    doc = concat!(
        "\nWithout sockets, on the deterministic testbed:\n\n```\n",
        include_str!("../examples/delivery.rs"),
        "```"
    )
)]
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

pub mod attributes;
mod client;
#[cfg(feature = "kgc")]
pub mod kgc;
#[cfg(feature = "ibe")]
pub mod release;
#[cfg(feature = "services")]
pub mod server;
pub mod standalone;

use quiver_ainq::Error;
use quiver_crypto::canonical::Reader;

#[cfg(feature = "services")]
pub use self::server::{DeliveryServer, Issuer};
pub use self::standalone::Standalone;

/// First byte of every query and response.
const QUERY_VERSION: u8 = 1;

fn read_version(reader: &mut Reader<'_>) -> Result<(), Error> {
    if reader.u8()? == QUERY_VERSION { Ok(()) } else { Err(Error::Malformed("of another version")) }
}

fn read_flag(reader: &mut Reader<'_>) -> Result<bool, Error> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::Malformed("neither yes nor no")),
    }
}
