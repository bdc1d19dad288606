//! Initialisation of both images, and the tasks that run beside the thread.

use embassy_executor::InterruptExecutor;
use embassy_nrf::buffered_uarte::{self, BufferedUarte, BufferedUarteRx, BufferedUarteTx};
use embassy_nrf::interrupt::{InterruptExt, Priority};
use embassy_nrf::usb::vbus_detect;
use embassy_nrf::{Peri, bind_interrupts, interrupt, peripherals, radio, uarte, usb};
use static_cell::{ConstStaticCell, StaticCell};

use crate::board::{Panel, UartPins};
use crate::{board, hooks, supply};

bind_interrupts!(
    /// Bindings of interrupts to their handlers.
    pub struct Irqs {
        UARTE0 => buffered_uarte::InterruptHandler<peripherals::UARTE0>;
        UARTE1 => buffered_uarte::InterruptHandler<peripherals::UARTE1>;
        RADIO => radio::InterruptHandler<peripherals::RADIO>;
        USBD => usb::InterruptHandler<peripherals::USBD>;
        CLOCK_POWER => vbus_detect::InterruptHandler, supply::InterruptHandler;
    }
);

static INTERRUPT_EXECUTOR: InterruptExecutor = InterruptExecutor::new();

#[interrupt]
#[allow(unsafe_code, reason = "the executor must be called by its interrupt and by nothing else")]
unsafe fn EGU1_SWI1() {
    // SAFETY: this is the interrupt that `beside` starts the executor with.
    unsafe { INTERRUPT_EXECUTOR.on_interrupt() }
}

/// Devices that the tasks of [`beside`] take over.
pub struct Tasks {
    /// LEDs and button.
    pub panel: Panel,
    /// The radio.
    pub radio: Peri<'static, peripherals::RADIO>,
    /// USB.
    pub usbd: Peri<'static, peripherals::USBD>,
    /// The board's product name in USB.
    pub product: &'static str,
}

/// Starts the tasks that interrupt the thread, so that radio, USB and LEDs go on while cryptography runs.
/// Call it once.
pub fn beside(tasks: Tasks) {
    interrupt::EGU1_SWI1.set_priority(Priority::P6);
    let spawner = INTERRUPT_EXECUTOR.start(interrupt::EGU1_SWI1);
    let id = board::device_id();
    let [a, b, c, d, ..] = id;
    // There is one place for each task, and this is the one time that they are started.
    if let (Ok(panel), Ok(radio), Ok(usb)) = (
        panel_task(tasks.panel),
        radio_task(tasks.radio, u32::from_le_bytes([a, b, c, d])),
        usb_task(tasks.usbd, tasks.product, serial_number(id)),
    ) {
        spawner.spawn(panel);
        spawner.spawn(radio);
        spawner.spawn(usb);
    }
}

#[embassy_executor::task]
async fn radio_task(radio: Peri<'static, peripherals::RADIO>, seed: u32) {
    crate::radio::run(radio, Irqs, seed).await;
}

#[embassy_executor::task]
async fn usb_task(usbd: Peri<'static, peripherals::USBD>, product: &'static str, serial: &'static str) {
    crate::usb::run(usbd, Irqs, product, serial).await;
}

#[embassy_executor::task]
async fn panel_task(panel: Panel) {
    hooks::panel(panel).await;
}

/// 115,200 baud, 8 data bits, no parity, one stop bit, no flow control.
fn settings() -> uarte::Config {
    let mut config = uarte::Config::default();
    config.baudrate = uarte::Baudrate::Baud115200;
    config.parity = uarte::Parity::Excluded;
    config
}

/// The link's UART. Room for 8,192 received bytes: 0.7 s at full speed.
pub fn link_uart(
    uarte: Peri<'static, peripherals::UARTE0>,
    timer: Peri<'static, peripherals::TIMER1>,
    channels: (Peri<'static, peripherals::PPI_CH0>, Peri<'static, peripherals::PPI_CH1>),
    group: Peri<'static, peripherals::PPI_GROUP0>,
    pins: UartPins,
) -> (BufferedUarteRx<'static>, BufferedUarteTx<'static>) {
    static RX: ConstStaticCell<[u8; 8192]> = ConstStaticCell::new([0; 8192]);
    static TX: ConstStaticCell<[u8; 2048]> = ConstStaticCell::new([0; 2048]);
    let (rx, tx) = (RX.take(), TX.take());
    BufferedUarte::new(
        uarte,
        timer,
        channels.0,
        channels.1,
        group,
        pins.rx,
        pins.tx,
        Irqs,
        settings(),
        rx,
        tx,
    )
    .split()
}

/// The console's UART. Room for 2,048 received bytes.
pub fn console_uart(
    uarte: Peri<'static, peripherals::UARTE1>,
    timer: Peri<'static, peripherals::TIMER2>,
    channels: (Peri<'static, peripherals::PPI_CH2>, Peri<'static, peripherals::PPI_CH3>),
    group: Peri<'static, peripherals::PPI_GROUP1>,
    pins: UartPins,
) -> (BufferedUarteRx<'static>, BufferedUarteTx<'static>) {
    static RX: ConstStaticCell<[u8; 2048]> = ConstStaticCell::new([0; 2048]);
    static TX: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);
    let (rx, tx) = (RX.take(), TX.take());
    BufferedUarte::new(
        uarte,
        timer,
        channels.0,
        channels.1,
        group,
        pins.rx,
        pins.tx,
        Irqs,
        settings(),
        rx,
        tx,
    )
    .split()
}

/// The chip's number in 16 hexadecimal digits. Call it once.
fn serial_number(id: [u8; 8]) -> &'static str {
    static DIGITS: StaticCell<[u8; 16]> = StaticCell::new();
    let digits = DIGITS.init([b'0'; 16]);
    for (pair, byte) in digits.chunks_mut(2).zip(id.iter().rev()) {
        for (digit, nibble) in pair.iter_mut().zip([byte >> 4, byte & 0xF]) {
            *digit = if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 };
        }
    }
    core::str::from_utf8(digits).unwrap_or_default()
}
