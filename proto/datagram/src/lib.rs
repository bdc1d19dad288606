//! The group's own datagrams, without I/O: small, unreliable, encrypted under the key of the epoch.
//!
//! Group messages (§13) travel over connections and cost some 70 bytes each. A datagram costs 12 bytes beside
//! its payload, needs no connection, may be lost, doubled and reordered, and can be broadcast: for
//! telemetry and commands over radios. docs/protocol.md, section 20.
//!
//! [`Datagrams`] is driven like this:
//!
//! 1. After each input of the group's machine, give it the epoch: [`Datagrams::set_epoch`] with what
//!    `Edge::epoch_keys` or `Leader::epoch_keys` gives, [`Datagrams::close`] if that is `None`. Giving it the
//!    epoch that it has changes nothing.
//! 2. Hand it payloads ([`Datagrams::send`]), what the carrier receives ([`Datagrams::handle_datagram`]), and
//!    call [`Datagrams::handle_timeout`] when [`Datagrams::timeout`] has come.
//! 3. After each of these take events ([`Datagrams::poll_event`]) until there are none. Two of them ask for
//!    an answer: [`Event::SignatureWanted`] and [`Event::SignerAnnounced`].
//! 4. Whenever the carrier takes another datagram, ask for one ([`Datagrams::poll_datagram`]). Nothing is
//!    sealed before it can leave, so that a slow carrier holds no queue but this one, which is bounded.
//!
//! Times are [`Duration`](core::time::Duration)s since an arbitrary start and never go back.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod announcement;
mod body;
mod cipher;
mod config;
mod counters;
mod datagrams;
mod epoch;
mod event;
mod header;
mod held;
mod queue;
mod senders;
#[cfg(test)]
mod vectors;

pub use config::Config;
pub use counters::DatagramCounters;
pub use datagrams::{Datagrams, SenderStatus};
pub use event::{DatagramRefusal, Event, Payload, PayloadOrigin, Priority, SigningRequest, Suspicion};
