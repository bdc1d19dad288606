//! The line between a board and its gateway: two sockets that carry bytes to each other, with faults as the
//! test sets them.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::fault_script::{FaultScript, StepFault};

/// An end of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The board's.
    Board,
    /// The gateway's.
    Gateway,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Board => Self::Gateway,
            Self::Gateway => Self::Board,
        }
    }
}

/// Faults of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFaults {
    /// True if nothing arrives.
    pub cut: bool,
    /// Average number of bytes between two insertions of garbage, up to 40 random bytes each. 0: never.
    pub garbage: u32,
    /// Average number of bytes between two that are replaced. 0: never.
    pub errors: u32,
    /// Average number of bytes between two that are lost. 0: never.
    pub losses: u32,
}

/// Applies link faults at random.
#[derive(Clone, Debug)]
pub struct FaultInjector {
    /// Faults in force now.
    pub current: LinkFaults,
    chance: ChaCha8Rng,
}

impl FaultInjector {
    /// Fair faults. All that happens in any other follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { current: LinkFaults::default(), chance: ChaCha8Rng::seed_from_u64(seed) }
    }

    fn happens(&mut self, every: u32) -> bool {
        every > 0 && self.chance.next_u32().is_multiple_of(every)
    }

    /// Bytes that arrive of these.
    pub fn apply(&mut self, bytes: &[u8]) -> Vec<u8> {
        let faults = self.current;
        if faults.cut {
            return Vec::new();
        }
        let mut arrives = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.happens(faults.garbage) {
                let mut garbage = vec![0; 1 + self.chance.next_u32() as usize % 40];
                self.chance.fill_bytes(&mut garbage);
                arrives.extend(garbage);
            }
            if self.happens(faults.errors) {
                arrives.push(self.chance.next_u32() as u8);
            } else if !self.happens(faults.losses) {
                arrives.push(byte);
            }
        }
        arrives
    }
}

#[derive(Debug)]
struct WireState {
    sockets: [Option<TcpStream>; 2],
    seen: [Vec<u8>; 2],
    faults: FaultInjector,
    /// Fault scripts for the bytes that each end sends.
    fault_scripts: [Option<FaultScript>; 2],
    hit: BTreeSet<&'static str>,
}

/// A line. Each end may come and go: a new connection takes the place of the one before. A clone is the same
/// line.
#[derive(Clone, Debug)]
pub struct EmulatedWire {
    ports: [u16; 2],
    shared: Arc<Mutex<WireState>>,
}

impl EmulatedWire {
    /// A line that waits for both ends. All disturbance follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let shared = Arc::new(Mutex::new(WireState {
            sockets: [None, None],
            seen: [Vec::new(), Vec::new()],
            faults: FaultInjector::new(seed),
            fault_scripts: [None, None],
            hit: BTreeSet::new(),
        }));
        let ports = [End::Board, End::Gateway].map(|end| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
            let port = listener.local_addr().expect("bound").port();
            let shared = Arc::clone(&shared);
            thread::spawn(move || serve(&listener, end, &shared));
            port
        });
        Self { ports, shared }
    }

    /// The port for this end to dial, on 127.0.0.1.
    #[must_use]
    pub fn port(&self, end: End) -> u16 {
        self.ports[end as usize]
    }

    /// Changes what happens to bytes from now on.
    pub fn set_faults(&self, faults: LinkFaults) {
        self.lock().faults.current = faults;
    }

    /// Injects a fault, in both directions, at the first frame of each protocol step from now on.
    pub fn fault_at_steps(&self, fault: StepFault) {
        let mut shared = self.lock();
        let chances = [shared.faults.chance.next_u64(), shared.faults.chance.next_u64()];
        shared.fault_scripts =
            chances.map(|seed| Some(FaultScript::new(fault, ChaCha8Rng::seed_from_u64(seed))));
        shared.hit.clear();
    }

    /// The steps that were hit since then.
    #[must_use]
    pub fn hit(&self) -> BTreeSet<&'static str> {
        self.lock().hit.clone()
    }

    /// Puts bytes of the test's own on the line, towards this end.
    pub fn inject(&self, towards: End, bytes: &[u8]) {
        self.lock().deliver(towards, bytes);
    }

    /// Bytes that this end has sent since the start, unaltered.
    #[must_use]
    pub fn said(&self, end: End) -> Vec<u8> {
        self.lock().seen[end as usize].clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WireState> {
        self.shared.lock().expect("not poisoned")
    }
}

impl WireState {
    /// Bytes for an end that is absent or gone are lost, as on a real line.
    fn deliver(&mut self, towards: End, bytes: &[u8]) {
        if let Some(socket) = &mut self.sockets[towards as usize] {
            let _ = socket.write_all(bytes);
        }
    }
}

/// Accepts this end's connections, one after another, and carries their bytes to the other end.
fn serve(listener: &TcpListener, end: End, shared: &Arc<Mutex<WireState>>) {
    for socket in listener.incoming().map_while(Result::ok) {
        socket.set_nodelay(true).expect("a socket option");
        let mut reader = socket.try_clone().expect("clone");
        let before = shared.lock().expect("not poisoned").sockets[end as usize].replace(socket);
        if let Some(before) = before {
            let _ = before.shutdown(std::net::Shutdown::Both);
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut buffer) {
                let shared = &mut *shared.lock().expect("not poisoned");
                shared.seen[end as usize].extend(&buffer[..len]);
                let mut arrives = shared.faults.apply(&buffer[..len]);
                if let Some(script) = &mut shared.fault_scripts[end as usize] {
                    arrives = script.pass(&arrives, &mut shared.hit);
                }
                shared.deliver(end.other(), &arrives);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_service_testing::eventually;

    fn ends(wire: &EmulatedWire) -> (TcpStream, TcpStream) {
        let dial = |end| TcpStream::connect((Ipv4Addr::LOCALHOST, wire.port(end))).expect("listens");
        let ends = (dial(End::Board), dial(End::Gateway));
        eventually("both ends are taken", || wire.lock().sockets.iter().all(Option::is_some).then_some(()));
        ends
    }

    fn hear(socket: &mut TcpStream, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        socket.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    #[test]
    fn bytes_go_both_ways_and_are_remembered() {
        let wire = EmulatedWire::new(0);
        let (mut board, mut gateway) = ends(&wire);
        board.write_all(b"hello").expect("write");
        assert_eq!(hear(&mut gateway, 5), b"hello");
        gateway.write_all(b"dear board").expect("write");
        assert_eq!(hear(&mut board, 10), b"dear board");
        wire.inject(End::Board, b"psst");
        assert_eq!(hear(&mut board, 4), b"psst");
        assert_eq!((wire.said(End::Board), wire.said(End::Gateway)), (b"hello".into(), b"dear board".into()));
    }

    #[test]
    fn gateway_that_comes_back_takes_its_place() {
        let wire = EmulatedWire::new(0);
        let (mut board, gateway) = ends(&wire);
        drop(gateway);
        let mut again = TcpStream::connect((Ipv4Addr::LOCALHOST, wire.port(End::Gateway))).expect("listens");
        again.write_all(b"back").expect("write");
        assert_eq!(hear(&mut board, 4), b"back");
        board.write_all(b"good").expect("write");
        assert_eq!(hear(&mut again, 4), b"good");
    }

    #[test]
    fn link_faults_add_change_and_lose_bytes_and_a_cut_line_is_silent() {
        let mut injector = FaultInjector::new(7);
        let clean = vec![b'x'; 10_000];
        let mut arrives = |faults: LinkFaults| {
            injector.current = faults;
            injector.apply(&clean)
        };
        assert_eq!(arrives(LinkFaults::default()), clean);
        assert!(arrives(LinkFaults { cut: true, ..LinkFaults::default() }).is_empty());
        let more = arrives(LinkFaults { garbage: 100, ..LinkFaults::default() });
        assert!(more.len() > 11_000, "{}", more.len());
        assert!(more.iter().filter(|&&byte| byte == b'x').count() >= 10_000, "nothing else is lost");
        let wrong = arrives(LinkFaults { errors: 100, ..LinkFaults::default() });
        assert!(wrong.len() == 10_000 && wrong != clean);
        let fewer = arrives(LinkFaults { losses: 100, ..LinkFaults::default() });
        assert!((9_800..9_999).contains(&fewer.len()), "{}", fewer.len());
    }
}
