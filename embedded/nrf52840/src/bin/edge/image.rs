//! The edge drone: link and console over UART or USB, link by radio, keys in flash.

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_nrf::nvmc::Nvmc;
use embassy_nrf::rng::Rng;
use embedded_io_async::{Read, Write};
use embedded_storage_async::nor_flash::ReadNorFlash;
use quiver_firmware::{Hooks, State};
use quiver_nrf52840::entropy::Random;
use quiver_nrf52840::hooks::{self, BoardHooks};
use quiver_nrf52840::noise::{Fresh, Noise};
use quiver_nrf52840::region::Region;
use quiver_nrf52840::serial::Serial;
use quiver_nrf52840::start::{self, Irqs};
use quiver_nrf52840::supply::Monitor;
use quiver_nrf52840::{board, crash, memory, usb};
use rand_core::RngCore;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    memory::start();
    let crash = crash::take();
    let devices = board::start();
    let cause = board::reset_cause();
    let mut hooks = BoardHooks::new(hooks::watchdog(devices.wdt));
    let supply = Monitor::start(Irqs);
    defmt::info!("{}: started ({})", board::NAME, cause.as_str());

    let beside = start::beside();
    beside.spawn(start::panel_task(devices.panel).expect("once"));
    beside.spawn(
        start::usb_task(devices.usbd, "Quiver edge", start::serial_number(board::device_id())).expect("once"),
    );

    let uart = start::link_uart(
        devices.uarte0,
        devices.timer1,
        (devices.ppi_ch0, devices.ppi_ch1),
        devices.ppi_group0,
        devices.link_pins,
    );
    let mut link = Serial::new(uart, &usb::LINK);
    let uart = start::console_uart(
        devices.uarte1,
        devices.timer2,
        (devices.ppi_ch2, devices.ppi_ch3),
        devices.ppi_group1,
        devices.console_pins,
    );
    let mut console = Serial::new(uart, &usb::CONSOLE);

    let (from, to) = memory::state();
    let Some(flash) = Region::new(Nvmc::new(devices.nvmc), supply, from, to) else { hooks::restart() };
    let mut noise = Noise::new(Rng::new(devices.rng, Irqs));
    let seed = match noise.first().await {
        Ok(seed) => seed,
        Err(_) => {
            hooks.show(State::Trouble);
            core::future::pending().await
        }
    };
    let mut rng = Random::new(&seed, Fresh);
    drop(seed);
    let _ = (spawner, rng.next_u32(), flash.capacity(), crash.is_some());

    hooks.show(State::Unprovisioned);
    let (mut one, mut two) = ([0; 64], [0; 64]);
    loop {
        hooks.alive();
        match select(link.read(&mut one), console.read(&mut two)).await {
            Either::First(Ok(len)) => drop(link.write_all(&one[..len]).await),
            Either::Second(Ok(len)) => drop(console.write_all(&two[..len]).await),
            _ => {}
        }
    }
}
