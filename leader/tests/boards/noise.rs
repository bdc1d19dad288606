//! A bad cable: garbage between the bytes, bytes lost and altered.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::stream::write_patiently;

/// A cable: carries bytes in both directions; cut when dropped.
pub(crate) struct Cable {
    pub(crate) line: String,
    /// True while it is bad.
    pub(crate) bad: Arc<AtomicBool>,
    cut: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    /// A bad cable to a board.
    pub(crate) fn to(board: &str, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.set_nonblocking(true).expect("nonblocking");
        let line = format!("tcp:{}", listener.local_addr().expect("address"));
        let (bad, cut) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let board = board.trim_start_matches("tcp:").to_string();
        let (noisy, end) = (bad.clone(), cut.clone());
        let thread = spawn(move || carry(&listener, &board, seed, &noisy, &end));
        Self { line, bad, cut, thread: Some(thread) }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.cut.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn carry(listener: &TcpListener, board: &str, seed: u64, bad: &AtomicBool, cut: &AtomicBool) {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut ends: Option<(TcpStream, TcpStream)> = None;
    while !cut.load(Ordering::Relaxed) {
        if let Ok((gateway, _)) = listener.accept() {
            let board = TcpStream::connect(board).expect("the board listens");
            gateway.set_nonblocking(true).expect("nonblocking");
            board.set_nonblocking(true).expect("nonblocking");
            ends = Some((gateway, board));
        }
        if let Some((gateway, board)) = &mut ends {
            let noisy = bad.load(Ordering::Relaxed);
            let carried = pass(gateway, board, noisy, &mut dice)
                .and_then(|there| Ok(there | pass(board, gateway, noisy, &mut dice)?));
            match carried {
                Ok(true) => continue,
                Ok(false) => {}
                Err(_) => ends = None,
            }
        }
        sleep(Duration::from_millis(1));
    }
}

/// Passes on what there is; whether there was something.
fn pass(from: &mut TcpStream, to: &mut TcpStream, noisy: bool, dice: &mut StdRng) -> std::io::Result<bool> {
    let mut chunk = [0; 300];
    let read = match from.read(&mut chunk) {
        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut bytes = chunk[..read].to_vec();
    if noisy {
        spoil(&mut bytes, dice);
    }
    write_patiently(to, &bytes)?;
    Ok(true)
}

/// Spoils an eighth of all chunks, and so half of all frames: each of a kilobyte comes in four or more.
fn spoil(bytes: &mut Vec<u8>, dice: &mut StdRng) {
    if dice.gen_ratio(1, 16) {
        let (at, len) = (dice.gen_range(0..=bytes.len()), dice.gen_range(1..64));
        let garbage: Vec<u8> = (0..len).map(|_| dice.r#gen()).collect();
        bytes.splice(at..at, garbage);
    }
    if dice.gen_ratio(1, 32) && !bytes.is_empty() {
        let at = dice.gen_range(0..bytes.len());
        bytes[at] ^= 1 << dice.gen_range(0..8);
    }
    if dice.gen_ratio(1, 32) && !bytes.is_empty() {
        bytes.remove(dice.gen_range(0..bytes.len()));
    }
}
