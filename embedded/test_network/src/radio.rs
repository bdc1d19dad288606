//! A radio between board and gateway in place of the line: it loses frames, and carries coded broadcasts.

use std::time::Duration;

use quiver_link::erasure::{Broadcaster, BroadcasterCounters, BroadcasterLimits, CodedFrame};
use quiver_link::{EndpointLimits, GatewayEndpoint, encode_line};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::{TestNetwork, TestNetworkNode};

/// Number of the board, and of another that takes broadcasts, so that there are any.
const BOARD: u16 = 1;
const OTHER: u16 = 2;

/// See the [module](self).
pub(crate) struct Radio {
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

impl Radio {
    /// Returns true if the next frame is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.chance.next_u32() % 100 < self.loss
    }
}

impl TestNetwork {
    /// The board's line is a radio that loses `loss` of a hundred frames. Its gateway sends coded broadcasts if
    /// `codes`, with parity if `parity`. To be called before anything runs.
    pub fn use_radio(&mut self, loss: u32, codes: bool, parity: bool) {
        self.gateway = GatewayEndpoint::new(EndpointLimits::radio(1 << 17), 77);
        self.radio = Some(Radio {
            loss,
            chance: ChaCha20Rng::seed_from_u64(self.rng.next_u64()),
            broadcaster: Broadcaster::new(BroadcasterLimits::radio()),
            codes,
            parity,
            fragments: (0, 0),
            coded: Vec::new(),
            missed: 0,
            jammed: (0, 0),
        });
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

    /// Puts a datagram on the board's line, as it is.
    ///
    /// # Panics
    /// If no line takes it.
    pub fn put_on_line(&mut self, datagram: &[u8]) {
        self.for_board.extend(encode_line(0, datagram).unwrap());
    }

    /// Sends the board a datagram, which the radio may lose.
    pub(crate) fn put_on_air(&mut self, datagram: &[u8]) {
        if !self.radio.as_mut().is_some_and(Radio::loses) {
            self.put_on_line(datagram);
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
                self.put_on_line(&spoilt.encode());
            }
            let other = CodedFrame { digest: [0; 4], ..spoilt };
            self.put_on_line(&other.encode());
        }
        self.put_on_air(frame);
        self.put_on_air(frame);
    }

    pub(crate) fn board_takes_broadcasts(&mut self, max_message: u32) {
        if let Some(radio) = self.radio.as_mut().filter(|radio| radio.codes) {
            let longest = usize::try_from(max_message).unwrap();
            radio.broadcaster.add(BOARD, longest);
            radio.broadcaster.add(OTHER, longest);
        }
    }

    pub(crate) fn board_takes_no_broadcasts(&mut self) {
        let now = self.net.time();
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.remove(now, BOARD);
        }
    }

    pub(crate) fn board_has_broadcast(&mut self, digest: [u8; 4]) {
        let now = self.net.time();
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.confirm(now, BOARD, digest);
        }
    }

    /// Sends as a broadcast what was published; false if it is to go in the session.
    pub(crate) fn send_as_broadcast(&mut self, message: &[u8]) -> bool {
        let now = self.net.time();
        let (sent, repeated) = (self.gateway.fragments(), self.gateway.counters().repeated);
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

    /// Sends frames of broadcasts, and in the session what the board did not confirm.
    pub(crate) fn work_broadcasts(&mut self) -> bool {
        let (now, mut busy) = (self.net.time(), false);
        if let Some(radio) = &mut self.radio {
            radio.broadcaster.handle_timeout(now);
        }
        while let Some(frame) = self.radio.as_mut().and_then(|radio| radio.broadcaster.poll_frame(now)) {
            busy = true;
            let jammed = self.radio.as_ref().map_or((0, 0), |radio| radio.jammed);
            self.put_on_air_jammed(&frame, jammed);
            self.radio.iter_mut().for_each(|radio| radio.coded.push(frame.clone()));
        }
        while let Some(missed) = self.radio.as_mut().and_then(|radio| radio.broadcaster.poll_missed()) {
            busy = true;
            self.radio.iter_mut().for_each(|radio| radio.missed += 1);
            if let Some(from) = self.net.peer(TestNetworkNode::Board, TestNetworkNode::Leader) {
                self.send_publication(from.0, missed.message);
            }
        }
        busy
    }
}
