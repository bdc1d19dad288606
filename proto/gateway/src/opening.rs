//! Opening a line, again and again.

use std::io;
use std::time::Duration;

use quiver_serial::{FlowControl, LineWriter, Sending};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::{Instant, sleep, timeout};

use crate::LineAddress;

/// The wait after a first failure; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Time limit for a TCP server's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for a line to take a frame. Boards ask again for what they miss.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// A line that was open for so long forgives the failures before it.
const PROVEN: Duration = Duration::from_secs(5);

/// The direction of an open line from its boards.
pub(crate) type Inward = Box<dyn AsyncRead + Send + Unpin>;

/// The direction of an open line to its boards.
#[derive(Debug)]
pub(crate) enum Outward {
    /// A device.
    Device(LineWriter),
    /// A server of lines.
    Tcp(OwnedWriteHalf),
}

impl Outward {
    /// Sends a frame; whether the line took it, rather than that it was dropped.
    pub(crate) async fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self {
            Self::Device(line) => Ok(line.send(frame, WRITE_TIME).await? == Sending::Sent),
            // Of a part that was sent the rest would be missing: the line is opened anew.
            Self::Tcp(line) => match timeout(WRITE_TIME, line.write_all(frame)).await {
                Ok(sent) => sent.map(|()| true),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it takes nothing")),
            },
        }
    }
}

/// Opens one line whenever it is asked to.
#[derive(Debug)]
pub(crate) struct Opener {
    address: LineAddress,
    baud: u32,
    wait: Duration,
    opened: Option<Instant>,
    /// The last error, so that it is not logged again and again.
    complaint: String,
}

impl Opener {
    pub(crate) fn new(address: LineAddress, baud: u32) -> Self {
        Self { address, baud, wait: Duration::ZERO, opened: None, complaint: String::new() }
    }

    /// The line, as soon as it can be opened. Cancel-safe: a wait is continued.
    pub(crate) async fn open(&mut self) -> (Inward, Outward) {
        // A line that stood for seconds was no failure of the kind that longer waits are for.
        if self.opened.take().is_some_and(|at| at.elapsed() >= PROVEN) {
            self.wait = Duration::ZERO;
        }
        loop {
            sleep(self.wait).await;
            self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
            match try_open(&self.address, self.baud).await {
                Ok(line) => {
                    tracing::info!(line = %self.address, "line open");
                    self.opened = Some(Instant::now());
                    self.complaint.clear();
                    return line;
                }
                Err(error) => self.complain(&error.to_string()),
            }
        }
    }

    /// The line ended.
    pub(crate) fn closed(&mut self, reason: &io::Error) {
        self.complain(&reason.to_string());
    }

    fn complain(&mut self, reason: &str) {
        if self.complaint != reason {
            tracing::warn!(line = %self.address, "no line: {reason}; trying again");
            self.complaint = reason.into();
        }
    }
}

async fn try_open(address: &LineAddress, baud: u32) -> io::Result<(Inward, Outward)> {
    match address {
        LineAddress::Device(path) => {
            let (inward, outward) =
                quiver_serial::open(&path.to_string_lossy(), baud, FlowControl::None).await?;
            Ok((Box::new(inward), Outward::Device(outward)))
        }
        LineAddress::Tcp { host, port } => {
            let connecting = timeout(PATIENCE, TcpStream::connect((host.as_str(), *port)));
            let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            // Datagrams are short, and their answers are waited for.
            stream.set_nodelay(true)?;
            let (inward, outward) = stream.into_split();
            Ok((Box::new(inward), Outward::Tcp(outward)))
        }
    }
}
