//! Bounds of the memory that strangers, and members that turn on their group, make a hub hold; memory is
//! counted.

#[expect(dead_code, reason = "the other tests' nodes; few are needed here")]
#[path = "../net/toy.rs"]
mod toy;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cap::Cap;
use futures::{AsyncReadExt as _, AsyncWriteExt as _};
use quiver_machine::{MAX_MESSAGE_LEN, Route};
use quiver_net::{ListeningLimits, Multiaddr, NodeConfig, Transport, UnsentLimits, group_topic};
use quiver_strangers::acts::{nothing, publishes, publishes_wrongly, stalls};
use quiver_strangers::group_frame::{announced, rpc, subscription};
use quiver_strangers::{GROUP, MESSAGES, Stranger, act};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout};

use crate::toy::{Order, PATIENCE, Running, Toy, hub, spoke, start, start_toy, until};

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const MIB: usize = 1 << 20;

/// Tests have their turn one after the other: the allocator counts all of them together.
static TURN: Mutex<()> = Mutex::const_new(());

/// A hub whose machine knows those who say who they are.
struct Bench {
    hub: Running,
    address: Multiaddr,
    before: usize,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    async fn new(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let turn = TURN.lock().await;
        let mut config = hub(Transport::Tcp, 1000);
        change(&mut config);
        let hub = start_toy(&config, Toy::cautious()).unwrap();
        let address = hub.address().await;
        Self { hub, address, before: ALLOCATOR.allocated(), _turn: turn }
    }

    /// A drone that the hub's machine knows.
    async fn drone(&mut self, config: &NodeConfig) -> Running {
        let mut drone = start(config).unwrap();
        drone.connects(Route::Leader).await;
        drone.order(Order::Tell(Route::Leader, b"i am a drone".to_vec())).await;
        self.hub.receives_message(b"i am a drone").await;
        drone
    }

    async fn peers(&self) -> usize {
        self.hub.handle.inspect(|toy| toy.peers.len()).await.unwrap()
    }

    /// Waits until the number of peers is in this range, and until then never more than `most`.
    async fn comes_to(&self, wanted: RangeInclusive<usize>, most: usize) {
        let end = Instant::now() + 2 * PATIENCE;
        loop {
            let peers = self.peers().await;
            assert!(peers <= most, "{peers} of at most {most}");
            if wanted.contains(&peers) {
                return;
            }
            assert!(Instant::now() < end, "{peers} in place of {wanted:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Memory taken since the hub started, at most, for at least so much time and until the flood has come to where it is
    /// to be seen.
    async fn most(&self, time: Duration, flooded: impl Fn() -> bool) -> usize {
        let (begun, mut most) = (Instant::now(), 0);
        while begun.elapsed() < time || !flooded() {
            assert!(begun.elapsed() < 2 * PATIENCE, "the flood does not come");
            most = most.max(ALLOCATOR.allocated().saturating_sub(self.before));
            sleep(Duration::from_millis(10)).await;
        }
        most
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_messages_of_strangers_are_remembered_by_nobody() {
    for (length, at_once) in [(0, 8), (1000, 8), (MAX_MESSAGE_LEN - 100, 1)] {
        let bench = Bench::new(|_| {}).await;
        let sent = Arc::new(AtomicU64::new(0));
        let floods = publishes(group_topic("alpha"), length, at_once, sent.clone());
        let _strangers: Vec<_> =
            (0..2).map(|_| Stranger::start(&bench.address, &[(GROUP, 1, &floods)], true)).collect();
        let ignored = &bench.hub.handle.metrics().group_ignored;
        let flooded = || sent.load(Ordering::Relaxed) > 200_000 && ignored.get() > 3;
        let most = bench.most(Duration::from_secs(4), flooded).await;
        assert!(most < 24 * MIB, "{most} bytes for messages of {length}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_another_topic_are_garbage_and_remembered_by_nobody() {
    let bench = Bench::new(|_| {}).await;
    let floods = publishes("x".into(), 0, 8, Arc::default());
    let strangers: Vec<_> =
        (0..4).map(|_| Stranger::start(&bench.address, &[(GROUP, 1, &floods)], true)).collect();
    let metrics = bench.hub.handle.metrics();
    let kind = quiver_net::Misconduct { kind: "garbage" };
    // They are penalised, and in the end their address.
    let penalised =
        || metrics.penalties.get_or_create(&kind).get() >= 16 && metrics.connections_refused.get() > 0;
    let most = bench.most(Duration::from_secs(4), penalised).await;
    drop(strangers);
    assert!(most < 16 * MIB, "{most} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_group_messages_are_garbage() {
    let bench = Bench::new(|_| {}).await;
    let floods = publishes_wrongly("x".into(), 8);
    let mut stranger = Stranger::start(&bench.address, &[(GROUP, 1, &floods)], false);
    stranger.connects().await;
    let kind = quiver_net::Misconduct { kind: "garbage" };
    let penalties = bench.hub.handle.metrics().penalties.get_or_create(&kind).clone();
    until("it is penalised", || penalties.get() > 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_messages_of_members_are_remembered_within_a_bound() {
    let mut bench = Bench::new(|config| {
        config.limits.group_memory = 4 * MIB;
        config.limits.group_rate = quiver_net::Rate { messages: u32::MAX, bytes: u32::MAX, burst: 10 };
    })
    .await;
    let introduces_itself = act(|mut stream| async move {
        let message = b"i am a member";
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let _ = stream.write_all(&[&length[..], &[0; 16], message].concat()).await;
        let _ = stream.close().await;
        let _ = stream.read(&mut [0]).await;
    });
    let sent = Arc::new(AtomicU64::new(0));
    let floods = publishes(group_topic("alpha"), 0, 8, sent.clone());
    let streams = [(MESSAGES, 1, &introduces_itself), (GROUP, 1, &floods)];
    let begun = Instant::now();
    let _member = Stranger::start(&bench.address, &streams, false);
    bench.hub.receives_message(b"i am a member").await;
    let metrics = bench.hub.handle.metrics();
    let flooded = || sent.load(Ordering::Relaxed) > 200_000 && metrics.group_throttled.get() > 1000;
    let most = bench.most(Duration::from_secs(5), flooded).await;
    assert!(most < 24 * MIB, "{most} bytes");
    // As many as there is room for, and no more. What is older than ten seconds makes room.
    let (relayed, rooms) = (metrics.group_relayed.get(), 1 + begun.elapsed().as_secs() / 10);
    assert!(relayed <= rooms * 4 * MIB as u64 / 512, "{relayed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_read_nothing_have_nothing_queued_for_them() {
    let mut bench = Bench::new(|_| {}).await;
    let mut member = bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
    let topic = group_topic("alpha");
    let subscribes = act(move |mut stream| {
        let bytes = rpc(&[subscription(&topic)]);
        async move {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            std::future::pending::<()>().await;
        }
    });
    let mut strangers: Vec<_> =
        (0..16).map(|_| Stranger::start(&bench.address, &[(GROUP, 1, &subscribes)], false)).collect();
    for stranger in &mut strangers {
        stranger.connects().await;
    }
    sleep(Duration::from_millis(500)).await;
    let before = ALLOCATOR.allocated();
    for number in 0..64_u8 {
        bench.hub.order(Order::Shout(vec![number; 200_000])).await;
        member.receives_message(&vec![number; 200_000]).await;
    }
    let grown = ALLOCATOR.allocated().saturating_sub(before);
    assert!(grown < 16 * MIB, "{grown} bytes");
}

/// A node that has subscribed to the group's messages and reads nothing any more.
struct Frozen {
    there: std::sync::mpsc::Receiver<()>,
    /// Dropped to end it.
    _ends: std::sync::mpsc::Sender<()>,
}

impl Frozen {
    fn start(config: NodeConfig) -> Self {
        let (there, is_there) = std::sync::mpsc::channel();
        let (ends, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut node = start(&config).unwrap();
                node.connects(Route::Leader).await;
                sleep(Duration::from_millis(500)).await;
                there.send(()).unwrap();
                // It blocks the thread of all its tasks.
                let _: Result<(), _> = end.recv();
            });
        });
        Self { there: is_there, _ends: ends }
    }

    fn is_there(&self) {
        self.there.recv_timeout(Duration::from_secs(20)).expect("it has subscribed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_listen_and_read_nothing_cost_bounded_bytes_and_keep_nothing_from_others() {
    let mut bench = Bench::new(|config| {
        config.strangers_listen = true;
        config.limits.listening = ListeningLimits { each: MIB, all: 4 * MIB };
    })
    .await;
    let mut member = bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
    let mut listener = start(&spoke(Transport::Tcp, &bench.address)).unwrap();
    listener.connects(Route::Leader).await;
    let frozen: Vec<_> = (0..12).map(|_| Frozen::start(spoke(Transport::Tcp, &bench.address))).collect();
    frozen.iter().for_each(Frozen::is_there);
    let before = ALLOCATOR.allocated();
    let mut most = 0;
    for number in 0..48_u8 {
        bench.hub.order(Order::Shout(vec![number; 200_000])).await;
        for drone in [&mut member, &mut listener] {
            drone.receives_message(&vec![number; 200_000]).await;
        }
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
    }
    let metrics = bench.hub.handle.metrics();
    assert_eq!(metrics.group_listeners_dropped.get(), 12, "those that read nothing, and nobody else");
    assert!(most < 12 * MIB, "{most} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_that_ask_and_take_no_answer_hold_bounded_bytes_and_keep_nothing_from_drones() {
    let mut bench = Bench::new(|config| {
        config.limits.unsent = UnsentLimits { free: 4096, each: MIB / 2, strangers: MIB };
    })
    .await;
    let mut drone = bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
    let length = 300_000;
    let asks = act(move |mut stream| async move {
        let announced = u32::try_from(length).unwrap().to_be_bytes();
        let message = [b"ask".to_vec(), vec![5; length - 3]].concat();
        let _ = stream.write_all(&[&announced[..], &[0; 16], &message].concat()).await;
        let _ = stream.flush().await;
        std::future::pending::<()>().await;
    });
    let _strangers: Vec<_> =
        (0..4).map(|_| Stranger::start(&bench.address, &[(MESSAGES, 4, &asks)], false)).collect();
    // Each may hold one answer, and all of them three, of 16. None is taken whole.
    let dropped = bench.hub.handle.metrics().dropped.clone();
    until("answers are dropped", || dropped.get() >= 8).await;
    let long = [b"ask".to_vec(), vec![6; MAX_MESSAGE_LEN - 100]].concat();
    drone.order(Order::Tell(Route::Leader, long)).await;
    drone.receives_message(&[b"answer".to_vec(), vec![6; MAX_MESSAGE_LEN - 100]].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stranger_that_listens_has_taken_is_counted_to_the_byte() {
    let bench = Bench::new(|config| {
        config.strangers_listen = true;
        config.limits.listening = ListeningLimits { each: 16 << 10, all: MIB };
    })
    .await;
    let mut listener = start(&spoke(Transport::Tcp, &bench.address)).unwrap();
    listener.connects(Route::Leader).await;
    // Its subscription comes after it.
    let listens = async {
        while listener.events().is_empty() {
            bench.hub.order(Order::Shout(b"anybody there?".to_vec())).await;
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, listens).await.expect("it listens");
    for number in 0..1000_u32 {
        // Lengths of one and of two bytes.
        let message = [number.to_be_bytes().to_vec(), vec![7; number as usize % 300]].concat();
        bench.hub.order(Order::Shout(message.clone())).await;
        listener.receives_message(&message).await;
    }
    assert_eq!(bench.hub.handle.metrics().group_listeners_dropped.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_strangers_keep_no_proven_drone_out() {
    let mut bench = Bench::new(|config| config.limits.inbound = 24).await;
    let config = spoke(Transport::Tcp, &bench.address);
    let drone = bench.drone(&config).await;
    let mut strangers = Vec::new();
    for _ in 0..60 {
        strangers.push(Stranger::start(&bench.address, &[(MESSAGES, 0, &nothing())], true));
    }
    bench.comes_to(10..=24 + 8, 24 + 8).await;
    for _ in 0..30 {
        assert!(bench.peers().await <= 24 + 8, "{}", bench.peers().await);
        sleep(Duration::from_millis(100)).await;
    }
    drone.kill().await;
    sleep(Duration::from_secs(2)).await;
    let mut again = start(&config).unwrap();
    again.connects(Route::Leader).await;
    again.order(Order::Tell(Route::Leader, b"i am back".to_vec())).await;
    bench.hub.receives_message(b"i am back").await;
    // The peer that made room is on its way out: then there are no more than places.
    bench.comes_to(0..=24, usize::MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_of_one_address_are_few_and_have_their_places_for_a_while() {
    let lifetime = Duration::from_secs(4);
    let mut bench = Bench::new(|config| {
        config.limits.strangers_per_address = 5;
        config.limits.stranger_lifetime = Some(lifetime);
    })
    .await;
    let mut drone = bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
    let begun = Instant::now();
    let strangers: Vec<_> =
        (0..30).map(|_| Stranger::start(&bench.address, &[(MESSAGES, 0, &nothing())], false)).collect();
    // Five strangers and the drone; then the drone alone.
    bench.comes_to(6..=6, 6).await;
    bench.comes_to(1..=1, 6).await;
    assert!(begun.elapsed() >= lifetime, "{:?}", begun.elapsed());
    until("all are gone", || strangers.iter().all(|stranger| !stranger.is_connected())).await;
    bench.comes_to(1..=1, 6).await;
    assert!(bench.hub.handle.metrics().connections_displaced.get() >= 5);
    drone.order(Order::Tell(Route::Leader, b"ask whether i am still here".to_vec())).await;
    drone.receives_message(b"answer whether i am still here").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_never_end_take_bounded_memory_and_keep_none_out() {
    let mut bench = Bench::new(|config| config.limits.strangers_per_address = 16).await;
    let mut drone = bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
    let metrics = bench.hub.handle.metrics().clone();
    let before = ALLOCATOR.allocated();
    // Memory that the strangers hold themselves: a frame for each stream, and what waits in their own connections.
    let (strangers, streams) = (16, 8);
    let own = strangers * streams * (MAX_MESSAGE_LEN + 300 * 1024);
    let _strangers: Vec<_> = (0..strangers)
        .map(|_| Stranger::start(&bench.address, &[(MESSAGES, streams, &stalls(MAX_MESSAGE_LEN))], false))
        .collect();
    let mut most = 0;
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        most = most.max(ALLOCATOR.allocated().saturating_sub(before));
        sleep(Duration::from_millis(50)).await;
    }
    // Long messages of drones pass meanwhile.
    let long = [b"ask".to_vec(), vec![5; MAX_MESSAGE_LEN - 100]].concat();
    drone.order(Order::Tell(Route::Leader, long.clone())).await;
    bench.hub.receives_message(&long).await;
    drone.receives_message(&[b"answer".to_vec(), vec![5; MAX_MESSAGE_LEN - 100]].concat()).await;
    assert_eq!(metrics.refused.get(), 0);
    assert!(most < own + 24 * MIB, "{most} bytes, of which the strangers' own are {own}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_streams_and_group_messages_that_never_end_take_bounded_memory() {
    for (protocol, streams) in [(MESSAGES, 60), (GROUP, 1)] {
        let mut bench = Bench::new(|config| config.limits.strangers_per_address = 16).await;
        let received = Arc::new(AtomicU64::new(0));
        let sends = {
            let received = received.clone();
            act(move |mut stream| {
                let received = received.clone();
                async move {
                    let announcement = match protocol {
                        GROUP => announced(MAX_MESSAGE_LEN),
                        _ => [vec![0, 0x0f, 0xff, 0xff], vec![7; 16]].concat(),
                    };
                    let _ = stream.write_all(&announcement).await;
                    let piece = [7; 4096];
                    for _ in 0..(MAX_MESSAGE_LEN / piece.len()).saturating_sub(1) {
                        if stream.write_all(&piece).await.is_err() || stream.flush().await.is_err() {
                            return;
                        }
                        received.fetch_add(piece.len() as u64, Ordering::Relaxed);
                    }
                    let _ = stream.read(&mut [0]).await;
                }
            })
        };
        let mut strangers: Vec<_> =
            (0..16).map(|_| Stranger::start(&bench.address, &[(protocol, streams, &sends)], true)).collect();
        strangers[0].connects().await;
        let most = bench.most(Duration::from_secs(6), || received.load(Ordering::Relaxed) > 100_000).await;
        // Short messages of whoever comes pass meanwhile, if it has a place.
        strangers.truncate(15);
        bench.drone(&spoke(Transport::Tcp, &bench.address)).await;
        // With what waits in the strangers' own connections.
        assert!(most < 112 * MIB, "{most} bytes over {protocol}");
    }
}
