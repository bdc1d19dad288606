//! The firmware's images in emulation: a board for tests in which the real services and emulated boards meet.
//!
//! | module | what it has |
//! |---|---|
//! | [`build`] | images, built as they are shipped |
//! | [`deployment`] | a deployment whose leader is the gateway of boards |
//! | [`wire`] | the line between a board and its gateway, which the test can listen to, disturb and cut |
//! | [`fault_script`] | the protocol step that a frame carries, and garbage injected at chosen steps |
//! | [`console`] | a board's console: lines in, lines out |
//! | [`board`] | an emulator with a board's image, its console and its wire; QEMU is one |
//! | [`swarm`] | all of them together |
//! | [`size`] | what an image takes of flash and RAM |
//! | [`model`] | a board in the model of the nRF52840, whose surroundings take orders |
//! | [`lockstep`] | the same, whose time passes as the test lets it |
//! | [`control`] | the model's control port: commands and answers |
//!
//! Everything listens on loopback, on ports that the system chooses; emulators dial the test. A missing
//! requirement (no QEMU, an image that does not build) is a panic that names it: a test that cannot run has
//! failed.
#![forbid(unsafe_code)]

pub mod board;
pub mod build;
pub mod console;
pub mod control;
pub mod deployment;
pub mod fault_script;
pub mod lockstep;
pub mod model;
pub mod size;
pub mod swarm;
pub mod wire;
