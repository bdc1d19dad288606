//! The link to the gateway, and the connections that it reports.

use alloc::vec::Vec;

use quiver_link::{BoardEndpoint, Destination as LinkDestination, EndpointLimits, ToGateway, Wants};
use quiver_machine::{Destination, Peer};

use super::MAX_MESSAGE;
use super::connections::Connections;

/// Link to the gateway over one medium.
pub(crate) struct GatewayLink {
    pub(crate) endpoint: BoardEndpoint,
    pub(crate) connections: Connections,
    /// Bytes of the longest datagram of the medium.
    pub(crate) mtu: usize,
}

impl GatewayLink {
    /// Makes a link over a medium with datagrams of this length; `start` is a random number of this start's own.
    pub(super) fn new(mtu: usize, start: u32) -> Self {
        Self { endpoint: endpoint(mtu, start), connections: Connections::default(), mtu }
    }

    /// Begins anew over another medium. The connections stay until the machine was told of their end.
    ///
    /// Apart from its caller, under whose frame all cryptography runs: an endpoint takes a kilobyte of it.
    #[inline(never)]
    pub(super) fn use_medium(&mut self, mtu: usize, start: u32) {
        self.endpoint = endpoint(mtu, start);
        self.mtu = mtu;
    }

    /// Sends a message of a machine.
    pub(crate) fn transmit(&mut self, to: Destination, payload: Vec<u8>) {
        let to = match to {
            Destination::Group => Some(LinkDestination::Group),
            Destination::Peer(peer) => self.connections.number(peer).map(LinkDestination::Peer),
        };
        if let Some(to) = to {
            // A message that cannot be sent is lost, which the machine expects; the endpoint counts it.
            let _ = self.endpoint.send(&ToGateway::Transmit { to, payload });
        }
    }

    /// Has the gateway keep a peer away.
    pub(crate) fn block(&mut self, peer: Peer) {
        if let Some(peer) = self.connections.number(peer) {
            let _ = self.endpoint.send(&ToGateway::Block { peer });
        }
    }
}

/// Returns true if a medium that carries datagrams of this length is a radio.
pub(crate) const fn is_radio(mtu: usize) -> bool {
    mtu < 512
}

fn endpoint(mtu: usize, start: u32) -> BoardEndpoint {
    let limits =
        if is_radio(mtu) { EndpointLimits::radio(MAX_MESSAGE) } else { EndpointLimits::line(MAX_MESSAGE) };
    BoardEndpoint::new(EndpointLimits { mtu, ..limits }, start, Wants::default())
}
