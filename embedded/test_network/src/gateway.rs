//! The gateway: the other end of the board's line, and who it connects the board to.

use quiver_link::{
    Destination, EndpointLimits, GatewayEndpoint, GatewayEvent, LineDecoder, Route as LinkRoute, ToBoard,
    Wants, is_of_group,
};
use quiver_machine::{Peer, Route, Via};
use quiver_testbed::{Puppet, PuppetEvent};
use rand_core::RngCore;

use crate::{EPOCH_START, GROUP, TestNetwork, TestNetworkNode};

impl TestNetwork {
    pub(crate) fn work_gateway(&mut self, mut heard: &[u8]) -> bool {
        if !self.gateway_up {
            return false;
        }
        let (now, mut busy, mut broadcast) = (self.net.time(), !heard.is_empty(), Vec::new());
        while let Some(frame) = self.decoder.next_frame(&mut heard) {
            if self.line.loses() {
                continue;
            }
            self.sent.extend(frame.datagram);
            if is_of_group(frame.datagram) {
                broadcast.push(frame.datagram.to_vec());
            } else {
                self.gateway.handle_datagram(now, frame.datagram);
            }
        }
        broadcast.iter().for_each(|datagram| self.take_board_datagram(datagram));
        self.gateway.handle_timeout(now);
        while let Some(event) = self.gateway.poll_event() {
            busy = true;
            self.gateway_event(event);
        }
        while let Some(datagram) = self.gateway.poll_datagram(now, EPOCH_START + now.as_secs()) {
            busy = true;
            self.line.put_on_air(&datagram);
        }
        busy
    }

    fn gateway_event(&mut self, event: GatewayEvent) {
        match event {
            GatewayEvent::Begun { wants, .. } => {
                self.disconnect_all();
                self.connect(wants);
            }
            GatewayEvent::Wants(wants) => self.connect(wants),
            GatewayEvent::Transmit { to: Destination::Peer(number), payload } => {
                let to = quiver_machine::Destination::Peer(Peer(number));
                self.net.command::<Puppet>(TestNetworkNode::Board, (to, payload));
            }
            // For the leader alone: companions ignore the board.
            GatewayEvent::Transmit { to: Destination::Group, payload } => {
                self.net.inject(TestNetworkNode::Board, TestNetworkNode::Leader, &payload);
            }
            GatewayEvent::Block { peer } => panic!("the board blocks {peer}"),
            GatewayEvent::Report(report) => self.report = Some(report),
            GatewayEvent::TakesBroadcasts { max_message } => self.line.begin_broadcasts(max_message),
            GatewayEvent::HasBroadcast { digest } => self.line.confirm_broadcast(self.net.time(), digest),
            GatewayEvent::Lost => self.disconnect_all(),
        }
    }

    pub(crate) fn connect(&mut self, wants: Wants) {
        if wants.kgc {
            self.net.connect(TestNetworkNode::Board, TestNetworkNode::Kgc, Route::Kgc);
        } else {
            self.net.disconnect(TestNetworkNode::Board, TestNetworkNode::Kgc);
        }
        self.net.connect(TestNetworkNode::Board, TestNetworkNode::Leader, Route::Leader);
        self.wants = wants;
    }

    /// Ends the board's connections without telling it.
    fn disconnect_all(&mut self) {
        self.line.end_broadcasts(self.net.time());
        self.net.disconnect_all(TestNetworkNode::Board);
        self.board_events();
        self.wants = Wants::default();
    }

    fn board_events(&mut self) -> Vec<PuppetEvent> {
        std::mem::take(&mut self.net.node_mut::<Puppet>(TestNetworkNode::Board).events)
    }

    /// Sends the board what its stand-in in the network received. Returns whether there was anything.
    pub(crate) fn send_to_board(&mut self) -> bool {
        let events = self.board_events();
        let busy = !events.is_empty();
        for event in events {
            let message = match event {
                PuppetEvent::Connected(peer, route) => {
                    let route = if route == Route::Kgc { LinkRoute::Kgc } else { LinkRoute::Leader };
                    ToBoard::Connected { peer: peer.0, route }
                }
                PuppetEvent::Disconnected(peer) => ToBoard::Disconnected { peer: peer.0 },
                PuppetEvent::Received(_, Via::Group, _) if self.wants.group() != Some(GROUP) => continue,
                PuppetEvent::Received(_, Via::Group, bytes) if self.send_as_broadcast(&bytes) => continue,
                PuppetEvent::Received(from, via, bytes) => {
                    let group = via == Via::Group;
                    let via = if group { quiver_link::Via::Group } else { quiver_link::Via::Peer };
                    ToBoard::Received { from: from.0, via, bytes }
                }
            };
            let _ = self.gateway.send(&message);
        }
        busy
    }

    /// Sends as a broadcast what was published; false if it is to go in the session.
    fn send_as_broadcast(&mut self, message: &[u8]) -> bool {
        let (sent, repeated) = (self.gateway.fragments(), self.gateway.counters().repeated);
        self.line.broadcast(self.net.time(), message, sent, repeated)
    }

    /// Sends frames of broadcasts, and in the session what the board did not confirm.
    pub(crate) fn work_broadcasts(&mut self) -> bool {
        let mut busy = self.line.send_frames(self.net.time());
        while let Some(bytes) = self.line.poll_missed() {
            busy = true;
            if let Some(from) = self.net.peer(TestNetworkNode::Board, TestNetworkNode::Leader) {
                let message = ToBoard::Received { from: from.0, via: quiver_link::Via::Group, bytes };
                let _ = self.gateway.send(&message);
            }
        }
        busy
    }

    /// Sends the board these bytes as if they came from its leader.
    ///
    /// # Panics
    /// If it is connected to none.
    pub fn inject_from_leader(&mut self, bytes: &[u8]) {
        let from =
            self.net.peer(TestNetworkNode::Board, TestNetworkNode::Leader).expect("a leader is connected").0;
        self.gateway
            .send(&ToBoard::Received { from, via: quiver_link::Via::Peer, bytes: bytes.into() })
            .unwrap();
    }

    /// Another gateway takes this one's place.
    pub fn restart_gateway(&mut self) {
        self.disconnect_all();
        let limits =
            if self.line.is_radio() { EndpointLimits::radio(1 << 17) } else { EndpointLimits::line(1 << 17) };
        self.gateway = GatewayEndpoint::new(limits, self.rng.next_u32());
        self.decoder = LineDecoder::new();
    }
}
