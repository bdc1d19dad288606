//! Datagrams over UDP: to a list, to a multicast group, to a broadcast address, to a relay.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket as StdUdpSocket};
use std::time::Duration;

use quiver_mavlink::HostPort;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{CarrierCommand, CarrierPort, LONGEST};
use crate::pause::Pause;

/// Interval at which names are resolved again: drones move between networks.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// The longest wait for a resolver.
const RESOLVE_TIME: Duration = Duration::from_secs(5);
/// The longest wait between attempts to find the relay.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Listens on an address.
pub(crate) async fn bind(at: &HostPort) -> io::Result<UdpSocket> {
    UdpSocket::bind((at.host.as_str(), at.port)).await
}

/// A member of a multicast group. Several processes on one machine may be.
pub(super) fn join(group: SocketAddrV4, interface: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = shared(group.port())?;
    let socket = StdUdpSocket::from(socket);
    socket.join_multicast_v4(group.ip(), &interface)?;
    // Else the system sends by its default route, which may lead elsewhere.
    if !interface.is_unspecified() {
        socket2::SockRef::from(&socket).set_multicast_if_v4(&interface)?;
    }
    // Other bridges on this machine are in the group, too.
    socket.set_multicast_loop_v4(true)?;
    UdpSocket::from_std(socket)
}

/// A receiver of broadcasts to this port.
pub(super) fn broadcast(to: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = shared(to.port())?;
    socket.set_broadcast(true)?;
    UdpSocket::from_std(socket.into())
}

/// A socket on a port that others on this machine may have too.
fn shared(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // Several bridges of one machine share the port.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    Ok(socket)
}

/// Sends to each of a list, and receives from anywhere: a datagram's tag says whether it is a member's.
pub(super) async fn serve(port: CarrierPort, socket: UdpSocket, peers: Vec<HostPort>) {
    let (addresses, found) = watch::channel(vec![None; peers.len()]);
    // Neither ends before the other's side of the channel is gone.
    tokio::join!(keep_resolved(&socket, &peers, addresses), exchange(port, &socket, found));
}

/// Looks names up, at once and again and again, until nobody wants them.
async fn keep_resolved(
    socket: &UdpSocket,
    peers: &[HostPort],
    addresses: watch::Sender<Vec<Option<SocketAddr>>>,
) {
    let mut resolving = interval(RESOLVE_EVERY);
    resolving.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = resolving.tick() => {}
            () = addresses.closed() => return,
        }
        for (index, peer) in peers.iter().enumerate() {
            // One that is not found now may have been found before.
            if let Some(found) = resolve(peer, socket).await {
                addresses.send_modify(|addresses| {
                    if let Some(address) = addresses.get_mut(index) {
                        *address = Some(found);
                    }
                });
            }
        }
    }
}

async fn exchange(
    mut port: CarrierPort,
    socket: &UdpSocket,
    addresses: watch::Receiver<Vec<Option<SocketAddr>>>,
) {
    let mut buffer = [0; LONGEST];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => receive(&port, &buffer, received.map(|(len, _)| len)),
            order = port.order() => match order {
                Some(CarrierCommand::Send(datagram)) => {
                    // Copied, so that a name that is resolved meanwhile need not wait for the sending.
                    let addresses = addresses.borrow().clone();
                    for address in addresses.into_iter().flatten() {
                        send(&port, socket, &datagram, address).await;
                    }
                }
                Some(_) => {}
                None => return,
            },
        }
    }
}

/// Sends to one address and receives from anywhere.
pub(super) async fn serve_one(mut port: CarrierPort, socket: UdpSocket, to: SocketAddr) {
    let mut buffer = [0; LONGEST];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => receive(&port, &buffer, received.map(|(len, _)| len)),
            order = port.order() => match order {
                Some(CarrierCommand::Send(datagram)) => send(&port, &socket, &datagram, to).await,
                Some(_) => {}
                None => return,
            },
        }
    }
}

/// Sends to the leader's relay, and receives from it alone.
pub(super) async fn serve_star(mut port: CarrierPort, at: HostPort) {
    let mut pause = Pause::new(format!("star:{at}"), LONGEST_WAIT);
    let mut buffer = [0; LONGEST];
    loop {
        let socket = tokio::select! {
            // Datagrams of before the first attempt wait for it.
            biased;
            () = pause.wait() => match connect(&at).await {
                Ok(socket) => socket,
                Err(error) => {
                    pause.failed(&error);
                    continue;
                }
            },
            order = port.order() => match order {
                Some(_) => {
                    // §20: no datagram waits for another; telemetry of a while ago is of no use.
                    port.counters.dropped();
                    continue;
                }
                None => return,
            },
        };
        pause.opened();
        let until = Instant::now() + RESOLVE_EVERY;
        loop {
            tokio::select! {
                received = socket.recv(&mut buffer) => receive(&port, &buffer, received),
                order = port.order() => match order {
                    Some(CarrierCommand::Send(datagram)) => match socket.send(&datagram).await {
                        Ok(_) => port.counters.sent(datagram.len()),
                        Err(error) => {
                            port.counters.dropped();
                            // A relay that is not there refuses; the next datagram may find it.
                            if error.kind() != io::ErrorKind::ConnectionRefused {
                                pause.failed(&error);
                                break;
                            }
                        }
                    },
                    Some(_) => {}
                    None => return,
                },
                () = tokio::time::sleep_until(until), if is_name(&at) => break,
            }
        }
    }
}

/// Returns true if the host may get another address.
fn is_name(at: &HostPort) -> bool {
    at.host.parse::<std::net::IpAddr>().is_err()
}

/// A socket of the relay's family, connected with it.
pub(crate) async fn connect(at: &HostPort) -> io::Result<UdpSocket> {
    let found = timeout(RESOLVE_TIME, lookup_host((at.host.as_str(), at.port))).await;
    let address = found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.next();
    let address =
        address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no address has this name"))?;
    let local: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(local).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// The peer's address of the socket's family.
async fn resolve(peer: &HostPort, socket: &UdpSocket) -> Option<SocketAddr> {
    let is_v4 = socket.local_addr().is_ok_and(|local| local.is_ipv4());
    let found = timeout(RESOLVE_TIME, lookup_host((peer.host.as_str(), peer.port))).await;
    let mut addresses = match found {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => {
            tracing::warn!(%peer, "not found: {error}; trying again");
            return None;
        }
        Err(_) => return None,
    };
    // The socket sends to addresses of its own family alone.
    addresses.find(|address| address.is_ipv4() == is_v4)
}

/// Takes what was received. An error says that an earlier datagram found nobody, or that the system is short
/// of memory; the socket goes on.
fn receive(port: &CarrierPort, buffer: &[u8], received: io::Result<usize>) {
    match received {
        Ok(len) => port.receive(None, buffer.get(..len).unwrap_or_default()),
        Err(error) => tracing::trace!("a carrier's socket: {error}"),
    }
}

async fn send(port: &CarrierPort, socket: &UdpSocket, datagram: &[u8], to: SocketAddr) {
    match socket.send_to(datagram, to).await {
        Ok(_) => port.counters.sent(datagram.len()),
        Err(error) => {
            port.counters.dropped();
            tracing::debug!(%to, "a datagram was not sent: {error}");
        }
    }
}
