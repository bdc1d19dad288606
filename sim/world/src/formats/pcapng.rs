//! Captures in pcapng: IEEE 802.15.4 frames without frame check sequence, an interface for each station.
//!
//! A message of the world becomes the data frames that the radio would split it into, with short addresses: stations in
//! the order of [`trace`](crate::trace), from 1. Epochs, events and losses are comments of packets.

use std::time::Duration;

use quiver_testbed::EPOCH_START;

/// LINKTYPE_IEEE802_15_4_NOFCS.
pub const LINK_TYPE: u16 = 230;
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
        let mut capture = Self::default();
        // Section header: byte order, version 1.0, length unknown.
        let mut body = Vec::new();
        body.extend(0x1A2B_3C4D_u32.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(0_u16.to_le_bytes());
        body.extend(u64::MAX.to_le_bytes());
        capture.block(0x0A0D_0D0A, &body);
        for name in stations {
            let mut body = Vec::new();
            body.extend(LINK_TYPE.to_le_bytes());
            body.extend([0; 2]);
            body.extend(0_u32.to_le_bytes());
            // if_name, and if_tsresol: nanoseconds.
            option(&mut body, 2, name.as_bytes());
            option(&mut body, 9, &[9]);
            body.extend([0; 4]);
            capture.block(1, &body);
        }
        capture
    }

    /// Says something in the next packet's comment.
    pub fn comment(&mut self, text: String) {
        // What no packet takes must not grow for ever.
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
        // Enhanced packet: interface, time in two halves, lengths, data, options.
        let time = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let time = time.saturating_add(EPOCH_START * 1_000_000_000);
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let mut body = Vec::new();
        body.extend(from.to_le_bytes());
        body.extend(((time >> 32) as u32).to_le_bytes());
        body.extend((time as u32).to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend(length.to_le_bytes());
        body.extend(&frame);
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
    fn comments_are_cut_and_not_kept_for_ever() {
        let mut capture = Capture::new(["a".into()]);
        (0..1000).for_each(|_| capture.comment("ü".repeat(2000)));
        capture.message(Captured { at: Duration::ZERO, from: 0, to: None, payload: b"x" });
        let bytes = capture.into_bytes();
        assert!(bytes.len() < 64 * 1100 && blocks(&bytes).len() == 3);
    }
}
