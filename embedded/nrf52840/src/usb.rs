//! USB: two serial ports (CDC-ACM), the first for the link, the second for the console.
//!
//! All of it runs as one task on the interrupt executor, so that the host gets its answers while cryptography
//! runs.

use embassy_futures::join::join3;
use embassy_futures::select::select;
use embassy_nrf::usb::vbus_detect::{self, HardwareVbusDetect};
use embassy_nrf::usb::{self, Driver};
use embassy_nrf::{Peri, interrupt, peripherals};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::pipe::Pipe;
use embassy_sync::signal::Signal;
use embassy_usb::class::cdc_acm::{CdcAcmClass, ControlChanged, Receiver, Sender, State};
use embassy_usb::{Builder, Config};
use static_cell::StaticCell;

/// Bytes of a packet: the most that full speed allows.
pub const PACKET: usize = 64;

/// Vendor and product: pid.codes' numbers for tests, which no product may use. Put your own for boards that
/// you ship.
const VENDOR: u16 = 0x1209;
const PRODUCT: u16 = 0x0001;

type UsbDriver = Driver<'static, HardwareVbusDetect>;

/// A serial port of USB, as seen by the program.
pub struct Function {
    incoming: Pipe<CriticalSectionRawMutex, 2048>,
    outgoing: Pipe<CriticalSectionRawMutex, 2048>,
    opened: Signal<CriticalSectionRawMutex, ()>,
}

/// The link's port.
pub static LINK: Function = Function::new();
/// The console's port.
pub static CONSOLE: Function = Function::new();

impl Function {
    const fn new() -> Self {
        Self { incoming: Pipe::new(), outgoing: Pipe::new(), opened: Signal::new() }
    }

    /// Waits for bytes and takes some. Cancel-safe.
    pub async fn receive(&self, bytes: &mut [u8]) -> usize {
        self.incoming.read(bytes).await
    }

    /// Waits for room and hands over some bytes.
    pub async fn send(&self, bytes: &[u8]) -> usize {
        self.outgoing.write(bytes).await
    }

    /// Waits until a program on the host opens the port. Cancel-safe.
    pub async fn opened(&self) {
        self.opened.wait().await;
    }

    /// Drops output that the host did not read.
    pub fn drop_outgoing(&self) {
        self.outgoing.clear();
    }

    async fn serve(
        &self,
        sender: Sender<'static, UsbDriver>,
        receiver: Receiver<'static, UsbDriver>,
        control: ControlChanged<'static>,
    ) {
        join3(self.inwards(receiver), self.outwards(sender), self.watch(control)).await;
    }

    async fn inwards(&self, mut receiver: Receiver<'static, UsbDriver>) {
        let mut packet = [0; PACKET];
        loop {
            receiver.wait_connection().await;
            while let Ok(len) = receiver.read_packet(&mut packet).await {
                // The endpoint takes nothing more until there is room: the host waits.
                self.incoming.write_all(packet.get(..len).unwrap_or_default()).await;
            }
        }
    }

    async fn outwards(&self, mut sender: Sender<'static, UsbDriver>) {
        let mut packet = [0; PACKET];
        loop {
            sender.wait_connection().await;
            loop {
                let len = self.outgoing.read(&mut packet).await;
                if sender.write_packet(packet.get(..len).unwrap_or_default()).await.is_err() {
                    break;
                }
                // A full packet means that more follows, unless an empty one ends it.
                if len == PACKET && self.outgoing.is_empty() && sender.write_packet(&[]).await.is_err() {
                    break;
                }
            }
            self.outgoing.clear();
        }
    }

    async fn watch(&self, control: ControlChanged<'static>) {
        let mut was = false;
        loop {
            control.control_changed().await;
            let is = control.dtr();
            if is && !was {
                self.opened.signal(());
            }
            was = is;
        }
    }
}

/// Runs USB for ever. `serial` distinguishes boards on the same host; 16 digits.
pub async fn run<I>(
    usbd: Peri<'static, peripherals::USBD>,
    irqs: I,
    product: &'static str,
    serial: &'static str,
) -> !
where
    I: interrupt::typelevel::Binding<interrupt::typelevel::USBD, usb::InterruptHandler<peripherals::USBD>>
        + interrupt::typelevel::Binding<interrupt::typelevel::CLOCK_POWER, vbus_detect::InterruptHandler>
        + Copy
        + 'static,
{
    static DESCRIPTORS: StaticCell<([u8; 256], [u8; 64], [u8; 64])> = StaticCell::new();
    static STATES: StaticCell<(State<'static>, State<'static>)> = StaticCell::new();

    let driver = Driver::new(usbd, irqs, HardwareVbusDetect::new(irqs));
    let (configuration, bos, control) = DESCRIPTORS.init(([0; 256], [0; 64], [0; 64]));
    let (link, console) = STATES.init((State::new(), State::new()));
    let mut builder = Builder::new(driver, config(product, serial), configuration, bos, &mut [], control);
    let link = CdcAcmClass::new(&mut builder, link, PACKET as u16);
    let console = CdcAcmClass::new(&mut builder, console, PACKET as u16);
    let mut device = builder.build();
    let ports = async {
        let (sender, receiver, control) = link.split_with_control();
        let link = LINK.serve(sender, receiver, control);
        let (sender, receiver, control) = console.split_with_control();
        embassy_futures::join::join(link, CONSOLE.serve(sender, receiver, control)).await;
    };
    select(device.run(), ports).await;
    // Neither ends.
    core::future::pending().await
}

fn config(product: &'static str, serial: &'static str) -> Config<'static> {
    let mut config = Config::new(VENDOR, PRODUCT);
    config.manufacturer = Some("Quiver");
    config.product = Some(product);
    config.serial_number = Some(serial);
    config.max_power = 100;
    config.max_packet_size_0 = 64;
    config
}
