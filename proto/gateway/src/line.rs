//! A line: frames in, frames out, and a task for each board.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quiver_link::{LineCounters, LineDecoder, encode_line};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::board::{BoardAddress, BoardTask};
use crate::broadcasts::{LineBroadcasts, Notice};
use crate::opening::{Opener, Outward};
use crate::rate_limits::{ReadLimiter, StartLimiter};
use crate::{GatewayConfig, LineAddress};

/// Boards of a line.
const MAX_BOARDS: usize = 64;
/// Datagrams from a board that wait for its task; beyond, they are lost as on any line.
const WAITING: usize = 8;
/// Datagrams that wait for the line. More of them wait in the boards' endpoints, where they can still be
/// dropped.
const LEAVING: usize = 2;
/// Bytes read at a time.
const CHUNK: usize = 2048;
/// Interval at which refused frames are logged.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);
/// Time without a byte after which a TCP connection is made anew: its other end may be gone without notice.
const TCP_SILENCE: Duration = Duration::from_secs(120);

/// A datagram that leaves: to which address, what.
pub(crate) type Leaving = (u16, Vec<u8>);

/// Serves a line for ever.
pub(crate) async fn serve(config: Arc<GatewayConfig>, address: LineAddress) {
    let mut opener = Opener::new(address.clone(), config.baud);
    // A TCP peer that is gone says nothing, and a board in session sends a ping every 10 s.
    let silence = matches!(address, LineAddress::Tcp { .. }).then_some(TCP_SILENCE);
    let (mut boards, mut broadcasts, mut leaving) = Boards::new(config, address.clone());
    loop {
        let (inward, outward) = tokio::select! {
            line = opener.open() => line,
            // While the line is closed, boards end by themselves, and broadcasts run out of confirmations.
            never = boards.remove_ended() => match never {},
            never = broadcasts.serve() => match never {},
        };
        let Err(reason) = tokio::select! {
            ended = read(&mut boards, inward, silence) => ended,
            ended = write(&address, &mut leaving, outward) => ended,
            never = broadcasts.serve() => match never {},
        };
        opener.closed(&reason);
    }
}

/// Reads until the line ends.
async fn read(
    boards: &mut Boards,
    mut line: impl AsyncRead + Unpin,
    silence: Option<Duration>,
) -> io::Result<Infallible> {
    let mut decoder = LineDecoder::new();
    let mut limiter = ReadLimiter::new(Instant::now());
    let mut complaints = Complaints::new(&boards.line);
    let mut chunk = [0; CHUNK];
    let mut next = Instant::now();
    loop {
        let reading = async {
            // Bytes are taken at a bounded rate: a line that is flooded must not take all of the processor.
            sleep_until(next).await;
            match silence {
                Some(silence) => {
                    timeout(silence, line.read(&mut chunk)).await.map_err(|_| silent(silence))?
                }
                None => line.read(&mut chunk).await,
            }
        };
        let read = tokio::select! {
            read = reading => read?,
            never = boards.remove_ended() => match never {},
        };
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed it"));
        }
        let mut bytes = chunk.get(..read).unwrap_or_default();
        while let Some(frame) = decoder.next_frame(&mut bytes) {
            boards.take(frame.address, frame.datagram);
        }
        let now = Instant::now();
        complaints.count(now, decoder.counters());
        next = limiter.after(now, read);
    }
}

fn silent(patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing came for {} s", patience.as_secs()))
}

/// Writes until the line ends. Datagrams that a line does not take are lost, as on any line, and boards ask
/// again.
async fn write(
    address: &LineAddress,
    leaving: &mut mpsc::Receiver<Leaving>,
    mut line: Outward,
) -> io::Result<Infallible> {
    let mut is_held = false;
    while let Some((board, datagram)) = leaving.recv().await {
        match encode_line(board, &datagram) {
            Ok(frame) => {
                let was_held = std::mem::replace(&mut is_held, !line.send(&frame).await?);
                if is_held && !was_held {
                    tracing::warn!(line = %address, "the line takes nothing, so what goes to its boards is dropped");
                } else if was_held && !is_held {
                    tracing::info!(line = %address, "the line takes frames again");
                }
            }
            Err(error) => tracing::error!("not sent to a board: {error}"),
        }
    }
    // The boards hold the other end for as long as the line is served.
    Err(io::ErrorKind::BrokenPipe.into())
}

/// The boards of a line, each a task.
struct Boards {
    config: Arc<GatewayConfig>,
    line: LineAddress,
    inboxes: HashMap<u16, mpsc::Sender<Vec<u8>>>,
    tasks: JoinSet<u16>,
    leaving: mpsc::Sender<Leaving>,
    broadcasts: mpsc::Sender<Notice>,
    starts: Arc<StartLimiter>,
    /// True if too many boards were reported already.
    full: bool,
}

impl Boards {
    fn new(config: Arc<GatewayConfig>, line: LineAddress) -> (Self, LineBroadcasts, mpsc::Receiver<Leaving>) {
        let (leaving, left) = mpsc::channel(LEAVING);
        let (served, broadcasts) = LineBroadcasts::new(line.clone(), leaving.clone());
        let starts = Arc::new(StartLimiter::new(Instant::now()));
        let (inboxes, tasks) = (HashMap::new(), JoinSet::new());
        (Self { config, line, inboxes, tasks, leaving, broadcasts, starts, full: false }, served, left)
    }

    /// Hands a datagram to its board. A board that says hello gets a task; to others the line says that it
    /// does not know them.
    fn take(&mut self, address: u16, datagram: &[u8]) {
        if !self.inboxes.contains_key(&address) {
            // Only a hello begins a session, so that noise makes no boards.
            if !quiver_link::is_hello(datagram) {
                if let Some(refusal) = quiver_link::refusal(datagram) {
                    // If the line has no room, the board asks again.
                    let _ = self.leaving.try_send((address, refusal));
                }
                return;
            }
            // Bounded, because each board has two nodes on the network.
            if self.inboxes.len() >= MAX_BOARDS {
                if !std::mem::replace(&mut self.full, true) {
                    tracing::warn!(line = %self.line, address, "a board is ignored: there are {MAX_BOARDS} already");
                }
                return;
            }
            self.adopt(address);
        }
        if let Some(inbox) = self.inboxes.get(&address) {
            // A task that is behind has lost it, as a line may.
            let _ = inbox.try_send(datagram.to_vec());
        }
    }

    fn adopt(&mut self, address: u16) {
        let (inbox, waiting) = mpsc::channel(WAITING);
        let place = BoardAddress { line: self.line.clone(), address };
        let outlets = (self.leaving.clone(), self.broadcasts.clone());
        let board = BoardTask::new(self.config.clone(), place, waiting, outlets, self.starts.clone());
        self.inboxes.insert(address, inbox);
        self.tasks.spawn(async move {
            board.serve().await;
            address
        });
    }

    /// Removes boards whose task has ended, for ever. Cancel-safe.
    async fn remove_ended(&mut self) -> Infallible {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(address)) => {
                    self.inboxes.remove(&address);
                    self.full = false;
                }
                Some(Err(error)) => {
                    tracing::error!(line = %self.line, "a board's task failed: {error}");
                    // The task's address went with it; its inbox is the one that is closed.
                    self.inboxes.retain(|_, inbox| !inbox.is_closed());
                }
                None => std::future::pending::<()>().await,
            }
        }
    }
}

/// Says now and then that frames were refused.
struct Complaints {
    line: LineAddress,
    reported: LineCounters,
    next: Option<Instant>,
}

impl Complaints {
    fn new(line: &LineAddress) -> Self {
        Self { line: line.clone(), reported: LineCounters::default(), next: None }
    }

    fn count(&mut self, now: Instant, counters: LineCounters) {
        // A bad line refuses many frames: told in sums, twice a minute at most.
        if counters.refused() == self.reported.refused() || self.next.is_some_and(|next| now < next) {
            return;
        }
        self.reported = counters;
        self.next = Some(now + COMPLAIN_EVERY);
        let LineCounters { frames, too_long, bad_cobs, bad_checksum, bad_version, .. } = counters;
        tracing::warn!(line = %self.line, frames, too_long, bad_cobs, bad_checksum, bad_version, "frames refused");
    }
}
