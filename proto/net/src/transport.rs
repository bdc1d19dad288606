//! The transports: authenticated, encrypted, multiplexed, with a deadline of our own.

#[cfg_attr(not(feature = "quic"), path = "transport/quic/absent.rs")]
pub(crate) mod quic;

use std::time::Duration;

use libp2p::core::ConnectedPoint;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::{Boxed, MemoryTransport};
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::{PeerId, Transport as _, noise, plaintext, tcp};

use crate::config::{NodeConfig, Transport};
use crate::error::NetError;
use crate::multiplexer::Multiplexer;
use crate::unread::UnreadBudget;

type BoxedTransport = Boxed<(PeerId, StreamMuxerBox)>;

/// Connections a TCP listener lets wait; a whole swarm may come at once after a restart.
const LISTEN_BACKLOG: u32 = 4096;

/// The transport of a configuration, whose connections keep to this budget.
pub(crate) fn build(config: &NodeConfig, budget: &UnreadBudget) -> Result<BoxedTransport, NetError> {
    let keypair = config.key.keypair();
    let deadline = config.handshake_timeout;
    let multiplexer = multiplexer(config, budget);
    match config.transport {
        Transport::Tcp => over_tcp(keypair, deadline, multiplexer),
        Transport::Quic => quic::alone(config),
        Transport::TcpAndQuic => quic::beside(over_tcp(keypair, deadline, multiplexer)?, config),
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
    budget: &UnreadBudget,
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
) -> Result<BoxedTransport, NetError> {
    // Messages are short, and answers wait for them: Nagle's algorithm would delay both.
    let config = tcp::Config::new().nodelay(true).listen_backlog(LISTEN_BACKLOG);
    let tcp = tcp::tokio::Transport::new(config).upgrade(Version::V1Lazy);
    let tcp = tcp.authenticate(noise(keypair)?).multiplex_ext(multiplexer);
    // The deadline covers the whole upgrade: a peer that accepts and never answers holds nothing up for
    // longer.
    Ok(tcp.timeout(deadline).boxed())
}

/// Concurrent streams of a connection: those for messages, and as many again for the other protocols and for
/// streams whose end is still on its way. Over QUIC, those that the peer opens.
fn streams(config: &NodeConfig) -> u32 {
    u32::try_from(config.limits.streams).unwrap_or(u32::MAX).saturating_mul(2)
}
