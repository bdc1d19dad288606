//! Frames with a check sum on a stream of bytes: UART, USB, TCP.
//!
//! A frame is `00 ‖ COBS(body ‖ CRC-32 LE) ‖ 00` with body = version (1 byte) ‖ address (2 bytes, LE) ‖
//! datagram. The zero in front parts the frame from garbage before it, so that garbage between frames costs
//! no frame; frames without bytes between two zeros mean nothing. COBS: Cheshire and Baker, "Consistent
//! Overhead Byte Stuffing", 1999.

use alloc::vec;
use alloc::vec::Vec;

use cobs::{DecodeResult, DecoderState};

use crate::LinkError;
use crate::checksum::{CHECKSUM_LEN, checksum};

/// The version of the link.
pub const VERSION: u8 = 1;
/// The longest datagram on a line in bytes.
pub const MAX_DATAGRAM: usize = 1024;
/// Version and address.
const HEADER_LEN: usize = 3;
/// The longest body with its check sum in bytes.
const MAX_BODY: usize = HEADER_LEN + MAX_DATAGRAM + CHECKSUM_LEN;
/// The longest frame in bytes, with both zeros.
pub const MAX_LINE_FRAME: usize = cobs::max_encoding_length(MAX_BODY) + 2;

/// A frame from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFrame<'a> {
    /// Address of the board: 0 is the one at the end of this line, others are the short addresses of boards
    /// behind a dongle.
    pub address: u16,
    /// The datagram.
    pub datagram: &'a [u8],
}

/// Counters of received bytes and frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Frames taken.
    pub frames: u64,
    /// Frames longer than [`MAX_LINE_FRAME`].
    pub too_long: u64,
    /// Frames that end within a block of COBS.
    pub bad_cobs: u64,
    /// Frames too short for a header and a check sum, or with a wrong check sum.
    pub bad_checksum: u64,
    /// Frames of another version.
    pub bad_version: u64,
}

impl LineCounters {
    /// Frames refused, for whatever reason.
    pub fn refused(&self) -> u64 {
        self.too_long
            .saturating_add(self.bad_cobs)
            .saturating_add(self.bad_checksum)
            .saturating_add(self.bad_version)
    }
}

/// Finds frames in a stream of bytes. Has a buffer for the longest frame and no more; after whatever garbage,
/// the frame behind the next zero is found.
#[derive(Debug)]
pub struct LineDecoder {
    state: DecoderState,
    body: [u8; MAX_BODY],
    len: usize,
    overflow: bool,
    counters: LineCounters,
}

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl LineDecoder {
    /// Begins between two frames.
    pub const fn new() -> Self {
        Self {
            state: DecoderState::Idle,
            body: [0; MAX_BODY],
            len: 0,
            overflow: false,
            counters: LineCounters { frames: 0, too_long: 0, bad_cobs: 0, bad_checksum: 0, bad_version: 0 },
        }
    }

    /// The next frame. Takes bytes from the front of `input` until a frame ends; `None` once all are taken.
    /// Call it until then.
    pub fn next_frame(&mut self, input: &mut &[u8]) -> Option<LineFrame<'_>> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            if self.push(byte) {
                let (address, datagram) = self.frame()?;
                return Some(LineFrame { address, datagram });
            }
        }
        None
    }

    /// The counters so far.
    pub fn counters(&self) -> LineCounters {
        self.counters
    }

    /// Takes one byte; whether it ends a good frame.
    fn push(&mut self, byte: u8) -> bool {
        // After any garbage, the frame behind the next zero is found.
        match self.state.feed(byte) {
            Ok(DecodeResult::NoData) => {}
            Ok(DecodeResult::DataStart) => self.begin(),
            Ok(DecodeResult::DataContinue(decoded)) => match self.body.get_mut(self.len) {
                Some(place) => {
                    *place = decoded;
                    self.len += 1;
                }
                // Read to its end all the same, because the next frame begins behind the next zero.
                None => self.overflow = true,
            },
            Ok(DecodeResult::DataComplete) => return self.check(),
            Err(_) => self.counters.bad_cobs += 1,
        }
        false
    }

    fn begin(&mut self) {
        self.len = 0;
        self.overflow = false;
    }

    /// Returns true if the frame that just ended is one; if it is not, the reason is counted.
    fn check(&mut self) -> bool {
        if self.overflow {
            self.counters.too_long += 1;
            return false;
        }
        // CRC-32 over version, address and datagram.
        let intact =
            self.body.get(..self.len).and_then(|body| body.split_last_chunk::<CHECKSUM_LEN>()).is_some_and(
                |(body, sum)| body.len() >= HEADER_LEN && checksum(body) == u32::from_le_bytes(*sum),
            );
        if !intact {
            self.counters.bad_checksum += 1;
            return false;
        }
        // After the check sum, so that only intact frames count as of another version.
        if self.body.first() != Some(&VERSION) {
            self.counters.bad_version += 1;
            return false;
        }
        self.counters.frames += 1;
        true
    }

    /// The frame that [`LineDecoder::check`] found good.
    fn frame(&self) -> Option<(u16, &[u8])> {
        let end = self.len.checked_sub(CHECKSUM_LEN)?;
        let (_, rest) = self.body.get(..end)?.split_first()?;
        let (address, datagram) = rest.split_first_chunk()?;
        Some((u16::from_le_bytes(*address), datagram))
    }
}

/// A frame as bytes, with a zero before and after it.
///
/// # Errors
/// [`LinkError::DatagramTooLong`] beyond [`MAX_DATAGRAM`].
pub fn encode_line(address: u16, datagram: &[u8]) -> Result<Vec<u8>, LinkError> {
    if datagram.len() > MAX_DATAGRAM {
        return Err(LinkError::DatagramTooLong { len: datagram.len(), max: MAX_DATAGRAM });
    }
    let mut body = Vec::with_capacity(HEADER_LEN + datagram.len() + CHECKSUM_LEN);
    // `00 ‖ COBS(version ‖ address ‖ datagram ‖ CRC-32) ‖ 00`.
    body.push(VERSION);
    body.extend_from_slice(&address.to_le_bytes());
    body.extend_from_slice(datagram);
    let sum = checksum(&body);
    body.extend_from_slice(&sum.to_le_bytes());
    let mut frame = vec![0; cobs::max_encoding_length(body.len()) + 2];
    let len = cobs::try_encode_including_sentinels(&body, &mut frame)
        .map_err(|_| LinkError::DatagramTooLong { len: datagram.len(), max: MAX_DATAGRAM })?;
    frame.truncate(len);
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(decoder: &mut LineDecoder, mut input: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut found = Vec::new();
        while let Some(frame) = decoder.next_frame(&mut input) {
            found.push((frame.address, frame.datagram.to_vec()));
        }
        assert!(input.is_empty());
        found
    }

    #[test]
    fn longest_datagram_makes_the_longest_frame() {
        let frame = encode_line(u16::MAX, &[0xFF; MAX_DATAGRAM]).unwrap();
        assert!(frame.len() <= MAX_LINE_FRAME, "{}", frame.len());
        assert_eq!(frames(&mut LineDecoder::new(), &frame), [(u16::MAX, vec![0xFF; MAX_DATAGRAM])]);
        let longer = encode_line(0, &[0; MAX_DATAGRAM + 1]);
        assert_eq!(longer, Err(LinkError::DatagramTooLong { len: MAX_DATAGRAM + 1, max: MAX_DATAGRAM }));
    }

    #[test]
    fn frame_may_come_byte_by_byte_and_several_at_once() {
        let one = encode_line(0, b"one").unwrap();
        let two = encode_line(7, &[]).unwrap();
        let mut decoder = LineDecoder::new();
        let slowly: Vec<_> = one.iter().flat_map(|byte| frames(&mut decoder, &[*byte])).collect();
        assert_eq!(slowly, [(0, b"one".to_vec())]);
        let both = [one, two].concat();
        assert_eq!(frames(&mut decoder, &both), [(0, b"one".to_vec()), (7, vec![])]);
        assert_eq!(decoder.counters(), LineCounters { frames: 3, ..LineCounters::default() });
    }

    #[test]
    fn what_is_wrong_with_a_frame_is_counted() {
        let mut decoder = LineDecoder::new();
        let good = encode_line(0, b"good").unwrap();
        let mut altered = good.clone();
        altered[5] ^= 1;
        let mut foreign = vec![2, 0, 0];
        foreign.extend(checksum(&[2, 0, 0]).to_le_bytes());
        let foreign = cobs::encode_vec_including_sentinels(&foreign);
        let mut endless = vec![1; 5000];
        endless.push(0);
        for bad in [&altered, &foreign, &endless, &vec![9, 1, 0], &vec![2, 5, 0]] {
            assert_eq!(frames(&mut decoder, bad), []);
            assert_eq!(frames(&mut decoder, &good), [(0, b"good".to_vec())]);
        }
        let expected = LineCounters { frames: 5, too_long: 1, bad_cobs: 1, bad_checksum: 2, bad_version: 1 };
        assert_eq!(decoder.counters(), expected);
        assert_eq!(expected.refused(), 5);
    }
}
