//! Relays in the world: between the drones and their leader, honest or not (docs/protocol.md, 21).

mod gossip;
mod hostile_relays;
mod relay_node;

pub(crate) use self::gossip::RelayGossip;
pub(crate) use self::hostile_relays::HostileRelays;
pub(crate) use self::relay_node::RelayNode;
use crate::Setup;

/// Messages that a leader's message carries to the drones behind a relay (21.2), if there are relays.
pub(crate) fn carried(setup: &Setup, payload: &[u8]) -> Vec<Vec<u8>> {
    if setup.relays > 0 { quiver_relay::carried(payload) } else { Vec::new() }
}
