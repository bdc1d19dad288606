//! Runs the services as processes on loopback, in a temporary directory, for tests.
//!
//! | module | what it has |
//! |---|---|
//! | [`build`] | the programs, built if they do not lie beside the test |
//! | [`process`] | a running program, its output and its end |
//! | [`deployment`] | operator, KGC, leader, edges and tokens in a temporary directory |
//! | [`timeout`] | waiting with a deadline |
//!
//! Every failure panics with a message that names it: a test that cannot run has failed.

pub mod build;
pub mod deployment;
pub mod process;
pub mod timeout;

pub use self::deployment::TestDeployment;
pub use self::process::{Process, text};
pub use self::timeout::{eventually, now, within};
