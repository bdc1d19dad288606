//! Joins frames that datagrams cut: transparent converters between serial lines and UDP send whatever has come.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use quiver_mavlink::{Frame, FrameReader, MavlinkError};
use tokio::time::Instant;

/// Time for which the rest of a frame is waited for.
const REST_WITHIN: Duration = Duration::from_secs(1);
/// Peers whose cut frames are held, fewer than 287 bytes each.
const MAX_PEERS: usize = 32;

/// Cut frames by peer.
#[derive(Debug, Default)]
pub(super) struct CutFrames(HashMap<SocketAddr, CutFrame>);

#[derive(Debug)]
struct CutFrame {
    /// Holds the beginning.
    reader: FrameReader,
    at: Instant,
}

/// Whole frames, one behind the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WholeFrames {
    pub(super) bytes: Vec<u8>,
    /// True if the check sum of one proves it.
    pub(super) is_proven: bool,
    /// Bytes that belong to no whole frame, and will belong to none.
    pub(super) skipped: u64,
}

impl CutFrames {
    /// Takes a datagram; returns the frames that it completes. One of whole frames does not wait for what was cut before it.
    pub(super) fn join(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> WholeFrames {
        let (mut reader, mut frames) = (FrameReader::new(), WholeFrames::default());
        reader.push_datagram_all(datagram, |bytes, frame| frames.add(bytes, frame));
        if frames.is_proven && frames.bytes.len() == datagram.len() {
            frames.skipped = self.0.remove(&from).map_or(0, CutFrame::end);
            return frames;
        }
        let old = self.0.extract_if(|_, cut| now.duration_since(cut.at) >= REST_WITHIN);
        let mut frames =
            WholeFrames { skipped: old.map(|(_, cut)| cut.end()).sum(), ..WholeFrames::default() };
        // Bounded, because senders' addresses can be made up.
        if self.0.len() >= MAX_PEERS
            && !self.0.contains_key(&from)
            && let Some(oldest) = self.0.iter().min_by_key(|(_, cut)| cut.at).map(|(peer, _)| *peer)
        {
            frames.skipped += self.0.remove(&oldest).map_or(0, CutFrame::end);
        }
        let cut = self.0.entry(from).or_insert_with(|| CutFrame { reader: FrameReader::new(), at: now });
        cut.at = now;
        // Joined to the rest that came from the same address a moment ago.
        let before = cut.reader.counters().lost_bytes();
        cut.reader.push_all(datagram, |bytes, frame| frames.add(bytes, frame));
        frames.skipped += cut.reader.counters().lost_bytes() - before;
        frames
    }
}

impl CutFrame {
    /// Gives up a frame of which the rest did not come; returns its bytes.
    fn end(mut self) -> u64 {
        let before = self.reader.counters().lost_bytes();
        self.reader.reset();
        self.reader.counters().lost_bytes() - before
    }
}

impl WholeFrames {
    /// Adds a frame, also one that is refused: the bridge says so.
    fn add(&mut self, bytes: &[u8], frame: Result<Frame<'_>, MavlinkError>) {
        self.bytes.extend_from_slice(bytes);
        self.is_proven |= frame.is_ok_and(|frame| frame.is_proven());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heartbeats of MAVLink 1.
    fn heartbeat(number: u8) -> Vec<u8> {
        let frame = [0xfe, 9, number, 1, 1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 3];
        let sum = frame.iter().skip(1).chain(&[50]).fold(0xffff_u16, |crc, byte| {
            (0..8).fold(
                crc ^ u16::from(*byte),
                |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 },
            )
        });
        [&frame[..], &sum.to_le_bytes()].concat()
    }

    fn stream(frames: u8) -> Vec<u8> {
        (0..frames).flat_map(heartbeat).collect()
    }

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn stream_comes_whole_however_datagrams_cut_it_and_whoever_sends_between() {
        for size in [1, 2, 7, 16, 17, 18, 64, 100, 1_000] {
            let (mut cut, now, stream) = (CutFrames::default(), Instant::now(), stream(100));
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for chunk in stream.chunks(size) {
                one.extend(cut.join(now, peer(1), chunk).bytes);
                other.extend(cut.join(now, peer(2), chunk).bytes);
            }
            assert!(one == stream && other == stream, "{size}");
        }
    }

    #[test]
    fn datagram_of_whole_frames_does_not_wait_for_the_rest_of_another() {
        let (mut cut, now) = (CutFrames::default(), Instant::now());
        // Begins a frame of 280 bytes, and ends there.
        assert_eq!(cut.join(now, peer(1), &[0xfd, 255, 0, 0, 1]), WholeFrames::default());
        let whole = cut.join(now, peer(1), &heartbeat(1));
        assert_eq!(whole, WholeFrames { bytes: heartbeat(1), is_proven: true, skipped: 5 });
        assert_eq!(cut.0.len(), 0);
    }

    #[test]
    fn beginning_is_forgotten_when_it_is_old_and_peers_are_bounded() {
        let (mut cut, now, frame) = (CutFrames::default(), Instant::now(), heartbeat(1));
        let (begin, end) = frame.split_at(9);
        assert_eq!(cut.join(now, peer(1), begin), WholeFrames::default());
        // The end begins no frame: it is skipped as well.
        let rest = WholeFrames { skipped: frame.len() as u64, ..WholeFrames::default() };
        assert_eq!(cut.join(now + REST_WITHIN, peer(1), end), rest);
        for port in 1..=1_000 {
            cut.join(now + REST_WITHIN, peer(port), begin);
        }
        assert_eq!(cut.0.len(), MAX_PEERS);
        assert_eq!(cut.join(now + REST_WITHIN, peer(1_000), end).bytes, frame);
    }
}
