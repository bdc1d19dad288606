//! Frames of messages on a stream: its length in four bytes, big endian, the id of the request that it
//! belongs to, then its bytes.

use std::io;
use std::sync::Arc;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::StreamProtocol;
use libp2p::request_response::Codec;
use prometheus_client::metrics::counter::Counter;
use quiver_machine::MAX_MESSAGE_LEN;

use crate::request::RequestId;
use crate::unread::KEEPER;

/// The protocol on which messages to one peer travel. With a second one on offer each message would wait until
/// one is accepted.
pub(crate) const MESSAGES: StreamProtocol = StreamProtocol::new("/quiver/1/request");

/// Number of bytes allocated for an announced length before any of them has come.
const TRUSTED_LEN: usize = 4096;

/// A message and the request that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestFrame {
    pub(crate) request: RequestId,
    pub(crate) message: Vec<u8>,
}

/// Reads and writes frames. An empty response means that there is no answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    /// Counts malformed frames; libp2p does not report a request that could not be read.
    refused: Counter,
}

impl Frames {
    pub(crate) fn new(refused: Counter) -> Self {
        Self { refused }
    }

    async fn read(&self, io: &mut (impl AsyncRead + Unpin + Send)) -> io::Result<RequestFrame> {
        // The bytes read of a frame count as unread until the frame is whole.
        let frame = KEEPER.scope(Arc::default(), read_frame(io)).await;
        if let Err(error) = &frame
            && error.kind() == io::ErrorKind::InvalidData
        {
            self.refused.inc();
            tracing::debug!("a frame was refused: {error}");
        }
        frame
    }
}

impl Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = RequestFrame;
    type Response = RequestFrame;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<RequestFrame>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<RequestFrame>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io).await
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        frame: RequestFrame,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &frame).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        frame: RequestFrame,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &frame).await
    }
}

async fn read_frame(io: &mut (impl AsyncRead + Unpin + Send)) -> io::Result<RequestFrame> {
    // Length (4 bytes) ‖ number of the request ‖ message.
    let mut announced = [0; 4];
    io.read_exact(&mut announced).await?;
    let announced = u32::from_be_bytes(announced);
    let length = usize::try_from(announced).unwrap_or(usize::MAX);
    // Refused before any of it is read.
    if length > MAX_MESSAGE_LEN {
        let reason = format!("a frame of {length} bytes is longer than the {MAX_MESSAGE_LEN} allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut id = [0; RequestId::LEN];
    io.read_exact(&mut id).await?;
    let request = RequestId::new(id);
    Ok(RequestFrame { request, message: read_message(io, length).await? })
}

async fn read_message(io: &mut (impl AsyncRead + Unpin), length: usize) -> io::Result<Vec<u8>> {
    // An announced length is believed for 4 KiB: memory grows with what has come, by no more than a quarter ahead.
    let mut message = Vec::new();
    while message.len() < length {
        let come = message.len();
        let ahead = (come / 4).max(TRUSTED_LEN).min(length - come);
        message.reserve_exact(ahead);
        message.resize(come + ahead, 0);
        let mut filled = come;
        while filled < message.len() {
            match io.read(message.get_mut(filled..).unwrap_or_default()).await? {
                0 => {
                    let reason = format!("a frame of {length} bytes ended after {filled}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                count => filled += count,
            }
        }
    }
    Ok(message)
}

async fn write_frame(
    io: &mut (impl AsyncWrite + Unpin + Send),
    RequestFrame { request, message }: &RequestFrame,
) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is longer than a frame");
    let length = u32::try_from(message.len()).map_err(|_| too_long())?;
    // One write, so that a small message is one packet.
    let mut bytes = Vec::with_capacity(message.len().saturating_add(4 + RequestId::LEN));
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(request.as_bytes());
    bytes.extend_from_slice(message);
    io.write_all(&bytes).await?;
    io.flush().await
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<RequestFrame> {
        block_on(read_frame(&mut Cursor::new(bytes)))
    }

    fn written(frame: &RequestFrame) -> Vec<u8> {
        let mut io = Cursor::new(Vec::new());
        block_on(write_frame(&mut io, frame)).unwrap();
        io.into_inner()
    }

    #[test]
    fn frame_reads_back_what_was_written() {
        for message in [vec![], vec![7], vec![9; MAX_MESSAGE_LEN]] {
            let frame = RequestFrame { request: RequestId::random(), message };
            assert_eq!(read(&written(&frame)).unwrap(), frame);
        }
    }

    #[test]
    fn frame_is_length_id_and_message() {
        let frame = RequestFrame { request: RequestId::new([8; RequestId::LEN]), message: vec![1, 2, 3] };
        let id = [8; RequestId::LEN];
        assert_eq!(written(&frame), [&[0, 0, 0, 3][..], &id, &[1, 2, 3]].concat());
    }

    #[test]
    fn frame_over_the_limit_is_refused_before_its_body() {
        let announced = u32::try_from(MAX_MESSAGE_LEN + 1).unwrap().to_be_bytes();
        assert_eq!(read(&announced).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&[0xff; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn truncated_frame_is_malformed() {
        let bytes = written(&RequestFrame { request: RequestId::random(), message: vec![1, 2, 3] });
        let truncated = read(&bytes[..bytes.len() - 1]).unwrap_err();
        assert_eq!(truncated.kind(), io::ErrorKind::InvalidData);
        for length in [0, 2, 4, 19] {
            let truncated = read(&bytes[..length]).unwrap_err();
            assert_eq!(truncated.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
