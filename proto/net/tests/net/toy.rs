//! A machine that does what it is told, and a host that remembers what it heard.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_machine::{Destination, Input, Machine, Misdeed, Now, Output, Peer, Route};
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NetError, NodeConfig, NodeKey, Transport};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, SeedableRng};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Command of a toy.
#[derive(Debug)]
pub(crate) enum Order {
    /// Send to the first peer of this route.
    Tell(Route, Vec<u8>),
    /// Send to everyone who is connected.
    TellAll(Vec<u8>),
    /// Publish to the group.
    Shout(Vec<u8>),
    /// Persist a record, then send it to the first peer of this route.
    Record(Route, Vec<u8>),
    /// Wake up after this long.
    Alarm(Duration),
}

/// Event of a toy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToyEvent {
    Connected(Peer, Route),
    Disconnected(Peer),
    Message(Peer, Vec<u8>),
    Alarm,
}

/// Answers `ask…` with `answer…`, blocks the sender of `block me`, penalises the sender of `penalize me`,
/// passes on the group messages of all but the senders of `do not know me`, knows the sender of `i am …`,
/// reports everything. A cautious one passes on those alone whom it knows.
#[derive(Default)]
pub(crate) struct Toy {
    cautious: bool,
    pub(crate) peers: Vec<(Peer, Route)>,
    pub(crate) inputs: usize,
    names: BTreeMap<Peer, String>,
    now: Duration,
    alarm: Option<Duration>,
    outputs: VecDeque<Output<ToyEvent, Vec<u8>>>,
}

impl Toy {
    #[allow(dead_code, reason = "not all tests have strangers")]
    pub(crate) fn cautious() -> Self {
        Self { cautious: true, ..Self::default() }
    }

    fn send(&mut self, to: Destination, payload: Vec<u8>) {
        self.outputs.push_back(Output::Transmit { to, payload });
    }

    fn first(&self, wanted: Route) -> Option<Peer> {
        self.peers.iter().find(|(_, route)| *route == wanted).map(|(peer, _)| *peer)
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Tell(route, message) => {
                let to = self.first(route).expect("connected");
                self.send(Destination::Peer(to), message);
            }
            Order::TellAll(message) => {
                for (peer, _) in self.peers.clone() {
                    self.send(Destination::Peer(peer), message.clone());
                }
            }
            Order::Shout(message) => self.send(Destination::Group, message),
            Order::Record(route, record) => {
                self.outputs.push_back(Output::Persist(record.clone()));
                self.obey(Order::Tell(route, record));
            }
            Order::Alarm(after) => self.alarm = Some(self.now + after),
        }
    }

    fn receive(&mut self, from: Peer, bytes: &[u8]) {
        self.outputs.push_back(Output::Event(ToyEvent::Message(from, bytes.to_vec())));
        if let Some(question) = bytes.strip_prefix(b"ask") {
            self.send(Destination::Peer(from), [b"answer", question].concat());
        }
        if let Some(name) = bytes.strip_prefix(b"i am ") {
            self.names.insert(from, String::from_utf8_lossy(name).into_owned());
            if self.cautious {
                self.outputs.push_back(Output::Relay { peer: from, allowed: true });
            }
        }
        if bytes == b"do not know me" {
            self.outputs.push_back(Output::Relay { peer: from, allowed: false });
        }
        if bytes == b"penalize me" {
            self.outputs.push_back(Output::Penalize { peer: from, misdeed: Misdeed::Forgery });
        }
        if bytes == b"block me" {
            for word in [b"because", b"of it..", b"go away"] {
                self.send(Destination::Peer(from), word.to_vec());
            }
            self.outputs.push_back(Output::Block(from));
        }
    }
}

impl Machine for Toy {
    type Command = Order;
    type Event = ToyEvent;
    type Record = Vec<u8>;

    fn handle_input(&mut self, now: Now, input: Input<'_, Order>, _: &mut dyn CryptoRngCore) {
        self.now = now.monotonic;
        self.inputs += 1;
        match input {
            Input::Timeout => {
                if self.alarm.is_some_and(|at| at <= now.monotonic) {
                    self.alarm = None;
                    self.outputs.push_back(Output::Event(ToyEvent::Alarm));
                }
            }
            Input::Connected { peer, route } => {
                self.peers.push((peer, route));
                if !self.cautious {
                    self.outputs.push_back(Output::Relay { peer, allowed: true });
                }
                self.outputs.push_back(Output::Event(ToyEvent::Connected(peer, route)));
            }
            Input::Disconnected { peer } => {
                self.peers.retain(|(other, _)| *other != peer);
                self.outputs.push_back(Output::Event(ToyEvent::Disconnected(peer)));
            }
            Input::Received { from, bytes, .. } => self.receive(from, bytes),
            Input::Resumed => {}
            Input::Command(order) => self.obey(order),
        }
    }

    fn poll_output(&mut self) -> Output<ToyEvent, Vec<u8>> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.alarm))
    }
}

/// A host whose disk can be filled.
pub(crate) struct Recorder {
    events: mpsc::UnboundedSender<ToyEvent>,
    pub(crate) disk: Arc<Disk>,
    connections: Connections,
}

/// Events of connections that the driver told the host.
type Connections = Arc<Mutex<Vec<ToyEvent>>>;

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) full: AtomicBool,
    pub(crate) records: Mutex<Vec<Vec<u8>>>,
}

impl Host<Toy> for Recorder {
    fn persist(&mut self, records: &[Vec<u8>]) -> Result<(), HostError> {
        if self.disk.full.load(Ordering::SeqCst) {
            return Err("no space left on device".into());
        }
        self.disk.records.lock().unwrap().extend_from_slice(records);
        Ok(())
    }

    fn event(&mut self, _: &Toy, event: ToyEvent) {
        // The test may have stopped listening.
        let _ = self.events.send(event);
    }

    fn connected(&mut self, peer: Peer, route: Route, _: &str) {
        self.connections.lock().unwrap().push(ToyEvent::Connected(peer, route));
    }

    fn disconnected(&mut self, peer: Peer) {
        self.connections.lock().unwrap().push(ToyEvent::Disconnected(peer));
    }

    fn drone(&mut self, machine: &Toy, peer: Peer) -> Option<String> {
        machine.names.get(&peer).cloned()
    }
}

/// A running toy.
pub(crate) struct Running {
    pub(crate) handle: Handle<Toy>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) connections: Connections,
    events: mpsc::UnboundedReceiver<ToyEvent>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), NetError>>,
}

/// Maximum duration of anything in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until this holds. A machine with other work takes its time: whatever takes place in the end is waited for.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(2 * PATIENCE, wait).await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}

pub(crate) fn key(seed: u8) -> NodeKey {
    NodeKey::from_seed([seed; 32]).unwrap()
}

pub(crate) fn random_key() -> NodeKey {
    NodeKey::random(&mut ChaCha20Rng::from_entropy()).unwrap()
}

pub(crate) fn start(config: &NodeConfig) -> Result<Running, NetError> {
    start_toy(config, Toy::default())
}

pub(crate) fn start_toy(config: &NodeConfig, toy: Toy) -> Result<Running, NetError> {
    let (sender, events) = mpsc::unbounded_channel();
    let disk = Arc::new(Disk::default());
    let connections = Connections::default();
    let recorder = Recorder { events: sender, disk: disk.clone(), connections: connections.clone() };
    let (driver, handle) = Driver::new(config, toy, recorder, ChaCha20Rng::from_seed([0; 32]))?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(driver.run(async move {
        // A dropped sender stops as well.
        let _ = stopped.await;
    }));
    Ok(Running { handle, disk, connections, events, stop: Some(stop), task })
}

impl Running {
    pub(crate) async fn order(&self, order: Order) {
        self.handle.command(order).await.unwrap();
    }

    /// The next event that is one of those wanted.
    pub(crate) async fn receives<T>(&mut self, what: &str, wanted: impl Fn(&ToyEvent) -> Option<T>) -> T {
        let next = async {
            loop {
                let event = self.events.recv().await.expect("the node runs");
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, next).await.unwrap_or_else(|_| panic!("did not hear {what} in time"))
    }

    pub(crate) async fn receives_message(&mut self, expected: &[u8]) -> Peer {
        let what = format!("{expected:?}").chars().take(60).collect::<String>();
        self.receives(&what, |event| match event {
            ToyEvent::Message(from, bytes) if bytes == expected => Some(*from),
            _ => None,
        })
        .await
    }

    pub(crate) async fn connects(&mut self, wanted: Route) -> Peer {
        self.receives("a connection", |event| match event {
            ToyEvent::Connected(peer, route) if *route == wanted => Some(*peer),
            _ => None,
        })
        .await
    }

    pub(crate) async fn disconnects(&mut self) -> Peer {
        self.receives("a disconnection", |event| match event {
            ToyEvent::Disconnected(peer) => Some(*peer),
            _ => None,
        })
        .await
    }

    /// Events received so far and not taken yet.
    pub(crate) fn events(&mut self) -> Vec<ToyEvent> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }

    pub(crate) async fn address(&self) -> Multiaddr {
        timeout(PATIENCE, self.handle.listening()).await.unwrap().unwrap().remove(0)
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        timeout(PATIENCE, self.task).await.expect("it stops").unwrap().unwrap();
    }

    /// Kills the node, like a crash.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

pub(crate) fn listen_address(transport: Transport) -> Multiaddr {
    match transport {
        Transport::Memory | Transport::PlainMemory => "/memory/0",
        Transport::Quic => "/ip4/127.0.0.1/udp/0/quic-v1",
        Transport::Tcp | Transport::TcpAndQuic => "/ip4/127.0.0.1/tcp/0",
    }
    .parse()
    .unwrap()
}

pub(crate) fn hub(transport: Transport, members: usize) -> NodeConfig {
    let mut config = NodeConfig::hub(random_key(), transport, members);
    config.listen.push(listen_address(transport));
    config.topic = Some(quiver_net::group_topic("alpha"));
    config
}

pub(crate) fn spoke(transport: Transport, leader: &Multiaddr) -> NodeConfig {
    let mut config = NodeConfig::spoke(random_key(), transport);
    config.dial.push((Route::Leader, leader.clone()));
    config.topic = Some(quiver_net::group_topic("alpha"));
    config
}

/// A hub and a spoke, connected.
pub(crate) async fn pair(transport: Transport) -> (Running, Running) {
    let mut leader = start(&hub(transport, 10)).unwrap();
    let mut edge = start(&spoke(transport, &leader.address().await)).unwrap();
    edge.connects(Route::Leader).await;
    leader.connects(Route::Inbound).await;
    (leader, edge)
}
