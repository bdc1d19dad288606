//! Frames on streams of bytes, with the interface of the crate `asynchronous-codec` as far as libp2p uses it.
//!
//! A node has some eight [`Framed`] for each connection, noise's and gossipsub's at both ends, nearly always idle. That
//! crate gives each two buffers of 8 KiB for good, half of the memory of a process with thousands of connections, and
//! writes zeros over another one for each read. Here a stream holds bytes only while a frame is on its way, and all
//! streams of a thread read by one buffer. libp2p has no setting for that, so the workspace puts this crate in the place
//! of `asynchronous-codec` (`[patch.crates-io]`).

mod read;
mod write;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use futures::{AsyncRead, AsyncWrite, Sink, Stream};

pub use self::read::FramedRead;
pub use self::write::FramedWrite;

/// Finds frames in bytes.
pub trait Decoder {
    /// A frame.
    type Item;
    /// Error if bytes are no frame, or could not be read.
    type Error: From<io::Error>;

    /// Takes the first frame off the bytes that came; `None`, and nothing is taken, if more have to come.
    ///
    /// # Errors
    /// If the bytes are not the start of a frame.
    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Self::Item>, Self::Error>;

    /// The same when no more will come.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_eof(&mut self, bytes: &mut BytesMut) -> Result<Option<Self::Item>, Self::Error> {
        self.decode(bytes)
    }
}

/// Makes bytes of frames.
pub trait Encoder {
    /// A frame.
    type Item<'a>;
    /// Error if a frame has no encoding, or could not be written.
    type Error: From<io::Error>;

    /// Appends a frame.
    ///
    /// # Errors
    /// If it has no encoding.
    fn encode(&mut self, item: Self::Item<'_>, bytes: &mut BytesMut) -> Result<(), Self::Error>;
}

/// Frames both ways on one stream of bytes.
pub struct Framed<T, C> {
    io: T,
    codec: C,
    /// Bytes read that are no whole frame yet.
    read: BytesMut,
    /// Bytes to be written.
    written: BytesMut,
}

/// Parts of a [`Framed`].
#[non_exhaustive]
pub struct FramedParts<T, C> {
    /// The stream of bytes.
    pub io: T,
    /// Makes and finds frames.
    pub codec: C,
    /// Bytes read that are no whole frame yet.
    pub read_buffer: BytesMut,
    /// Bytes to be written.
    pub write_buffer: BytesMut,
}

impl<T, C> Framed<T, C> {
    /// Frames on a stream of bytes.
    pub fn new(io: T, codec: C) -> Self {
        Self { io, codec, read: BytesMut::new(), written: BytesMut::new() }
    }

    /// Goes on with parts, perhaps under another codec.
    pub fn from_parts(parts: FramedParts<T, C>) -> Self {
        let FramedParts { io, codec, read_buffer, write_buffer } = parts;
        Self { io, codec, read: read_buffer, written: write_buffer }
    }

    /// Takes it apart, and loses no bytes.
    pub fn into_parts(self) -> FramedParts<T, C> {
        let Self { io, codec, read, written } = self;
        FramedParts { io, codec, read_buffer: read, write_buffer: written }
    }

    /// The codec.
    pub const fn codec(&self) -> &C {
        &self.codec
    }

    /// The codec, to be changed.
    pub const fn codec_mut(&mut self) -> &mut C {
        &mut self.codec
    }
}

impl<T, C> FramedParts<T, C> {
    /// The same with another codec.
    pub fn map_codec<D>(self, map: impl FnOnce(C) -> D) -> FramedParts<T, D> {
        let Self { io, codec, read_buffer, write_buffer } = self;
        FramedParts { io, codec: map(codec), read_buffer, write_buffer }
    }
}

/// Unpin, because the stream of bytes is the only part that could be pinned.
impl<T: Unpin, C> Unpin for Framed<T, C> {}

impl<T, C> fmt::Debug for Framed<T, C> {
    /// Shows nothing of what is read or written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed").finish_non_exhaustive()
    }
}

impl<T: AsyncRead + Unpin, C: Decoder> Stream for Framed<T, C> {
    type Item = Result<C::Item, C::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { io, codec, read, .. } = self.get_mut();
        read::poll_frame(io, codec, read, cx)
    }
}

impl<T: AsyncWrite + Unpin, C: Encoder> Sink<C::Item<'_>> for Framed<T, C> {
    type Error = C::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        let Self { io, written, .. } = self.get_mut();
        write::poll_room(io, written, cx).map_err(Into::into)
    }

    fn start_send(self: Pin<&mut Self>, item: C::Item<'_>) -> Result<(), C::Error> {
        let Self { codec, written, .. } = self.get_mut();
        codec.encode(item, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        let Self { io, written, .. } = self.get_mut();
        write::poll_flush(io, written, cx).map_err(Into::into)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        let Self { io, written, .. } = self.get_mut();
        write::poll_close(io, written, cx).map_err(Into::into)
    }
}

#[cfg(test)]
mod tests;
