//! The relays of this process, which are between its drones and the leader, and the settings of a run's.

use std::convert::Infallible;
use std::net::Ipv4Addr;

use quiver_ainq::Suite;
use quiver_machine::Route;
use quiver_net::{Host, HostError, Multiaddr, NodeConfig, PeerId, group_topic};
use quiver_relay::{Relay, RelayEvent, RelayLimits, RelayTiming};

use super::features::LiveLeaderNode;
use super::node::LiveNode;
use super::node_settings::{NodeSettings, address};
use crate::rng_stream::{self, RngStream};
use crate::{Result, SimError};

/// Settings of a run's relays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelaySettings {
    /// Relays of the run.
    pub(crate) count: u32,
    timing: RelayTiming,
}

impl RelaySettings {
    /// Settings of so many relays, whose time limits are longer by this factor.
    pub(super) fn new(count: u32, patience: u32) -> Self {
        let timing = RelayTiming::default();
        // A relay has its turn among all drones.
        let timing = RelayTiming { probe: timing.probe * patience, resend: timing.resend * patience };
        Self { count, timing }
    }

    /// Limits of the relays of a leader.
    pub(super) fn limits(&self) -> RelayLimits {
        RelayLimits { resend: self.timing.resend, ..RelayLimits::default() }
    }
}

/// Transport identities of the relays of a run.
pub(super) fn identities<S: Suite>(setting: &NodeSettings<S>) -> Result<Vec<PeerId>> {
    let relays = 0..setting.features.relays.count;
    relays.map(|relay| Ok(setting.key(RngStream::Relay, relay)?.peer_id())).collect()
}

/// The node of a relay.
fn relay_node<S: Suite>(
    setting: &NodeSettings<S>,
    number: u32,
    listen: Multiaddr,
    leaders: &[Multiaddr],
) -> Result<NodeConfig> {
    let key = setting.key(RngStream::Relay, number)?;
    let mut config = setting.lean(NodeConfig::hub(key, setting.transport(), setting.drones as usize));
    config.topic = Some(group_topic(setting.group.as_str()));
    config.listen = vec![listen];
    config.dial = leaders.iter().map(|leader| (Route::Leader, leader.clone())).collect();
    Ok(config)
}

/// Number of drones behind the relays of a leader.
pub(super) async fn drones_behind<S: Suite>(leader: &LiveNode<LiveLeaderNode<S>>) -> Result<u64> {
    leader.inspect(|leader| leader.relayed().1 as u64).await
}

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
                let config = relay_node(setting, number, listen, leaders)?;
                let rng = rng_stream::generator(setting.seed, RngStream::Relay, number, 0);
                let who = format!("relay {number}");
                let relay = Relay::new(setting.drones as usize, setting.features.relays.timing);
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
