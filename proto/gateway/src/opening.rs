//! Opening a line, again and again.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_serial::SerialPortBuilderExt;

use crate::LineAddress;

/// The wait after a first failure; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Time limit for a TCP server's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A line that was open for so long forgives the failures before it.
const PROVEN: Duration = Duration::from_secs(5);

/// An open line.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

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
    pub(crate) async fn open(&mut self) -> Box<dyn Stream> {
        if self.opened.take().is_some_and(|at| at.elapsed() >= PROVEN) {
            self.wait = Duration::ZERO;
        }
        loop {
            sleep(self.wait).await;
            self.wait = (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT);
            match try_open(&self.address, self.baud).await {
                Ok(stream) => {
                    tracing::info!(line = %self.address, "line open");
                    self.opened = Some(Instant::now());
                    self.complaint.clear();
                    return stream;
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

async fn try_open(address: &LineAddress, baud: u32) -> io::Result<Box<dyn Stream>> {
    match address {
        LineAddress::Device(path) => {
            let device = tokio_serial::new(path.to_string_lossy(), baud).open_native_async();
            Ok(Box::new(device.map_err(io::Error::from)?))
        }
        LineAddress::Tcp { host, port } => {
            let connecting = timeout(PATIENCE, TcpStream::connect((host.as_str(), *port)));
            let stream = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}
