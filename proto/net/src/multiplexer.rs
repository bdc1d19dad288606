//! Multiplexes streams over a connection by yamux, and counts what its streams hold unread.
//!
//! yamux reads whatever comes and keeps it in its stream, up to 256 KiB for each, and it takes room for a frame when the
//! frame is announced. So this reads the headers of frames before yamux does, and reads on when the connection's
//! [`UnreadBytes`] has room for the frame. A peer that takes nothing, or does not let itself be closed, is given up: what is
//! to be sent to it would wait here for ever.

use std::collections::VecDeque;
use std::io;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::{self, Ready};
use futures::{AsyncRead, AsyncWrite, ready};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use tokio::time::{Sleep, sleep};
use yamux::{Connection, ConnectionError, Mode};

use crate::unread::{FrameHeader, KEEPER, UnreadBytes};

/// Time for which a peer may take nothing of what is sent to it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time that the end of a connection may take, and that of a stranger's, whose place others wait for.
const CLOSING: Duration = Duration::from_secs(2);
const CLOSING_OF_STRANGER: Duration = Duration::from_millis(250);
/// Bytes of one stream that a peer may send before any are read: yamux grants no fewer.
const WINDOW: usize = 256 << 10;
/// Bytes by which windows of a connection's streams may grow together.
const GROWTH: usize = 2 << 20;

/// Sets up yamux on a connection.
#[derive(Clone)]
pub(crate) struct Multiplexer {
    account: Arc<UnreadBytes>,
    config: yamux::Config,
}

impl Multiplexer {
    /// Makes the multiplexer of a connection with this account and at most `streams` streams, both directions
    /// together.
    pub(crate) fn new(account: Arc<UnreadBytes>, streams: usize) -> Self {
        let mut config = yamux::Config::default();
        config.set_max_connection_receive_window(None);
        // §16: at most 64 streams, both directions together.
        config.set_max_num_streams(streams);
        config.set_max_connection_receive_window(Some(streams.saturating_mul(WINDOW).saturating_add(GROWTH)));
        Self { account, config }
    }

    fn over<C>(self, io: C, mode: Mode) -> Muxer<C>
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let metered = MeteredIo {
            io,
            account: self.account.clone(),
            reading: ReadState::start(),
            stall: Stall::default(),
        };
        Muxer {
            connection: Connection::new(metered, self.config, mode),
            account: self.account,
            arrived: VecDeque::new(),
            waker: None,
            closing: None,
        }
    }
}

impl UpgradeInfo for Multiplexer {
    type Info = &'static str;
    type InfoIter = iter::Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        iter::once("/yamux/1.0.0")
    }
}

impl<C> InboundConnectionUpgrade<C> for Multiplexer
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Output = Muxer<C>;
    type Error = io::Error;
    type Future = Ready<io::Result<Muxer<C>>>;

    fn upgrade_inbound(self, io: C, _: Self::Info) -> Self::Future {
        future::ready(Ok(self.over(io, Mode::Server)))
    }
}

impl<C> OutboundConnectionUpgrade<C> for Multiplexer
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Output = Muxer<C>;
    type Error = io::Error;
    type Future = Ready<io::Result<Muxer<C>>>;

    fn upgrade_outbound(self, io: C, _: Self::Info) -> Self::Future {
        future::ready(Ok(self.over(io, Mode::Client)))
    }
}

/// The streams of a connection.
pub(crate) struct Muxer<C> {
    connection: Connection<MeteredIo<C>>,
    account: Arc<UnreadBytes>,
    /// Streams of the peer that nobody has asked for yet. yamux goes on only when it is asked for one.
    arrived: VecDeque<MeteredStream>,
    /// The task to wake when there is one.
    waker: Option<Waker>,
    /// End of the time that closing may take.
    closing: Option<Pin<Box<Sleep>>>,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Muxer<C> {
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<MeteredStream, ConnectionError>> {
        let arrived =
            ready!(self.connection.poll_next_inbound(cx)).unwrap_or(Err(ConnectionError::Closed))?;
        Poll::Ready(Ok(MeteredStream::new(arrived, &self.account)))
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> StreamMuxer for Muxer<C> {
    type Substream = MeteredStream;
    type Error = ConnectionError;

    fn poll_inbound(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<MeteredStream, ConnectionError>> {
        let this = self.get_mut();
        if let Some(stream) = this.arrived.pop_front() {
            return Poll::Ready(Ok(stream));
        }
        let arrival = this.poll_arrival(cx);
        if arrival.is_pending() {
            this.waker = Some(cx.waker().clone());
        }
        arrival
    }

    fn poll_outbound(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<MeteredStream, ConnectionError>> {
        let this = self.get_mut();
        let stream = ready!(this.connection.poll_new_outbound(cx))?;
        // Counted before the peer can answer on it.
        this.account.opened(stream.id().val());
        Poll::Ready(Ok(MeteredStream::new(stream, &this.account)))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        let this = self.get_mut();
        if let Poll::Ready(closed) = this.connection.poll_close(cx) {
            return Poll::Ready(closed);
        }
        // A peer that takes nothing would keep the socket for ever.
        let time = if this.account.is_trusted() { CLOSING } else { CLOSING_OF_STRANGER };
        let closing = this.closing.get_or_insert_with(|| Box::pin(sleep(time)));
        closing.as_mut().poll(cx).map(|()| Err(ConnectionError::Io(io::ErrorKind::TimedOut.into())))
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, ConnectionError>> {
        let this = self.get_mut();
        // No more than yamux allows streams.
        let arrived = ready!(this.poll_arrival(cx))?;
        this.arrived.push_back(arrived);
        if let Some(waker) = this.waker.take() {
            waker.wake();
        }
        // Others have their turn before the next one.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Timer that runs while a peer takes nothing.
#[derive(Default)]
struct Stall(Option<Pin<Box<Sleep>>>);

impl Stall {
    /// Looks at the outcome of a write; whether the peer has taken nothing for too long.
    fn has_lasted<T>(&mut self, written: &Poll<T>, cx: &mut Context<'_>) -> bool {
        // §16: 60 s without progress; any progress begins the time anew.
        if written.is_ready() {
            self.0 = None;
            return false;
        }
        self.0.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(cx).is_ready()
    }
}

fn stalled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing of what is sent to it")
}

/// A connection below yamux.
struct MeteredIo<C> {
    io: C,
    account: Arc<UnreadBytes>,
    reading: ReadState,
    stall: Stall,
}

/// Part of a frame that is read next.
enum ReadState {
    /// A header, of which so many bytes are here.
    Header { bytes: [u8; FrameHeader::LEN], have: usize },
    /// Room for a frame; then yamux is given the header, of which it has so many bytes.
    Frame { bytes: [u8; FrameHeader::LEN], header: FrameHeader, has_room: bool, given: usize },
    /// A body, of which so many bytes are missing.
    Body { header: FrameHeader, left: usize },
}

impl ReadState {
    const fn start() -> Self {
        Self::Header { bytes: [0; FrameHeader::LEN], have: 0 }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for MeteredIo<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let Self { io, account, reading, .. } = self.get_mut();
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            // Read before the next bytes: who held room for too long is cut off here.
            if let Some(reason) = account.failure() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason)));
            }
            match reading {
                ReadState::Header { bytes, have } => {
                    let missing = bytes.get_mut(*have..).unwrap_or_default();
                    account.park(cx.waker());
                    match ready!(Pin::new(&mut *io).poll_read(cx, missing))? {
                        // Between two frames is where a connection ends in order.
                        0 if *have == 0 => return Poll::Ready(Ok(0)),
                        0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                        count => *have += count,
                    }
                    if *have >= FrameHeader::LEN {
                        let header = FrameHeader::read(*bytes)?;
                        *reading = ReadState::Frame { bytes: *bytes, header, has_room: false, given: 0 };
                    }
                }
                ReadState::Frame { bytes, header, has_room, given } => {
                    // §16: yamux is shown the header only when there is room for the body.
                    if !*has_room && !account.begin_frame(header, cx.waker()) {
                        return Poll::Pending;
                    }
                    *has_room = true;
                    let rest = bytes.get(*given..).unwrap_or_default();
                    let count = rest.len().min(buffer.len());
                    buffer.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                    *given += count;
                    if *given >= FrameHeader::LEN {
                        let (header, left) = (*header, header.length());
                        *reading =
                            if left > 0 { ReadState::Body { header, left } } else { ReadState::start() };
                    }
                    return Poll::Ready(Ok(count));
                }
                ReadState::Body { header, left } => {
                    let most = buffer.len().min(*left);
                    account.park(cx.waker());
                    let part = buffer.get_mut(..most).unwrap_or_default();
                    let count = ready!(Pin::new(&mut *io).poll_read(cx, part))?;
                    *left = left.saturating_sub(count);
                    if *left == 0 {
                        account.end_frame(header);
                        *reading = ReadState::start();
                    }
                    return Poll::Ready(Ok(count));
                }
            }
        }
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for MeteredIo<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, bytes);
        if this.stall.has_lasted(&written, cx) { Poll::Ready(Err(stalled())) } else { written }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_close(cx)
    }
}

/// Tells the keeper, if there is one, what was written to a stream.
pub(crate) fn note_written(written: &Poll<io::Result<usize>>) {
    if let Poll::Ready(Ok(count)) = written {
        // Nobody counts what is written beside group messages.
        let _ = KEEPER.try_with(|keeper| keeper.note_written(*count));
    }
}

/// A stream that tells the account what was read from it.
pub(crate) struct MeteredStream {
    within: yamux::Stream,
    account: Arc<UnreadBytes>,
    stall: Stall,
}

impl MeteredStream {
    fn new(within: yamux::Stream, account: &Arc<UnreadBytes>) -> Self {
        Self { within, account: account.clone(), stall: Stall::default() }
    }
}

impl Drop for MeteredStream {
    fn drop(&mut self) {
        // Bytes that wait in it are dropped with it, and their room is free.
        self.account.closed(self.within.id().val());
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.within).poll_read(cx, buffer))?;
        // First what is kept: else the connection would have room in between that it has not.
        // Nobody keeps what is read outside of a message.
        let _ = KEEPER.try_with(|keeper| keeper.keep(&this.account, count));
        this.account.read(this.within.id().val(), count);
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.within).poll_write(cx, bytes);
        if this.stall.has_lasted(&written, cx) {
            // Messages that wait for this peer elsewhere go with the connection.
            this.account.fail("the peer takes nothing of what is sent to it");
            return Poll::Ready(Err(stalled()));
        }
        note_written(&written);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().within).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().within).poll_close(cx)
    }
}
