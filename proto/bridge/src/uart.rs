//! A serial device for tests, whose transmitter can be held: a pseudo-terminal's cannot.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use quiver_serial::Device;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// A UART with so many bytes in front of its transmitter.
pub(crate) struct Uart {
    pub(crate) wire: DuplexStream,
    pub(crate) waiting: Arc<AtomicUsize>,
}

impl Device for Uart {
    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    fn discard(&self) {}
}

impl AsyncRead for Uart {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Uart {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        panic!("tcdrain would not return");
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        panic!("tcdrain would not return");
    }
}
