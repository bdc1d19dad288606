//! The gateway between a line and the radio: puts datagrams from one envelope into the other and understands
//! nothing of them.

use alloc::vec::Vec;
use core::fmt;

use quiver_link::erasure::is_coded;
use quiver_link::{BROADCAST, RadioFrame, encode_line};

/// The gateway's own short address.
pub const GATEWAY: u16 = 0;

/// The network that a gateway serves by default.
pub const DEFAULT_NETWORK: u16 = 0x5155;

/// Counters of forwarded and dropped datagrams since the start. Counters stay at their greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardingCounters {
    /// Datagrams from the line to the radio.
    pub to_air: u32,
    /// Datagrams from the radio to the line.
    pub to_line: u32,
    /// Datagrams from the line without a receiver by radio: for this gateway, or for everybody and no frame of a
    /// coded broadcast.
    pub no_board: u32,
    /// Datagrams from the line that no radio frame holds.
    pub too_long: u32,
    /// Frames from the radio of another network, for someone else, or of another kind.
    pub foreign: u32,
}

impl fmt::Display for ForwardingCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to_air, to_line, no_board, too_long, foreign } = self;
        write!(
            f,
            "to-air {to_air} to-line {to_line} no-board {no_board} too-long {too_long} foreign {foreign}"
        )
    }
}

/// The gateway, but for its queues.
#[derive(Debug)]
pub struct Bridge {
    network: u16,
    sequence: u8,
    counters: ForwardingCounters,
}

impl Bridge {
    /// Serves this network.
    #[must_use]
    pub fn new(network: u16) -> Self {
        Self { network, sequence: 0, counters: ForwardingCounters::default() }
    }

    /// The network it serves.
    #[must_use]
    pub fn network(&self) -> u16 {
        self.network
    }

    /// Serves another network from now on.
    pub fn serve(&mut self, network: u16) {
        self.network = network;
    }

    /// Counters of the bridge.
    #[must_use]
    pub fn counters(&self) -> ForwardingCounters {
        self.counters
    }

    /// The radio frame for a datagram that came over the line for `address`, if there can be one.
    pub fn air_frame(&mut self, address: u16, datagram: &[u8]) -> Option<Vec<u8>> {
        if address == GATEWAY || address == BROADCAST && !is_coded(datagram) {
            count(&mut self.counters.no_board);
            return None;
        }
        let frame = RadioFrame {
            sequence: self.sequence,
            network: self.network,
            destination: address,
            source: GATEWAY,
            datagram,
        };
        let Ok(bytes) = frame.encode() else {
            count(&mut self.counters.too_long);
            return None;
        };
        self.sequence = self.sequence.wrapping_add(1);
        count(&mut self.counters.to_air);
        Some(bytes)
    }

    /// The line's frame for one that came by radio, if it is for this gateway.
    pub fn line_frame(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let frame = RadioFrame::parse(frame).ok().filter(|frame| {
            frame.network == self.network && frame.destination == GATEWAY && frame.source != GATEWAY
        });
        let Some(bytes) = frame.and_then(|frame| encode_line(frame.source, frame.datagram).ok()) else {
            count(&mut self.counters.foreign);
            return None;
        };
        count(&mut self.counters.to_line);
        Some(bytes)
    }
}

fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

#[cfg(test)]
mod tests {

    use quiver_link::erasure::code_broadcast;
    use quiver_link::{LineDecoder, MAX_RADIO_DATAGRAM};

    use super::*;

    fn air(network: u16, destination: u16, source: u16) -> Vec<u8> {
        RadioFrame { sequence: 1, network, destination, source, datagram: b"hello" }.encode().expect("short")
    }

    #[test]
    fn datagram_keeps_its_bytes_and_its_board_both_ways() {
        let mut bridge = Bridge::new(0x1234);
        let datagram = [0x5A; MAX_RADIO_DATAGRAM];
        let out = bridge.air_frame(7, &datagram).expect("fits");
        let frame = RadioFrame::parse(&out).expect("a frame");
        assert_eq!((frame.network, frame.destination, frame.source), (0x1234, 7, GATEWAY));
        assert_eq!(frame.datagram, datagram);

        let back = bridge.line_frame(&air(0x1234, GATEWAY, 7)).expect("for us");
        let mut decoder = LineDecoder::new();
        let line = decoder.next_frame(&mut &*back).expect("a frame");
        assert_eq!((line.address, line.datagram), (7, &b"hello"[..]));
        assert_eq!(
            bridge.counters(),
            ForwardingCounters { to_air: 1, to_line: 1, ..ForwardingCounters::default() }
        );
    }

    #[test]
    fn nothing_but_this_networks_frames_for_the_gateway_reach_the_line() {
        let mut bridge = Bridge::new(0x1234);
        let truncated = &air(0x1234, GATEWAY, 7)[..8];
        for frame in [
            &air(0x1235, GATEWAY, 7),
            &air(0x1234, 8, 7),
            &air(0x1234, BROADCAST, 7),
            &air(0x1234, GATEWAY, GATEWAY),
            truncated,
            &[],
        ] {
            assert_eq!(bridge.line_frame(frame), None);
        }
        assert_eq!(bridge.counters(), ForwardingCounters { foreign: 6, ..ForwardingCounters::default() });
    }

    #[test]
    fn nothing_for_the_gateway_itself_or_for_everybody_goes_on_air() {
        let mut bridge = Bridge::new(0x1234);
        assert_eq!(bridge.air_frame(GATEWAY, b"x"), None);
        assert_eq!(bridge.air_frame(BROADCAST, b"x"), None);
        assert_eq!(bridge.air_frame(7, &[0; MAX_RADIO_DATAGRAM + 1]), None);
        assert_eq!(
            bridge.counters(),
            ForwardingCounters { no_board: 2, too_long: 1, ..ForwardingCounters::default() }
        );
    }

    #[test]
    fn coded_broadcasts_go_on_air_for_everybody() {
        let mut bridge = Bridge::new(0x1234);
        let frames = code_broadcast(&[7; 300], MAX_RADIO_DATAGRAM, |_| 2).expect("short");
        for frame in &frames {
            assert_eq!(bridge.air_frame(GATEWAY, frame), None);
            let out = bridge.air_frame(BROADCAST, frame).expect("fits");
            let sent = RadioFrame::parse(&out).expect("a frame");
            assert_eq!((sent.destination, sent.source, sent.datagram), (BROADCAST, GATEWAY, &frame[..]));
        }
        assert_eq!(
            bridge.counters(),
            ForwardingCounters { to_air: 5, no_board: 5, ..ForwardingCounters::default() }
        );
    }

    #[test]
    fn sequence_numbers_count_frames_and_wrap() {
        let mut bridge = Bridge::new(1);
        for expected in (0..=255).chain(0..3) {
            let frame = bridge.air_frame(9, b"").expect("fits");
            assert_eq!(RadioFrame::parse(&frame).expect("a frame").sequence, expected);
        }
    }
}
