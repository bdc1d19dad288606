//! The gateway: the other end of the board's line, and who it connects the board to.

use quiver_link::{
    Destination, GatewayEndpoint, GatewayEvent, Limits, LineDecoder, Route as LinkRoute, ToBoard, Wants,
    encode_line,
};
use quiver_machine::{Input, Peer, Route};
use rand_core::RngCore;

use crate::{EPOCH_START, InFlight, TestNetwork};

impl TestNetwork {
    pub(crate) fn work_gateway(&mut self, mut heard: &[u8]) -> bool {
        if !self.gateway_up {
            return false;
        }
        let (now, mut busy) = (self.now, !heard.is_empty());
        while let Some(frame) = self.decoder.next_frame(&mut heard) {
            self.sent.extend(frame.datagram);
            self.gateway.handle_datagram(now, frame.datagram);
        }
        self.gateway.handle_timeout(now);
        while let Some(event) = self.gateway.poll_event() {
            busy = true;
            self.gateway_event(event);
        }
        while let Some(datagram) = self.gateway.poll_datagram(now, EPOCH_START + now.as_secs()) {
            busy = true;
            self.for_board.extend(encode_line(0, &datagram).unwrap());
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
                if self.to_kgc == Some(number) {
                    self.flights.push_back(InFlight::Kgc(Peer(number), payload));
                } else if self.to_leader == Some(number) {
                    self.flights.push_back(InFlight::Leader(Peer(number), payload));
                }
            }
            GatewayEvent::Transmit { to: Destination::Group, payload } => {
                let from = Peer(self.to_leader.unwrap_or(0));
                self.flights.push_back(InFlight::Leader(from, payload));
            }
            GatewayEvent::Block { peer } => panic!("the board blocks {peer}"),
            GatewayEvent::Report(report) => self.report = Some(report),
            GatewayEvent::Lost => self.disconnect_all(),
        }
    }

    pub(crate) fn connect(&mut self, wants: Wants) {
        if wants.kgc && self.to_kgc.is_none() {
            let number = self.number();
            self.to_kgc = Some(number);
            let _ = self.gateway.send(&ToBoard::Connected { peer: number, route: LinkRoute::Kgc });
            self.feed_kgc(Input::Connected { peer: Peer(number), route: Route::Inbound });
        }
        if !wants.kgc
            && let Some(number) = self.to_kgc.take()
        {
            let _ = self.gateway.send(&ToBoard::Disconnected { peer: number });
            self.feed_kgc(Input::Disconnected { peer: Peer(number) });
        }
        if self.to_leader.is_none() {
            let number = self.number();
            self.to_leader = Some(number);
            let _ = self.gateway.send(&ToBoard::Connected { peer: number, route: LinkRoute::Leader });
            self.feed_leader(Input::Connected { peer: Peer(number), route: Route::Inbound });
        }
        self.wants = wants;
    }

    /// Disconnects the leader and tells the board; returns what the board wants.
    pub(crate) fn disconnect_leader(&mut self) -> Wants {
        if let Some(number) = self.to_leader {
            let _ = self.gateway.send(&ToBoard::Disconnected { peer: number });
        }
        let wants = self.wants.clone();
        self.disconnect_all();
        wants
    }

    pub(crate) fn disconnect_all(&mut self) {
        if let Some(number) = self.to_kgc.take() {
            self.feed_kgc(Input::Disconnected { peer: Peer(number) });
        }
        if let Some(number) = self.to_leader.take() {
            self.feed_leader(Input::Disconnected { peer: Peer(number) });
        }
        self.wants = Wants::default();
    }

    /// A message of a KGC or leader for the board.
    pub(crate) fn forward(&mut self, from: u64, via: quiver_link::Via, bytes: Vec<u8>) {
        let _ = self.gateway.send(&ToBoard::Received { from, via, bytes });
    }

    /// Sends the board these bytes as if they came from its leader.
    ///
    /// # Panics
    /// If it is connected to none.
    pub fn inject_from_leader(&mut self, bytes: &[u8]) {
        let from = self.to_leader.expect("a leader is connected");
        self.gateway
            .send(&ToBoard::Received { from, via: quiver_link::Via::Peer, bytes: bytes.into() })
            .unwrap();
    }

    /// Another gateway takes this one's place.
    pub fn restart_gateway(&mut self) {
        self.disconnect_all();
        self.gateway = GatewayEndpoint::new(Limits::line(1 << 17), self.rng.next_u32());
        self.decoder = LineDecoder::new();
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}
