//! A serial line over both UART and USB: the answer goes to the one that received last.
//!
//! The UART takes bytes by DMA into a ring, counted by a timer, so that nothing is lost while cryptography
//! runs or a page of flash is erased (85 ms, 980 bytes at 115,200 baud). USB makes its host wait instead.

use core::sync::atomic::{AtomicU32, Ordering};

use embassy_futures::select::{Either3, select3};
use embassy_nrf::buffered_uarte::{BufferedUarteRx, BufferedUarteTx, Error as UartError};
use embassy_time::{Duration, with_timeout};
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};

use crate::usb::Function;

/// Time that a write may wait for a USB host that does not read: then its bytes are dropped.
const PATIENCE: Duration = Duration::from_millis(500);

static OVERRUNS: AtomicU32 = AtomicU32::new(0);

/// Times that bytes were lost because the buffer was full.
#[must_use]
pub fn overruns() -> u32 {
    OVERRUNS.load(Ordering::Relaxed)
}

/// Bytes were lost on the way in: more than the buffer has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("received bytes were lost")]
pub struct Overrun;

impl embedded_io_async::Error for Overrun {
    fn kind(&self) -> ErrorKind {
        ErrorKind::OutOfMemory
    }
}

impl From<UartError> for Overrun {
    fn from(_: UartError) -> Self {
        let _ = OVERRUNS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
        Self
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cable {
    Uart,
    Usb,
}

/// A serial line.
pub struct Serial {
    rx: BufferedUarteRx<'static>,
    tx: BufferedUarteTx<'static>,
    usb: &'static Function,
    answer: Cable,
}

impl Serial {
    /// A line over this UART and this function of USB.
    #[must_use]
    pub fn new(uart: (BufferedUarteRx<'static>, BufferedUarteTx<'static>), usb: &'static Function) -> Self {
        Self { rx: uart.0, tx: uart.1, usb, answer: Cable::Uart }
    }

    fn now_on(&mut self, cable: Cable) {
        self.answer = cable;
    }
}

impl ErrorType for Serial {
    type Error = Overrun;
}

impl Read for Serial {
    /// Cancel-safe: a byte is taken from a buffer only when the future is ready.
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Overrun> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut packet = [0; crate::usb::PACKET];
        let room = packet.len().min(bytes.len());
        let from_usb = packet.get_mut(..room).unwrap_or_default();
        loop {
            match select3(self.rx.read(bytes), self.usb.receive(from_usb), self.usb.opened()).await {
                Either3::First(taken) => {
                    self.now_on(Cable::Uart);
                    return Ok(taken?);
                }
                Either3::Second(taken) => {
                    self.now_on(Cable::Usb);
                    bytes.iter_mut().zip(from_usb.iter()).take(taken).for_each(|(to, from)| *to = *from);
                    return Ok(taken);
                }
                // A host that opens the port expects output, even before it sends anything.
                Either3::Third(()) => self.answer = Cable::Usb,
            }
        }
    }
}

impl Write for Serial {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Overrun> {
        if self.answer == Cable::Uart {
            return Ok(self.tx.write(bytes).await?);
        }
        match with_timeout(PATIENCE, self.usb.send(bytes)).await {
            Ok(taken) => Ok(taken),
            Err(_) => {
                self.usb.drop_outgoing();
                Ok(bytes.len())
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Overrun> {
        if self.answer == Cable::Uart {
            self.tx.flush().await?;
        }
        Ok(())
    }
}
