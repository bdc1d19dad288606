//! Lines of bytes between a board and its peer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use embedded_io_async::{ErrorType, Read, Write};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::meter;

/// Line with both its directions.
#[derive(Clone)]
pub(crate) struct TestWire(Rc<RefCell<Both>>);

pub(crate) struct Both {
    pub(crate) to_board: VecDeque<u8>,
    pub(crate) from_board: VecDeque<u8>,
    /// One byte in so many is changed or lost; 0 for none.
    pub(crate) noise: u32,
    chance: ChaCha20Rng,
}

impl TestWire {
    pub(crate) fn new(seed: u64) -> Self {
        let chance = ChaCha20Rng::seed_from_u64(seed);
        let (to_board, from_board) = (VecDeque::new(), VecDeque::new());
        Self(Rc::new(RefCell::new(Both { to_board, from_board, noise: 0, chance })))
    }

    pub(crate) fn both(&self) -> std::cell::RefMut<'_, Both> {
        self.0.borrow_mut()
    }

    /// Bytes for the board.
    pub(crate) fn say(&self, bytes: &[u8]) {
        let mut both = self.both();
        let spoiled = both.spoil(bytes);
        both.to_board.extend(spoiled);
    }

    /// Bytes from the board.
    pub(crate) fn hear(&self) -> Vec<u8> {
        self.both().from_board.drain(..).collect()
    }
}

impl Both {
    fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut spoiled = Vec::new();
        for byte in bytes {
            match self.noise {
                0 => spoiled.push(*byte),
                noise if !self.chance.next_u32().is_multiple_of(noise) => spoiled.push(*byte),
                _ if self.chance.next_u32().is_multiple_of(2) => spoiled.push(self.chance.next_u32() as u8),
                _ => {}
            }
        }
        spoiled
    }
}

impl ErrorType for TestWire {
    type Error = Infallible;
}

impl Read for TestWire {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        poll_fn(|_| {
            let mut both = self.both();
            let len = buffer.len().min(both.to_board.len());
            if len == 0 {
                return Poll::Pending;
            }
            buffer.iter_mut().zip(both.to_board.drain(..len)).for_each(|(place, byte)| *place = byte);
            Poll::Ready(Ok(len))
        })
        .await
    }
}

impl Write for TestWire {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        // Bytes on the line are not on the board's heap.
        meter::pause(|| {
            let mut both = self.both();
            let spoiled = both.spoil(bytes);
            both.from_board.extend(spoiled);
        });
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
