//! A libp2p behaviour that boxes its connection handlers, reaches each of them in constant time, and gives streams
//! time to negotiate.
//!
//! libp2p moves the handler of a connection into that connection's task, and the compiler keeps room there
//! for the handler before and after the move. Together the handlers of all protocols take kilobytes, for each
//! connection and at both ends; in a box they take them once.
//!
//! libp2p's swarm looks through all its connections for the one whose handler an event is for. A hub that sends each of
//! N peers something looks N² times. Here each handler has a queue of its own, found by the connection's number.
//!
//! Both ends of a stream have ten seconds to agree on its protocol unless a handler sets another time, which
//! few of libp2p's permit. On a busy machine these go by before a connection has its turn, and the message is
//! lost.

use std::collections::HashMap;
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::futures::StreamExt as _;
use libp2p::futures::channel::mpsc::{Receiver, Sender, channel};
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm, NetworkBehaviour,
    NotifyHandler, SubstreamProtocol, THandler, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};

/// Events that wait for a handler at most, as in libp2p's swarm: with one more, the behaviour waits.
const QUEUED: usize = 32;

/// The behaviour within.
#[derive(derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct BoxedBehaviour<B: NetworkBehaviour> {
    #[deref]
    #[deref_mut]
    within: B,
    /// Maximum time to negotiate a stream's protocol.
    negotiation: Duration,
    /// The queue of each connection's handler.
    queues: HashMap<ConnectionId, Sender<THandlerInEvent<B>>>,
    /// An event that no queue has taken yet.
    undelivered: Option<(ConnectionId, THandlerInEvent<B>)>,
}

/// A handler within a box.
pub(crate) struct BoxedHandler<H: ConnectionHandler> {
    within: Box<H>,
    negotiation: Duration,
    events: Receiver<H::FromBehaviour>,
}

impl<B: NetworkBehaviour> BoxedBehaviour<B> {
    pub(crate) fn new(within: B, negotiation: Duration) -> Self {
        Self { within, negotiation, queues: HashMap::new(), undelivered: None }
    }

    fn handler(&mut self, connection: ConnectionId, within: THandler<B>) -> BoxedHandler<THandler<B>> {
        // Bounded: a handler that is not polled holds its behaviour up, not the memory.
        let (queue, events) = channel(QUEUED);
        self.queues.insert(connection, queue);
        BoxedHandler { within: Box::new(within), negotiation: self.negotiation, events }
    }

    /// Puts the event that is not delivered yet into its queue, or drops it with its connection. Whether none is left.
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((connection, event)) = self.undelivered.take() else { return Poll::Ready(()) };
        // The connection has closed meanwhile: libp2p's swarm drops such an event as well.
        let Some(queue) = self.queues.get_mut(&connection) else { return Poll::Ready(()) };
        match queue.poll_ready(cx) {
            Poll::Ready(ready) => {
                // An error only says that the connection is closing.
                let _ = ready.and_then(|()| queue.start_send(event));
                Poll::Ready(())
            }
            Poll::Pending => {
                self.undelivered = Some((connection, event));
                Poll::Pending
            }
        }
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
        let handler = self.within.handle_established_inbound_connection(connection, peer, local, remote)?;
        Ok(self.handler(connection, handler))
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
            self.within.handle_established_outbound_connection(connection, peer, address, role, port)?;
        Ok(self.handler(connection, handler))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ConnectionClosed(closed) = &event {
            self.queues.remove(&closed.connection_id);
        }
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
        loop {
            if self.deliver(cx).is_pending() {
                return Poll::Pending;
            }
            match self.within.poll(cx) {
                Poll::Ready(ToSwarm::NotifyHandler {
                    handler: NotifyHandler::One(connection),
                    event,
                    ..
                }) => {
                    // Delivered before anything else, so that events of a connection keep their order.
                    self.undelivered = Some((connection, event));
                }
                // `NotifyHandler::Any` among them, because the swarm knows which connections a peer has.
                other => return other,
            }
        }
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
        // Until none is left, because only an empty queue wakes this task for the next event.
        while let Poll::Ready(Some(event)) = self.events.poll_next_unpin(cx) {
            self.within.on_behaviour_event(event);
        }
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
        // Later events would be for a connection that is no more.
        self.events.close();
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
    use std::collections::VecDeque;
    use std::task::Waker;

    use libp2p::core::ConnectedPoint;
    use libp2p::core::upgrade::{ReadyUpgrade, UpgradeInfo as _};
    use libp2p::swarm::behaviour::ConnectionClosed;
    use libp2p::swarm::{OneShotHandler, OneShotHandlerConfig};
    use libp2p::{Stream, StreamProtocol};

    use super::*;

    type Upgrade = ReadyUpgrade<StreamProtocol>;
    type Handler = OneShotHandler<Upgrade, Upgrade, Opened>;

    const NEGOTIATION: Duration = Duration::from_secs(77);

    #[derive(Debug)]
    struct Opened;

    impl From<Stream> for Opened {
        fn from(_: Stream) -> Self {
            Self
        }
    }

    fn upgrade(name: &str) -> Upgrade {
        ReadyUpgrade::new(StreamProtocol::try_from_owned(name.into()).unwrap())
    }

    /// Has the handlers of these connections open streams.
    #[derive(Default)]
    struct Opens(VecDeque<(usize, String)>);

    impl NetworkBehaviour for Opens {
        type ConnectionHandler = Handler;
        type ToSwarm = ();

        fn handle_established_inbound_connection(
            &mut self,
            _: ConnectionId,
            _: PeerId,
            _: &Multiaddr,
            _: &Multiaddr,
        ) -> Result<Handler, ConnectionDenied> {
            let settings = OneShotHandlerConfig { max_dial_negotiated: u32::MAX, ..Default::default() };
            Ok(Handler::new(SubstreamProtocol::new(upgrade("/in"), ()), settings))
        }

        fn handle_established_outbound_connection(
            &mut self,
            connection: ConnectionId,
            peer: PeerId,
            address: &Multiaddr,
            _: Endpoint,
            _: PortUse,
        ) -> Result<Handler, ConnectionDenied> {
            self.handle_established_inbound_connection(connection, peer, address, address)
        }

        fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

        fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, _: THandlerOutEvent<Self>) {}

        fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<(), Upgrade>> {
            let Some((connection, name)) = self.0.pop_front() else { return Poll::Pending };
            Poll::Ready(ToSwarm::NotifyHandler {
                peer_id: PeerId::random(),
                handler: NotifyHandler::One(ConnectionId::new_unchecked(connection)),
                event: upgrade(&name),
            })
        }
    }

    type Boxed = BoxedBehaviour<Opens>;

    /// A behaviour with as many connections.
    fn connected(connections: usize) -> (Boxed, Vec<BoxedHandler<Handler>>) {
        let mut behaviour = Boxed::new(Opens::default(), NEGOTIATION);
        let address: Multiaddr = "/memory/1".parse().unwrap();
        let handlers = (0..connections).map(|number| {
            let connection = ConnectionId::new_unchecked(number);
            let peer = PeerId::random();
            behaviour.handle_established_inbound_connection(connection, peer, &address, &address).unwrap()
        });
        let handlers = handlers.collect();
        (behaviour, handlers)
    }

    fn is_waiting(behaviour: &mut Boxed) -> bool {
        assert!(
            behaviour.poll(&mut Context::from_waker(Waker::noop())).is_pending(),
            "nothing is for the swarm"
        );
        behaviour.undelivered.is_some()
    }

    /// The names of the streams that a handler opens now.
    fn opened(handler: &mut BoxedHandler<Handler>) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        core::iter::from_fn(|| match handler.poll(&mut cx) {
            Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol }) => {
                assert_eq!(*protocol.timeout(), NEGOTIATION);
                Some(protocol.upgrade().protocol_info().next()?.to_string())
            }
            _ => None,
        })
        .collect()
    }

    fn names(names: std::ops::Range<usize>) -> Vec<String> {
        names.map(|name| format!("/{name}")).collect()
    }

    #[test]
    fn streams_either_way_have_the_time_they_are_given() {
        let (mut behaviour, mut handlers) = connected(1);
        behaviour.0.push_back((0, "/out".into()));
        assert!(!is_waiting(&mut behaviour));
        assert_eq!(*handlers[0].listen_protocol().timeout(), NEGOTIATION);
        assert_eq!(opened(&mut handlers[0]), ["/out"]);
    }

    #[test]
    fn each_handler_is_told_its_own_events_in_their_order() {
        let (mut behaviour, mut handlers) = connected(3);
        behaviour.0.extend((0..60).map(|number| (number % 3, format!("/{}", number / 3))));
        assert!(!is_waiting(&mut behaviour));
        for handler in &mut handlers {
            assert_eq!(opened(handler), names(0..20));
        }
    }

    #[test]
    fn behaviour_waits_for_a_full_queue_and_loses_nothing() {
        let (mut behaviour, mut handlers) = connected(2);
        behaviour.0.extend(names(0..1000).into_iter().map(|name| (0, name)));
        behaviour.0.push_back((1, "/last".into()));
        let mut found = Vec::new();
        while is_waiting(&mut behaviour) {
            assert_eq!(opened(&mut handlers[1]), [""; 0]);
            let more = opened(&mut handlers[0]);
            assert!((1..=QUEUED + 1).contains(&more.len()), "{}", more.len());
            found.extend(more);
        }
        found.extend(opened(&mut handlers[0]));
        assert_eq!(found, names(0..1000));
        assert_eq!(opened(&mut handlers[1]), ["/last"]);
    }

    #[test]
    fn behaviour_does_not_wait_for_connections_that_close_or_are_closed() {
        let (mut behaviour, mut handlers) = connected(3);
        for (number, end) in ["closing", "gone", "closed"].into_iter().enumerate() {
            behaviour.0.extend(names(0..100).into_iter().map(|name| (number, name)));
            assert!(is_waiting(&mut behaviour), "{end}");
            match end {
                "closing" => {
                    assert!(handlers[0].poll_close(&mut Context::from_waker(Waker::noop())).is_ready());
                }
                "gone" => drop(handlers.remove(1)),
                _ => behaviour.on_swarm_event(FromSwarm::ConnectionClosed(ConnectionClosed {
                    peer_id: PeerId::random(),
                    connection_id: ConnectionId::new_unchecked(number),
                    endpoint: &ConnectedPoint::Listener {
                        local_addr: "/memory/1".parse().unwrap(),
                        send_back_addr: "/memory/1".parse().unwrap(),
                    },
                    cause: None,
                    remaining_established: 0,
                })),
            }
            assert!(!is_waiting(&mut behaviour), "{end}");
        }
        assert_eq!(behaviour.queues.len(), 2);
    }
}
