//! Listening, with an error that names the address.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

use libp2p::core::transport::{ListenerId, TransportError};
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, Swarm};

use crate::behaviour::Node;
use crate::config::Transport;
use crate::error::NetError;

/// Listens on all addresses.
pub(crate) fn listen(
    swarm: &mut Swarm<Node>,
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
    if transport.supports(address) {
        Ok(())
    } else {
        Err(unsupported(transport, address))
    }
}

fn unsupported(transport: Transport, address: &Multiaddr) -> NetError {
    NetError::UnsupportedAddress {
        address: address.clone(),
        transport,
        example: transport.example(),
    }
}

/// libp2p binds TCP ports with `SO_REUSEPORT`, with which a second process of the same user would get the same port
/// without an error and half of the connections. A socket without that option finds out.
fn probe(address: &Multiaddr) -> io::Result<()> {
    match tcp_address(address) {
        Some(address) if address.port() != 0 => TcpListener::bind(address).map(drop),
        _ => Ok(()),
    }
}

fn tcp_address(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some(SocketAddr::new(ip, port)),
        _ => None,
    }
}

fn listen_error(address: &Multiaddr, source: io::Error) -> NetError {
    let address = address.clone();
    // The memory transport has no other reason to fail, and words this one misleadingly.
    let memory = address.iter().any(|part| matches!(part, Protocol::Memory(_)));
    if memory || is_in_use(&source) {
        NetError::AddressInUse { address }
    } else {
        NetError::Listen { address, source }
    }
}

/// Looks through the layers that libp2p wraps around the system's error.
fn is_in_use(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::AddrInUse) {
            return true;
        }
        let inner = io
            .and_then(io::Error::get_ref)
            .map(|inner| inner as &(dyn Error + 'static));
        cause = inner.or_else(|| error.source());
    }
    false
}
