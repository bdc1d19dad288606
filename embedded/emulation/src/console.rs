//! A board's console: lines in, lines out.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use quiver_service_testing::timeout::{Deadline, TIMEOUT};

/// Bytes that must stay free of the heap, and of the stack.
const MARGIN: u64 = 8 * 1024;

#[derive(Debug, Default)]
struct Transcript {
    lines: Vec<String>,
    ended: bool,
}

/// A board's console. Its output is kept, also in a file.
#[derive(Debug)]
pub struct Console {
    line: TcpStream,
    heard: Arc<(Mutex<Transcript>, Condvar)>,
    /// Number of lines already read.
    at: usize,
}

impl Console {
    /// Reads the console at the other end of `line`, and copies its output to the file `log`.
    #[must_use]
    pub fn new(line: TcpStream, log: &Path) -> Self {
        line.set_nodelay(true).expect("a socket option");
        let heard = Arc::new((Mutex::new(Transcript::default()), Condvar::new()));
        let mut log = File::create(log).expect("create");
        let (reader, shared) = (BufReader::new(line.try_clone().expect("clone")), Arc::clone(&heard));
        thread::spawn(move || {
            for text in reader.split(b'\n').map_while(Result::ok) {
                let _ = log.write_all(&text).and_then(|()| log.write_all(b"\n"));
                let text = String::from_utf8_lossy(&text).trim_end_matches('\r').into();
                shared.0.lock().expect("not poisoned").lines.push(text);
                shared.1.notify_all();
            }
            shared.0.lock().expect("not poisoned").ended = true;
            shared.1.notify_all();
        });
        Self { line, heard, at: 0 }
    }

    /// Types these bytes. An emulator that has ended hears nothing.
    pub fn type_bytes(&mut self, bytes: &[u8]) {
        let _ = self.line.write_all(bytes);
    }

    /// Types a line. Earlier output is no answer to it: [`line`](Self::line) starts here.
    pub fn type_line(&mut self, text: &str) {
        self.at = self.heard.0.lock().expect("not poisoned").lines.len();
        self.type_bytes(format!("{text}\n").as_bytes());
    }

    /// The next unread line that contains `part`; lines before it count as read.
    ///
    /// # Panics
    /// After [`TIMEOUT`], or when the emulator ends; with the last lines.
    pub fn line(&mut self, part: &str) -> String {
        self.line_that(&format!("`{part}`"), |line| line.contains(part).then(|| line.to_string()))
    }

    /// The next line not yet looked at in which `find` finds something.
    ///
    /// # Panics
    /// As [`line`](Self::line), with `what`.
    pub fn line_that<T>(&mut self, what: &str, mut find: impl FnMut(&str) -> Option<T>) -> T {
        let deadline = Deadline::after(TIMEOUT);
        let (lock, condition) = &*self.heard;
        let mut heard = lock.lock().expect("not poisoned");
        loop {
            while let Some(line) = heard.lines.get(self.at) {
                self.at += 1;
                if let Some(found) = find(line) {
                    return found;
                }
            }
            if heard.ended || deadline.left().is_zero() {
                let last = heard.lines[heard.lines.len().saturating_sub(20)..].join("\n");
                let why = if heard.ended { "the emulator ended before" } else { "waited in vain for" };
                drop(heard);
                panic!("{why} {what}:\n{last}");
            }
            heard = condition.wait_timeout(heard, deadline.left()).expect("not poisoned").0;
        }
    }

    /// Checks that the most the board ever had of heap and stack leaves some of each.
    ///
    /// # Panics
    /// If it does not, or the board does not say.
    pub fn assert_memory(&mut self) {
        self.type_line("status");
        for what in ["heap", "stack"] {
            let [peak, size]: [u64; 2] = ["peak", "size"].map(|figure| {
                let name = format!("memory {what}-{figure} ");
                let number = |line: &str| line.split_once(&name)?.1.trim().parse().ok();
                self.line_that(&name, number)
            });
            assert!(peak + MARGIN <= size, "{what}: {peak} of {size} bytes");
        }
    }

    /// The whole output so far.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.heard.0.lock().expect("not poisoned").lines.clone()
    }
}
