//! Quiver's edge drone: the program `edge`, and a drone within another program.
//!
//! An [`Edge`] is a drone: it enrols with a token, joins its group, follows the group's keys, sends and
//! receives messages, exports keys for the application, and leaves. It is the service that `edge run` is, with
//! the same files in the same data directory, and `edge status -d DIR` asks it, too. Calls block and have a
//! time limit; [`Edge::as_fd`](std::os::fd::AsFd) is for event loops. From C it is `libquiver`, from Python
//! the package `quiver`.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use quiver_edge::{Edge, Event, Options, Token, Unlock};
//!
//! # fn main() -> quiver_edge::Result<()> {
//! let second = Duration::from_secs(1);
//! let edge = Edge::open(Options {
//!     deployment: Some("deployment.toml".into()),
//!     token: Some(Token::File("edge-1.token".into())),
//!     leaders: vec!["/ip4/10.0.0.1/tcp/7001".into()],
//!     ..Options::new("edge-data", Unlock::passphrase(b"correct-horse-battery-staple"))
//! })?;
//! edge.join(60 * second)?;
//! edge.send("chat", b"hello, group", true, 5 * second)?;
//! while let Some(event) = edge.next_event(60 * second)? {
//!     if let Event::Message(message) = event {
//!         println!("{}: {:?}", message.channel, message.sender);
//!     }
//! }
//! edge.leave(10 * second)
//! # }
//! ```
//!
//! In here `program` reads the command line, `config` the settings; `features` lists what this build has; `service` runs the machine with the driver
//! of `quiver-net`; through `control` the subcommands that only an edge has reach the running one; `blocking`
//! is the drone within another program. The code that an edge shares with a leader is in
//! `quiver_service::drone`.

mod blocking;
mod cli;
mod config;
mod control;
mod features;
mod metrics;
mod program;
mod provision;
mod service;

pub use blocking::{
    Edge, Error, ErrorKind, Event, ExportedKey, MAX_MESSAGE, MembershipStanding, MessageSender, Options,
    ReceivedMessage, RemoteService, Result, Status, Token, Unlock, Wait,
};
pub use program::program;
