//! A byte line (UART, USB, TCP) as a link.

use embedded_io_async::{Read, Write};
use quiver_link::{LineDecoder, MAX_DATAGRAM, encode_line};

use crate::{DatagramTransport, FrameErrors};

/// Bytes read at once.
const READ: usize = 256;

/// Datagrams in frames on a stream of bytes, as the board at the end of the line (address 0).
#[derive(Debug)]
pub struct SerialLine<Io> {
    io: Io,
    decoder: LineDecoder,
    input: [u8; READ],
    /// Bytes read and not decoded yet.
    start: usize,
    end: usize,
}

impl<Io> SerialLine<Io> {
    /// Takes over a device. Its `read` must be cancel-safe: a future that is dropped has taken no byte.
    pub const fn new(io: Io) -> Self {
        Self { io, decoder: LineDecoder::new(), input: [0; READ], start: 0, end: 0 }
    }
}

impl<Io: Read + Write> DatagramTransport for SerialLine<Io> {
    type Error = Io::Error;

    async fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Io::Error> {
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
            self.end = self.io.read(&mut self.input).await?.min(READ);
        }
        let mut input = self.input.get(self.start..self.end).unwrap_or_default();
        let frame = self.decoder.next_frame(&mut input);
        self.start = self.end - input.len();
        let Some(frame) = frame.filter(|frame| frame.address == 0) else { return Ok(None) };
        let Some(place) = buffer.get_mut(..frame.datagram.len()) else { return Ok(None) };
        place.copy_from_slice(frame.datagram);
        Ok(Some(place.len()))
    }

    async fn send(&mut self, datagram: &[u8]) -> Result<(), Io::Error> {
        // The endpoint makes none that is too long.
        let Ok(frame) = encode_line(0, datagram) else { return Ok(()) };
        self.io.write_all(&frame).await?;
        self.io.flush().await
    }

    fn mtu(&self) -> usize {
        MAX_DATAGRAM
    }

    fn frame_errors(&self) -> FrameErrors {
        let seen = self.decoder.counters();
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        FrameErrors {
            too_long: short(seen.too_long),
            bad_crc: short(seen.bad_checksum),
            garbled: short(seen.bad_cobs),
            wrong_version: short(seen.bad_version),
        }
    }
}
