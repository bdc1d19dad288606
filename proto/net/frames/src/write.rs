//! Writes frames.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use futures::{AsyncWrite, Sink};

use crate::Encoder;

/// Number of bytes to be written at which no more frames are taken: as many as a socket takes at once.
const MOST: usize = 128 * 1024;

/// Frames onto a stream of bytes.
pub struct FramedWrite<T, E> {
    pub(crate) io: T,
    encoder: E,
    written: BytesMut,
}

impl<T, E> FramedWrite<T, E> {
    /// Frames onto this stream of bytes.
    pub fn new(io: T, encoder: E) -> Self {
        Self { io, encoder, written: BytesMut::new() }
    }
}

/// Unpin, because the stream of bytes is the only part that could be pinned.
impl<T: Unpin, E> Unpin for FramedWrite<T, E> {}

impl<T, E> fmt::Debug for FramedWrite<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramedWrite").finish_non_exhaustive()
    }
}

impl<T: AsyncWrite + Unpin, E: Encoder> Sink<E::Item<'_>> for FramedWrite<T, E> {
    type Error = E::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E::Error>> {
        let Self { io, written, .. } = self.get_mut();
        poll_room(io, written, cx).map_err(Into::into)
    }

    fn start_send(self: Pin<&mut Self>, item: E::Item<'_>) -> Result<(), E::Error> {
        let Self { encoder, written, .. } = self.get_mut();
        encoder.encode(item, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E::Error>> {
        let Self { io, written, .. } = self.get_mut();
        poll_flush(io, written, cx).map_err(Into::into)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), E::Error>> {
        let Self { io, written, .. } = self.get_mut();
        poll_close(io, written, cx).map_err(Into::into)
    }
}

/// Writes until there is room for another frame.
pub(crate) fn poll_room(
    io: &mut (impl AsyncWrite + Unpin),
    written: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    poll_write(io, written, MOST - 1, cx)
}

/// Writes everything, and lets the stream send it.
pub(crate) fn poll_flush(
    io: &mut (impl AsyncWrite + Unpin),
    written: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    ready!(poll_write(io, written, 0, cx))?;
    *written = BytesMut::new();
    Pin::new(io).poll_flush(cx)
}

/// The same, and closes the stream.
pub(crate) fn poll_close(
    io: &mut (impl AsyncWrite + Unpin),
    written: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    ready!(poll_flush(io, written, cx))?;
    Pin::new(io).poll_close(cx)
}

/// Writes until no more than so many bytes are left.
fn poll_write(
    io: &mut (impl AsyncWrite + Unpin),
    written: &mut BytesMut,
    left: usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while written.len() > left {
        match ready!(Pin::new(&mut *io).poll_write(cx, written))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            taken => written.advance(taken),
        }
    }
    Poll::Ready(Ok(()))
}
