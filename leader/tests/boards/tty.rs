//! A serial device of the system: a pseudo-terminal, whose other end is a board's stream.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serialport::{SerialPort, TTYPort};
use tempfile::TempDir;

/// A device that can be unplugged and plugged in again, under the same name, as udev's links by serial number
/// are.
pub(crate) struct Tty {
    /// Path of the device.
    pub(crate) path: PathBuf,
    board: String,
    /// State of its transmitter: while it is held, nothing of what is written to the device leaves.
    held: Arc<AtomicBool>,
    plugged: Option<Plugged>,
    #[expect(dead_code, reason = "removed when this is dropped")]
    directory: TempDir,
}

struct Plugged {
    out: Arc<AtomicBool>,
    threads: [JoinHandle<()>; 2],
    chip: TTYPort,
}

impl Tty {
    /// The device of a board, not plugged in.
    pub(crate) fn to(board: &str) -> Self {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("board");
        let board = board.trim_start_matches("tcp:").to_string();
        Self { path, board, held: Arc::default(), plugged: None, directory }
    }

    /// Plugs it in: a new device, in the place of the one before. Programs that are started later inherit its
    /// other end, and never notice that it is unplugged.
    pub(crate) fn plug(&mut self) {
        let (chip, device) = TTYPort::pair().expect("a pseudo-terminal");
        let name = device.name().expect("it has a name");
        assert!(name.starts_with("/dev/"), "a device of the system: {name}");
        // The opener sets it up; no other process holds it.
        drop(device);
        place(&name, &self.path);
        let stream = TcpStream::connect(&self.board).expect("the board listens");
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket option");
        let out = Arc::new(AtomicBool::new(false));
        let (from, to) = (chip.try_clone_native().expect("clone"), stream.try_clone().expect("clone"));
        let (ended, over) = (out.clone(), out.clone());
        let (held, free) = (self.held.clone(), AtomicBool::new(false));
        let chip_writer = chip.try_clone_native().expect("clone");
        let threads =
            [spawn(move || carry(from, to, &ended, &held)), spawn(move || carry(stream, chip, &over, &free))];
        self.plugged = Some(Plugged { out, threads, chip: chip_writer });
    }

    /// Holds its transmitter, as a line with flow control does: what is written to the device stays in front of it. What the
    /// board sends comes through.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::Relaxed);
    }

    /// Writes bytes as if they came from the board's end.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let plugged = self.plugged.as_mut().expect("it is plugged in");
        // A gateway that is behind reads them later or never.
        let _ = plugged.chip.write(bytes);
    }

    /// Unplugs it: processes that have it open notice.
    pub(crate) fn unplug(&mut self) {
        if let Some(Plugged { out, threads, .. }) = self.plugged.take() {
            out.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| thread.join().expect("carrying does not panic"));
            fs::remove_file(&self.path).expect("the link");
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.unplug();
    }
}

fn place(device: &str, path: &Path) {
    symlink(device, path).expect("a link");
}

/// Carries bytes until it is unplugged, but none while it is held. While nobody has the device open, there is nothing to carry.
fn carry(mut from: impl Read, mut to: impl Write, out: &AtomicBool, held: &AtomicBool) {
    let mut chunk = [0; 512];
    while !out.load(Ordering::Relaxed) {
        if held.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5));
            continue;
        }
        match from.read(&mut chunk) {
            Ok(0) => sleep(Duration::from_millis(5)),
            // Bytes that are not read are lost, as on any line.
            Ok(read) => drop(to.write_all(&chunk[..read])),
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {}
            // The device is not open.
            Err(_) => sleep(Duration::from_millis(5)),
        }
    }
}
