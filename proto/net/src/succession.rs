//! Closes dead connections of a peer that has come back over another one.
//!
//! A drone whose line broke, or whose power failed, comes back while this node still has the connection of
//! before: nothing says that it is dead until a ping is not answered, which takes longer than a minute. Until
//! then half of what is sent to the drone goes there. So whoever opens another connection is asked for a sign
//! of life over each older one, and an older one over which none comes in time is closed.
//!
//! Nobody closes connections of others so: only who holds a peer's transport key opens connections of that
//! peer. A peer that uses several, as a drone does that knows two addresses of its leader, answers over all
//! of them and keeps them. The newest one is never closed, and a connection answers one question at a time.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{AsyncReadExt as _, AsyncWriteExt as _, FutureExt as _};
use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{DeniedUpgrade, ReadyUpgrade};
use libp2p::ping::PROTOCOL_NAME;
use libp2p::swarm::behaviour::{ConnectionClosed, ConnectionEstablished};
use libp2p::swarm::handler::{ConnectionEvent, DialUpgradeError, FullyNegotiatedOutbound};
use libp2p::swarm::{
    CloseConnection, ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, Stream, StreamProtocol, StreamUpgradeError, SubstreamProtocol, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Sleep, sleep};

use crate::config::NodeConfig;
use crate::metrics::NetMetrics;

/// Bytes of a ping.
const PING_LEN: usize = 32;

/// Asks older connections of a peer that has opened another one.
pub(crate) struct Succession {
    /// Time for a sign of life.
    patience: Duration,
    /// Connections of each peer, in the order in which they were opened.
    connections: HashMap<PeerId, Vec<ConnectionId>>,
    outputs: VecDeque<ToSwarm<Infallible, AreYouThere>>,
    superseded: Counter,
}

/// Question for a sign of life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AreYouThere;

/// No sign of life came in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silent;

impl Succession {
    pub(crate) fn new(config: &NodeConfig, metrics: &NetMetrics) -> Self {
        Self {
            // §23.5: 5 s; a message may take 20 s.
            patience: config.request_timeout / 4,
            connections: HashMap::new(),
            outputs: VecDeque::new(),
            superseded: metrics.connections_superseded.clone(),
        }
    }

    fn opened(&mut self, peer_id: PeerId, connection: ConnectionId) {
        let own = self.connections.entry(peer_id).or_default();
        for older in own.iter() {
            let handler = NotifyHandler::One(*older);
            self.outputs.push_back(ToSwarm::NotifyHandler { peer_id, handler, event: AreYouThere });
        }
        own.push(connection);
    }

    fn closed(&mut self, peer: PeerId, connection: ConnectionId) {
        if let Some(own) = self.connections.get_mut(&peer) {
            own.retain(|other| *other != connection);
            if own.is_empty() {
                self.connections.remove(&peer);
            }
        }
    }

    fn silent(&mut self, peer_id: PeerId, connection: ConnectionId) {
        let newest = self.connections.get(&peer_id).and_then(|own| own.last());
        // A ping ends the last one, if it is dead.
        if newest.is_none_or(|newest| *newest == connection) {
            return;
        }
        tracing::debug!(peer = %peer_id, "a connection is closed: nobody answers there, and its peer has another one");
        self.superseded.inc();
        let connection = CloseConnection::One(connection);
        self.outputs.push_back(ToSwarm::CloseConnection { peer_id, connection });
    }
}

impl NetworkBehaviour for Succession {
    type ConnectionHandler = SuccessionHandler;
    type ToSwarm = Infallible;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(SuccessionHandler::new(self.patience))
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(SuccessionHandler::new(self.patience))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(ConnectionEstablished { peer_id, connection_id, .. }) => {
                self.opened(peer_id, connection_id);
            }
            FromSwarm::ConnectionClosed(ConnectionClosed { peer_id, connection_id, .. }) => {
                self.closed(peer_id, connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        Silent: THandlerOutEvent<Self>,
    ) {
        self.silent(peer, connection);
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, THandlerInEvent<Self>>> {
        // No waker is kept: outputs come from the swarm's events alone, after each of which it polls again.
        self.outputs.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

/// Asks over one connection.
pub(crate) struct SuccessionHandler {
    patience: Duration,
    question: Option<OpenQuestion>,
}

/// A question that was not answered yet.
struct OpenQuestion {
    end: Pin<Box<Sleep>>,
    /// True if a stream was asked for.
    begun: bool,
    /// The exchange over the stream, which gives an error as well as an echo if the peer is there.
    exchange: Option<BoxFuture<'static, io::Result<()>>>,
}

impl SuccessionHandler {
    const fn new(patience: Duration) -> Self {
        Self { patience, question: None }
    }
}

/// Sends a ping and waits for its echo.
async fn ping(mut stream: Stream) -> io::Result<()> {
    // The echo is not compared: the connection proves who sent it, and any answer is a sign of life.
    let mut bytes: [u8; PING_LEN] = rand::random();
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    stream.read_exact(&mut bytes).await?;
    stream.close().await
}

impl ConnectionHandler for SuccessionHandler {
    type FromBehaviour = AreYouThere;
    type ToBehaviour = Silent;
    type InboundProtocol = DeniedUpgrade;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = ();

    fn listen_protocol(&self) -> SubstreamProtocol<DeniedUpgrade> {
        // §23.5: libp2p's ping answers peers. A node without it refuses, which is an answer as well.
        SubstreamProtocol::new(DeniedUpgrade, ())
    }

    fn on_behaviour_event(&mut self, AreYouThere: AreYouThere) {
        let end = || Box::pin(sleep(self.patience));
        // The time of a question that is under way does not begin anew.
        self.question.get_or_insert_with(|| OpenQuestion { end: end(), begun: false, exchange: None });
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<ReadyUpgrade<StreamProtocol>, (), Silent>> {
        let Some(question) = &mut self.question else { return Poll::Pending };
        if !question.begun {
            question.begun = true;
            let protocol = SubstreamProtocol::new(ReadyUpgrade::new(PROTOCOL_NAME), ());
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        // §23.5: who refuses pings is there as well.
        if question.exchange.as_mut().is_some_and(|exchange| exchange.poll_unpin(cx).is_ready()) {
            self.question = None;
            return Poll::Pending;
        }
        // Behind the answer, so that one that came in time counts on a machine that was busy until now.
        if question.end.as_mut().poll(cx).is_ready() {
            self.question = None;
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(Silent));
        }
        Poll::Pending
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, DeniedUpgrade, ReadyUpgrade<StreamProtocol>>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound { protocol, .. }) => {
                if let Some(question) = &mut self.question {
                    question.exchange = Some(ping(protocol).boxed());
                }
            }
            // No stream in time is no sign of life.
            ConnectionEvent::DialUpgradeError(DialUpgradeError {
                error: StreamUpgradeError::Timeout,
                ..
            }) => {}
            // §23.5: a refusal is an answer, and a connection with an error ends by itself.
            ConnectionEvent::DialUpgradeError(_) => self.question = None,
            _ => {}
        }
    }
}
