//! Reads frames.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use futures::{AsyncRead, Stream};

use crate::Decoder;

/// Bytes of one read, at most.
const READ_LEN: usize = 8 * 1024;

thread_local! {
    /// Buffer that this thread reads to. Empty while it does: a stream that reads from another has a buffer
    /// of its own.
    static BUFFER: Cell<Option<Box<[u8; READ_LEN]>>> = const { Cell::new(None) };
}

/// Frames off a stream of bytes.
pub struct FramedRead<T, D> {
    io: T,
    decoder: D,
    read: BytesMut,
}

impl<T, D> FramedRead<T, D> {
    /// Frames off this stream of bytes.
    pub fn new(io: T, decoder: D) -> Self {
        Self { io, decoder, read: BytesMut::new() }
    }
}

/// Unpin, because the stream of bytes is the only part that could be pinned.
impl<T: Unpin, D> Unpin for FramedRead<T, D> {}

impl<T, D> fmt::Debug for FramedRead<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramedRead").finish_non_exhaustive()
    }
}

impl<T: AsyncRead + Unpin, D: Decoder> Stream for FramedRead<T, D> {
    type Item = Result<D::Item, D::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { io, decoder, read } = self.get_mut();
        poll_frame(io, decoder, read, cx)
    }
}

/// The next frame. `read`: what came and is no whole frame yet.
pub(crate) fn poll_frame<D: Decoder>(
    io: &mut (impl AsyncRead + Unpin),
    decoder: &mut D,
    read: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<D::Item, D::Error>>> {
    // A read may have brought more than one.
    if let Some(frame) = decoder.decode(read)? {
        return Poll::Ready(Some(Ok(frame)));
    }
    loop {
        let Poll::Ready(more) = poll_read(io, read, cx)? else {
            if read.is_empty() {
                // It shares the memory of frames that were taken off it.
                *read = BytesMut::new();
            }
            return Poll::Pending;
        };
        if !more {
            return Poll::Ready(last(decoder, read).transpose());
        }
        if let Some(frame) = decoder.decode(read)? {
            return Poll::Ready(Some(Ok(frame)));
        }
    }
}

/// Appends what comes next. Ready with `false` at the end.
fn poll_read(
    io: &mut (impl AsyncRead + Unpin),
    read: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<bool>> {
    let mut buffer = BUFFER.take().unwrap_or_else(|| Box::new([0; READ_LEN]));
    let came = Pin::new(io).poll_read(cx, &mut *buffer).map_ok(|length| {
        let came = buffer.get(..length).unwrap_or_default();
        read.extend_from_slice(came);
        !came.is_empty()
    });
    BUFFER.set(Some(buffer));
    Poll::Ready(ready!(came))
}

/// Decodes the rest when no more bytes come: a frame, or nothing.
fn last<D: Decoder>(decoder: &mut D, read: &mut BytesMut) -> Result<Option<D::Item>, D::Error> {
    if read.is_empty() {
        return Ok(None);
    }
    match decoder.decode_eof(read)? {
        None if !read.is_empty() => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ends within a frame").into())
        }
        frame => Ok(frame),
    }
}
