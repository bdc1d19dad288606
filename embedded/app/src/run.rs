//! The event loop: carries input of link, console and button to the node, and the node's output to them.

use core::time::Duration;

use embassy_futures::select::{Either4, select4};
use embassy_time::{Instant, Timer, with_timeout};
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::MultiwriteNorFlash;
use rand_core::CryptoRngCore;

use crate::node::BoardEdgeNode;
use crate::parts::{BoardPart, image_parts};
use crate::storage::Storage;
use crate::{Board, DatagramTransport, Hooks, IndicatorState};

/// The watchdog is fed at least as often.
const IDLE: Duration = Duration::from_secs(1);
/// Time limit for sending one datagram. Beyond, it is lost.
const SENDING: embassy_time::Duration = embassy_time::Duration::from_secs(1);
/// Time limit for writing one piece of text to the console. Beyond, nobody reads there, and nothing is
/// written until something is typed.
const WRITING: embassy_time::Duration = embassy_time::Duration::from_millis(500);
/// Bytes written to the console at once.
const PIECE: usize = 64;
/// Datagrams sent in a row before other work.
const BURST: usize = 8;
/// Pause after a device's error.
const PAUSE: embassy_time::Duration = embassy_time::Duration::from_millis(50);
/// Bytes read from the console at once.
const TYPED: usize = 64;

/// Runs a board. Feeds the watchdog while it makes progress.
pub async fn run<L, C, F, R, H>(board: Board<L, C, F, R, H>) -> !
where
    L: DatagramTransport,
    C: Read + Write,
    F: MultiwriteNorFlash,
    R: CryptoRngCore,
    H: Hooks,
{
    let Board { link, console, flash, rng, mut hooks, about } = board;
    let storage = match Storage::new(flash) {
        Ok(storage) => storage,
        Err(error) => report_unusable_flash(console, hooks, &error).await,
    };
    hooks.alive();
    let node = BoardEdgeNode::new(about, storage, rng, link.mtu(), image_parts());
    let buffer = alloc::vec![0; link.mtu()];
    let mut event_loop = EventLoop {
        link,
        console,
        hooks,
        node,
        buffer,
        typed: [0; TYPED],
        listened: true,
        console_first: false,
    };
    let mut shown = None;
    loop {
        event_loop.hooks.alive();
        event_loop.node.work(now(), &mut event_loop.hooks).await;
        if let Some(address) = event_loop.node.moved.take() {
            event_loop.link.set_address(address);
            event_loop.buffer = alloc::vec![0; event_loop.link.mtu()];
            event_loop.node.use_mtu(now(), event_loop.link.mtu()).await;
        }
        let state = event_loop.node.state(now());
        if shown.replace(state) != Some(state) {
            event_loop.hooks.indicate(state);
        }
        let more = event_loop.send().await;
        event_loop.print().await;
        if event_loop.node.must_reset {
            event_loop.hooks.reset().await;
        }
        event_loop.wait(more).await;
    }
}

/// The time since the start.
fn now() -> Duration {
    Duration::from_micros(Instant::now().as_micros())
}

/// Runs an image whose flash region cannot be used: it reports that for ever.
async fn report_unusable_flash(
    mut console: impl Write,
    mut hooks: impl Hooks,
    error: &crate::StorageError,
) -> ! {
    let text = alloc::format!("fault {error}\n");
    loop {
        hooks.alive();
        hooks.indicate(IndicatorState::Fault);
        let _ = with_timeout(WRITING, console.write_all(text.as_bytes())).await;
        Timer::after_secs(1).await;
    }
}

/// The node among its devices.
struct EventLoop<L, C, F, R, H, P: BoardPart> {
    link: L,
    console: C,
    hooks: H,
    node: alloc::boxed::Box<BoardEdgeNode<F, R, P>>,
    buffer: alloc::vec::Vec<u8>,
    typed: [u8; TYPED],
    /// True if a reader seems to be on the console.
    listened: bool,
    /// True if the console is served first if both have something.
    console_first: bool,
}

/// Event that woke the board.
enum BoardWakeup<E, F> {
    Link(Result<Option<usize>, E>),
    Console(Result<usize, F>),
    Button,
    Time,
}

impl<L, C, F, R, H, P> EventLoop<L, C, F, R, H, P>
where
    L: DatagramTransport,
    C: Read + Write,
    F: MultiwriteNorFlash,
    R: CryptoRngCore,
    H: Hooks,
    P: BoardPart,
{
    /// Sends what there is to send; true if there is more.
    async fn send(&mut self) -> bool {
        for _ in 0..BURST {
            // A datagram that is not sent is lost, as any may be.
            let _ = if let Some(datagram) = self.node.poll_datagram(now) {
                with_timeout(SENDING, self.link.send(&datagram)).await
            } else if let Some(datagram) = self.node.poll_broadcast(now) {
                with_timeout(SENDING, self.link.broadcast(&datagram)).await
            } else {
                return false;
            };
            self.hooks.alive();
        }
        true
    }

    /// Writes to the console what there is.
    async fn print(&mut self) {
        let text = self.node.board.console.take();
        for piece in text.as_bytes().chunks(PIECE) {
            if !self.listened {
                return;
            }
            self.listened = matches!(with_timeout(WRITING, self.console.write_all(piece)).await, Ok(Ok(())));
            self.hooks.alive();
        }
        if !text.is_empty() {
            self.listened = matches!(with_timeout(WRITING, self.console.flush()).await, Ok(Ok(())));
        }
    }

    /// Waits for something, and hands it to the node.
    async fn wait(&mut self, more: bool) {
        let at = now();
        let idle = at.saturating_add(IDLE);
        let due = if more { at } else { self.node.due(at).map_or(idle, |due| due.min(idle)) };
        self.console_first = !self.console_first;
        let woken = self.next(due).await;
        self.node.frame_errors = self.link.frame_errors();
        let at = now();
        match woken {
            BoardWakeup::Time | BoardWakeup::Link(Ok(None)) => {}
            BoardWakeup::Link(Ok(Some(len))) => {
                let datagram = self.buffer.get(..len).unwrap_or_default();
                self.node.handle_datagram(at, datagram);
            }
            BoardWakeup::Console(Ok(len)) if len > 0 => {
                self.listened = true;
                let typed = self.typed.get(..len).unwrap_or_default();
                self.node.handle_typed(at, typed, &mut self.hooks).await;
            }
            // A device that fails is left alone for a while.
            BoardWakeup::Link(Err(_)) | BoardWakeup::Console(_) => Timer::after(PAUSE).await,
            BoardWakeup::Button => self.node.wipe().await,
        }
    }

    async fn next(&mut self, due: Duration) -> BoardWakeup<L::Error, C::Error> {
        let due = Timer::at(Instant::from_micros(u64::try_from(due.as_micros()).unwrap_or(u64::MAX)));
        let link = self.link.receive(&mut self.buffer);
        let console = self.console.read(&mut self.typed);
        let button = self.hooks.wipe_button();
        if self.console_first {
            match select4(console, link, button, due).await {
                Either4::First(read) => BoardWakeup::Console(read),
                Either4::Second(received) => BoardWakeup::Link(received),
                Either4::Third(()) => BoardWakeup::Button,
                Either4::Fourth(()) => BoardWakeup::Time,
            }
        } else {
            match select4(link, console, button, due).await {
                Either4::First(received) => BoardWakeup::Link(received),
                Either4::Second(read) => BoardWakeup::Console(read),
                Either4::Third(()) => BoardWakeup::Button,
                Either4::Fourth(()) => BoardWakeup::Time,
            }
        }
    }
}
