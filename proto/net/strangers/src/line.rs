//! A stranger's line: TCP from an address of its own, that carries so many bytes a second.

use std::future::{Future, Pending};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::transport::{DialOpts, ListenerId, TransportError, TransportEvent};
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, Transport};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that a connection sends at once: its handshake, and the first of what follows.
const BURST: u64 = 16 << 10;
/// The most bytes between two looks at the rate.
const PIECE: usize = 4096;

/// A line of strangers: their source address, their rate, and what they have sent. A clone is the same line.
#[derive(Clone, Debug, Default)]
pub struct StrangerLine {
    from: Option<Ipv4Addr>,
    /// Bytes a second.
    rate: Option<u32>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    connections: AtomicU64,
}

impl StrangerLine {
    /// The same whose connections come from this address.
    #[must_use]
    pub fn bound_to(self, address: Ipv4Addr) -> Self {
        Self { from: Some(address), ..self }
    }

    /// The same each connection of which sends no more than so many bytes a second.
    #[must_use]
    pub fn limited(self, rate: u32) -> Self {
        Self { rate: Some(rate.max(1)), ..self }
    }

    /// Bytes that were sent over it, those of handshakes included.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Connections that were made over it, those included that the peer ended at once.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.counts.connections.fetch_add(1, Ordering::Relaxed);
    }

    async fn connect(self, to: SocketAddr) -> io::Result<LineStream> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = self.from {
            socket.bind((from, 0).into())?;
        }
        let io = socket.connect(to).await?;
        io.set_nodelay(true)?;
        let start = Instant::now();
        Ok(LineStream { io, line: self, start, written: 0, pause: Box::pin(sleep_until(start)) })
    }
}

/// Dials over a line.
pub(crate) struct LineTransport(StrangerLine);

impl LineTransport {
    pub(crate) fn new(line: &StrangerLine) -> Self {
        Self(line.clone())
    }
}

impl Transport for LineTransport {
    type Output = LineStream;
    type Error = io::Error;
    type ListenerUpgrade = Pending<io::Result<LineStream>>;
    type Dial = Pin<Box<dyn Future<Output = io::Result<LineStream>> + Send>>;

    fn listen_on(&mut self, _: ListenerId, address: Multiaddr) -> Result<(), TransportError<io::Error>> {
        Err(TransportError::MultiaddrNotSupported(address))
    }

    fn remove_listener(&mut self, _: ListenerId) -> bool {
        false
    }

    fn dial(&mut self, address: Multiaddr, _: DialOpts) -> Result<Self::Dial, TransportError<io::Error>> {
        let mut parts = address.iter();
        let (Some(Protocol::Ip4(host)), Some(Protocol::Tcp(port))) = (parts.next(), parts.next()) else {
            return Err(TransportError::MultiaddrNotSupported(address));
        };
        Ok(Box::pin(self.0.clone().connect((host, port).into())))
    }

    fn poll(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        Poll::Pending
    }
}

/// A connection over a line.
pub(crate) struct LineStream {
    io: TcpStream,
    line: StrangerLine,
    start: Instant,
    written: u64,
    pause: Pin<Box<Sleep>>,
}

impl AsyncRead for LineStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(bytes);
        ready!(Pin::new(&mut self.get_mut().io).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl AsyncWrite for LineStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut most = bytes.len();
        if let Some(rate) = this.line.rate {
            let beyond = this.written.saturating_sub(BURST);
            let due = this.start + Duration::from_micros(beyond.saturating_mul(1_000_000) / u64::from(rate));
            if Instant::now() < due {
                this.pause.as_mut().reset(due);
                ready!(this.pause.as_mut().poll(cx));
            }
            most = most.min(PIECE);
        }
        let count = ready!(Pin::new(&mut this.io).poll_write(cx, bytes.get(..most).unwrap_or_default()))?;
        this.written = this.written.saturating_add(count as u64);
        this.line.counts.sent.fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
