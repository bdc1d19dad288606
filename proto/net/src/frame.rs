//! How a message stands on a stream: its length in four bytes, big endian, then its bytes.

use std::io;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::StreamProtocol;
use libp2p::request_response::Codec;
use prometheus_client::metrics::counter::Counter;
use quiver_role::MAX_MESSAGE_LEN;

/// The protocol on which messages to one peer travel.
pub(crate) const MESSAGE_PROTOCOL: StreamProtocol = StreamProtocol::new("/quiver/1/message");

/// How much of an announced length is believed before any of it has come.
const TRUSTED_LEN: usize = 4096;

/// Reads and writes frames. An empty response says that there is no answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    /// Counts malformed frames; libp2p does not report a request that could not be read.
    refused: Counter,
}

impl Frames {
    pub(crate) fn new(refused: Counter) -> Self {
        Self { refused }
    }

    async fn read(&self, io: &mut (impl AsyncRead + Unpin + Send)) -> io::Result<Vec<u8>> {
        let frame = read_frame(io).await;
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
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io).await
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, message: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &message).await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, message: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &message).await
    }
}

async fn read_frame(io: &mut (impl AsyncRead + Unpin + Send)) -> io::Result<Vec<u8>> {
    let mut announced = [0; 4];
    io.read_exact(&mut announced).await?;
    let announced = u32::from_be_bytes(announced);
    let length = usize::try_from(announced).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE_LEN {
        let reason = format!("a frame of {length} bytes is longer than the {MAX_MESSAGE_LEN} allowed");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut message = Vec::with_capacity(length.min(TRUSTED_LEN));
    io.take(u64::from(announced)).read_to_end(&mut message).await?;
    if message.len() < length {
        let reason = format!("a frame of {length} bytes ended after {}", message.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(message)
}

async fn write_frame(io: &mut (impl AsyncWrite + Unpin + Send), message: &[u8]) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is longer than a frame");
    let length = u32::try_from(message.len()).map_err(|_| too_long())?;
    // One write, so that a small message is one packet.
    let mut frame = Vec::with_capacity(message.len().saturating_add(4));
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    io.write_all(&frame).await?;
    io.flush().await
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        block_on(read_frame(&mut Cursor::new(bytes)))
    }

    #[test]
    fn frame_reads_back_what_was_written() {
        for message in [vec![], vec![7], vec![9; MAX_MESSAGE_LEN]] {
            let mut io = Cursor::new(Vec::new());
            block_on(write_frame(&mut io, &message)).unwrap();
            assert_eq!(read(io.get_ref()).unwrap(), message);
        }
    }

    #[test]
    fn frame_over_the_limit_is_refused_before_its_body() {
        let announced = u32::try_from(MAX_MESSAGE_LEN + 1).unwrap().to_be_bytes();
        assert_eq!(read(&announced).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&[0xff; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn truncated_frame_is_malformed() {
        assert_eq!(read(&[0, 0, 0, 3, 1, 2]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&[0, 0]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
