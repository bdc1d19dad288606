//! A board with the real firmware, and a KGC, a leader and a gateway as they really are, in virtual time.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quiver_ainq::StrategyKind;
use quiver_firmware::{
    About, Board, DatagramTransport, FrameErrors, Hooks, IndicatorState, Memory, ResetCause, SerialLine, run,
};
use quiver_group::leader::LeaderTiming;
use quiver_test_network::TestNetwork;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{CryptoRng, Error, RngCore, SeedableRng};

use crate::flash::Flash;
use crate::wire::TestWire;
use crate::{meter, time};

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// Pages of the flash region.
const PAGES: usize = 16;

/// State shared with the board's hooks.
#[derive(Clone, Default)]
pub(crate) struct Knobs {
    /// The board asked to start anew.
    reset: Rc<Cell<bool>>,
    /// True while the button is held.
    pub(crate) button: Rc<Cell<bool>>,
    pub(crate) state: Rc<Cell<Option<IndicatorState>>>,
    /// Time of the last watchdog feed, and the longest interval between two.
    fed: Rc<Cell<Duration>>,
    pub(crate) starved: Rc<Cell<Duration>>,
    /// The source of randomness gives the same byte for ever.
    pub(crate) stuck: Rc<Cell<bool>>,
}

impl Hooks for Knobs {
    fn alive(&mut self) {
        self.starved.set(self.starved.get().max(time::now() - self.fed.get()));
        self.fed.set(time::now());
    }

    fn indicate(&mut self, state: IndicatorState) {
        self.state.set(Some(state));
    }

    fn memory(&self) -> Memory {
        Memory { heap_size: Some(65_536), ..Memory::default() }
    }

    async fn wipe_button(&mut self) {
        poll_fn(|_| if self.button.take() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    async fn reset(&mut self) -> ! {
        self.reset.set(true);
        pending().await
    }
}

struct Source {
    rng: ChaCha20Rng,
    stuck: Rc<Cell<bool>>,
}

impl RngCore for Source {
    fn next_u32(&mut self) -> u32 {
        self.rng.next_u32()
    }
    fn next_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.rng.fill_bytes(bytes);
        if self.stuck.get() {
            bytes.fill(0xa5);
        }
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for Source {}

/// A line that carries datagrams of this length.
struct Medium {
    line: SerialLine<TestWire>,
    mtu: usize,
}

impl DatagramTransport for Medium {
    type Error = <SerialLine<TestWire> as DatagramTransport>::Error;

    async fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        self.line.receive(buffer).await
    }

    async fn send(&mut self, datagram: &[u8]) -> Result<(), Self::Error> {
        assert!(datagram.len() <= self.mtu, "longer than the medium takes");
        self.line.send(datagram).await
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn frame_errors(&self) -> FrameErrors {
        self.line.frame_errors()
    }
}

pub(crate) struct World {
    network: TestNetwork,
    pub(crate) wire: TestWire,
    pub(crate) console: TestWire,
    pub(crate) flash: Flash,
    pub(crate) knobs: Knobs,
    board: Option<Running>,
    /// The longest datagram of the board's medium, which is a radio if it is short.
    mtu: usize,
    starts: u64,
    /// The whole output of the console.
    pub(crate) said: String,
}

impl World {
    /// Starts all machines, with a board that is fresh from the factory.
    pub(crate) fn new(seed: u64, strategy: StrategyKind, timing: LeaderTiming) -> Self {
        Self::with_flash(seed, strategy, timing, PAGES)
    }

    /// The same, with a region of so many pages for the state.
    pub(crate) fn with_flash(seed: u64, strategy: StrategyKind, timing: LeaderTiming, pages: usize) -> Self {
        let network = TestNetwork::new(seed, strategy, timing, time::now());
        Self::with_network(seed, network, quiver_link::MAX_DATAGRAM, pages)
    }

    /// A board that is fresh from the factory in this network, on a medium with datagrams of this length.
    pub(crate) fn with_network(seed: u64, network: TestNetwork, mtu: usize, pages: usize) -> Self {
        let mut world = Self {
            network,
            wire: TestWire::new(seed),
            console: TestWire::new(seed),
            flash: Flash::new(pages, seed),
            knobs: Knobs::default(),
            board: None,
            mtu,
            starts: 0,
            said: String::new(),
        };
        world.start_board();
        world
    }

    /// A world whose board is a member.
    pub(crate) fn joined(seed: u64) -> Self {
        let mut world = Self::new(seed, StrategyKind::Flat, LeaderTiming::default());
        world.provision("board-1");
        world.until("a key", |world| world.said.contains("\nkey "));
        world
    }

    pub(crate) fn provision(&mut self, drone: &str) {
        let bytes = self.provisioning(drone).encode();
        self.type_line(&format!("provision {}", hex::encode(&*bytes)));
        self.until("provisioned", |world| world.said.contains("\nprovisioned\n"));
    }

    /// Switches the power on.
    pub(crate) fn start_board(&mut self) {
        self.flash.power_on();
        self.starts += 1;
        let rng = ChaCha20Rng::seed_from_u64(self.rng.next_u64() ^ self.starts);
        self.knobs.fed.set(time::now());
        let board = Board {
            link: Medium { line: SerialLine::new(self.wire.clone()), mtu: self.mtu },
            console: self.console.clone(),
            flash: self.flash.clone(),
            rng: Source { rng, stuck: self.knobs.stuck.clone() },
            hooks: self.knobs.clone(),
            about: About { name: "test", mcu: "host", clock_hz: 1, reset: ResetCause::Power },
        };
        self.board = Some(meter::board(|| -> Running { Box::pin(async move { run(board).await }) }));
    }

    /// Power goes.
    pub(crate) fn stop_board(&mut self) {
        let board = self.board.take();
        meter::board(|| drop(board));
        meter::forget();
        self.console.both().to_board.clear();
        self.wire.both().to_board.clear();
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.console.say(line.as_bytes());
        self.console.say(b"\n");
    }

    /// Adds `count` drones, which enrol and join.
    pub(crate) fn add_companions(&mut self, count: usize) {
        self.network.add_companions(count);
        self.until("all are members", |world| world.companions_agree());
    }

    /// Lets time pass until something holds; within an hour.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let limit = time::now() + Duration::from_secs(3_600);
        while !holds(self) {
            assert!(time::now() < limit, "never: {what}; the console said:\n{}", self.said);
            self.step(limit);
        }
    }

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = time::now() + span;
        while time::now() < end {
            self.step(end);
        }
    }

    /// The newest line of the console of this kind.
    pub(crate) fn last(&self, kind: &str) -> Option<&str> {
        self.said.lines().rfind(|line| line.starts_with(kind))
    }

    /// Handles everything due now; if there is nothing, advances to the next deadline, at most to `end`.
    fn step(&mut self, end: Duration) {
        let mut busy = self.poll_board();
        let heard = self.wire.hear();
        busy |= self.network.work(&heard);
        let said = self.network.take_bytes();
        self.wire.say(&said);
        if busy {
            return;
        }
        let next = self.network.due().unwrap_or(end).min(time::alarm()).min(end);
        time::set(next.max(time::now() + Duration::from_micros(1)));
        self.network.set_time(time::now());
    }

    /// Polls the board; returns true if anything came of it.
    fn poll_board(&mut self) -> bool {
        time::forget_alarms();
        if let Some(board) = &mut self.board {
            let polled = meter::board(|| board.as_mut().poll(&mut Context::from_waker(Waker::noop())));
            assert!(polled.is_pending(), "a board never ends");
        }
        let said = self.console.hear();
        self.said.push_str(&String::from_utf8_lossy(&said));
        let powered = self.flash.chip().powered;
        if self.board.is_some() && (!powered || self.knobs.reset.take()) {
            self.stop_board();
            self.start_board();
            return true;
        }
        !said.is_empty()
    }

    /// The board's epoch, as [`TestNetwork::epoch`] has the leader's.
    pub(crate) fn board_epoch(&self) -> Option<String> {
        let words: Vec<_> = self.last("key ")?.split(' ').collect();
        Some(format!("{} digest {}", words[1], words[5]))
    }

    /// Returns true if the board holds the leader's key.
    pub(crate) fn agree(&self) -> bool {
        self.board_epoch().is_some() && self.board_epoch() == self.epoch()
    }
}

impl Deref for World {
    type Target = TestNetwork;

    fn deref(&self) -> &TestNetwork {
        &self.network
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut TestNetwork {
        &mut self.network
    }
}
