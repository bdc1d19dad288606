//! Connections over QUIC.

mod counted_streams;

use futures::future::Either;
use libp2p::Transport as _;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::quic;
use quiver_machine::MAX_MESSAGE_LEN;

use self::counted_streams::CountedMuxer;
use super::{BoxedTransport, streams};
use crate::config::NodeConfig;
use crate::error::NetError;

/// True if this build has QUIC.
pub(crate) const IS_BUILT_IN: bool = true;

/// Bytes of one stream that a peer may send before this node has read any: the longest message, so that it needs
/// no second grant.
const STREAM_WINDOW: u32 = MAX_MESSAGE_LEN as u32 + 4096;
/// The same for all streams of a connection: a message and a group message at a time. libp2p's default holds
/// 15 MB for each connection.
const CONNECTION_WINDOW: u32 = 2 * STREAM_WINDOW;

/// QUIC alone.
///
/// # Errors
/// None: a build without QUIC has some.
pub(super) fn alone(config: &NodeConfig) -> Result<BoxedTransport, NetError> {
    let mut quic = quic::Config::new(config.key.keypair());
    quic.handshake_timeout = config.handshake_timeout;
    quic.max_stream_data = STREAM_WINDOW;
    quic.max_connection_data = CONNECTION_WINDOW;
    quic.max_concurrent_stream_limit = streams(config);
    Ok(quic::tokio::Transport::new(quic)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(CountedMuxer(muxer))))
        .boxed())
}

/// QUIC beside another transport.
///
/// # Errors
/// Those of [`alone`].
pub(super) fn beside(other: BoxedTransport, config: &NodeConfig) -> Result<BoxedTransport, NetError> {
    let either = alone(config)?.or_transport(other);
    Ok(either
        .map(|output, _| match output {
            Either::Left(output) | Either::Right(output) => output,
        })
        .boxed())
}
