//! The boards: which pin does what.
//!
//! | | without a feature | `dongle` | `feather` |
//! |---|---|---|---|
//! | board | nRF52840-DK (PCA10056) | nRF52840 Dongle (PCA10059) | Feather nRF52840 Express |
//! | link: board receives, sends | P0.08, P0.06 (the probe's serial port) | P0.22, P0.20 | P0.24 (RX), P0.25 (TX) |
//! | console: board receives, sends | P1.01 (D0), P1.02 (D1) | P0.15, P0.17 | P0.07 (D6), P1.08 (D5) |
//! | green LED | P0.13 (LED1) | P0.06 (LD1) | P1.10 (blue) |
//! | red LED | P0.14 (LED2) | P0.08 (LD2) | P1.15 |
//! | button | P0.11 (Button 1) | P1.06 (SW1) | P1.02 (UserSw) |

use embassy_nrf::config::{Config, DcdcConfig, Debug, HfclkSource, LfclkSource};
use embassy_nrf::gpio::{AnyPin, Input, Level, Output, OutputDrive, Pull};
use embassy_nrf::interrupt::Priority;
use embassy_nrf::{Peri, peripherals};
use quiver_firmware::ResetCause;

/// The boards that images are built for.
enum BoardKind {
    DevelopmentKit,
    Dongle,
    Feather,
}

/// The board of this image.
const BOARD: BoardKind = if cfg!(feature = "dongle") {
    BoardKind::Dongle
} else if cfg!(feature = "feather") {
    BoardKind::Feather
} else {
    BoardKind::DevelopmentKit
};

/// The board's name.
pub const NAME: &str = match BOARD {
    BoardKind::DevelopmentKit => "nrf52840dk",
    BoardKind::Dongle => "nrf52840dongle",
    BoardKind::Feather => "feather_nrf52840_express",
};

/// The processor's clock in Hz.
pub const CLOCK_HZ: u32 = 64_000_000;

/// True if an LED is lit by a low level.
const LIT_BY_LOW: bool = !matches!(BOARD, BoardKind::Feather);

/// An LED.
pub struct Led(Output<'static>);

impl Led {
    fn new(pin: Peri<'static, AnyPin>) -> Self {
        let dark = if LIT_BY_LOW { Level::High } else { Level::Low };
        Self(Output::new(pin, dark, OutputDrive::Standard))
    }

    /// Lights it or puts it out.
    pub fn set(&mut self, lit: bool) {
        self.0.set_level((lit != LIT_BY_LOW).into());
    }
}

/// The pins of one UART.
pub struct UartPins {
    /// Pin on which the board receives.
    pub rx: Peri<'static, AnyPin>,
    /// Pin on which the board sends.
    pub tx: Peri<'static, AnyPin>,
}

/// LEDs and button.
pub struct Panel {
    /// All is well.
    pub good: Led,
    /// LED that shows that something is wrong.
    pub bad: Led,
    /// Low while it is pressed.
    pub button: Input<'static>,
}

/// The devices that the images use.
#[expect(missing_docs, reason = "they are called what they are")]
pub struct Devices {
    pub link_pins: UartPins,
    pub console_pins: UartPins,
    pub panel: Panel,
    pub uarte0: Peri<'static, peripherals::UARTE0>,
    pub uarte1: Peri<'static, peripherals::UARTE1>,
    pub timer1: Peri<'static, peripherals::TIMER1>,
    pub timer2: Peri<'static, peripherals::TIMER2>,
    pub ppi_ch0: Peri<'static, peripherals::PPI_CH0>,
    pub ppi_ch1: Peri<'static, peripherals::PPI_CH1>,
    pub ppi_ch2: Peri<'static, peripherals::PPI_CH2>,
    pub ppi_ch3: Peri<'static, peripherals::PPI_CH3>,
    pub ppi_group0: Peri<'static, peripherals::PPI_GROUP0>,
    pub ppi_group1: Peri<'static, peripherals::PPI_GROUP1>,
    pub nvmc: Peri<'static, peripherals::NVMC>,
    pub radio: Peri<'static, peripherals::RADIO>,
    pub rng: Peri<'static, peripherals::RNG>,
    pub usbd: Peri<'static, peripherals::USBD>,
    pub wdt: Peri<'static, peripherals::WDT>,
}

/// Starts clocks and regulators, sets the debug port, and sorts the peripherals. Call it once.
#[must_use]
pub fn start() -> Devices {
    let p = embassy_nrf::init(config());
    let pins: Pins = match BOARD {
        BoardKind::DevelopmentKit => (
            p.P0_08.into(),
            p.P0_06.into(),
            p.P1_01.into(),
            p.P1_02.into(),
            p.P0_13.into(),
            p.P0_14.into(),
            p.P0_11.into(),
        ),
        BoardKind::Dongle => (
            p.P0_22.into(),
            p.P0_20.into(),
            p.P0_15.into(),
            p.P0_17.into(),
            p.P0_06.into(),
            p.P0_08.into(),
            p.P1_06.into(),
        ),
        BoardKind::Feather => (
            p.P0_24.into(),
            p.P0_25.into(),
            p.P0_07.into(),
            p.P1_08.into(),
            p.P1_10.into(),
            p.P1_15.into(),
            p.P1_02.into(),
        ),
    };
    let (link_rx, link_tx, console_rx, console_tx, good, bad, button) = pins;
    Devices {
        link_pins: UartPins { rx: link_rx, tx: link_tx },
        console_pins: UartPins { rx: console_rx, tx: console_tx },
        panel: Panel { good: Led::new(good), bad: Led::new(bad), button: Input::new(button, Pull::Up) },
        uarte0: p.UARTE0,
        uarte1: p.UARTE1,
        timer1: p.TIMER1,
        timer2: p.TIMER2,
        ppi_ch0: p.PPI_CH0,
        ppi_ch1: p.PPI_CH1,
        ppi_ch2: p.PPI_CH2,
        ppi_ch3: p.PPI_CH3,
        ppi_group0: p.PPI_GROUP0,
        ppi_group1: p.PPI_GROUP1,
        nvmc: p.NVMC,
        radio: p.RADIO,
        rng: p.RNG,
        usbd: p.USBD,
        wdt: p.WDT,
    }
}

type Pins = (
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
    Peri<'static, AnyPin>,
);

fn config() -> Config {
    let mut config = Config::default();
    // Radio and USB need the crystals; all three boards have both.
    config.hfclk_source = HfclkSource::ExternalXtal;
    config.lfclk_source = LfclkSource::ExternalXtal;
    config.dcdc = DcdcConfig {
        reg0: false,
        // The dongle makes 3 V of USB's 5 V; an erased chip would make 1.8 V.
        reg0_voltage: matches!(BOARD, BoardKind::Dongle).then_some(embassy_nrf::config::Reg0Voltage::_3V0),
        reg1: true,
    };
    // The UARTs have the highest priority: a half-full ring must be emptied within 90 ms. The clock comes
    // next, then the executor of radio and USB.
    config.time_interrupt_priority = Priority::P2;
    config.gpiote_interrupt_priority = Priority::P5;
    config.debug = if cfg!(feature = "locked") {
        Debug::Disallowed
    } else if matches!(BOARD, BoardKind::DevelopmentKit) {
        // Opens the port on chips that would lock it at every start: a board to develop with.
        Debug::Allowed
    } else {
        Debug::NotConfigured
    };
    config
}

/// Cause of the last reset. Clears it, so that the next start reports its own alone. Forgets it, so that the
/// next start tells of itself alone. Call it once.
#[must_use]
pub fn reset_cause() -> ResetCause {
    let power = embassy_nrf::pac::POWER;
    let why = power.resetreas().read();
    power.resetreas().write_value(why);
    if why.dog() {
        ResetCause::Watchdog
    } else if why.lockup() {
        ResetCause::Lockup
    } else if why.sreq() {
        ResetCause::Software
    } else if why.resetpin() {
        ResetCause::Pin
    } else if why.0 == 0 {
        ResetCause::Power
    } else {
        ResetCause::Unknown
    }
}

/// The chip's own number: not secret, but no other chip's.
#[must_use]
pub fn device_id() -> [u8; 8] {
    let ficr = embassy_nrf::pac::FICR;
    let id = u64::from(ficr.deviceid(0).read()) | u64::from(ficr.deviceid(1).read()) << 32;
    id.to_le_bytes()
}
