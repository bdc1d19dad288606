//! The link between a board and its gateway over a serial line or IEEE 802.15.4 radio, without I/O.
//!
//! A board runs the same role machine as a service does. Its gateway is a relay: it sends the board a
//! driver's inputs (connections, received messages, the time), and the board sends the machine's outputs
//! (messages and their receivers). The gateway reads nothing of what it relays and is not trusted: it can
//! delay and drop messages, and what it alters does not verify.
//!
//! Five layers, each of which can be used alone:
//!
//! | layer | what it does | types |
//! |---|---|---|
//! | line | frames with a check sum on a stream of bytes: UART, USB, TCP | [`LineDecoder`], [`encode_line`] |
//! | radio | data frames of IEEE 802.15.4-2006 | [`RadioFrame`] |
//! | datagram | at most [`MAX_DATAGRAM`] bytes; lost, repeated, reordered at will | [`refusal`], [`is_hello`], [`is_of_group`] |
//! | broadcast | frames of which any k of n make a message, repeated by those who have it | [`erasure`], [`Trickle`] |
//! | endpoint | messages: whole, in order, at most once, or given up within bounds | [`BoardEndpoint`], [`GatewayEndpoint`] |
//!
//! An endpoint is driven like this, on either side:
//!
//! 1. Hand it received datagrams ([`BoardEndpoint::handle_datagram`]), messages to send
//!    ([`BoardEndpoint::send`]), and call [`BoardEndpoint::handle_timeout`] when [`BoardEndpoint::timeout`]
//!    has come.
//! 2. After each of these, take events ([`BoardEndpoint::poll_event`]) until there are none.
//! 3. Whenever the medium takes another datagram, ask for one ([`BoardEndpoint::poll_datagram`]). Nothing is
//!    made before it can leave, so that a slow medium holds no queue but the endpoint's own, which is
//!    bounded. While the medium takes nothing, a deadline for something to be sent may pass and stay; there
//!    is nothing to do then but to wait for the medium.
//!
//! Times are [`Duration`](core::time::Duration)s since an arbitrary start and never go back. Numbers in line
//! and radio headers are little-endian as in IEEE 802.15.4; inside datagrams they are big-endian as
//! everywhere in Quiver.
//!
//! # Sessions
//! The board says [`Hello`] until a [`GatewayWelcome`] answers it. From then on both speak in a session, a number
//! that the gateway chose; whatever belongs to another session is ignored or answered with "lost", so that a
//! reset of either side is noticed by the other at once and nothing from before it is mistaken for news. The
//! board asks for the time and shows that it lives by pings; a side that hears nothing for
//! [`EndpointLimits::lost_after`] ends the session. When it ends, all peers are gone and everything that was queued
//! is dropped. A board that goes without what it wants ends its session too ([`BoardEndpoint::set_served`]),
//! so that nothing it was wrongly told keeps it out for good.
//!
//! # Transfers
//! A message and its CRC-32 are cut into equal fragments. The receiver says which it has; the sender repeats
//! the others, at growing intervals that begin with what answers were seen to take, and gives the message up
//! after [`EndpointLimits::give_up_after`]: transmission may fail silently, and machines keep their own deadlines.
//! One message at a time is under way in each direction. A side that gives up three messages in a row, or one
//! that says who is connected, ends the session, so that no state of either side can keep the link useless.
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;

mod board;
mod checksum;
mod datagram;
pub mod erasure;
mod error;
mod gateway;
mod hello;
mod limits;
mod line;
mod message;
mod pipe;
mod radio;
mod report;
mod trickle;

pub use board::{BoardEndpoint, BoardEvent};
pub use datagram::{is_hello, is_of_group, refusal};
pub use error::LinkError;
pub use gateway::{GatewayEndpoint, GatewayEvent};
pub use hello::{GatewayWelcome, Hello, MAX_GROUP_LEN, Wants};
pub use limits::{EndpointLimits, MAX_FRAGMENTS, PipeCounters};
pub use line::{LineCounters, LineDecoder, LineFrame, MAX_DATAGRAM, MAX_LINE_FRAME, VERSION, encode_line};
pub use message::{Destination, MESSAGE_OVERHEAD, Route, ToBoard, ToGateway, Via};
pub use radio::{BROADCAST, MAX_PSDU, MAX_RADIO_DATAGRAM, RadioFrame};
pub use report::{BoardReport, Counter};
pub use trickle::{Trickle, TrickleConfig, TrickleStep};
