//! A libp2p behaviour that boxes its connection handlers and gives streams time to negotiate.
//!
//! libp2p moves the handler of a connection into that connection's task, and the compiler keeps room there
//! for the handler before and after the move. Together the handlers of all protocols take kilobytes, for each
//! connection and at both ends; in a box they take them once.
//!
//! Both ends of a stream have ten seconds to agree on its protocol unless a handler sets another time, which
//! few of libp2p's permit. On a busy machine these go by before a connection has its turn, and the message is
//! lost.

use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm, NetworkBehaviour,
    SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};

/// The behaviour within.
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct BoxedBehaviour<B> {
    #[deref]
    #[deref_mut]
    within: B,
    /// Maximum time to negotiate a stream's protocol.
    negotiation: Duration,
}

/// A handler within a box.
pub(crate) struct BoxedHandler<H> {
    within: Box<H>,
    negotiation: Duration,
}

impl<B> BoxedBehaviour<B> {
    pub(crate) fn new(within: B, negotiation: Duration) -> Self {
        Self { within, negotiation }
    }

    fn handler<H>(&self, within: H) -> BoxedHandler<H> {
        BoxedHandler { within: Box::new(within), negotiation: self.negotiation }
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for BoxedBehaviour<B> {
    type ConnectionHandler = BoxedHandler<THandler<B>>;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.within.handle_pending_inbound_connection(connection, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        local: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let handler = self.within.handle_established_inbound_connection(connection, peer, local, remote);
        handler.map(|handler| self.handler(handler))
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.within.handle_pending_outbound_connection(connection, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        address: &Multiaddr,
        role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let handler =
            self.within.handle_established_outbound_connection(connection, peer, address, role, port);
        handler.map(|handler| self.handler(handler))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.within.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        event: THandlerOutEvent<Self>,
    ) {
        self.within.on_connection_handler_event(peer, connection, event);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<B::ToSwarm, THandlerInEvent<Self>>> {
        self.within.poll(cx)
    }
}

impl<H: ConnectionHandler> ConnectionHandler for BoxedHandler<H> {
    type FromBehaviour = H::FromBehaviour;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = H::InboundProtocol;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<H::InboundProtocol, H::InboundOpenInfo> {
        self.within.listen_protocol().with_timeout(self.negotiation)
    }

    fn connection_keep_alive(&self) -> bool {
        self.within.connection_keep_alive()
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<H::OutboundProtocol, H::OutboundOpenInfo, H::ToBehaviour>> {
        let event = self.within.poll(cx);
        let patient = |event| match event {
            ConnectionHandlerEvent::OutboundSubstreamRequest { protocol } => {
                let protocol = protocol.with_timeout(self.negotiation);
                ConnectionHandlerEvent::OutboundSubstreamRequest { protocol }
            }
            other => other,
        };
        event.map(patient)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<H::ToBehaviour>> {
        self.within.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: H::FromBehaviour) {
        self.within.on_behaviour_event(event);
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            H::InboundProtocol,
            H::OutboundProtocol,
            H::InboundOpenInfo,
            H::OutboundOpenInfo,
        >,
    ) {
        self.within.on_connection_event(event);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use libp2p::core::upgrade::ReadyUpgrade;
    use libp2p::swarm::OneShotHandler;
    use libp2p::{Stream, StreamProtocol};

    use super::*;

    type Upgrade = ReadyUpgrade<StreamProtocol>;
    type Handler = OneShotHandler<Upgrade, Upgrade, Opened>;

    #[derive(Debug)]
    struct Opened;

    impl From<Stream> for Opened {
        fn from(_: Stream) -> Self {
            Self
        }
    }

    #[test]
    fn streams_either_way_have_the_time_they_are_given() {
        let upgrade = || ReadyUpgrade::new(StreamProtocol::new("/test"));
        let mut within = Handler::new(SubstreamProtocol::new(upgrade(), ()), Default::default());
        within.send_request(upgrade());
        let negotiation = Duration::from_secs(77);
        let mut handler = BoxedBehaviour::new((), negotiation).handler(within);
        assert_eq!(*handler.listen_protocol().timeout(), negotiation);
        let Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol }) =
            handler.poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("a stream is wanted");
        };
        assert_eq!(*protocol.timeout(), negotiation);
    }
}
