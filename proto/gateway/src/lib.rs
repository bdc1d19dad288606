//! A gateway: connects boards on serial lines to a Quiver deployment, and relays their messages without keys.
//!
//! A board drives its role machine itself. The gateway sends it a driver's inputs and executes the machine's
//! messages ([`quiver_link`]). For each board it runs nodes of its own on the network, with transport keys
//! that live as long as the board's session: one that is connected to the leaders and listens to the group's
//! topic, and one that is connected to the KGCs while the board asks for them. So leaders and KGCs see a
//! board as they see any other drone, and their limits for each peer hold for each board.
//!
//! Of a group message it looks at the channel, which stands in the clear: what boards have no use for does not take their
//! lines' time.
//!
//! The gateway is not trusted: an attacker that controls it, or the line, can delay, drop and send a wrong
//! time, and no more.
//!
//! Messages to the group go to boards by radio that take it as coded broadcasts, once for all of a line
//! ([`quiver_link::erasure`]), and to others in their sessions.
//!
//! The work that a line can cause is bounded: bytes read per second, boards, sessions begun per second, and
//! for each board the messages and bytes that wait. A line that is closed or unplugged is opened again for as
//! long as the gateway runs.

mod address;
mod board;
mod broadcasts;
mod error;
mod line;
mod opening;
mod rate_limits;
mod relay;

use std::sync::Arc;

use quiver_net::Multiaddr;
use tokio::task::JoinSet;

pub use address::LineAddress;
pub use error::GatewayError;

/// Configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The lines to serve.
    pub lines: Vec<LineAddress>,
    /// Bits per second on lines that are devices.
    pub baud: u32,
    /// The addresses of the group's leaders.
    pub leaders: Vec<Multiaddr>,
    /// The addresses of the KGCs.
    pub kgcs: Vec<Multiaddr>,
    /// The group whose messages boards may receive and send.
    pub group: String,
    /// Channels of group messages that are of no use to boards and are not sent to them.
    pub withheld: Vec<String>,
    /// Tells the seconds since 1970-01-01T00:00:00Z, for boards, which have no clock.
    pub unix_time: fn() -> u64,
}

/// Serves the lines, for as long as the future is polled. Must be called inside a tokio runtime with its I/O
/// and time enabled. Dropping the future closes the lines; the boards' nodes then say what they still have to
/// say, for at most a second.
pub async fn serve(config: GatewayConfig) {
    let config = Arc::new(config);
    let mut lines = JoinSet::new();
    for address in &config.lines {
        lines.spawn(line::serve(config.clone(), address.clone()));
    }
    // A line is served for ever.
    while let Some(ended) = lines.join_next().await {
        if let Err(error) = ended {
            tracing::error!("a line is no longer served: {error}");
        }
    }
}
