//! Captures in pcapng: of a virtual world IEEE 802.15.4 frames without frame check sequence, an interface for each station; of
//! the live world the group's datagrams, as a carrier puts them into UDP.
//!
//! A message of the world becomes the data frames that the radio would split it into, with short addresses: stations in
//! the order of [`trace`](crate::trace), from 1. Epochs, events and losses are comments of packets.

use std::net::SocketAddrV4;
use std::time::Duration;

use quiver_testbed::EPOCH_START;

/// LINKTYPE_IEEE802_15_4_NOFCS.
pub const LINK_TYPE: u16 = 230;
/// LINKTYPE_RAW: packets that begin with the header of IP.
pub const LINK_TYPE_OF_IP: u16 = 101;
/// Headers of IPv4, without options, and of UDP.
const IP_HEADER: u16 = 20;
const UDP_HEADER: u16 = 8;
/// Payload of a frame: 127 bytes less header and frame check sequence.
pub const MAX_PAYLOAD: usize = 127 - HEADER - 2;
/// Frame control 2, sequence number 1, PAN 2, destination 2, source 2.
const HEADER: usize = 9;
/// Data frame, PAN id once, short addresses, frame version 2003.
const FRAME_CONTROL: u16 = 0x8841;
/// The PAN, and the address of all.
const PAN: u16 = 0x5156;
const BROADCAST: u16 = 0xFFFF;
/// Bytes of a comment, at most.
const MAX_COMMENT: usize = 1024;

/// Writes a capture.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    bytes: Vec<u8>,
    sequence: u8,
    /// Comments that wait for a packet.
    comments: Vec<String>,
    full: bool,
}

/// A message of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Time since the world began.
    pub at: Duration,
    /// Number of the station that sends, from 0.
    pub from: u32,
    /// The same of the receiver; `None`: all.
    pub to: Option<u32>,
    /// The message.
    pub payload: &'a [u8],
}

impl Capture {
    /// The most bytes of a capture: what comes later is left out.
    pub const MAX: usize = 1 << 30;

    /// A capture of stations with these names.
    #[must_use]
    pub fn new(stations: impl IntoIterator<Item = String>) -> Self {
        let mut capture = Self::empty();
        stations.into_iter().for_each(|name| capture.interface(LINK_TYPE, &name));
        capture
    }

    /// A capture of UDP datagrams, all at an interface of this name.
    #[must_use]
    pub fn of_datagrams(name: &str) -> Self {
        let mut capture = Self::empty();
        capture.interface(LINK_TYPE_OF_IP, name);
        capture
    }

    fn empty() -> Self {
        let mut capture = Self::default();
        // Section header: byte order, version 1.0, length unknown.
        let mut body = Vec::new();
        body.extend(0x1A2B_3C4D_u32.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(0_u16.to_le_bytes());
        body.extend(u64::MAX.to_le_bytes());
        capture.block(0x0A0D_0D0A, &body);
        capture
    }

    fn interface(&mut self, link_type: u16, name: &str) {
        let mut body = Vec::new();
        body.extend(link_type.to_le_bytes());
        body.extend([0; 2]);
        body.extend(0_u32.to_le_bytes());
        // if_name, and if_tsresol: nanoseconds.
        option(&mut body, 2, name.as_bytes());
        option(&mut body, 9, &[9]);
        body.extend([0; 4]);
        self.block(1, &body);
    }

    /// Says something in the next packet's comment.
    pub fn comment(&mut self, text: String) {
        // Comments that no packet takes must not grow for ever.
        if self.comments.len() < 64 {
            self.comments.push(text);
        }
    }

    /// Returns true if packets were left out because the capture is full.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Writes a message as the frames of the radio.
    pub fn message(&mut self, message: Captured<'_>) {
        let count = message.payload.len().div_ceil(MAX_PAYLOAD).max(1);
        for index in 0..count {
            if self.bytes.len() >= Self::MAX {
                self.full = true;
                return;
            }
            let start = index * MAX_PAYLOAD;
            let end = (start + MAX_PAYLOAD).min(message.payload.len());
            let piece = message.payload.get(start..end).unwrap_or_default();
            self.frame(message, piece);
        }
    }

    /// Writes a UDP datagram over IPv4. One that is longer than such may be is left out.
    pub fn datagram(&mut self, at: Duration, from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
        let Some(udp) = u16::try_from(payload.len()).ok().and_then(|length| length.checked_add(UDP_HEADER))
        else {
            return;
        };
        let Some(total) = udp.checked_add(IP_HEADER) else { return };
        if self.bytes.len() >= Self::MAX {
            self.full = true;
            return;
        }
        let mut packet = Vec::with_capacity(usize::from(total));
        // Version 4 and five words of header, no service class; an identification, may not be fragmented; 64 hops, UDP.
        packet.extend([0x45, 0]);
        packet.extend(total.to_be_bytes());
        packet.extend([self.sequence, 0, 0x40, 0, 64, 17]);
        packet.extend([0; 2]);
        packet.extend(from.ip().octets());
        packet.extend(to.ip().octets());
        let sum = checksum(&packet).to_be_bytes();
        if let Some(place) = packet.get_mut(10..12) {
            place.copy_from_slice(&sum);
        }
        packet.extend(from.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend(udp.to_be_bytes());
        // No check sum, which UDP over IPv4 may leave out.
        packet.extend([0; 2]);
        packet.extend(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.packet(0, at, &packet);
    }

    fn frame(&mut self, Captured { at, from, to, .. }: Captured<'_>, piece: &[u8]) {
        let address = |station: u32| u16::try_from(station + 1).unwrap_or(BROADCAST - 1);
        let mut frame = Vec::with_capacity(HEADER + piece.len());
        frame.extend(FRAME_CONTROL.to_le_bytes());
        frame.push(self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
        frame.extend(PAN.to_le_bytes());
        frame.extend(to.map_or(BROADCAST, address).to_le_bytes());
        frame.extend(address(from).to_le_bytes());
        frame.extend(piece);
        self.packet(from, at, &frame);
    }

    fn packet(&mut self, interface: u32, at: Duration, bytes: &[u8]) {
        // Enhanced packet: interface, time in two halves, lengths, data, options.
        let time = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let time = time.saturating_add(EPOCH_START * 1_000_000_000);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut body = Vec::new();
        body.extend(interface.to_le_bytes());
        body.extend(((time >> 32) as u32).to_le_bytes());
        body.extend((time as u32).to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend(bytes);
        pad(&mut body);
        let comments = std::mem::take(&mut self.comments);
        for comment in &comments {
            let cut = (0..=MAX_COMMENT.min(comment.len())).rev().find(|cut| comment.is_char_boundary(*cut));
            let text = comment.get(..cut.unwrap_or(0)).unwrap_or_default();
            option(&mut body, 1, text.as_bytes());
        }
        if !comments.is_empty() {
            body.extend([0; 4]);
        }
        self.block(6, &body);
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = u32::try_from(body.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(length);
        self.bytes.extend(body);
        self.bytes.extend(length);
    }

    /// The file.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// An option: code, length, value, padded to four bytes.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend(code.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(value.get(..usize::from(length)).unwrap_or_default());
    pad(body);
}

/// Zeros up to a multiple of four: bodies begin on one.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The check sum of a header of IP whose place for it holds zeros: RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| match word {
        [high, low] => u32::from(*high) << 8 | u32::from(*low),
        _ => 0,
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    !u16::try_from(folded).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a file: kind and body. Every length must stand at both ends.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let mut blocks = Vec::new();
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        while !bytes.is_empty() {
            let length = word(bytes, 4) as usize;
            assert!(length.is_multiple_of(4) && word(bytes, length - 4) as usize == length);
            blocks.push((word(bytes, 0), &bytes[8..length - 4]));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn a_capture_has_an_interface_for_each_station_and_a_packet_for_each_frame() {
        let mut capture = Capture::new(["leader-0".into(), "edge-0".into()]);
        capture.comment("epoch 1.0.2".into());
        let payload: Vec<u8> = (0..200).map(|byte| u8::try_from(byte).unwrap()).collect();
        let at = Duration::new(3, 5);
        capture.message(Captured { at, from: 0, to: None, payload: &payload });
        capture.message(Captured { at, from: 1, to: Some(0), payload: &[] });
        let bytes = capture.into_bytes();
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0A0D_0D0A, 1, 1, 6, 6, 6]);
        assert_eq!(blocks[1].1[..2], 230_u16.to_le_bytes());
        assert!(blocks[2].1.windows(6).any(|window| window == b"edge-0"));
        let frame = |index: usize| {
            let body = blocks[index].1;
            let length = u32::from_le_bytes(body[12..16].try_into().unwrap()) as usize;
            &body[20..20 + length]
        };
        assert_eq!(frame(3).len(), 125);
        assert_eq!(frame(3)[..9], [0x41, 0x88, 0, 0x56, 0x51, 0xFF, 0xFF, 1, 0]);
        assert_eq!([&frame(3)[9..], &frame(4)[9..]].concat(), payload);
        assert_eq!(frame(5), [0x41, 0x88, 2, 0x56, 0x51, 1, 0, 2, 0]);
        assert!(blocks[3].1.windows(11).any(|window| window == b"epoch 1.0.2"));
        assert!(!blocks[4].1.windows(11).any(|window| window == b"epoch 1.0.2"));
        let half = |at: usize| u64::from(u32::from_le_bytes(blocks[3].1[at..at + 4].try_into().unwrap()));
        assert_eq!(half(4) << 32 | half(8), (EPOCH_START + 3) * 1_000_000_000 + 5);
    }

    #[test]
    fn datagrams_are_udp_over_ip_with_check_sums_and_none_is_longer_than_such_may_be() {
        let mut capture = Capture::of_datagrams("datagrams");
        let [from, to] = ["10.0.1.1:14800", "10.0.0.1:14800"].map(|end| end.parse().unwrap());
        let at = Duration::from_millis(1);
        capture.comment("drop: lost".into());
        capture.datagram(at, from, to, b"sealed");
        capture.datagram(at, from, to, &[7; 65_507]);
        capture.datagram(at, from, to, &[7; 65_508]);
        let bytes = capture.into_bytes();
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0A0D_0D0A, 1, 6, 6]);
        assert_eq!(blocks[1].1[..2], 101_u16.to_le_bytes());
        let packet = &blocks[2].1[20..20 + 34];
        assert_eq!(packet[..10], [0x45, 0, 0, 34, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(packet[12..20], [10, 0, 1, 1, 10, 0, 0, 1]);
        assert_eq!(packet[20..28], [0x39, 0xD0, 0x39, 0xD0, 0, 14, 0, 0]);
        assert_eq!(&packet[28..], b"sealed");
        // RFC 1071: the check sum of a header that has its own is zero.
        assert_eq!(checksum(&packet[..20]), 0);
        assert!(blocks[2].1.windows(10).any(|window| window == b"drop: lost"));
    }

    #[test]
    fn comments_are_cut_and_not_kept_for_ever() {
        let mut capture = Capture::new(["a".into()]);
        (0..1000).for_each(|_| capture.comment("ü".repeat(2000)));
        capture.message(Captured { at: Duration::ZERO, from: 0, to: None, payload: b"x" });
        let bytes = capture.into_bytes();
        assert!(bytes.len() < 64 * 1100 && blocks(&bytes).len() == 3);
    }
}
