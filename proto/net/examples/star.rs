//! Measures a star of full nodes in one process: `star [SPOKES] [memory|plain-memory|tcp|quic] [lean]`.
//!
//! Every spoke is a swarm of its own with one connection to the hub; all machines count messages and do
//! nothing else. With `lean`, identify and ping are off.
#![expect(clippy::print_stdout, reason = "a measurement prints what it measured")]

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quiver_machine::{Destination, Input, Machine, Now, Output, Peer, Route};
use quiver_net::{Driver, Handle, Host, HostError, Multiaddr, NodeConfig, NodeKey, Transport};
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRngCore, SeedableRng};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// What all nodes together have seen.
#[derive(Default)]
struct Tally {
    connected: AtomicUsize,
    received: AtomicUsize,
}

enum Order {
    Shout(Vec<u8>),
    Tell(Vec<u8>),
}

struct Counter {
    tally: Arc<Tally>,
    answers: bool,
    partner: Option<Peer>,
    outputs: VecDeque<Output<(), ()>>,
}

impl Counter {
    fn new(tally: &Arc<Tally>, answers: bool) -> Self {
        Self { tally: tally.clone(), answers, partner: None, outputs: VecDeque::new() }
    }

    fn send(&mut self, to: Destination, payload: Vec<u8>) {
        self.outputs.push_back(Output::Transmit { to, payload });
    }
}

impl Machine for Counter {
    type Command = Order;
    type Event = ();
    type Record = ();

    fn handle_input(&mut self, _: Now, input: Input<'_, Order>, _: &mut dyn CryptoRngCore) {
        match input {
            Input::Connected { peer, route } => {
                self.partner = Some(peer);
                self.outputs.push_back(Output::Relay { peer, allowed: true });
                if route == Route::Leader {
                    self.tally.connected.fetch_add(1, Ordering::SeqCst);
                }
            }
            Input::Received { from, bytes, .. } if self.answers && bytes.first() == Some(&b'?') => {
                self.send(Destination::Peer(from), vec![b'!'; bytes.len()]);
            }
            Input::Received { .. } => {
                self.tally.received.fetch_add(1, Ordering::SeqCst);
            }
            Input::Command(Order::Shout(message)) => self.send(Destination::Group, message),
            Input::Command(Order::Tell(message)) => {
                if let Some(partner) = self.partner {
                    self.send(Destination::Peer(partner), message);
                }
            }
            Input::Timeout | Input::Disconnected { .. } | Input::Resumed => {}
        }
    }

    fn poll_output(&mut self) -> Output<(), ()> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}

struct Deaf;

impl Host<Counter> for Deaf {
    fn persist(&mut self, _: &[()]) -> Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Counter, (): ()) {}
}

fn start(config: &NodeConfig, machine: Counter) -> Result<Handle<Counter>, Box<dyn Error>> {
    let (driver, handle) = Driver::new(config, machine, Deaf, ChaCha20Rng::from_entropy())?;
    tokio::spawn(driver.run(std::future::pending()));
    Ok(handle)
}

async fn until(count: &AtomicUsize, expected: usize, limit: Duration) -> Result<Duration, String> {
    let start = Instant::now();
    while count.load(Ordering::SeqCst) < expected {
        if start.elapsed() > limit {
            return Err(format!("only {} of {expected} after {limit:?}", count.load(Ordering::SeqCst)));
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok(start.elapsed())
}

/// Resident memory in MB.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes / 1024)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let spokes: usize = arguments.next().unwrap_or_else(|| "1000".into()).parse()?;
    let (transport, listen) = match arguments.next().as_deref() {
        None | Some("memory") => (Transport::Memory, "/memory/0"),
        Some("plain-memory") => (Transport::PlainMemory, "/memory/0"),
        Some("tcp") => (Transport::Tcp, "/ip4/127.0.0.1/tcp/0"),
        Some("quic") => (Transport::Quic, "/ip4/127.0.0.1/udp/0/quic-v1"),
        Some(other) => return Err(format!("{other} is none of memory, plain-memory, tcp, quic").into()),
    };
    let lean = arguments.next().as_deref() == Some("lean");
    if transport == Transport::Tcp {
        quiver_net::check_file_limit(2 * spokes as u64 + 64)?;
    }
    measure(spokes, transport, listen.parse()?, lean).await
}

async fn measure(
    spokes: usize,
    transport: Transport,
    listen: Multiaddr,
    lean: bool,
) -> Result<(), Box<dyn Error>> {
    let tally = Arc::new(Tally::default());
    let mut rng = ChaCha20Rng::from_entropy();
    let mut config = NodeConfig::hub(NodeKey::random(&mut rng)?, transport, spokes);
    config.listen.push(listen);
    config.topic = Some(quiver_net::group_topic("star"));
    config.identify = !lean;
    let hub = start(&config, Counter::new(&tally, true))?;
    let address = hub.listening().await?.remove(0);
    let before = resident();

    let permits = Arc::new(Semaphore::new(128));
    let begun = Instant::now();
    let mut handles = Vec::with_capacity(spokes);
    for _ in 0..spokes {
        let mut config = NodeConfig::spoke(NodeKey::random(&mut rng)?, transport);
        config.dial.push((Route::Leader, address.clone()));
        config.topic = Some(quiver_net::group_topic("star"));
        config.dial_permits = Some(permits.clone());
        config.identify = !lean;
        config.ping = config.ping.filter(|_| !lean);
        handles.push(start(&config, Counter::new(&tally, false))?);
    }
    until(&tally.connected, spokes, Duration::from_secs(120)).await?;
    println!("{spokes} spokes over {transport}: connected after {:?}", begun.elapsed());
    sleep(Duration::from_secs(3)).await;
    println!("  resident: {:?} MB before, {:?} MB after", before, resident());

    let mut expected = 0;
    for length in [100, 1000] {
        hub.command(Order::Shout(vec![1; length])).await?;
        expected += spokes;
        let took = until(&tally.received, expected, Duration::from_secs(60)).await?;
        println!("  {length} B from the hub to all: {took:?}");
    }
    if let Some(speaker) = handles.first() {
        speaker.command(Order::Shout(vec![2; 100])).await?;
        expected += spokes;
        let took = until(&tally.received, expected, Duration::from_secs(60)).await?;
        println!("  100 B from a spoke to all: {took:?}");
    }
    let begun = Instant::now();
    for handle in &handles {
        handle.command(Order::Tell(vec![b'?'; 400])).await?;
    }
    expected += spokes;
    until(&tally.received, expected, Duration::from_secs(60)).await?;
    println!("  400 B request and response of all: {:?}", begun.elapsed());
    println!("  resident: {:?} MB; hub sent {} bytes", resident(), hub.metrics().bytes_sent.get());
    Ok(())
}
