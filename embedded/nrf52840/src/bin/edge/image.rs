//! The edge drone: link over UART, USB or radio, console over UART or USB, keys in flash.

extern crate alloc;

use alloc::format;

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_nrf::nvmc::Nvmc;
use embassy_nrf::rng::Rng;
use embassy_time::{Duration, with_timeout};
use embedded_io_async::Write;
use quiver_firmware::{About, Board, SerialLine};
use quiver_nrf52840::hooks::{self, BoardHooks};
use quiver_nrf52840::medium::BoardMedium;
use quiver_nrf52840::noise::Noise;
use quiver_nrf52840::region::Region;
use quiver_nrf52840::serial::Serial;
use quiver_nrf52840::start::{self, Irqs};
use quiver_nrf52840::supply::Monitor;
use quiver_nrf52840::{board, crash, memory, usb};

#[embassy_executor::main]
async fn main(_spawner: Spawner) {
    memory::start();
    let crash = crash::take();
    let devices = board::start();
    let reset = board::reset_cause();
    let hooks = BoardHooks::new(hooks::watchdog(devices.wdt));
    let supply = Monitor::start(Irqs);
    defmt::info!("edge on {}: started ({})", board::NAME, reset.as_str());
    start::beside(start::Tasks {
        panel: devices.panel,
        radio: devices.radio,
        usbd: devices.usbd,
        product: "Quiver edge",
    });

    let link = Serial::new(
        start::link_uart(
            devices.uarte0,
            devices.timer1,
            (devices.ppi_ch0, devices.ppi_ch1),
            devices.ppi_group0,
            devices.link_pins,
        ),
        &usb::LINK,
    );
    let mut console = Serial::new(
        start::console_uart(
            devices.uarte1,
            devices.timer2,
            (devices.ppi_ch2, devices.ppi_ch3),
            devices.ppi_group1,
            devices.console_pins,
        ),
        &usb::CONSOLE,
    );
    if let Some(crash) = crash {
        let text = format!("crash {crash}\n");
        let _ = with_timeout(Duration::from_millis(500), console.write_all(text.as_bytes())).await;
    }

    let (from, to) = memory::state();
    // The linker script defines it, and its pages are whole.
    let Some(flash) = Region::new(Nvmc::new(devices.nvmc), supply, from, to) else { hooks::restart() };
    let about = About { name: board::NAME, mcu: "nRF52840", clock_hz: board::CLOCK_HZ, reset };
    let rng = Noise::new(Rng::new_blocking(devices.rng));
    let link = BoardMedium::new(SerialLine::new(link));
    quiver_firmware::run(Board { link, console, flash, rng, hooks, about }).await
}
