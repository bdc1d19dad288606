//! Relays in the world: between the drones and their leader, honest or not (docs/protocol.md, 21).

mod gossip;
mod hostile_relays;
mod relay_node;

use quiver_ainq::Suite;
use quiver_relay::RelayEvent;

pub(crate) use self::gossip::RelayGossip;
pub(crate) use self::hostile_relays::HostileRelays;
pub(crate) use self::relay_node::RelayNode;
use crate::feature_event::FeatureEvent;
use crate::{Setup, WorldKernel};

/// An event of a relay's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayNodeEvent {
    /// The relay.
    Relay(RelayEvent),
}

impl FeatureEvent for RelayNodeEvent {
    fn describe(&self) -> Option<String> {
        match self {
            Self::Relay(RelayEvent::LeaderLost { drones }) => {
                Some(format!("loses its leader, and disconnects {drones} drones"))
            }
            Self::Relay(_) => None,
        }
    }
}

impl<S: Suite> WorldKernel<S> {
    /// Number of connected relays of a leader, and of the drones behind them.
    pub fn relayed(&self, ordinal: u16) -> Option<(usize, usize)> {
        let leader = self.nodes.leader_node(ordinal)?.machine.as_deref()?;
        Some(leader.relayed())
    }
}

/// A batch of a relay, as the kinds of all messages that it carries; `None` if it carries none.
pub(crate) fn described_batch(payload: &[u8], kind: impl Fn(&[u8]) -> String) -> Option<String> {
    let carried: Vec<String> = quiver_relay::carried(payload)
        .iter()
        .filter(|carried| !carried.is_empty())
        .map(|carried| kind(carried))
        .collect();
    (!carried.is_empty()).then(|| format!("a batch ({})", carried.join(", ")))
}

/// Messages that a leader's message carries to the drones behind a relay (21.2), if there are relays.
pub(crate) fn carried(setup: &Setup, payload: &[u8]) -> Vec<Vec<u8>> {
    if setup.relays > 0 { quiver_relay::carried(payload) } else { Vec::new() }
}
