//! Runs a stranger: a libp2p node that connects, opens streams, and does on each what it likes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{AsyncReadExt as _, StreamExt as _};
use libp2p::core::Endpoint;
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::upgrade::{DeniedUpgrade, UpgradeInfo, Version};
use libp2p::swarm::{
    self, ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, OneShotHandler,
    OneShotHandlerConfig, SubstreamProtocol, SwarmEvent, THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{
    Multiaddr, OutboundUpgrade, PeerId, Stream, StreamProtocol, Swarm, Transport as _, identity, noise, yamux,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::acts::Act;
use crate::line::{LineTransport, StrangerLine};

/// Pause of a stranger that insists, before it comes back.
const SOON: Duration = Duration::from_millis(20);

#[derive(Clone)]
struct StreamRequest {
    protocol: &'static str,
    act: Act,
}

impl fmt::Debug for StreamRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.protocol)
    }
}

impl UpgradeInfo for StreamRequest {
    type Info = StreamProtocol;
    type InfoIter = std::iter::Once<StreamProtocol>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once(StreamProtocol::new(self.protocol))
    }
}

impl OutboundUpgrade<Stream> for StreamRequest {
    type Output = ();
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>;

    fn upgrade_outbound(self, stream: Stream, _: StreamProtocol) -> Self::Future {
        let done = (self.act)(stream);
        Box::pin(async move {
            done.await;
            Ok(())
        })
    }
}

#[derive(Debug)]
struct Done;

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self
    }
}

impl From<Infallible> for Done {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Opens these streams on each connection.
struct Streams {
    wanted: Vec<StreamRequest>,
    /// Opens another one, in turn, for each that is done.
    again: bool,
    /// Number of streams that were opened for others.
    turns: usize,
    queue: VecDeque<(PeerId, ConnectionId, StreamRequest)>,
}

impl NetworkBehaviour for Streams {
    type ConnectionHandler = OneShotHandler<DeniedUpgrade, StreamRequest, Done>;
    type ToSwarm = ();

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<Self::ConnectionHandler, ConnectionDenied> {
        unreachable!("it listens nowhere")
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<Self::ConnectionHandler, ConnectionDenied> {
        self.queue.extend(self.wanted.iter().map(|opened| (peer, connection, opened.clone())));
        let settings = OneShotHandlerConfig {
            outbound_substream_timeout: Duration::from_secs(3600),
            max_dial_negotiated: u32::MAX,
        };
        Ok(OneShotHandler::new(SubstreamProtocol::new(DeniedUpgrade, ()), settings))
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        _: THandlerOutEvent<Self>,
    ) {
        if self.again {
            let next = self.wanted.iter().cycle().nth(self.turns % self.wanted.len());
            self.queue.extend(next.map(|opened| (peer, connection, opened.clone())));
            self.turns += 1;
        }
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<(), THandlerInEvent<Self>>> {
        let Some((peer_id, connection, event)) = self.queue.pop_front() else { return Poll::Pending };
        Poll::Ready(ToSwarm::NotifyHandler { peer_id, handler: NotifyHandler::One(connection), event })
    }
}

/// A stranger that runs until it is dropped.
#[derive(Debug)]
pub struct Stranger {
    connected: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stranger {
    /// Connects over TCP, opens so many streams of these protocols, and does this on each. Comes back under another
    /// identity whenever it is disconnected, if it `insists`.
    #[must_use]
    pub fn start(target: &Multiaddr, streams: &[(&'static str, usize, &Act)], insists: bool) -> Self {
        Self::over(&StrangerLine::default(), target, streams, insists.then_some(SOON))
    }

    /// The same over a line of its own; it comes back after this pause, if there is one.
    #[must_use]
    pub fn over(
        line: &StrangerLine,
        target: &Multiaddr,
        streams: &[(&'static str, usize, &Act)],
        returns: Option<Duration>,
    ) -> Self {
        Self::running(line, target, streams, false, returns)
    }

    /// The same; for each stream whose act is done it opens the next, without end.
    #[must_use]
    pub fn repeating(
        line: &StrangerLine,
        target: &Multiaddr,
        streams: &[(&'static str, usize, &Act)],
        returns: Option<Duration>,
    ) -> Self {
        Self::running(line, target, streams, true, returns)
    }

    fn running(
        line: &StrangerLine,
        target: &Multiaddr,
        streams: &[(&'static str, usize, &Act)],
        again: bool,
        returns: Option<Duration>,
    ) -> Self {
        let wanted: Vec<_> = streams
            .iter()
            .flat_map(|(protocol, count, act)| {
                (0..*count).map(|_| StreamRequest { protocol, act: Arc::clone(act) })
            })
            .collect();
        let (line, target) = (line.clone(), target.clone());
        Self::insisting(returns, move |sender| {
            let (line, target, wanted) = (line.clone(), target.clone(), wanted.clone());
            async move { run(&line, &target, (wanted, again), &sender).await }
        })
    }

    /// Connects over TCP, says nothing, and waits to be cut off; comes back after this pause.
    #[must_use]
    pub fn mute(line: &StrangerLine, target: &Multiaddr, returns: Option<Duration>) -> Self {
        let (line, target) = (line.clone(), target.clone());
        Self::insisting(returns, move |sender| {
            let (line, target) = (line.clone(), target.clone());
            async move {
                let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
                let dialled = LineTransport::new(&line).dial(target, options);
                let Ok(mut stream) = dialled.expect("an address of TCP").await else { return };
                line.connected();
                let _ = sender.send(true);
                let _ = stream.read(&mut [0]).await;
            }
        })
    }

    /// Runs connection after connection.
    fn insisting<F, O>(returns: Option<Duration>, connection: F) -> Self
    where
        F: Fn(watch::Sender<bool>) -> O + Send + 'static,
        O: Future<Output = ()> + Send,
    {
        let (sender, connected) = watch::channel(false);
        let task = tokio::spawn(async move {
            loop {
                connection(sender.clone()).await;
                let _ = sender.send(false);
                let Some(pause) = returns else { return };
                tokio::time::sleep(pause).await;
            }
        });
        Self { connected, task }
    }

    /// Returns true if the stranger is connected now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    /// Waits until it is connected.
    ///
    /// # Panics
    /// If it does not connect within 30 s.
    pub async fn connects(&mut self) {
        let connected = self.connected.wait_for(|connected| *connected);
        let _ = tokio::time::timeout(Duration::from_secs(30), connected).await.expect("it connects");
    }
}

/// Runs a connection until it is lost.
async fn run(
    line: &StrangerLine,
    target: &Multiaddr,
    (wanted, again): (Vec<StreamRequest>, bool),
    connected: &watch::Sender<bool>,
) {
    let keypair = identity::Keypair::generate_ed25519();
    let transport = LineTransport::new(line)
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(&keypair).expect("an Ed25519 key signs"))
        .multiplex(yamux::Config::default())
        .boxed();
    let settings = swarm::Config::with_tokio_executor()
        .with_idle_connection_timeout(Duration::from_secs(3600))
        .with_substream_upgrade_protocol_override(Version::V1Lazy);
    let streams = Streams { wanted, again, turns: 0, queue: VecDeque::new() };
    let mut swarm = Swarm::new(transport, streams, keypair.public().to_peer_id(), settings);
    swarm.dial(target.clone()).expect("an address of TCP");
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { .. } => {
                line.connected();
                let _ = connected.send(true);
            }
            SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => return,
            _ => {}
        }
    }
}
