//! A gateway that is somebody else's: it speaks the link on both sides and does as it likes with what it
//! should relay.

use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use quiver_ainq::{Deployment, KemTerm, Ristretto255};
use quiver_kem::KemSet;
use quiver_link::{
    BoardEndpoint, BoardEvent, BoardReport, Destination, EndpointLimits, GatewayEndpoint, GatewayEvent,
    LineDecoder, Route, ToBoard, ToGateway, Via, Wants, encode_line,
};
use quiver_message::{KemOffer, Message};
use quiver_service::deployment_file::KemSetting;
use quiver_service_testing::now;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::deeds::{self, Deck, Deed, Deeds, FATES, Victim};
use crate::stream::write_patiently;

const MAX_MESSAGE: usize = 72 * 1024;
/// Messages remembered, to be said again.
const REMEMBERED: usize = 200;

/// The time between two messages out of thin air.
const BETWEEN_INVENTIONS: Duration = Duration::from_millis(100);

/// Partners that there never were.
const INVENTED: std::ops::Range<u64> = 1000..1003;

/// Behaviour of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Hostile,
    /// An honest one has taken its place, which knows nothing of what it did.
    Replaced,
    /// A gateway that has told the board one last lie, that everybody is gone but a leader that there never
    /// was, while the leader was there, and is honest from then on as if nothing had happened.
    Reformed,
    /// Has every message name another second factor than its sender did, or none, both ways.
    Downgrading(KemSetting),
}

/// A hostile gateway between a board and a leader; gone when dropped.
pub(crate) struct Hostile {
    pub(crate) line: String,
    conduct: Arc<Mutex<Conduct>>,
    deeds: Arc<Mutex<Deeds>>,
    downgraded: Arc<Mutex<BTreeSet<&'static str>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// A gateway of this conduct before a board of this deployment.
    pub(crate) fn between(
        board: &str,
        deployment: Deployment<Ristretto255>,
        conduct: Conduct,
        seed: u64,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let line = format!("tcp:{}", listener.local_addr().expect("address"));
        let (first, conduct) = (conduct, Arc::new(Mutex::new(conduct)));
        let (deeds, downgraded) = (Arc::new(Mutex::new(Deeds::new())), Arc::default());
        let end = Arc::new(AtomicBool::new(false));
        let board = board.trim_start_matches("tcp:").to_string();
        let shared = (conduct.clone(), deeds.clone(), Arc::clone(&downgraded), end.clone());
        let thread = spawn(move || {
            let (leader, _) = listener.accept().expect("the leader's gateway comes");
            let board = TcpStream::connect(board).expect("the board listens");
            let (conduct, deeds, downgraded, end) = shared;
            let downgrade = Downgrade { deployment, downgraded };
            let mut middle = Middle::new((board, leader), first, seed, deeds, downgrade);
            while !end.load(Ordering::Relaxed) {
                let conduct = *conduct.lock().expect("lock");
                if middle.turn(conduct).is_err() {
                    break;
                }
                sleep(Duration::from_millis(2));
            }
        });
        Self { line, conduct, deeds, downgraded, end, thread: Some(thread) }
    }

    pub(crate) fn behave(&self, conduct: Conduct) {
        *self.conduct.lock().expect("lock") = conduct;
    }

    /// Returns true if each deed was done so often to either side, both of which must still be there.
    pub(crate) fn has_done(&self, times: usize) -> bool {
        let thread = self.thread.as_ref().expect("it runs");
        assert!(!thread.is_finished(), "the gateway has ended");
        deeds::each_done(&self.deeds(), times)
    }

    /// Kinds of messages of which it had one name another second factor.
    pub(crate) fn downgraded(&self) -> BTreeSet<&'static str> {
        self.downgraded.lock().expect("lock").clone()
    }

    pub(crate) fn deeds(&self) -> Deeds {
        self.deeds.lock().expect("lock").clone()
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
        write_patiently(&mut self.stream, &frame)
    }
}

struct Middle {
    started: Instant,
    conduct: Conduct,
    board: End,
    leader: End,
    /// Faces the board.
    gateway: GatewayEndpoint,
    /// Faces the leader.
    pretender: Option<BoardEndpoint>,
    /// Connected peers, as the leader's gateway reported.
    peers: HashMap<u64, Route>,
    to_board: Vec<ToBoard>,
    to_leader: Vec<ToGateway>,
    dice: StdRng,
    fates_to_board: Deck<Option<Deed>>,
    fates_to_leader: Deck<Option<Deed>>,
    inventions: Deck<u8>,
    next_invention: Duration,
    deeds: Arc<Mutex<Deeds>>,
    downgrade: Downgrade,
}

/// Has messages name another second factor.
struct Downgrade {
    deployment: Deployment<Ristretto255>,
    downgraded: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Downgrade {
    /// The message with this setting; as it is if it names none.
    fn apply(&self, setting: KemSetting, payload: Vec<u8>) -> Vec<u8> {
        let Ok(mut message) = Message::<Ristretto255>::decode(&self.deployment, &payload) else {
            return payload;
        };
        let set = setting.set();
        let kind = match &mut message {
            Message::JoinHello(hello) => {
                hello.kem = set;
                "hello"
            }
            Message::JoinChallenge(challenge) => {
                challenge.kem = with_set(challenge.kem, set);
                "challenge"
            }
            Message::JoinRequest(request) => {
                // With another key, which is as long as the set says.
                request.kem = set.map(|set| KemOffer::Key { set, key: vec![0; set.key_len()] });
                "request"
            }
            Message::Welcome(welcome) => {
                welcome.header.core.kem = with_set(welcome.header.core.kem, set);
                "welcome"
            }
            Message::Rekey(rekey) => {
                rekey.header.core.kem = with_set(rekey.header.core.kem, set);
                "header"
            }
            _ => return payload,
        };
        self.downgraded.lock().expect("lock").insert(kind);
        message.encode(&self.deployment)
    }
}

fn with_set(term: Option<KemTerm>, set: Option<KemSet>) -> Option<KemTerm> {
    term.zip(set).and_then(|(term, set)| KemTerm::new(set, term.g()).ok())
}

impl Middle {
    fn new(
        (board, leader): (TcpStream, TcpStream),
        conduct: Conduct,
        seed: u64,
        deeds: Arc<Mutex<Deeds>>,
        downgrade: Downgrade,
    ) -> Self {
        Self {
            started: now(),
            conduct,
            board: End::new(board),
            leader: End::new(leader),
            gateway: GatewayEndpoint::new(EndpointLimits::line(MAX_MESSAGE), 1),
            pretender: None,
            peers: HashMap::new(),
            to_board: Vec::new(),
            to_leader: Vec::new(),
            dice: StdRng::seed_from_u64(seed),
            fates_to_board: Deck::new(&FATES, seed + 1),
            fates_to_leader: Deck::new(&FATES, seed + 2),
            inventions: Deck::new(&[0, 1, 2, 3, 4], seed + 3),
            next_invention: Duration::ZERO,
            deeds,
            downgrade,
        }
    }

    fn turn(&mut self, conduct: Conduct) -> std::io::Result<()> {
        let at = self.started.elapsed();
        if conduct != self.conduct && self.can_become(conduct) {
            self.conduct = conduct;
            self.change(conduct);
        }
        let hostile = self.conduct == Conduct::Hostile;
        for datagram in self.board.read()? {
            self.gateway.handle_datagram(at, &datagram);
            while let Some(event) = self.gateway.poll_event() {
                self.handle_board(event, hostile);
            }
        }
        for datagram in self.leader.read()? {
            if let Some(pretender) = &mut self.pretender {
                pretender.handle_datagram(at, &datagram);
            }
            while let Some(event) = self.pretender.as_mut().and_then(BoardEndpoint::poll_event) {
                self.handle_leader(event, hostile);
            }
        }
        self.gateway.handle_timeout(at);
        if let Some(pretender) = &mut self.pretender {
            pretender.handle_timeout(at);
        }
        if hostile && self.next_invention <= at {
            self.next_invention = at + BETWEEN_INVENTIONS;
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

    /// Returns true if this conduct is possible: that everybody is gone is a lie only while the leader is
    /// there, and who has not been told of it yet is told soon.
    fn can_become(&self, conduct: Conduct) -> bool {
        conduct != Conduct::Reformed || self.peers.values().any(|route| *route == Route::Leader)
    }

    fn change(&mut self, conduct: Conduct) {
        match conduct {
            Conduct::Hostile | Conduct::Downgrading(_) => {}
            Conduct::Replaced => {
                self.gateway = GatewayEndpoint::new(EndpointLimits::line(MAX_MESSAGE), self.dice.r#gen());
                self.pretender = None;
            }
            Conduct::Reformed => {
                for peer in self.peers.clone().into_keys().chain(INVENTED) {
                    self.send_to_board(&ToBoard::Disconnected { peer });
                }
                self.send_to_board(&ToBoard::Connected { peer: INVENTED.start, route: Route::Leader });
            }
        }
    }

    fn wrong_time(&mut self) -> u64 {
        [0, 1, wall_clock() - 86_400 * 365, wall_clock()][self.dice.gen_range(0..4)]
    }

    fn handle_board(&mut self, event: GatewayEvent, hostile: bool) {
        let message = match event {
            GatewayEvent::Begun { wants, .. } => return self.pretend(wants),
            GatewayEvent::Wants(wants) => {
                return self.pretender.iter_mut().for_each(|end| end.set_wants(wants.clone()));
            }
            GatewayEvent::Transmit { to, payload } => {
                ToGateway::Transmit { to, payload: self.downgraded(payload) }
            }
            GatewayEvent::Block { peer } => ToGateway::Block { peer },
            GatewayEvent::Report(report) => ToGateway::Report(report),
            GatewayEvent::TakesBroadcasts { max_message } => ToGateway::TakesBroadcasts { max_message },
            GatewayEvent::HasBroadcast { .. } | GatewayEvent::Lost => return,
        };
        remember(&mut self.to_leader, &message, &mut self.dice);
        if !hostile {
            return self.send_to_leader(&message);
        }
        let fate = self.fates_to_leader.deal();
        self.done(Victim::Leader, fate);
        match fate {
            Some(Deed::Drop) => {}
            Some(Deed::Repeat) => {
                self.send_to_leader(&message);
                self.send_to_leader(&message);
            }
            Some(Deed::Alter) => {
                let message = self.altered_for_leader(message);
                self.send_to_leader(&message);
            }
            Some(Deed::Replay) => {
                let old = self.to_leader[self.dice.gen_range(0..self.to_leader.len())].clone();
                self.send_to_leader(&old);
            }
            Some(Deed::Invent) | None => self.send_to_leader(&message),
        }
    }

    fn downgraded(&self, payload: Vec<u8>) -> Vec<u8> {
        match self.conduct {
            Conduct::Downgrading(setting) => self.downgrade.apply(setting, payload),
            _ => payload,
        }
    }

    fn altered_for_leader(&mut self, message: ToGateway) -> ToGateway {
        match message {
            ToGateway::Transmit { to, mut payload } => {
                self.alter(&mut payload);
                ToGateway::Transmit { to, payload }
            }
            ToGateway::Block { peer } => ToGateway::Block { peer: peer + 1 },
            ToGateway::Report(_) => ToGateway::Report(BoardReport::default()),
            ToGateway::TakesBroadcasts { max_message } => {
                ToGateway::TakesBroadcasts { max_message: !max_message }
            }
        }
    }

    fn handle_leader(&mut self, event: BoardEvent, hostile: bool) {
        let message = match event {
            BoardEvent::Connected { peer, route } => {
                self.peers.insert(peer, route);
                ToBoard::Connected { peer, route }
            }
            BoardEvent::Disconnected { peer } => {
                self.peers.remove(&peer);
                ToBoard::Disconnected { peer }
            }
            BoardEvent::Received { from, via, bytes } => {
                ToBoard::Received { from, via, bytes: self.downgraded(bytes) }
            }
            BoardEvent::Begun { .. } | BoardEvent::Time { .. } | BoardEvent::Lost => return,
        };
        remember(&mut self.to_board, &message, &mut self.dice);
        if !hostile {
            return self.send_to_board(&message);
        }
        let fate = self.fates_to_board.deal();
        self.done(Victim::Board, fate);
        match fate {
            Some(Deed::Drop) => {}
            Some(Deed::Repeat) => {
                self.send_to_board(&message);
                self.send_to_board(&message);
            }
            Some(Deed::Alter) => {
                let message = self.altered_for_board(message);
                self.send_to_board(&message);
            }
            Some(Deed::Replay) => {
                let old = self.to_board[self.dice.gen_range(0..self.to_board.len())].clone();
                self.send_to_board(&old);
                self.send_to_board(&message);
            }
            Some(Deed::Invent) | None => self.send_to_board(&message),
        }
    }

    fn altered_for_board(&mut self, message: ToBoard) -> ToBoard {
        match message {
            ToBoard::Received { from, via, mut bytes } => {
                self.alter(&mut bytes);
                ToBoard::Received { from, via, bytes }
            }
            ToBoard::Connected { peer, route: Route::Kgc } => {
                ToBoard::Connected { peer, route: Route::Leader }
            }
            ToBoard::Connected { peer, route: Route::Leader } => {
                ToBoard::Connected { peer, route: Route::Kgc }
            }
            ToBoard::Disconnected { peer } => ToBoard::Disconnected { peer: peer + 1 },
        }
    }

    /// Says something out of thin air, to either side.
    fn invent(&mut self) {
        let (peer, len) = (self.dice.gen_range(0..6), self.dice.gen_range(1..400));
        let bytes: Vec<u8> = (0..len).map(|_| self.dice.r#gen()).collect();
        let kind = self.inventions.deal();
        self.done(if kind < 3 { Victim::Board } else { Victim::Leader }, Some(Deed::Invent));
        match kind {
            0 => {
                let peer = self.dice.gen_range(INVENTED);
                self.send_to_board(&ToBoard::Connected { peer, route: Route::Leader });
            }
            1 => self.send_to_board(&ToBoard::Disconnected { peer }),
            2 => self.send_to_board(&ToBoard::Received { from: peer, via: Via::Peer, bytes }),
            3 => self.send_to_leader(&ToGateway::Transmit { to: Destination::Peer(peer), payload: bytes }),
            _ => self.send_to_leader(&ToGateway::Transmit { to: Destination::Group, payload: bytes }),
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
        let limits =
            EndpointLimits { repeat_after: Duration::from_millis(300), ..EndpointLimits::line(MAX_MESSAGE) };
        // Its own session with the leader begins anew, as the board's does.
        self.pretender = Some(BoardEndpoint::new(limits, self.dice.r#gen(), wants));
        self.peers.clear();
    }

    fn send_to_board(&mut self, message: &ToBoard) {
        // A message that the board does not take is lost.
        let _ = self.gateway.send(message);
    }

    fn send_to_leader(&mut self, message: &ToGateway) {
        // Nor what the leader does not.
        let _ = self.pretender.as_mut().map(|end| end.send(message));
    }

    fn done(&self, victim: Victim, deed: Option<Deed>) {
        if let Some(deed) = deed {
            *self.deeds.lock().expect("lock").entry((victim, deed)).or_default() += 1;
        }
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
