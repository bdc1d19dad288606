//! A gateway that is somebody else's: it speaks the link on both sides and does as it likes with what it should relay.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use quiver_link::{
    BoardEndpoint, BoardEvent, Destination, GatewayEndpoint, GatewayEvent, Limits, LineDecoder, Route,
    ToBoard, ToGateway, Wants, encode_line,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bench::now;

const MAX_MESSAGE: usize = 72 * 1024;
/// Messages remembered, to be said again.
const REMEMBERED: usize = 200;

/// A hostile gateway between a board and a leader; gone when dropped.
pub(crate) struct Hostile {
    pub(crate) line: String,
    /// Whether it is hostile; afterwards an honest one takes its place.
    pub(crate) hostile: Arc<AtomicBool>,
    /// What it has done to messages.
    pub(crate) deeds: Arc<AtomicUsize>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    pub(crate) fn between(board: &str, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let line = format!("tcp:{}", listener.local_addr().expect("address"));
        let (hostile, end) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let deeds = Arc::new(AtomicUsize::new(0));
        let board = board.trim_start_matches("tcp:").to_string();
        let shared = (hostile.clone(), deeds.clone(), end.clone());
        let thread = spawn(move || {
            let (leader, _) = listener.accept().expect("the leader's gateway comes");
            let board = TcpStream::connect(board).expect("the board listens");
            let (hostile, deeds, end) = shared;
            let mut middle = Middle::new(board, leader, seed, deeds);
            while !end.load(Ordering::Relaxed) && middle.turn(hostile.load(Ordering::Relaxed)).is_ok() {
                sleep(Duration::from_millis(2));
            }
        });
        Self { line, hostile, deeds, end, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// One of its two lines.
struct End {
    stream: TcpStream,
    decoder: LineDecoder,
}

impl End {
    fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).expect("nonblocking");
        Self { stream, decoder: LineDecoder::new() }
    }

    fn read(&mut self) -> std::io::Result<Vec<Vec<u8>>> {
        let mut chunk = [0; 4096];
        let read = match self.stream.read(&mut chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let (mut bytes, mut datagrams) = (&chunk[..read], Vec::new());
        while let Some(frame) = self.decoder.next_frame(&mut bytes) {
            datagrams.push(frame.datagram.to_vec());
        }
        Ok(datagrams)
    }

    fn write(&mut self, datagram: &[u8]) -> std::io::Result<()> {
        let frame = encode_line(0, datagram).expect("it fits");
        let mut left = &frame[..];
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Middle {
    started: Instant,
    hostile: bool,
    board: End,
    leader: End,
    /// Faces the board.
    gateway: GatewayEndpoint,
    /// Faces the leader.
    pretender: Option<BoardEndpoint>,
    peers: HashSet<u64>,
    to_board: Vec<ToBoard>,
    to_leader: Vec<ToGateway>,
    dice: StdRng,
    deeds: Arc<AtomicUsize>,
}

impl Middle {
    fn new(board: TcpStream, leader: TcpStream, seed: u64, deeds: Arc<AtomicUsize>) -> Self {
        Self {
            started: now(),
            hostile: false,
            board: End::new(board),
            leader: End::new(leader),
            gateway: GatewayEndpoint::new(Limits::line(MAX_MESSAGE), 1),
            pretender: None,
            peers: HashSet::new(),
            to_board: Vec::new(),
            to_leader: Vec::new(),
            dice: StdRng::seed_from_u64(seed),
            deeds,
        }
    }

    fn turn(&mut self, hostile: bool) -> std::io::Result<()> {
        let at = self.started.elapsed();
        if std::mem::replace(&mut self.hostile, hostile) && !hostile {
            // An honest one takes its place, which knows nothing of what it did.
            self.gateway = GatewayEndpoint::new(Limits::line(MAX_MESSAGE), self.dice.r#gen());
            self.pretender = None;
        }
        for datagram in self.board.read()? {
            self.gateway.handle_datagram(at, &datagram);
            while let Some(event) = self.gateway.poll_event() {
                self.hear_board(event, hostile);
            }
        }
        for datagram in self.leader.read()? {
            if let Some(pretender) = &mut self.pretender {
                pretender.handle_datagram(at, &datagram);
            }
            while let Some(event) = self.pretender.as_mut().and_then(BoardEndpoint::poll_event) {
                self.hear_leader(event, hostile);
            }
        }
        self.gateway.handle_timeout(at);
        if let Some(pretender) = &mut self.pretender {
            pretender.handle_timeout(at);
        }
        if hostile && self.dice.gen_ratio(1, 100) {
            self.invent();
        }
        let time = if hostile { self.wrong_time() } else { wall_clock() };
        while let Some(datagram) = self.gateway.poll_datagram(at, time) {
            self.board.write(&datagram)?;
        }
        while let Some(datagram) = self.pretender.as_mut().and_then(|end| end.poll_datagram(at)) {
            self.leader.write(&datagram)?;
        }
        Ok(())
    }

    fn wrong_time(&mut self) -> u64 {
        [0, 1, wall_clock() - 86_400 * 365, wall_clock()][self.dice.gen_range(0..4)]
    }

    fn hear_board(&mut self, event: GatewayEvent, hostile: bool) {
        let message = match event {
            GatewayEvent::Begun { wants, .. } => return self.pretend(wants),
            GatewayEvent::Wants(wants) => {
                return self.pretender.iter_mut().for_each(|end| end.set_wants(wants.clone()));
            }
            GatewayEvent::Transmit { to, payload } => ToGateway::Transmit { to, payload },
            GatewayEvent::Block { peer } => ToGateway::Block { peer },
            GatewayEvent::Report(report) => ToGateway::Report(report),
            GatewayEvent::Lost => return,
        };
        remember(&mut self.to_leader, &message, &mut self.dice);
        if !hostile {
            return self.say_to_leader(&message);
        }
        match self.dice.gen_range(0..8) {
            0 => self.deed(),
            1 => {
                self.deed();
                self.say_to_leader(&message);
                self.say_to_leader(&message);
            }
            2 => self.say_to_leader_altered(message),
            3 => {
                self.deed();
                let old = self.to_leader[self.dice.gen_range(0..self.to_leader.len())].clone();
                self.say_to_leader(&old);
            }
            _ => self.say_to_leader(&message),
        }
    }

    fn say_to_leader_altered(&mut self, message: ToGateway) {
        self.deed();
        if let ToGateway::Transmit { to, mut payload } = message {
            self.alter(&mut payload);
            self.say_to_leader(&ToGateway::Transmit { to, payload });
        }
    }

    fn hear_leader(&mut self, event: BoardEvent, hostile: bool) {
        let message = match event {
            BoardEvent::Connected { peer, route } => {
                self.peers.insert(peer);
                ToBoard::Connected { peer, route }
            }
            BoardEvent::Disconnected { peer } => {
                self.peers.remove(&peer);
                ToBoard::Disconnected { peer }
            }
            BoardEvent::Received { from, bytes } => ToBoard::Received { from, bytes },
            BoardEvent::Begun { .. } | BoardEvent::Time { .. } | BoardEvent::Lost => return,
        };
        remember(&mut self.to_board, &message, &mut self.dice);
        if !hostile {
            return self.say_to_board(&message);
        }
        match self.dice.gen_range(0..8) {
            0 => self.deed(),
            1 => {
                self.deed();
                self.say_to_board(&message);
                self.say_to_board(&message);
            }
            2 | 3 => {
                self.deed();
                if let ToBoard::Received { from, mut bytes } = message {
                    self.alter(&mut bytes);
                    self.say_to_board(&ToBoard::Received { from, bytes });
                }
            }
            4 => {
                self.deed();
                let old = self.to_board[self.dice.gen_range(0..self.to_board.len())].clone();
                self.say_to_board(&old);
                self.say_to_board(&message);
            }
            _ => self.say_to_board(&message),
        }
    }

    /// Says something out of thin air, to either side.
    fn invent(&mut self) {
        self.deed();
        let (peer, len) = (self.dice.gen_range(0..6), self.dice.gen_range(1..400));
        let bytes: Vec<u8> = (0..len).map(|_| self.dice.r#gen()).collect();
        match self.dice.gen_range(0..6) {
            0 => self.say_to_board(&ToBoard::Connected { peer: 1000 + peer, route: Route::Leader }),
            1 => self.say_to_board(&ToBoard::Disconnected { peer }),
            2 => self.say_to_board(&ToBoard::Received { from: peer, bytes }),
            3 => self.say_to_leader(&ToGateway::Transmit { to: Destination::Peer(peer), payload: bytes }),
            4 => self.say_to_leader(&ToGateway::Transmit { to: Destination::Group, payload: bytes }),
            _ => {
                let said: Vec<_> = self.to_board.to_vec();
                if !said.is_empty() {
                    let old = said[self.dice.gen_range(0..said.len())].clone();
                    self.say_to_board(&old);
                }
            }
        }
    }

    fn alter(&mut self, bytes: &mut Vec<u8>) {
        let at = self.dice.gen_range(0..bytes.len());
        match self.dice.gen_range(0..3) {
            0 => bytes[at] ^= 1 << self.dice.gen_range(0..8),
            1 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, self.dice.r#gen()),
        }
    }

    fn pretend(&mut self, wants: Wants) {
        let limits = Limits { repeat_after: Duration::from_millis(300), ..Limits::line(MAX_MESSAGE) };
        // Its own session with the leader begins anew, as the board's does.
        self.pretender = Some(BoardEndpoint::new(limits, self.dice.r#gen(), wants));
        self.peers.clear();
    }

    fn say_to_board(&mut self, message: &ToBoard) {
        // What the board does not take is lost.
        let _ = self.gateway.send(message);
    }

    fn say_to_leader(&mut self, message: &ToGateway) {
        // Nor what the leader does not.
        let _ = self.pretender.as_mut().map(|end| end.send(message));
    }

    fn deed(&self) {
        self.deeds.fetch_add(1, Ordering::Relaxed);
    }
}

fn remember<T: Clone>(memory: &mut Vec<T>, message: &T, dice: &mut StdRng) {
    if memory.len() < REMEMBERED {
        memory.push(message.clone());
    } else {
        memory[dice.gen_range(0..REMEMBERED)] = message.clone();
    }
}

fn wall_clock() -> u64 {
    quiver_service::clock::unix_now()
}
