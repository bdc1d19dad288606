//! What an image hands over: the devices, already set up, and what to call the board.

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
/// The flash has pages of `ERASE_SIZE` (4,096 on an nRF52840) bytes, is written by words of 4 bytes, and allows that a
/// written word be written once more, with zeros, before its page is erased.
#[derive(Debug)]
pub struct Board<Link, Console, Flash, Rng, Hooks> {
    /// To the gateway.
    pub link: Link,
    /// To whoever holds the board.
    pub console: Console,
    /// Where the drone's state is kept.
    pub flash: Flash,
    /// Where all randomness comes from.
    pub rng: Rng,
    /// Watchdog, LEDs, button, reset.
    pub hooks: Hooks,
    /// What to call it.
    pub about: About,
}

/// What to call a board, and how it came to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The board: `nrf52840dk`.
    pub name: &'static str,
    /// Its processor: `nRF52840`.
    pub mcu: &'static str,
    /// The processor's clock in Hz.
    pub clock_hz: u32,
    /// Why it started.
    pub reset: ResetCause,
}

/// Why a board started, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetCause {
    /// Power came (or came back: a brown-out looks the same).
    Power,
    /// The reset pin.
    Pin,
    /// The watchdog: nothing had made progress for too long.
    Watchdog,
    /// The program asked for it.
    Software,
    /// The processor gave up.
    Lockup,
    /// Something else, or this board cannot tell.
    Unknown,
}

impl ResetCause {
    /// One word for status lines.
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
