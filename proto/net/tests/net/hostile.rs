//! Peers that do not do as they should.

use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::core::transport::MemoryTransport;
use libp2p::core::upgrade::Version;
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, StreamProtocol, Swarm, Transport as _, identity, noise, yamux};
use quiver_machine::Route;
use quiver_net::{NodeKey, Transport};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::toy::{Order, PATIENCE, hub, key, pair, spoke, start, until};

/// Writes any bytes where a frame should stand.
#[derive(Clone, Default)]
pub(crate) struct Raw;

impl request_response::Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> std::io::Result<Vec<u8>>
    where
        T: futures::AsyncRead + Unpin + Send,
    {
        Ok(Vec::new())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> std::io::Result<Vec<u8>>
    where
        T: futures::AsyncRead + Unpin + Send,
    {
        let mut response = Vec::new();
        io.read_to_end(&mut response).await?;
        Ok(response)
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> std::io::Result<()>
    where
        T: futures::AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> std::io::Result<()>
    where
        T: futures::AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }
}

/// A libp2p node that speaks this protocol, badly.
pub(crate) fn hostile_node(protocol: &'static str) -> Swarm<request_response::Behaviour<Raw>> {
    let keypair = identity::Keypair::generate_ed25519();
    let transport = MemoryTransport::default()
        .upgrade(Version::V1Lazy)
        .authenticate(noise::Config::new(&keypair).unwrap())
        .multiplex(yamux::Config::default())
        .boxed();
    let protocols = [(StreamProtocol::new(protocol), ProtocolSupport::Full)];
    let behaviour = request_response::Behaviour::new(protocols, request_response::Config::default());
    let settings =
        libp2p::swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(60));
    Swarm::new(transport, behaviour, keypair.public().to_peer_id(), settings)
}

#[tokio::test]
async fn oversized_and_malformed_frames_are_refused_and_nothing_dies() {
    let mut leader = start(&hub(Transport::Memory, 4)).unwrap();
    let address = leader.address().await;
    let mut edge = start(&spoke(Transport::Memory, &address)).unwrap();
    edge.connects(Route::Leader).await;
    let mut hostile = hostile_node("/quiver/1/request");
    hostile.dial(address).unwrap();
    // The third has the id of its request, and one byte of nine.
    let short = [&[0, 0, 0, 9][..], &[7; 16], &[1]].concat();
    let frames: [&[u8]; 4] = [&[0xff; 4], &[0, 0x10, 0, 1, 9], &short, &[1]];
    let mut failures = 0;
    while failures < frames.len() {
        match hostile.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                for frame in frames {
                    hostile.behaviour_mut().send_request(&peer_id, frame.to_vec());
                }
            }
            SwarmEvent::Behaviour(request_response::Event::Message { .. }) => failures += 1,
            SwarmEvent::Behaviour(request_response::Event::OutboundFailure { .. }) => failures += 1,
            _ => {}
        }
    }
    edge.order(Order::Tell(Route::Leader, b"all well?".to_vec())).await;
    leader.receives_message(b"all well?").await;
    assert_eq!(leader.handle.metrics().messages_received.get(), 1);
    assert_eq!(
        leader.handle.metrics().refused.get(),
        3,
        "and a header that ends early is just a broken stream"
    );
}

#[tokio::test]
async fn blocked_peer_is_disconnected_and_stays_out() {
    let (mut leader, mut edge) = pair(Transport::Memory).await;
    edge.order(Order::Tell(Route::Leader, b"block me".to_vec())).await;
    // Not before it has all that it was sent.
    for word in [b"because", b"of it..", b"go away"] {
        edge.receives_message(word).await;
    }
    leader.disconnects().await;
    edge.disconnects().await;
    until("it tries again", || edge.handle.metrics().dials.get() >= 2).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(leader.handle.inspect(|toy| toy.peers.len()).await, Ok(0));
    assert_eq!(leader.handle.metrics().blocked.get(), 1);
    let mut other = start(&spoke(Transport::Memory, &leader.address().await)).unwrap();
    other.connects(Route::Leader).await;
}

#[tokio::test]
async fn peer_that_accepts_and_never_answers_does_not_stop_the_rest() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let held = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = silent.accept().await {
            held.push(socket);
        }
    });
    let mut leader = start(&hub(Transport::Tcp, 4)).unwrap();
    let mut config = spoke(Transport::Tcp, &leader.address().await);
    let silent: Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
    config.dial.insert(0, (Route::Kgc, silent));
    config.dial.insert(0, (Route::Kgc, "/dns4/no-such-host.invalid/tcp/1".parse().unwrap()));
    config.handshake_timeout = Duration::from_millis(500);
    let mut edge = start(&config).unwrap();
    edge.connects(Route::Leader).await;
    edge.order(Order::Tell(Route::Leader, b"hello".to_vec())).await;
    leader.receives_message(b"hello").await;
    let metrics = edge.handle.metrics();
    until("the handshake has a deadline", || metrics.dial_failures.get() >= 1).await;
    until("and another attempt", || metrics.dials.get() >= 3).await;
    held.abort();
}

#[tokio::test]
async fn clients_that_connect_and_say_nothing_are_let_go_and_keep_nobody_out() {
    let mut config = hub(Transport::Tcp, 4);
    config.handshake_timeout = Duration::from_millis(500);
    let mut leader = start(&config).unwrap();
    let address = leader.address().await;
    let port = address.iter().find_map(|part| match part {
        libp2p::multiaddr::Protocol::Tcp(port) => Some(port),
        _ => None,
    });
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(("127.0.0.1", port.unwrap())).await.unwrap());
    }
    let mut edge = start(&spoke(Transport::Tcp, &address)).unwrap();
    edge.connects(Route::Leader).await;
    edge.order(Order::Tell(Route::Leader, b"hello".to_vec())).await;
    leader.receives_message(b"hello").await;
    for mut socket in silent {
        let mut answer = Vec::new();
        let closed = timeout(PATIENCE, socket.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "the hub holds a silent client for ever");
    }
}

#[tokio::test]
async fn address_with_a_pinned_peer_accepts_no_other() {
    let leader = start(&hub(Transport::Memory, 4)).unwrap();
    let address = leader.address().await;
    let pin = |key: NodeKey| address.clone().with(libp2p::multiaddr::Protocol::P2p(key.peer_id()));
    let mut mistaken = start(&spoke(Transport::Memory, &pin(key(200)))).unwrap();
    let right = address.clone().with(libp2p::multiaddr::Protocol::P2p(leader.handle.peer_id()));
    let mut edge = start(&spoke(Transport::Memory, &right)).unwrap();
    edge.connects(Route::Leader).await;
    sleep(Duration::from_millis(300)).await;
    assert!(mistaken.events().is_empty());
    assert!(mistaken.handle.metrics().dial_failures.get() >= 1);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let mut config = hub(Transport::Memory, 4);
    config.limits.inbound = 2;
    let leader = start(&config).unwrap();
    let address = leader.address().await;
    let mut edges: Vec<_> = (0..5).map(|_| start(&spoke(Transport::Memory, &address)).unwrap()).collect();
    for _ in 0..20 {
        sleep(Duration::from_millis(50)).await;
        let connected = leader.handle.inspect(|toy| toy.peers.len()).await.unwrap();
        assert!(connected <= 2, "{connected}");
    }
    assert_eq!(leader.handle.inspect(|toy| toy.peers.len()).await, Ok(2));
    edges.truncate(0);
}

#[tokio::test]
async fn handshakes_of_which_nothing_comes_keep_nobody_out_who_shares_the_address() {
    let mut config = hub(Transport::Tcp, 10);
    // A quarter of them is for one address.
    config.limits.pending = 32;
    config.handshake_timeout = 2 * PATIENCE;
    let mut leader = start(&config).unwrap();
    let address = leader.address().await;
    let port: u16 = address.to_string().rsplit('/').next().unwrap().parse().unwrap();
    let silent: Vec<_> = (0..12)
        .map(|_| {
            tokio::spawn(async move {
                loop {
                    // Says nothing, and comes back when it is cut off.
                    if let Ok(mut line) = TcpStream::connect(("127.0.0.1", port)).await {
                        let _ = line.read(&mut [0]).await;
                    }
                    sleep(Duration::from_secs(3)).await;
                }
            })
        })
        .collect();
    sleep(Duration::from_millis(500)).await;
    let mut edge = start(&spoke(Transport::Tcp, &address)).unwrap();
    let joined = async {
        edge.connects(Route::Leader).await;
        leader.connects(Route::Inbound).await;
    };
    timeout(PATIENCE, joined).await.expect("long before a handshake that never ends is given up");
    silent.iter().for_each(JoinHandle::abort);
}
