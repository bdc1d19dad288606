//! The board's line, or a radio in its place: it loses frames, and carries coded broadcasts.

use std::time::Duration;

use quiver_link::encode_line;
use quiver_link::erasure::{Broadcaster, BroadcasterCounters, BroadcasterLimits, CodedFrame};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Number of the board, and of another that takes broadcasts, so that there are any.
const BOARD: u16 = 1;
const OTHER: u16 = 2;

/// The line to the board.
#[derive(Default)]
pub struct BoardLine {
    /// Bytes that wait for the board.
    bytes: Vec<u8>,
    /// The radio in place of the line.
    radio: Option<RadioLink>,
}

/// A radio between board and gateway.
struct RadioLink {
    /// Frames of a hundred that are lost, both ways.
    loss: u32,
    chance: ChaCha20Rng,
    broadcaster: Broadcaster,
    /// True if the gateway sends coded broadcasts.
    codes: bool,
    /// True if broadcasts get the parity that the loss in sessions demands, or none.
    parity: bool,
    /// Fragments that the session had sent, and repeated, when the broadcaster was last told.
    fragments: (u64, u64),
    /// Frames of broadcasts that were sent.
    coded: Vec<Vec<u8>>,
    /// Broadcasts that the board did not confirm.
    missed: usize,
    /// Frames of each broadcast before which there are false ones, and how many.
    jammed: (u8, u8),
}

impl BoardLine {
    /// A radio that loses `loss` of a hundred frames, by chance from `seed`. Its gateway sends coded broadcasts if
    /// `codes`, with parity if `parity`.
    pub(crate) fn radio(seed: u64, loss: u32, codes: bool, parity: bool) -> Self {
        let radio = RadioLink {
            loss,
            chance: ChaCha20Rng::seed_from_u64(seed),
            broadcaster: Broadcaster::new(BroadcasterLimits::radio()),
            codes,
            parity,
            fragments: (0, 0),
            coded: Vec::new(),
            missed: 0,
            jammed: (0, 0),
        };
        Self { bytes: Vec::new(), radio: Some(radio) }
    }

    pub(crate) const fn is_radio(&self) -> bool {
        self.radio.is_some()
    }

    /// Returns true if the next frame is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.radio.as_mut().is_some_and(|radio| radio.chance.next_u32() % 100 < radio.loss)
    }

    /// Makes the radio lose, from now on, `loss` of a hundred frames.
    pub fn set_loss(&mut self, loss: u32) {
        if let Some(radio) = &mut self.radio {
            radio.loss = loss;
        }
    }

    /// Somebody sends each frame of a broadcast again, after one of a message of his own, and before each of the
    /// first `frames` of a broadcast `copies` that differ from it in their pieces.
    pub fn jam(&mut self, frames: u8, copies: u8) {
        if let Some(radio) = &mut self.radio {
            radio.jammed = (frames, copies);
        }
    }

    /// Frames of broadcasts sent so far, lost ones included.
    #[must_use]
    pub fn coded_frames(&self) -> &[Vec<u8>] {
        self.radio.as_ref().map(|radio| &radio.coded[..]).unwrap_or_default()
    }

    /// Broadcasts that the board did not confirm, so that the gateway sent them in its session.
    #[must_use]
    pub fn missed_broadcasts(&self) -> usize {
        self.radio.as_ref().map_or(0, |radio| radio.missed)
    }

    /// Counts of broadcasts by outcome.
    #[must_use]
    pub fn broadcast_counters(&self) -> BroadcasterCounters {
        self.radio.as_ref().map(|radio| radio.broadcaster.counters()).unwrap_or_default()
    }

    /// Puts a datagram on the line, as it is.
    ///
    /// # Panics
    /// If no line takes it.
    pub fn put(&mut self, datagram: &[u8]) {
        self.bytes.extend(encode_line(0, datagram).unwrap());
    }

    /// Sends the board a datagram, which the radio may lose.
    pub(crate) fn put_on_air(&mut self, datagram: &[u8]) {
        if !self.loses() {
            self.put(datagram);
        }
    }

    fn put_on_air_jammed(&mut self, frame: &[u8], (frames, copies): (u8, u8)) {
        let (Ok(coded), true) = (CodedFrame::decode(frame), frames > 0) else {
            return self.put_on_air(frame);
        };
        for copy in 1..=copies {
            let piece: Vec<u8> = coded.piece.iter().map(|byte| byte ^ copy).collect();
            let spoilt = CodedFrame { piece: &piece, ..coded };
            if coded.index < frames {
                self.put(&spoilt.encode());
            }
            let other = CodedFrame { digest: [0; 4], ..spoilt };
            self.put(&other.encode());
        }
        self.put_on_air(frame);
        self.put_on_air(frame);
    }

    /// Takes the bytes that wait for the board.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Sends the board coded broadcasts from now on, if the gateway codes.
    pub(crate) fn begin_broadcasts(&mut self, max_message: u32) {
        if let Some(radio) = self.radio.as_mut().filter(|radio| radio.codes) {
            let longest = usize::try_from(max_message).unwrap();
            radio.broadcaster.add(BOARD, longest);
            radio.broadcaster.add(OTHER, longest);
        }
    }

    /// Sends the board no more broadcasts.
    pub(crate) fn end_broadcasts(&mut self, now: Duration) {
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.remove(now, BOARD);
        }
    }

    /// Notes that the board has the broadcast of this digest.
    pub(crate) fn confirm_broadcast(&mut self, now: Duration, digest: [u8; 4]) {
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.confirm(now, BOARD, digest);
        }
    }

    /// Sends a message as a broadcast; false if it is to go in the session, which so far sent `sent` fragments and
    /// repeated `repeated`.
    pub(crate) fn broadcast(&mut self, now: Duration, message: &[u8], sent: u64, repeated: u64) -> bool {
        let Some(radio) = &mut self.radio else { return false };
        let (sent_before, repeated_before) = std::mem::replace(&mut radio.fragments, (sent, repeated));
        if radio.parity {
            radio.broadcaster.note_fragments(sent - sent_before, repeated - repeated_before);
        }
        radio.broadcaster.publish(now, BOARD, message)
    }

    pub(crate) fn broadcasts_due(&self) -> Option<Duration> {
        self.radio.as_ref()?.broadcaster.timeout()
    }

    /// Sends frames of broadcasts. Returns whether there were any.
    pub(crate) fn send_frames(&mut self, now: Duration) -> bool {
        let mut busy = false;
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.handle_timeout(now);
        }
        while let Some(frame) = self.radio.as_mut().and_then(|radio| radio.broadcaster.poll_frame(now)) {
            busy = true;
            let jammed = self.radio.as_ref().map_or((0, 0), |radio| radio.jammed);
            self.put_on_air_jammed(&frame, jammed);
            self.radio.iter_mut().for_each(|radio| radio.coded.push(frame.clone()));
        }
        busy
    }

    /// The next message that the board did not confirm.
    pub(crate) fn poll_missed(&mut self) -> Option<Vec<u8>> {
        let radio = self.radio.as_mut()?;
        let missed = radio.broadcaster.poll_missed()?;
        radio.missed += 1;
        Some(missed.message)
    }
}
