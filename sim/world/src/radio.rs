//! Radio model: frames, airtime, losses, retransmissions and energy of messages.
//!
//! The model works frame by frame. A [`Preset`] names a radio, its [`Profile`] holds the constants of its
//! standard, each with its source. [`Profile::send`] turns a payload into a [`Transmission`]: how many
//! frames, how often repeated, how long the channel was taken, when the last frame had arrived. [`Medium`] is
//! one shared channel in virtual time, [`Loss`] what a link does to frames, [`Ledger`] adds everything up per
//! drone and per re-key, and [`power`] turns time on air and CPU cycles into [`Energy`].
//!
//! Nothing here reads a clock or draws from a random source of its own: virtual time comes in as a
//! [`Duration`] since the beginning of the world, randomness as an argument, so one seed gives one trace.
//!
//! # Scope of the model
//! * Fragmentation, MAC and PHY overhead, channel access delay, acknowledgements, retries, inter-frame
//!   spacing, duty cycles, independent and bursty frame loss.
//! * Parity frames of broadcasts of several frames, as many as the loss that the sender sees demands.
//! * A message takes the channel as one block; frames of different senders do not interleave.
//! * All stations of a channel hear each other and sense without error, so carrier sensing always defers and
//!   **collisions do not occur**. Hidden stations and interference are expressed as [`Loss`].
//! * A lost frame is lost whole: bit errors within a frame are a fault of the world, not of the radio.
//! * Energy counts transmission, reception of frames meant for the drone, and computation. Idle listening
//!   depends on the sleep schedule of the MAC, which is the application's choice;
//!   [`RadioPower::listening`](power::RadioPower::listening) gives its price per unit of time.
//!
//! [`Duration`]: std::time::Duration

mod ble;
mod ieee802154;
mod ledger;
mod lora;
mod loss;
mod medium;
mod preset;
mod profile;
mod transmission;
mod wifi;

pub mod cycles;
pub mod power;

use std::time::Duration;

pub use ledger::{Account, Ledger, Payer, Spread, Summary};
pub(crate) use loss::happens;
pub use loss::{Loss, LossState};
pub use medium::{ChannelTime, Medium};
pub use power::Energy;
pub use preset::{Preset, SpreadingFactor};
pub use profile::{DutyCycle, Profile};
pub use transmission::Transmission;

/// Receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// A station, which acknowledges every frame.
    Unicast,
    /// Every station in range; none acknowledges.
    Broadcast,
}

/// Reason why a radio or a link cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RadioError {
    /// No radio of this name.
    #[error("unknown radio {given:?}: expected 802.15.4, ble, lora-sf7 … lora-sf12, wifi or ideal")]
    UnknownPreset {
        /// The given value.
        given: String,
    },
    /// LoRa has no such spreading factor here.
    #[error("LoRa spreading factor {given} is not in 7..=12")]
    SpreadingFactor {
        /// The given value.
        given: u8,
    },
    /// A probability outside 0 to 1.
    #[error("{name} = {value} is not a probability")]
    Probability {
        /// Name of the parameter.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// Bursts must last at least one frame, and no channel of such bursts loses so much.
    #[error("no channel loses {rate} of its frames in bursts of {burst} frames on average")]
    Bursts {
        /// Share of frames lost in the long run.
        rate: f64,
        /// Mean length of a burst in frames.
        burst: f64,
    },
}

/// `octets` × 8 bits at `bit_rate` bits per second.
const fn on_air(octets: usize, bit_rate: u32) -> Duration {
    // A thousand million octets at 250 bit/s would overflow; messages are bounded far below by the protocol.
    Duration::from_nanos((octets as u64).saturating_mul(8_000_000_000) / bit_rate as u64)
}
