//! Binds listeners; an error names the address.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

use libp2p::core::transport::{ListenerId, TransportError};
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, Swarm};

use crate::behaviour::Node;
use crate::boxed_behaviour::BoxedBehaviour;
use crate::config::Transport;
use crate::error::NetError;

/// Listens on all addresses.
pub(crate) fn listen(
    swarm: &mut Swarm<BoxedBehaviour<Node>>,
    transport: Transport,
    addresses: &[Multiaddr],
) -> Result<Vec<ListenerId>, NetError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        check_address(transport, address)?;
        probe(address).map_err(|error| listen_error(address, error))?;
        let listener = swarm.listen_on(address.clone()).map_err(|error| match error {
            TransportError::MultiaddrNotSupported(_) => unsupported(transport, address),
            TransportError::Other(error) => listen_error(address, error),
        })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Refuses an address that is not one of the transport's.
pub(crate) fn check_address(transport: Transport, address: &Multiaddr) -> Result<(), NetError> {
    if transport.supports(address) { Ok(()) } else { Err(unsupported(transport, address)) }
}

fn unsupported(transport: Transport, address: &Multiaddr) -> NetError {
    NetError::UnsupportedAddress { address: address.clone(), transport, example: transport.example() }
}

/// libp2p binds TCP ports with `SO_REUSEPORT`, with which a second process of the same user would get the
/// same port without an error and half of the connections. A socket without that option finds out. For UDP it
/// only makes the error a plain one.
fn probe(address: &Multiaddr) -> io::Result<()> {
    match socket_address(address) {
        // The system chooses a port that is free.
        Some((address, _)) if address.port() == 0 => Ok(()),
        Some((address, Socket::Tcp)) => TcpListener::bind(address).map(drop),
        Some((address, Socket::Udp)) => UdpSocket::bind(address).map(drop),
        None => Ok(()),
    }
}

enum Socket {
    Tcp,
    Udp,
}

fn socket_address(address: &Multiaddr) -> Option<(SocketAddr, Socket)> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some((SocketAddr::new(ip, port), Socket::Tcp)),
        Protocol::Udp(port) => Some((SocketAddr::new(ip, port), Socket::Udp)),
        _ => None,
    }
}

fn listen_error(address: &Multiaddr, source: io::Error) -> NetError {
    let address = address.clone();
    // The memory transport has no other reason to fail, and words this one misleadingly.
    let memory = address.iter().any(|part| matches!(part, Protocol::Memory(_)));
    if memory || source.kind() == io::ErrorKind::AddrInUse {
        NetError::AddressInUse { address }
    } else {
        NetError::Listen { address, source }
    }
}
