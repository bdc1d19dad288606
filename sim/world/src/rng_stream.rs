//! Random number streams: one seed gives every node an independent generator, and another one in every life.

use quiver_ainq::KgcId;
use quiver_crypto::Hasher;
use quiver_testbed::CompactRng;
pub(crate) use quiver_testbed::{below, unit};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::NodeId;
use crate::admission::CertifiedFields;

/// A stream of random numbers, by who draws from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RngStream {
    /// A node, in one of its lives: a machine that was restarted must not draw the same nonces again.
    Node(NodeId, u32),
    /// The operator who issues the token of this node.
    Token(NodeId),
    /// The operator who sets up the KGC.
    Founder,
    /// The network's bad luck.
    Network,
    /// The generator of plans.
    Planner,
    /// The adversary.
    Adversary,
    /// The radio's bad luck.
    Air,
    /// The stations' salts, and what the adversary does with those that it has.
    Datagrams,
    /// Places of members, and times at which they repeat broadcasts.
    Field,
    /// The attribute authority.
    AbeAuthority,
    /// The authority of the conditions' master key.
    IbeAuthority,
    /// The sender of orders.
    Orders,
    /// A KGC that lies.
    ByzantineKgc(KgcId),
    /// A hostile relay.
    HostileRelay(u16),
    /// The authority of a checkpoint.
    Checkpoint,
    /// The fields of a drone.
    Fields(u32),
    /// The certificate of these fields for a period.
    Certifier(u32, u64, CertifiedFields),
    /// The delay of an anonymous drone before it returns, in one of its memberships.
    Return(u32, u32),
}

/// The key of one stream.
pub(crate) fn key(seed: u64, stream: RngStream) -> [u8; 32] {
    let hasher = Hasher::new("quiver/1 world seed").u64(seed);
    let node = |hasher: Hasher, kind: u8, node: NodeId, life: u32| {
        let (role, number) = match node {
            // The first one as if it were the only one.
            NodeId::Kgc(id) => (0, u32::from(id).saturating_sub(1)),
            NodeId::Leader(ordinal) => (1, u32::from(ordinal)),
            NodeId::Edge(number) => (2, number),
            NodeId::Relay(number) => (3, u32::from(number)),
        };
        hasher.u8(kind).u8(role).u32(number).u32(life)
    };
    let hasher = match stream {
        RngStream::Node(name, life) => node(hasher, 1, name, life),
        RngStream::Token(name) => node(hasher, 2, name, 0),
        RngStream::Founder => hasher.u8(3),
        RngStream::Network => hasher.u8(4),
        RngStream::Planner => hasher.u8(5),
        RngStream::Adversary => hasher.u8(6),
        RngStream::Air => hasher.u8(7),
        RngStream::AbeAuthority => hasher.u8(8),
        RngStream::IbeAuthority => hasher.u8(9),
        RngStream::Orders => hasher.u8(10),
        RngStream::ByzantineKgc(id) => hasher.u8(11).u16(id),
        RngStream::HostileRelay(number) => hasher.u8(18).u16(number),
        RngStream::Checkpoint => hasher.u8(12),
        RngStream::Fields(drone) => hasher.u8(13).u32(drone),
        RngStream::Certifier(drone, period, CertifiedFields { x, y, battery }) => {
            let place = [x.to_be_bytes(), y.to_be_bytes()].concat();
            hasher.u8(14).u32(drone).u64(period).fixed(&place).u8(battery)
        }
        RngStream::Datagrams => hasher.u8(16),
        RngStream::Field => hasher.u8(17),
        RngStream::Return(drone, life) => hasher.u8(15).u32(drone).u32(life),
    };
    hasher.finish()
}

/// The generator of one stream.
pub(crate) fn generator(seed: u64, stream: RngStream) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key(seed, stream))
}

/// The same generator, small until it draws.
pub(crate) fn compact(seed: u64, stream: RngStream) -> CompactRng {
    CompactRng::new(key(seed, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_and_life_draws_differently() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2 {
            for node in [
                NodeId::Kgc(1),
                NodeId::Kgc(2),
                NodeId::Leader(0),
                NodeId::Leader(1),
                NodeId::Edge(0),
                NodeId::Edge(1),
                NodeId::Relay(0),
                NodeId::Relay(1),
            ] {
                for life in 0..2 {
                    assert!(seen.insert(key(seed, RngStream::Node(node, life))));
                }
                assert!(seen.insert(key(seed, RngStream::Token(node))));
            }
            for stream in [RngStream::Founder, RngStream::Network, RngStream::Planner, RngStream::Adversary] {
                assert!(seen.insert(key(seed, stream)));
            }
        }
    }
}
