//! The board that an image hands over: devices, already set up, and their description.

/// A board: its devices and its name.
///
/// | field | what it implements |
/// |---|---|
/// | `link` | [`Datagrams`](crate::Datagrams) |
/// | `console` | `embedded_io_async::{Read, Write}`; reading is cancel-safe: a dropped future has taken no byte |
/// | `flash` | `embedded_storage_async::nor_flash::NorFlash`: a region of its own, addressed from 0; see below |
/// | `rng` | `rand_core` 0.6 `CryptoRngCore`; its health is tested before use |
/// | `hooks` | [`Hooks`](crate::Hooks) |
///
/// The flash has pages of `ERASE_SIZE` (4,096 on an nRF52840) bytes, is written by words of 4 bytes, and
/// allows that a written word be written once more, with zeros, before its page is erased.
#[derive(Debug)]
pub struct Board<Link, Console, Flash, Rng, Hooks> {
    /// The datagram link to the gateway.
    pub link: Link,
    /// The operator's console.
    pub console: Console,
    /// Flash that stores the drone's state.
    pub flash: Flash,
    /// Source of all randomness.
    pub rng: Rng,
    /// Watchdog, LEDs, button, reset.
    pub hooks: Hooks,
    /// Description of the board.
    pub about: About,
}

/// Description of a board: its names and the cause of its last reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The board: `nrf52840dk`.
    pub name: &'static str,
    /// Processor of the board: `nRF52840`.
    pub mcu: &'static str,
    /// The processor's clock in Hz.
    pub clock_hz: u32,
    /// Cause of the start.
    pub reset: ResetCause,
}

/// Cause of a board's start, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetCause {
    /// Power on (or a brown-out, which looks the same).
    Power,
    /// The reset pin.
    Pin,
    /// The watchdog: nothing had made progress for too long.
    Watchdog,
    /// The program asked for it.
    Software,
    /// The processor gave up.
    Lockup,
    /// Another cause, or one that this board cannot distinguish.
    Unknown,
}

impl ResetCause {
    /// The word that status lines use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Pin => "pin",
            Self::Watchdog => "watchdog",
            Self::Software => "software",
            Self::Lockup => "lockup",
            Self::Unknown => "unknown",
        }
    }
}
