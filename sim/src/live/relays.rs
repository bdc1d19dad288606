//! The relays of this process, which are between its drones and the leader.

use std::convert::Infallible;
use std::net::Ipv4Addr;

use quiver_ainq::Suite;
use quiver_net::{Host, HostError, Multiaddr};
use quiver_relay::{Relay, RelayEvent};

use super::node::LiveNode;
use super::node_settings::{NodeSettings, address};
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// The relays, once they run.
#[derive(Default)]
pub(crate) struct Relays {
    nodes: Vec<LiveNode<Relay>>,
    addresses: Vec<Multiaddr>,
}

impl Relays {
    /// The addresses at which the drones of this process find the leader, of which each uses one: those of its relays
    /// of these numbers, which are started if need be; `None` if it has none.
    pub(crate) async fn ways<S: Suite>(
        &mut self,
        setting: &NodeSettings<S>,
        numbers: impl IntoIterator<Item = u32>,
        leaders: &[Multiaddr],
    ) -> Result<Option<&[Multiaddr]>> {
        if self.nodes.is_empty() {
            for number in numbers {
                let listen = address(setting.transport, Ipv4Addr::LOCALHOST.into())?;
                let config = setting.relay(number, listen, leaders)?;
                let rng = rng_stream::generator(setting.seed, RngStream::Relay, number, 0);
                let who = format!("relay {number}");
                let relay = Relay::new(setting.drones as usize, setting.relay_timing);
                let node = LiveNode::start(who, &config, relay, RelayHost(number), rng)?;
                let listening = node.handle().listening().await.map_err(|_| node.stopped())?;
                let first = listening.into_iter().next();
                self.addresses.push(first.ok_or_else(|| SimError::Usage("a relay listens nowhere".into()))?);
                self.nodes.push(node);
            }
        }
        Ok(Some(self.addresses.as_slice()).filter(|addresses| !addresses.is_empty()))
    }
}

struct RelayHost(u32);

impl Host<Relay> for RelayHost {
    fn persist(&mut self, _: &[Infallible]) -> std::result::Result<(), HostError> {
        Ok(())
    }

    fn event(&mut self, _: &Relay, event: RelayEvent) {
        tracing::debug!(relay = self.0, ?event);
    }
}
