//! Serial lines for tasks of a runtime. A line whose transmitter is held (CTS off, a USB device that takes
//! nothing) stops nobody but the task that writes to it.
//!
//! Three calls of the system wait for a transmitter or a driver, however a line was opened. On a thread of a
//! runtime they would stop timers, control sockets and signals:
//!
//! | call | in its place |
//! |---|---|
//! | `tcdrain`, of which `tokio_serial` makes a flush | [`LineWriter::send`] asks how much is waiting (`TIOCOUTQ`) |
//! | `close`, which waits up to 30 s for what was written | what was written is discarded, and a thread closes |
//! | `open`, which waits for a driver, of USB for instance | a thread of those for blocking calls opens |

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
pub use tokio_serial::FlowControl;
use tokio_serial::{ClearBuffer, SerialPort, SerialPortBuilderExt, SerialStream};

/// Bytes in front of the transmitter that count as sent. More of them would wait where nobody can drop them.
const AHEAD: usize = 128;
/// Bits of a byte on the line: start and stop besides its own.
const BITS: u64 = 10;
/// Bounds of a pause between two questions for what waits.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Calls of a device beside reads and writes. None of them waits.
pub trait Device: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Bytes that were written and have not left yet.
    fn waiting(&self) -> usize;

    /// Discards what was written and has not left yet.
    fn discard(&self);
}

impl Device for SerialStream {
    fn waiting(&self) -> usize {
        // A driver that does not know it is one that has sent all.
        self.bytes_to_write().map_or(0, |bytes| bytes.try_into().unwrap_or(usize::MAX))
    }

    fn discard(&self) {
        // A device that is gone has nothing to discard.
        let _ = self.clear(ClearBuffer::Output);
    }
}

/// Refuses a path at which there is something that is no device, and never will be a line. A device that is
/// not there yet may be plugged in later.
///
/// # Errors
/// In words.
pub fn check_path(path: &Path) -> Result<(), String> {
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let found = match metadata.file_type() {
        found if found.is_char_device() && is_of_the_kernel(metadata.rdev()) => {
            return Err(format!("{} is a device of the kernel, which has no other end", path.display()));
        }
        found if found.is_char_device() => return Ok(()),
        found if found.is_dir() => "a directory",
        found if found.is_file() => "a file",
        _ => "no device of characters",
    };
    Err(format!("{} is {found}, and no serial line, such as /dev/ttyACM0", path.display()))
}

/// Returns true for the kernel's own devices (`null`, `zero`, `random`, `kmsg`), by the number of their driver. They open and
/// take everything, so that nobody would notice that nothing is connected.
const fn is_of_the_kernel(device: u64) -> bool {
    // As Linux's `makedev` packs it: 12 of the driver's bits above the low 8 of the device, the others at the top.
    const DRIVER: u64 = 1;
    ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000) == DRIVER
}

/// Opens a device, as its two directions.
///
/// # Errors
/// It is not there, is no serial line, or may not be opened.
pub async fn open(device: &str, baud: u32, flow: FlowControl) -> io::Result<(LineReader, LineWriter)> {
    let builder = tokio_serial::new(device, baud).flow_control(flow);
    let opened = spawn_blocking(move || builder.open_native_async()).await.map_err(io::Error::other)?;
    Ok(split(opened?, baud))
}

/// The two directions of a device that was opened. It is closed when both are dropped.
#[must_use]
pub fn split<D: Device>(device: D, baud: u32) -> (LineReader<D>, LineWriter<D>) {
    let line = Arc::new(SharedDevice(Mutex::new(Some(device))));
    (LineReader { line: Arc::clone(&line) }, LineWriter { line, baud })
}

/// A device that both directions share. It is there until it is dropped.
#[derive(Debug)]
struct SharedDevice<D: Device>(Mutex<Option<D>>);

impl<D: Device> SharedDevice<D> {
    /// Does what waits for nothing.
    fn with<T>(&self, work: impl FnOnce(&mut D) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    fn poll<T>(&self, work: impl FnOnce(Pin<&mut D>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let polled = self.with(|device| work(Pin::new(device)));
        polled.unwrap_or_else(|| Poll::Ready(Err(io::ErrorKind::NotConnected.into())))
    }
}

impl<D: Device> Drop for SharedDevice<D> {
    fn drop(&mut self) {
        let Some(device) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() else { return };
        device.discard();
        // No thread of the runtime, because a program that ends would wait for it. Without a thread it is closed here.
        let _ = std::thread::Builder::new().name("serial-close".into()).spawn(move || drop(device));
    }
}

/// The direction from a device.
#[derive(Debug)]
pub struct LineReader<D: Device = SerialStream> {
    line: Arc<SharedDevice<D>>,
}

impl<D: Device> AsyncRead for LineReader<D> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.line.poll(|device| device.poll_read(cx, buffer))
    }
}

/// Result of [`LineWriter::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The bytes left, but for what the transmitter has in hand.
    Sent,
    /// The line took nothing for as long as was allowed. The bytes that were to leave were discarded, a part
    /// of them perhaps not.
    Discarded,
}

/// The direction to a device.
#[derive(Debug)]
pub struct LineWriter<D: Device = SerialStream> {
    line: Arc<SharedDevice<D>>,
    baud: u32,
}

impl<D: Device> LineWriter<D> {
    /// Sends bytes, and waits until they have left, at most so long. Not cancel-safe: a part may be sent.
    ///
    /// # Errors
    /// The line has ended.
    pub async fn send(&mut self, bytes: &[u8], longest: Duration) -> io::Result<Sending> {
        let sending = async {
            LineBytes(&self.line).write_all(bytes).await?;
            while let Some(beyond) = self.waiting().checked_sub(AHEAD + 1) {
                sleep(self.time_for(beyond)).await;
            }
            Ok::<(), io::Error>(())
        };
        match timeout(longest, sending).await {
            Ok(sent) => sent.map(|()| Sending::Sent),
            Err(_) => {
                self.line.with(|device| device.discard());
                Ok(Sending::Discarded)
            }
        }
    }

    fn waiting(&self) -> usize {
        self.line.with(|device| device.waiting()).unwrap_or(0)
    }

    /// Time that so many bytes take on the line.
    fn time_for(&self, bytes: usize) -> Duration {
        let bits = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(BITS);
        let time = Duration::from_micros(bits.saturating_mul(1_000_000) / u64::from(self.baud.max(1)));
        time.clamp(PAUSES.0, PAUSES.1)
    }
}

/// Writes to a device, without what a flush of it would be.
struct LineBytes<'a, D: Device>(&'a SharedDevice<D>);

impl<D: Device> AsyncWrite for LineBytes<'_, D> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll(|device| device.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread::{self, ThreadId};

    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(100);

    /// Record of what happened to a device.
    #[derive(Default)]
    struct Record {
        /// Bytes that wait in front of the transmitter.
        waiting: AtomicUsize,
        discarded: AtomicBool,
        /// Thread that closed it, and whether it had been discarded by then.
        closed: Mutex<Option<(ThreadId, bool)>>,
    }

    /// A UART whose transmitter can be held. A pseudo-terminal returns from `tcdrain` at once, this one never does.
    struct Uart {
        wire: DuplexStream,
        record: Arc<Record>,
    }

    impl Device for Uart {
        fn waiting(&self) -> usize {
            self.record.waiting.load(Ordering::SeqCst)
        }

        fn discard(&self) {
            self.record.discarded.store(true, Ordering::SeqCst);
        }
    }

    impl Drop for Uart {
        fn drop(&mut self) {
            let closed = (thread::current().id(), self.record.discarded.load(Ordering::SeqCst));
            *self.record.closed.lock().unwrap_or_else(PoisonError::into_inner) = Some(closed);
        }
    }

    impl AsyncRead for Uart {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.wire).poll_read(cx, buffer)
        }
    }

    impl AsyncWrite for Uart {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.wire).poll_write(cx, bytes)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            panic!("tcdrain would not return, and stops a thread of the runtime");
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            panic!("tcdrain would not return, and stops a thread of the runtime");
        }
    }

    fn uart() -> (LineReader<Uart>, LineWriter<Uart>, DuplexStream, Arc<Record>) {
        let (wire, other) = duplex(64);
        let record = Arc::new(Record::default());
        let (reader, writer) = split(Uart { wire, record: Arc::clone(&record) }, 57_600);
        (reader, writer, other, record)
    }

    /// Runs on one thread: whatever waited for the transmitter would stop the other direction, too.
    #[tokio::test]
    async fn a_held_transmitter_is_waited_for_by_its_writer_alone() {
        let (mut reader, mut writer, mut other, record) = uart();
        record.waiting.store(AHEAD + 1, Ordering::SeqCst);
        let (sent, telemetry) = tokio::join!(writer.send(b"command", SHORT), async {
            other.write_all(b"telemetry").await.expect("sent");
            let mut read = [0; 9];
            reader.read_exact(&mut read).await.expect("read");
            read
        });
        assert_eq!((sent.expect("no error"), &telemetry), (Sending::Discarded, b"telemetry"));
        assert!(record.discarded.load(Ordering::SeqCst), "it would be received late");
        record.waiting.store(0, Ordering::SeqCst);
        assert_eq!(writer.send(b"command", PATIENCE).await.expect("no error"), Sending::Sent);
    }

    #[tokio::test]
    async fn a_line_without_room_is_waited_for_no_longer_than_allowed() {
        let (_reader, mut writer, mut other, _) = uart();
        assert_eq!(writer.send(&[1; 64], PATIENCE).await.expect("no error"), Sending::Sent);
        assert_eq!(writer.send(&[2], SHORT).await.expect("no error"), Sending::Discarded);
        let mut read = [0; 64];
        other.read_exact(&mut read).await.expect("read");
        assert_eq!(writer.send(&[3], PATIENCE).await.expect("no error"), Sending::Sent);
        assert_eq!(other.read_u8().await.expect("read"), 3);
        drop(other);
        assert!(writer.send(&[4], PATIENCE).await.is_err(), "the line has ended");
    }

    #[tokio::test]
    async fn a_line_is_discarded_and_closed_by_a_thread_of_its_own() {
        let (reader, writer, _other, record) = uart();
        drop(reader);
        assert!(record.closed.lock().expect("a lock").is_none(), "the other direction is in use");
        drop(writer);
        let closed = async {
            loop {
                let closed = *record.closed.lock().expect("a lock");
                match closed {
                    Some(closed) => break closed,
                    None => sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let (thread, was_discarded) = timeout(PATIENCE, closed).await.expect("it is closed");
        assert!(was_discarded, "closing would wait for what was written");
        assert_ne!(thread, thread::current().id(), "closing may wait, and did so on the runtime's thread");
    }

    #[tokio::test]
    async fn what_is_no_line_is_an_error() {
        let error = open("/dev/no-such-line", 57_600, FlowControl::None).await.expect_err("none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        open("/dev/null", 57_600, FlowControl::None).await.expect_err("no line");
    }

    /// A pseudo-terminal that nobody reads holds its writer back, as a held transmitter does.
    #[tokio::test]
    async fn a_terminal_that_nobody_reads_stops_no_other_direction() {
        let (line, mut other) = SerialStream::pair().expect("a pseudo-terminal");
        let (mut reader, mut writer) = split(line, 57_600);
        let mut tries = 0;
        while writer.send(&[7; 4_096], SHORT).await.expect("no error") == Sending::Sent {
            tries += 1;
            assert!(tries < 1_000, "it never fills");
        }
        other.write_all(b"still there").await.expect("written");
        let mut read = [0; 11];
        timeout(PATIENCE, reader.read_exact(&mut read)).await.expect("in time").expect("read");
        assert_eq!(&read, b"still there");
    }
}
