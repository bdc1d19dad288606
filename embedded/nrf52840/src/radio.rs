//! The radio, as a task that never waits for cryptography: frames in, frames out, through two bounded queues.

use core::cell::Cell;
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};

use embassy_futures::select::{Either, select};
use embassy_nrf::radio::ieee802154::{Cca, Packet, Radio};
use embassy_nrf::radio::{Error, InterruptHandler};
use embassy_nrf::{Peri, interrupt, pac, peripherals};
use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use embassy_sync::signal::Signal;
use embassy_time::{Duration, Instant, Timer, with_timeout};
use quiver_link::{BROADCAST, MAX_PSDU, RadioFrame};

use crate::bridge::GATEWAY;

/// The channel, 2,475 MHz: above the three usual Wi-Fi channels.
const CHANNEL: u8 = 25;

/// Transmission power in dBm: the most that the nRF52840 has.
const POWER: i8 = 8;

/// Backoff of unslotted CSMA-CA, IEEE 802.15.4-2006 section 7.5.1.4: macMinBE, macMaxBE, macMaxCSMABackoffs,
/// and aUnitBackoffPeriod (20 symbols of 16 µs).
const MIN_EXPONENT: u32 = 3;
const MAX_EXPONENT: u32 = 5;
const MAX_BACKOFFS: u32 = 4;
const BACKOFF_UNIT: Duration = Duration::from_micros(320);

/// Longest time from a frame's length to its end: 127 bytes of 32 µs each and a margin.
const FRAME_TIME: Duration = Duration::from_micros(5_000);

/// A frame: everything between length and checksum.
#[derive(Clone)]
pub struct PhyFrame {
    len: u8,
    bytes: [u8; MAX_PSDU],
}

impl PhyFrame {
    /// A frame of these bytes, or `None` if they are more than [`MAX_PSDU`].
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut frame = Self { len: u8::try_from(bytes.len()).ok()?, bytes: [0; MAX_PSDU] };
        frame.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(frame)
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Counters of the radio since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioCounters {
    /// Frames sent.
    pub sent: u32,
    /// Frames given up because the channel was never clear.
    pub busy: u32,
    /// Frames received and put into the queue.
    pub received: u32,
    /// Frames with a wrong checksum or an impossible length.
    pub bad_crc: u32,
    /// Frames that found the queue full.
    pub dropped: u32,
}

struct Count(AtomicU32);

impl Count {
    const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn up(&self) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1));
    }

    fn value(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

static SENT: Count = Count::new();
static BUSY: Count = Count::new();
static RECEIVED: Count = Count::new();
static BAD_CRC: Count = Count::new();
static DROPPED: Count = Count::new();

/// 24 frames arrive during 100 ms without a pause.
static INCOMING: Channel<CriticalSectionRawMutex, PhyFrame, 24> = Channel::new();
static OUTGOING: Channel<CriticalSectionRawMutex, PhyFrame, 12> = Channel::new();

/// Waits for a frame. Cancel-safe.
pub async fn receive() -> PhyFrame {
    INCOMING.receive().await
}

/// Puts a frame into the queue of those to be sent, once there is room.
pub async fn send(frame: PhyFrame) {
    OUTGOING.send(frame).await;
}

/// Puts a frame into the queue of those to be sent, if there is room.
#[must_use]
pub fn try_send(frame: PhyFrame) -> bool {
    OUTGOING.try_send(frame).is_ok()
}

/// The counters since the start.
#[must_use]
pub fn counters() -> RadioCounters {
    RadioCounters {
        sent: SENT.value(),
        busy: BUSY.value(),
        received: RECEIVED.value(),
        bad_crc: BAD_CRC.value(),
        dropped: DROPPED.value(),
    }
}

/// PAN and address whose frames are received.
static WANTED: Mutex<CriticalSectionRawMutex, Cell<Option<(u16, u16)>>> = Mutex::new(Cell::new(None));
static STARTED: Signal<CriticalSectionRawMutex, ()> = Signal::new();

/// Takes frames of this network for this short address from now on. Until the first call the radio is off.
pub fn listen(network: u16, address: u16) {
    WANTED.lock(|wanted| wanted.set(Some((network, address))));
    STARTED.signal(());
}

fn is_wanted(frame: &[u8]) -> bool {
    let (Some((network, address)), Ok(frame)) = (WANTED.lock(Cell::get), RadioFrame::parse(frame)) else {
        return false;
    };
    // The group's datagrams are for all boards that have its keys, the gateway's broadcasts for all boards; a
    // gateway takes neither.
    let for_all = frame.destination == BROADCAST
        && address != GATEWAY
        && quiver_firmware::is_heard(frame.datagram, frame.source == GATEWAY);
    frame.network == network && (frame.destination == address || for_all)
}

/// Runs the radio for ever, once [`listen`] was called. `seed` only spreads waiting times.
pub async fn run(
    radio: Peri<'static, peripherals::RADIO>,
    irq: impl interrupt::typelevel::Binding<interrupt::typelevel::RADIO, InterruptHandler<peripherals::RADIO>>
    + 'static,
    seed: u32,
) -> ! {
    STARTED.wait().await;
    let mut radio = Radio::new(radio, irq);
    radio.set_channel(CHANNEL);
    radio.set_transmission_power(POWER);
    radio.set_cca(Cca::CarrierSense);
    let mut waits = Waits(seed | 1);
    loop {
        listen_until(&mut radio, None).await;
        if let Ok(frame) = OUTGOING.try_receive() {
            transmit(&mut radio, &frame, &mut waits).await;
        }
    }
}

/// Receives until this moment, or until there is a frame to send. A frame that is on air by then is received
/// to its end: its sender would have to repeat it, and the channel is not clear before.
async fn listen_until(radio: &mut Radio<'_>, end: Option<Instant>) {
    let mut packet = Packet::new();
    let mut ended = pin!(async {
        match end {
            Some(end) => Timer::at(end).await,
            None => OUTGOING.ready_to_receive().await,
        }
    });
    let mut is_over = false;
    while !is_over {
        pac::RADIO.events_framestart().write_value(0);
        let received = {
            let mut receiving = pin!(radio.receive(&mut packet));
            match select(receiving.as_mut(), ended.as_mut()).await {
                Either::First(received) => Some(received),
                Either::Second(()) => {
                    is_over = true;
                    if pac::RADIO.events_framestart().read() == 0 {
                        return;
                    }
                    with_timeout(FRAME_TIME, receiving).await.ok()
                }
            }
        };
        if let Some(received) = received {
            take(received, &packet);
        }
    }
}

fn take(received: Result<(), Error>, packet: &Packet) {
    // The length is what the air delivered. Below 2 it leaves no room for the checksum, and `len`, which
    // takes 2 away, wraps around; above 127 it is no frame of this standard. Both would make `deref` panic.
    if received.is_err() || packet.len() > Packet::CAPACITY {
        BAD_CRC.up();
        return;
    }
    let bytes: &[u8] = packet;
    if !is_wanted(bytes) {
        return;
    }
    let Some(frame) = PhyFrame::new(bytes) else { return };
    match INCOMING.try_send(frame) {
        Ok(()) => RECEIVED.up(),
        Err(_) => DROPPED.up(),
    }
}

async fn transmit(radio: &mut Radio<'_>, frame: &PhyFrame, waits: &mut Waits) {
    let mut packet = Packet::new();
    packet.copy_from_slice(frame.bytes());
    for attempt in 0..=MAX_BACKOFFS {
        let exponent = (MIN_EXPONENT + attempt).min(MAX_EXPONENT);
        listen_until(radio, Some(Instant::now() + BACKOFF_UNIT * waits.below(1 << exponent))).await;
        if radio.try_send(&mut packet).await.is_ok() {
            SENT.up();
            return;
        }
    }
    BUSY.up();
}

/// Waiting times: Marsaglia's xorshift32, which need not be unpredictable.
struct Waits(u32);

impl Waits {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % bound
    }
}
