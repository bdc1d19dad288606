//! Finds frames in a stream of bytes, and finds the next one again behind damage.

use alloc::vec::Vec;

use crate::{
    error::MavlinkError,
    frame::{Frame, MAX_FRAME_LEN, STX_V1, STX_V2, split_declared},
};

/// Counts of a reader, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderCounters {
    /// Frames found.
    pub frames: u64,
    /// Bytes that belonged to no frame.
    pub skipped_bytes: u64,
    /// Frames with flags that nobody here knows.
    pub unknown_flags: u64,
    /// Frames of system 0.
    pub no_system_id: u64,
    /// Bytes of frames that were refused, which are among those of no frame.
    pub refused_bytes: u64,
    /// Bytes that check sums were computed over.
    pub checked_bytes: u64,
}

impl ReaderCounters {
    /// Bytes that were cut, damaged, or never meant to be a frame.
    #[must_use]
    pub const fn lost_bytes(&self) -> u64 {
        self.skipped_bytes.saturating_sub(self.refused_bytes)
    }
}

/// Bytes that check sums are computed over for each byte received. Frames need one; behind damage some starts are
/// tried.
const WORK: usize = 32;
/// Bytes that they may be computed over beyond, before as many have come.
const RESERVE: usize = 16 * MAX_FRAME_LEN;

/// Reads frames of any dialect from a stream: UART, TCP, or datagrams one by one.
///
/// A frame whose check sum proves it ([`Frame::is_proven`]) is whole, whatever its flags, and so is one that ends
/// where the bytes end or where the next start byte stands. A whole frame is handed over, or dropped as a
/// whole if it has unknown flags or no system: nothing inside it is looked at, because a payload (of a log, a
/// file, a tunnel) may be somebody's frame, and must not become one. Anything else is damage: its start byte
/// is skipped and the search goes on behind it, so that a damaged length does not swallow the frames behind
/// it. A damaged frame that seems whole is handed over with its wrong check sum ([`Frame::is_damaged`]).
///
/// Holds fewer than 287 bytes between calls. The work is bounded by what comes: of bytes that begin a frame everywhere,
/// made to keep the reader busy, some are not looked at.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    held: Vec<u8>,
    counters: ReaderCounters,
    /// Bytes that check sums may be computed over until more come.
    work: usize,
}

impl FrameReader {
    /// A reader at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes received bytes and hands over each frame that they complete, in order.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
        self.push_all(bytes, |_, frame| {
            if let Ok(frame) = frame {
                each(frame);
            }
        });
    }

    /// The same, with the bytes of each whole frame, also of one that is refused ([`MavlinkError::UnknownFlags`],
    /// [`MavlinkError::NoSystemId`]).
    pub fn push_all(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8], Result<Frame<'_>, MavlinkError>)) {
        self.grant(bytes.len());
        let mut held = core::mem::take(&mut self.held);
        // Without a cut frame in front the bytes are read where they stand.
        let left = if held.is_empty() {
            self.read(bytes, &mut each)
        } else {
            held.extend_from_slice(bytes);
            self.read(&held, &mut each)
        };
        self.held = left.to_vec();
        debug_assert!(self.held.len() < MAX_FRAME_LEN, "a whole frame was left unread");
    }

    /// Takes a datagram of whole frames; what it ends with of a frame is dropped.
    pub fn push_datagram(&mut self, bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
        self.push_datagram_all(bytes, |_, frame| {
            if let Ok(frame) = frame {
                each(frame);
            }
        });
    }

    /// The same, with the bytes of each whole frame, also of one that is refused.
    pub fn push_datagram_all(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8], Result<Frame<'_>, MavlinkError>),
    ) {
        self.reset();
        self.grant(bytes.len());
        let left = self.read(bytes, &mut each).len();
        self.skip(left);
    }

    /// Forgets a frame that is cut: the line was opened anew.
    pub fn reset(&mut self) {
        let held = core::mem::take(&mut self.held);
        self.skip(held.len());
    }

    /// Counts since the reader was made.
    #[must_use]
    pub const fn counters(&self) -> ReaderCounters {
        self.counters
    }

    /// Hands over the frames in `bytes`; returns the start of a frame that goes on.
    fn read<'a>(
        &mut self,
        mut bytes: &'a [u8],
        each: &mut impl FnMut(&[u8], Result<Frame<'_>, MavlinkError>),
    ) -> &'a [u8] {
        loop {
            let start = bytes.iter().position(|byte| is_start(*byte)).unwrap_or(bytes.len());
            self.skip(start);
            bytes = bytes.get(start..).unwrap_or_default();
            match split_declared(bytes) {
                Ok((declared, rest)) if self.is_whole(declared, rest) => {
                    self.take(declared, each);
                    bytes = rest;
                }
                Err(MavlinkError::Truncated { .. }) => return bytes,
                Ok(_) | Err(_) => {
                    self.skip(1);
                    bytes = bytes.get(1..).unwrap_or_default();
                }
            }
        }
    }

    /// Tells whether the bytes that a header declares are one frame, damaged at most within.
    fn is_whole(&mut self, declared: &[u8], rest: &[u8]) -> bool {
        self.proves(declared) || rest.first().is_none_or(|byte| is_start(*byte))
    }

    /// Hands over a whole frame, and counts what becomes of it.
    fn take(&mut self, declared: &[u8], each: &mut impl FnMut(&[u8], Result<Frame<'_>, MavlinkError>)) {
        let frame = Frame::parse(declared);
        match &frame {
            Ok(_) => self.counters.frames += 1,
            Err(error) => {
                self.counters.unknown_flags += u64::from(matches!(error, MavlinkError::UnknownFlags(_)));
                self.counters.no_system_id += u64::from(matches!(error, MavlinkError::NoSystemId));
                self.counters.refused_bytes += declared.len() as u64;
                self.skip(declared.len());
            }
        }
        each(declared, frame);
    }

    /// Allows the work for so many bytes that come.
    fn grant(&mut self, bytes: usize) {
        let more = bytes.saturating_mul(WORK);
        self.work = self.work.saturating_add(more).min(more.max(RESERVE));
    }

    /// Returns true if a frame is proven, while there is work left to find out.
    fn proves(&mut self, declared: &[u8]) -> bool {
        let cost = declared.len();
        let Some(left) = self.work.checked_sub(cost) else { return false };
        self.work = left;
        self.counters.checked_bytes += cost as u64;
        Frame::proves(declared)
    }

    fn skip(&mut self, count: usize) {
        self.counters.skipped_bytes += count as u64;
    }
}

const fn is_start(byte: u8) -> bool {
    byte == STX_V1 || byte == STX_V2
}
