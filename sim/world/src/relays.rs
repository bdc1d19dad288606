//! Relays in the world: between the drones and their leader, honest or not (docs/protocol.md, 21).

mod gossip;
mod relay_node;

pub(crate) use self::relay_node::RelayNode;
