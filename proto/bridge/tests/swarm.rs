//! 250 vehicles and a ground station, each with a bridge, over UDP through a proxy that loses, doubles, reorders
//! and forges: what comes out is what went in, less what the proxy lost.

#[path = "bridge/group.rs"]
#[expect(dead_code, reason = "the other tests' members as well")]
mod group;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quiver_ainq::Ristretto255 as S;
use quiver_datagram::{Config, Datagrams, Event};
use quiver_mavlink::{Frame, batch};
use rand::rngs::{OsRng, StdRng};
use rand::{Rng, SeedableRng};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

use crate::group::{ATTITUDE, COMMAND_LONG, Node, PATIENCE, TestGroup, eventually, flags, port, udp};

/// Number of vehicles: as many as a table of system ids grants.
const VEHICLES: usize = 250;
/// Frames of each in a second, one of them a signed command, and for how many seconds.
const RATE: u32 = 18;
const SECONDS: u32 = 4;
/// Frames below this number introduce everybody to everybody, and are lost if need be.
const FIRST: u32 = 1_000;
/// The last frame of each.
const LAST: u32 = FIRST + RATE * SECONDS;
/// Faults in per cent of datagrams.
const LOSS: u32 = 20;
const DOUBLES: u32 = 10;
const REORDERS: u32 = 15;
const FORGERIES: u32 = 5;
/// Frames between the proxy and the ground station's program: no socket of the system has to drop any.
const IN_FLIGHT: usize = 64;

/// Frames in the order in which they came, and how many of them count.
#[derive(Default)]
struct Log {
    frames: Mutex<Vec<Vec<u8>>>,
    len: AtomicUsize,
}

impl Log {
    fn push(&self, frame: Vec<u8>) {
        let counts = number(&frame) >= FIRST;
        self.frames.lock().unwrap().push(frame);
        self.len.fetch_add(usize::from(counts), Ordering::AcqRel);
    }

    fn contains(&self, frame: &[u8]) -> bool {
        self.frames.lock().unwrap().iter().any(|logged| logged == frame)
    }

    /// Frames that count, sorted.
    fn measured(&self) -> Vec<Vec<u8>> {
        let mut frames = self.frames.lock().unwrap().clone();
        frames.retain(|frame| number(frame) >= FIRST);
        frames.sort_unstable();
        frames
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }
}

/// Record of a proxy.
#[derive(Default)]
struct Record {
    passed: Log,
    lost: Log,
    doubled: AtomicU16,
    reordered: AtomicU16,
    forged: AtomicU16,
}

/// A datagram and the frames in it.
type Opened = (Vec<u8>, Vec<Vec<u8>>);

/// Carries datagrams of vehicles to the ground station, with faults or without.
struct Proxy {
    /// Holds the key, and so knows which frames are in a datagram.
    observer: Datagrams<S>,
    begun: Instant,
    rng: StdRng,
    is_faulty: Arc<AtomicBool>,
    /// A datagram of a vehicle that is to come after its next one.
    late: Vec<Option<Opened>>,
    socket: Arc<UdpSocket>,
    ground: SocketAddr,
    record: Arc<Record>,
    /// Frames that came out at the ground station, and the signal that there are more.
    arrived: Arc<Log>,
    group_state: Arc<Notify>,
}

impl Proxy {
    async fn run(mut self, mut datagrams: mpsc::UnboundedReceiver<(usize, Vec<u8>)>) {
        while let Some((vehicle, datagram)) = datagrams.recv().await {
            let frames = self.open(&datagram);
            let is_faulty = self.is_faulty.load(Ordering::Acquire);
            let late = self.late[vehicle].take();
            let (before, after) = if is_faulty { (None, late) } else { (late, None) };
            if let Some((datagram, frames)) = before {
                self.pass(&datagram, frames).await;
            }
            match is_faulty {
                true => self.harm(vehicle, datagram, frames).await,
                false => self.pass(&datagram, frames).await,
            }
            if let Some((datagram, frames)) = after {
                self.pass(&datagram, frames).await;
            }
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.gen_ratio(percent, 100)
    }

    async fn harm(&mut self, vehicle: usize, datagram: Vec<u8>, frames: Vec<Vec<u8>>) {
        if !frames.is_empty() && self.chance(FORGERIES) {
            // Behind version, slot and number, which stand outside.
            let (mut forged, bit) = (datagram.clone(), self.rng.gen_range(0..8));
            let place = self.rng.gen_range(5..forged.len());
            forged[place] ^= 1 << bit;
            self.record.forged.fetch_add(1, Ordering::Relaxed);
            self.send(&forged).await;
        }
        if self.chance(LOSS) {
            frames.into_iter().for_each(|frame| self.record.lost.push(frame));
        } else if self.chance(REORDERS) {
            self.record.reordered.fetch_add(1, Ordering::Relaxed);
            self.late[vehicle] = Some((datagram, frames));
        } else {
            self.pass(&datagram, frames).await;
            if self.chance(DOUBLES) {
                self.record.doubled.fetch_add(1, Ordering::Relaxed);
                self.send(&datagram).await;
            }
        }
    }

    async fn pass(&self, datagram: &[u8], frames: Vec<Vec<u8>>) {
        frames.into_iter().for_each(|frame| self.record.passed.push(frame));
        self.send(datagram).await;
        let drain = async {
            while self.record.passed.len() > self.arrived.len() + IN_FLIGHT {
                self.group_state.notified().await;
            }
        };
        assert!(timeout(PATIENCE, drain).await.is_ok(), "more is lost than the proxy lost");
    }

    async fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.ground).await.expect("sent");
    }

    /// The frames in a datagram.
    fn open(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let (now, mut frames) = (self.begun.elapsed(), Vec::new());
        self.observer.handle_datagram(now, datagram);
        while let Some(event) = self.observer.poll_event() {
            match event {
                Event::Received { slot, bytes, .. } => {
                    frames.extend(batch::decode(&bytes, system(slot as usize).into()).expect("frames"));
                }
                Event::SignerAnnounced { slot, drone } => {
                    self.observer.allow_signer(now, slot, &drone.handle());
                }
                _ => {}
            }
        }
        frames
    }
}

/// The number in a frame.
fn number(frame: &[u8]) -> u32 {
    let payload = Frame::parse(frame).expect("a frame").payload();
    u32::from_le_bytes(payload[..4].try_into().expect("a number"))
}

fn system(vehicle: usize) -> u8 {
    u8::try_from(vehicle + 1).expect("a system")
}

fn frame(vehicle: usize, number: u32) -> Vec<u8> {
    let message = if number.is_multiple_of(RATE) { &COMMAND_LONG } else { &ATTITUDE };
    message.of(system(vehicle), number)
}

struct Swarm {
    vehicles: Vec<Node>,
    /// Ports of their endpoints, and the program behind all of them.
    endpoints: Vec<u16>,
    program: UdpSocket,
    ground: Node,
    arrived: Arc<Log>,
    record: Arc<Record>,
    is_faulty: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Swarm {
    async fn new() -> Self {
        // The ground station and the observer are members without a system id.
        let (group, mut tasks) = (TestGroup::new(VEHICLES + 2), JoinSet::new());
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("bind"));
        let proxy = socket.local_addr().expect("bound").port();
        let (at, out) = (port(), UdpSocket::bind("127.0.0.1:0").await.expect("bind"));
        let endpoint = format!("udpout:{}", out.local_addr().expect("bound"));
        let ground = group.start(VEHICLES, flags(&[&endpoint], &[&udp(at, proxy)])).await;
        admit(&group, VEHICLES, &ground).await;
        eventually("the ground station's endpoint is open", || ground.links() == 1).await;
        let (arrived, group_state) = (Arc::<Log>::default(), Arc::<Notify>::default());
        tasks.spawn(log(out, Arc::clone(&arrived), Arc::clone(&group_state)));
        let (datagrams, taken) = mpsc::unbounded_channel();
        let (mut vehicles, mut endpoints, mut carriers) = (Vec::new(), Vec::new(), Vec::new());
        for vehicle in 0..VEHICLES {
            let (at, carrier) = (port(), port());
            let proxy = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
            let to = udp(carrier, proxy.local_addr().expect("bound").port());
            let node = group.start(vehicle, flags(&[&format!("udpin:127.0.0.1:{at}")], &[&to])).await;
            tasks.spawn(take(proxy, vehicle, datagrams.clone()));
            vehicles.push(node);
            endpoints.push(at);
            carriers.push(carrier);
        }
        for (vehicle, node) in vehicles.iter().enumerate() {
            admit(&group, vehicle, node).await;
        }
        tasks.spawn(spread(Arc::clone(&socket), carriers));
        let mut observer = Datagrams::new(Config::default(), group.deployment.clone());
        let slot = u32::try_from(VEHICLES + 1).expect("a slot");
        observer.set_epoch(Duration::ZERO, group.keys(VEHICLES + 1, slot), &mut OsRng);
        let (record, is_faulty) = (Arc::<Record>::default(), Arc::<AtomicBool>::default());
        let proxy = Proxy {
            observer,
            begun: Instant::now(),
            rng: StdRng::seed_from_u64(20),
            is_faulty: Arc::clone(&is_faulty),
            late: (0..VEHICLES).map(|_| None).collect(),
            socket,
            ground: ([127, 0, 0, 1], at).into(),
            record: Arc::clone(&record),
            arrived: Arc::clone(&arrived),
            group_state,
        };
        tasks.spawn(proxy.run(taken));
        let program = UdpSocket::bind("127.0.0.1:0").await.expect("bind");
        Self { vehicles, endpoints, program, ground, arrived, record, is_faulty, _tasks: tasks }
    }

    async fn send(&self, vehicle: usize, number: u32) {
        let to = ("127.0.0.1", self.endpoints[vehicle]);
        self.program.send_to(&frame(vehicle, number), to).await.expect("sent");
    }

    /// Sends commands until ground station and observer have taken a signed one of each vehicle, some vehicles
    /// at a time.
    async fn introduce(&self) {
        let is_known = |vehicle: usize, number| {
            let command = frame(vehicle, number);
            self.arrived.contains(&command) && self.record.passed.contains(&command)
        };
        let all: Vec<_> = (0..VEHICLES).collect();
        for some in all.chunks(50) {
            let mut unknown = some.to_vec();
            for number in (0..FIRST).step_by(RATE as usize) {
                for vehicle in &unknown {
                    self.send(*vehicle, number).await;
                }
                let all = || unknown.iter().all(|vehicle| is_known(*vehicle, number));
                let _ = timeout(Duration::from_secs(1), eventually("all are known", all)).await;
                unknown.retain(|vehicle| !is_known(*vehicle, number));
                if unknown.is_empty() {
                    break;
                }
            }
            assert_eq!(unknown, [], "vehicles that are not heard");
        }
    }

    /// Each vehicle sends at its rate, one after the other.
    async fn fly(&self) {
        const SLICES: usize = 10;
        let mut ticks = interval(Duration::from_secs(1) / (RATE * SLICES as u32));
        for number in FIRST..LAST {
            for slice in 0..SLICES {
                ticks.tick().await;
                for vehicle in (slice..VEHICLES).step_by(SLICES) {
                    self.send(vehicle, number).await;
                }
            }
        }
    }

    /// Frames that bridges of vehicles dropped to keep their carrier's pace, as published last.
    fn dropped(&self) -> usize {
        let dropped = |node: &Node| node.datagrams("dropped_telemetry") + node.datagrams("dropped_commands");
        self.vehicles.iter().map(|node| dropped(node) as usize).sum()
    }
}

/// Gives a bridge its key, and the vehicles' system ids.
async fn admit(group: &TestGroup, member: usize, node: &Node) {
    node.epoch_keys.group_state.set_table(group.table(VEHICLES));
    node.epoch_keys.set_keys(Some(group.keys(member, member.try_into().expect("a slot"))), true);
    eventually("the bridge has a key", || {
        let status = node.report.status();
        status.open && status.system_ids == VEHICLES
    })
    .await;
}

/// The ground station's program.
async fn log(socket: UdpSocket, arrived: Arc<Log>, group_state: Arc<Notify>) {
    let mut buffer = [0; 512];
    loop {
        let (len, _) = socket.recv_from(&mut buffer).await.expect("received");
        arrived.push(buffer[..len].to_vec());
        group_state.notify_one();
    }
}

/// Each vehicle has a socket of the proxy's to itself, which can hold all that it sends.
async fn take(socket: UdpSocket, vehicle: usize, datagrams: mpsc::UnboundedSender<(usize, Vec<u8>)>) {
    let mut buffer = [0; 2_048];
    loop {
        let (len, _) = socket.recv_from(&mut buffer).await.expect("received");
        let _ = datagrams.send((vehicle, buffer[..len].to_vec()));
    }
}

/// Sends to all vehicles what the ground station's bridge sends.
async fn spread(socket: Arc<UdpSocket>, carriers: Vec<u16>) {
    let mut buffer = [0; 2_048];
    loop {
        let (len, _) = socket.recv_from(&mut buffer).await.expect("received");
        for carrier in &carriers {
            socket.send_to(&buffer[..len], ("127.0.0.1", *carrier)).await.expect("sent");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_250_vehicles_what_comes_out_is_what_went_in_less_what_the_link_lost() {
    let swarm = Swarm::new().await;
    swarm.introduce().await;
    swarm.is_faulty.store(true, Ordering::Release);
    swarm.fly().await;
    let (record, sent) = (&swarm.record, VEHICLES * (LAST - FIRST) as usize);
    let late = || sent - (record.passed.len() + record.lost.len() + swarm.dropped()).min(sent);
    // Datagrams that are late at the proxy are counted when they pass.
    eventually("the proxy has what did not wait too long", || late() <= VEHICLES).await;
    swarm.is_faulty.store(false, Ordering::Release);
    for vehicle in 0..VEHICLES {
        swarm.send(vehicle, LAST).await;
    }
    let last: Vec<_> = (0..VEHICLES).map(|vehicle| frame(vehicle, LAST)).collect();
    let all = || last.iter().all(|frame| swarm.arrived.contains(frame));
    eventually("the last frames came out", all).await;

    // Bit for bit, each once: nothing else, nothing twice, nothing missing that the proxy let pass.
    let (arrived, passed, lost) =
        (swarm.arrived.measured(), record.passed.measured(), record.lost.measured());
    assert_eq!(arrived.len(), passed.len());
    assert!(arrived == passed, "other frames came out than went in");
    let mut of_vehicles: Vec<_> =
        (0..VEHICLES).flat_map(|vehicle| (FIRST..=LAST).map(move |number| frame(vehicle, number))).collect();
    of_vehicles.sort_unstable();
    assert!(arrived.iter().all(|frame| of_vehicles.binary_search(frame).is_ok()), "forged");
    assert!(arrived.windows(2).all(|pair| pair[0] != pair[1]), "doubled");
    eventually("what the vehicles dropped is published", || {
        of_vehicles.len() == arrived.len() + lost.len() + swarm.dropped()
    })
    .await;

    // And the proxy did what it was for.
    let [doubled, reordered, forged] = [&record.doubled, &record.reordered, &record.forged]
        .map(|number| u64::from(number.load(Ordering::Relaxed)));
    let share = lost.len() * 100 / sent;
    assert!((15..25).contains(&share) && doubled > 100 && reordered > 100, "{share} {doubled} {reordered}");
    eventually("forgeries and doubles are counted", || {
        swarm.ground.datagrams("forged") == forged && swarm.ground.datagrams("replayed") >= doubled
    })
    .await;
    assert!(forged > 100, "{forged}");
    assert_eq!(swarm.ground.report.status().carriers[0].dropped, 0);
}
