//! A board in this process: the edge's machine at one end of a byte stream, as the firmware drives it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use quiver_ainq::{Deployment, IssuedToken, Name, Ristretto255};
use quiver_group::edge::{EdgeStatus, EdgeTiming};
use quiver_group::{Edge, EdgeCommand, EdgeConfig, EdgeEvent};
use quiver_link::{BoardEndpoint, BoardEvent, EndpointLimits, LineDecoder, ToGateway, Wants, encode_line};
use quiver_machine::{Destination, Input, Machine, Now, Output, Route, Snapshot, Via};
use quiver_service::deployment_file::KemSetting;
use quiver_service_testing::{eventually, now};
use rand::Rng;
use rand::rngs::OsRng;

use crate::partners::Partners;
use crate::stream::write_patiently;

/// The longest message a board takes in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024;

/// Maximum duration of a board's reaction to a gateway's attacks.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit {
    /// A session that does not get it what it wants, at first.
    pub(crate) session: Duration,
    /// A message that the gateway does not take.
    pub(crate) message: Duration,
    /// Time without a leader's answer before it asks.
    pub(crate) probe: Duration,
    /// Time without a leader's answer before it counts as not served: there may be no such leader.
    pub(crate) answer: Duration,
}

impl TimeLimit {
    /// The firmware's, but that a session gets a third of it, so that tests end.
    pub(crate) const LONG: Self = Self {
        session: Duration::from_secs(60),
        message: Duration::from_secs(40),
        probe: Duration::from_secs(300),
        answer: Duration::from_secs(420),
    };
    /// Limits for a bad line, on which a session is soon worth beginning anew.
    pub(crate) const NOISY: Self =
        Self { session: Duration::from_secs(5), message: Duration::from_secs(5), ..Self::LONG };
    pub(crate) const SHORT: Self = Self {
        session: Duration::from_secs(2),
        message: Duration::from_secs(40),
        probe: Duration::from_secs(5),
        answer: Duration::from_secs(12),
    };
}

/// Parts of a board that outlive its power.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) deployment: Deployment<Ristretto255>,
    /// Second factor that its deployment file says.
    pub(crate) kem: KemSetting,
    /// Token to enrol with, encoded.
    pub(crate) token: Vec<u8>,
    pub(crate) group: &'static str,
    /// No time before this is believed.
    pub(crate) floor: u64,
    pub(crate) patience: TimeLimit,
}

/// Events of a board since it was made, through all of its starts.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) flash: Option<Snapshot>,
    pub(crate) status: Option<EdgeStatus>,
    /// The epochs activated: term, counter, digest in hexadecimal.
    pub(crate) keys: Vec<((u64, u64), String)>,
    /// Messages to the group, with the number of the start that heard them.
    pub(crate) heard: Vec<(u32, String)>,
    pub(crate) offences: usize,
    pub(crate) sessions: usize,
    /// The latest time believed.
    pub(crate) time: u64,
    pub(crate) frames_refused: u64,
    /// Number of times that its line was opened.
    pub(crate) lines: usize,
}

/// A running board. Its power is cut when dropped.
pub(crate) struct Board {
    pub(crate) line: String,
    pub(crate) seen: Arc<Mutex<Seen>>,
    listener: TcpListener,
    parts: Parts,
    power: Option<(Arc<AtomicBool>, mpsc::Sender<EdgeCommand>, JoinHandle<()>)>,
    /// True if its line is to be dropped.
    hang_up: Arc<AtomicBool>,
}

impl Board {
    /// A board that waits for its gateway on a port of its own.
    pub(crate) fn new(parts: Parts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.set_nonblocking(true).expect("nonblocking");
        let line = format!("tcp:{}", listener.local_addr().expect("address"));
        let mut board =
            Self { line, seen: Arc::default(), listener, parts, power: None, hang_up: Arc::default() };
        board.power_on();
        board
    }

    pub(crate) fn power_on(&mut self) {
        let (on, (sender, commands)) = (Arc::new(AtomicBool::new(true)), mpsc::channel());
        let listener = self.listener.try_clone().expect("clone");
        let (seen, parts, power) = (self.seen.clone(), self.parts.clone(), on.clone());
        let hang_up = self.hang_up.clone();
        let thread =
            spawn(move || Running::new(parts, seen, commands).run(&power, &hang_up, || open(&listener)));
        self.power = Some((on, sender, thread));
    }

    /// Cuts the power.
    pub(crate) fn power_off(&mut self) {
        if let Some((on, _, thread)) = self.power.take() {
            on.store(false, Ordering::Relaxed);
            thread.join().expect("the board does not panic");
        }
    }

    /// Closes the line, and waits until it is opened again.
    pub(crate) fn hang_up(&self) {
        let lines = self.seen().lines;
        self.hang_up.store(true, Ordering::Relaxed);
        eventually("the line is opened again", || (self.seen().lines > lines).then_some(()));
    }

    pub(crate) fn say(&self, words: &str) {
        let channel = Name::new("chat").expect("name");
        let command = EdgeCommand::Send { channel, data: words.as_bytes().to_vec(), signed: true };
        let (_, commands, _) = self.power.as_ref().expect("power");
        commands.send(command).expect("it runs");
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("the board does not panic")
    }

    /// Waits until it holds this epoch's key or a later one's, and knows that it is current.
    pub(crate) fn synced(&self, epoch: (u64, u64)) -> EdgeStatus {
        eventually(&format!("{} in sync with {epoch:?}", self.line), || {
            let status = self.seen().status.clone()?;
            let held = status.epoch.map(|held| (held.term, held.counter))?;
            (status.synced && held >= epoch).then_some(status)
        })
    }

    /// Waits until it has heard these words.
    pub(crate) fn hears(&self, words: &str) {
        eventually(&format!("{} hears {words}", self.line), || {
            self.seen().heard.iter().any(|(_, heard)| heard == words).then_some(())
        });
    }

    /// The digests of the epochs it has held.
    pub(crate) fn digests(&self) -> BTreeMap<(u64, u64), String> {
        self.seen().keys.iter().cloned().collect()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.power_off();
    }
}

fn open(listener: &TcpListener) -> Option<std::net::TcpStream> {
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(true).expect("nonblocking");
    stream.set_nodelay(true).expect("nodelay");
    Some(stream)
}

/// One start of a board.
pub(crate) struct Running {
    parts: Parts,
    seen: Arc<Mutex<Seen>>,
    commands: mpsc::Receiver<EdgeCommand>,
    edge: Edge<Ristretto255>,
    endpoint: BoardEndpoint,
    decoder: LineDecoder,
    started: Instant,
    /// The time told, and when.
    told: (u64, Instant),
    deadline: Option<Duration>,
    enrolled: bool,
    boot: u32,
    partners: Partners,
}

impl Running {
    pub(crate) fn new(parts: Parts, seen: Arc<Mutex<Seen>>, commands: mpsc::Receiver<EdgeCommand>) -> Self {
        let flash = seen.lock().expect("lock").flash.clone();
        let config = EdgeConfig {
            timing: EdgeTiming {
                retry: Duration::from_millis(500),
                retry_max: Duration::from_secs(3),
                probe: Some(parts.patience.probe),
                ..EdgeTiming::default()
            },
            ..EdgeConfig::new(
                parts.deployment.clone(),
                Some(Name::new(parts.group).expect("name")),
                Some(IssuedToken::decode(&parts.token).expect("token")),
            )
        };
        let edge = Edge::new(config, flash.as_ref()).expect("restore").with_kem(parts.kem);
        let enrolled = edge.status().name.is_some();
        let wants = Wants::new(Some(parts.group), !enrolled).expect("wants");
        let boot = OsRng.r#gen();
        let limits = EndpointLimits {
            repeat_after: Duration::from_millis(300),
            patience: parts.patience.session,
            give_up_after: parts.patience.message,
            ..EndpointLimits::line(MAX_MESSAGE)
        };
        let (endpoint, decoder) = (BoardEndpoint::new(limits, boot, wants), LineDecoder::new());
        let (started, told, deadline) = (now(), (parts.floor, now()), None);
        let partners = Partners::default();
        Self {
            parts,
            seen,
            commands,
            edge,
            endpoint,
            decoder,
            started,
            told,
            deadline,
            enrolled,
            boot,
            partners,
        }
    }

    /// Runs until the power is cut.
    pub(crate) fn run<S: Read + Write>(
        mut self,
        power: &AtomicBool,
        hang_up: &AtomicBool,
        mut open: impl FnMut() -> Option<S>,
    ) {
        let mut line = None;
        self.input(Input::Timeout);
        while power.load(Ordering::Relaxed) {
            if hang_up.swap(false, Ordering::Relaxed) {
                line = None;
            }
            // A new connection takes the place of one that may be dead.
            if let Some(opened) = open() {
                line = Some(opened);
                self.seen.lock().expect("lock").lines += 1;
            }
            let busy = match &mut line {
                Some(stream) => match self.exchange(stream) {
                    Ok(busy) => busy,
                    Err(_) => {
                        line = None;
                        true
                    }
                },
                None => false,
            };
            self.attend();
            if !busy {
                sleep(Duration::from_millis(2));
            }
        }
    }

    /// Reads and writes what there is; whether there was something.
    fn exchange(&mut self, line: &mut (impl Read + Write)) -> std::io::Result<bool> {
        let mut chunk = [0; 512];
        let read = match line.read(&mut chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let mut bytes = &chunk[..read];
        let mut datagrams = Vec::new();
        while let Some(frame) = self.decoder.next_frame(&mut bytes) {
            if frame.address == 0 {
                datagrams.push(frame.datagram.to_vec());
            }
        }
        for datagram in datagrams {
            self.endpoint.handle_datagram(self.elapsed(), &datagram);
            self.take_events();
        }
        let mut wrote = false;
        while let Some(datagram) = self.endpoint.poll_datagram(self.elapsed()) {
            let frame = encode_line(0, &datagram).expect("it fits");
            write_patiently(line, &frame)?;
            wrote = true;
        }
        Ok(read > 0 || wrote)
    }

    fn attend(&mut self) {
        self.endpoint.handle_timeout(self.elapsed());
        self.take_events();
        while let Ok(command) = self.commands.try_recv() {
            self.input(Input::Command(command));
        }
        if self.deadline.is_some_and(|at| at <= self.elapsed()) {
            self.input(Input::Timeout);
        }
        let status = self.edge.status();
        let patience = self.parts.patience.answer;
        let answered = status.answered.is_some_and(|at| self.elapsed().saturating_sub(at) < patience);
        let follows = status.synced && self.partners.has(Route::Leader) && answered;
        self.endpoint.set_served(self.elapsed(), status.name.is_some() && follows);
        let mut seen = self.seen.lock().expect("lock");
        seen.status = Some(status);
        seen.frames_refused = self.decoder.counters().refused();
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Never before the floor, and never back within a start.
    fn unix(&self) -> u64 {
        self.told.0 + self.told.1.elapsed().as_secs()
    }

    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                BoardEvent::Begun { unix_time } => {
                    self.seen.lock().expect("lock").sessions += 1;
                    self.set_clock(unix_time);
                }
                BoardEvent::Time { unix_time } => self.set_clock(unix_time),
                BoardEvent::Connected { peer, route } => {
                    let route = match route {
                        quiver_link::Route::Kgc => Route::Kgc,
                        quiver_link::Route::Leader => Route::Leader,
                    };
                    if let Some(peer) = self.partners.connected(peer, route) {
                        self.input(Input::Connected { peer, route });
                    }
                }
                BoardEvent::Disconnected { peer } => {
                    if let Some(peer) = self.partners.disconnected(peer) {
                        self.input(Input::Disconnected { peer });
                    }
                }
                BoardEvent::Received { from, via, bytes } => {
                    let via = match via {
                        quiver_link::Via::Peer => Via::Peer,
                        quiver_link::Via::Group => Via::Group,
                    };
                    if let Some(from) = self.partners.peer(from) {
                        self.input(Input::Received { from, via, bytes: &bytes });
                    }
                }
                BoardEvent::Lost => {
                    while let Some(peer) = self.partners.pop() {
                        self.input(Input::Disconnected { peer });
                    }
                }
            }
        }
    }

    fn set_clock(&mut self, unix_time: u64) {
        if unix_time > self.unix() {
            self.told = (unix_time, now());
        }
        self.seen.lock().expect("lock").time = self.unix();
    }

    fn input(&mut self, input: Input<'_, EdgeCommand>) {
        let at = Now { monotonic: self.elapsed(), unix: self.unix() };
        self.edge.handle_input(at, input, &mut OsRng);
        loop {
            match self.edge.poll_output() {
                Output::Persist(snapshot) => self.seen.lock().expect("lock").flash = Some(snapshot),
                Output::Transmit { to, payload } => {
                    let to = match to {
                        Destination::Peer(peer) => {
                            self.partners.number(peer).map(quiver_link::Destination::Peer)
                        }
                        Destination::Group => Some(quiver_link::Destination::Group),
                    };
                    // A message that cannot be sent is lost, as on any network.
                    let _ = to.map(|to| self.endpoint.send(&ToGateway::Transmit { to, payload }));
                }
                Output::Event(event) => self.note(event),
                Output::Relay { .. } | Output::Penalize { .. } | Output::Disconnect(_) => {}
                Output::Block(peer) => {
                    let number = self.partners.number(peer);
                    let _ = number.map(|peer| self.endpoint.send(&ToGateway::Block { peer }));
                }
                Output::Timeout(at) => {
                    self.deadline = at;
                    break;
                }
            }
        }
        if !self.enrolled && self.edge.status().name.is_some() {
            self.enrolled = true;
            self.endpoint.set_wants(Wants::new(Some(self.parts.group), false).expect("wants"));
        }
    }

    fn note(&self, event: EdgeEvent) {
        let mut seen = self.seen.lock().expect("lock");
        match event {
            EdgeEvent::KeyActivated { epoch, digest, .. } => {
                seen.keys.push(((epoch.term, epoch.counter), hex::encode(digest)));
            }
            EdgeEvent::Message { data, .. } => {
                seen.heard.push((self.boot, String::from_utf8(data.to_vec()).expect("utf-8")));
            }
            EdgeEvent::Blamed { .. } => seen.offences += 1,
            _ => {}
        }
    }
}
