//! An envelope of any length takes the same memory.

#[expect(dead_code, reason = "shared with the tests of envelopes, which use all of it")]
#[path = "../envelope/toy.rs"]
mod toy;

use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use cap::Cap;
use quiver_abe::envelope::{self, EnvelopeHeader, Lifetime, ReceivingSession};

use self::toy::{ALICE, NOW, PARAMETERS, Toy, known, rng, session};

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// The limit holds for the whole process, so one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Gives so many bytes that are not all alike.
struct Source(u64);

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(usize::try_from(self.0).unwrap_or(usize::MAX));
        buffer[..len].fill((self.0 / 4096) as u8);
        self.0 -= len as u64;
        Ok(len)
    }
}

/// Counts the bytes written.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two ends of a pipe that holds at most four writes.
struct Inlet(SyncSender<Vec<u8>>);
struct Outlet(Receiver<Vec<u8>>, Vec<u8>);

impl Write for Inlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Outlet {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let len = self.1.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.1[..len]);
        self.1.drain(..len);
        Ok(len)
    }
}

/// Seals so many bytes on one thread and opens them on another, both at once, with no more than this much
/// memory beyond what is used already.
fn stream(len: u64, memory: usize) {
    let _alone = ONE_AT_A_TIME.lock();
    MEMORY.set_limit(MEMORY.allocated() + memory).unwrap();
    let (inlet, outlet) = sync_channel(4);
    let sealing = thread::spawn(move || {
        let message = session(Some(&ALICE), Lifetime::SINGLE).message(NOW).unwrap();
        envelope::io::seal(message, Source(len), Inlet(inlet), Some(&ALICE), &mut rng()).unwrap()
    });
    let mut from = Outlet(outlet, Vec::new());
    let header = envelope::io::read_header(&mut from).unwrap();
    let EnvelopeHeader::Opening(opening) = &header else { panic!("no opening") };
    let session = ReceivingSession::open::<Toy>(&PARAMETERS, &"scout".into(), opening).unwrap();
    let mut sink = Sink(0);
    let sender = envelope::io::open(session.opener(&header).unwrap(), from, &mut sink, &known()).unwrap();
    MEMORY.set_limit(usize::MAX).unwrap();
    assert_eq!((sender, sink.0, sealing.join().unwrap()), (Some([1; 32]), len, len));
}

#[test]
fn long_envelope_is_sealed_and_opened_in_constant_memory() {
    stream(24 << 20, 2 << 20);
}

#[test]
#[ignore = "takes ten seconds; the short form above is the same code"]
fn envelope_of_a_gigabyte_is_sealed_and_opened_in_two_megabytes() {
    stream(1 << 30, 2 << 20);
}
