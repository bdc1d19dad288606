//! The transports: authenticated, encrypted, multiplexed, with a deadline of our own.

use std::time::Duration;

#[cfg(feature = "quic")]
use futures::future::Either;
use libp2p::core::ConnectedPoint;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::{Boxed, MemoryTransport};
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
#[cfg(feature = "quic")]
use libp2p::quic;
use libp2p::{PeerId, Transport as _, noise, plaintext, tcp};

#[cfg(feature = "quic")]
use quiver_machine::MAX_MESSAGE_LEN;

use crate::config::{NodeConfig, Transport};
#[cfg(feature = "quic")]
use crate::counted_streams::CountedMuxer;
use crate::error::NetError;
use crate::multiplexer::Multiplexer;
use crate::unread::Budget;

type Connections = Boxed<(PeerId, StreamMuxerBox)>;

/// Connections a TCP listener lets wait; a whole swarm may come at once after a restart.
const LISTEN_BACKLOG: u32 = 4096;

/// Bytes of one stream that a peer may send over QUIC before this node has read any: the longest message, so
/// that it needs no second grant.
#[cfg(feature = "quic")]
const STREAM_WINDOW: u32 = MAX_MESSAGE_LEN as u32 + 4096;
/// The same for all streams of a connection: a message and a group message at a time. libp2p's default holds
/// 15 MB for each connection.
#[cfg(feature = "quic")]
const CONNECTION_WINDOW: u32 = 2 * STREAM_WINDOW;

/// The transport of a configuration, whose connections keep to this budget.
pub(crate) fn build(config: &NodeConfig, budget: &Budget) -> Result<Connections, NetError> {
    let keypair = config.key.keypair();
    let deadline = config.handshake_timeout;
    let multiplexer = multiplexer(config, budget);
    match config.transport {
        Transport::Tcp => over_tcp(keypair, deadline, multiplexer),
        #[cfg(not(feature = "quic"))]
        Transport::Quic | Transport::TcpAndQuic => {
            Err(NetError::Configuration("this build has no QUIC: build it with the feature `quic`".into()))
        }
        #[cfg(feature = "quic")]
        Transport::Quic => Ok(over_quic(config)),
        #[cfg(feature = "quic")]
        Transport::TcpAndQuic => {
            let tcp = over_tcp(keypair, deadline, multiplexer)?;
            let either = over_quic(config).or_transport(tcp);
            Ok(either
                .map(|output, _| match output {
                    Either::Left(output) | Either::Right(output) => output,
                })
                .boxed())
        }
        Transport::Memory => {
            let memory = MemoryTransport::default().upgrade(Version::V1Lazy);
            let memory = memory.authenticate(noise(keypair)?).multiplex_ext(multiplexer);
            Ok(memory.timeout(deadline).boxed())
        }
        Transport::PlainMemory => {
            let memory = MemoryTransport::default().upgrade(Version::V1Lazy);
            let memory = memory.authenticate(plaintext::Config::new(keypair)).multiplex_ext(multiplexer);
            Ok(memory.timeout(deadline).boxed())
        }
    }
}

/// Sets up the streams of each connection.
fn multiplexer(
    config: &NodeConfig,
    budget: &Budget,
) -> impl for<'a> FnOnce(&'a PeerId, &'a ConnectedPoint) -> Multiplexer + Clone + Send + Unpin + use<> {
    let (budget, streams) = (budget.clone(), streams(config));
    move |peer: &PeerId, end: &ConnectedPoint| {
        Multiplexer::new(budget.account(*peer, end.is_dialer()), streams as usize)
    }
}

fn noise(keypair: &Keypair) -> Result<noise::Config, NetError> {
    // The handshake proves the key by which the peer is named, in penalties (§13.8) too.
    noise::Config::new(keypair).map_err(|error| NetError::Configuration(error.to_string()))
}

fn over_tcp(
    keypair: &Keypair,
    deadline: Duration,
    multiplexer: impl for<'a> FnOnce(&'a PeerId, &'a ConnectedPoint) -> Multiplexer
    + Clone
    + Send
    + Unpin
    + 'static,
) -> Result<Connections, NetError> {
    // Messages are short, and answers wait for them: Nagle's algorithm would delay both.
    let config = tcp::Config::new().nodelay(true).listen_backlog(LISTEN_BACKLOG);
    let tcp = tcp::tokio::Transport::new(config).upgrade(Version::V1Lazy);
    let tcp = tcp.authenticate(noise(keypair)?).multiplex_ext(multiplexer);
    // The deadline covers the whole upgrade: a peer that accepts and never answers holds nothing up for
    // longer.
    Ok(tcp.timeout(deadline).boxed())
}

#[cfg(feature = "quic")]
fn over_quic(config: &NodeConfig) -> Connections {
    let mut quic = quic::Config::new(config.key.keypair());
    quic.handshake_timeout = config.handshake_timeout;
    quic.max_stream_data = STREAM_WINDOW;
    quic.max_connection_data = CONNECTION_WINDOW;
    quic.max_concurrent_stream_limit = streams(config);
    quic::tokio::Transport::new(quic)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(CountedMuxer(muxer))))
        .boxed()
}

/// Concurrent streams of a connection: those for messages, and as many again for the other protocols and for
/// streams whose end is still on its way. Over QUIC, those that the peer opens.
fn streams(config: &NodeConfig) -> u32 {
    u32::try_from(config.limits.streams).unwrap_or(u32::MAX).saturating_mul(2)
}
