//! The one libp2p driver of Quiver: it runs any [`Machine`](quiver_machine::Machine) over TCP,
//! memory or, with the feature `quic`, QUIC.
//!
//! The driver moves bytes and time and knows neither suite nor message. The services run one [`Driver`] each,
//! the simulator's live world runs thousands of them in one process.
//!
//! * [`Driver::new`] binds the listeners and fails if it cannot; [`Driver::run`] works until its shutdown
//!   future ends.
//! * The application's side is a [`Host`]: it makes records durable and receives events. A [`Handle`] gives
//!   the running machine commands and reads its state.
//! * A message to one peer is the request of a `/quiver/1/request` stream, or the response if it answers one,
//!   and carries the id of the request that it belongs to: the span `request` around everything logged about
//!   it. A message to the group goes over gossipsub, in a star: a [`Tuning::Hub`] relays at once to every
//!   other subscriber, a [`Tuning::Spoke`] relays nothing.
//! * Nodes that are set up for it ask one another for the time ([`Clocks`], [`Handle::other_clocks`]), and
//!   whether another process uses their identity ([`NodeConfig::detect_duplicates`],
//!   [`Handle::duplicate_identity`]).
//! * Configured addresses are dialled again for as long as the driver runs.
//!
//! All records of a batch of inputs are made durable by one call of [`Host::persist`] before any other output
//! of that batch is carried out.

mod addresses;
mod behaviour;
mod boxed_behaviour;
mod clock;
mod clock_sync;
mod config;
mod confirmation;
mod dial;
mod driver;
mod duplicate_identity;
mod error;
mod fd_limit;
mod frame;
mod group_gate;
mod handle;
mod handshakes;
mod host;
mod introduction;
mod key;
mod listen;
mod metrics;
mod multiplexer;
mod network;
mod outbox;
mod peers;
mod penalties;
mod places;
mod poll_schedule;
mod rate;
mod recent;
mod request;
mod succession;
mod transport;
mod unread;
mod unsent;

pub use libp2p::{Multiaddr, PeerId};

pub use behaviour::group_topic;
pub use clock_sync::{Clocks, OtherClocks};
pub use config::{
    ListeningLimits, NodeConfig, NodeLimits, Transport, Tuning, UnreadLimits, UnsentLimits,
    parse_dialled_address, parse_listened_address,
};
pub use dial::{Unreached, readable};
pub use driver::Driver;
pub use duplicate_identity::dial::refuse_duplicate_identity;
pub use duplicate_identity::gossip::DuplicateReport;
pub use error::{AddressError, HostError, NetError};
pub use fd_limit::check_file_limit;
pub use handle::{Handle, Rejected, Stopped};
pub use host::Host;
pub use introduction::{Introduction, Service};
pub use key::NodeKey;
pub use metrics::{Misconduct, NetMetrics};
pub use rate::Rate;
