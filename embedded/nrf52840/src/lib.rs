//! Hardware support of the images for the nRF52840.
//!
//! | module | what it does | where it is tested |
//! |---|---|---|
//! | [`bridge`] | what the gateway passes on | on the host |
//! | [`callers`] | who called, from a stack | on the host |
//! | [`command`] | the gateway's console | on the host |
//! | [`setting`] | the gateway's network, kept in flash | on the host |
//! | [`entropy`] | health tests of the hardware's random numbers | on the host |
//! | [`panel`] | what the LEDs show, and when a button counts as held | on the host |
//! | [`region`] | the part of flash that holds the state | on the host |
//! | `board`, `serial`, `usb`, `radio`, `medium`, `supply`, `noise`, `memory`, `crash`, `hooks`, `start` | the devices | in the model of the nRF52840, as far as it has them |
#![no_std]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bridge;
pub mod callers;
pub mod command;
pub mod entropy;
pub mod panel;
pub mod region;
pub mod setting;

#[cfg(target_os = "none")]
pub mod board;
#[cfg(target_os = "none")]
pub mod crash;
#[cfg(target_os = "none")]
pub mod hooks;
#[cfg(target_os = "none")]
pub mod medium;
#[cfg(target_os = "none")]
pub mod memory;
#[cfg(target_os = "none")]
pub mod noise;
#[cfg(target_os = "none")]
pub mod radio;
#[cfg(target_os = "none")]
pub mod serial;
#[cfg(target_os = "none")]
pub mod start;
#[cfg(target_os = "none")]
pub mod supply;
#[cfg(target_os = "none")]
pub mod usb;
