//! Parts that edges' and leaders' programs share: settings, subcommands, the state file, the running service,
//! and the use of the keys that a drone fetches from the KGCs.
//!
//! | module | what it has |
//! |---|---|
//! | [`program`] | what differs between the two programs, as a trait |
//! | [`feature`] | features that can be left out of a program |
//! | [`settings`] | the settings that both have |
//! | [`store`] | the drone's state file, shared by the tasks of one process |
//! | [`service`] | a drone with its state file open: its key client, its driver until a signal comes |
//! | [`running`] | a running drone, as the tasks beside its machine reach it |
//! | [`machine`] | the machine of a running service |
//! | [`send`] | who passes messages on to the group, whether one was confirmed, what is said about it |
//! | [`kem_row`] | the second factor of a pair, as a status says it |
//! | [`request`] | what subcommands ask of the running service, and the answers |
//! | [`subcommands`] | the subcommands that both programs have: asked of the running service, or done without one |
//! | [`watch`] | a status that is shown again and again |
//! | [`output`] | what a service prints: events, messages |
//! | [`health`] | how the running service is doing, for the endpoint of metrics and health |
//! | [`metrics`] | metrics that both have |
//! | [`keys`], [`fetch`] | the keyring in the state file, and its client at the KGCs |
//! | [`addresses`] | addresses of nodes in settings |
//! | [`atomic_file`] | files that are there whole, or not at all |

pub mod addresses;
pub mod atomic_file;
mod error;
pub mod feature;
pub mod fetch;
pub mod health;
pub mod kem_row;
pub mod keys;
pub mod machine;
pub mod metrics;
pub mod output;
pub mod program;
pub mod request;
pub mod running;
pub mod send;
pub mod service;
pub mod settings;
pub mod store;
pub mod subcommands;
pub mod watch;

pub use error::{Error, Result};
pub use machine::{DroneMachine, RoleNode, leader_with_parts, with_parts};
pub use program::DroneProgram;
pub use running::RunningDrone;
pub use service::DroneService;
pub use settings::DroneSettings;
pub use store::StateStore;
