//! Messages between a board and its gateway within a session.

use alloc::vec::Vec;

use quiver_crypto::canonical::{Malformed, Reader, Writer};

use crate::{BoardReport, LinkError};

/// The most bytes that an encoded message has beyond its payload.
pub const MESSAGE_OVERHEAD: usize = 10;

mod kind {
    pub(super) const TRANSMIT: u8 = 1;
    pub(super) const PUBLISH: u8 = 2;
    pub(super) const BLOCK: u8 = 3;
    pub(super) const REPORT: u8 = 4;
    pub(super) const TAKES_BROADCASTS: u8 = 5;
    pub(super) const CONNECTED: u8 = 1;
    pub(super) const DISCONNECTED: u8 = 2;
    pub(super) const RECEIVED: u8 = 3;
    pub(super) const PUBLISHED: u8 = 4;
}

/// Route of a connection, by the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The peer is a KGC.
    Kgc,
    /// The peer is a leader.
    Leader,
}

/// Way of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Received over the connection with the peer.
    Peer,
    /// Received by the group: the peer relayed it.
    Group,
}

/// Receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A peer.
    Peer(u64),
    /// All members of the group.
    Group,
}

/// A message of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToGateway {
    /// Send this.
    Transmit {
        /// The receiver.
        to: Destination,
        /// The message; not empty.
        payload: Vec<u8>,
    },
    /// Never talk to this peer again in this session.
    Block {
        /// The peer.
        peer: u64,
    },
    /// Counters of the board.
    Report(BoardReport),
    /// Messages that are published to the group may go out as coded broadcasts ([`erasure`](crate::erasure)),
    /// until the session ends. A gateway that sends none takes it for malformed.
    TakesBroadcasts {
        /// The longest message to send so, in bytes.
        max_message: u32,
    },
}

/// A message of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToBoard {
    /// A connection is up.
    Connected {
        /// The partner; numbers are not used twice in a session.
        peer: u64,
        /// Route of the connection.
        route: Route,
    },
    /// The connection is gone.
    Disconnected {
        /// The partner.
        peer: u64,
    },
    /// A message came.
    Received {
        /// The peer that sent it.
        from: u64,
        /// Way of the message.
        via: Via,
        /// The message; not empty.
        bytes: Vec<u8>,
    },
}

impl ToGateway {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Self::Transmit { to: Destination::Peer(peer), payload } => {
                writer.u8(kind::TRANSMIT).u64(*peer).fixed(payload);
            }
            Self::Transmit { to: Destination::Group, payload } => {
                writer.u8(kind::PUBLISH).fixed(payload);
            }
            Self::Block { peer } => {
                writer.u8(kind::BLOCK).u64(*peer);
            }
            Self::Report(report) => report.write(writer.u8(kind::REPORT)),
            Self::TakesBroadcasts { max_message } => {
                writer.u8(kind::TAKES_BROADCASTS).u32(*max_message);
            }
        }
        writer.finish()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`LinkError::MalformedMessage`] unless [`ToGateway::encode`] makes these bytes, counters of later
    /// versions aside.
    pub fn decode(bytes: &[u8]) -> Result<Self, LinkError> {
        Self::read(bytes).map_err(|_| LinkError::MalformedMessage)
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8()? {
            kind::TRANSMIT => {
                Self::Transmit { to: Destination::Peer(reader.u64()?), payload: rest(&mut reader)? }
            }
            kind::PUBLISH => Self::Transmit { to: Destination::Group, payload: rest(&mut reader)? },
            kind::BLOCK => Self::Block { peer: reader.u64()? },
            kind::REPORT => Self::Report(BoardReport::read(&mut reader)?),
            kind::TAKES_BROADCASTS => Self::TakesBroadcasts { max_message: reader.u32()? },
            _ => return Err(Malformed("kind")),
        };
        reader.end()?;
        Ok(message)
    }
}

impl ToBoard {
    /// The message as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Self::Connected { peer, route } => {
                let route = match route {
                    Route::Kgc => 1,
                    Route::Leader => 2,
                };
                writer.u8(kind::CONNECTED).u64(*peer).u8(route);
            }
            Self::Disconnected { peer } => {
                writer.u8(kind::DISCONNECTED).u64(*peer);
            }
            Self::Received { from, via, bytes } => {
                let kind = match via {
                    Via::Peer => kind::RECEIVED,
                    Via::Group => kind::PUBLISHED,
                };
                writer.u8(kind).u64(*from).fixed(bytes);
            }
        }
        writer.finish()
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`LinkError::MalformedMessage`] unless [`ToBoard::encode`] makes these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, LinkError> {
        Self::read(bytes).map_err(|_| LinkError::MalformedMessage)
    }

    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8()? {
            kind::CONNECTED => Self::Connected { peer: reader.u64()?, route: route(reader.u8()?)? },
            kind::DISCONNECTED => Self::Disconnected { peer: reader.u64()? },
            kind @ (kind::RECEIVED | kind::PUBLISHED) => {
                let via = if kind == kind::RECEIVED { Via::Peer } else { Via::Group };
                Self::Received { from: reader.u64()?, via, bytes: rest(&mut reader)? }
            }
            _ => return Err(Malformed("kind")),
        };
        reader.end()?;
        Ok(message)
    }

    /// Returns true if the session makes no sense without it.
    pub(crate) fn is_vital(&self) -> bool {
        !matches!(self, Self::Received { .. })
    }
}

fn route(code: u8) -> Result<Route, Malformed> {
    match code {
        1 => Ok(Route::Kgc),
        2 => Ok(Route::Leader),
        _ => Err(Malformed("route")),
    }
}

/// All that is left, which must be something.
fn rest(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    match reader.take(reader.remaining())? {
        // A message without bytes is none, and would only cost its receiver.
        [] => Err(Malformed("payload")),
        bytes => Ok(bytes.into()),
    }
}
