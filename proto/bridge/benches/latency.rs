//! Benchmark of the time that a frame spends on its way through two bridges, beside the same frames through
//! two programs that forward UDP and do nothing else.
//!
//! A program sends ATTITUDE (40 bytes) to an endpoint, the bridge behind it a datagram over UDP to the other
//! bridge, and that the frame to the other program: three sockets away, as through the forwarders. Blocks of both
//! take turns. The difference of their percentiles is what sealing, opening, routing and counting add.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../tests/bridge/group.rs"]
#[expect(dead_code, reason = "the tests' members; few are needed here")]
mod group;

use std::net::UdpSocket as StdUdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::runtime::Runtime;

use crate::group::{ATTITUDE, Node, TestGroup, flags, port, udp};

/// 250 vehicles with 18 frames a second each.
const RATE: u32 = 4_500;
/// Frames of a block, and blocks of either way.
const BLOCK: u32 = 2 * RATE;
const BLOCKS: usize = 10;
/// Rate and frames without `--bench`, that is in a test, which shows that the benchmark works.
const TRIAL: (u32, usize) = (450, 1);
/// Time after which what has not come is lost.
const LOST: Duration = Duration::from_secs(1);

/// A way from one program to another.
struct Way {
    name: &'static str,
    /// Port that frames enter by, and the socket at which they come out.
    into: u16,
    out: StdUdpSocket,
    latencies: Vec<Duration>,
    lost: usize,
}

impl Way {
    fn new(name: &'static str, into: u16, out: u16) -> Self {
        let out = StdUdpSocket::bind(("127.0.0.1", out)).expect("bind");
        out.set_read_timeout(Some(LOST)).expect("timeout");
        Self { name, into, out, latencies: Vec::new(), lost: 0 }
    }

    /// Sends a block at an even pace, and takes the time of each frame.
    fn measure(&mut self, frames: u32, keep: bool) {
        let begun = Instant::now();
        let sent: Arc<[AtomicU64]> = (0..frames).map(|_| AtomicU64::new(0)).collect();
        let (times, into) = (Arc::clone(&sent), self.into);
        let sender = thread::spawn(move || send(begun, into, &times));
        let (mut buffer, mut received) = ([0; 512], 0);
        while received < frames
            && let Ok(len) = self.out.recv(&mut buffer)
        {
            let now = begun.elapsed();
            assert_eq!(len, 40, "{}: not the frame that was sent", self.name);
            let number = u32::from_le_bytes(buffer[10..14].try_into().expect("four bytes"));
            let at = sent.get(number as usize).expect("a frame of this block").load(Ordering::Acquire);
            received += 1;
            if keep {
                self.latencies.push(now.saturating_sub(Duration::from_nanos(at)));
            }
        }
        sender.join().expect("sent");
        self.lost += if keep { (frames - received) as usize } else { 0 };
    }

    /// Time that this number of a thousand did not exceed.
    fn percentile(&self, per_mille: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * per_mille / 1_000).copied().unwrap_or_default()
    }
}

fn send(begun: Instant, into: u16, times: &[AtomicU64]) {
    let socket = StdUdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.connect(("127.0.0.1", into)).expect("connect");
    for (number, time) in (0..).zip(times) {
        let due = Duration::from_secs(1) * number / RATE;
        // A frame that is late follows at once.
        thread::sleep(due.saturating_sub(begun.elapsed()));
        let frame = ATTITUDE.of(1, number);
        time.store(begun.elapsed().as_nanos().try_into().expect("soon"), Ordering::Release);
        socket.send(&frame).expect("send");
    }
}

/// Receives on one port and sends to another.
async fn forward(socket: UdpSocket, to: u16) {
    let mut buffer = [0; 2_048];
    loop {
        let (len, _) = socket.recv_from(&mut buffer).await.expect("received");
        socket.send_to(&buffer[..len], ("127.0.0.1", to)).await.expect("sent");
    }
}

/// Two bridges, the first of which takes frames at a port, and the second of which sends them to another.
fn bridges(runtime: &Runtime, (into, out): (u16, u16)) -> [Node; 2] {
    let (group, ports) = (TestGroup::new(2), [port(), port()]);
    let vehicle = flags(&[&format!("udpin:127.0.0.1:{into}")], &[&udp(ports[0], ports[1])]);
    let ground = flags(&[&format!("udpout:127.0.0.1:{out}")], &[&udp(ports[1], ports[0])]);
    runtime.block_on(async { [group.open(0, vehicle).await, group.open(1, ground).await] })
}

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (frames, blocks) = if is_bench { (BLOCK, BLOCKS) } else { TRIAL };
    let runtime = Runtime::new().expect("a runtime");
    let ([into, out], [plain_in, between, plain_out]) = ([port(), port()], [port(), port(), port()]);
    let nodes = bridges(&runtime, (into, out));
    for (from, to) in [(plain_in, between), (between, plain_out)] {
        let socket = runtime.block_on(UdpSocket::bind(("127.0.0.1", from))).expect("bind");
        runtime.spawn(forward(socket, to));
    }
    let mut ways = [Way::new("UDP", plain_in, plain_out), Way::new("bridges", into, out)];
    for block in 0..=blocks {
        for way in &mut ways {
            // In the first, everybody gets to know everybody.
            way.measure(frames, block > 0);
        }
    }
    for way in &mut ways {
        way.latencies.sort_unstable();
        assert!(!way.latencies.is_empty(), "{}: nothing came out", way.name);
        print!("{:8} {} frames, {} lost:", way.name, way.latencies.len(), way.lost);
        for (name, per_mille) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
            print!("  {name} {:.3} ms", way.percentile(per_mille).as_secs_f64() * 1e3);
        }
        println!();
    }
    let [plain, bridged] = &ways;
    for (name, per_mille) in [("p50", 500), ("p99", 990)] {
        let added = bridged.percentile(per_mille).as_secs_f64() - plain.percentile(per_mille).as_secs_f64();
        println!("added, {name}: {:.3} ms", added * 1e3);
    }
    drop(nodes);
}
