//! Standard output and standard error of a running service. A line that cannot be written is dropped, and the service
//! continues: on a full disk, after its reader closed the pipe, and while its reader has stopped reading.
//!
//! A full pipe blocks its writer until the reader reads. Lines are written by the threads that follow keys and handle
//! signals, so a blocked write would stop the service. Each piece is therefore written only if the pipe has room for it.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;

/// Bytes that a pipe takes without holding the writer back once it says that it takes any (PIPE_BUF).
const PIECE: usize = 4096;
/// Time in milliseconds that a reader gets to make room, before the first line is lost. The lines behind it wait no longer.
const PATIENCE: u16 = 200;

/// Standard output of this process.
static OUTPUT: LineOutput = LineOutput::new();
/// Standard error of this process.
static LOG: LineOutput = LineOutput::new();

/// Prints a line of a service to standard output. One that cannot be written is lost: the log says since when, and how many
/// were lost once one can be written again.
///
/// The result of a command goes through [`terminal::line`](crate::terminal::line), which fails instead.
pub fn print(line: &str) {
    let printed = OUTPUT.put(io::stdout().as_fd(), |_| format!("{line}\n").into_bytes());
    match printed {
        Put::Written => {}
        Put::WrittenAgain { lost } => {
            tracing::warn!(lost, "standard output can be written again: {lost} of its lines were lost");
        }
        Put::LostFirst(error) => {
            tracing::warn!("standard output cannot be written, and its lines are lost until it can: {error}");
        }
        Put::LostMore => {}
    }
}

/// Writes the last line of a failing program to standard error. A failed write is ignored, because the program ends anyway.
pub(crate) fn complain(line: &str) {
    LOG.put(io::stderr().as_fd(), |_| format!("{line}\n").into_bytes());
}

/// Writer of log lines to standard error, one with each call. `N lines were not written` stands before the first line after
/// some that were lost; `note` writes that.
pub(crate) struct LogWriter {
    pub(crate) note: fn(u64) -> String,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let note = self.note;
        LOG.put(io::stderr().as_fd(), |lost| match lost {
            0 => line.to_vec(),
            lost => [note(lost).as_bytes(), line].concat(),
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Outcome of a line.
#[derive(Debug)]
enum Put {
    /// Line written, as the one before.
    Written,
    /// Line written, after `lost` lines that were dropped.
    WrittenAgain { lost: u64 },
    /// Line dropped; the one before was written.
    LostFirst(io::Error),
    /// Line dropped, as the one before.
    LostMore,
}

/// An output of lines, some of which may be lost.
struct LineOutput(Mutex<Losses>);

/// Lines that were lost since one was written.
#[derive(Debug, Default)]
struct Losses {
    lines: u64,
    /// True if the output ends in the middle of a line.
    is_cut: bool,
}

impl LineOutput {
    const fn new() -> Self {
        Self(Mutex::new(Losses { lines: 0, is_cut: false }))
    }

    /// Writes the line that `line` gives, which is told how many were lost before it.
    fn put(&self, to: BorrowedFd<'_>, line: impl FnOnce(u64) -> Vec<u8>) -> Put {
        // Counts, which a panic leaves as they are.
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = losses.lines;
        match write_line(to, &mut losses, &line(lost)) {
            Ok(()) => {
                losses.lines = 0;
                if lost == 0 { Put::Written } else { Put::WrittenAgain { lost } }
            }
            Err(error) => {
                losses.lines = lost.saturating_add(1);
                if lost == 0 { Put::LostFirst(error) } else { Put::LostMore }
            }
        }
    }
}

/// Writes a line in pieces that are taken at once, after the end of one that was cut.
fn write_line(to: BorrowedFd<'_>, losses: &mut Losses, line: &[u8]) -> io::Result<()> {
    let patience = PollTimeout::from(if losses.lines == 0 { PATIENCE } else { 0 });
    let whole;
    let mut rest = line;
    if losses.is_cut {
        whole = [b"\n", line].concat();
        rest = &whole;
    }
    while !rest.is_empty() {
        let mut polled = [PollFd::new(to, PollFlags::POLLOUT)];
        let written = match poll(&mut polled, patience) {
            Ok(0) => return Err(io::Error::new(ErrorKind::TimedOut, "its reader takes no more")),
            Ok(_) => write(to, &rest[..rest.len().min(PIECE)]),
            Err(error) => Err(error),
        };
        match written {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        losses.is_cut = !rest.is_empty();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
