//! The gateway: forwards datagrams between a serial line and drones by radio. It has no keys and understands
//! nothing of what it passes on.
//!
//! Console: `status`, `network` (prints the network that is served), `network 5155` (serves another, and
//! stores it).

use alloc::format;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::select::{Either4, select4};
use embassy_nrf::nvmc::Nvmc;
use embassy_time::{Duration, Ticker};
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::NorFlash;
use quiver_firmware::Hooks;
use quiver_link::LineDecoder;
use quiver_nrf52840::bridge::{Bridge, DEFAULT_NETWORK, GATEWAY};
use quiver_nrf52840::command::{Command, CommandLine, HELP};
use quiver_nrf52840::hooks::{self, BoardHooks};
use quiver_nrf52840::panel::Show;
use quiver_nrf52840::region::Region;
use quiver_nrf52840::serial::{Serial, overruns};
use quiver_nrf52840::start::{self, Irqs};
use quiver_nrf52840::supply::Monitor;
use quiver_nrf52840::{board, crash, memory, radio, setting, supply, usb};

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    memory::start();
    let crash = crash::take();
    let devices = board::start();
    let cause = board::reset_cause();
    let mut hooks = BoardHooks::new(hooks::watchdog(devices.wdt));
    let supply = Monitor::start(Irqs);
    defmt::info!("gateway on {}: started ({})", board::NAME, cause.as_str());

    start::beside(start::Tasks {
        panel: devices.panel,
        radio: devices.radio,
        usbd: devices.usbd,
        product: "Quiver gateway",
    });

    let uart = start::link_uart(
        devices.uarte0,
        devices.timer1,
        (devices.ppi_ch0, devices.ppi_ch1),
        devices.ppi_group0,
        devices.link_pins,
    );
    let line = Serial::new(uart, &usb::LINK);
    let uart = start::console_uart(
        devices.uarte1,
        devices.timer2,
        (devices.ppi_ch2, devices.ppi_ch3),
        devices.ppi_group1,
        devices.console_pins,
    );
    let mut console = Serial::new(uart, &usb::CONSOLE);

    let (from, to) = memory::state();
    let Some(mut flash) = Region::new(Nvmc::new(devices.nvmc), supply, from, to) else { hooks::restart() };
    let network = setting::load(&mut flash).await.ok().flatten().unwrap_or(DEFAULT_NETWORK);
    radio::listen(network, GATEWAY);
    let _ = console
        .write_all(
            format!("gateway {} network {network:04x} reset {}\r\n", board::NAME, cause.as_str()).as_bytes(),
        )
        .await;
    if let Some(crash) = crash {
        let _ = console.write_all(format!("crash {crash}\r\n").as_bytes()).await;
    }
    hooks::show(Show::Good);
    let gateway = Gateway { line, console, flash, bridge: Bridge::new(network), decoder: LineDecoder::new() };
    gateway.run(&mut hooks).await
}

struct Gateway<F> {
    line: Serial,
    console: Serial,
    flash: F,
    bridge: Bridge,
    decoder: LineDecoder,
}

impl<F: NorFlash> Gateway<F> {
    /// Passes on for ever. The watchdog is fed by nothing else, so that a radio or a line that takes nothing
    /// any more ends in a reset.
    async fn run(mut self, hooks: &mut BoardHooks) -> ! {
        let mut second = Ticker::every(Duration::from_secs(1));
        let mut words = CommandLine::new();
        let (mut bytes, mut keys) = ([0; 256], [0; 64]);
        loop {
            hooks.alive();
            let next = select4(
                self.line.read(&mut bytes),
                radio::receive(),
                self.console.read(&mut keys),
                second.next(),
            )
            .await;
            match next {
                Either4::First(Ok(len)) => self.forward(bytes.get(..len).unwrap_or_default()).await,
                Either4::Second(frame) => {
                    if let Some(frame) = self.bridge.line_frame(frame.bytes()) {
                        let _ = self.line.write_all(&frame).await;
                    }
                }
                Either4::Third(Ok(len)) => {
                    for key in keys.get(..len).unwrap_or_default() {
                        if let Some(command) = words.push(*key) {
                            self.run_command(command).await;
                        }
                    }
                }
                // Lost bytes are counted where they are noticed.
                Either4::First(Err(_)) | Either4::Third(Err(_)) | Either4::Fourth(()) => {}
            }
        }
    }

    async fn forward(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.decoder.next_frame(&mut bytes) {
            let frame = self.bridge.air_frame(frame.address, frame.datagram);
            if let Some(frame) = frame.and_then(|bytes| radio::PhyFrame::new(&bytes)) {
                radio::send(frame).await;
            }
        }
    }

    async fn run_command(&mut self, command: Command) {
        let answer = match command {
            Command::Status => self.status(),
            Command::Network(None) => format!("network {:04x}\r\n", self.bridge.network()),
            Command::Network(Some(network)) => match setting::store(&mut self.flash, network).await {
                Ok(()) => {
                    self.bridge.serve(network);
                    radio::listen(network, GATEWAY);
                    format!("network {network:04x}\r\n")
                }
                Err(_) => "error flash\r\n".into(),
            },
            Command::Other => HELP.into(),
        };
        let _ = self.console.write_all(answer.as_bytes()).await;
    }

    fn status(&self) -> alloc::string::String {
        let (line, air, used) = (self.decoder.counters(), radio::counters(), memory::figures());
        format!(
            "network {:04x}\r\nbridge {}\r\n\
             line frames {} refused {} overruns {}\r\n\
             radio sent {} busy {} received {} bad-crc {} dropped {}\r\n\
             supply warnings {}\r\n\
             memory heap {} of {} stack {} of {}\r\n",
            self.bridge.network(),
            self.bridge.counters(),
            line.frames,
            line.refused(),
            overruns(),
            air.sent,
            air.busy,
            air.received,
            air.bad_crc,
            air.dropped,
            supply::warnings(),
            used.heap_peak.unwrap_or_default(),
            used.heap_size.unwrap_or_default(),
            used.stack_peak.unwrap_or_default(),
            used.stack_size.unwrap_or_default(),
        )
    }
}
